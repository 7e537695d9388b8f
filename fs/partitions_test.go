package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/internal/operation"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// lineSource is a list of lines, that may break off.
type lineSource struct {
	n        int   // lines
	breakAt  int   // before this one; 0: none
	err      error // then
	streams  int   // that were begun
	running  int   // that have not ended
	produced int   // lines, of all streams
}

// line is the i-th, of a length of its own.
func line(i int) string { return fmt.Sprintf("%d:%s", i, strings.Repeat("x", i%50)) }

func (s *lineSource) lines(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		s.streams++
		s.running++
		defer func() { s.running-- }()
		buf := make([]byte, 0, 64)
		for i := 1; i <= s.n; i++ {
			if ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			if i == s.breakAt {
				yield(nil, s.err)
				return
			}
			s.produced++
			buf = append(buf[:0], line(i)...)
			if !yield(buf, nil) {
				return
			}
		}
	}
}

func (s *lineSource) whole() string {
	var b strings.Builder
	for i := 1; i <= s.n; i++ {
		b.WriteString(line(i) + "\n")
	}
	return b.String()
}

func (s *lineSource) open() *streamHandle {
	f := &FS{Config: Config{Log: slog.New(slog.DiscardHandler), RequestTimeout: 1 << 40}, operations: operation.NewIDs()}
	open := func(ctx context.Context) (io.ReadCloser, error) { return readLines(s.lines(ctx), partitionsBroke), nil }
	return &streamHandle{fs: f, path: "db/t/.lakefs/partitions.jsonl", open: open, turn: make(chan struct{}, 1)}
}

// read is one request.
func read(t *testing.T, h *streamHandle, off int64, size int) (string, syscall.Errno) {
	t.Helper()
	dest := make([]byte, size)
	r, e := h.Read(t.Context(), dest, off)
	if e != 0 {
		return "", e
	}
	got, status := r.Bytes(dest)
	if status != fuse.OK {
		t.Fatal(status)
	}
	return string(got), 0
}

func release(t *testing.T, h *streamHandle) {
	t.Helper()
	if e := h.Release(t.Context()); e != 0 {
		t.Error(e)
	}
}

func TestLinesAreReadInOneStream(t *testing.T) {
	for _, size := range []int{1, 7, 4096, 1 << 20} {
		s := &lineSource{n: 500}
		h := s.open()
		var got strings.Builder
		for {
			part, e := read(t, h, int64(got.Len()), size)
			if e != 0 {
				t.Fatal(e)
			}
			if part == "" {
				break
			}
			got.WriteString(part)
		}
		if got.String() != s.whole() || s.streams != 1 {
			t.Errorf("reads of %d: %d bytes in %d streams, want %d in one", size, got.Len(), s.streams, len(s.whole()))
		}
		if part, e := read(t, h, int64(got.Len())+1000, size); part != "" || e != 0 || s.streams != 1 {
			t.Errorf("past the end: %q, %v, %d streams", part, e, s.streams)
		}
		release(t, h)
		if s.running != 0 {
			t.Errorf("reads of %d: a stream runs on", size)
		}
	}
}

func TestLinesAtOtherOffsets(t *testing.T) {
	s := &lineSource{n: 500}
	whole := s.whole()
	h := s.open()
	for i, tt := range []struct {
		off     int64
		streams int
	}{{100, 1}, {110, 1}, {5000, 1}, {4000, 2}, {0, 3}, {int64(len(whole)) - 5, 3}, {int64(len(whole)), 3}, {7, 4}} {
		got, e := read(t, h, tt.off, 10)
		if want := whole[tt.off:min(int(tt.off)+10, len(whole))]; got != want || e != 0 || s.streams != tt.streams {
			t.Errorf("read %d, at %d: %q, %v in stream %d; want %q in %d", i, tt.off, got, e, s.streams, want, tt.streams)
		}
	}
	release(t, h)
	if s.running != 0 {
		t.Error("a stream runs on")
	}
}

// TestLinesThatBreakOff: what was read before is not the whole, and no read says so.
func TestLinesThatBreakOff(t *testing.T) {
	for cause, want := range map[error]syscall.Errno{
		objectstore.ErrUnavailable: syscall.EIO, objectstore.ErrNotExist: syscall.EIO, objectstore.ErrPermission: syscall.EACCES,
		errors.New("odd"): syscall.EIO, context.DeadlineExceeded: syscall.EIO,
	} {
		s := &lineSource{n: 10, breakAt: 3, err: cause}
		h := s.open()
		head := line(1) + "\n" + line(2) + "\n"
		if got, e := read(t, h, 0, 4096); got != head || e != 0 {
			t.Errorf("%v: the head is %q, %v", cause, got, e)
		}
		for range 2 {
			if got, e := read(t, h, int64(len(head)), 4096); got != "" || e != want {
				t.Errorf("%v: %q, %v; want %v", cause, got, e, want)
			}
		}
		if got, e := read(t, h, 5000, 10); got != "" || e != want {
			t.Errorf("%v, further on: %q, %v; want %v", cause, got, e, want)
		}
		s.breakAt = 0
		if got, e := read(t, h, 0, 4096); got != s.whole() || e != 0 {
			t.Errorf("%v, from the beginning, later: %q, %v", cause, got, e)
		}
		release(t, h)
	}
}

// TestLinesWhoseReaderIsKilled: another who shares the descriptor reads on.
func TestLinesWhoseReaderIsKilled(t *testing.T) {
	s := &lineSource{n: 100}
	h := s.open()
	if _, e := read(t, h, 0, 10); e != 0 {
		t.Fatal(e)
	}
	h.cancel() // what the watch of a dying reader does
	if _, e := read(t, h, 10, 500); e != 0 && e != syscall.EINTR {
		t.Errorf("the read that is broken off: %v", e)
	}
	if got, e := read(t, h, 10, 500); got != s.whole()[10:510] || e != 0 {
		t.Errorf("the other: %q, %v", got, e)
	}
	release(t, h)
	if s.running != 0 {
		t.Error("a stream runs on")
	}
}

// TestLinesAreNotMadeAhead: an early close costs what was read.
func TestLinesAreNotMadeAhead(t *testing.T) {
	s := &lineSource{n: 1_000_000}
	h := s.open()
	if _, e := read(t, h, 0, 4096); e != 0 || s.produced > 400 {
		t.Errorf("%v; %d lines were made for one read", e, s.produced)
	}
	release(t, h)
	if s.running != 0 || s.produced > 400 {
		t.Errorf("%d streams run on, %d lines were made", s.running, s.produced)
	}
	unread := s.open()
	release(t, unread)
	if s.streams != 1 {
		t.Error("a descriptor that nobody read asked for lines")
	}
}
