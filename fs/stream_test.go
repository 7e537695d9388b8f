package fs

import (
	"context"
	"io"
	"strings"
	"testing"
)

// givingWay is a stream that gives way after some bytes of its text.
type givingWay struct {
	io.Reader
	after int
}

func (g *givingWay) Read(p []byte) (int, error) {
	if g.after == 0 {
		return 0, ErrGaveWay
	}
	n, err := g.Reader.Read(p[:min(len(p), g.after)])
	g.after -= n
	return n, err
}

func (g *givingWay) Close() error { return nil }

// TestAReadIsWholeThoughItsStreamGivesWay: what is short looks like the end to who reads.
func TestAReadIsWholeThoughItsStreamGivesWay(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 20_000)
	h := (&lineSource{}).open()
	began := 0
	h.open = func(context.Context) (io.ReadCloser, error) {
		began++
		return &givingWay{strings.NewReader(text), began * 62_000}, nil
	}
	for _, at := range []struct{ off, size, want int }{{0, 10, 10}, {10, 150_000, 150_000}, {150_010, 150_000, 49_990}, {200_000, 10, 0}} {
		got, e := read(t, h, int64(at.off), at.size)
		if e != 0 || got != text[at.off:at.off+at.want] {
			t.Errorf("read of %d at %d: %d bytes, %v, want %d", at.size, at.off, len(got), e, at.want)
		}
	}
	if began != 4 {
		t.Errorf("begun %d times, want 4", began)
	}
	release(t, h)
}
