package format

import "unicode/utf8"

// Types of Thrift's compact protocol, as fields and lists name them.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// thriftDepth is how deep values of fields that nobody looks at may nest: Parquet's
// own nest some five deep.
const thriftDepth = 32

// thrift reads Thrift's compact protocol. Each element takes a byte at least, so that
// what it costs is bounded by the section's length.
type thrift struct{ *cursor }

// fields reads a struct. on is asked for each field, and reads its value or returns
// false to have it skipped.
func (t thrift) fields(depth int, on func(id int64, typ byte) bool) {
	var id int64
	for t.err == nil {
		b := t.byte()
		typ := b & 0x0f
		if typ == 0 {
			return
		}
		if b>>4 != 0 {
			id += int64(b >> 4)
		} else {
			id = t.varint()
		}
		if !on(id, typ) {
			t.skipValue(typ, depth)
		}
	}
}

// list reads a list's or set's header.
func (t thrift) list() (n uint64, typ byte) {
	b := t.byte()
	if n = uint64(b >> 4); n == 15 {
		n = t.uvarint()
	}
	return n, b & 0x0f
}

// structs reads a list of structs, each of them by one call of on. A list of anything
// else is a flaw.
func (t thrift) structs(on func()) (n uint64) {
	at := t.off
	n, typ := t.list()
	if n > 0 && typ != thriftStruct {
		t.failf("%s is damaged: a list of type %d at byte %d, not of structs", t.what, typ, at)
	}
	for i := uint64(0); i < n && t.err == nil; i++ {
		on()
	}
	return n
}

// listOf reads past a list of elements of one type, which are not looked at.
func (t thrift) listOf(typ byte) {
	at := t.off
	n, is := t.list()
	if n > 0 && is != typ {
		t.failf("%s is damaged: a list of type %d at byte %d, not of %d", t.what, is, at, typ)
	}
	t.skipElements(n, 1, typ)
}

// skipValue reads past the value of a field.
func (t thrift) skipValue(typ byte, depth int) {
	if typ != thriftTrue && typ != thriftFalse { // a field's bool is its type
		t.skipElement(typ, depth)
	}
}

func (t thrift) skipElement(typ byte, depth int) {
	if depth >= thriftDepth {
		t.failf("%s is damaged: nested deeper than %d at byte %d", t.what, thriftDepth, t.off)
		return
	}
	switch typ {
	case thriftTrue, thriftFalse, thriftByte:
		t.byte()
	case thriftI16, thriftI32, thriftI64:
		t.uvarint()
	case thriftDouble:
		t.skip(8)
	case thriftUUID:
		t.skip(16)
	case thriftBinary:
		t.skip(t.uvarint())
	case thriftList, thriftSet:
		n, of := t.list()
		t.skipElements(n, depth, of)
	case thriftMap:
		if n := t.uvarint(); n > 0 {
			b := t.byte()
			t.skipElements(n, depth, b>>4, b&0x0f)
		}
	case thriftStruct:
		t.fields(depth+1, func(int64, byte) bool { return false })
	default:
		t.failf("%s is damaged: type %d at byte %d, which there is not", t.what, typ, t.off-1)
	}
}

// skipElements reads past n elements, each of all the types in turn.
func (t thrift) skipElements(n uint64, depth int, types ...byte) {
	for i := uint64(0); i < n && t.err == nil; i++ {
		for _, typ := range types {
			t.skipElement(typ, depth+1)
		}
	}
}

// text reads a string, of which it returns the first bytes. One that is not UTF-8 is a
// flaw.
func (t thrift) text() string {
	var short [16]byte
	n := t.uvarint()
	at := t.off
	if n > uint64(t.end-t.off) {
		t.skip(n)
		return ""
	}
	var r [utf8.UTFMax]byte // the character that is being read
	have := 0
	for i := range n {
		b := t.byte()
		if i < uint64(len(short)) {
			short[i] = b
		}
		if have == 0 && b < utf8.RuneSelf {
			continue
		}
		r[have] = b
		if have++; utf8.FullRune(r[:have]) {
			if c, size := utf8.DecodeRune(r[:have]); c == utf8.RuneError && size == 1 {
				break
			}
			have = 0
		}
	}
	if have > 0 {
		t.failf("%s is damaged: the text of %d bytes at byte %d is not UTF-8", t.what, n, at)
	}
	return string(short[:min(n, uint64(len(short)))])
}

// field is one that a struct must have.
type field struct {
	id   int64
	typ  byte
	name string // for people
}

// needs tells whether a struct has the fields that it must have.
type needs struct {
	fields []field
	seen   uint64 // which of them, by bit
}

// see notes a field. One of another type than it must be is none, to readers too.
func (n *needs) see(id int64, typ byte) {
	for i, f := range n.fields {
		if f.id == id && f.typ == typ {
			n.seen |= 1 << i
		}
	}
}

// have fails if one of them is missing in what was read, which began at byte at.
func (t thrift) have(n needs, what string, at int64) {
	for i, f := range n.fields {
		if n.seen&(1<<i) == 0 {
			t.failf("the %s at byte %d has no %s: damaged, write it again", what, at, f.name)
		}
	}
}
