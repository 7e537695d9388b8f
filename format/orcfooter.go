package format

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

const (
	// orcCompressed and orcDecompressed are how long a footer that is compressed may be,
	// before and after, to be looked into: one in some hundreds of thousands of stripes
	// and columns is not. It is held in memory.
	orcCompressed   = 1 << 20
	orcDecompressed = 4 << 20

	orcStruct = 12 // kind of type
)

// footer reads the footer: what is compressed, chunk by chunk.
func (o *orcTail) footer() {
	if o.err != nil {
		return
	}
	start := o.footerEnd - int64(o.length)
	o.section("the footer", start, o.footerEnd)
	if o.compression == orcUncompressed {
		f := orcFooter{proto: o.proto, dataEnd: uint64(start), at: start}
		f.read()
		o.rows, o.told = f.rows, f.told
		return
	}
	unpack := o.unpacker()
	var plain []byte
	for o.err == nil && o.off < o.end {
		var header [3]byte // the chunk's length, doubled; odd if it is not compressed after all
		at := o.off
		o.bytes(header[:])
		n := uint64(header[0]) | uint64(header[1])<<8 | uint64(header[2])<<16
		if n>>1 == 0 {
			o.failf("byte %d: a chunk of the footer with nothing in it: damaged, write it again", at)
		}
		if o.skip(n >> 1); o.err != nil || unpack == nil {
			continue
		}
		chunk := make([]byte, n>>1)
		o.section(o.what, o.off-int64(n>>1), o.end)
		if o.bytes(chunk); n&1 == 0 {
			var err error
			if chunk, err = unpack(chunk); err != nil {
				o.failf("byte %d: a chunk of the footer, of %d bytes, can not be decompressed (%v): damaged, write it again", at, n>>1, err)
			}
		}
		if plain = append(plain, chunk...); len(plain) > orcDecompressed {
			unpack = nil
		}
	}
	if o.err != nil || unpack == nil {
		return
	}
	c := head(bytes.NewReader(plain), int64(len(plain)))
	c.section("the decompressed footer", 0, int64(len(plain)))
	f := orcFooter{proto: proto{c}, dataEnd: uint64(start), at: start}
	f.read()
	o.err, o.rows, o.told = c.err, f.rows, f.told
}

var errORCBlock = errors.New("longer than the block size")

// unpacker decompresses one chunk. nil: the footer is not to be looked into.
func (o *orcTail) unpacker() func([]byte) ([]byte, error) {
	if o.length > orcCompressed || o.block > orcDecompressed {
		return nil
	}
	most := int(o.block)
	switch o.compression {
	case orcZlib: // raw
		return func(chunk []byte) ([]byte, error) {
			return atMost(io.LimitReader(flate.NewReader(bytes.NewReader(chunk)), int64(most)+1), most)
		}
	case orcSnappy:
		return func(chunk []byte) ([]byte, error) {
			if n, err := snappy.DecodedLen(chunk); err != nil || n > most {
				return nil, errors.Join(err, errORCBlock)
			}
			return snappy.Decode(nil, chunk)
		}
	case orcLZ4:
		return func(chunk []byte) ([]byte, error) {
			plain := make([]byte, most)
			n, err := lz4.UncompressBlock(chunk, plain)
			return plain[:max(n, 0)], err
		}
	case orcZstd:
		return func(chunk []byte) ([]byte, error) {
			r, err := zstd.NewReader(bytes.NewReader(chunk), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(2*orcDecompressed))
			if err != nil {
				return nil, err
			}
			defer r.Close()
			return atMost(io.LimitReader(r, int64(most)+1), most)
		}
	}
	return nil
}

// atMost reads all of r.
func atMost(r io.Reader, most int) ([]byte, error) {
	plain, err := io.ReadAll(r)
	if err == nil && len(plain) > most {
		err = errORCBlock
	}
	return plain, err
}

// orcFooter reads a footer: the stripes must lie before it, and the types be one tree.
type orcFooter struct {
	proto
	dataEnd uint64 // offset of the footer in the file
	at      int64  // the same, for people
	types   uint64 // so far
	newest  uint64 // the last type that one before it has as a child
	links   uint64 // to children, so far
	rows    int64
	told    bool // how many rows there are
}

// read reads the stripes (3), the types (4), metadata (5), the number of rows (6) and
// statistics (7).
func (f *orcFooter) read() {
	f.fields(func(id uint64, wire byte) bool {
		switch {
		case id == 6 && wire == protoVarint:
			f.rows, f.told = int64(f.uvarint()), true
			if f.rows < 0 {
				f.failf("the footer at byte %d tells of more rows than can be: damaged, write it again", f.at)
			}
		case wire != protoBytes:
			return false
		case id == 3:
			f.message("a stripe's place", f.stripe())
		case id == 4:
			f.typ()
		case id == 5:
			f.message("metadata of the footer", func(uint64, byte) bool { return false })
		case id == 7:
			f.message("statistics of the footer", func(_ uint64, wire byte) bool {
				if wire != protoBytes {
					return false
				}
				f.message("statistics of the footer", func(uint64, byte) bool { return false })
				return true
			})
		default:
			return false
		}
		return true
	})
	if f.types == 0 {
		f.failf("the footer at byte %d has no schema: damaged, write it again", f.at)
	}
	if f.newest >= max(f.types, 1) || f.links != f.types-1 {
		f.failf("the schema in the footer at byte %d is no tree of columns: damaged, write it again", f.at)
	}
}

// typ reads a type: its kind (1), which of the types are its children (2) and, of a
// struct, their names (3). Children come behind their parents.
func (f *orcFooter) typ() {
	var kind, children, names uint64
	at := f.off
	f.message("the schema", func(id uint64, wire byte) bool {
		switch {
		case id == 1 && wire == protoVarint:
			kind = f.uvarint()
		case id == 2 && (wire == protoVarint || wire == protoBytes):
			f.numbers(wire, func(n uint64) {
				if children++; n <= f.types {
					f.failf("the schema is damaged: type %d is part of type %d", n, f.types)
				}
				f.newest = max(f.newest, n)
			})
		case id == 3 && wire == protoBytes:
			names++
			f.skip(f.uvarint())
		default:
			return false
		}
		return true
	})
	if kind == orcStruct && children != names {
		f.failf("the schema is damaged: type %d at byte %d has %d columns and %d names", f.types, at, children, names)
	}
	f.links += children
	f.types++
}

// stripe reads where one is: its offset (1) and the lengths of index (2), data (3) and
// footer (4).
func (f *orcFooter) stripe() func(id uint64, wire byte) bool {
	left := f.dataEnd
	return func(id uint64, wire byte) bool {
		if id < 1 || id > 4 || wire != protoVarint {
			return false
		}
		at := f.off
		n := f.uvarint()
		if n > left {
			f.failf("byte %d: a stripe that ends %d bytes behind its data's end, at byte %d: damaged, or put together of parts of which one is missing",
				at, n-left, f.dataEnd)
			return true
		}
		left -= n
		return true
	}
}
