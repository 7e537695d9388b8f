package render

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// avroBatch bounds what is decoded at once: bytes of rows, and bytes of text.
const avroBatch = 1 << 20

// avroSource reads the rows of an Avro object container file. Its rows come one after the
// other, so all columns that are shown are decoded together, some rows ahead of the one
// that is asked for.
type avroSource struct {
	schema  *avroType
	columns []field
	blocks  *avroBlocks

	outputs []avroOutput
	row     []avroStep // in the file's order
	data    []byte     // rows that were unpacked,
	reader  avroReader // of them
	err     error      // behind the rows that were decoded
}

// avroOutput are the texts of a column that were not yet asked for.
type avroOutput struct {
	plan  *avroPlan // nil: NULL in each row
	ready cells
	next  int // of ready
	whole int // how much of its text is of whole rows
}

// avroStep is what is done with a field of a row.
type avroStep struct {
	skip *avroType // it is passed over,
	into []int     // or decoded into outputs: mostly one
}

func openAvro(ctx context.Context, src io.ReaderAt, size int64) (source, error) {
	header, stream, err := openAvroHeader(ctx, src, size)
	if err != nil {
		return nil, err
	}
	schema, err := parseAvroSchema(header.schema)
	switch {
	case err != nil:
		return nil, &Error{Reason: err.Error()}
	case schema.kind != avroRecord:
		return nil, &Error{Reason: fmt.Sprintf("its schema is of type %s: only a record has columns", schema.kind)}
	}
	codec, err := newAvroCodec(header.codec)
	if err != nil {
		return nil, err
	}
	var types avroTypes
	return &avroSource{
		schema: schema, columns: types.columns(schema),
		blocks: &avroBlocks{sync: header.sync, name: header.codec, codec: codec, stream: stream},
	}, nil
}

func (a *avroSource) fields() []field { return a.columns }

// rows are not told by an Avro file.
func (a *avroSource) rows() int64 { return -1 }

func (a *avroSource) close() { a.blocks.close() }

func (a *avroSource) start(outputs []output, as style) error {
	a.outputs = make([]avroOutput, len(outputs))
	a.row = make([]avroStep, len(a.columns))
	for i, o := range outputs {
		if o.from < 0 {
			continue
		}
		typ := o.typ
		if typ == nil {
			typ = a.columns[o.from].typ
		}
		a.outputs[i].plan = planOf(a.schema.fields[o.from].typ, typ, as)
		a.row[o.from].into = append(a.row[o.from].into, i)
	}
	for i := range a.row {
		if a.row[i].into == nil {
			a.row[i].skip = a.schema.fields[i].typ
		}
	}
	return nil
}

// fill also takes an output that the file lacks, which is NULL in each row. Its context
// is the one that the file was opened in.
func (a *avroSource) fill(_ context.Context, i int, c *cells, most int) error {
	o := &a.outputs[i]
	if o.next == len(o.ready.at) {
		if err := a.decode(most); err != nil {
			return err
		}
	}
	o.give(c, most)
	return nil
}

// give moves texts to c: all of them, with their memory, if that is what is asked for.
func (o *avroOutput) give(c *cells, most int) {
	if o.next == 0 && len(o.ready.at) <= most {
		c.own, o.ready.own = o.ready.own, c.own
		c.at, o.ready.at = o.ready.at, c.at
		o.reset()
		c.done()
		return
	}
	n := min(most, len(o.ready.at)-o.next)
	for _, at := range o.ready.at[o.next : o.next+n] {
		start := len(c.own)
		c.own = append(c.own, o.ready.own[at.off:at.off+at.n]...)
		c.end(start)
	}
	c.done()
	if o.next += n; o.next == len(o.ready.at) {
		o.reset()
	}
}

func (o *avroOutput) reset() {
	o.ready.reset()
	o.next, o.whole = 0, 0
}

// decode decodes the next rows, most or as many as a batch may hold, at least one. An
// error comes behind the rows before it.
func (a *avroSource) decode(most int) error {
	size, n := 0, 0
	for n < most && size < avroBatch && a.err == nil {
		from := a.reader.at
		if a.blocks.rows == 0 {
			a.err = a.blocks.next(a.data[from:])
			a.data, a.reader = nil, avroReader{}
			continue
		}
		text, err := a.decodeRow()
		switch {
		case err == nil:
			a.blocks.rows--
			size += text + a.reader.at - from
			n++
		case errors.Is(err, errMore):
			if a.data, a.err = a.blocks.more(a.data[from:], a.reader.want-from); errors.Is(a.err, errMore) {
				a.err = a.blocks.damaged("ends within its rows")
			}
			a.reader = avroReader{avroBytes: avroBytes{in: a.data}}
		case errors.As(err, new(*Error)):
			a.err = err
		default:
			a.err = a.blocks.damaged("has a row that cannot be decoded: %v", err)
		}
	}
	if n > 0 {
		return nil
	}
	return a.err
}

// decodeRow appends a text to each output and returns of how many bytes they are. Of a row
// that cannot be decoded none stays.
func (a *avroSource) decodeRow() (size int, err error) {
	r := &a.reader
	for i := range a.row {
		step := &a.row[i]
		if step.skip != nil {
			r.skip(step.skip, 0)
		}
		from := r.at
		for n, out := range step.into {
			if n > 0 {
				r.at = from
			}
			o := &a.outputs[out]
			o.ready.own = r.text(o.ready.own, o.plan)
			size += len(o.ready.own) - o.whole
		}
		if size > maxAvroText {
			r.fail(errTextTooLong)
		}
		if r.err != nil {
			a.forget()
			if e := (*Error)(nil); errors.As(r.err, &e) {
				e.Column = a.columns[i].name
			}
			return 0, r.err
		}
	}
	for i := range a.outputs {
		o := &a.outputs[i]
		o.ready.end(o.whole)
		o.whole = len(o.ready.own)
	}
	return size, nil
}

// forget drops what there is of a row that was not decoded.
func (a *avroSource) forget() {
	for i := range a.outputs {
		o := &a.outputs[i]
		o.ready.own = o.ready.own[:o.whole]
	}
}
