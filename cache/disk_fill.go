package cache

import (
	"context"
	"io"
	"slices"
	"sync"
)

// filled is a block on its way to the disk: bodies that pass put their pieces of it
// together, for a fetch ends where it likes, and what is whole is written.
type filled struct {
	id    blockID
	of    *diskFile // of a whole block
	buf   []byte    // the file's bytes: header and block
	count int64     // bytes that the budget has counted

	// Guarded by Disk.mu.
	bodies int   // that fill it
	order  int64 // of its begin

	mu struct {
		sync.Mutex
		have []piece // of the block, in order, apart from one another
		done bool    // it is whole, and somebody hands it over
	}
}

// piece is a range of bytes of a block.
type piece struct{ from, to int64 }

// add copies bytes that begin at from; whole: they were the last that the block
// lacked.
func (b *filled) add(from int64, p []byte) (whole bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.done {
		return false
	}
	copy(b.buf[headerSize+from:], p)
	b.mu.have = join(b.mu.have, piece{from, from + int64(len(p))})
	b.mu.done = b.mu.have[0] == piece{0, int64(len(b.buf)) - headerSize}
	return b.mu.done
}

// join adds a piece to pieces that are apart.
func join(have []piece, p piece) []piece {
	for i := 0; i < len(have); {
		if have[i].to < p.from || p.to < have[i].from {
			i++
			continue
		}
		p = piece{min(p.from, have[i].from), max(p.to, have[i].to)}
		have = slices.Delete(have, i, i+1)
	}
	at := 0
	for at < len(have) && have[at].from < p.from {
		at++
	}
	return slices.Insert(have, at, p)
}

// fill opens a range of the store, and keeps the blocks that it brings.
func (f *diskFile) fill(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	size := f.disk.blockSize
	f.disk.misses.Add((off+n-1)/size - off/size + 1)
	body, err := f.fetch(ctx, off, n)
	if err != nil {
		return nil, err
	}
	return &fillBody{ReadCloser: body, f: f, off: off, end: off + n, index: -1, begin: func(index int64) *filled {
		return f.disk.begun(ctx, f.blockID(index), f.length(index))
	}}, nil
}

// fillBody copies what passes through it. It belongs to one goroutine.
type fillBody struct {
	io.ReadCloser

	f        *diskFile
	off, end int64
	index    int64   // of the block that off is in; -1: at the begin
	block    *filled // nil: it is left out
	begin    func(index int64) *filled
}

// Read is io.Reader's.
func (b *fillBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.copy(p[:n])
	return n, err
}

func (b *fillBody) copy(p []byte) {
	p = p[:min(int64(len(p)), b.end-b.off)] // the cache refuses a body that is too long
	for len(p) > 0 {
		index := b.off / b.f.disk.blockSize
		within := b.off - index*b.f.disk.blockSize
		length := b.f.length(index)
		if index != b.index {
			b.enter(index, within, length)
		}
		n := min(int64(len(p)), length-within)
		if b.block != nil && b.block.add(within, p[:n]) {
			b.block.of = b.f
			b.f.disk.handOver(b.block)
			b.block = nil
		}
		p = p[n:]
		b.off += n
	}
}

// enter begins with a block, or goes on with what other bodies began. A piece from
// the middle of a block, as random reads bring, is left out: nobody brings the rest.
func (b *fillBody) enter(index, within, length int64) {
	b.leave()
	b.index = index
	if within > 0 && b.end-b.off < length-within || b.f.disk.has(b.f.blockID(index)) {
		return
	}
	if b.block = b.begin(index); b.block == nil {
		b.f.disk.dropped.Add(1)
	}
}

func (b *fillBody) leave() {
	if b.block != nil {
		b.f.disk.left(b.block)
		b.block = nil
	}
}

// Close is io.Closer's.
func (b *fillBody) Close() error {
	b.leave()
	return b.ReadCloser.Close()
}

// begun returns the block that others began, or memory for a new one; nil: there is
// none.
func (d *Disk) begun(ctx context.Context, id blockID, n int64) *filled {
	d.mu.Lock()
	b := d.mu.begun[id]
	if b != nil {
		b.bodies++
	}
	d.mu.Unlock()
	if b != nil {
		return b
	}
	fresh := d.buffer(ctx, id, n)
	if fresh == nil {
		return nil
	}
	d.mu.Lock()
	if b = d.mu.begun[id]; b == nil {
		b = fresh
		d.mu.begun[id] = b
		d.mu.order++
		b.order = d.mu.order
	}
	b.bodies++
	d.mu.Unlock()
	if b != fresh {
		d.release(fresh)
	}
	return b
}

// left ends a body's part in a block that is not whole.
func (d *Disk) left(b *filled) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b.bodies--
}

// giveUp gives back the memory of unfinished blocks that no body fills at the moment,
// those begun first before others, until it is n bytes; and how much it is.
func (d *Disk) giveUp(n int64) (freed int64) {
	for freed < n {
		var first *filled
		d.mu.Lock()
		for _, b := range d.mu.begun {
			if b.bodies == 0 && (first == nil || b.order < first.order) {
				first = b
			}
		}
		if first != nil {
			delete(d.mu.begun, first.id)
		}
		d.mu.Unlock()
		if first == nil {
			break
		}
		d.dropped.Add(1)
		freed += first.count
		d.release(first)
	}
	return freed
}

// handOver gives a whole block to the writer, or leaves it out.
func (d *Disk) handOver(b *filled) {
	d.mu.Lock()
	if d.mu.begun[b.id] == b {
		delete(d.mu.begun, b.id)
	}
	d.mu.Unlock()
	d.pending.Add(b.count)
	select {
	case d.queue <- b:
	default:
		d.dropped.Add(1)
		d.pending.Add(-b.count)
		d.release(b)
	}
}

// Complete tells whether all blocks of a version are on the disk, as far as that is
// known.
func (d *Disk) Complete(v Version) bool {
	f := d.file(v, nil)
	for i := int64(0); i*d.blockSize < v.Size; i++ {
		if !d.has(f.blockID(i)) {
			return false
		}
	}
	return true
}

// has tells whether a block is on the disk, as far as that is known: after a
// reader did not find it there, it is not.
func (d *Disk) has(id blockID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.index.entries[id] != nil
}
