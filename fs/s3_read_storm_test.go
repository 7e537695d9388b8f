package fs_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// A store that fails in the middle of a sequential read, when several requests are
// under way: the reader gets right bytes, or an error in time, and the store is not
// asked more by being overloaded.

// beforeStorm is what is read before a storm begins.
const beforeStorm = 4 << 20

// readAlong reads db/t/f to its end in one go, calling middle after its first bytes.
// It bypasses Do, whose limit is that of one operation.
func readAlong(l *mounttest.Lake, middle func()) (string, error) {
	f, err := os.Open(l.Path("db/t/f"))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	buf := make([]byte, 256<<10)
	for err == nil {
		var n int
		n, err = f.Read(buf)
		b.Write(buf[:n])
		if middle != nil && b.Len() >= beforeStorm {
			middle()
			middle = nil
		}
	}
	if err.Error() == "EOF" {
		err = nil
	}
	return b.String(), errors.Join(err, f.Close())
}

func TestS3StormInTheMiddleOfARead(t *testing.T) {
	t.Parallel()
	const refusals = 24
	for what, refusal := range map[string]faulty.Fault{
		"503":               slowDown(),
		"503, a second":     faulty.Status{Code: http.StatusServiceUnavailable, S3Code: "SlowDown", Header: http.Header{"Retry-After": {"1"}}},
		"429 of a page":     faulty.Status{Code: http.StatusTooManyRequests, HTML: true},
		"reset connections": faulty.Refuse{},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			content := numbered('s', 48<<20)
			l := behindFaults(t, map[string]string{"f": content})
			w := watch(l)
			var storm *faulty.Active
			got, err := readAlong(l, func() {
				storm = l.Proxy.Add(faulty.Rule{Op: "GetObject", Times: refusals, Fault: refusal})
			})
			if err != nil || got != content {
				t.Fatalf("%d bytes, %v; want the %d of the object", len(got), err, len(content))
			}
			w.quiet(l)
			if storm.Hits() != refusals {
				t.Errorf("%d requests were refused, want %d: the storm was over before the read", storm.Hits(), refusals)
			}
			// What was answered is fetched once: a refusal has one request follow.
			if n := w.fetched(l, "db/t/f"); n > int64(len(content))+1<<20 {
				t.Errorf("%d bytes came of %d\n%s", n, len(content), w)
			}
		})
	}
}

// wantFewEach asserts that no range was asked for all the time.
func wantFewEach(t *testing.T, l *mounttest.Lake, w *traffic, name string, most int) {
	t.Helper()
	each := make(map[string]int)
	for _, g := range w.gets(l, name) {
		each[g.ranged]++
	}
	for ranged, n := range each {
		if n > most {
			t.Errorf("%s was asked for %d times, want %d at most", ranged, n, most)
		}
	}
	if len(each) == 0 {
		t.Errorf("nothing was asked of %s", name)
	}
}

func TestS3StormThatStays(t *testing.T) {
	t.Parallel()
	content := numbered('s', 96<<20)
	l := behindFaults(t, map[string]string{"f": content, "other": "fine"}, quick...)
	w := watch(l)
	var storm *faulty.Active
	var began time.Time
	got, err := readAlong(l, func() {
		storm = l.Proxy.Add(faulty.Rule{Op: "GetObject", Key: l.Key("db/t/f"), Fault: slowDown()})
		began = time.Now()
	})
	wantErrno(t, "a read in a storm that stays", err, syscall.EIO)
	if took := time.Since(began); took > soon { // of a limit of 3 s, on a busy machine
		t.Errorf("the error came after %v", took)
	}
	if !strings.HasPrefix(content, got) || len(got) == len(content) {
		t.Errorf("%d bytes were read, not the beginning of the object", len(got))
	}
	wantContent(t, l, "db/t/other", "fine")
	w.quiet(l)
	// By reading ahead, and for the reader that waited for that; each time again after
	// 100, 200, 400, 800 ms.
	wantFewEach(t, l, w, "db/t/f", 14)
	if hits := storm.Hits(); hits > mostAsked {
		t.Errorf("%d requests met the storm, want %d at most", hits, mostAsked)
	}
	storm.Remove()
	if got, err := readAlong(l, nil); err != nil || got != content {
		t.Errorf("after the storm: %d bytes, %v", len(got), err)
	}
}

// One of several requests that are under way is lost: it alone is made once more,
// on another connection, and the reader learns nothing.
func TestS3OneOfSeveralGETsIsLost(t *testing.T) {
	t.Parallel()
	content := numbered('l', 48<<20)
	files := map[string]string{"f": content}
	for _, name := range strings.Fields("a b c d e g") {
		files[name] = "answered, so that it is known how long that takes"
	}
	l := behindFaults(t, files, "--io-timeout=10m") // nothing else may end the wait
	for name := range files {
		if name != "f" {
			wantContent(t, l, "db/t/"+name, files[name])
		}
	}
	w := watch(l)
	late := func(q *faulty.Request) bool { return q.Range != "" && !strings.HasPrefix(q.Range, "bytes=0-") }
	lost := l.Proxy.Add(faulty.Rule{Op: "GetObject", Key: l.Key("db/t/f"), If: late, Skip: 3, Times: 1, Fault: faulty.Hang{}})
	got, err := readAlong(l, nil)
	if err != nil || got != content {
		t.Fatalf("%d bytes, %v; want the %d of the object", len(got), err, len(content))
	}
	w.quiet(l)
	if lost.Hits() != 1 {
		t.Fatalf("%d requests were lost, want 1", lost.Hits())
	}
	from := make(map[string][]string)
	twice := 0
	for _, g := range w.gets(l, "db/t/f") {
		from[g.ranged] = append(from[g.ranged], g.from)
	}
	for ranged, f := range from {
		if len(f) == 1 {
			continue
		}
		if twice++; len(f) > 2 || f[0] == f[1] {
			t.Errorf("%s was asked for from %q, want twice, on two connections", ranged, f)
		}
	}
	if twice != 1 {
		t.Errorf("%d ranges were asked for again, want the one that was lost\n%s", twice, w)
	}
}

// One of several bodies stands still: the rest of it is asked for again, and what
// had come is not.
func TestS3OneOfSeveralBodiesStalls(t *testing.T) {
	t.Parallel()
	content := numbered('s', 48<<20)
	l := behindFaults(t, map[string]string{"f": content}, quick...)
	w := watch(l)
	late := func(q *faulty.Request) bool { return q.Range != "" && !strings.HasPrefix(q.Range, "bytes=0-") }
	stalled := l.Proxy.Add(faulty.Rule{Op: "GetObject", Key: l.Key("db/t/f"), If: late, Skip: 3, Times: 1, Fault: faulty.StallBody{After: 300_000}})
	got, err := readAlong(l, nil)
	if err != nil || got != content {
		t.Fatalf("%d bytes, %v; want the %d of the object", len(got), err, len(content))
	}
	w.quiet(l)
	if stalled.Hits() != 1 {
		t.Errorf("%d bodies stalled, want 1", stalled.Hits())
	}
	if n := w.fetched(l, "db/t/f"); n > int64(len(content))+1<<20 {
		t.Errorf("%d bytes came of %d\n%s", n, len(content), w)
	}
}
