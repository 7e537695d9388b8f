package render

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// A block of so many bytes is read as a whole before any of its rows is shown, and
	// with it the marker that tells whether it is damaged. Some writers make one block of
	// all rows, so a larger one is shown as it comes.
	wholeAvroBlock = 1 << 20
	firstAvroRows  = 128 << 10 // bytes of rows that are unpacked at once, at first
	maxAvroRow     = 64 << 20
)

// avroBlocks reads the blocks of a file.
type avroBlocks struct {
	sync   [16]byte // ends each block
	name   string   // of the codec
	codec  avroCodec
	stream *avroStream

	// Of the block that is open:
	at     int64     // where it begins in the file
	rows   int64     // that were not decoded yet
	stored int64     // bytes that were not read yet
	data   io.Reader // unpacks them; nil: no block is open
	ended  bool      // data has

	packed *bufio.Reader // of Read
	buf    []byte        // the rows
}

// next opens the next block, when all rows of the one before were decoded; unread is what
// is left of those. It is io.EOF behind the last.
func (b *avroBlocks) next(unread []byte) error {
	if b.data != nil {
		if err := b.end(unread); err != nil {
			return err
		}
	}
	b.at = b.stream.from
	head, err := b.stream.peek(2 * binary.MaxVarintLen64)
	switch {
	case err != nil:
		return err
	case len(head) == 0:
		return io.EOF
	}
	r := avroBytes{in: head}
	rows, size := r.long(), r.long()
	at, mark := int64(r.at), int64(len(b.sync))
	switch there := b.stream.size - b.at; {
	case r.err != nil:
		return b.damaged("does not begin as one: %v", r.err)
	case rows < 0 || size < 0:
		return b.damaged("has %d rows in %d bytes", rows, size)
	case size > there-at-mark:
		return b.damaged("has %d bytes of its %d", there, uint64(at)+uint64(size)+uint64(mark))
	}
	if size <= wholeAvroBlock {
		whole, err := b.stream.peek(int(at + size + mark))
		if err != nil {
			return err
		}
		if !bytes.Equal(whole[at+size:], b.sync[:]) {
			return b.unmarked()
		}
	}
	b.stream.skip(int(at))
	return b.open(rows, size)
}

func (b *avroBlocks) open(rows, size int64) (err error) {
	b.rows, b.stored, b.ended = rows, size, false
	if b.packed == nil {
		b.packed = bufio.NewReaderSize(b, 64<<10)
	}
	b.packed.Reset(b)
	if b.data, err = b.codec.unpack(b.packed); err != nil {
		return b.failed(err)
	}
	return nil
}

// Read reads the bytes that the block is stored in.
func (b *avroBlocks) Read(p []byte) (int, error) {
	if b.stored == 0 {
		return 0, io.EOF
	}
	some, err := b.stream.some()
	if err != nil {
		return 0, err
	}
	n := copy(p, some[:min(int64(len(some)), b.stored)])
	b.stream.skip(n)
	b.stored -= int64(n)
	return n, nil
}

// more returns the rows that unread begins and some after it, want bytes if there are so
// many and a row may have them, until the next call. It is
// errMore when the block has no more, and if unread is not empty that is a damage.
func (b *avroBlocks) more(unread []byte, want int) ([]byte, error) {
	if b.ended {
		return nil, errMore
	}
	if len(unread) >= len(b.buf)/2 || want > len(b.buf) {
		if len(unread) >= maxAvroRow {
			return nil, &Error{Reason: fmt.Sprintf("the block at byte %d has a row of more than %d MiB", b.at, maxAvroRow>>20), Remedy: "no output shows it"}
		}
		size := max(2*len(unread), want, firstAvroRows)
		grown := make([]byte, min(size, maxAvroRow)+firstAvroRows)
		copy(grown, unread)
		b.buf = grown
	} else {
		copy(b.buf, unread)
	}
	n := len(unread)
	for n < len(b.buf) && !b.ended {
		got, err := b.data.Read(b.buf[n:])
		n += got
		switch {
		case errors.Is(err, io.EOF):
			b.ended = true
		case err != nil:
			return nil, b.failed(err)
		}
	}
	if n == len(unread) {
		return nil, errMore
	}
	return b.buf[:n], nil
}

// end looks whether a block ends as it should: with its rows, and with the marker.
func (b *avroBlocks) end(unread []byte) error {
	if len(unread) == 0 {
		var err error
		if unread, err = b.more(nil, 0); err != nil && !errors.Is(err, errMore) {
			return err
		}
	}
	b.data = nil
	if len(unread) > 0 {
		return b.damaged("has bytes behind its last row")
	}
	for b.stored > 0 { // which the codec had no use for
		if _, err := b.Read(b.buf); err != nil {
			return err
		}
	}
	mark, err := b.stream.peek(len(b.sync))
	if err != nil {
		return err
	}
	if !bytes.Equal(mark, b.sync[:]) {
		return b.unmarked()
	}
	b.stream.skip(len(mark))
	return nil
}

// failed is the error of unpacking: the stream's own, or a damage.
func (b *avroBlocks) failed(err error) error {
	if b.stream.err != nil {
		return b.stream.err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errMore
	}
	return b.damaged("has damaged %s data: %v", b.name, err)
}

func (b *avroBlocks) damaged(format string, args ...any) error {
	return &Error{Reason: fmt.Sprintf("the block at byte %d ", b.at) + fmt.Sprintf(format, args...), Remedy: remedyDamaged}
}

func (b *avroBlocks) unmarked() error { return b.damaged("does not end in the file's sync marker") }

func (b *avroBlocks) close() {
	b.stream.close()
	b.codec.close()
}
