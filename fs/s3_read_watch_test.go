package fs_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What tests of reading look at: requests from their beginning to their end, the
// daemon's counts and memory; and objects of any size that take no room.

// traffic watches the requests at the proxy.
type traffic struct {
	mu  sync.Mutex
	all []*answered // in the order they arrived
}

// answered is one request and its answer.
type answered struct {
	op, key, ranged string
	from            string // the client's address: one a connection
	begin, head     time.Time
	open            bool  // the end of the answer's body has not come yet
	bytes           int64 // of that body, so far
	status          int
}

// watch watches all requests from now on. Faults that are added later are seen as
// the daemon sees them.
func watch(l *mounttest.Lake) *traffic {
	w := new(traffic)
	l.Proxy.Add(faulty.Rule{Fault: faulty.Func(func(x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
		e := w.begin(x)
		resp, err := next()
		w.mu.Lock()
		defer w.mu.Unlock()
		e.head = time.Now()
		if err != nil {
			e.open = false
			return nil, err
		}
		e.status = resp.StatusCode
		resp.Body = &watchedBody{ReadCloser: resp.Body, w: w, e: e}
		return resp, nil
	})})
	return w
}

func (w *traffic) begin(x *faulty.Exchange) *answered {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := &answered{op: x.Request.Op, key: x.Request.Key, ranged: x.Request.Range, from: x.HTTP.RemoteAddr, begin: time.Now(), open: true}
	w.all = append(w.all, e)
	return e
}

// watchedBody notes what is read of an answer.
type watchedBody struct {
	io.ReadCloser
	w *traffic
	e *answered
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.e.bytes += int64(n)
	if err != nil {
		b.e.open = false
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.w.mu.Lock()
	b.e.open = false
	b.w.mu.Unlock()
	return b.ReadCloser.Close()
}

// gets are the GETs so far of a name.
func (w *traffic) gets(l *mounttest.Lake, name string) []answered {
	w.mu.Lock()
	defer w.mu.Unlock()
	var gets []answered
	for _, e := range w.all {
		if e.op == "GetObject" && e.key == l.Key(name) {
			gets = append(gets, *e)
		}
	}
	return gets
}

// underWay is how many requests have not ended.
func (w *traffic) underWay() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, e := range w.all {
		if e.open {
			n++
		}
	}
	return n
}

// quiet waits until no request is under way, for the mount's own reading ahead goes
// on after its readers.
func (w *traffic) quiet(l *mounttest.Lake) {
	l.Eventually("no request is under way", time.Minute, func() bool { return w.underWay() == 0 })
}

// trips is how many round trips were made one after the other up to a moment: the
// most requests of which each began when the one before was answered.
func (w *traffic) trips(until time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	var done []*answered
	for _, e := range w.all {
		if !e.head.IsZero() && !e.head.After(until) {
			done = append(done, e)
		}
	}
	slices.SortFunc(done, func(a, b *answered) int { return a.head.Compare(b.head) })
	n := 0
	var last time.Time
	for _, e := range done { // the one that is answered first leaves most room
		if !e.begin.Before(last) {
			n++
			last = e.head
		}
	}
	return n
}

// fetched are the bytes of GETs of a name.
func (w *traffic) fetched(l *mounttest.Lake, name string) (n int64) {
	for _, g := range w.gets(l, name) {
		n += g.bytes
	}
	return n
}

func (w *traffic) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, e := range w.all {
		fmt.Fprintf(&b, "%s %s %s: %d, %d bytes\n", e.op, e.key, e.ranged, e.status, e.bytes)
	}
	return b.String()
}

// putSparse makes an object of a size, of zeros but for pieces by their offset,
// that takes no more room than these. It must not have been looked at yet.
func putSparse(t *testing.T, l *mounttest.Lake, name string, size int64, pieces map[int64]string) {
	t.Helper()
	l.PutStored(name, name)
	f, err := os.OpenFile(l.Window(name), os.O_RDWR|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Truncate(size)
	for off, piece := range pieces {
		_, werr := f.WriteAt([]byte(piece), off)
		err = errors.Join(err, werr)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// statistic is the value of one series of the daemon's own counts.
func statistic(t *testing.T, l *mounttest.Lake, series string) int64 {
	t.Helper()
	text, err := l.ReadFile(".lakefs/stats")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut("\n"+text, "\n"+series+" ")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(line, 64)
	if !found || err != nil {
		t.Fatalf("no %s in the stats: %v", series, err)
	}
	return int64(n)
}

// wantPeak asserts that the daemon never had more memory than so many MiB. One
// that looks for data races takes several times that.
func wantPeak(t *testing.T, l *mounttest.Lake, most int) {
	t.Helper()
	got := peak(t, l)
	t.Logf("the daemon had %d MiB at most", got)
	built, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(built.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return
	}
	if got > most {
		t.Errorf("the daemon had %d MiB, want %d at most", got, most)
	}
}
