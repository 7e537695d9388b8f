package renderfiles

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Misled is a Parquet file that says something else than it did, in some fields of its
// footer or of one page's header, and is whole beside that: a reader comes further in it
// than in one with a flipped bit. How says which, and is "" if the file has no such part.
func Misled(random *rand.Rand, file []byte) (data []byte, how string) {
	m := misleader{random: random}
	end := len(file) - 8
	begin := end - int(binary.LittleEndian.Uint32(file[end:]))
	var meta format.FileMetaData
	if begin < 4 || thrift.Unmarshal(&thrift.CompactProtocol{}, file[begin:end], &meta) != nil {
		return nil, ""
	}
	pages := file[:begin]
	if random.IntN(2) == 0 {
		m.change(reflect.ValueOf(&meta).Elem(), 1+random.IntN(2))
	} else {
		pages = m.page(pages, &meta)
	}
	raw, err := thrift.Marshal(&thrift.CompactProtocol{}, &meta)
	if err != nil || m.how == "" {
		return nil, ""
	}
	data = append(bytes.Clone(pages), raw...)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(raw))) //nolint:gosec // small
	return append(data, "PAR1"...), m.how
}

type misleader struct {
	random *rand.Rand
	how    string
}

// page changes the header of one page. Where it gets longer or shorter, the footer's
// offsets follow.
func (m *misleader) page(file []byte, meta *format.FileMetaData) []byte {
	if len(meta.RowGroups) == 0 || len(meta.RowGroups[0].Columns) == 0 {
		return file
	}
	g := &meta.RowGroups[m.random.IntN(len(meta.RowGroups))]
	chunk := &g.Columns[m.random.IntN(len(g.Columns))].MetaData
	at := chunk.DataPageOffset
	if chunk.DictionaryPageOffset != 0 {
		at = min(at, chunk.DictionaryPageOffset)
	}
	for range m.random.IntN(3) {
		if h, n := header(file, at); n > 0 && at+n+int64(h.CompressedPageSize) < chunk.DataPageOffset+chunk.TotalCompressedSize {
			at += n + int64(h.CompressedPageSize)
		}
	}
	h, n := header(file, at)
	if n == 0 {
		return file
	}
	m.how = fmt.Sprintf("in the page at %d of %v: ", at, chunk.PathInSchema)
	m.change(reflect.ValueOf(&h).Elem(), 1+m.random.IntN(2))
	raw, err := thrift.Marshal(&thrift.CompactProtocol{}, &h)
	if err != nil {
		return file
	}
	out := append(append(bytes.Clone(file[:at]), raw...), file[at+n:]...)
	longer := int64(len(raw)) - n
	chunk.TotalCompressedSize += longer
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			c := &meta.RowGroups[i].Columns[j]
			for _, off := range []*int64{&c.MetaData.DataPageOffset, &c.MetaData.DictionaryPageOffset, &c.OffsetIndexOffset, &c.ColumnIndexOffset} {
				if *off > at {
					*off += longer
				}
			}
		}
	}
	return out
}

func header(file []byte, at int64) (h format.PageHeader, n int64) {
	if at < 4 || at >= int64(len(file)) {
		return h, 0
	}
	in := bytes.NewReader(file[at:])
	if thrift.NewDecoder((&thrift.CompactProtocol{}).NewReader(struct{ io.Reader }{in})).Decode(&h) != nil {
		return h, 0
	}
	// What the decoder read ahead is none of the header: its length is that of its encoding.
	raw, err := thrift.Marshal(&thrift.CompactProtocol{}, &h)
	if err != nil || !bytes.HasPrefix(file[at:], raw) {
		return h, 0
	}
	return h, int64(len(raw))
}

// change gives n of a structure's fields, at any depth, other values.
func (m *misleader) change(v reflect.Value, n int) {
	var all []place
	collect(v, "", &all)
	for range n {
		p := all[m.random.IntN(len(all))]
		m.set(p.v)
		m.how += fmt.Sprintf("%s=%.40v ", p.name, p.v)
	}
}

type place struct {
	v    reflect.Value
	name string
}

func collect(v reflect.Value, name string, all *[]place) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			collect(v.Field(i), name+"."+v.Type().Field(i).Name, all)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // statistics
		}
		*all = append(*all, place{v, name})
		for i := range v.Len() {
			collect(v.Index(i), fmt.Sprintf("%s[%d]", name, i), all)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			collect(v.Elem(), name, all)
		}
	case reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.String:
		*all = append(*all, place{v, name})
	}
}

func (m *misleader) set(v reflect.Value) {
	if !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString([]string{"", "\x00", "list", "element", "x"}[m.random.IntN(5)])
	case reflect.Slice:
		n := v.Len()
		switch { // without the last, with one twice, or all of them
		case n > 0 && m.random.IntN(2) == 0:
			v.Set(v.Slice(0, n-1))
		case n > 0:
			v.Set(reflect.Append(v, v.Index(m.random.IntN(n))))
		}
	default:
		old := v.Int()
		v.SetInt([]int64{
			0, 1, -1, old + 1, old - 1, -old, old * 2, old / 2, m.random.Int64N(20), math.MaxInt16, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, m.random.Int64(),
		}[m.random.IntN(15)])
	}
}
