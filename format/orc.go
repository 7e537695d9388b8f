package format

import "io"

const (
	orcMagic = "ORC"
	// orcMin is magic, a postscript of one field, and its length.
	orcMin = len(orcMagic) + 2 + 1

	orcUncompressed = 0
	orcMagicBit     = 16 // stands for the magic among fields, of which there are eight
	orcZlib         = 1
	orcSnappy       = 2
	orcLZ4          = 4
	orcZstd         = 5
	// orcNewestKind is the last compression that there is (brotli).
	orcNewestKind = 6
	// orcBlock is the block size that a postscript need not tell.
	orcBlock = 256 << 10
)

// checkORC wants the magic at the start, a postscript at the end that has it too,
// metadata and footer between them, and a footer as orcFooter wants it. One that is
// compressed must be a chain of whole chunks; it is looked into if they can be
// decompressed here and are not large.
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
	_, err := orcTailOf(r, size)
	return err
}

// orcTailOf reads postscript and footer.
func orcTailOf(r io.ReaderAt, size int64) (*orcTail, error) {
	if size < int64(orcMin) {
		return nil, flawf("%d bytes, the shortest has %d", size, orcMin)
	}
	c := tail(r, size)
	if c.err != nil {
		return nil, c.err
	}
	length := int64(c.held[len(c.held)-1])
	if length == 0 || length > size-1-int64(len(orcMagic)) {
		return nil, flawf("byte %d: a postscript of %d bytes where at most %d are: cut, or its writer has not finished",
			size-1, length, size-1-int64(len(orcMagic)))
	}
	c.section("the postscript", size-1-length, size-1)
	o := &orcTail{proto: proto{c}, footerEnd: c.off, block: orcBlock}
	o.postscript()
	o.footer()
	return o, c.err
}

// orcTail reads a postscript, and the footer that it tells of.
type orcTail struct {
	proto
	footerEnd   int64 // offset of the postscript
	length      uint64
	compression uint64
	block       uint64 // what a chunk is compressed from, at most
	rows        int64  // that the footer tells of
	told        bool   // it does, and could be looked into
}

// postscript reads the lengths of footer (1), metadata (5) and stripe statistics (7),
// the compression (2) and its block size (3), the version (4) and the magic (8000). Files of 2013 (version
// 0.11) have neither version nor magic.
func (o *orcTail) postscript() {
	var before uint64 // what else precedes the postscript
	var version, magic, compression, damaged bool
	var seen uint64
	o.fields(func(id uint64, wire byte) bool {
		bit := uint64(1) << min(id, orcMagicBit)
		twice := id != 4 && seen&bit != 0 // a version is a list
		damaged = damaged || twice || id >= orcMagicBit && id != 8000
		seen |= bit
		switch {
		case id == 1 && wire == protoVarint:
			o.length = o.uvarint()
		case id == 2 && wire == protoVarint:
			o.compression, compression = o.uvarint(), true
		case id == 3 && wire == protoVarint:
			o.block = o.uvarint()
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
