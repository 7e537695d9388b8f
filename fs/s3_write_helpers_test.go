package fs_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// requestID is what the faults of these tests give for the store's request id.
const requestID = "REQUEST-16"

// answers is a store that answers so in place of its own answer.
func answers(status int, code string) faulty.Fault {
	return faulty.Status{Code: status, S3Code: code, Header: http.Header{"X-Amz-Request-Id": {requestID}}}
}

// faultyTwo mounts twoTables behind a proxy, with a deadline of a few seconds for
// what does not answer.
func faultyTwo(t *testing.T, files map[string]string, flags ...string) *mounttest.Lake {
	t.Helper()
	return mounttest.Mount(t, mounttest.Options{
		Faulty: true, Tables: twoTables(files), Timeout: 3 * time.Minute,
		Flags: append([]string{"--io-timeout=3s", "--write=delete"}, flags...),
	})
}

// warm publishes a small file, by which the mount learns what the store makes of
// conditions, takes it away again, and counts from there.
func warm(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	write(t, l, csvDir+"/warm", "small")
	if err := unlink(l, csvDir+"/warm"); err != nil {
		t.Fatal(err)
	}
	l.Proxy.Reset()
}

// onFile is a rule of one operation on a name in csvDir.
func onFile(l *mounttest.Lake, op, name string, fault faulty.Fault) faulty.Rule {
	return faulty.Rule{Op: op, Key: l.Key(csvDir + "/" + name), Fault: fault}
}

// wantBucket asserts that the bucket has these names in csvDir, and nothing else
// that was not there when the lake was made: no helper object, no marker of a
// directory, no unfinished upload.
func wantBucket(t *testing.T, l *mounttest.Lake, names ...string) {
	t.Helper()
	server, bucket := l.Bucket()
	var got, want []string
	for _, key := range server.Keys(t, bucket, "") {
		if !strings.Contains(key, "/_sqe/") {
			got = append(got, key)
		}
	}
	for _, name := range names {
		want = append(want, l.Key(csvDir)+"/"+name) // not cleaned
	}
	for _, dir := range []string{csvDir, parquetDir} {
		want = append(want, l.Key(dir)+"/") // of twoTables
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the bucket has %q, want %q", got, want)
	}
	if uploads := server.Uploads(t, bucket); len(uploads) > 0 {
		t.Errorf("uploads are left: %q", uploads)
	}
}

// failures are the lines of the log that tell of a failure of a name in csvDir.
func failures(l *mounttest.Lake, name string) (lines []string) {
	for line := range strings.Lines(l.Log()) {
		if strings.Contains(line, "level=ERROR") && strings.Contains(line, csvDir+"/"+name) {
			lines = append(lines, line)
		}
	}
	return lines
}
