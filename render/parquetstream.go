package render

import (
	"context"
	"io"
	"slices"
	"sync"
)

const (
	fetchesAtOnce  = 64       // the first pages of most tables in one round trip
	mergeGap       = 64 << 10 // bytes between two ranges that one request fetches rather than two do
	mergedMost     = 8 << 20
	wholeGroup     = 12 << 20 // of all columns: a row group that is fetched whole
	manyLeaves     = 1000     // columns, of which a row group is fetched whole
	wholeOfMany    = 48 << 20 // up to so many bytes: their own requests would never end
	firstPages     = 4 << 20  // of all columns: what the first pages are guessed to have
	firstPageMost  = 256 << 10
	firstPageLeast = 8 << 10
	aheadBudget    = 48 << 20 // of all columns: what is held and on its way
	aheadMost      = 2 << 20  // of one column, a request
	aheadLeast     = 8 << 10
)

// fetcher reads ranges of a file, some at once.
type fetcher struct {
	src   io.ReaderAt
	slots chan struct{}
	wg    sync.WaitGroup
}

// fetch is a range on its way. data and err hold when done is closed.
type fetch struct {
	off  int64
	data []byte
	err  error
	done chan struct{}
}

// piece is the part of a fetch that one column asked for.
type piece struct {
	of     *fetch
	off, n int64
}

// wanted is the range of a file that a column asks for, and where it wants the answer.
type wanted struct {
	off, n int64
	to     *stream
}

func newFetcher(src io.ReaderAt) *fetcher {
	return &fetcher{src: src, slots: make(chan struct{}, fetchesAtOnce)}
}

// start begins to read n bytes at off.
func (f *fetcher) start(ctx context.Context, off, n int64) *fetch {
	get := &fetch{off: off, done: make(chan struct{})}
	f.wg.Go(func() {
		defer close(get.done)
		select {
		case f.slots <- struct{}{}:
			defer func() { <-f.slots }()
		case <-ctx.Done():
			get.err = ctx.Err()
			return
		}
		if get.err = ctx.Err(); get.err == nil {
			get.data = make([]byte, n)
			get.err = readFull(f.src, get.data, off)
		}
	})
	return get
}

// startAll begins to read what several streams ask for. Neighbours share a request.
func (f *fetcher) startAll(ctx context.Context, asks []wanted) {
	slices.SortFunc(asks, func(a, b wanted) int { return int(min(max(a.off-b.off, -1), 1)) })
	for len(asks) > 0 {
		from, to, n := asks[0].off, asks[0].off+asks[0].n, 1
		for n < len(asks) && asks[n].off-to <= mergeGap && asks[n].off+asks[n].n-from <= mergedMost {
			to = max(to, asks[n].off+asks[n].n)
			n++
		}
		get := f.start(ctx, from, to-from)
		for _, a := range asks[:n] {
			a.to.ahead = &piece{get, a.off, a.n}
		}
		asks = asks[n:]
	}
}

// wait returns the piece's bytes.
func (p *piece) wait(ctx context.Context) ([]byte, error) {
	select {
	case <-p.of.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.of.err != nil {
		return nil, &fetchError{p.of.err}
	}
	from := p.off - p.of.off
	return p.of.data[from : from+p.n : from+p.n], nil
}

// stream is the bytes of a column chunk, in order.
type stream struct {
	f     *fetcher
	held  []byte // fetched, not taken
	ahead *piece // on its way, follows held
	asked int64  // the offset up to which bytes are held or on their way
	end   int64  // of the chunk
	size  int64  // of the next request
	most  int64
}

// left is how many bytes have not been taken.
func (s *stream) left() int64 { return int64(len(s.held)) + s.pending() + s.end - s.asked }

func (s *stream) pending() int64 {
	if s.ahead == nil {
		return 0
	}
	return s.ahead.n
}

// ask begins to fetch at least n bytes more, if there are any and none is on its way.
func (s *stream) ask(ctx context.Context, n int64) {
	if s.ahead != nil || s.asked == s.end {
		return
	}
	n = min(max(n, s.size), s.end-s.asked)
	s.ahead = &piece{s.f.start(ctx, s.asked, n), s.asked, n}
	s.asked += n
	s.size = min(2*s.size, s.most)
}

// askExactly begins to fetch n bytes, if that many are left and none is on its way.
func (s *stream) askExactly(ctx context.Context, n int64) {
	if s.ahead == nil && n <= s.end-s.asked {
		s.ahead = &piece{s.f.start(ctx, s.asked, n), s.asked, n}
		s.asked += n
	}
}

// peek returns the next n bytes, and more if they are held; fewer at the chunk's end.
func (s *stream) peek(ctx context.Context, n int64) ([]byte, error) {
	for int64(len(s.held)) < n {
		if s.ahead == nil {
			if s.asked == s.end {
				break
			}
			s.ask(ctx, n-int64(len(s.held)))
		}
		got, err := s.ahead.wait(ctx)
		if err != nil {
			return nil, err
		}
		s.ahead = nil
		if len(s.held) == 0 {
			s.held = got
		} else {
			s.held = append(s.held[:len(s.held):len(s.held)], got...)
		}
	}
	return s.held, nil
}

// take takes n bytes that were peeked at.
func (s *stream) take(n int64) []byte {
	b := s.held[:n:n]
	s.held = s.held[n:]
	return b
}

// offset is where in the file the next byte is.
func (s *stream) offset() int64 { return s.asked - s.pending() - int64(len(s.held)) }
