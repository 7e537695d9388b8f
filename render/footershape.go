package render

import (
	"github.com/lakefs-mount/lakefs-mount/format"
)

// slot is a field of a struct, as it is shown.
type slot struct {
	id   int64
	typ  byte   // I64 stands for every integer of two bytes or more, True for both booleans
	name string // "": show shows members of its own
	show func(f *footer)
	// unless is the id of a field that this one is left out for, if it is there.
	unless int64
}

// layout is what is shown of a struct, in this order; at most 24 fields.
type layout []slot

// member is one of a union.
type member struct {
	id   int64
	name string
	of   layout
}

// takes reports whether the slot shows a field of the type.
func (s slot) takes(typ byte) bool {
	switch s.typ {
	case format.I64:
		return typ == format.I16 || typ == format.I32 || typ == format.I64
	case format.True:
		return typ == format.True || typ == format.False
	}
	return typ == s.typ
}

func intSlot(id int64, name string) slot {
	return slot{id: id, typ: format.I64, name: name, show: func(f *footer) { f.int() }}
}

// int8Slot is a number of one byte.
func int8Slot(id int64, name string, keep func(f *footer, n int8)) slot {
	return slot{id: id, typ: format.I8, name: name, show: func(f *footer) {
		n := f.Byte()
		keep(f, n)
		f.out = appendInt(f.out, int64(n))
	}}
}

func precisionSlot(id int64) slot {
	return slot{id: id, typ: format.I64, name: "precision", show: func(f *footer) { f.element.precision = f.int() }}
}

func scaleSlot(id int64) slot {
	return slot{id: id, typ: format.I64, name: "scale", show: func(f *footer) { f.element.scale = f.int() }}
}

func boolSlot(id int64, name string) slot {
	return slot{id: id, typ: format.True, name: name, show: func(f *footer) { f.bool() }}
}

func textSlot(id int64, name string) slot {
	return slot{id: id, typ: format.Binary, name: name, show: func(f *footer) { f.text() }}
}

// bytesSlot is bytes, in base64.
func bytesSlot(id int64, name string) slot {
	return slot{id: id, typ: format.Binary, name: name, show: func(f *footer) {
		f.bytes, _ = f.Binary(f.bytes[:0], footerText)
		f.out = asJSON.appendBytes(f.out, f.bytes)
	}}
}

func doubleSlot(id int64, name string) slot {
	return slot{id: id, typ: format.Double, name: name, show: func(f *footer) { f.out = asJSON.appendFloat(f.out, f.Double(), 64) }}
}

func enumSlot(id int64, name string, names []string) slot {
	return slot{id: id, typ: format.I64, name: name, show: func(f *footer) { f.enum(names) }}
}

func structSlot(id int64, name string, l layout) slot {
	return slot{id: id, typ: format.Struct, name: name, show: func(f *footer) { f.object(l) }}
}

func unionSlot(id int64, name string, of []member) slot {
	return slot{id: id, typ: format.Struct, name: name, show: func(f *footer) { f.union(of) }}
}

// listSlot is a list of what the slot of shows.
func listSlot(id int64, name string, of slot) slot {
	return slot{id: id, typ: format.List, name: name, show: func(f *footer) {
		f.add("[")
		f.each(of, ", ")
		f.add("]")
	}}
}

// pathSlot is a list of names, shown as one with dots between them.
func pathSlot(id int64) slot {
	return slot{id: id, typ: format.List, name: "path_in_schema", show: func(f *footer) {
		at := len(f.out)
		f.each(slot{typ: format.Binary, show: func(f *footer) { f.bytes, _ = f.Binary(f.bytes[:0], footerText); f.out = append(f.out, f.bytes...) }}, ".")
		f.bytes = append(f.bytes[:0], f.out[at:]...)
		f.out = appendJSONString(f.out[:at], f.bytes)
	}}
}

func (f *footer) int() int64 {
	n := f.Int()
	f.out = appendInt(f.out, n)
	return n
}

func (f *footer) bool() bool {
	is := f.typ == format.True
	f.out = appendBool(f.out, is)
	return is
}

// text shows text, and tells of how many bytes it is: of a longer one than footerText
// only so many are shown.
func (f *footer) text() (n uint64) {
	f.bytes, n = f.Binary(f.bytes[:0], footerText)
	f.out = appendJSONString(f.out, f.bytes)
	return n
}

// enum shows the name of a number, or the number if it has none.
func (f *footer) enum(names []string) int64 {
	n := f.Int()
	if n >= 0 && n < int64(len(names)) {
		f.out = append(append(append(f.out, '"'), names[n]...), '"')
	} else {
		f.out = appendInt(f.out, n)
	}
	return n
}

// each shows the elements of a list. One of others than it should have is shown as empty.
func (f *footer) each(of slot, between string) {
	n, typ := f.List()
	shown := of.takes(typ)
	for i := uint64(0); i < n && f.Err() == nil; i++ {
		if len(f.out) > footerMost {
			f.Failf("the metadata of a column, up to byte %d, is longer than what is shown (%d MiB)", f.At(), footerMost>>20)
		}
		if !shown {
			f.Skip(typ)
			continue
		}
		if i > 0 {
			f.add(between)
		}
		f.typ = typ
		of.show(f)
	}
}

// object shows a struct.
func (f *footer) object(l layout) {
	f.add("{")
	f.members(l)
	f.add("}")
}

// members shows the fields of a struct that are there and are known. They come in the
// file's order: their texts are put in the layout's behind them, and take their place.
func (f *footer) members(l layout) {
	var texts [24]struct{ from, to int }
	start := len(f.out)
	f.Fields(func(id int64, typ byte) bool {
		for i, s := range l {
			if s.id == id && s.takes(typ) {
				texts[i].from = len(f.out)
				f.typ = typ
				s.show(f)
				texts[i].to = len(f.out)
				return true
			}
		}
		return false
	})
	end := len(f.out)
	for i, s := range l {
		value := f.out[texts[i].from:texts[i].to]
		if len(value) == 0 || s.unless > 0 && l.there(s.unless, func(i int) bool { return texts[i].to > 0 }) {
			continue
		}
		if len(f.out) > end {
			f.add(", ")
		}
		if s.name != "" {
			f.out = append(append(append(f.out, '"'), s.name...), `": `...)
		}
		f.out = append(f.out, value...)
	}
	f.out = append(f.out[:start], f.out[end:]...)
}

// there reports whether the field id is: is tells it of a slot by its index.
func (l layout) there(id int64, is func(i int) bool) bool {
	for i, s := range l {
		if s.id == id {
			return is(i)
		}
	}
	return false
}

// union shows which member of a union is there as its type, with its fields; the number
// of one that is not known. It returns that.
func (f *footer) union(of []member) (is int64) {
	f.add(`{"type": `)
	is = f.one(of, func(m member) {
		if len(m.of) == 0 {
			f.members(nil)
			return
		}
		at := len(f.out)
		f.add(", ")
		if f.members(m.of); len(f.out) == at+2 {
			f.out = f.out[:at]
		}
	})
	f.add("}")
	return is
}

// unionName shows which member of a union is there.
func (f *footer) unionName(of []member) int64 {
	return f.one(of, func(member) { f.members(nil) })
}

// one shows the name of the first member that is there, and has the rest shown; 0, shown
// as null, if there is none.
func (f *footer) one(of []member, rest func(m member)) (is int64) {
	f.Fields(func(id int64, typ byte) bool {
		if is != 0 || typ != format.Struct {
			return false
		}
		is = id
		for _, m := range of {
			if m.id == id {
				f.out = append(append(append(f.out, '"'), m.name...), '"')
				rest(m)
				return true
			}
		}
		f.out = appendInt(f.out, id)
		return false
	})
	if is == 0 {
		f.add("null")
	}
	return is
}
