package fs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// logged are the lines of a JSON log with a message, and an attribute of a value.
func logged(t *testing.T, l *mounttest.Lake, message, attribute, value string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for line := range strings.Lines(l.Log()) {
		var said map[string]any
		if json.Unmarshal([]byte(line), &said) == nil && said["msg"] == message && said[attribute] == value {
			found = append(found, said)
		}
	}
	return found
}

// One line tells of a read that failed: the operation, the object, and the store's own
// id of the request that it answered with an error. The requests before it, of which
// the debug log tells, are of the same operation, and another read is another one.
func TestS3FailedReadIsOneLineWithBothIDs(t *testing.T) {
	t.Parallel()
	l := behindFaults(t, map[string]string{"a b.csv": "one\n", "c.csv": "two\n"},
		"--io-timeout=2s", "--log-format=json", "--log-level=debug")
	l.MustSh(`ls -l db/t`)
	id := fmt.Sprintf("request-%d", time.Now().UnixNano())
	failing := l.Proxy.Add(faulty.Rule{Op: "GetObject", Fault: faulty.Status{
		Code: http.StatusServiceUnavailable, S3Code: "SlowDown", Header: http.Header{"X-Amz-Request-Id": {id}},
	}})
	seen := map[string]string{}
	for _, name := range []string{"a b.csv", "c.csv"} {
		if r := l.Sh(`cat "db/t/` + name + `"`); r.Code == 0 {
			t.Fatalf("cat of %q succeeds: %q", name, r.Out)
		}
		failed := logged(t, l, "request failed", "path", "db/t/"+name)
		if len(failed) != 1 {
			t.Fatalf("%d lines of %q, want 1: %v", len(failed), name, failed)
		}
		line := failed[0]
		operation, _ := line["op_id"].(string)
		key, _ := line["key"].(string)
		if operation == "" || seen[operation] != "" || line["request_id"] != id || line["status"] != float64(503) ||
			!strings.HasSuffix(key, l.Key("db/t/"+name)) || line["errno"] == "" {
			t.Errorf("the line is %v; operations before: %v", line, seen)
		}
		seen[operation] = name
		for _, said := range []string{"store request", "store asked again"} {
			if len(logged(t, l, said, "op_id", operation)) == 0 {
				t.Errorf("no line %q is of operation %s", said, operation)
			}
		}
	}
	failing.Remove()
	if got := l.MustSh(`cat "db/t/a b.csv"`); got != "one\n" {
		t.Errorf("afterwards it has %q", got)
	}
	for _, said := range logged(t, l, "store request", "operation", "read") {
		if said["op_id"] == nil || said["key"] == nil || said["status"] == nil || said["request_id"] == nil {
			t.Errorf("a request is told of as %v", said)
		}
	}
}
