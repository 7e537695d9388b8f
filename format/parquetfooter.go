package format

// What structs of a footer must have: those without which no reader takes it.
//
//nolint:gochecknoglobals // constant tables
var (
	parquetFile = []field{
		{1, thriftI32, "version"}, {2, thriftList, "schema"}, {3, thriftI64, "number of rows"}, {4, thriftList, "list of row groups"},
	}
	// parquetConverted are the physical types, by bit, that each converted type goes with.
	parquetConverted = [...]uint8{
		0: 1 << 6, 4: 1 << 6, 19: 1 << 6, 20: 1 << 6, // text, enumeration, JSON and BSON are bytes
		1: 0, 2: 0, 3: 0, // maps and lists are no columns
		5: 1<<1 | 1<<2 | 1<<6 | 1<<7, 6: 1 << 1, 7: 1 << 1, 8: 1 << 2, 9: 1 << 2, 10: 1 << 2,
		11: 1 << 1, 12: 1 << 1, 13: 1 << 1, 14: 1 << 2, 15: 1 << 1, 16: 1 << 1, 17: 1 << 1, 18: 1 << 2, 21: 1 << 7,
	}
	parquetElement  = []field{{4, thriftBinary, "name"}}
	parquetKeyValue = []field{{1, thriftBinary, "key"}}
	parquetGroup    = []field{{1, thriftList, "list of columns"}, {2, thriftI64, "size"}, {3, thriftI64, "number of rows"}}
	parquetPages    = []field{{1, thriftI32, "kind"}, {2, thriftI32, "encoding"}, {3, thriftI32, "number"}}
	parquetChunk    = []field{{2, thriftI64, "offset"}}
	parquetColumn   = []field{
		{1, thriftI32, "type"},
		{2, thriftList, "encodings"},
		{3, thriftList, "path"},
		{4, thriftI32, "codec"},
		{5, thriftI64, "number of values"},
		{6, thriftI64, "size"},
		{7, thriftI64, "compressed size"},
		{9, thriftI64, "offset of its data"},
	}
)

// parquetFooter reads a footer. It wants the fields that a reader cannot do without, a
// schema that is one tree, a column of each leaf of it in every row group, as many rows
// as the groups have, and every column's data between the magic and the footer.
type parquetFooter struct {
	thrift
	dataEnd       int64 // offset of the footer
	group, column int   // being read, from 0
	leaves        int   // of the schema
	rows          int64 // of the row groups so far
}

// file reads FileMetaData: version (1), schema (2), number of rows (3), row groups (4),
// key-value metadata (5), who wrote it (6), column orders (7). Nothing follows but the
// signature of a footer that is signed.
func (p *parquetFooter) file() {
	var rows int64
	var orders uint64
	ordered := false
	f, at := needs{fields: parquetFile}, p.off
	p.fields(0, func(id int64, typ byte) bool {
		f.see(id, typ)
		switch {
		case id == 2 && typ == thriftList:
			p.schema()
		case id == 3 && typ == thriftI64:
			rows = p.varint()
		case id == 4 && typ == thriftList:
			p.structs(p.rowGroup)
		case id == 5 && typ == thriftList:
			p.structs(p.keyValue)
		case id == 6 && typ == thriftBinary:
			p.text()
		case id == 7 && typ == thriftList:
			orders, ordered = p.structs(func() { p.skipElement(thriftStruct, 1) }), true
		default:
			return false
		}
		return true
	})
	p.have(f, "footer", at)
	if left := p.end - p.off; left != 0 && left != parquetSignature {
		p.failf("the footer at byte %d ends %d bytes early: damaged, write it again", p.dataEnd, left)
	}
	if rows != p.rows {
		p.failf("the footer at byte %d tells of %d rows, its row groups of %d: damaged, write it again", p.dataEnd, rows, p.rows)
	}
	if ordered && orders != uint64(p.leaves) {
		p.failf("the footer at byte %d has the order of %d columns of %d: damaged, write it again", p.dataEnd, orders, p.leaves)
	}
}

// schema reads the elements, a parent before its children.
func (p *parquetFooter) schema() {
	left := int64(1) // elements that must follow
	n := p.structs(func() {
		if left--; left < 0 {
			p.failf("the schema in the footer at byte %d is no tree of columns: damaged, write it again", p.dataEnd)
		}
		left += p.element()
	})
	if n > 0 && left != 0 {
		p.failf("the schema in the footer at byte %d lacks %d columns: damaged, write it again", p.dataEnd, left)
	}
	if n == 0 {
		p.failf("the footer at byte %d has no schema: damaged, write it again", p.dataEnd)
	}
}

// element reads an element of the schema: its name (4), its type (1) or the number of
// its children (5), how often it is there (3), and what its type stands for (6).
func (p *parquetFooter) element() (children int64) {
	var number [7]int64 // by id
	leaf, stands := false, false
	f, at := needs{fields: parquetElement}, p.off
	p.fields(1, func(id int64, is byte) bool {
		f.see(id, is)
		switch {
		case id == 4 && is == thriftBinary:
			p.text()
		case (id == 1 || id == 3 || id == 5 || id == 6) && is == thriftI32:
			number[id] = p.varint()
			leaf = leaf || id == 1
			stands = stands || id == 6
		default:
			return false
		}
		return true
	})
	p.have(f, "element of the schema", at)
	typ, repeated, children, converted := number[1], number[3], number[5], number[6]
	if children < 0 || leaf && children > 0 || typ < 0 || typ > parquetNewestType || repeated < 0 || repeated > parquetRepeated {
		p.failf("the element of the schema at byte %d is neither a column nor one of columns: damaged, write it again", at)
		return 0
	}
	if !leaf {
		return children
	}
	p.leaves++
	if stands && converted >= 0 && converted < int64(len(parquetConverted)) && parquetConverted[converted]&(1<<typ) == 0 {
		p.failf("the element of the schema at byte %d is of type %d, which stands for no type %d: damaged, write it again", at, typ, converted)
	}
	return 0
}

// keyValue reads a KeyValue: a key (1), and perhaps a value (2). That of Arrow's schema
// is what its readers go by.
func (p *parquetFooter) keyValue() {
	arrow, value := false, false
	f, at := needs{fields: parquetKeyValue}, p.off
	p.fields(1, func(id int64, typ byte) bool {
		f.see(id, typ)
		switch {
		case id == 1 && typ == thriftBinary:
			arrow = p.text() == parquetArrow
		case id == 2 && typ == thriftBinary && arrow:
			p.arrowSchema()
			value = true
		default:
			return false
		}
		return true
	})
	p.have(f, "key-value metadata", at)
	if arrow && !value {
		p.failf("the key-value metadata at byte %d has no schema of Arrow's: damaged, write it again", at)
	}
}

// rowGroup reads a RowGroup: its columns (1), size (2) and number of rows (3).
func (p *parquetFooter) rowGroup() {
	p.column = 0
	f, at := needs{fields: parquetGroup}, p.off
	p.fields(1, func(id int64, typ byte) bool {
		f.see(id, typ)
		switch {
		case id == 1 && typ == thriftList:
			p.structs(p.chunk)
		case id == 3 && typ == thriftI64:
			n := p.varint()
			if p.rows += n; n < 0 || p.rows < 0 {
				p.failf("row group %d has %d rows: damaged, write it again", p.group, n)
			}
		default:
			return false
		}
		return true
	})
	p.have(f, "row group", at)
	if p.column != p.leaves {
		p.failf("row group %d has %d columns, the schema %d: damaged, write it again", p.group, p.column, p.leaves)
	}
	p.group++
}

// chunk reads a ColumnChunk: the file that it is in (1), if not this one, an offset
// (2), its metadata (3), which is not there if it is encrypted with the column's own key
// (8, 9), and offset and length of its offset index (4, 5) and column index (6, 7).
func (p *parquetFooter) chunk() {
	elsewhere, encrypted, meta := false, false, false
	var index [4]int64
	f, at := needs{fields: parquetChunk}, p.off
	p.fields(2, func(id int64, typ byte) bool {
		f.see(id, typ)
		encrypted = encrypted || id == 8 && typ == thriftStruct || id == 9 && typ == thriftBinary
		switch {
		case id == 1 && typ == thriftBinary:
			n := p.uvarint()
			p.skip(n)
			elsewhere = n > 0
		case id == 3 && typ == thriftStruct:
			p.columnMeta(elsewhere)
			meta = true
		case id >= 4 && id <= 7 && (typ == thriftI32 || typ == thriftI64):
			index[id-4] = p.varint()
		default:
			return false
		}
		return true
	})
	p.have(f, "column", at)
	if !meta && !encrypted {
		p.failf("column %d of row group %d has no metadata: damaged, write it again", p.column, p.group)
	}
	if !elsewhere {
		p.inside("the offset index of ", index[1], index[0])
		p.inside("the column index of ", index[3], index[2])
	}
	p.column++
}

// columnMeta reads ColumnMetaData: type (1), encodings (2), path in the schema (3),
// codec (4), number of values (5), sizes (6, and compressed 7), offsets of the first
// data page (9) and of the dictionary page (11), either of which some writers say is 0
// where there is none; and what else has fields that must be there (8, 13).
func (p *parquetFooter) columnMeta(elsewhere bool) {
	var size, start, dictionary int64
	f, at := needs{fields: parquetColumn}, p.off
	p.fields(3, func(id int64, typ byte) bool {
		f.see(id, typ)
		switch {
		case id == 2 && typ == thriftList:
			p.listOf(thriftI32)
		case id == 3 && typ == thriftList:
			p.listOf(thriftBinary)
		case id == 8 && typ == thriftList:
			p.structs(p.keyValue)
		case id == 13 && typ == thriftList:
			p.structs(p.pages)
		case id == 7 && typ == thriftI64:
			size = p.varint()
		case id == 9 && typ == thriftI64:
			start = p.varint()
		case id == 11 && typ == thriftI64:
			dictionary = p.varint()
		default:
			return false
		}
		return true
	})
	p.have(f, "column's metadata", at)
	if dictionary > 0 && (start <= 0 || dictionary < start) {
		start = dictionary
	}
	if !elsewhere {
		p.inside("", size, start)
	}
}

// pages reads how many pages of a column there are of a kind (PageEncodingStats).
func (p *parquetFooter) pages() {
	f, at := needs{fields: parquetPages}, p.off
	p.fields(4, func(id int64, typ byte) bool {
		f.see(id, typ)
		return false
	})
	p.have(f, "count of pages", at)
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
