package render

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/bits"

	pq "github.com/parquet-go/parquet-go/format"
)

// pageBody is the encoded bytes of a page, read as they are wanted.
type pageBody struct {
	read func(p []byte) (int, error)
	left int64 // bytes not read
	sum  checksum
}

// Read reads on.
func (b *pageBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.sum.add(p[:n])
	if b.left == 0 {
		if bad := b.sum.check(); bad != nil {
			return 0, bad // who has all it wants looks at no error beside it
		}
	}
	return n, err
}

// checksum is that of a page's bytes, as they are read.
type checksum struct {
	want, got uint32 // want 0: the writer made none
}

var errChecksum = errors.New("a page's checksum is not that of its bytes")

func (c *checksum) add(p []byte) {
	if c.want != 0 {
		c.got = crc32.Update(c.got, crc32.IEEETable, p)
	}
}

func (c *checksum) check() error {
	if c.want != c.got {
		return errChecksum
	}
	return nil
}

// streamed says that a page is decoded as its values are shown.
func (l *leaf) streamed(header *pq.PageHeader) bool { return l.streamedAs(header, l.in.codec) }

func (l *leaf) streamedAs(header *pq.PageHeader, codec pq.CompressionCodec) bool {
	size := int(header.UncompressedPageSize)
	if size <= l.file.page || !inflatable(codec, size) {
		return false
	}
	switch {
	case header.Type == pq.DataPage && header.DataPageHeader.Valid:
		h := &header.DataPageHeader.V
		return h.Encoding == pq.Plain && (l.info.rep == 0 || h.RepetitionLevelEncoding == pq.RLE) && (l.info.def == 0 || h.DefinitionLevelEncoding == pq.RLE)
	case header.Type == pq.DataPageV2 && header.DataPageHeaderV2.Valid:
		return header.DataPageHeaderV2.V.Encoding == pq.Plain
	}
	return false
}

// bodyOf reads a page that the stream is at.
func (l *leaf) bodyOf(ctx context.Context, size int64) *pageBody {
	s := l.stream
	return &pageBody{left: size, read: func(p []byte) (int, error) {
		held, err := s.peek(ctx, 1)
		if err != nil {
			return 0, err
		}
		if len(held) == 0 {
			return 0, io.ErrUnexpectedEOF
		}
		n := copy(p, held)
		s.take(int64(n))
		if 2*int64(len(s.held)) < s.size { // and not at once: the first rows may be all that is wanted
			s.ask(ctx, 0)
		}
		return n, nil
	}}
}

// skipRest goes past what was not wanted of the page at hand.
func (l *leaf) skipRest(ctx context.Context) error {
	if l.body == nil {
		return nil
	}
	for l.body.left > 0 {
		held, err := l.stream.peek(ctx, 1)
		if err != nil {
			return err
		}
		if len(held) == 0 {
			return io.ErrUnexpectedEOF
		}
		n := min(int64(len(held)), l.body.left)
		l.stream.take(n)
		l.body.left -= n
	}
	l.body = nil
	return nil
}

// beginStreamed begins a page of values in PLAIN, of which levels are decoded at once and
// values as they are wanted.
func (l *leaf) beginStreamed(ctx context.Context, header *pq.PageHeader) error {
	size, offset := int64(header.CompressedPageSize), l.stream.offset()
	l.buf = nil
	l.body = l.bodyOf(ctx, size)
	l.body.sum.want = uint32(header.CRC) //nolint:gosec // its bits
	var count int32
	var decoded io.Reader
	var left int
	var err error
	if header.Type == pq.DataPage {
		count = header.DataPageHeader.V.NumValues
		decoded, left, err = l.levelsOfV1(header)
	} else {
		count = header.DataPageHeaderV2.V.NumValues
		decoded, left, err = l.levelsOfV2(header)
	}
	if err != nil {
		return err
	}
	if err = l.entries(count); err != nil {
		return err
	}
	v := &l.page.values
	if err = v.reset(pq.Plain, nil, &l.info, int(count)); err != nil {
		return err
	}
	start := left
	v.more, v.left, v.done = decoded, left, 0
	v.again = func(done int) ([]byte, error) {
		get := &piece{l.file.fetch.start(ctx, offset, size), offset, size}
		body, err := get.wait(ctx)
		if err != nil {
			return nil, err
		}
		data, err := l.decodeAll(header, body)
		if err != nil || len(data) < start {
			return nil, err
		}
		return data[len(data)-start+done:], nil
	}
	return nil
}

// decodeAll decodes the values of a page, with levels before them if those are encoded.
func (l *leaf) decodeAll(header *pq.PageHeader, body []byte) ([]byte, error) {
	size := int(header.UncompressedPageSize)
	if header.Type == pq.DataPageV2 {
		h := &header.DataPageHeaderV2.V
		levels := int(h.RepetitionLevelsByteLength) + int(h.DefinitionLevelsByteLength)
		if body = body[levels:]; h.IsCompressed.Valid && !h.IsCompressed.V {
			return body, nil
		}
		size -= levels
	}
	return l.decode(body, size)
}

// levelsOfV1 reads levels, and returns what follows them and its length.
func (l *leaf) levelsOfV1(header *pq.PageHeader) (io.Reader, int, error) {
	decoded, err := l.reader(l.in.codec, l.body)
	if err != nil {
		return nil, 0, err
	}
	left := int(header.UncompressedPageSize)
	level := func(h *hybrid, highest int) error {
		if highest == 0 {
			return nil
		}
		var head [4]byte
		if _, bad := io.ReadFull(decoded, head[:]); bad != nil {
			return bad
		}
		left -= len(head)
		n := binary.LittleEndian.Uint32(head[:])
		if int64(n) > int64(left) {
			return errShort
		}
		left -= int(n)
		data := make([]byte, n)
		h.reset(data, uint(bits.Len(uint(highest))))
		_, bad := io.ReadFull(decoded, data)
		return bad
	}
	l.page.hasReps, l.page.hasDefs = l.info.rep > 0, l.info.def > 0
	if err = level(&l.page.reps, l.info.rep); err == nil {
		err = level(&l.page.defs, l.info.def)
	}
	return decoded, left, err
}

// levelsOfV2 is levelsOfV1 of the newer kind of page.
func (l *leaf) levelsOfV2(header *pq.PageHeader) (io.Reader, int, error) {
	h := &header.DataPageHeaderV2.V
	reps, defs := int64(h.RepetitionLevelsByteLength), int64(h.DefinitionLevelsByteLength)
	left := int64(header.UncompressedPageSize) - reps - defs
	if reps < 0 || defs < 0 || left < 0 || reps+defs > l.body.left {
		return nil, 0, errShort
	}
	levels := make([]byte, reps+defs)
	if _, err := io.ReadFull(l.body, levels); err != nil {
		return nil, 0, err
	}
	l.page.hasReps, l.page.hasDefs = l.info.rep > 0, l.info.def > 0
	l.page.reps.reset(levels[:reps], uint(bits.Len(uint(l.info.rep))))
	l.page.defs.reset(levels[reps:], uint(bits.Len(uint(l.info.def))))
	if h.IsCompressed.Valid && !h.IsCompressed.V {
		return l.body, int(min(left, l.body.left)), nil
	}
	decoded, err := l.reader(l.in.codec, l.body)
	return decoded, int(left), err
}
