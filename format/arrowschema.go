package format

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
)

const (
	// arrowBytes is how long Arrow's schema may be, in base64, to be looked into. It is
	// held in memory.
	arrowBytes = 1 << 20
	// arrowDepth is how deep Arrow's readers let types nest.
	arrowDepth = 128
)

// arrowSchema reads the value of parquetArrow, which Arrow's readers and polars open a
// file by: a message of Arrow's IPC format, in base64, that is a schema.
func (p *parquetFooter) arrowSchema() {
	n, at := p.uvarint(), p.off
	if p.skip(n); p.err != nil || n > arrowBytes {
		return
	}
	text := make([]byte, n)
	p.section(p.what, at, p.end)
	p.bytes(text)
	message := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	// Writers leave bits in the last character, and line breaks nowhere.
	size, err := base64.StdEncoding.Decode(message, text)
	if p.err == nil && (err != nil || bytes.ContainsAny(text, "\r\n") || !arrowMessage(message[:size])) {
		p.failf("Arrow's schema, of %d bytes at byte %d, is damaged: write the file again", n, at)
	}
}

// arrowMessage tells whether b is a message that is a schema: its length, behind four
// bytes of ones (but as Arrow wrote it before 0.15), and as many bytes.
func arrowMessage(b []byte) bool {
	if len(b) >= 4 && binary.LittleEndian.Uint32(b) == math.MaxUint32 {
		b = b[4:]
	}
	if len(b) < 8 {
		return false
	}
	n := binary.LittleEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) || n < 8 {
		return false
	}
	f := flat{b: b[:n], left: int(n)}
	message, ok := f.table(uint64(binary.LittleEndian.Uint32(b)))
	kind, there := f.number(message, 1, 1)
	const schema = 1
	if !ok || !there || kind != schema {
		return false
	}
	header, ok := f.child(message, 2)
	return ok && header != nil && f.tables(header, 1, func(t flatTable) bool { return f.column(t, 0) }) && f.tables(header, 2, f.pair)
}

// flat reads FlatBuffers: all that is read lies in b.
type flat struct {
	b    []byte
	left int // tables that may be read yet: more than fit in b are one read again and again
}

// flatTable is a table: where each of its fields is; 0: it is not there.
type flatTable []uint64

func (f *flat) uint(at uint64, size int) (n uint64, ok bool) {
	if at > uint64(len(f.b)) || uint64(len(f.b))-at < uint64(size) || at%uint64(size) != 0 {
		return 0, false
	}
	for i := range size {
		n |= uint64(f.b[at+uint64(i)]) << (8 * i)
	}
	return n, true
}

// table reads the table at an offset, of which the first eight fields matter.
func (f *flat) table(at uint64) (flatTable, bool) {
	back, ok := f.uint(at, 4)
	list := at - uint64(int64(int32(back))) //nolint:gosec // may be any: uint looks whether it lies in b
	listSize, ok1 := f.uint(list, 2)
	size, ok2 := f.uint(list+2, 2)
	if f.left--; !ok || !ok1 || !ok2 || f.left < 0 || listSize < 4 || listSize%2 != 0 || size < 4 || size > uint64(len(f.b))-at {
		return nil, false
	}
	t := make(flatTable, min((listSize-4)/2, 8))
	if _, ok := f.uint(list+listSize-2, 2); !ok {
		return nil, false
	}
	for i := range t {
		off, _ := f.uint(list+4+2*uint64(i), 2)
		if off >= size {
			return nil, false
		}
		if off > 0 {
			t[i] = at + off
		}
	}
	return t, true
}

// number is a field of so many bytes.
func (f *flat) number(t flatTable, field, size int) (n uint64, there bool) {
	if field >= len(t) || t[field] == 0 {
		return 0, false
	}
	return f.uint(t[field], size)
}

// follow is where the value of a field lies that is elsewhere; there is false if the
// table has none.
func (f *flat) follow(t flatTable, field int) (at uint64, there, ok bool) {
	if field >= len(t) || t[field] == 0 {
		return 0, false, true
	}
	off, ok := f.uint(t[field], 4)
	return t[field] + off, true, ok
}

// child is a table that is a field; nil if there is none.
func (f *flat) child(t flatTable, field int) (flatTable, bool) {
	at, there, ok := f.follow(t, field)
	if !there || !ok {
		return nil, ok
	}
	return f.table(at)
}

// text tells whether a field is a string, or not there.
func (f *flat) text(t flatTable, field int) bool {
	at, there, ok := f.follow(t, field)
	if !there || !ok {
		return ok
	}
	n, ok := f.uint(at, 4)
	return ok && n < uint64(len(f.b))-at-4 && f.b[at+4+n] == 0
}

// tables tells whether a field is a list of tables that on takes, or not there.
func (f *flat) tables(t flatTable, field int, on func(flatTable) bool) bool {
	at, there, ok := f.follow(t, field)
	if !there || !ok {
		return ok
	}
	n, ok := f.uint(at, 4)
	for i := uint64(0); i < n && ok; i++ {
		at += 4
		var off uint64
		var t flatTable
		if off, ok = f.uint(at, 4); ok {
			t, ok = f.table(at + off)
		}
		ok = ok && on(t)
	}
	return ok
}

// column tells whether t is a Field: name (0), kind (2) and parameters (3) of its type,
// dictionary (4), children (5), metadata (6).
func (f *flat) column(t flatTable, depth int) bool {
	kind, _ := f.number(t, 2, 1)
	typ, ok := f.child(t, 3)
	_, dictionary := f.child(t, 4)
	return ok && typ != nil && kind > 0 && dictionary && depth < arrowDepth && f.text(t, 0) &&
		f.tables(t, 5, func(t flatTable) bool { return f.column(t, depth+1) }) && f.tables(t, 6, f.pair)
}

// pair tells whether t is a KeyValue.
func (f *flat) pair(t flatTable) bool { return f.text(t, 0) && f.text(t, 1) }
