package render

import (
	"context"
	"errors"
	"fmt"
	"io"

	pq "github.com/parquet-go/parquet-go/format"
)

// parquetFile is the source of a Parquet file. Pages are decoded here and not by
// parquet-go, of which only the structs of the footer and of page headers are used: so
// columns become text straight from the bytes of their pages, and no length in the file
// is believed before it is held to what there is.
type parquetFile struct {
	meta    *pq.FileMetaData // until start
	shapes  []*shape
	columns []field
	infos   []leafInfo
	count   int64

	fetch   *fetcher
	codecs  decompressor
	groups  []rowGroup
	leaves  []*leaf // those that are read
	primed  int     // row groups of which the first pages were asked for
	page    int     // bytes of a page up to which it is decoded whole
	texts   int     // bytes of texts that are made at once, of one leaf
	step    int     // values between two looks at that
	readers []columnReader
}

// rowGroup is one of the file's, with the chunks of the leaves that are read.
type rowGroup struct {
	rows   int64
	chunks []chunk // parallel to parquetFile.leaves
}

// columnReader reads one column that is shown.
type columnReader interface {
	// fill is source's.
	fill(ctx context.Context, c *cells, most int) error
}

func openParquet(_ context.Context, src io.ReaderAt, size int64) (source, error) {
	meta, odd, err := readParquet(src, size)
	if err != nil {
		return nil, err
	}
	s := schemaReader{elements: meta.Schema, odd: odd}
	f := &parquetFile{meta: meta, count: meta.NumRows, fetch: newFetcher(src)}
	if f.shapes, f.columns, err = s.columns(); err != nil {
		return nil, err
	}
	f.infos = s.leaves
	for i := range meta.RowGroups {
		if n := len(meta.RowGroups[i].Columns); n != len(f.infos) {
			return nil, &Error{Reason: fmt.Sprintf("row group %d has %d columns, the schema %d", i, n, len(f.infos)), Remedy: remedyDamaged}
		}
	}
	return f, nil
}

func (f *parquetFile) fields() []field { return f.columns }

func (f *parquetFile) rows() int64 { return f.count }

func (f *parquetFile) close() {
	f.fetch.wg.Wait()
	f.codecs.close()
	for _, l := range f.leaves {
		l.close()
	}
}

func (f *parquetFile) start(outputs []output, as style) error {
	f.readers = make([]columnReader, len(outputs))
	for i := range outputs {
		o := &outputs[i]
		if o.from < 0 {
			continue
		}
		sh, want := f.shapes[o.from], o.typ
		if want == nil {
			want = sh.typ
		}
		if sh.kids == nil {
			f.readers[i] = &flatColumn{f.newLeaf(sh, want, as)}
			continue
		}
		t, err := f.newTree(sh, want, 0)
		if err != nil {
			return err
		}
		f.readers[i] = &nestedColumn{tree: t, leaves: t.leaves, path: f.columns[o.from].name}
	}
	for i := range f.meta.RowGroups {
		if g := &f.meta.RowGroups[i]; g.NumRows != 0 {
			f.groups = append(f.groups, f.newGroup(g))
		}
	}
	f.meta = nil
	if f.page == 0 {
		f.page = max(pagesBudget/max(len(f.leaves), 1), windowLeast)
	}
	f.texts = min(max(textsBudget/max(len(f.leaves), 1), textsLeast), textsMost)
	f.step = min(f.texts/textsLikely, textsStep)
	return nil
}

// newLeaf is a leaf that is read, whose values are shown as want.
func (f *parquetFile) newLeaf(sh *shape, want *fileType, as style) *leaf {
	info := f.infos[sh.leaf]
	l := &leaf{info: info, file: f, as: putOf(info.physical, sh.typ, want, as), column: sh.leaf, at: len(f.leaves)}
	if want.within > 0 {
		l.as = func(dst, raw []byte) []byte {
			n := int32Of(raw)
			if l.unfit == nil {
				l.unfit = want.unfit(n)
			}
			return appendInt(dst, n)
		}
	}
	f.leaves = append(f.leaves, l)
	return l
}

// newGroup keeps of a row group what is read of it.
func (f *parquetFile) newGroup(g *pq.RowGroup) rowGroup {
	out := rowGroup{rows: g.NumRows, chunks: make([]chunk, len(f.leaves))}
	for i, l := range f.leaves {
		c := &g.Columns[l.column]
		m := &c.MetaData
		out.chunks[i] = chunk{off: m.DataPageOffset, data: m.DataPageOffset, size: m.TotalCompressedSize, values: m.NumValues, rows: g.NumRows, codec: m.Codec}
		if d := m.DictionaryPageOffset; d > 0 && d < m.DataPageOffset {
			out.chunks[i].off = d
		}
		switch {
		case c.CryptoMetadata.Value != nil || len(c.EncryptedColumnMetadata) > 0:
			out.chunks[i].why = "it is encrypted"
		case c.FilePath != "":
			out.chunks[i].why = "it is in another file"
		case m.Type != l.info.physical:
			out.chunks[i].why = fmt.Sprintf("a row group has it as %s, the schema as %s", m.Type, l.info.physical)
		case l.info.rep == 0 && m.NumValues != g.NumRows:
			out.chunks[i].why = fmt.Sprintf("it has %d values in a row group of %d rows", m.NumValues, g.NumRows)
		case m.NumValues < 0 || m.TotalCompressedSize < 0 || out.chunks[i].off < 0:
			out.chunks[i].why = "its sizes are negative"
		}
	}
	return out
}

// nextChunk goes to the leaf's chunk of the next row group, which there is.
func (l *leaf) nextChunk(ctx context.Context) error {
	f := l.file
	c := &f.groups[l.group].chunks[l.at]
	if c.why != "" {
		return &Error{Reason: c.why, Remedy: dropIt}
	}
	if l.next == nil {
		f.begin(ctx, l.group)
	}
	if f.primed <= l.group {
		f.primed = l.group + 1
		for _, other := range f.leaves {
			if other.group != l.group {
				continue
			}
			if err := other.prime(ctx); err != nil {
				return other.explain(err)
			}
		}
	}
	l.group++
	l.in, l.stream, l.next = c, l.next, nil
	l.left, l.begun, l.dict, l.body = c.values, 0, nil, nil
	if l.left == 0 {
		return fmt.Errorf("it has no values in a row group of %d rows", c.rows)
	}
	return nil
}

// begin begins to fetch the first bytes of the chunks of all leaves that come to the row
// group next, unless that has been done.
func (f *parquetFile) begin(ctx context.Context, group int) {
	g := &f.groups[group]
	n := int64(len(f.leaves))
	share := min(max(firstPages/n, firstPageLeast), firstPageMost)
	if whole := g.size(); whole <= wholeGroup || n >= manyLeaves && whole <= wholeOfMany {
		share = whole
	}
	var asks []wanted
	for i, l := range f.leaves {
		c := &g.chunks[i]
		if l.next != nil || l.group != group || c.why != "" {
			continue
		}
		dictionary := min(c.data-c.off, aheadMost)
		first := min(dictionary+share, c.size)
		most := min(max(aheadBudget/2/n, aheadLeast), aheadMost)
		l.next = &stream{f: f.fetch, asked: c.off + first, end: c.off + c.size, size: min(share, most), most: most}
		if first > 0 {
			asks = append(asks, wanted{c.off, first, l.next})
		}
	}
	f.fetch.startAll(ctx, asks)
}

// size is how many bytes of the row group are read.
func (g *rowGroup) size() (n int64) {
	for i := range g.chunks {
		n += min(g.chunks[i].size, wholeOfMany)
	}
	return n
}

// prime begins to fetch what lacks of the first page, and of a dictionary before it.
func (l *leaf) prime(ctx context.Context) error {
	s, f := l.next, l.file
	if s == nil || s.left() == 0 {
		return nil
	}
	held, err := s.peek(ctx, 1)
	if err != nil {
		return err
	}
	at := int64(0)
	for range 2 { // a dictionary, and values
		header, size, bad := decodeHeader(held[at:])
		if bad != nil {
			break // it is read again, with more
		}
		if l.streamedAs(header, f.groups[l.group].chunks[l.at].codec) {
			break // what is held is enough to begin
		}
		at += int64(size) + max(int64(header.CompressedPageSize), 0)
		if header.Type != pq.DictionaryPage || at >= int64(len(held)) {
			break
		}
	}
	if lacks := at - int64(len(held)); lacks > 0 {
		s.askExactly(ctx, min(lacks, max(s.most, int64(f.page))))
	}
	return nil
}

// explainColumn makes an *Error of what is wrong with a column's pages.
func explainColumn(err error, column string) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		if e.Column == "" {
			e.Column = column
		}
		return e
	}
	if f := (*fetchError)(nil); errors.As(err, &f) {
		return f
	}
	return &Error{Column: column, Reason: err.Error(), Remedy: remedyDamaged}
}

// fetchError is of the file's reader: nothing is wrong with what it read.
type fetchError struct{ err error }

func (e *fetchError) Error() string { return e.err.Error() }
func (e *fetchError) Unwrap() error { return e.err }

// flatColumn is a column of one leaf, of which each row has one entry.
type flatColumn struct{ *leaf }

func (c *flatColumn) fill(ctx context.Context, out *cells, most int) error {
	if err := c.read(ctx, out, min(most, c.file.step)); err != nil {
		return err
	}
	for out.len() < most && c.page.left > 0 && len(out.own) < c.file.texts {
		if err := c.read(ctx, out, min(most-out.len(), c.file.step)); err != nil {
			c.failed = err
			return nil //nolint:nilerr // what was read before it stands: the next read tells
		}
	}
	return nil
}

// fill has the texts of the next rows.
func (f *parquetFile) fill(ctx context.Context, i int, c *cells, most int) error {
	return f.readers[i].fill(ctx, c, most)
}
