package render

import (
	"fmt"
	"io"
)

const (
	writeAt   = 64 << 10 // bytes that are written at once
	writeLeft = 16 << 10 // bytes that wait for more between two batches
)

// newWriter writes columns to w.
func newWriter(w io.Writer, output string, columns []*column) rowWriter {
	switch output {
	case OutputCSV:
		return newCSV(w, columns)
	case OutputTable:
		return newAligned(w, columns)
	}
	return newJSONL(w, columns)
}

// buffer is what waits to be written.
type buffer struct {
	w     io.Writer
	held  []byte
	wrote bool
}

// full writes if there is enough for a write.
func (b *buffer) full() error {
	if len(b.held) < writeAt {
		return nil
	}
	return b.write()
}

func (b *buffer) write() error {
	if len(b.held) == 0 {
		return nil
	}
	_, err := b.w.Write(b.held)
	b.held, b.wrote = b.held[:0], true
	if cap(b.held) > 16*writeAt {
		b.held = nil // after a large row
	}
	if err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

// flush writes what waits, of the first rows or at the end; else if it is worth it.
func (b *buffer) flush(end bool) error {
	if end || !b.wrote || len(b.held) >= writeLeft {
		return b.write()
	}
	return nil
}

// jsonl writes an object a line.
type jsonl struct {
	buffer
	names [][]byte // `"name":`, after a comma but for the first
}

func newJSONL(w io.Writer, columns []*column) *jsonl {
	j := &jsonl{buffer: buffer{w: w}}
	for i, c := range columns {
		name := []byte{','}
		if i == 0 {
			name[0] = '{'
		}
		j.names = append(j.names, append(appendJSONString(name, []byte(c.name)), ':'))
	}
	return j
}

func (j *jsonl) rows(columns []*column, n int) error {
	for i := range n {
		out := j.held
		for k, c := range columns {
			out = append(out, j.names[k]...)
			at := c.cells.at[c.head+i]
			if at.n == 0 {
				out = append(out, "null"...)
				continue
			}
			out = append(out, c.cells.text[at.off:at.off+at.n]...)
			if len(out) >= writeAt { // a row may be long
				j.held = out
				if err := j.write(); err != nil {
					return err
				}
				out = j.held
			}
		}
		j.held = append(out, '}', '\n')
		if err := j.full(); err != nil {
			return err
		}
	}
	return nil
}

// csv writes RFC 4180 with lines that end in LF: a CR would be of the last field to cut
// and awk.
type csv struct{ buffer }

func newCSV(w io.Writer, columns []*column) *csv {
	c := &csv{buffer{w: w}}
	for i, col := range columns {
		if i > 0 {
			c.held = append(c.held, ',')
		}
		c.held = appendCSVField(c.held, []byte(col.name))
	}
	c.held = append(c.held, '\n')
	return c
}

func (c *csv) rows(columns []*column, n int) error {
	for i := range n {
		out := c.held
		for k, col := range columns {
			if k > 0 {
				out = append(out, ',')
			}
			at := col.cells.at[col.head+i]
			out = append(out, col.cells.text[at.off:at.off+at.n]...)
			if len(out) >= writeAt {
				c.held = out
				if err := c.write(); err != nil {
					return err
				}
				out = c.held
			}
		}
		c.held = append(out, '\n')
		if err := c.full(); err != nil {
			return err
		}
	}
	return nil
}
