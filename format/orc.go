package format

import "io"

const (
	orcMagic = "ORC"
	// orcMin is magic, a postscript of one field, and its length.
	orcMin = len(orcMagic) + 2 + 1

	orcUncompressed = 0
	// orcNewestKind is the last compression that there is (brotli).
	orcNewestKind = 6
)

// checkORC wants the magic at the start, a postscript at the end that has it too, and
// footer and metadata between them. A footer that is compressed must be a chain of
// whole chunks; in one that is not, the stripes must lie before it.
func checkORC(r io.ReaderAt, size int64) error {
	if size < int64(orcMin) {
		return flawf("%d bytes, the shortest has %d", size, orcMin)
	}
	var start [4]byte // the file is longer; errBegins knows more by it
	if err := readFull(r, start[:], 0); err != nil {
		return err
	}
	if string(start[:len(orcMagic)]) != orcMagic {
		return errBegins(start[:], orcMagic)
	}
	c := tail(r, size)
	if c.err != nil {
		return c.err
	}
	length := int64(c.held[len(c.held)-1])
	if length == 0 || length > size-1-int64(len(orcMagic)) {
		return flawf("byte %d: a postscript of %d bytes where at most %d are: cut, or its writer has not finished",
			size-1, length, size-1-int64(len(orcMagic)))
	}
	c.section("the postscript", size-1-length, size-1)
	o := orcTail{proto: proto{c}, footerEnd: c.off}
	o.postscript()
	o.footer()
	return c.err
}

// orcTail reads a postscript, and the footer that it tells of.
type orcTail struct {
	proto
	footerEnd   int64 // offset of the postscript
	length      uint64
	compression uint64
}

// postscript reads the lengths of footer (1), metadata (5) and stripe statistics (7),
// the compression (2), the version (4) and the magic (8000). Files of 2013 (version
// 0.11) have neither version nor magic.
func (o *orcTail) postscript() {
	var before uint64 // what else precedes the postscript
	var version, magic, compression, damaged bool
	o.fields(func(id uint64, wire byte) bool {
		switch {
		case id == 1 && wire == protoVarint:
			o.length = o.uvarint()
		case id == 2 && wire == protoVarint:
			o.compression, compression = o.uvarint(), true
		case (id == 5 || id == 7) && wire == protoVarint:
			n := o.uvarint()
			damaged = damaged || n > uint64(o.footerEnd)
			before += n
		case id == 8000 && wire == protoBytes:
			magic = o.isMagic()
		default:
			version = version || id == 4
			return false
		}
		return true
	})
	old := !magic && !version && compression
	if damaged || !magic && !old || o.compression > orcNewestKind || o.length == 0 {
		o.failf("bytes %d to %d are no postscript of ORC: cut, or its writer has not finished", o.footerEnd, o.end)
	}
	room := uint64(o.footerEnd) - uint64(len(orcMagic))
	if o.length > room || before > room-o.length {
		o.failf("the postscript at byte %d tells of %d bytes of footer and %d of metadata where %d are: damaged, write it again",
			o.footerEnd, o.length, before, room)
	}
}

func (o *orcTail) isMagic() bool {
	n := o.uvarint()
	if n != uint64(len(orcMagic)) {
		o.skip(n)
		return false
	}
	var p [len(orcMagic)]byte
	o.bytes(p[:])
	return string(p[:]) == orcMagic
}

func (o *orcTail) footer() {
	if o.err != nil {
		return
	}
	o.section("the footer", o.footerEnd-int64(o.length), o.footerEnd)
	if o.compression == orcUncompressed {
		o.stripes(o.off)
		return
	}
	for o.err == nil && o.off < o.end {
		var header [3]byte // the chunk's length, doubled; odd if it is not compressed after all
		at := o.off
		o.bytes(header[:])
		n := uint64(header[0]) | uint64(header[1])<<8 | uint64(header[2])<<16
		if n>>1 == 0 {
			o.failf("byte %d: a chunk of the footer with nothing in it: damaged, write it again", at)
		}
		o.skip(n >> 1)
	}
}

// stripes reads the footer: of each stripe (3) the offset (1) and the lengths of index
// (2), data (3) and footer (4); and the types (4), of which there is one at least.
func (o *orcTail) stripes(dataEnd int64) {
	types, end := false, o.end
	o.fields(func(id uint64, wire byte) bool {
		types = types || id == 4 && wire == protoBytes
		if id != 3 || wire != protoBytes {
			return false
		}
		n := o.uvarint()
		if o.skip(n); o.err != nil {
			return true
		}
		o.section("a stripe's place", o.off-int64(n), o.off)
		o.stripe(uint64(dataEnd))
		o.section("the footer", o.off, end)
		return true
	})
	if !types {
		o.failf("the footer at byte %d has no schema: damaged, write it again", dataEnd)
	}
}

func (o *orcTail) stripe(dataEnd uint64) {
	var place [5]uint64
	at := o.off
	o.fields(func(id uint64, wire byte) bool {
		if id < 1 || id > 4 || wire != protoVarint {
			return false
		}
		place[id] = o.uvarint()
		return true
	})
	left := dataEnd
	for _, n := range place {
		if n > left {
			o.failf("byte %d: a stripe of %d + %d + %d bytes at byte %d, but data ends at byte %d: damaged, or put together of parts of which one is missing",
				at, place[2], place[3], place[4], place[1], dataEnd)
			return
		}
		left -= n
	}
}

// Wire types of Protocol Buffers.
const (
	protoVarint  = 0
	proto64      = 1
	protoBytes   = 2
	protoGroup   = 3
	protoGroupEn = 4
	proto32      = 5
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
		case protoGroup, protoGroupEn: // their fields are read as the message's own
		default:
			p.failf("%s is damaged: a field of type %d at byte %d", p.what, wire, at)
		}
	}
}
