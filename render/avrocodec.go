package render

import (
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// errTooLarge: a block that unpacks to more than maxAvroBlock.
var errTooLarge = fmt.Errorf("more than %d MiB unpacked", maxAvroBlock>>20)

// avroCodec unpacks blocks into memory that it keeps.
type avroCodec struct {
	unpack func(src []byte) ([]byte, error) // until the next call
	close  func()
}

func newAvroCodec(name string) (avroCodec, error) {
	c := avroCodec{close: func() {}}
	var buf []byte
	switch name {
	case "null":
		c.unpack = func(src []byte) ([]byte, error) { return src, nil }
	case "deflate":
		r := flate.NewReader(nil)
		c.unpack = func(src []byte) (out []byte, err error) {
			if err = r.(flate.Resetter).Reset(bytes.NewReader(src), nil); err == nil {
				buf, err = readBounded(buf[:0], r)
			}
			return buf, err
		}
	case "bzip2":
		c.unpack = func(src []byte) (out []byte, err error) {
			buf, err = readBounded(buf[:0], bzip2.NewReader(bytes.NewReader(src)))
			return buf, err
		}
	case "snappy":
		c.unpack = func(src []byte) (out []byte, err error) {
			buf, err = unsnap(buf, src)
			return buf, err
		}
	case "zstandard":
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return c, err
		}
		c.close = d.Close
		c.unpack = func(src []byte) (out []byte, err error) {
			for {
				out, err = d.DecodeAll(src, buf[:0])
				if !errors.Is(err, zstd.ErrDecoderSizeExceeded) || len(src) == 0 {
					return out, err
				}
				if buf, err = moreRoom(buf[:0]); err != nil {
					return nil, err
				}
			}
		}
	default:
		return c, &Error{Reason: fmt.Sprintf("its codec is %.40q; rows are shown of null, deflate, snappy, zstandard and bzip2", name), Remedy: "write the file with one of these"}
	}
	return c, nil
}

// readBounded reads r to its end, into dst.
func readBounded(dst []byte, r io.Reader) ([]byte, error) {
	for {
		if len(dst) == cap(dst) {
			var err error
			if dst, err = moreRoom(dst); err != nil {
				return dst, err
			}
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case errors.Is(err, io.EOF):
			return dst, nil
		case err != nil:
			return dst, err
		}
	}
}

// moreRoom returns b in a larger memory. It grows in great steps, for while it grows both
// are held.
func moreRoom(b []byte) ([]byte, error) {
	if cap(b) > maxAvroBlock {
		return b, errTooLarge
	}
	grown := make([]byte, len(b), min(max(4*cap(b), 1<<20), maxAvroBlock+1))
	copy(grown, b)
	return grown, nil
}

// unsnap unpacks a block of snappy, which a checksum of what is unpacked follows.
func unsnap(buf, src []byte) ([]byte, error) {
	if len(src) < crc32.Size {
		return buf, errMore
	}
	packed, sum := src[:len(src)-crc32.Size], binary.BigEndian.Uint32(src[len(src)-crc32.Size:])
	n, err := snappy.DecodedLen(packed)
	switch {
	case err != nil:
		return buf, err
	case n > maxAvroBlock:
		return buf, errTooLarge
	}
	out, err := snappy.Decode(buf[:cap(buf)], packed)
	switch {
	case err != nil:
		return buf, err
	case crc32.ChecksumIEEE(out) != sum:
		return buf, errors.New("its checksum is wrong")
	}
	return out, nil
}
