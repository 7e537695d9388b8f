// Package format tells whether a file is what its partition says: by magic,
// length and tail alone.
//
// Guarantees: a check reads a few bytes whatever the file's size, allocates
// nothing that the file's content decides, and never says that a file is whole
// which was cut anywhere.
package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Error says why a file is not of its format.
type Error struct {
	Format string // "parquet"
	Name   string // of the file, for people
	Reason string
}

// Error names the file, quoted, the format and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("%q is not a complete %s file: %s", e.Name, e.Format, e.Reason)
}

// Checked reports whether Check looks into files of the format.
func Checked(format string) bool { return format == "parquet" }

// Check tells whether the size bytes of r are a complete file of the format:
// "parquet", for now; of "" and any other every file is. It returns an [*Error],
// or what r's ReadAt failed with. Whether name calls for a check (hidden ones do
// not) is the caller's business.
func Check(format, name string, r io.ReaderAt, size int64) error {
	if !Checked(format) {
		return nil
	}
	reason, err := checkParquet(r, size)
	if err != nil {
		return fmt.Errorf("check %q: %w", name, err)
	}
	if reason != "" {
		return &Error{Format: format, Name: name, Reason: reason}
	}
	return nil
}

const (
	parquetMagic     = "PAR1"
	parquetEncrypted = "PARE" // at both ends of a file whose footer is encrypted
	parquetTail      = 8      // footer length, little-endian, and magic
	parquetMin       = len(parquetMagic) + parquetTail
)

// checkParquet reads 12 bytes: the magic at both ends, and the footer's length,
// which must leave room for the magic before it.
func checkParquet(r io.ReaderAt, size int64) (reason string, err error) {
	if size < int64(parquetMin) {
		return fmt.Sprintf("%d bytes, the shortest has %d", size, parquetMin), nil
	}
	var head [len(parquetMagic)]byte
	var tail [parquetTail]byte
	if err := readFull(r, head[:], 0); err != nil {
		return "", err
	}
	if err := readFull(r, tail[:], size-parquetTail); err != nil {
		return "", err
	}
	start, end := string(head[:]), string(tail[4:])
	if start != parquetMagic && start != parquetEncrypted {
		return fmt.Sprintf("it begins with %q, not %s", start, parquetMagic), nil
	}
	if end != start {
		return fmt.Sprintf("it ends in %q, not %s: cut, or not finished", end, start), nil
	}
	footer, room := int64(binary.LittleEndian.Uint32(tail[:4])), size-int64(parquetMin)
	if footer == 0 || footer > room {
		return fmt.Sprintf("a footer of %d bytes where at most %d are", footer, room), nil
	}
	return "", nil
}

func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Detect names the format that a file which begins with head seems to have:
// "parquet", "orc", "avro", or "" if none of them.
func Detect(head []byte) string {
	for _, known := range []struct{ magic, format string }{
		{parquetMagic, "parquet"}, {parquetEncrypted, "parquet"}, {"ORC", "orc"}, {"Obj\x01", "avro"},
	} {
		if bytes.HasPrefix(head, []byte(known.magic)) {
			return known.format
		}
	}
	return ""
}
