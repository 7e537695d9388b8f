package cache_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const kib = 1 << 10

var errStore = errors.New("the store is down")

// source is a version in memory that notes the ranges asked for.
type source struct {
	version cache.Version
	data    []byte
	// answer, if set, makes the body of the call-th fetch (from 0) instead.
	answer func(ctx context.Context, call int, want []byte) (io.ReadCloser, error)

	mu    sync.Mutex
	calls []fetched
}

type fetched struct{ off, n int64 }

func newSource(key string, size int) *source {
	s := &source{data: make([]byte, size)}
	s.version = cache.Version{Bucket: "b", Key: key, ETag: "1", Size: int64(size)}
	r := rand.NewChaCha8([32]byte{byte(size), byte(len(key))})
	_, _ = r.Read(s.data)
	return s
}

func (s *source) fetch(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	s.mu.Lock()
	call := len(s.calls)
	s.calls = append(s.calls, fetched{off, n})
	s.mu.Unlock()
	if off < 0 || n <= 0 && len(s.data) > 0 || off+n > int64(len(s.data)) {
		return nil, fmt.Errorf("asked for [%d,+%d) of %d bytes", off, n, len(s.data))
	}
	want := s.data[off : off+n]
	if s.answer != nil {
		return s.answer(ctx, call, want)
	}
	return &body{rest: want}, nil
}

func (s *source) fetches() []fetched {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]fetched(nil), s.calls...)
}

// body gives its bytes in pieces of up to 10,000, then err (io.EOF if nil). At
// each piece it waits for gate, if there is one.
type body struct {
	rest []byte
	err  error
	gate <-chan struct{}
	done <-chan struct{}
}

func (b *body) Read(p []byte) (int, error) {
	if b.gate != nil {
		select {
		case <-b.gate:
		case <-b.done:
			return 0, context.Canceled
		}
	}
	if len(b.rest) == 0 {
		if b.err == nil {
			return 0, io.EOF
		}
		return 0, b.err
	}
	n := copy(p[:min(len(p), 10_000)], b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *body) Close() error { return nil }

// smallOptions are of blocks of 64 KiB, parts of eight, a window of sixteen, and no
// version is fetched whole.
func smallOptions(b *budget.Budget) cache.Options {
	return cache.Options{Budget: b, BlockSize: 64 * kib, Part: 512 * kib, Window: 1024 * kib, Whole: -1}
}

// newCache returns a cache of small blocks with room for blocks of them.
func newCache(tb testing.TB, blocks int64) (*cache.Cache, *budget.Budget) {
	tb.Helper()
	b := budget.New(blocks * 64 * kib)
	c := cache.New(smallOptions(b))
	tb.Cleanup(func() {
		c.Close()
		if got := b.Used(); got != 0 {
			tb.Errorf("budget in use after Close: got %d bytes, want 0", got)
		}
		if s := c.Stats(); s.Bytes != 0 || s.Blocks != 0 {
			tb.Errorf("after Close: got %d bytes in %d blocks, want none", s.Bytes, s.Blocks)
		}
	})
	return c, b
}

func open(tb testing.TB, c *cache.Cache, s *source) *cache.Handle {
	tb.Helper()
	h := c.Open(s.version, s.fetch)
	tb.Cleanup(h.Close)
	return h
}

// checkRead reads n bytes at off and compares them with the source's.
func checkRead(tb testing.TB, h *cache.Handle, s *source, off, n int) {
	tb.Helper()
	p := make([]byte, n)
	got, err := h.ReadAt(context.Background(), p, int64(off))
	checkBytes(tb, s, off, p, got, err)
}

func checkBytes(tb testing.TB, s *source, off int, p []byte, n int, err error) {
	tb.Helper()
	want := s.data[min(off, len(s.data)):min(off+len(p), len(s.data))]
	wantErr := error(nil)
	if len(want) < len(p) {
		wantErr = io.EOF
	}
	if n != len(want) || !errors.Is(err, wantErr) {
		tb.Errorf("ReadAt(%d, %d): got %d, %v, want %d, %v", off, len(p), n, err, len(want), wantErr)
		return
	}
	if string(p[:n]) != string(want) {
		tb.Errorf("ReadAt(%d, %d): other bytes than the source's", off, len(p))
	}
}
