package format

import (
	"errors"
	"fmt"
	"io"
)

// Rows is how many rows the size bytes of r have by their footer, where there is one
// that tells: known is false, without an error, of other formats than "parquet" and
// "orc", and of a footer that is encrypted, or compressed in a way or to a size that is
// not looked into. It reads the footer alone, and of one of Parquet's no more than its
// schema: in most cases the file's last 64 KiB, by one call of ReadAt. It returns an
// [*Error], which has no name, if the file is not of the format, or what ReadAt failed
// with. That a file tells its rows does not say that it is whole: [Check] does.
func Rows(format string, r io.ReaderAt, size int64) (rows int64, known bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			rows, known, err = 0, false, &Error{Format: format, Reason: fmt.Sprintf("the count panicked: %v", p)}
		}
	}()
	switch format {
	case "parquet":
		rows, known, err = parquetRows(r, size)
	case "orc":
		var o *orcTail
		if o, err = orcTailOf(r, size); err == nil {
			rows, known = o.rows, o.told
		}
	}
	if err == nil {
		return rows, known, nil
	}
	return 0, false, unnamed(format, err)
}

// parquetRows reads FileMetaData up to its number of rows (3), which comes before the
// row groups, most of what a footer is.
func parquetRows(r io.ReaderAt, size int64) (rows int64, known bool, err error) {
	c, encrypted := parquetTailOf(r, size, "")
	if c.err != nil || encrypted {
		return 0, false, c.err
	}
	at := c.off
	found := errors.New("the number of rows") // ends the reading
	t := thrift{c}
	t.fields(0, func(id int64, typ byte) bool {
		if id != 3 || typ != thriftI64 {
			return false
		}
		if rows = t.varint(); c.err == nil {
			c.err = found
		}
		return true
	})
	switch {
	case c.err != nil && !errors.Is(c.err, found):
		return 0, false, c.err
	case c.err == nil:
		return 0, false, flawf("the footer at byte %d has no number of rows: damaged, write it again", at)
	case rows < 0:
		return 0, false, flawf("the footer at byte %d tells of %d rows: damaged, write it again", at, rows)
	}
	return rows, true, nil
}
