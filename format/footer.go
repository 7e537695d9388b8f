package format

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// Types of fields in a Parquet footer, as on of [ParquetFooter.Fields] is told them. Of a
// boolean the type is the value.
const (
	True   byte = thriftTrue
	False  byte = thriftFalse
	I8     byte = thriftByte
	I16    byte = thriftI16
	I32    byte = thriftI32
	I64    byte = thriftI64
	Double byte = thriftDouble
	Binary byte = thriftBinary
	List   byte = thriftList
	Struct byte = thriftStruct
)

// footerWindow is how much of a footer longer than window is read at once, and held:
// all of it, where files are what they are known to be.
const footerWindow = 16 << 20

// ParquetFooter reads the footer of a Parquet file, one value after another: its
// FileMetaData, or FileCryptoMetaData if the footer is encrypted. It is used by one
// goroutine. The first error sticks, and from then on each value is 0 or empty: so loops
// end by asking [ParquetFooter.Err].
type ParquetFooter struct {
	Offset, Length int64 // of the footer in the file
	Encrypted      bool

	t thrift
}

// OpenParquetFooter finds the footer by the file's last bytes. The file is read 64 KiB
// at the end, and again for a footer that is longer than those: up to 16 MiB of it at
// once. An error is an [*Error] without a name, or what ReadAt failed with.
func OpenParquetFooter(r io.ReaderAt, size int64) (*ParquetFooter, error) {
	c, encrypted := parquetTailOf(r, size, "")
	p := &ParquetFooter{Offset: c.off, Length: c.end - c.off, Encrypted: encrypted, t: thrift{c}}
	if c.err == nil && c.off < c.at {
		c.held = make([]byte, 0, min(p.Length, footerWindow))
	}
	return p, p.Err()
}

// Err is the first error: an [*Error] without a name, or what ReadAt failed with.
func (p *ParquetFooter) Err() error { return unnamed("parquet", p.t.err) }

// Failf is a flaw of the footer that the caller found.
func (p *ParquetFooter) Failf(format string, args ...any) { p.t.failf(format, args...) }

// At is the offset in the file of the next value.
func (p *ParquetFooter) At() int64 { return p.t.off }

// GoTo makes the value at the offset, which At told, the next one.
func (p *ParquetFooter) GoTo(at int64) { p.t.off = at }

// Left is how many bytes of the footer are left.
func (p *ParquetFooter) Left() int64 { return p.t.end - p.t.off }

// Fields reads a struct: it calls on for each field, which reads the field's value (of a
// boolean there is none) or returns false to have it skipped.
func (p *ParquetFooter) Fields(on func(id int64, typ byte) bool) { p.t.fields(1, on) }

// List reads how many elements of which type a list has. They follow.
func (p *ParquetFooter) List() (n uint64, typ byte) { return p.t.list() }

// Skip reads past a field's value, or an element of a list.
func (p *ParquetFooter) Skip(typ byte) { p.t.skipElement(typ, 1) }

// Int reads an integer of I16, I32 or I64.
func (p *ParquetFooter) Int() int64 { return p.t.varint() }

// Byte reads an integer of I8.
func (p *ParquetFooter) Byte() int8 { return int8(p.t.byte()) }

// Double reads a Double.
func (p *ParquetFooter) Double() float64 {
	var b [8]byte
	p.t.bytes(b[:])
	return math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
}

// Binary reads bytes or text, which it appends to dst up to most bytes. It returns how
// many there are.
func (p *ParquetFooter) Binary(dst []byte, most int) (_ []byte, n uint64) {
	n = p.t.uvarint()
	if n > uint64(p.Left()) {
		p.t.skip(n)
		return dst, 0
	}
	for range min(n, uint64(most)) {
		dst = append(dst, p.t.byte())
	}
	p.t.skip(n - min(n, uint64(most)))
	return dst, n
}

// unnamed makes an *Error of a flaw.
func unnamed(format string, err error) error {
	if reason := flaw(""); errors.As(err, &reason) {
		return &Error{Format: format, Reason: string(reason)}
	}
	return err
}

// What of an Avro file's metadata is read.
const (
	avroMetadataBytes = 16 << 20
	avroMetadataKeys  = 10_000
)

// AvroHeader is the header of an Avro file.
type AvroHeader struct {
	Metadata []AvroMetadata // in the file's order
	Sync     [avroSync]byte
	Length   int64 // of the header in bytes

	// Of the first block, if the first 64 KiB of the file have its beginning: how many
	// rows it has and, as they are stored, bytes. 0 rows: it is not known, or there is none.
	FirstRows, FirstBytes int64
}

// AvroMetadata is a key of the metadata ("avro.schema") and its value.
type AvroMetadata struct {
	Key   string
	Value []byte
}

// ReadAvroHeader reads the header alone, 64 KiB at once. Of the schema it does not say
// whether it is one. An error is an [*Error] without a name, or what ReadAt failed with.
func ReadAvroHeader(r io.ReaderAt, size int64) (*AvroHeader, error) {
	if size < int64(avroMin) {
		return nil, unnamed("avro", flawf("%d bytes, the shortest has %d", size, avroMin))
	}
	c := head(r, size)
	var start [len(avroMagic)]byte
	if c.bytes(start[:]); c.err == nil && string(start[:]) != avroMagic {
		c.err = errBegins(start[:], avroMagic)
	}
	h := &AvroHeader{}
	c.section("the header", c.off, min(size, avroMetadataBytes))
	avroPairs(c, func(key string) {
		n := avroLength(c)
		if n > uint64(c.end-c.off) || len(h.Metadata) == avroMetadataKeys {
			c.failf("the header is damaged, or longer than what is shown (%d MiB, %d keys): a value of %d bytes at byte %d",
				avroMetadataBytes>>20, avroMetadataKeys, n, c.off)
			return
		}
		value := make([]byte, n)
		c.bytes(value)
		h.Metadata = append(h.Metadata, AvroMetadata{key, value})
	})
	c.bytes(h.Sync[:])
	h.Length = c.off
	if c.err != nil {
		return nil, unnamed("avro", c.err)
	}
	if held := c.at + int64(len(c.held)); held == size || held-c.off >= 2*binary.MaxVarintLen64 {
		c.section("the first block", c.off, held)
		rows, bytes := c.varint(), c.varint()
		if c.err == nil && rows > 0 && bytes >= 0 {
			h.FirstRows, h.FirstBytes = rows, bytes
		}
	}
	return h, nil
}
