package format

import (
	"encoding/binary"
	"io"
)

const (
	parquetMagic     = "PAR1"
	parquetEncrypted = "PARE" // at both ends of a file whose footer is encrypted
	parquetTail      = 8      // footer length, little-endian, and magic
	parquetMin       = len(parquetMagic) + parquetTail
	parquetSignature = 28 // of a footer that is not encrypted: a nonce and a tag

	parquetNewestType = 7              // the last of the physical types (FIXED_LEN_BYTE_ARRAY)
	parquetRepeated   = 2              // the last of how often a column is there (REPEATED)
	parquetArrow      = "ARROW:schema" // key of Arrow's own schema
)

// checkParquet wants the magic at both ends, a footer of a length that leaves room
// for the magic before it, and a footer (Thrift's FileMetaData) as parquetFooter wants
// it. Of an encrypted footer the part that is not encrypted must parse, and the rest be
// one module.
func checkParquet(r io.ReaderAt, size int64) error {
	if size < int64(parquetMin) {
		return flawf("%d bytes, the shortest has %d", size, parquetMin)
	}
	var start [len(parquetMagic)]byte
	if err := readFull(r, start[:], 0); err != nil {
		return err
	}
	magic := string(start[:])
	if magic != parquetMagic && magic != parquetEncrypted {
		return errBegins(start[:], parquetMagic)
	}
	c, encrypted := parquetTailOf(r, size, magic)
	if c.err != nil {
		return c.err
	}
	p := parquetFooter{thrift: thrift{c}, dataEnd: c.off}
	if encrypted {
		p.crypto()
	} else {
		p.file()
	}
	return c.err
}

// parquetTailOf finds the footer of a file by its last bytes: it is what the cursor reads
// next. It is encrypted if the magic says so, which must be the one that is given ("":
// either).
func parquetTailOf(r io.ReaderAt, size int64, magic string) (c *cursor, encrypted bool) {
	if size < int64(parquetMin) {
		return &cursor{err: flawf("%d bytes, the shortest has %d", size, parquetMin)}, false
	}
	if c = tail(r, size); c.err != nil {
		return c, false
	}
	last := c.held[len(c.held)-parquetTail:]
	end := string(last[4:])
	encrypted = end == parquetEncrypted
	if magic == "" && encrypted {
		magic = end
	} else if magic == "" {
		magic = parquetMagic
	}
	length, room := int64(binary.LittleEndian.Uint32(last)), size-int64(parquetMin)
	switch {
	case end != magic:
		c.failf("byte %d: it ends in %q, not %s: cut, or its writer has not finished", size-4, end, magic)
	case length == 0 || length > room:
		c.failf("byte %d: a footer of %d bytes where at most %d are: damaged, write it again", size-parquetTail, length, room)
	default:
		c.section("the footer", size-parquetTail-length, size-parquetTail)
	}
	return c, encrypted
}

// crypto reads FileCryptoMetaData, for its algorithm (1), and what follows: the
// encrypted footer, which is a length, a nonce (12 bytes), the text and a tag (16).
func (p *parquetFooter) crypto() {
	algorithm := false
	p.fields(0, func(id int64, typ byte) bool {
		algorithm = algorithm || id == 1 && typ == thriftStruct
		return false
	})
	if !algorithm {
		p.failf("the footer at byte %d does not say how it is encrypted: damaged, write it again", p.dataEnd)
	}
	at := p.off
	var length [4]byte
	p.bytes(length[:])
	if n := int64(binary.LittleEndian.Uint32(length[:])); n < 12+16 || n != p.end-p.off {
		p.failf("byte %d: an encrypted footer of %d bytes where %d are: damaged, write it again", at, n, p.end-p.off)
	}
}
