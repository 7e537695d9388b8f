package render

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	pq "github.com/parquet-go/parquet-go/format"

	"github.com/lakefs-mount/lakefs-mount/format"
)

const (
	parquetTail      = 8        // the footer's length and the magic
	parquetFirstRead = 64 << 10 // of the end of a file: holds most footers
	parquetMaxFooter = 64 << 20

	remedyDamaged   = "the file is damaged, write it again"
	remedyEncrypted = "it is shown by nobody without its key"
)

// readParquet reads the footer of a file in one read, or two where it is long, and holds
// it to what package format wants of one before memory is taken for it. odd says which
// elements of the schema have a logical type that the structs here do not know, and so
// read as none.
func readParquet(src io.ReaderAt, size int64) (meta *pq.FileMetaData, odd []bool, err error) {
	footer, err := readFooterBytes(src, size)
	if err != nil {
		return nil, nil, err
	}
	meta = new(pq.FileMetaData)
	if err = decodeFooter(footer, meta); err != nil {
		return nil, nil, err
	}
	var annotated struct {
		Schema thrift.Slice[struct {
			LogicalType thrift.Null[struct{}] `thrift:"10,optional"`
		}] `thrift:"2,required"`
	}
	if err = decodeFooter(footer, &annotated); err != nil {
		return nil, nil, err
	}
	odd = make([]bool, len(meta.Schema))
	for i := range meta.Schema {
		odd[i] = i < len(annotated.Schema) && annotated.Schema[i].LogicalType.Valid && meta.Schema[i].LogicalType.Value == nil
	}
	return meta, odd, nil
}

// decodeFooter decodes the footer into a struct of its fields, or some of them.
func decodeFooter(footer []byte, into any) error {
	var compact thrift.CompactProtocol
	if err := thrift.NewDecoder(compact.NewReaderFromBytes(footer)).Decode(into); err != nil {
		return &Error{Reason: fmt.Sprintf("its footer cannot be read: %v", err), Remedy: remedyDamaged}
	}
	return nil
}

// readFooterBytes reads the footer and checks it.
func readFooterBytes(src io.ReaderAt, size int64) ([]byte, error) {
	held := make([]byte, min(size, parquetFirstRead))
	if err := readFull(src, held, size-int64(len(held))); err != nil {
		return nil, err
	}
	if len(held) >= parquetTail && string(held[len(held)-4:]) == "PAR1" {
		length := int64(binary.LittleEndian.Uint32(held[len(held)-parquetTail:]))
		if length > parquetMaxFooter {
			return nil, &Error{Reason: fmt.Sprintf("a footer of %d bytes; up to %d are read", length, parquetMaxFooter), Remedy: remedyDamaged}
		}
		if whole := length + parquetTail; whole > int64(len(held)) && whole <= size {
			more := make([]byte, whole-int64(len(held)), whole)
			if err := readFull(src, more, size-whole); err != nil {
				return nil, err
			}
			held = append(more, held...)
		}
	}
	if err := checkParquetFooter(held, size); err != nil {
		return nil, err
	}
	length := int(binary.LittleEndian.Uint32(held[len(held)-parquetTail:]))
	return held[len(held)-parquetTail-length : len(held)-parquetTail], nil
}

// checkParquetFooter is format's check, of a file of which the last bytes are held.
func checkParquetFooter(held []byte, size int64) error {
	err := format.Check("parquet", "", endOf{held, size}, size)
	if flaw := (*format.Error)(nil); errors.As(err, &flaw) {
		return &Error{Reason: "it is not a complete Parquet file: " + flaw.Reason, Remedy: remedyText(held[:min(len(held), textLook)])}
	}
	if err == nil && string(held[len(held)-4:]) == "PARE" {
		return &Error{Reason: "its footer is encrypted", Remedy: remedyEncrypted}
	}
	return err
}

// endOf is a file of size bytes of which the last are held. It begins as it ends: the
// magic at the beginning would be a request of its own.
type endOf struct {
	held []byte
	size int64
}

// ReadAt answers from what is held, and the magic.
func (e endOf) ReadAt(p []byte, off int64) (int, error) {
	if first := e.size - int64(len(e.held)); off >= first {
		n := copy(p, e.held[off-first:])
		if n < len(p) {
			return n, io.EOF
		}
		return n, nil
	}
	if off == 0 && len(p) <= 4 && len(e.held) >= 4 {
		return copy(p, e.held[len(e.held)-4:]), nil
	}
	return 0, io.ErrUnexpectedEOF
}

// readFull reads len(p) bytes at off. A file that ends before is shorter than its size.
func readFull(src io.ReaderAt, p []byte, off int64) error {
	n, err := src.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("read %d bytes at %d: %w", len(p), off, io.ErrUnexpectedEOF)
	}
	return err
}
