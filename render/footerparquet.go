package render

import (
	"io"
	"strconv"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/format"
)

const (
	// footerText is how much of one text or value is shown.
	footerText = 1 << 20
	// footerDepth and footerLeaves are how deep a schema may be, and of how many columns.
	footerDepth  = 200
	footerLeaves = 1 << 20
	// footerMost is how much JSON one column's metadata may be.
	footerMost = 32 << 20
	// footerKinds is how many kinds of column are told apart in memory.
	footerKinds = 10_000
	// footerSignature is a nonce and a tag behind a footer that is signed.
	footerSignature = 28
)

// parquet shows a footer of Parquet's.
func (f *footer) parquet(src io.ReaderAt) (err error) {
	if f.ParquetFooter, err = format.OpenParquetFooter(src, f.size); err != nil {
		return err
	}
	f.add(`{`)
	f.top("format", `"parquet"`)
	if f.Encrypted {
		err = f.encrypted()
	} else {
		err = f.metadata()
	}
	f.add("\n}\n")
	return err
}

// top begins a member of the whole. value may come later.
func (f *footer) top(name, value string) {
	if name != "format" { // the first
		f.add(",")
	}
	f.line(1)
	f.add(`"` + name + `": ` + value)
}

// file says where the footer is.
func (f *footer) file() {
	f.top("size", strconv.FormatInt(f.size, 10))
	f.top("footer_offset", strconv.FormatInt(f.Offset, 10))
	f.top("footer_length", strconv.FormatInt(f.Length, 10))
}

// encrypted shows FileCryptoMetaData, which is what can be read of an encrypted footer.
func (f *footer) encrypted() error {
	spots := f.spots()
	if spots[1].typ != format.Struct || f.Left() < 4+footerSignature {
		f.Failf("the footer at byte %d does not say how it is encrypted: damaged, write it again", f.Offset)
	}
	f.file()
	f.top("encryption", `{"footer_encrypted": true`)
	f.slots(cryptoLayout, &spots, func(name string) { f.add(`, "` + name + `": `) })
	f.add("}")
	f.top("note", `"the footer is encrypted: without its key nobody can tell rows, schema and statistics"`)
	return f.Err()
}

// spot is where a field's value is.
type spot struct {
	at  int64
	typ byte
}

// spots reads a struct, for where its fields are.
func (f *footer) spots() (spots [12]spot) {
	f.Fields(func(id int64, typ byte) bool {
		if id >= 0 && id < int64(len(spots)) {
			spots[id] = spot{f.At(), typ}
		}
		return false
	})
	return spots
}

// slots shows the fields that are there, each after begin.
func (f *footer) slots(l layout, spots *[12]spot, begin func(name string)) {
	for _, s := range l {
		if at := spots[s.id]; s.takes(at.typ) {
			begin(s.name)
			f.typ = at.typ
			f.GoTo(at.at)
			s.show(f)
		}
	}
}

// metadata shows FileMetaData. It is read to its end first: what people look for is at
// the end of it, behind the row groups.
func (f *footer) metadata() error {
	spots := f.spots()
	signed := f.Left() == footerSignature
	if left := f.Left(); left != 0 && !signed {
		f.Failf("the footer at byte %d ends %d bytes early: damaged, write it again", f.Offset, left)
	}
	if spots[2].typ != format.List || spots[3].typ != format.I64 || spots[4].typ != format.List {
		f.Failf("the footer at byte %d lacks its schema, its number of rows or its row groups: damaged, write it again", f.Offset)
	}
	if err := f.Err(); err != nil {
		return err
	}
	begin := func(name string) { f.top(name, "") }
	f.slots(headLayout, &spots, begin)
	f.file()
	if signed || spots[8].typ == format.Struct {
		f.top("encryption", `{"footer_encrypted": false, "footer_signed": `+strconv.FormatBool(signed))
		f.slots(encryptionLayout, &spots, func(name string) { f.add(`, "` + name + `": `) })
		f.add("}")
	}
	f.top("schema", "")
	f.GoTo(spots[2].at)
	if err := f.schema(); err != nil {
		return err
	}
	if s := keyValueSlot; s.takes(spots[s.id].typ) {
		f.top(s.name, "")
		f.GoTo(spots[s.id].at)
		if err := f.list(1, func() error { f.object(keyValueLayout); return nil }); err != nil {
			return err
		}
	}
	f.top("row_groups", "")
	f.GoTo(spots[4].at)
	if err := f.list(1, f.rowGroup); err != nil {
		return err
	}
	f.slots(layout{ordersSlot}, &spots, begin)
	return f.Err()
}

// list shows a list of structs, one a line.
func (f *footer) list(depth int, show func() error) error {
	n, typ := f.List()
	if n > 0 && typ != format.Struct {
		f.Failf("a list of type %d at byte %d, not of structs: damaged, write it again", typ, f.At())
	}
	f.add("[")
	for i := uint64(0); i < n && f.Err() == nil; i++ {
		if i > 0 {
			f.add(",")
		}
		f.line(depth + 1)
		if err := show(); err != nil {
			return err
		}
		if err := f.full(); err != nil {
			return err
		}
	}
	if n > 0 {
		f.line(depth)
	}
	f.add("]")
	return f.Err()
}

// schema shows the list of the schema's elements, in which a parent precedes its
// children, as a tree.
func (f *footer) schema() error {
	n, typ := f.List()
	if n == 0 || typ != format.Struct {
		f.Failf("the footer at byte %d has no schema: damaged, write it again", f.Offset)
	}
	f.elements = n
	err := f.node(1)
	if err == nil && f.elements > 0 {
		f.Failf("the schema in the footer at byte %d is no tree of columns: damaged, write it again", f.Offset)
	}
	if err != nil {
		return err
	}
	return f.Err()
}

// node shows an element of the schema, and its children.
func (f *footer) node(depth int) error {
	if f.elements == 0 {
		f.Failf("the schema in the footer at byte %d is no tree of columns: damaged, write it again", f.Offset)
	}
	if depth > footerDepth {
		f.Failf("the schema in the footer at byte %d nests deeper than %d, of which each list takes two: more is not shown", f.Offset, footerDepth)
	}
	f.elements--
	f.element, f.children, f.named = element{physical: -1, converted: -1}, 0, false
	f.add("{")
	if f.members(elementLayout); !f.named {
		f.Failf("the element of the schema that ends at byte %d has no name: damaged, write it again", f.At())
	}
	if f.element.physical >= 0 {
		if len(f.leaves) == footerLeaves {
			return &Error{Reason: "it has more than " + strconv.Itoa(footerLeaves) + " columns"}
		}
		f.element.text = depth == 2 && f.texts[strings.ToLower(string(f.name))]
		f.leaves = append(f.leaves, f.leaf(f.element))
		f.add("}")
		return f.Err()
	}
	n := f.children
	f.add(`, "children": [`)
	for i := int64(0); i < n && f.Err() == nil; i++ {
		if i > 0 {
			f.add(",")
		}
		f.line(depth + 1)
		if err := f.node(depth + 1); err != nil {
			return err
		}
	}
	if n > 0 {
		f.line(depth)
	}
	f.add("]}")
	if err := f.full(); err != nil {
		return err
	}
	return f.Err()
}

// rowGroup shows a row group, a column a line.
func (f *footer) rowGroup() error {
	spots := f.spots()
	end := f.At()
	between := "{"
	begin := func(name string) {
		f.add(between + `"` + name + `": `)
		between = ", "
	}
	f.slots(groupLayout, &spots, begin)
	begin("columns")
	f.column = 0
	if spots[1].typ != format.List {
		f.Failf("a row group that ends at byte %d has no columns: damaged, write it again", end)
		return f.Err()
	}
	f.GoTo(spots[1].at)
	err := f.list(2, func() error {
		if f.column == len(f.leaves) {
			f.Failf("a row group that ends at byte %d has more columns than the schema, %d: damaged, write it again", end, len(f.leaves))
			return f.Err()
		}
		f.object(chunkLayout)
		f.column++
		return nil
	})
	if err == nil && f.column != len(f.leaves) {
		f.Failf("a row group that ends at byte %d has %d columns, the schema %d: damaged, write it again", end, f.column, len(f.leaves))
	}
	f.add("}")
	f.GoTo(end)
	if err != nil {
		return err
	}
	return f.Err()
}
