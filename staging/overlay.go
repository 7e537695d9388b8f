package staging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lakefs-mount/lakefs-mount/objectstore/sparse"
)

// fillBlocks of an older object are in memory while a spool is filled.
const fillBlocks = 8

// fetchEdges brings those blocks of the older object into the spool that a
// write of [off, end) covers in part.
func (f *File) fetchEdges(ctx context.Context, off, end int64) error {
	first, last := off/blockSize, (end-1)/blockSize
	if err := f.fetchEdge(ctx, first, off, end); err != nil || first == last {
		return err
	}
	return f.fetchEdge(ctx, last, off, end)
}

func (f *File) fetchEdge(ctx context.Context, block, off, end int64) error {
	l := f.cur
	from, to := block*blockSize, min((block+1)*blockSize, l.baseSize)
	if l.have.has(block) || off <= from && end >= to {
		return nil
	}
	return f.fetch(ctx, from, to)
}

// fetch copies [from, to) of the older object, at most a block, into the spool.
func (f *File) fetch(ctx context.Context, from, to int64) error {
	buf, _ := f.area.pool.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
		*buf = make([]byte, blockSize)
	}
	defer f.area.pool.Put(buf)
	src := newRun(f.cur.base, to)
	defer src.close()
	return copyRange(ctx, copyArgs{dst: f.cur.spool.file, at: from, src: src, from: from, n: to - from, buf: *buf})
}

type copyArgs struct {
	dst  *os.File
	at   int64
	src  *run
	from int64
	n    int64
	buf  []byte
}

// copyRange copies n bytes of src from from on to dst at at. What is zero stays
// a hole, or becomes one: dst is as long as the copy's end already. Zeros are
// not taken for there because dst should have none: a write that a crash cut
// off may have left its bytes in a block that is not marked.
func copyRange(ctx context.Context, c copyArgs) error {
	for done := int64(0); done < c.n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := c.src.src.nextData(ctx, c.from+done)
		if err != nil {
			return err
		}
		if hole := min(data-c.from, c.n) - done; hole > 0 {
			if err = sparse.Zero(c.dst, c.at+done, hole); err != nil {
				return err
			}
			done += hole
			continue
		}
		part := c.buf[:min(int64(len(c.buf)), c.n-done)]
		m, err := c.src.readAt(ctx, part, c.from+done)
		if m < len(part) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if err := sparse.WriteAt(c.dst, part, c.at+done); err != nil {
			return err
		}
		done += int64(m)
	}
	return nil
}

// mark notes that the spool has the blocks [from, to), in memory and for a
// recovery. The bytes are in the spool before: killed in between, the file
// reads as if the write, which nobody acknowledged, had not been.
func (f *File) mark(from, to int64) error {
	to = min(to, f.cur.have.blocks)
	if from >= to || f.cur.have.set(from, to) == 0 {
		return nil
	}
	for int64(len(f.ones)) < to-from {
		f.ones = append(f.ones, 1)
	}
	if err := f.area.step("write", blocksName); err != nil {
		return err
	}
	_, err := f.blocks.WriteAt(f.ones[:to-from], from)
	return err
}

// fill brings every block into the spool that it does not have yet.
func (f *File) fill(ctx context.Context) error {
	l := f.cur
	if l.spool == nil || l.whole() {
		return nil
	}
	return f.fillBlocks(ctx, 0, l.have.blocks)
}

// fillSpan is fill for the blocks that have a byte of [from, to).
func (f *File) fillSpan(ctx context.Context, from, to int64) error {
	if f.cur.whole() {
		return nil
	}
	return f.fillBlocks(ctx, from/blockSize, min(blocksOf(to), f.cur.have.blocks))
}

func (f *File) fillBlocks(ctx context.Context, from, to int64) error {
	var buf []byte
	for from < to {
		end, has := f.cur.have.run(from)
		end = min(end, to)
		if !has {
			if buf == nil {
				buf = make([]byte, fillBlocks*blockSize)
			}
			if err := f.fillRun(ctx, from, end, buf); err != nil {
				return fmt.Errorf("fill %s from its older object: %w", f.id, err)
			}
		}
		from = end
	}
	return nil
}

// fillRun is fill for the blocks [from, end), all of which are missing: by one
// request where the older object is not on this host.
func (f *File) fillRun(ctx context.Context, from, end int64, buf []byte) error {
	src := newRun(f.cur.base, min(end*blockSize, f.cur.baseSize))
	defer src.close()
	for from < end {
		to, err := f.fillSome(ctx, src, from, end, buf)
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

// fillSome is fill for the first of the blocks [from, end), a buffer's worth or
// a hole of the older object; it tells where they end.
func (f *File) fillSome(ctx context.Context, src *run, from, end int64, buf []byte) (to int64, err error) {
	l, start := f.cur, from*blockSize
	data, err := l.base.nextData(ctx, start)
	if err != nil {
		return 0, err
	}
	to = min(end, max(from+fillBlocks, data/blockSize))
	n := min(to*blockSize, l.baseSize) - start
	if err := copyRange(ctx, copyArgs{dst: l.spool.file, at: start, src: src, from: start, n: n, buf: buf}); err != nil {
		return 0, err
	}
	if err := f.mark(from, to); err != nil {
		return 0, ioError("fill", f.id, err)
	}
	return to, nil
}

// fillSpool is fill; a full disk poisons the file as in a write.
func (f *File) fillSpool(ctx context.Context) error {
	err := f.fill(ctx)
	if err != nil && isNoSpace(err) {
		return f.fail(ctx, "fill", err)
	}
	return err
}
