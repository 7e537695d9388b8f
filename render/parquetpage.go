package render

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	pq "github.com/parquet-go/parquet-go/format"
)

const (
	parquetMaxHeader = 16 << 20  // of a page; it holds statistics, which may be long
	parquetMaxPage   = 128 << 20 // decoded or not: DuckDB's have up to 100 MB
	textsMost        = 1 << 20   // bytes of texts that are made at once, of one column
	textsBudget      = 32 << 20  // of all
	textsLeast       = 4 << 10   // of one column, however many there are
	textsLikely      = 1 << 10   // of one value, that few have more than
	textsStep        = 256       // values between two looks at that, at most
)

// chunk is a leaf's part of a row group.
type chunk struct {
	off, size int64
	data      int64 // offset of the first data page, for what the dictionary has
	values    int64
	rows      int64
	codec     pq.CompressionCodec
	why       string // why it cannot be read
}

// leaf reads the values of one leaf of the schema, of one row group after the other.
type leaf struct {
	info   leafInfo
	file   *parquetFile
	as     put
	column int // among the schema's leaves
	at     int // among the file's that are read

	group  int     // the next row group
	in     *chunk  // at hand; nil before the first
	stream *stream // of it
	next   *stream // of the next row group's, begun ahead
	left   int64   // entries of the chunk that are in pages to come
	begun  int64   // rows of the chunk that were begun

	page struct {
		left       int // entries
		reps, defs hybrid
		hasReps    bool
		hasDefs    bool
		values     values
	}
	dict *dictionary
	buf  []byte    // of decoded pages
	body *pageBody // of the page at hand, if that is decoded bit by bit
	inflaters

	unfit  error // of the value that as was called with last, or before
	failed error // what the next read answers

	reps, defs []int32 // of the entries that read returned; nil where all are 0, or all the highest
	scratch    [2][]int32
	index      []int32
}

// read appends the texts of the next entries to c, 1 to most of one page: an entry is a
// value, or the NULL or the empty list in its place. Their levels are in reps and defs
// until the next read. io.EOF when the file has no more.
func (l *leaf) read(ctx context.Context, c *cells, most int) error {
	if l.failed != nil {
		return l.failed
	}
	for l.page.left == 0 {
		if l.left == 0 && l.group == len(l.file.groups) {
			return io.EOF
		}
		if err := l.nextPage(ctx); err != nil {
			return l.explain(err)
		}
	}
	if err := l.readPage(c, min(most, l.page.left)); err != nil {
		return l.explain(err)
	}
	if l.next == nil && l.begun >= l.in.rows/2 && l.stream.asked == l.stream.end && l.group < len(l.file.groups) {
		l.file.begin(ctx, l.group)
	}
	return nil
}

// over says that the entries of the chunk at hand were all read.
func (l *leaf) over() bool { return l.page.left == 0 && l.left == 0 }

// explain says which column an error is of. None is io.EOF to callers: a page that a
// decoder finds to end early is no end of the file.
func (l *leaf) explain(err error) error {
	return explainColumn(err, l.info.path)
}

// readPage reads n entries of the page at hand.
func (l *leaf) readPage(c *cells, n int) error {
	l.reps, l.defs = nil, nil
	if l.page.hasReps {
		l.reps = grow(&l.scratch[0], n)
		if err := l.page.reps.read(l.reps); err != nil {
			return err
		}
	}
	if l.page.hasDefs {
		l.defs = grow(&l.scratch[1], n)
		if err := l.page.defs.read(l.defs); err != nil {
			return err
		}
	}
	if err := l.checkLevels(n); err != nil {
		return err
	}
	l.page.left -= n
	if l.page.values.how == codingDictionary {
		return l.readIndexes(c, n)
	}
	return l.readValues(c, n)
}

// checkLevels counts the rows that begin in n entries.
func (l *leaf) checkLevels(n int) error {
	rows := int64(n)
	for _, r := range l.reps {
		if r > 0 {
			rows--
		}
		if int(r) > l.info.rep {
			return fmt.Errorf("a repetition level of %d where %d is the highest", r, l.info.rep)
		}
	}
	for _, d := range l.defs {
		if int(d) > l.info.def {
			return fmt.Errorf("a definition level of %d where %d is the highest", d, l.info.def)
		}
	}
	if l.begun == 0 && n > 0 && l.reps != nil && l.reps[0] != 0 {
		return errors.New("a row group begins in the middle of a row")
	}
	l.begun += rows
	if l.begun > l.in.rows || l.left == 0 && l.page.left == n && l.begun != l.in.rows {
		return fmt.Errorf("%d rows in a row group of %d", l.begun, l.in.rows)
	}
	return nil
}

// readValues makes the texts of n entries.
func (l *leaf) readValues(c *cells, n int) error {
	highest, v := int32(l.info.def), &l.page.values
	for i := range n {
		if l.defs != nil && l.defs[i] != highest {
			c.null()
			continue
		}
		raw, err := v.next()
		if err != nil {
			return err
		}
		start := len(c.own)
		c.own = l.as(c.own, raw)
		if l.unfit != nil {
			return l.stop(c, i)
		}
		c.end(start)
	}
	c.done()
	return nil
}

// stop ends the column before entry i of those that are being read: the ones before it
// stand.
func (l *leaf) stop(c *cells, i int) error {
	if i == 0 {
		return l.unfit
	}
	if c.text = c.own; l.page.values.how == codingDictionary && l.dict.at != nil {
		c.text = l.dict.text
	}
	l.failed = l.explain(l.unfit)
	if l.reps != nil {
		l.reps = l.reps[:i]
	}
	if l.defs != nil {
		l.defs = l.defs[:i]
	}
	return nil
}

// readIndexes finds the texts of n entries in the dictionary.
func (l *leaf) readIndexes(c *cells, n int) error { //nolint:gocognit // one loop over the values
	if l.dict == nil {
		return errors.New("a page of indexes without a dictionary")
	}
	highest, present := int32(l.info.def), n
	if l.defs != nil {
		present = 0
		for _, d := range l.defs {
			if d == highest {
				present++
			}
		}
	}
	index := grow(&l.index, present)
	if err := l.page.values.index.read(index); err != nil {
		return err
	}
	for i := range n {
		if l.defs != nil && l.defs[i] != highest {
			c.null()
			continue
		}
		at := uint32(index[0])
		index = index[1:]
		if uint64(at) >= uint64(l.dict.size) {
			return fmt.Errorf("value %d of a dictionary of %d", at, l.dict.size)
		}
		if l.dict.at == nil {
			start := len(c.own)
			c.own = l.as(c.own, l.dict.value(int(at)))
			if l.unfit != nil {
				return l.stop(c, i)
			}
			c.end(start)
			continue
		}
		text := l.dict.at[at]
		if text.n == 0 {
			text = l.dict.make(int(at), l.as)
		}
		if l.unfit != nil {
			return l.stop(c, i)
		}
		c.at = append(c.at, text)
	}
	if c.text = l.dict.text; l.dict.at == nil {
		c.done()
	}
	return nil
}

// grow returns n elements in *s.
func grow(s *[]int32, n int) []int32 {
	if cap(*s) < n {
		*s = make([]int32, max(n, textsStep))
	}
	return (*s)[:n]
}

// nextPage begins the next page that has entries.
func (l *leaf) nextPage(ctx context.Context) error {
	if l.left == 0 {
		if err := l.nextChunk(ctx); err != nil {
			return err
		}
	}
	if l.begun > 0 {
		l.stream.ask(ctx, 0)
	}
	if err := l.skipRest(ctx); err != nil {
		return err
	}
	header, size, err := l.header(ctx)
	if err != nil {
		return err
	}
	l.stream.take(int64(size))
	streamed := l.streamed(header)
	if !streamed {
		if _, err = l.stream.peek(ctx, int64(header.CompressedPageSize)); err != nil {
			return err
		}
	}
	if l.begun > 0 {
		l.stream.ask(ctx, 0)
	}
	if streamed {
		return l.beginStreamed(ctx, header)
	}
	return l.beginPage(header, l.stream.take(int64(header.CompressedPageSize)))
}

// header reads the header of the next page, and says of how many bytes it is. The page
// has the chunk's bytes to be in.
func (l *leaf) header(ctx context.Context) (*pq.PageHeader, int, error) {
	for want := int64(64); ; want *= 4 {
		held, err := l.stream.peek(ctx, want)
		if err != nil {
			return nil, 0, err
		}
		header, size, err := decodeHeader(held)
		if err != nil {
			if int64(len(held)) < want || want > parquetMaxHeader {
				return nil, 0, fmt.Errorf("the header of a page cannot be read: %w", err)
			}
			continue
		}
		encoded, decoded := int64(header.CompressedPageSize), int64(header.UncompressedPageSize)
		if encoded < 0 || decoded < 0 {
			return nil, 0, fmt.Errorf("a page of %d bytes, %d decoded", encoded, decoded)
		}
		if encoded > l.stream.left()-int64(size) {
			return nil, 0, fmt.Errorf("a page of %d bytes where %d are", encoded, l.stream.left()-int64(size))
		}
		if most := max(encoded, decoded); most > parquetMaxPage {
			return nil, 0, &Error{Reason: fmt.Sprintf("a page of %d bytes; up to %d are read", most, parquetMaxPage)}
		}
		return header, size, nil
	}
}

// decodeHeader decodes the header that held begins with.
func decodeHeader(held []byte) (*pq.PageHeader, int, error) {
	var compact thrift.CompactProtocol
	header := new(pq.PageHeader)
	r := compact.NewReaderFromBytes(held)
	err := thrift.NewDecoder(r).Decode(header)
	return header, r.BytesRead(), err
}

// beginPage begins a page of any kind.
func (l *leaf) beginPage(header *pq.PageHeader, body []byte) error {
	sum := checksum{want: uint32(header.CRC)} //nolint:gosec // its bits
	sum.add(body)
	if err := sum.check(); err != nil {
		return err
	}
	switch {
	case header.Type == pq.DictionaryPage && header.DictionaryPageHeader.Valid:
		return l.beginDictionary(header, body)
	case header.Type == pq.DataPage && header.DataPageHeader.Valid:
		return l.beginV1(header, body)
	case header.Type == pq.DataPageV2 && header.DataPageHeaderV2.Valid:
		return l.beginV2(header, body)
	case header.Type == pq.IndexPage:
		return nil
	}
	return fmt.Errorf("a page of a kind (%d) that is not known", header.Type)
}

// decode decodes the bytes of a page, into memory that the next page takes.
func (l *leaf) decode(body []byte, size int) ([]byte, error) {
	if l.in.codec == pq.Uncompressed {
		return body, nil
	}
	if cap(l.buf) < size {
		l.buf = nil // before more is taken
		l.buf = make([]byte, size, size+size/8)
	}
	if size == 0 {
		return nil, nil
	}
	return l.buf[:size], l.file.codecs.decode(l.in.codec, l.buf[:size], body)
}

func (l *leaf) beginDictionary(header *pq.PageHeader, body []byte) error {
	h := &header.DictionaryPageHeader.V
	if l.dict != nil || l.begun > 0 {
		return errors.New("a second dictionary, or one after its values")
	}
	if h.Encoding != pq.Plain && h.Encoding != plainDictionary {
		return fmt.Errorf("a dictionary in encoding %s", h.Encoding)
	}
	data, err := l.decode(body, int(header.UncompressedPageSize))
	if err != nil {
		return err
	}
	l.buf = nil // it is the dictionary's
	if l.dict, err = newDictionary(data, max(int(h.NumValues), 0), &l.info, l.in.rows); err != nil {
		return err
	}
	return nil
}

// entries sets how many entries a page has.
func (l *leaf) entries(n int32) error {
	if n < 0 || int64(n) > l.left {
		return fmt.Errorf("a page of %d values where %d are", n, l.left)
	}
	l.left -= int64(n)
	l.page.left = int(n)
	return nil
}

func (l *leaf) beginV1(header *pq.PageHeader, body []byte) error {
	h := &header.DataPageHeader.V
	data, err := l.decode(body, int(header.UncompressedPageSize))
	if err != nil {
		return err
	}
	if data, l.page.hasReps, err = levelsV1(&l.page.reps, data, l.info.rep, h.RepetitionLevelEncoding, h.NumValues); err != nil {
		return err
	}
	if data, l.page.hasDefs, err = levelsV1(&l.page.defs, data, l.info.def, h.DefinitionLevelEncoding, h.NumValues); err != nil {
		return err
	}
	if err = l.entries(h.NumValues); err != nil {
		return err
	}
	return l.page.values.reset(h.Encoding, data, &l.info, int(h.NumValues))
}

// levelsV1 begins levels of up to highest, which data begins with, and returns the rest.
func levelsV1(h *hybrid, data []byte, highest int, encoding pq.Encoding, count int32) ([]byte, bool, error) {
	if highest == 0 {
		return data, false, nil
	}
	width := uint(bits.Len(uint(highest)))
	if encoding == pq.BitPacked {
		return levelsPacked(h, data, width, count)
	}
	if encoding != pq.RLE {
		return nil, false, fmt.Errorf("levels in encoding %s", encoding)
	}
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
		return nil, false, errShort
	}
	n := binary.LittleEndian.Uint32(data)
	h.reset(data[4:4+n], width)
	return data[4+n:], true, nil
}

// levelsPacked begins levels as the oldest writers have them: bits from the highest of a
// byte down, without a length. They are turned into one run of the newer kind.
func levelsPacked(h *hybrid, data []byte, width uint, count int32) ([]byte, bool, error) {
	size := (int64(count)*int64(width) + 7) / 8
	if count < 0 || size > int64(len(data)) {
		return nil, false, errShort
	}
	packed := make([]byte, size)
	for i := range int(count) {
		v := 0
		for bit := range width {
			at := uint(i)*width + bit
			v = v<<1 | int(data[at>>3]>>(7-at&7)&1)
		}
		for bit := range width {
			at := uint(i)*width + bit
			packed[at>>3] |= byte(v>>bit&1) << (at & 7)
		}
	}
	*h = hybrid{width: width, run: int(count), packed: packed}
	return data[size:], true, nil
}

func (l *leaf) beginV2(header *pq.PageHeader, body []byte) error {
	h := &header.DataPageHeaderV2.V
	reps, defs := int64(h.RepetitionLevelsByteLength), int64(h.DefinitionLevelsByteLength)
	size := int64(header.UncompressedPageSize) - reps - defs
	if reps < 0 || defs < 0 || size < 0 || reps+defs > int64(len(body)) {
		return errShort
	}
	data := body[reps+defs:]
	if h.IsCompressed.V || !h.IsCompressed.Valid {
		var err error
		if data, err = l.decode(data, int(size)); err != nil {
			return err
		}
	}
	l.page.hasReps, l.page.hasDefs = l.info.rep > 0, l.info.def > 0
	l.page.reps.reset(body[:reps], uint(bits.Len(uint(l.info.rep))))
	l.page.defs.reset(body[reps:reps+defs], uint(bits.Len(uint(l.info.def))))
	if err := l.entries(h.NumValues); err != nil {
		return err
	}
	return l.page.values.reset(h.Encoding, data, &l.info, int(h.NumValues))
}
