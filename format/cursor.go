package format

import "io"

// window is how much of a file is held at a time.
const window = 64 << 10

// cursor reads the bytes of a file from off up to end, one after another, through
// one window. The first error sticks: from then on every byte is 0, and err says why;
// so loops end by asking err.
type cursor struct {
	r        io.ReaderAt
	off, end int64
	what     string // is read: "the footer"
	held     []byte // of the file, from offset at
	at       int64
	err      error
}

// tail is a cursor that holds the last bytes of a file of the given size.
func tail(r io.ReaderAt, size int64) *cursor {
	n := min(size, window)
	c := &cursor{r: r, off: size - n, end: size, at: size - n, held: make([]byte, n)}
	c.err = readFull(r, c.held, c.at)
	return c
}

// head is a cursor at the beginning of a file of the given size.
func head(r io.ReaderAt, size int64) *cursor {
	return &cursor{r: r, end: size, held: make([]byte, 0, min(size, window))}
}

// section makes what the bytes [off, end) of the file are the next to be read.
func (c *cursor) section(what string, off, end int64) {
	c.what, c.off, c.end = what, off, end
}

func (c *cursor) failf(format string, args ...any) {
	if c.err == nil {
		c.err = flawf(format, args...)
	}
}

func (c *cursor) byte() byte {
	if c.err != nil {
		return 0
	}
	if c.off >= c.end {
		c.failf("%s is not whole: it goes on after its last byte, %d", c.what, c.end-1)
		return 0
	}
	if c.off < c.at || c.off >= c.at+int64(len(c.held)) {
		c.held, c.at = c.held[:min(int64(cap(c.held)), c.end-c.off)], c.off
		if c.err = readFull(c.r, c.held, c.at); c.err != nil {
			return 0
		}
	}
	b := c.held[c.off-c.at]
	c.off++
	return b
}

// bytes fills p.
func (c *cursor) bytes(p []byte) {
	for i := range p {
		p[i] = c.byte()
	}
}

// skip leaves n bytes out, unread.
func (c *cursor) skip(n uint64) {
	if c.err != nil {
		return
	}
	if n > uint64(c.end-c.off) {
		c.failf("%s is damaged: a value of %d bytes at byte %d, where %d are left", c.what, n, c.off, c.end-c.off)
		return
	}
	c.off += int64(n)
}

// uvarint reads a base 128 number, as Thrift, Protocol Buffers and Avro have it.
func (c *cursor) uvarint() (n uint64) {
	at := c.off
	for shift := 0; c.err == nil; shift += 7 {
		b := c.byte()
		if shift == 63 && b > 1 {
			c.failf("%s is damaged: a number of more than 64 bits at byte %d", c.what, at)
			break
		}
		n |= uint64(b&0x7f) << shift
		if b < 0x80 && c.err == nil {
			return n
		}
	}
	return 0
}

// varint reads a signed number (zigzag).
func (c *cursor) varint() int64 {
	n := c.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}
