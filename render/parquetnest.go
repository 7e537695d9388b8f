package render

import (
	"context"
	"errors"
	"fmt"
	"io"
)

const mostOfARow = 64 << 20 // bytes, of one nested column

// nestedColumn is a column of several leaves, or of one with lists around it, shown as
// JSON.
type nestedColumn struct {
	tree   *tree
	leaves []*cursor
	path   string
	err    error // of the row at hand
}

// tree puts the values of leaves together.
type tree struct {
	shape  *shape
	in     int       // the repetition level of what it is in: entries above it belong to the same value
	names  [][]byte  // of a record: `"name":`, after a comma but for the first
	kids   []*tree   // of a record: in the order that they are shown; nil: NULL
	leaves []*cursor // below it, at least one
	keyed  bool      // of a mapping: keys are strings, so it is an object
}

// cursor is a leaf with the entries that were read and not shown.
type cursor struct {
	*leaf
	texts cells
	pos   int
	ended bool
}

// newTree is of a shape shown as want, which is the file's type or one that conform made
// of it.
func (f *parquetFile) newTree(sh *shape, want *fileType, in int) (*tree, error) {
	t := &tree{shape: sh, in: in}
	if sh.kids == nil {
		t.leaves = []*cursor{{leaf: f.newLeaf(sh, want, asJSON)}}
		return t, nil
	}
	if sh.typ.kind != record {
		in = sh.rep
	}
	for i := range want.fields {
		from := i
		if sh.typ.kind == record {
			from = want.fields[i].from
			name := appendJSONString([]byte{','}, []byte(want.fields[i].name))
			t.names = append(t.names, append(name, ':'))
		}
		if from < 0 {
			t.kids = append(t.kids, nil)
			continue
		}
		if from >= len(sh.kids) {
			return nil, errors.New("a table's type is no shape of the file's")
		}
		kid, err := f.newTree(sh.kids[from], want.fields[i].typ, in)
		if err != nil {
			return nil, err
		}
		t.kids = append(t.kids, kid)
		t.leaves = append(t.leaves, kid.leaves...)
	}
	t.keyed = sh.typ.kind == mapping && want.fields[0].typ.isText()
	if len(t.leaves) == 0 { // one tells whether the record is there
		first := sh
		for first.kids != nil {
			first = first.kids[0]
		}
		t.leaves = []*cursor{{leaf: f.newLeaf(first, first.typ, asJSON)}}
	}
	return t, nil
}

// isText says that the values are strings as JSON shows them, as they are in the file.
func (t *fileType) isText() bool { return t.kind == text || t.kind == octets && t.asText }

func (c *nestedColumn) fill(ctx context.Context, out *cells, most int) error {
	for out.len() < most && len(out.own) < c.leaves[0].file.texts {
		first := c.leaves[0]
		if !first.more(ctx, c) {
			if first.ended && c.err == nil && out.len() == 0 {
				return c.end(ctx)
			}
			break
		}
		start := len(out.own)
		out.own = c.row(ctx, out.own)
		if c.err != nil {
			break
		}
		if string(out.own[start:]) == "null" {
			out.own = out.own[:start]
		}
		out.end(start)
		if first.pos == len(first.texts.at) && !first.inRow() {
			break // the row is whole; what follows may have to be fetched
		}
	}
	out.done()
	if c.err != nil && out.len() == 0 {
		return explainColumn(c.err, c.path)
	}
	return nil
}

// end is at the file's end, where all leaves must be.
func (c *nestedColumn) end(ctx context.Context) error {
	for _, u := range c.leaves {
		if u.more(ctx, c) {
			return c.disagree(u)
		}
		if c.err != nil {
			return explainColumn(c.err, c.path)
		}
	}
	return io.EOF
}

func (c *nestedColumn) disagree(u *cursor) error {
	return &Error{Column: u.info.path, Reason: "its lists are of other lengths than those beside it", Remedy: remedyDamaged}
}

// row appends one row's value. All leaves must be at the beginning of one.
func (c *nestedColumn) row(ctx context.Context, dst []byte) []byte {
	for _, u := range c.leaves {
		switch {
		case !u.more(ctx, c):
			c.fail(errShort)
			return dst
		case u.rep() != 0:
			c.fail(c.disagree(u))
			return dst
		}
	}
	start := len(dst)
	return c.write(ctx, c.tree, dst, start)
}

func (c *nestedColumn) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// write appends the value of t that the leaves are at; the row's begins at start.
func (c *nestedColumn) write(ctx context.Context, t *tree, dst []byte, start int) []byte {
	first := t.leaves[0]
	if c.err != nil || !first.more(ctx, c) {
		c.fail(errShort)
		return dst
	}
	if len(dst)-start > mostOfARow {
		c.fail(&Error{Reason: fmt.Sprintf("a row of more than %d bytes", mostOfARow)})
		return dst
	}
	if t.shape.kids == nil {
		return first.take(dst)
	}
	if int(first.def()) < t.shape.def {
		c.skip(ctx, t)
		return append(dst, "null"...)
	}
	switch t.shape.typ.kind {
	case record:
		return c.writeRecord(ctx, t, dst, start)
	case mapping:
		if t.keyed {
			return c.entries(ctx, t, dst, start, '{', '}')
		}
	}
	return c.entries(ctx, t, dst, start, '[', ']')
}

// skip goes past the value of t in all leaves below it.
func (c *nestedColumn) skip(ctx context.Context, t *tree) {
	for _, u := range t.leaves {
		if !u.more(ctx, c) {
			c.fail(errShort)
			return
		}
		u.pos++
		for u.follows(ctx, c) && int(u.rep()) > t.in {
			u.pos++
		}
	}
}

func (c *nestedColumn) writeRecord(ctx context.Context, t *tree, dst []byte, start int) []byte {
	dst = append(dst, '{')
	shown := false
	for i, kid := range t.kids {
		name := t.names[i]
		if i == 0 {
			name = name[1:]
		}
		dst = append(dst, name...)
		if kid == nil {
			dst = append(dst, "null"...)
			continue
		}
		shown = true
		dst = c.write(ctx, kid, dst, start)
	}
	if !shown {
		c.skip(ctx, t)
	}
	return append(dst, '}')
}

// entries appends those of a list or map.
func (c *nestedColumn) entries(ctx context.Context, t *tree, dst []byte, start int, open, end byte) []byte {
	dst = append(dst, open)
	first := t.leaves[0]
	if int(first.def()) < t.shape.some {
		c.skip(ctx, t)
		return append(dst, end)
	}
	for n := 0; ; n++ {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = c.entry(ctx, t, dst, start)
		if c.err != nil || !first.follows(ctx, c) || int(first.rep()) != t.shape.rep {
			return append(dst, end)
		}
	}
}

// entry appends one of them: an element, or a key and its value.
func (c *nestedColumn) entry(ctx context.Context, t *tree, dst []byte, start int) []byte {
	if t.shape.typ.kind == list {
		return c.write(ctx, t.kids[0], dst, start)
	}
	if t.keyed {
		at := len(dst)
		dst = c.write(ctx, t.kids[0], dst, start)
		if string(dst[at:]) == "null" {
			dst = append(dst[:at], `"null"`...)
		}
		return c.write(ctx, t.kids[1], append(dst, ':'), start)
	}
	dst = c.write(ctx, t.kids[0], append(dst, `{"key":`...), start)
	dst = c.write(ctx, t.kids[1], append(dst, `,"value":`...), start)
	return append(dst, '}')
}

// take appends the text of the entry that u is at.
func (u *cursor) take(dst []byte) []byte {
	at := u.texts.at[u.pos]
	u.pos++
	if at.n == 0 {
		return append(dst, "null"...)
	}
	return append(dst, u.texts.text[at.off:at.off+at.n]...)
}

func (u *cursor) rep() int32 {
	if u.reps == nil {
		return 0
	}
	return u.reps[u.pos]
}

func (u *cursor) def() int32 {
	if u.defs == nil {
		return int32(u.info.def)
	}
	return u.defs[u.pos]
}

// more says that there is an entry at hand, or reads the next ones.
func (u *cursor) more(ctx context.Context, c *nestedColumn) bool {
	if u.pos < len(u.texts.at) {
		return true
	}
	if c.err != nil || u.ended {
		return false
	}
	u.texts.reset()
	u.pos = 0
	err := u.read(ctx, &u.texts, u.file.step)
	if errors.Is(err, io.EOF) { // read explains all others
		u.ended = true
		return false
	}
	if err != nil {
		c.fail(err)
		return false
	}
	return true
}

// inRow says that what follows the entries at hand may belong to the same row: a row ends
// with its row group.
func (u *cursor) inRow() bool { return u.info.rep > 0 && !u.over() }

// follows says that an entry is at hand that may be of the same row.
func (u *cursor) follows(ctx context.Context, c *nestedColumn) bool {
	return u.pos < len(u.texts.at) || u.inRow() && u.more(ctx, c)
}
