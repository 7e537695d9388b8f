package render

import (
	"context"
	"io"
)

// avroStream reads a file from a position to its end, by big ranges and one range ahead. Its
// methods are called by one goroutine. The first range is small, for a reader that wants
// a few rows, and each is twice the one before.
type avroStream struct {
	src      io.ReaderAt
	at, size int64  // what is read next, by the goroutine below
	buf      []byte // memory for have
	have     []byte // read, and not yet skipped
	from     int64  // where have begins
	ranges   chan avroRange
	free     chan []byte // buffers for ranges: as many as may be read at once
	quit     chan struct{}
	ended    bool
	err      error
	done     <-chan struct{} // of the context that the rows are read in
	why      func() error
}

type avroRange struct {
	b   []byte
	err error
}

const (
	avroFirstRange = 512 << 10
	avroLastRange  = 4 << 20
)

// newAvroStream starts with have, which is what lies before position at.
func newAvroStream(ctx context.Context, src io.ReaderAt, have []byte, at, size int64) *avroStream {
	return &avroStream{src: src, have: have, from: at - int64(len(have)), at: at, size: size, done: ctx.Done(), why: ctx.Err}
}

// start begins to read ahead.
func (s *avroStream) start() {
	s.ranges, s.free, s.quit = make(chan avroRange), make(chan []byte, 2), make(chan struct{})
	s.free <- nil
	s.free <- nil
	go s.run()
}

func (s *avroStream) run() {
	defer close(s.ranges)
	for n := int64(avroFirstRange); s.at < s.size; n = min(2*n, avroLastRange) {
		var b []byte
		select {
		case b = <-s.free:
		case <-s.quit:
			return
		}
		want := int(min(n, s.size-s.at))
		if cap(b) < want {
			b = make([]byte, want)
		}
		var c avroRange
		got, err := s.src.ReadAt(b[:want], s.at)
		c.b = b[:got]
		if got < want {
			c.err = readFailed(err)
		}
		s.at += int64(got)
		select {
		case s.ranges <- c:
		case <-s.quit:
			return
		}
		if c.err != nil {
			return
		}
	}
}

// close ends the reading, and waits for it.
func (s *avroStream) close() {
	if s.quit == nil {
		return
	}
	close(s.quit)
	for range s.ranges {
	}
	s.quit = nil
}

// skip passes over bytes that were peeked at.
func (s *avroStream) skip(n int) { s.have, s.from = s.have[n:], s.from+int64(n) }

// peek returns the next n bytes, or those that there are, until the next call.
func (s *avroStream) peek(n int) ([]byte, error) {
	for len(s.have) < n && !s.ended && s.err == nil {
		s.receive(n)
	}
	if len(s.have) < n {
		return s.have, s.err
	}
	return s.have[:n], nil
}

// some returns what there is, one byte or more, until the next call.
func (s *avroStream) some() ([]byte, error) {
	for len(s.have) == 0 && !s.ended && s.err == nil {
		s.receive(1)
	}
	switch {
	case len(s.have) > 0:
		return s.have, nil
	case s.err != nil:
		return nil, s.err
	}
	return nil, io.ErrUnexpectedEOF
}

// receive waits for the next range, of which a reader wants n bytes with what there is.
func (s *avroStream) receive(n int) {
	if s.quit == nil {
		s.start()
	}
	select {
	case c, more := <-s.ranges:
		if s.ended = !more; more {
			s.add(c.b, n)
			s.free <- c.b
		}
		if s.err = c.err; s.err != nil && s.why() != nil {
			s.err = s.why() // which is what the read failed for
		}
	case <-s.done:
		s.err = s.why()
	}
}

// add puts b behind what there is, of which a reader wants n bytes.
func (s *avroStream) add(b []byte, n int) {
	if len(s.have)+len(b) > cap(s.have) {
		// What else the file has bounds what a damaged block may claim.
		if n = max(len(s.have)+len(b), int(min(int64(n), s.size-s.from))+avroLastRange); n > cap(s.buf) {
			s.buf = make([]byte, n)
		}
		s.have = append(s.buf[:0], s.have...)
	}
	s.have = append(s.have, b...)
}
