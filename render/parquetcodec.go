package render

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	pq "github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// decompressor decodes pages. What a page decodes to is never longer than its header
// says, which is checked before.
type decompressor struct {
	zstd   *zstd.Decoder
	gzip   *gzip.Reader
	brotli *brotli.Reader
}

// close gives back what the decoders hold.
func (d *decompressor) close() {
	if d.zstd != nil {
		d.zstd.Close()
	}
}

// decode fills dst with what src decodes to; it must be as long.
func (d *decompressor) decode(codec pq.CompressionCodec, dst, src []byte) error {
	switch codec {
	case pq.Snappy:
		if n, err := snappy.DecodedLen(src); err != nil || n != len(dst) {
			return wrongLength(n, len(dst), err)
		}
		if _, err := snappy.Decode(dst, src); err != nil {
			return wrongLength(0, len(dst), err)
		}
		return nil
	case pq.Zstd:
		return d.decodeZstd(dst, src)
	case pq.Gzip:
		return d.decodeGzip(dst, src)
	case pq.Brotli:
		if d.brotli == nil {
			d.brotli = brotli.NewReader(nil)
		}
		if err := d.brotli.Reset(bytes.NewReader(src)); err != nil {
			return err
		}
		return readExactly(d.brotli, dst)
	case pq.Lz4Raw:
		n, err := lz4.UncompressBlock(src, dst)
		if err != nil || n != len(dst) {
			return wrongLength(n, len(dst), err)
		}
		return nil
	case pq.Lz4:
		if decodeHadoop(dst, src) == nil {
			return nil
		}
		return d.decode(pq.Lz4Raw, dst, src) // some writers left the frame out
	}
	return &Error{Reason: fmt.Sprintf("its pages are compressed by %s, which is not known", codec)}
}

func (d *decompressor) decodeZstd(dst, src []byte) error {
	if d.zstd == nil {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
		if err != nil {
			return err
		}
		d.zstd = z
	}
	out, err := d.zstd.DecodeAll(src, dst[:0:len(dst)])
	if err != nil || len(out) != len(dst) {
		return wrongLength(len(out), len(dst), err)
	}
	return nil
}

func (d *decompressor) decodeGzip(dst, src []byte) (err error) {
	if d.gzip == nil {
		d.gzip, err = gzip.NewReader(bytes.NewReader(src))
	} else {
		err = d.gzip.Reset(bytes.NewReader(src))
	}
	if err != nil {
		return err
	}
	return readExactly(d.gzip, dst)
}

// readExactly fills dst, after which r must end.
func readExactly(r io.Reader, dst []byte) error {
	if n, err := io.ReadFull(r, dst); err != nil {
		return wrongLength(n, len(dst), err)
	}
	var more [1]byte
	if n, err := io.ReadFull(r, more[:]); n > 0 || !errors.Is(err, io.EOF) {
		return wrongLength(len(dst)+n, len(dst), err)
	}
	return nil
}

func wrongLength(got, want int, err error) error {
	if err == nil {
		return fmt.Errorf("a page decodes to %d bytes, its header says %d", got, want)
	}
	return fmt.Errorf("a page does not decode to its %d bytes: %w", want, err)
}

// decodeHadoop decodes blocks of LZ4 as Hadoop frames them: the length of what follows
// decoded, its length, itself.
func decodeHadoop(dst, src []byte) error {
	for len(dst) > 0 {
		if len(src) < 8 {
			return errShort
		}
		decoded, size := binary.BigEndian.Uint32(src), binary.BigEndian.Uint32(src[4:])
		src = src[8:]
		if uint64(decoded) > uint64(len(dst)) || uint64(size) > uint64(len(src)) {
			return errShort
		}
		n, err := lz4.UncompressBlock(src[:size], dst[:decoded])
		if err != nil || n != int(decoded) {
			return wrongLength(n, int(decoded), err)
		}
		dst, src = dst[decoded:], src[size:]
	}
	return nil
}
