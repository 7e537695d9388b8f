package render

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/lakefs-mount/lakefs-mount/format"
)

// avroFirstRead is what is read at first: the header, and the first rows with it.
const avroFirstRead = 256 << 10

// avroHeader is what of a file's header its rows are read by.
type avroHeader struct {
	schema []byte // JSON
	codec  string
	sync   [16]byte // ends each block
}

// errMore: the bytes end before what is read of them does.
var errMore = errors.New("it ends too early")

// openAvroHeader reads the header of the size bytes of src, mostly in one read, and gives
// what it read behind it to the stream of the blocks.
func openAvroHeader(ctx context.Context, src io.ReaderAt, size int64) (*avroHeader, *avroStream, error) {
	first := make([]byte, min(avroFirstRead, size))
	if n, err := src.ReadAt(first, 0); n < len(first) {
		return nil, nil, readFailed(err)
	}
	read, err := format.ReadAvroHeader(avroBegun{src, first}, size)
	switch bad := (*format.Error)(nil); {
	case errors.As(err, &bad):
		return nil, nil, &Error{Reason: bad.Reason}
	case err != nil:
		return nil, nil, err
	}
	h := &avroHeader{codec: "null", sync: read.Sync}
	for _, m := range read.Metadata {
		switch {
		case m.Key == "avro.schema":
			h.schema = m.Value
		case m.Key == "avro.codec" && len(m.Value) > 0:
			h.codec = string(m.Value)
		}
	}
	if h.schema == nil {
		return nil, nil, &Error{Reason: "its header has no avro.schema", Remedy: remedyDamaged}
	}
	if read.Length > int64(len(first)) {
		return h, newAvroStream(ctx, src, nil, read.Length, size), nil
	}
	return h, newAvroStream(ctx, src, first[read.Length:], int64(len(first)), size), nil
}

// avroBegun is a file whose first bytes are there.
type avroBegun struct {
	io.ReaderAt
	first []byte
}

func (b avroBegun) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) <= int64(len(b.first)) {
		return copy(p, b.first[off:]), nil
	}
	return b.ReaderAt.ReadAt(p, off)
}

// readFailed is the error of a read that gave less than a file of its size has.
func readFailed(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return &Error{Reason: "it ends before its size", Remedy: "it was changed meanwhile: try again"}
	}
	return err
}

// avroBytes reads Avro's binary encoding. The first error stays, and all that is read
// after it is empty: a loop looks at err, for nothing else ends it.
type avroBytes struct {
	in   []byte
	at   int
	err  error
	want int // with errMore: how long in must be at least, as far as is known
}

func (r *avroBytes) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.in, r.at = nil, 0
}

// take returns the next n bytes, which stay the input's.
func (r *avroBytes) take(n int) []byte {
	if n < 0 || n > len(r.in)-r.at {
		r.fail(errMore)
		return nil
	}
	b := r.in[r.at : r.at+n : r.at+n]
	r.at += n
	return b
}

// long reads a number in zigzag encoding.
func (r *avroBytes) long() int64 {
	if r.at < len(r.in) {
		if b := r.in[r.at]; b < 0x80 {
			r.at++
			return int64(b>>1) ^ -int64(b&1)
		}
	}
	n, size := binary.Varint(r.in[r.at:])
	switch {
	case size == 0:
		r.fail(errMore)
		return 0
	case size < 0:
		r.fail(errors.New("a number of more than 64 bits"))
		return 0
	}
	r.at += size
	return n
}

// lengthy reads bytes behind their length.
func (r *avroBytes) lengthy() []byte {
	n := r.long()
	switch {
	case n < 0:
		r.fail(fmt.Errorf("a length of %d", n))
	case n > int64(len(r.in)-r.at):
		if r.err == nil {
			r.want = int(min(n, maxAvroRow)) + r.at
		}
		r.fail(errMore)
	default:
		return r.take(int(n))
	}
	return nil
}

// count reads how many items come next of an array or a map, 0 at its end. It passes over
// the size in bytes that may come with it.
func (r *avroBytes) count() int64 {
	n, _ := r.sizedCount()
	return n
}

// sizedCount also returns that size, -1 if there is none.
func (r *avroBytes) sizedCount() (n, size int64) {
	n, size = r.long(), -1
	if n >= 0 {
		return n, size
	}
	size = r.long()
	if -n < 0 || size < 0 {
		r.fail(fmt.Errorf("%d items of %d bytes", n, size))
		return 0, -1
	}
	return -n, size
}
