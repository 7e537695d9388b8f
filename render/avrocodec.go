package render

import (
	"bufio"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

// avroCodec unpacks blocks as they are read: some writers make one block of a whole file.
type avroCodec struct {
	unpack func(*bufio.Reader) (io.Reader, error) // until the next call
	close  func()
}

// maxZstdWindow is how far back data may refer that is held while unpacking.
const maxZstdWindow = 32 << 20

func newAvroCodec(name string) (avroCodec, error) {
	c := avroCodec{close: func() {}}
	switch name {
	case "null":
		c.unpack = func(r *bufio.Reader) (io.Reader, error) { return r, nil }
	case "deflate":
		d := flate.NewReader(nil)
		c.unpack = func(r *bufio.Reader) (io.Reader, error) { return d, d.(flate.Resetter).Reset(r, nil) }
	case "bzip2":
		c.unpack = func(r *bufio.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }
	case "snappy":
		var d unsnapper
		c.unpack = func(r *bufio.Reader) (io.Reader, error) { return &d, d.reset(r) }
	case "zstandard":
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return c, err
		}
		c.close = d.Close
		c.unpack = func(r *bufio.Reader) (io.Reader, error) { return d, d.Reset(r) }
	default:
		return c, &Error{Reason: fmt.Sprintf("its codec is %.40q; rows are shown of null, deflate, snappy, zstandard and bzip2", name), Remedy: "write the file with one of these"}
	}
	return c, nil
}

// unsnapper unpacks a block of snappy, which a checksum of what is unpacked follows. The
// format has no end of its own, and no library unpacks it piece by piece: it may refer to
// all before. Of a block of less than snappyMost that is held; else it is the last
// snappyHistory, where writers that make large blocks refer to the last 64 KiB alone.
type unsnapper struct {
	in         *bufio.Reader
	left       uint64 // to be unpacked
	out        []byte // what was unpacked last
	read       int    // of out
	literal    uint64 // bytes that come next as they are,
	back, copy int    // or are copied from before
	sum        uint32
}

const (
	snappyHistory = 8 << 20
	snappyMost    = 16 << 20
	snappyStep    = 128 << 10 // is unpacked at once
)

var errSnappy = errors.New("it is no snappy")

func (u *unsnapper) reset(r *bufio.Reader) (err error) {
	*u = unsnapper{in: r, out: u.out[:0]}
	u.left, err = binary.ReadUvarint(r)
	return err
}

func (u *unsnapper) Read(p []byte) (int, error) {
	if u.read == len(u.out) {
		if u.left == 0 {
			return 0, u.check()
		}
		if err := u.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, u.out[u.read:])
	u.read += n
	return n, nil
}

// check is io.EOF if the checksum is right.
func (u *unsnapper) check() error {
	var sum [crc32.Size]byte
	if _, err := io.ReadFull(u.in, sum[:]); err != nil {
		return short(err)
	}
	if binary.BigEndian.Uint32(sum[:]) != u.sum {
		return errors.New("its checksum is wrong")
	}
	return io.EOF
}

// short: a block that ends early is no end of the file.
func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errMore
	}
	return err
}

// fill unpacks a step, behind the last of what out has.
func (u *unsnapper) fill() error {
	if len(u.out)+snappyStep > snappyMost {
		u.out = append(u.out[:0], u.out[len(u.out)-snappyHistory:]...)
	}
	u.read = len(u.out)
	u.out = slices.Grow(u.out, snappyStep)
	most := u.read + snappyStep
	for u.left > 0 && len(u.out) < most {
		if u.literal == 0 && u.copy == 0 {
			if err := u.element(); err != nil {
				return short(err)
			}
		}
		if err := u.some(int(min(u.left, uint64(most-len(u.out))))); err != nil {
			return err
		}
	}
	if u.left == 0 && (u.literal > 0 || u.copy > 0) {
		return errSnappy
	}
	u.sum = crc32.Update(u.sum, crc32.IEEETable, u.out[u.read:])
	return nil
}

// some appends of the element that was read last, room bytes at most.
func (u *unsnapper) some(room int) error {
	before := len(u.out)
	switch {
	case u.literal > 0:
		n := int(min(u.literal, uint64(room)))
		u.out = u.out[:before+n]
		if _, err := io.ReadFull(u.in, u.out[before:]); err != nil {
			return short(err)
		}
		u.literal -= uint64(n)
	case u.back == 0 || u.back > before:
		return fmt.Errorf("%w: it refers to %d bytes before", errSnappy, u.back)
	default:
		u.copyBack(min(u.copy, room))
	}
	u.left -= uint64(len(u.out) - before)
	return nil
}

// copyBack appends n bytes, of which the first may be copied for the last.
func (u *unsnapper) copyBack(n int) {
	u.copy -= n
	for n > 0 {
		from := len(u.out) - u.back
		some := min(n, u.back)
		u.out = append(u.out, u.out[from:from+some]...)
		n -= some
	}
}

// element reads what comes next.
func (u *unsnapper) element() error {
	tag, err := u.in.ReadByte()
	if err != nil {
		return err
	}
	switch length := int(tag >> 2); tag & 3 {
	case 0:
		u.literal = uint64(length) + 1
		if length >= 60 {
			n, err := u.number(length - 59)
			u.literal = n + 1
			return err
		}
		return nil
	case 1:
		low, err := u.in.ReadByte()
		if err != nil {
			return err
		}
		u.copy, u.back = length&7+4, int(tag>>5)<<8|int(low)
	default:
		n, err := u.number(1 << (tag & 3) >> 1)
		if err != nil {
			return err
		}
		u.copy, u.back = length+1, int(n)
	}
	return nil
}

// number reads a number of some bytes, the last first.
func (u *unsnapper) number(size int) (n uint64, err error) {
	for i := range size {
		b, err := u.in.ReadByte()
		if err != nil {
			return 0, err
		}
		n |= uint64(b) << (8 * i)
	}
	return n, nil
}
