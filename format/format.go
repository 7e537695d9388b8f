// Package format tells whether a file is what its partition says: by magic, tail,
// footer and first lines. It counts rows by footers, and reads footers for those who show
// them ([Rows], [ParquetFooter], [AvroHeader]).
//
// Guarantees: a check never says that a Parquet or ORC file is whole which was cut
// anywhere, nor an Avro file which was cut anywhere but between two of its blocks
// (there it is a whole one of fewer rows). It reads the ends of the file, and of a
// footer all of it, but none of the data. It allocates some 64 KiB, whatever the file's
// size and whatever it holds; and some MiB more at most for what has to be decoded to be
// looked into: a compressed footer of ORC, Arrow's schema, Avro's schema. What is larger
// than their limits is not looked into. What engines read is not refused: where writers
// are known to differ, the check is lenient. No value in the file is trusted: a panic in
// the check is a failed check.
package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Error says why a file is not of its format.
type Error struct {
	Format string // "parquet"; of a name that says how it is compressed: "gzip"
	Name   string // of the file, for people
	Reason string // what is wrong, at which byte, and what to do where it is known
}

// Error names the file, quoted, the format and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("%q is not a complete %s file: %s", e.Name, e.Format, e.Reason)
}

// flaw is a reason; any other error of a check is one of reading.
type flaw string

func (f flaw) Error() string { return string(f) }

func flawf(format string, args ...any) error { return flaw(fmt.Sprintf(format, args...)) }

// Checked reports whether Check looks into files of the format, whatever their names:
// of csv and text it looks at those alone whose names say that they are compressed.
func Checked(format string) bool {
	return format == "json" || checkOf(format, "") != nil && !lines(format)
}

// check looks at the size bytes of r, of which there is at least one unless the
// format has no empty files: a flaw, or what r failed with.
type check func(r io.ReaderAt, size int64) error

// checkOf is nil for a format that has no check: it is total.
func checkOf(format, name string) check {
	switch format {
	case "parquet":
		return checkParquet
	case "orc":
		return checkORC
	case "avro":
		return checkAvro
	case "csv", "text", "json":
		return checkText(format, name)
	}
	return nil
}

// Check tells whether the size bytes of r are a complete file of the format, as
// table.Table names it: "parquet", "orc", "avro", "json", "csv" and "text". Of any
// other ("sequence", "rc", "", one that is not known) every file is. Files of the
// last three are as their name says compressed or not; only those may be empty. It
// returns an [*Error], or what r's ReadAt failed with. Whether name calls for a check
// (hidden ones do not) is the caller's business.
func Check(format, name string, r io.ReaderAt, size int64) (err error) {
	of := format
	if codec := codecOf(name); codec != "" && lines(format) {
		of = codec
	}
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Format: of, Name: name, Reason: fmt.Sprintf("the check panicked: %v", p)}
		}
	}()
	run := checkOf(format, name)
	if run == nil {
		return nil
	}
	if err = run(r, size); err == nil {
		return nil
	}
	if reason := flaw(""); errors.As(err, &reason) {
		return &Error{Format: of, Name: name, Reason: string(reason)}
	}
	return fmt.Errorf("check %q: %w", name, err)
}

// readFull reads len(p) bytes at off; a file that ends before is shorter than told.
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
		{parquetMagic, "parquet"}, {parquetEncrypted, "parquet"}, {orcMagic, "orc"}, {avroMagic, "avro"},
	} {
		if bytes.HasPrefix(head, []byte(known.magic)) {
			return known.format
		}
	}
	return ""
}

// DetectEnd is Detect by a file's last bytes, of which it looks at four: "parquet",
// "orc", or "" if neither.
func DetectEnd(end []byte) string {
	switch n := len(end); {
	case n < 4:
		return ""
	case string(end[n-4:]) == parquetMagic, string(end[n-4:]) == parquetEncrypted:
		return "parquet"
	case string(end[n-4:n-1]) == orcMagic: // the postscript, and its length
		return "orc"
	}
	return ""
}

// errBegins is the flaw of a file that begins with head, not with magic.
func errBegins(head []byte, magic string) error {
	if other := Detect(head); other != "" {
		return flawf("byte 0: it begins as a file of format %s does (%q), not with %q: convert it, or write it to a partition of that format",
			other, head, magic)
	}
	return flawf("byte 0: it begins with %q, not with %q: another format, or written in part", head, magic)
}
