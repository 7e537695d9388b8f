package render

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	pq "github.com/parquet-go/parquet-go/format"
)

// values hands out the values of one page, in order, as bytes that PLAIN would have. A
// value holds until the next is asked for.
type values struct {
	how    coding
	data   []byte                         // not handed out
	more   io.Reader                      // of what follows data, in a page that is decoded bit by bit
	left   int                            // bytes of that
	again  func(done int) ([]byte, error) // decodes such a page whole, and returns what follows done bytes
	done   int                            // of such a page: bytes read from more
	window []byte                         // memory of data
	width  int                            // of a value with codingFixed
	index  hybrid                         // of codingDictionary and codingRuns
	bit    uint                           // of codingBits
	first  delta                          // numbers, lengths or lengths of prefixes
	second delta                          // lengths of suffixes
	last   []byte                         // the value handed out last, where the next one begins as it does
	word   [8]byte
}

type coding uint8

const (
	codingFixed      coding = iota // values of one width
	codingSized                    // each after its length
	codingBits                     // booleans
	codingRuns                     // booleans as hybrid
	codingDictionary               // indexes
	codingDelta                    // integers of width bytes
	codingLengths                  // all lengths, then the bytes
	codingPrefixes                 // lengths of prefixes and of suffixes, then those
)

// plainDictionary is what older writers call RLE_DICTIONARY, and PLAIN of a dictionary.
const plainDictionary pq.Encoding = 2

const parquetMaxValue = 128 << 20 // bytes; of codingPrefixes, where a page says more than it holds

// widthOf is how many bytes a value of a physical type has, 0 where they differ.
func widthOf(info *leafInfo) int {
	switch info.physical {
	case pq.Int32, pq.Float:
		return 4
	case pq.Int64, pq.Double:
		return 8
	case pq.Int96:
		return 12
	case pq.FixedLenByteArray:
		return info.size
	}
	return 0
}

// reset begins the values of a page, of which there are at most most.
func (v *values) reset(encoding pq.Encoding, data []byte, info *leafInfo, most int) error {
	v.data, v.width, v.bit, v.last, v.more, v.left = data, widthOf(info), 0, v.last[:0], nil, 0
	switch encoding {
	case pq.Plain:
		v.how = codingFixed
		switch info.physical {
		case pq.Boolean:
			v.how = codingBits
		case pq.ByteArray:
			v.how = codingSized
		}
		return nil
	case pq.RLEDictionary, plainDictionary:
		v.how = codingDictionary
		if len(data) == 0 {
			v.index.reset(nil, 0)
			return nil
		}
		if data[0] > 32 {
			return fmt.Errorf("a page of indexes of %d bits", data[0])
		}
		v.index.reset(data[1:], uint(data[0]))
		return nil
	}
	return v.resetTyped(encoding, info, most)
}

// resetTyped is reset for encodings that only some types have.
func (v *values) resetTyped(encoding pq.Encoding, info *leafInfo, most int) error {
	p := info.physical
	array := p == pq.ByteArray || p == pq.FixedLenByteArray
	switch {
	case encoding == pq.RLE && p == pq.Boolean:
		if len(v.data) < 4 || uint64(binary.LittleEndian.Uint32(v.data)) > uint64(len(v.data)-4) {
			return errShort
		}
		v.how = codingRuns
		v.index.reset(v.data[4:4+binary.LittleEndian.Uint32(v.data)], 1)
		return nil
	case encoding == pq.DeltaBinaryPacked && (p == pq.Int32 || p == pq.Int64):
		v.how = codingDelta
		return v.first.reset(v.data, most)
	case encoding == pq.DeltaLengthByteArray && p == pq.ByteArray:
		v.how = codingLengths
		return v.lengths(&v.first, most)
	case encoding == pq.DeltaByteArray && array:
		v.how = codingPrefixes
		if err := v.lengths(&v.first, most); err != nil {
			return err
		}
		return v.lengths(&v.second, most)
	case encoding == pq.ByteStreamSplit && v.width > 0 && p != pq.Int96:
		v.how = codingFixed
		v.data = joinStreams(v.data, v.width)
		return nil
	}
	return fmt.Errorf("a page of %s in encoding %s, which is not known", p, encoding)
}

// lengths begins lengths, and leaves in data what follows them.
func (v *values) lengths(d *delta, most int) (err error) {
	if err = d.reset(v.data, most); err == nil {
		v.data, err = d.rest()
	}
	return err
}

// joinStreams puts the bytes of each value together, which are in streams of their own.
func joinStreams(data []byte, width int) []byte {
	n := len(data) / width
	out := make([]byte, n*width)
	for s := range width {
		stream := data[s*n : (s+1)*n]
		for i, b := range stream {
			out[i*width+s] = b
		}
	}
	return out
}

// next is the next value; not of codingDictionary.
func (v *values) next() ([]byte, error) {
	switch v.how {
	case codingFixed:
		return v.take(v.width)
	case codingSized:
		if len(v.data) >= 4 {
			n := uint64(binary.LittleEndian.Uint32(v.data))
			if n <= uint64(len(v.data)-4) {
				raw := v.data[4 : 4+n]
				v.data = v.data[4+n:]
				return raw, nil
			}
		}
		return v.sized()
	case codingBits:
		if v.bit>>3 >= uint(len(v.data)) {
			v.data, v.bit = nil, 0
			if err := v.fill(1); err != nil {
				return nil, err
			}
			if len(v.data) == 0 {
				return nil, errShort
			}
		}
		v.word[0] = v.data[v.bit>>3] >> (v.bit & 7) & 1
		v.bit++
		return v.word[:1], nil
	case codingRuns:
		var one [1]int32
		err := v.index.read(one[:])
		v.word[0] = byte(one[0])
		return v.word[:1], err
	case codingDelta:
		n, err := v.first.next()
		binary.LittleEndian.PutUint64(v.word[:], uint64(n))
		return v.word[:v.width], err
	case codingLengths:
		n, err := v.first.next()
		if err != nil {
			return nil, err
		}
		return v.take(int(n))
	}
	return v.nextPrefixed()
}

// take is the next n bytes.
func (v *values) take(n int) ([]byte, error) {
	if n < 0 || n > len(v.data) {
		if err := v.fill(n); err != nil {
			return nil, err
		}
		if n > len(v.data) {
			return nil, errShort
		}
	}
	raw := v.data[:n]
	v.data = v.data[n:]
	return raw, nil
}

// sized is the next value after its length.
func (v *values) sized() ([]byte, error) {
	head, err := v.take(4)
	if err != nil {
		return nil, err
	}
	return v.take(int(binary.LittleEndian.Uint32(head)))
}

// fill has at least n bytes of data, of a page that is decoded bit by bit.
func (v *values) fill(n int) error {
	lacks := n - len(v.data)
	if n < 0 || v.more == nil || lacks > v.left {
		return errShort
	}
	size := max(n, min(len(v.data)+v.left, min(max(2*len(v.window), windowLeast), windowMost)))
	into := v.window
	if len(into) < size {
		into = make([]byte, size)
	}
	kept := copy(into, v.data)
	got, err := io.ReadAtLeast(v.more, into[kept:min(len(into), kept+v.left)], lacks)
	if err != nil {
		return v.whole(err, into[:kept])
	}
	v.window, v.data = into, into[:kept+got]
	v.left -= got
	v.done += got
	return nil
}

// whole has all that is left of a page at once: it is not to be had bit by bit.
func (v *values) whole(because error, held []byte) error {
	if f := (*fetchError)(nil); errors.As(because, &f) || errors.Is(because, context.Canceled) || errors.Is(because, context.DeadlineExceeded) {
		return because
	}
	rest, err := v.again(v.done)
	if err != nil {
		return err
	}
	v.data, v.more, v.left = append(bytes.Clone(held), rest...), nil, 0
	return nil
}

func (v *values) nextPrefixed() ([]byte, error) {
	prefix, err := v.first.next()
	if err != nil {
		return nil, err
	}
	n, err := v.second.next()
	if err != nil {
		return nil, err
	}
	if prefix < 0 || prefix > int64(len(v.last)) || prefix+n > parquetMaxValue {
		return nil, fmt.Errorf("a value that begins as the first %d bytes of the one before, which has %d", prefix, len(v.last))
	}
	suffix, err := v.take(int(n))
	if err != nil {
		return nil, err
	}
	v.last = append(v.last[:prefix], suffix...)
	if v.width > 0 && len(v.last) != v.width {
		return nil, fmt.Errorf("a value of %d bytes where each has %d", len(v.last), v.width)
	}
	return v.last, nil
}

// dictionary is a column chunk's, with the texts of those values that were met.
type dictionary struct {
	data  []byte // as PLAIN has them
	width int    // of a value; 0: raw tells where each is, after its length
	raw   []uint32
	size  int    // values
	at    []span // in text, of no bytes: not made yet; nil: none is kept
	text  []byte
}

// newDictionary is of n values in data, which it keeps, for a chunk of so many rows. Texts
// are kept where values come again.
func newDictionary(data []byte, n int, info *leafInfo, rows int64) (*dictionary, error) {
	d := &dictionary{data: data, width: widthOf(info), size: n}
	switch {
	case info.physical == pq.Boolean:
		return nil, fmt.Errorf("a dictionary of %s", info.physical)
	case d.width > 0 && n > len(data)/d.width, d.width == 0 && n > len(data)/4 && info.physical == pq.ByteArray:
		return nil, fmt.Errorf("a dictionary promises %d values in %d bytes", n, len(data))
	}
	if info.physical == pq.ByteArray {
		d.raw = make([]uint32, 0, n)
		for at := 0; len(d.raw) < n; {
			if at+4 > len(data) {
				return nil, errShort
			}
			size := binary.LittleEndian.Uint32(data[at:])
			if uint64(size) > uint64(len(data)-at-4) {
				return nil, errShort
			}
			d.raw = append(d.raw, uint32(at))
			at += 4 + int(size)
		}
	}
	if int64(n) <= rows/2 {
		d.at = make([]span, n)
	}
	return d, nil
}

// value is value i, as PLAIN has it.
func (d *dictionary) value(i int) []byte {
	if d.raw == nil {
		return d.data[i*d.width : (i+1)*d.width]
	}
	at := d.raw[i]
	return d.data[at+4 : at+4+binary.LittleEndian.Uint32(d.data[at:])]
}

// make makes the text of value i.
func (d *dictionary) make(i int, as put) span {
	start := len(d.text)
	d.text = as(d.text, d.value(i))
	d.at[i] = span{uint32(start), uint32(len(d.text) - start)}
	return d.at[i]
}
