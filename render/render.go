// Package render shows what is in a table's files as text: the rows of Parquet and Avro
// files, their footers, and a table's schema as SQL.
//
// Guarantees: no value in a file is trusted. What a file claims is checked before memory
// is taken for it, and a panic of a decoder is an [*Error]. Rows are written as they are
// decoded: the first ones leave before the rest is read, and a limit ends the reading.
// A failure in the middle leaves whole rows behind. Rows and Footer are made to run in a
// child process of a bounded address space all the same.
package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/lakefs-mount/lakefs-mount/format"
)

// What a Spec asks for.
const (
	KindRows   = "rows"
	KindFooter = "footer"

	OutputJSONL = "jsonl" // an object a line
	OutputCSV   = "csv"   // RFC 4180, lines end in LF
	OutputTable = "table" // aligned, for people
)

// Spec says what of which file is shown. It is JSON between the daemon and the child.
type Spec struct {
	Name    string   // of the file, for messages
	Kind    string   // KindRows or KindFooter
	Format  string   // "parquet", "avro"; "": as the file's first bytes tell
	Output  string   // OutputJSONL, OutputCSV or OutputTable
	Columns []Column // the table's, in its order; nil: those of the file
	Keys    []Key    // partition columns, last in each row; the file's of their names are left out
	Flat    bool     // nested columns are refused in every output
	Project []string // the columns and keys asked for, in this order; nil: all
	Limit   int64    // rows; 0: all
}

// Column is one of a table's columns.
type Column struct {
	Name    string
	Type    string // as the catalog spells it: "array<decimal(10,2)>"
	NotNull bool
}

// Key is a partition column, with the value that the path gives it.
type Key struct {
	Name  string
	Type  string
	Value string // decoded, and spelled as table.Table.RowValue does: a timestamp in ISO 8601, binary in base64
	Null  bool
}

// Error says what is wrong with a file, or with what is asked of it.
type Error struct {
	File   string
	Column string // "": of the file as a whole
	Reason string // what is wrong
	Remedy string // what helps; "" if nothing is known to
}

// Error names the file, the column, the reason and the remedy.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q", e.File)
	if e.Column != "" {
		fmt.Fprintf(&b, ", column %q", e.Column)
	}
	b.WriteString(": " + e.Reason)
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// source yields the rows of one file, column by column. It is used by one goroutine.
type source interface {
	// fields are the columns of the file, in its order. They are known without reading
	// any row.
	fields() []field
	// start says which of them are wanted and as what: outputs[i].From is an index into
	// fields, or -1 for a column that the file lacks (and of which fill is not called).
	// Each text is in the style. It is called once, before the first next.
	start(outputs []output, as style) error
	// fill puts the texts of the next rows of outputs[i], 1 to most of them, into c,
	// which is empty; columns are asked independently and need not get the same number.
	// io.EOF when that column has ended.
	fill(ctx context.Context, i int, c *cells, most int) error
	// rows is how many the file has, or -1 where only reading on tells: then fill's io.EOF
	// does, which such a source answers of an output that the file lacks too, with NULLs.
	rows() int64
	// close gives back what the source holds. It waits for its goroutines.
	close()
}

// field is a column of a file. Nested ones are fields of its type.
type field struct {
	name string
	typ  *fileType
	// from is used in an output's record alone, which has the table's children in the
	// table's order: an index into those of the file's record, -1 for NULL.
	from int
}

// output is a column of the rows that are shown.
type output struct {
	name string
	from int       // index into the source's fields; -1: NULL in each row
	typ  *fileType // what it is shown as; of the same shape as the field's. nil: as the field's
	key  *Key      // a partition column: from is -1, its value is the key's
}

// Rows writes the rows of the size bytes of src to w. It returns an [*Error] for what is
// wrong with the file or the spec, the context's error, w's, or src's. src is read by
// several goroutines at once; none of them is left when Rows returns.
func Rows(ctx context.Context, w io.Writer, src io.ReaderAt, size int64, s Spec) (err error) {
	defer explain(&err, s.Name)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, err := open(ctx, src, size, s)
	if err != nil {
		return err
	}
	defer in.close()
	outputs, err := conform(s, in.fields())
	if err != nil {
		return err
	}
	return show(ctx, w, in, outputs, s)
}

// open opens the file's source, by its partition's format or what its first bytes tell.
func open(ctx context.Context, src io.ReaderAt, size int64, s Spec) (source, error) {
	kind := s.Format
	if kind == "" {
		head := make([]byte, min(size, textLook))
		n, err := src.ReadAt(head, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if head = head[:n]; n == 0 {
			return nil, &Error{Reason: "it is empty: neither a Parquet nor an Avro file"}
		}
		if kind = format.Detect(head[:min(n, 4)]); kind == "" {
			return nil, &Error{Reason: fmt.Sprintf("it begins with %q: neither a Parquet nor an Avro file", head[:min(n, 4)]), Remedy: remedyText(head)}
		}
	}
	switch kind {
	case "parquet":
		return openParquet(ctx, src, size)
	case "avro":
		return openAvro(ctx, src, size)
	}
	return nil, &Error{Reason: fmt.Sprintf("rows of format %s are not shown, only of parquet and avro", kind)}
}

// textLook is how much of a file is looked at to tell text.
const textLook = 512

// remedyText is what helps with a file that seems to be text by some bytes of it.
func remedyText(some []byte) string {
	for cut := 0; cut < utf8.UTFMax && len(some) > 0 && !utf8.RuneStart(some[0]); cut++ {
		some = some[1:]
	}
	for len(some) > 0 && !utf8.FullRune(some[lastRune(some):]) {
		some = some[:lastRune(some)]
	}
	control := func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\r\f", r) || r == 0x7f }
	if len(some) == 0 || !utf8.Valid(some) || bytes.ContainsFunc(some, control) {
		return ""
	}
	return "it seems to be text (JSON, CSV) already: cat, head and less read it"
}

// explain makes an *Error of a panic, and puts the file's name into an *Error.
func explain(err *error, file string) {
	if p := recover(); p != nil {
		*err = &Error{Reason: fmt.Sprintf("it cannot be read: the decoder panicked: %v", p), Remedy: "the file is damaged, write it again"}
	}
	if e := (*Error)(nil); errors.As(*err, &e) && e.File == "" {
		e.File = file
	}
}
