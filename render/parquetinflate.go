package render

import (
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	pq "github.com/parquet-go/parquet-go/format"
)

// Pages that are large for their number of columns are decoded as they are shown: of 60
// columns that DuckDB wrote, whole pages have 200 MiB.

const (
	pagesBudget  = 16 << 20  // of all columns: pages that are decoded whole
	zstdLeast    = 4 << 20   // of a page: below, what zstd looks back at is no less
	windowLeast  = 16 << 10  // of decoded bytes that are held
	windowMost   = 128 << 10 // unless one value has more
	historyBytes = 64 << 10  // that Snappy and LZ4 look back at (Snappy may more, and some do)
)

// inflaters decode the pages of one leaf, one at a time.
type inflaters struct {
	zstd  *zstd.Decoder
	gzip  *gzip.Reader
	block blockReader
}

func (d *inflaters) close() {
	if d.zstd != nil {
		d.zstd.Close()
	}
}

// inflatable says that pages of the codec can be decoded bit by bit.
func inflatable(codec pq.CompressionCodec, size int) bool {
	switch codec {
	case pq.Uncompressed, pq.Snappy, pq.Lz4Raw, pq.Gzip:
		return true
	case pq.Zstd:
		return size >= zstdLeast
	}
	return false
}

// reader decodes r. It holds until the next.
func (d *inflaters) reader(codec pq.CompressionCodec, r io.Reader) (_ io.Reader, err error) {
	switch codec {
	case pq.Snappy, pq.Lz4Raw:
		d.block.reset(r, codec == pq.Snappy)
		return &d.block, nil
	case pq.Gzip:
		if d.gzip == nil {
			d.gzip, err = gzip.NewReader(r)
			return d.gzip, err
		}
		return d.gzip, d.gzip.Reset(r)
	case pq.Zstd:
		if d.zstd == nil {
			d.zstd, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
			return d.zstd, err
		}
		return d.zstd, d.zstd.Reset(r)
	}
	return r, nil
}

// blockReader decodes Snappy or LZ4 blocks bit by bit: both are literals, and copies of
// what was decoded before. It fails where a copy begins before what is held.
type blockReader struct {
	in      io.Reader
	src     []byte // read, not decoded
	from    []byte // memory of src
	snappy  bool
	headed  bool
	literal int // bytes to come
	copies  int // bytes of a copy to come, if no literal is
	back    int // from how far
	pending int // LZ4: the length of the copy after the literal, as its token has it; -1: none
	held    []byte
	given   int // of held, that were handed out
}

func (b *blockReader) reset(in io.Reader, snappy bool) {
	*b = blockReader{in: in, snappy: snappy, pending: -1, from: b.from, held: b.held[:0]}
}

// need has n bytes of src.
func (b *blockReader) need(n int) error {
	if len(b.src) >= n {
		return nil
	}
	if b.from == nil {
		b.from = make([]byte, 32<<10)
	}
	kept := copy(b.from, b.src)
	got, err := io.ReadAtLeast(b.in, b.from[kept:], n-kept)
	b.src = b.from[:kept+got]
	return err
}

func (b *blockReader) one() (byte, error) {
	if len(b.src) == 0 {
		if err := b.need(1); err != nil {
			return 0, err
		}
	}
	c := b.src[0]
	b.src = b.src[1:]
	return c, nil
}

// little is a little-endian number of n bytes, up to 4.
func (b *blockReader) little(n int) (int, error) {
	if len(b.src) >= 4 {
		v := binary.LittleEndian.Uint32(b.src) & (1<<(8*n) - 1)
		b.src = b.src[n:]
		return int(v), nil
	}
	if err := b.need(n); err != nil {
		return 0, err
	}
	var word [8]byte
	copy(word[:], b.src[:n])
	b.src = b.src[n:]
	return int(binary.LittleEndian.Uint64(word[:])), nil
}

// Read decodes some.
func (b *blockReader) Read(p []byte) (int, error) {
	for b.given == len(b.held) {
		if len(b.held) > 2*historyBytes {
			b.held = b.held[:copy(b.held, b.held[len(b.held)-historyBytes:])]
			b.given = len(b.held)
		}
		if err := b.step(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.held[b.given:])
	b.given += n
	return n, nil
}

// step decodes until there is something to hand out.
func (b *blockReader) step() error {
	const most = historyBytes
	for fresh := len(b.held); len(b.held)-fresh < most; {
		var err error
		switch {
		case b.literal > 0:
			if err = b.need(1); err == nil {
				n := min(b.literal, len(b.src), most)
				b.held, b.src = append(b.held, b.src[:n]...), b.src[n:]
				b.literal -= n
			}
		case b.copies > 0:
			n := min(b.copies, most)
			err = b.repeat(n)
			b.copies -= n
		case b.snappy:
			err = b.nextSnappy()
		default:
			err = b.nextLZ4()
		}
		if err != nil {
			if len(b.held) > fresh {
				return nil // it comes again
			}
			return err
		}
	}
	return nil
}

// repeat copies n bytes that were decoded before.
func (b *blockReader) repeat(n int) error {
	at := len(b.held) - b.back
	if at < 0 || b.back == 0 {
		return errShort
	}
	if n <= b.back {
		b.held = append(b.held, b.held[at:at+n]...)
		return nil
	}
	for n > 0 { // the copy reaches into itself
		c := min(n, len(b.held)-at)
		b.held = append(b.held, b.held[at:at+c]...)
		at, n = at+c, n-c
	}
	return nil
}

func (b *blockReader) nextSnappy() error {
	for !b.headed { // the length of all, which the page's header told
		c, err := b.one()
		if err != nil {
			return err
		}
		b.headed = c < 0x80
	}
	tag, err := b.one()
	if err != nil {
		return err
	}
	switch tag & 3 {
	case 0:
		b.literal = int(tag>>2) + 1
		if more := int(tag>>2) - 59; more > 0 {
			b.literal, err = b.little(more)
			b.literal++
		}
		return err
	case 1:
		var low byte
		low, err = b.one()
		b.copies, b.back = int(tag>>2&7)+4, int(tag>>5)<<8|int(low)
		return err
	case 2:
		b.copies = int(tag>>2) + 1
		b.back, err = b.little(2)
		return err
	}
	b.copies = int(tag>>2) + 1
	b.back, err = b.little(4)
	return err
}

func (b *blockReader) nextLZ4() (err error) {
	if b.pending < 0 {
		token, bad := b.one()
		if bad != nil {
			return bad
		}
		b.pending = int(token & 15)
		b.literal, err = b.length(int(token >> 4))
		return err
	}
	if b.back, err = b.little(2); err != nil {
		return err
	}
	b.copies, err = b.length(b.pending)
	b.copies += 4
	b.pending = -1
	return err
}

// length reads what a length of 15 is continued by.
func (b *blockReader) length(n int) (int, error) {
	if n < 15 {
		return n, nil
	}
	for n < parquetMaxPage {
		c, err := b.one()
		if err != nil {
			return 0, err
		}
		if n += int(c); c < 255 {
			return n, nil
		}
	}
	return 0, errShort
}
