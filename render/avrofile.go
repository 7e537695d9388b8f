package render

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// What an Avro file may ask for. Writers make blocks of 16 KiB to some MiB.
const (
	avroFirstRead = 256 << 10 // the header, and the first rows with it
	maxAvroHeader = 16 << 20
	maxAvroBlock  = 64 << 20 // as stored, and unpacked
)

// avroHeader is what an object container file begins with.
type avroHeader struct {
	meta   []avroMeta
	schema []byte // JSON
	codec  string
	sync   [16]byte // ends each block
	end    int64    // where the blocks begin
}

// avroMeta is an entry of a header, in the file's order.
type avroMeta struct {
	key   string
	value []byte
}

// errMore: the bytes end before what is read of them does.
var errMore = errors.New("it ends too early")

// openAvroHeader reads the header of the size bytes of src, mostly in one read. It also
// returns the bytes that were read, from the file's first on.
func openAvroHeader(src io.ReaderAt, size int64) (*avroHeader, []byte, error) {
	for n := int64(avroFirstRead); ; n *= 4 {
		n = min(n, size, maxAvroHeader)
		head := make([]byte, n)
		if got, err := src.ReadAt(head, 0); got < len(head) {
			return nil, nil, readFailed(err)
		}
		h, err := parseAvroHeader(head)
		switch {
		case err == nil:
			return h, head, nil
		case !errors.Is(err, errMore):
			return nil, nil, &Error{Reason: "it is no Avro file: " + err.Error()}
		case n == size:
			return nil, nil, &Error{Reason: "it ends within its header", Remedy: "write the file again"}
		case n == maxAvroHeader:
			return nil, nil, &Error{Reason: fmt.Sprintf("its header is longer than %d MiB", maxAvroHeader>>20)}
		}
	}
}

// readFailed is the error of a read that gave less than a file of its size has.
func readFailed(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return &Error{Reason: "it ends before its size", Remedy: "it was changed meanwhile: try again"}
	}
	return err
}

func parseAvroHeader(b []byte) (*avroHeader, error) {
	r := avroBytes{in: b}
	if magic := r.take(4); r.err != nil || string(magic) != "Obj\x01" {
		return nil, fmt.Errorf("it begins with %q", b[:min(4, len(b))])
	}
	h := &avroHeader{codec: "null"}
	for {
		count := r.count()
		if count == 0 || r.err != nil {
			break
		}
		for ; count > 0 && r.err == nil; count-- {
			h.meta = append(h.meta, avroMeta{key: string(r.lengthy()), value: r.lengthy()})
		}
	}
	copy(h.sync[:], r.take(16))
	if r.err != nil {
		return nil, r.err
	}
	h.end = int64(r.at)
	for _, m := range h.meta {
		switch {
		case m.key == "avro.schema":
			h.schema = m.value
		case m.key == "avro.codec" && len(m.value) > 0:
			h.codec = string(m.value)
		}
	}
	if h.schema == nil {
		return nil, errors.New("its header has no avro.schema")
	}
	return h, nil
}

// avroBytes reads Avro's binary encoding. The first error stays, and all that is read
// after it is empty: a loop looks at err, for nothing else ends it.
type avroBytes struct {
	in  []byte
	at  int
	err error
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

// avroBlock is a block as it is stored.
type avroBlock struct {
	rows int64
	data []byte // until the next block is read
	at   int64  // where it begins in the file
}

// nextBlock reads a block; io.EOF behind the last.
func (h *avroHeader) nextBlock(ctx context.Context, s *avroStream) (avroBlock, error) {
	b := avroBlock{at: s.position()}
	damaged := func(format string, args ...any) (avroBlock, error) {
		return b, &Error{Reason: fmt.Sprintf("the block at byte %d ", b.at) + fmt.Sprintf(format, args...), Remedy: remedyDamaged}
	}
	head, err := s.peek(ctx, 2*binary.MaxVarintLen64)
	if err != nil || len(head) == 0 {
		return b, orEOF(err)
	}
	r := avroBytes{in: head}
	rows, size := r.long(), r.long()
	switch {
	case r.err != nil:
		return damaged("does not begin as one: %v", r.err)
	case rows < 0 || size < 0:
		return damaged("has %d rows in %d bytes", rows, size)
	case size > maxAvroBlock:
		return b, &Error{Reason: fmt.Sprintf("the block at byte %d has %d bytes, over the limit of %d", b.at, size, maxAvroBlock), Remedy: "write the file with smaller blocks"}
	}
	n := r.at + int(size) + len(h.sync)
	all, err := s.peek(ctx, n)
	switch {
	case err != nil:
		return b, err
	case len(all) < n:
		return damaged("ends at byte %d of its %d", len(all), n)
	case !bytes.Equal(all[n-len(h.sync):n], h.sync[:]):
		return damaged("does not end in the file's sync marker")
	}
	s.skip(n)
	b.rows, b.data = rows, all[r.at:r.at+int(size)]
	return b, nil
}

func orEOF(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}
