package fs

import (
	"context"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// writeBacks tells node operations which WRITEs are pages of a shared mapping
// that the kernel writes back: they have an offset of their own, whatever
// descriptor the kernel takes for them, also one opened with O_APPEND. go-fuse's
// node API leaves the flag out; the request's cancel channel is its identity.
type writeBacks struct {
	fuse.RawFileSystem
	requests sync.Map // <-chan struct{} → struct{}
}

func (w *writeBacks) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	defer w.note(cancel, in)()
	return w.RawFileSystem.Write(cancel, in, data)
}

func (w *writeBacks) Writev(cancel <-chan struct{}, in *fuse.WriteIn, data [][]byte) (uint32, fuse.Status) {
	defer w.note(cancel, in)()
	return w.RawFileSystem.Writev(cancel, in, data)
}

func (w *writeBacks) note(cancel <-chan struct{}, in *fuse.WriteIn) (forget func()) {
	if in.WriteFlags&fuse.WRITE_CACHE == 0 {
		return func() {}
	}
	w.requests.Store(cancel, struct{}{})
	return func() { w.requests.Delete(cancel) }
}

// has reports whether the request that ctx belongs to is such a WRITE.
func (w *writeBacks) has(ctx context.Context) bool {
	c, ok := ctx.(*fuse.Context)
	if !ok {
		return false
	}
	_, ok = w.requests.Load(c.Cancel)
	return ok
}
