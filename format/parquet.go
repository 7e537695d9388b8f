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
)

// checkParquet wants the magic at both ends, a footer of a length that leaves room
// for the magic before it, and in that footer (Thrift's FileMetaData) what a reader
// cannot do without, and every column's data between the two. Of an encrypted footer
// the part that is not encrypted must parse, and the rest be one module.
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
	c := tail(r, size)
	if c.err != nil {
		return c.err
	}
	last := c.held[len(c.held)-parquetTail:]
	if end := string(last[4:]); end != magic {
		return flawf("byte %d: it ends in %q, not %s: cut, or its writer has not finished", size-4, end, magic)
	}
	length, room := int64(binary.LittleEndian.Uint32(last)), size-int64(parquetMin)
	if length == 0 || length > room {
		return flawf("byte %d: a footer of %d bytes where at most %d are: damaged, write it again", size-parquetTail, length, room)
	}
	c.section("the footer", size-parquetTail-length, size-parquetTail)
	p := parquetFooter{thrift: thrift{c}, dataEnd: c.off}
	if magic == parquetEncrypted {
		p.crypto()
	} else {
		p.file()
	}
	return c.err
}

// parquetFooter reads a footer.
type parquetFooter struct {
	thrift
	dataEnd       int64 // offset of the footer
	group, column int   // being read, from 0
}

// file reads FileMetaData: version (1), schema (2), number of rows (3), row groups (4).
// What follows it (the signature of a footer that is signed) is let be.
func (p *parquetFooter) file() {
	var seen [5]bool
	p.fields(0, func(id int64, typ byte) bool {
		switch {
		case id == 1 && typ == thriftI32, id == 3 && typ == thriftI64:
			seen[id] = true
			return false
		case id == 2 && typ == thriftList:
			seen[id] = p.structs(func() { p.skipElement(thriftStruct, 1) }) > 0
			return true
		case id == 4 && typ == thriftList:
			seen[id] = true
			p.structs(p.rowGroup)
			return true
		}
		return false
	})
	for id, name := range []string{1: "version", 2: "schema", 3: "number of rows", 4: "list of row groups"} {
		if id > 0 && !seen[id] {
			p.failf("the footer at byte %d has no %s: damaged, write it again", p.dataEnd, name)
		}
	}
}

// rowGroup reads a RowGroup, for its columns (1).
func (p *parquetFooter) rowGroup() {
	p.column = 0
	p.fields(1, func(id int64, typ byte) bool {
		if id != 1 || typ != thriftList {
			return false
		}
		p.structs(p.chunk)
		return true
	})
	p.group++
}

// chunk reads a ColumnChunk: the file that it is in (1), if not this one, its
// metadata (3), which is not there if it is encrypted with the column's own key, and
// offset and length of its offset index (4, 5) and column index (6, 7).
func (p *parquetFooter) chunk() {
	elsewhere := false
	var index [4]int64
	p.fields(2, func(id int64, typ byte) bool {
		switch {
		case id == 1 && typ == thriftBinary:
			n := p.uvarint()
			p.skip(n)
			elsewhere = n > 0
		case id == 3 && typ == thriftStruct:
			p.columnMeta(elsewhere)
		case id >= 4 && id <= 7 && (typ == thriftI32 || typ == thriftI64):
			index[id-4] = p.varint()
		default:
			return false
		}
		return true
	})
	if !elsewhere {
		p.inside("the offset index of ", index[1], index[0])
		p.inside("the column index of ", index[3], index[2])
	}
	p.column++
}

// columnMeta reads ColumnMetaData: total compressed size (7), offsets of the first
// data page (9) and of the dictionary page (11), either of which some writers say is 0
// where there is none.
func (p *parquetFooter) columnMeta(elsewhere bool) {
	var size, start, dictionary int64
	p.fields(3, func(id int64, typ byte) bool {
		if typ != thriftI64 || id != 7 && id != 9 && id != 11 {
			return false
		}
		switch n := p.varint(); id {
		case 7:
			size = n
		case 9:
			start = n
		case 11:
			dictionary = n
		}
		return true
	})
	if dictionary > 0 && (start <= 0 || dictionary < start) {
		start = dictionary
	}
	if !elsewhere {
		p.inside("", size, start)
	}
}

// inside wants size bytes at start, which are what of the column that is being read,
// to lie between the magic and the footer.
func (p *parquetFooter) inside(what string, size, start int64) {
	first := int64(len(parquetMagic))
	if size < 0 || size > 0 && (start < first || start > p.dataEnd || size > p.dataEnd-start) {
		p.failf("%scolumn %d of row group %d has %d bytes at byte %d, but data is in bytes %d to %d alone: damaged, or put together of parts of which one is missing",
			what, p.column, p.group, size, start, first, p.dataEnd)
	}
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
