package render

import (
	"context"
	"errors"
	"fmt"
	"io"
)

const (
	firstRows = 64      // rows that are made before the first are written
	mostRows  = 4096    // that are made at once, of one column
	mostCells = 1 << 18 // that are made at once, of all columns
	leastRows = 16
)

// rowWriter joins texts to rows. Cells hold as many texts as rows are asked for.
type rowWriter interface {
	// rows writes n rows: those of each column begin at its head.
	rows(columns []*column, n int) error
	// flush writes what is held back, end says that no rows follow.
	flush(end bool) error
}

// column is a column that is shown, with texts that were not written yet.
type column struct {
	name  string
	cells cells
	head  int // of cells: the first that was not written
	ended bool
	typ   *fileType // nil for one that the file lacks, or a key
}

// left is how many texts have not been written.
func (c *column) left() int { return c.cells.len() - c.head }

// text is the one of the row i after the head, nothing for NULL.
func (c *column) text(i int) []byte {
	at := c.cells.at[c.head+i]
	return c.cells.text[at.off : at.off+at.n]
}

// show writes the rows of a source.
func show(ctx context.Context, w io.Writer, in source, outputs []output, s Spec) error {
	as, err := styleOf(s.Output)
	if err != nil {
		return err
	}
	if len(outputs) == 0 {
		return &Error{Reason: "there is no column to show"}
	}
	if err = in.start(outputs, as); err != nil {
		return err
	}
	t := newTaker(in, outputs, as)
	out := newWriter(w, s.Output, t.columns)
	left := int64(-1)
	if s.Limit > 0 {
		left = s.Limit
	}
	ceiling := min(max(mostCells/max(len(outputs), 1), leastRows), mostRows)
	for most := min(firstRows, ceiling); left != 0; most = min(most*4, ceiling) {
		if left > 0 {
			most = int(min(int64(most), left))
		}
		n, err := t.next(ctx, most)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if bad := out.flush(true); bad != nil {
				return bad
			}
			return err // the rows before it stay
		}
		if err = out.rows(t.columns, n); err != nil {
			return err
		}
		t.taken(n)
		if left > 0 {
			left -= int64(n)
		}
		if err = out.flush(false); err != nil {
			return err
		}
	}
	return out.flush(true)
}

func styleOf(output string) (style, error) {
	switch output {
	case OutputJSONL:
		return asJSON, nil
	case OutputCSV:
		return asCSV, nil
	case OutputTable:
		return asTable, nil
	}
	return 0, &Error{Reason: fmt.Sprintf("there is no output %q, only jsonl, csv and table", output)}
}

// taker takes rows from a source.
type taker struct {
	in      source
	outputs []output
	columns []*column
	read    []int // columns that the file has
	rows    int64 // left, if the source tells and no column does
}

func newTaker(in source, outputs []output, as style) *taker {
	t := &taker{in: in, outputs: outputs, rows: in.rows()}
	for i := range outputs {
		o := &outputs[i]
		c := &column{name: o.name, typ: o.typ}
		switch {
		case o.from >= 0:
			t.read = append(t.read, i)
			if c.typ == nil {
				c.typ = in.fields()[o.from].typ
			}
		case o.key != nil:
			c.cells.own = as.appendKey(nil, o.key)
			fallthrough
		default:
			c.cells.text = c.cells.own
			c.cells.at = make([]span, max(min(mostCells/len(outputs), mostRows), leastRows))
			for k := range c.cells.at {
				c.cells.at[k] = span{0, uint32(len(c.cells.text))}
			}
		}
		t.columns = append(t.columns, c)
	}
	return t
}

// next has texts of 1 to most rows in all columns; io.EOF when there are none.
func (t *taker) next(ctx context.Context, most int) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if len(t.read) == 0 {
		return t.nextOfNone(ctx, most)
	}
	n := most
	for _, i := range t.read {
		c := t.columns[i]
		if c.left() == 0 {
			c.cells.reset()
			c.head = 0
			switch err := t.in.fill(ctx, i, &c.cells, most); {
			case errors.Is(err, io.EOF):
				c.ended = true
			case err != nil:
				return 0, err
			}
		}
		if c.ended != t.columns[t.read[0]].ended {
			return 0, &Error{Column: c.name, Reason: "it has other rows than " + fmt.Sprintf("%q", t.columns[t.read[0]].name), Remedy: remedyDamaged}
		}
		n = min(n, c.left())
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// nextOfNone counts rows of which no column is in the file.
func (t *taker) nextOfNone(ctx context.Context, most int) (int, error) {
	if t.rows < 0 {
		var nulls cells
		err := t.in.fill(ctx, 0, &nulls, most)
		return nulls.len(), err
	}
	n := int(min(int64(most), t.rows))
	if n <= 0 {
		return 0, io.EOF
	}
	t.rows -= int64(n)
	return n, nil
}

// taken says that n rows were written.
func (t *taker) taken(n int) {
	for _, i := range t.read {
		t.columns[i].head += n
	}
}
