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

// failedLines are the lines of a JSON log that tell of a failed request, of a path.
func failedLines(t *testing.T, l *mounttest.Lake, path string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for line := range strings.Lines(l.Log()) {
		var said map[string]any
		if json.Unmarshal([]byte(line), &said) == nil && said["msg"] == "request failed" && said["path"] == path {
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
		lines := failedLines(t, l, "db/t/"+name)
		if len(lines) != 1 {
			t.Fatalf("%d lines of %q, want 1: %v", len(lines), name, lines)
		}
		line := lines[0]
		operation, _ := line["op_id"].(string)
		key, _ := line["key"].(string)
		if operation == "" || seen[operation] != "" || line["request_id"] != id || line["status"] != float64(503) ||
			!strings.HasSuffix(key, l.Key("db/t/"+name)) || line["errno"] == "" {
			t.Errorf("the line is %v; operations before: %v", line, seen)
		}
		seen[operation] = name
		asked := strings.Count(l.Log(), `"msg":"store asked again"`)
		of := 0
		for line := range strings.Lines(l.Log()) {
			if strings.Contains(line, `"msg":"store asked again"`) && strings.Contains(line, `"op_id":"`+operation+`"`) {
				of++
			}
		}
		if of == 0 {
			t.Errorf("none of %d retries is of operation %s", asked, operation)
		}
	}
	failing.Remove()
	if got := l.MustSh(`cat "db/t/a b.csv"`); got != "one\n" {
		t.Errorf("afterwards it has %q", got)
	}
}
