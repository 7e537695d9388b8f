package render

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lakefs-mount/lakefs-mount/format"
)

// Footer writes what the footer of the size bytes of src says (of an Avro file, the
// header) to w, as one JSON value: names are those of the format's specification, numbers
// exact, and no field is there that the file does not have. The footer alone is read: in
// most cases the last 64 KiB of the file (of an Avro file, the first), else those and the
// footer. Row groups are written as they are decoded, so that memory is bounded whatever
// their number. It returns an [*Error] for what is wrong with the file, the context's
// error, w's, or src's. What is written by then is no whole JSON value.
func Footer(ctx context.Context, w io.Writer, src io.ReaderAt, size int64, s Spec) (err error) {
	defer explain(&err, s.Name)
	f := &footer{stopped: ctx.Err, w: w, size: size, texts: s.texts(), kinds: map[element]*footerColumn{}}
	switch s.Format {
	case "parquet", "": // a footer that is one needs no look at the file's beginning
		err = f.parquet(src)
		if s.Format == "" && err != nil && f.written == 0 {
			err = f.other(src, err)
		}
	case "avro":
		err = f.avro(src)
	default:
		err = &Error{Reason: fmt.Sprintf("footers of format %s are not shown, only of parquet and avro", s.Format)}
	}
	if err == nil {
		err = f.flush()
	}
	if flaw := (*format.Error)(nil); errors.As(err, &flaw) {
		err = &Error{Reason: fmt.Sprintf("it is not a complete %s file: %s", flaw.Format, flaw.Reason)}
	}
	return err
}

// footer writes the JSON of a footer.
type footer struct {
	stopped func() error // the context's
	w       io.Writer
	size    int64
	written int64

	out   []byte // not yet written
	bytes []byte // memory for values

	*format.ParquetFooter
	typ      byte                      // of the field that is being shown
	texts    map[string]bool           // columns, in lower case, of which the table says that they are text
	kinds    map[element]*footerColumn // of columns, so far
	leaves   []*footerColumn           // columns of the schema
	column   int                       // in its row group, that is being shown: an index into leaves
	elements uint64                    // of the schema that are left
	element  element                   // of the schema, that is being shown
	name     []byte                    // of it
	named    bool                      // it has one
	children int64                     // of it
}

// footerBuffer is how much is written at once.
const footerBuffer = 64 << 10

// flush writes what there is.
func (f *footer) flush() error {
	if err := f.stopped(); err != nil {
		return err
	}
	n, err := f.w.Write(f.out)
	f.written += int64(n)
	f.out = f.out[:0]
	return err
}

// full writes what there is, if that is much. No fragment in out may be needed any more.
func (f *footer) full() error {
	if len(f.out) < footerBuffer {
		return nil
	}
	return f.flush()
}

// add appends JSON.
func (f *footer) add(text string) { f.out = append(f.out, text...) }

// line begins a line, so many levels deep.
func (f *footer) line(depth int) {
	f.out = append(f.out, '\n')
	for range depth {
		f.out = append(f.out, ' ', ' ')
	}
}

// other shows the footer of a file that is none of Parquet's, for which reason is.
func (f *footer) other(src io.ReaderAt, reason error) error {
	flaw := (*format.Error)(nil)
	if !errors.As(reason, &flaw) {
		return reason
	}
	f.out = f.out[:0]
	var head [4]byte
	if n, err := src.ReadAt(head[:], 0); n < len(head) && !errors.Is(err, io.EOF) {
		return err
	}
	switch kind := format.Detect(head[:]); kind {
	case "parquet":
		return reason
	case "avro":
		return f.avro(src)
	case "":
		return &Error{Reason: fmt.Sprintf("it begins with %q: neither a Parquet nor an Avro file", head[:])}
	default:
		return &Error{Reason: fmt.Sprintf("footers of format %s are not shown, only of parquet and avro", kind)}
	}
}
