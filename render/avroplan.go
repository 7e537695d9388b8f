package render

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

const (
	maxAvroText  = 64 << 20 // of one value: items of no bytes are free in a file
	maxAvroNest  = 1000     // of values that are passed over, whose type may be recursive
	maxDecimalIn = 512      // bytes
)

// avroPlan is how values of a type become text.
type avroPlan struct {
	kind    avroKind
	as      *fileType
	style   style
	size    int        // of fixed
	parts   []avroPart // of record, array (one), map (one), union (one a branch)
	rest    []*avroType
	symbols [][]byte // texts of an enum's
}

type avroPart struct {
	skip []*avroType // fields of a record that are passed over before this one
	key  []byte      // `"name":`
	plan *avroPlan   // nil: NULL, and no bytes
}

// planOf plans to show values of t as as. Parts of a nested type are in JSON whatever the
// style is.
func planOf(t *avroType, as *fileType, in style) *avroPlan {
	p := &avroPlan{kind: t.kind, as: as, style: in, size: t.size}
	if as.nested() {
		in = asJSON
	}
	switch t.kind {
	case avroRecord:
		p.record(t)
	case avroArray:
		p.parts = []avroPart{{plan: planOf(t.fields[0].typ, as.fields[0].typ, in)}}
	case avroMap:
		p.parts = []avroPart{{plan: planOf(t.fields[0].typ, as.fields[1].typ, in)}}
	case avroEnum:
		for _, s := range t.symbols {
			p.symbols = append(p.symbols, in.appendString(nil, []byte(s)))
		}
	case avroUnion:
		p.union(t, in)
	}
	return p
}

func (p *avroPlan) record(t *avroType) {
	next := 0
	for _, child := range p.as.fields {
		part := avroPart{key: append(appendJSONString(nil, []byte(child.name)), ':')}
		if child.from >= 0 {
			for ; next < child.from; next++ {
				part.skip = append(part.skip, t.fields[next].typ)
			}
			part.plan = planOf(t.fields[child.from].typ, child.typ, asJSON)
			next = child.from + 1
		}
		p.parts = append(p.parts, part)
	}
	for ; next < len(t.fields); next++ {
		p.rest = append(p.rest, t.fields[next].typ)
	}
}

// union: each branch that is not null is shown as the type that the union was given, or
// as the branch's part of that.
func (p *avroPlan) union(t *avroType, in style) {
	p.parts = make([]avroPart, len(t.fields))
	for n, i := range t.branches() {
		as := p.as
		if as.kind == union {
			as = as.fields[n].typ
		}
		p.parts[i].plan = planOf(t.fields[i].typ, as, in)
	}
}

// avroReader decodes rows.
type avroReader struct{ avroBytes }

// text appends the text of the next value; nothing for NULL.
func (r *avroReader) text(dst []byte, p *avroPlan) []byte {
	switch p.kind {
	case avroUnion:
		i := r.branch(len(p.parts))
		if r.err != nil || p.parts[i].plan == nil {
			return dst
		}
		return r.text(dst, p.parts[i].plan)
	case avroBoolean:
		if b := r.take(1); r.err == nil {
			return appendBool(dst, b[0] != 0)
		}
	case avroInt, avroLong:
		n := r.long()
		if err := p.as.unfit(n); err != nil {
			r.fail(err)
		}
		return p.appendLong(dst, n)
	case avroFloat:
		if b := r.take(4); r.err == nil {
			return p.style.appendFloat(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), 32)
		}
	case avroDouble:
		if b := r.take(8); r.err == nil {
			return p.style.appendFloat(dst, math.Float64frombits(binary.LittleEndian.Uint64(b)), 64)
		}
	case avroString:
		return p.style.appendString(dst, r.lengthy())
	case avroBin:
		return r.bytes(dst, p, r.lengthy())
	case avroFixed:
		return r.bytes(dst, p, r.take(p.size))
	case avroEnum:
		if i := r.branch(len(p.symbols)); r.err == nil {
			return append(dst, p.symbols[i]...)
		}
	case avroRecord:
		return r.record(dst, p)
	case avroArray, avroMap:
		return r.items(dst, p)
	}
	return dst
}

// branch reads an index into a union's branches or an enum's symbols.
func (r *avroBytes) branch(n int) int {
	i := r.long()
	if i < 0 || i >= int64(n) {
		r.fail(fmt.Errorf("a value of branch or symbol %d of %d", i, n))
		return 0
	}
	return int(i)
}

func (p *avroPlan) appendLong(dst []byte, n int64) []byte {
	switch p.as.kind {
	case date:
		return p.style.appendDate(dst, n)
	case timeOfDay:
		return p.style.appendTimeOfDay(dst, n, p.as.unit, p.as.unit)
	case timestamp:
		return p.style.appendTimestamp(dst, n, p.as.unit, p.as.utc)
	}
	return appendInt(dst, n)
}

func (r *avroReader) bytes(dst []byte, p *avroPlan, b []byte) []byte {
	if r.err != nil {
		return dst
	}
	switch {
	case p.as.asText:
		return p.style.appendString(dst, b)
	case p.as.kind == decimal:
		if len(b) > maxDecimalIn {
			r.fail(fmt.Errorf("a decimal of %d bytes", len(b)))
			return dst
		}
		return appendDecimalBytes(dst, b, p.as.scale)
	case p.as.kind == uuid:
		return p.style.appendUUID(dst, b)
	case p.as.kind == interval:
		return p.style.appendInterval(dst, binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:]))
	}
	return p.style.appendBytes(dst, b)
}

// orNull appends the text of a value within another one.
func (r *avroReader) orNull(dst []byte, p *avroPlan) []byte {
	n := len(dst)
	if p != nil {
		dst = r.text(dst, p)
	}
	if len(dst) == n {
		return append(dst, "null"...)
	}
	return dst
}

func (r *avroReader) record(dst []byte, p *avroPlan) []byte {
	start := len(dst)
	dst = append(dst, '{')
	for i := range p.parts {
		part := &p.parts[i]
		for _, t := range part.skip {
			r.skip(t, 0)
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.orNull(append(dst, part.key...), part.plan)
		if len(dst)-start > maxAvroText {
			r.fail(errTextTooLong)
		}
	}
	for _, t := range p.rest {
		r.skip(t, 0)
	}
	return append(dst, '}')
}

func (r *avroReader) items(dst []byte, p *avroPlan) []byte {
	ends, start := "[]", len(dst)
	if p.kind == avroMap {
		ends = "{}"
	}
	dst = append(dst, ends[0])
	for count := r.count(); count > 0 && r.err == nil; count = r.count() {
		for ; count > 0 && r.err == nil; count-- {
			if len(dst) > start+1 {
				dst = append(dst, ',')
			}
			if p.kind == avroMap {
				dst = append(appendJSONString(dst, r.lengthy()), ':')
			}
			dst = r.orNull(dst, p.parts[0].plan)
			if len(dst)-start > maxAvroText {
				r.fail(errTextTooLong)
			}
		}
	}
	return append(dst, ends[1])
}

var errTextTooLong = fmt.Errorf("a value of more than %d MiB as text", maxAvroText>>20)

// skip passes over a value.
func (r *avroBytes) skip(t *avroType, depth int) {
	if depth > maxAvroNest {
		r.fail(errors.New("a value that nests too deep"))
		return
	}
	switch t.kind {
	case avroBoolean:
		r.take(1)
	case avroInt, avroLong, avroEnum:
		r.long()
	case avroFloat:
		r.take(4)
	case avroDouble:
		r.take(8)
	case avroString, avroBin:
		r.lengthy()
	case avroFixed:
		r.take(t.size)
	case avroRecord:
		for _, f := range t.fields {
			if r.err != nil {
				return
			}
			r.skip(f.typ, depth+1)
		}
	case avroArray, avroMap:
		r.skipItems(t, depth)
	case avroUnion:
		if i := r.branch(len(t.fields)); r.err == nil {
			r.skip(t.fields[i].typ, depth+1)
		}
	}
}

// skipItems: where the file tells how many bytes they have, or the first of an array's had
// none, nothing of the others is looked at.
func (r *avroBytes) skipItems(t *avroType, depth int) {
	for r.err == nil {
		count, size := r.sizedCount()
		if count == 0 {
			return
		}
		if size >= 0 {
			r.take(int(min(size, math.MaxInt32)))
			continue
		}
		for ; count > 0 && r.err == nil; count-- {
			at := r.at
			if t.kind == avroMap {
				r.lengthy()
			}
			r.skip(t.fields[0].typ, depth+1)
			if r.at == at {
				break // of no bytes, as all of its type
			}
		}
	}
}
