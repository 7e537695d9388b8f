package cache

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"
)

// View is a range of a version where the cache has it, without a copy. The owner
// calls Close once, and does not look at the bytes afterwards.
type View struct {
	cache  *Cache
	slices [][]byte
	blocks []*block // each with one use, for the slice of the same index
	size   int
}

// Slices are the bytes, in order; not to be changed.
func (v *View) Slices() [][]byte { return v.slices }

// Size is how many bytes there are.
func (v *View) Size() int { return v.size }

// Close gives the memory back to the cache.
func (v *View) Close() {
	for i, b := range v.blocks {
		v.cache.unpin(b, len(v.slices[i]))
	}
	v.blocks, v.slices = nil, nil
}

// View is [Handle.ReadAt] without the copy: up to len(p) bytes from off on, fewer at
// the end of the version, none past it. Bytes that the cache has no memory for are
// put into p, which the view then refers to. On an error there is no view.
func (h *Handle) View(ctx context.Context, p []byte, off int64) (*View, error) {
	v := &View{cache: h.cache}
	size := h.file.version.Size
	switch {
	case off < 0:
		return nil, fmt.Errorf("read %q at %d: %w", h.file.version.Key, off, iofs.ErrInvalid)
	case len(p) == 0 || off >= size:
		return v, nil
	}
	want := p[:min(int64(len(p)), size-off)]
	if err := h.begin(); err != nil {
		return nil, fmt.Errorf("read %q: %w", h.file.version.Key, err)
	}
	defer h.end()
	n, err := h.read(ctx, want, off, func(b *block, from int64, part []byte) {
		v.blocks = append(v.blocks, b)
		v.slices = append(v.slices, b.buf[from:from+int64(len(part))])
		v.size += len(part)
	})
	if err == nil && n < len(want) {
		err = io.ErrUnexpectedEOF // read gives all, or says why not
	}
	if err != nil {
		v.Close()
		return nil, fmt.Errorf("read %q at %d: %w", h.file.version.Key, off+int64(n), err)
	}
	if n > v.size { // the rest went past the cache
		v.slices = append(v.slices, want[v.size:n])
		v.size = n
	}
	return v, nil
}
