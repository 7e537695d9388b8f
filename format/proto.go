package format

import "math"

// Wire types of Protocol Buffers.
const (
	protoVarint = 0
	proto64     = 1
	protoBytes  = 2
	proto32     = 5
)

// proto reads Protocol Buffers.
type proto struct{ *cursor }

// fields reads a message that fills the section. on is asked for each field, and
// reads its value or returns false to have it skipped.
func (p proto) fields(on func(id uint64, wire byte) bool) {
	for p.err == nil && p.off < p.end {
		at := p.off
		tag := p.uvarint()
		id, wire := tag>>3, byte(tag&7)
		if p.err == nil && (id == 0 || tag > math.MaxUint32) {
			p.failf("%s is damaged: a field %d at byte %d", p.what, id, at)
		}
		if p.err != nil || on(id, wire) {
			continue
		}
		switch wire {
		case protoVarint:
			p.uvarint()
		case proto64:
			p.skip(8)
		case protoBytes:
			p.skip(p.uvarint())
		case proto32:
			p.skip(4)
		default: // groups are in none of ORC's messages
			p.failf("%s is damaged: a field of type %d at byte %d", p.what, wire, at)
		}
	}
}

// message reads a message that is the value of a field.
func (p proto) message(what string, on func(id uint64, wire byte) bool) {
	n := p.uvarint()
	at, outer, end := p.off, p.what, p.end
	if p.skip(n); p.err != nil {
		return
	}
	p.section(what, at, p.off)
	p.fields(on)
	if p.err == nil {
		p.section(outer, p.end, end)
	}
}

// numbers reads a field of repeated numbers, packed or not.
func (p proto) numbers(wire byte, on func(n uint64)) {
	if wire == protoVarint {
		on(p.uvarint())
		return
	}
	n := p.uvarint()
	at, end := p.off, p.end
	if p.skip(n); p.err != nil {
		return
	}
	p.section(p.what, at, p.off)
	for p.err == nil && p.off < p.end {
		on(p.uvarint())
	}
	p.end = end
}
