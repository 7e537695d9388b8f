package fs_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// samples are the values of a mount's stats, by name and labels.
func samples(t *testing.T, l *mounttest.Lake) map[string]float64 {
	t.Helper()
	text, err := l.ReadFile(".lakefs/stats")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			if all[line[:i]], err = strconv.ParseFloat(strings.TrimSpace(line[i:]), 64); err != nil {
				t.Errorf("line %q: %v", line, err)
			}
		}
	}
	return all
}

// requestsOf adds the requests of store operations, whatever came of them.
func requestsOf(all map[string]float64, operations ...string) (n int) {
	for _, operation := range operations {
		for name, value := range all {
			if strings.HasPrefix(name, `lakefs_mount_store_request_seconds_count{operation="`+operation+`",`) {
				n += int(value)
			}
		}
	}
	return n
}

// usersOfALake read, write and list at once: eight, four and two.
const usersOfALake = `
for i in 1 2 3 4 5 6 7 8; do (for k in 1 2 3 4 5; do cat db/t/f$i db/t/f$(((i + k) % 8 + 1)) >/dev/null || echo cat $i; done) & done
for i in 1 2 3 4; do (for k in 1 2 3; do seq $((i * k * 10000)) >db/t/new$i-$k && mv db/t/new$i-$k db/t/moved$i-$k || echo write $i; done; head -c 20000000 /dev/zero >db/t/large$i && rm db/t/large$i || echo large $i) & done
for i in 1 2; do (for k in 1 2 3 4 5 6; do ls -lR db >/dev/null || echo ls; done) & done
wait`

// What a mount says of its requests is what the store had, each kind by itself, with
// failures and retries; and what it holds while it is used it gives back.
func TestS3MetricsAgreeWithTheStore(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 8 {
		files[fmt.Sprint("f", i+1)] = numbered('a'+byte(i), 3<<20)
	}
	l := mounttest.Mount(t, mounttest.Options{
		Faulty: true, Tables: []mounttest.Table{text("t", files)}, Timeout: 3 * time.Minute,
		Flags: []string{"--metadata-ttl=100ms", "--write=delete"},
	})
	l.MustSh(`ls db/t; cat db/t/f1 >/dev/null; echo x >db/t/first; rm db/t/first`)
	before := samples(t, l)
	for _, op := range []string{"GetObject", "PutObject", "UploadPart", "ListObjectsV2"} {
		l.Proxy.Add(faulty.Rule{Op: op, Skip: 3, Times: 3, Fault: slowDown()})
	}
	if out := l.MustSh(usersOfALake); out != "" {
		t.Errorf("failed: %s", out)
	}
	// Requests that nobody waits for any more (read-ahead) may be on their way yet.
	operations := map[string][]string{
		"GetObject": {"read"}, "HeadObject": {"stat"}, "ListObjectsV2": {"list"}, "PutObject": {"put"}, "CopyObject": {"copy"},
		"CreateMultipartUpload": {"upload"}, "UploadPart": {"part"}, "CompleteMultipartUpload": {"complete"},
	}
	var wrong string
	l.Eventually("the counts agree", time.Minute, func() bool {
		all, had := samples(t, l), l.Proxy.Counts()
		wrong = ""
		for op, names := range operations {
			if got := requestsOf(all, names...); got != had[op] {
				wrong += fmt.Sprintf("%s: %d are counted, the store had %d\n", op, got, had[op])
			}
		}
		t.Log(wrong, had)
		return wrong == ""
	})
	all := samples(t, l)
	if got := all["lakefs_mount_store_retries_total"]; got < 12 {
		t.Errorf("%v retries are counted, want 12 at least", got)
	}
	if got := all[`lakefs_mount_store_request_seconds_count{operation="read",outcome="error"}`]; got != 3 {
		t.Errorf("%v reads failed, want 3", got)
	}
	if got := all[`lakefs_mount_publish_seconds_count{outcome="ok"}`] - before[`lakefs_mount_publish_seconds_count{outcome="ok"}`]; got < 16 {
		t.Errorf("%v publishes are counted, want 16 at least", got)
	}
	if read := all[`lakefs_mount_file_bytes_total{direction="read"}`]; read < 8*3<<20 {
		t.Errorf("programs read %v bytes, want all files at least", read)
	}
	if wrote := all[`lakefs_mount_file_bytes_total{direction="written"}`] - before[`lakefs_mount_file_bytes_total{direction="written"}`]; wrote < 80_000_000 {
		t.Errorf("programs wrote %v bytes, want 80,000,000 at least", wrote)
	}
	l.Eventually("all is given back", 2*time.Minute, func() bool {
		now := samples(t, l)
		return now["lakefs_mount_open_handles"] <= before["lakefs_mount_open_handles"] && now["lakefs_mount_staged_writes"] == 0 &&
			now["process_open_fds"] <= before["process_open_fds"]+16 && now["go_goroutines"] <= before["go_goroutines"]+32
	})
}
