package staging

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/objectstore/sparse"
)

// blockSize is the unit in which a spool takes over an older object's bytes.
// 128 KiB is one FUSE write of the default size: a program that rewrites a file
// from its start never makes the old bytes be fetched.
const blockSize = 128 << 10

// source is something to read from, shared by the layers that name it and
// closed with the last of them.
type source struct {
	file *os.File           // a spool, or what was one; nil: pin
	pin  objectstore.Pinned // an older object
	refs atomic.Int32
}

func newSource(file *os.File, pin objectstore.Pinned) *source {
	s := &source{file: file, pin: pin}
	s.refs.Store(1)
	return s
}

func (s *source) retain() *source {
	if s != nil {
		s.refs.Add(1)
	}
	return s
}

func (s *source) release() {
	if s == nil || s.refs.Add(-1) != 0 {
		return
	}
	if s.file != nil {
		_ = s.file.Close() // written bytes were reported by write and fsync
		return
	}
	_ = s.pin.Close()
}

func (s *source) readAt(ctx context.Context, p []byte, off int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(p, off)
	}
	return s.pin.ReadAt(ctx, p, off)
}

// nextData is the offset of the next byte at or past off that is not in a hole,
// as far as the source can tell; all between, to the source's end, is zero.
func (s *source) nextData(ctx context.Context, off int64) (int64, error) {
	if s.file != nil {
		return sparse.NextData(s.file, off), nil
	}
	if d, ok := s.pin.(objectstore.DataSeeker); ok {
		return d.NextData(ctx, off)
	}
	return off, nil
}

// layer is what a file consists of at one moment: a spool over an older object.
// Readers take a reference and need no lock while they read; only who holds the
// file's write lock puts another layer in its place.
type layer struct {
	spool    *source // nil: nothing was written since base was published
	base     *source // nil: the spool has everything
	baseSize int64   // bytes of base that count
	have     bitmap  // blocks of [0, baseSize) that the spool has
	refs     atomic.Int32
}

func newLayer(spool, base *source, baseSize int64) *layer {
	l := &layer{spool: spool, base: base, baseSize: baseSize}
	if base != nil {
		l.have.reset(baseSize)
	}
	l.refs.Store(1)
	return l
}

func (l *layer) release() {
	if l != nil && l.refs.Add(-1) == 0 {
		l.spool.release()
		l.base.release()
	}
}

// whole tells whether the spool has every byte.
func (l *layer) whole() bool {
	return l.spool != nil && l.have.missing.Load() == 0
}

// readAt fills p, which must not reach past the file's end, from off on.
func (l *layer) readAt(ctx context.Context, p []byte, off int64) (int, error) {
	if l.whole() {
		return l.spool.readAt(ctx, p, off)
	}
	n := 0
	for n < len(p) {
		part := p[n:]
		end, has := l.have.run(off / blockSize)
		if left := end*blockSize - off; int64(len(part)) > left {
			part = part[:left]
		}
		m, err := l.readRun(ctx, part, off, has)
		n += m
		off += int64(m)
		if m < len(part) {
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return n, err
		}
	}
	return n, nil
}

// readRun reads a run of blocks that all are in the spool, or all in base. What
// lies past base's end in its last block is zero: a write there would have
// brought the block into the spool.
func (l *layer) readRun(ctx context.Context, p []byte, off int64, inSpool bool) (int, error) {
	if inSpool && l.spool != nil {
		return l.spool.readAt(ctx, p, off)
	}
	fromBase := p
	if left := max(l.baseSize-off, 0); int64(len(p)) > left {
		fromBase = p[:left]
	}
	n, err := l.base.readAt(ctx, fromBase, off)
	if n < len(fromBase) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return n, err
	}
	clear(p[n:])
	return len(p), nil
}

// bitmap tells which blocks of an older object the spool has taken over. Blocks
// past its end are the spool's by themselves. Bits are only ever set, by the
// holder of the write lock; readers may look at any time.
type bitmap struct {
	words   []atomic.Uint64
	blocks  int64
	missing atomic.Int64
}

// reset makes the bitmap that of an object of size bytes, none of them here.
func (b *bitmap) reset(size int64) {
	b.blocks = blocksOf(size)
	b.words = make([]atomic.Uint64, (b.blocks+63)/64)
	b.missing.Store(b.blocks)
}

// copy makes the bitmap, of an object of the same size, say what o does.
func (b *bitmap) copy(o *bitmap) {
	for i := range o.words {
		b.words[i].Store(o.words[i].Load())
	}
	b.missing.Store(o.missing.Load())
}

// blocksOf counts the blocks of size bytes.
func blocksOf(size int64) int64 { return (size + blockSize - 1) / blockSize }

func (b *bitmap) has(block int64) bool {
	return block >= b.blocks || b.words[block/64].Load()>>(block%64)&1 == 1
}

// set marks [from, to) and tells how many blocks were not marked before.
func (b *bitmap) set(from, to int64) (added int64) {
	for block := from; block < min(to, b.blocks); block++ {
		if bit := uint64(1) << (block % 64); b.words[block/64].Or(bit)&bit == 0 {
			added++
		}
	}
	b.missing.Add(-added)
	return added
}

// run tells whether the spool has block, and where (exclusive) the blocks end
// of which the same is true.
func (b *bitmap) run(block int64) (end int64, has bool) {
	has = b.has(block)
	if block >= b.blocks {
		return 1 << 44, true // past 2^61 bytes
	}
	end = block + 1
	for end < b.blocks && b.has(end) == has {
		end++
	}
	return end, has
}
