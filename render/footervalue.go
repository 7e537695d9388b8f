package render

import (
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	pq "github.com/parquet-go/parquet-go/format"
)

// element is what of an element of a Parquet schema says how its values are read.
type element struct {
	physical, converted, logical int64 // -1, -1 and 0 if it is not there
	length, precision, scale     int64
	unit                         int64
	bits                         int8
	signed, utc                  bool
	text                         bool // the table says so
}

// footerColumn is a kind of column: of how many bytes its values are, and their texts. nil:
// they are not known.
type footerColumn struct {
	least, most int64
	put         put
}

// footerDecimal is of how many bytes a decimal may be: digits take their time.
const footerDecimal = 4096

// texts are the columns of the table that are text, whatever the file says.
func (s Spec) texts() map[string]bool {
	texts := map[string]bool{}
	for _, c := range s.Columns {
		name, _, _ := strings.Cut(strings.ToLower(c.Type), "(")
		texts[strings.ToLower(c.Name)] = name == "string" || name == "varchar" || name == "char"
	}
	return texts
}

// leaf is the kind of column that an element is.
func (f *footer) leaf(e element) *footerColumn {
	if c := f.kinds[e]; c != nil {
		return c
	}
	of := pq.SchemaElement{Type: thrift.New(pq.Type(e.physical)), TypeLength: thrift.New(int32(e.length))}
	if e.converted >= 0 {
		of.ConvertedType = thrift.New(deprecated.ConvertedType(e.converted))
		of.Precision, of.Scale = thrift.New(int32(e.precision)), thrift.New(int32(e.scale))
	}
	of.LogicalType.Value = e.logicalType()
	typ := leafType(&of, e.logical != 0 && of.LogicalType.Value == nil)
	typ.asText = e.text
	c := &footerColumn{}
	c.least, c.most = e.width()
	if typ.kind == decimal {
		c.most = min(c.most, footerDecimal)
	}
	if typ.kind != unknown && typ.kind != nothing {
		c.put = putOf(of.Type.V, typ, typ, asJSON)
	}
	if len(f.kinds) < footerKinds {
		f.kinds[e] = c
	}
	return c
}

// width is how many bytes a value has.
func (e element) width() (least, most int64) {
	switch pq.Type(e.physical) {
	case pq.Boolean:
		return 1, 1
	case pq.Int32, pq.Float:
		return 4, 4
	case pq.Int64, pq.Double:
		return 8, 8
	case pq.Int96:
		return 12, 12
	case pq.FixedLenByteArray:
		return e.length, e.length
	}
	return 0, footerText
}

// logicalType is nil for none, and for one that is not known.
func (e element) logicalType() pq.LogicalTypeValue {
	var unit pq.TimeUnit
	switch e.unit {
	case 1:
		unit.Value = &pq.MilliSeconds{}
	case 2:
		unit.Value = &pq.MicroSeconds{}
	case 3:
		unit.Value = &pq.NanoSeconds{}
	}
	switch e.logical {
	case 5:
		return &pq.DecimalType{Precision: int32(e.precision), Scale: int32(e.scale)}
	case 7:
		return &pq.TimeType{IsAdjustedToUTC: e.utc, Unit: unit}
	case 8:
		return &pq.TimestampType{IsAdjustedToUTC: e.utc, Unit: unit}
	case 10:
		return &pq.IntType{BitWidth: e.bits, IsSigned: e.signed}
	}
	for _, plain := range []pq.LogicalTypeValue{
		&pq.StringType{}, &pq.EnumType{}, &pq.DateType{}, &pq.JsonType{}, &pq.BsonType{}, &pq.UUIDType{}, &pq.Float16Type{}, &pq.NullType{},
	} {
		if int64(plain.FieldID()) == e.logical {
			return plain
		}
	}
	return nil
}

// value shows a value of the column that is being shown, as rows would; one that is none
// of its type, or of a type that is not known, in base64. One that is longer than
// footerText is left out.
func (f *footer) value() {
	var n uint64
	if f.bytes, n = f.Binary(f.bytes[:0], footerText); n > footerText {
		return
	}
	c := f.leaves[f.column]
	if c.put != nil && c.least <= int64(n) && int64(n) <= c.most {
		f.out = c.put(f.out, f.bytes)
	} else {
		f.out = asJSON.appendBytes(f.out, f.bytes)
	}
}
