package render

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The decoders below hand out values as they are asked for, and hold no more of them than
// a few: so no number of values that a page claims takes memory.

var errShort = errors.New("a page ends before its values do")

// hybrid decodes the hybrid of runs and packed bits that levels, indexes of dictionaries
// and booleans come in.
type hybrid struct {
	src    []byte
	width  uint   // bits a value, up to 32
	run    int    // values left of the run at hand
	packed []byte // the run's bits; nil: each value is value
	bit    uint   // of packed, that come next
	value  int32
}

// reset begins anew with src.
func (h *hybrid) reset(src []byte, width uint) { *h = hybrid{src: src, width: width} }

// next begins the next run.
func (h *hybrid) next() error {
	header, n := binary.Uvarint(h.src)
	if n <= 0 || header>>1 > 1<<31 {
		return errShort
	}
	h.src = h.src[n:]
	if header&1 == 0 {
		bytes := int(h.width+7) / 8
		if len(h.src) < bytes {
			return errShort
		}
		h.run, h.packed, h.value = int(header>>1), nil, 0
		for i := range bytes {
			h.value |= int32(uint32(h.src[i]) << (8 * i))
		}
		h.src = h.src[bytes:]
		return nil
	}
	groups := int(header >> 1)
	size := groups * int(h.width)
	if size > len(h.src) { // the last group may be cut to the bytes that its values need
		size = len(h.src)
	}
	h.run, h.packed, h.bit = groups*8, h.src[:size:size], 0
	if h.width > 0 {
		h.run = min(h.run, size*8/int(h.width))
		h.src = h.src[size:]
		if h.run == 0 {
			return errShort
		}
		return nil
	}
	h.packed, h.value = nil, 0
	return nil
}

// read fills dst.
func (h *hybrid) read(dst []int32) error {
	for len(dst) > 0 {
		if h.run == 0 {
			if err := h.next(); err != nil {
				return err
			}
			continue
		}
		n := min(h.run, len(dst))
		if h.packed == nil {
			for i := range dst[:n] {
				dst[i] = h.value
			}
		} else {
			unpack(dst[:n], h.packed, h.bit, h.width)
			h.bit += uint(n) * h.width
		}
		h.run -= n
		dst = dst[n:]
	}
	return nil
}

// unpack reads values of width bits, up to 32, from bit on: of which src has enough.
func unpack(dst []int32, src []byte, bit, width uint) {
	mask := uint64(1)<<width - 1
	for i := range dst {
		at := bit >> 3
		if at+8 > uint(len(src)) {
			unpackEnd(dst[i:], src, bit, width)
			return
		}
		dst[i] = int32(binary.LittleEndian.Uint64(src[at:]) >> (bit & 7) & mask)
		bit += width
	}
}

// unpackEnd reads the last values, of which less than eight bytes are left.
func unpackEnd(dst []int32, src []byte, bit, width uint) {
	mask := uint64(1)<<width - 1
	for i := range dst {
		var word [8]byte
		copy(word[:], src[bit>>3:])
		dst[i] = int32(binary.LittleEndian.Uint64(word[:]) >> (bit & 7) & mask)
		bit += width
	}
}

// delta decodes DELTA_BINARY_PACKED, a miniblock at a time.
type delta struct {
	src    []byte
	left   int // values not handed out
	last   int64
	least  int64 // of the block at hand: the smallest difference
	widths []byte
	perM   int // values a miniblock
	minis  int // miniblocks a block
	first  bool
	held   []int64 // differences of the miniblock at hand
	buffer []int64
}

const deltaMostValues = 1 << 16 // a miniblock

// reset reads the header, which may promise at most most values.
func (d *delta) reset(src []byte, most int) error {
	var head [3]uint64
	for i := range head {
		v, n := binary.Uvarint(src)
		if n <= 0 || v > 1<<31 {
			return errShort
		}
		head[i], src = v, src[n:]
	}
	block, minis, total := int(head[0]), int(head[1]), int(head[2])
	first, n := binary.Varint(src)
	if n <= 0 {
		return errShort
	}
	if minis == 0 || block%minis != 0 || block/minis%8 != 0 || block == 0 || block/minis > deltaMostValues {
		return fmt.Errorf("a page of differences in blocks of %d values and %d parts", block, minis)
	}
	if total > most {
		return fmt.Errorf("a page of differences promises %d values where %d are", total, most)
	}
	*d = delta{src: src[n:], left: total, last: first, perM: block / minis, minis: minis, first: true, buffer: d.buffer}
	return nil
}

// next is the next value.
func (d *delta) next() (int64, error) {
	if d.left == 0 {
		return 0, errShort
	}
	d.left--
	if d.first {
		d.first = false
		return d.last, nil
	}
	if len(d.held) == 0 {
		if err := d.miniblock(); err != nil {
			return 0, err
		}
	}
	d.last += d.least + d.held[0]
	d.held = d.held[1:]
	return d.last, nil
}

// miniblock unpacks the next one.
func (d *delta) miniblock() error {
	width, packed, err := d.advance()
	if err != nil {
		return err
	}
	if cap(d.buffer) < d.perM {
		d.buffer = make([]int64, d.perM)
	}
	d.held = d.buffer[:d.perM]
	unpackWide(d.held, packed, width)
	return nil
}

// advance goes to the next miniblock, of which it returns the bits.
func (d *delta) advance() (width uint, packed []byte, err error) {
	if len(d.widths) == 0 {
		least, n := binary.Varint(d.src)
		if n <= 0 || len(d.src)-n < d.minis {
			return 0, nil, errShort
		}
		d.least, d.widths, d.src = least, d.src[n:n+d.minis], d.src[n+d.minis:]
	}
	width, d.widths = uint(d.widths[0]), d.widths[1:]
	size := d.perM * int(width) / 8
	if width > 64 || size > len(d.src) {
		return 0, nil, errShort
	}
	packed, d.src = d.src[:size], d.src[size:]
	return width, packed, nil
}

// rest is what follows the values, none of which has been handed out.
func (d *delta) rest() ([]byte, error) {
	c := *d
	for left := c.left - 1; left > 0; left -= c.perM {
		if _, _, err := c.advance(); err != nil {
			return nil, err
		}
	}
	return c.src, nil
}

// unpackWide reads values of width bits, up to 64.
func unpackWide(dst []int64, src []byte, width uint) {
	mask := ^uint64(0)
	if width < 64 {
		mask = 1<<width - 1
	}
	bit := uint(0)
	for i := range dst {
		var word [16]byte
		copy(word[:9], src[min(bit>>3, uint(len(src))):])
		low, shift := binary.LittleEndian.Uint64(word[:]), bit&7
		v := low >> shift
		if shift > 0 {
			v |= uint64(word[8]) << (64 - shift)
		}
		dst[i] = int64(v & mask)
		bit += width
	}
}
