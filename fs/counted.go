package fs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/internal/metrics"
)

// counted counts and times the requests that reach the file system. What the
// kernel answers from its caches is not seen here.
type counted struct {
	fuse.RawFileSystem
	metrics       *metrics.Set
	read, written *metrics.Counter
}

func newCounted(fs fuse.RawFileSystem, set *metrics.Set) *counted {
	return &counted{fs, set, set.FileBytes.With(metrics.DirectionRead), set.FileBytes.With(metrics.DirectionWritten)}
}

// outcome tells answers that a program's own request asks for from failures.
func outcome(s fuse.Status) string {
	switch e := syscall.Errno(s); {
	case s == fuse.OK:
		return metrics.OutcomeOK
	case e == toErrno(errInterrupted):
		return metrics.OutcomeCanceled
	case refused(e), ordinary(e):
		return metrics.OutcomeRefused
	}
	return metrics.OutcomeError
}

func (c *counted) done(operation string, began time.Time, s fuse.Status) fuse.Status {
	c.metrics.Operations.With(operation, outcome(s)).Observe(time.Since(began).Seconds())
	return s
}

func (c *counted) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return c.done("lookup", time.Now(), c.RawFileSystem.Lookup(cancel, h, name, out))
}

func (c *counted) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return c.done("getattr", time.Now(), c.RawFileSystem.GetAttr(cancel, in, out))
}

func (c *counted) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return c.done("setattr", time.Now(), c.RawFileSystem.SetAttr(cancel, in, out))
}

func (c *counted) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	began := time.Now()
	s := c.RawFileSystem.Open(cancel, in, out)
	if syscall.Errno(s) == toErrno(errSuperseded) {
		c.metrics.Redirects.Inc()
	}
	return c.done("open", began, c.opened(s))
}

func (c *counted) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return c.done("create", time.Now(), c.opened(c.RawFileSystem.Create(cancel, in, name, out)))
}

// opened counts a handle that the kernel will release.
func (c *counted) opened(s fuse.Status) fuse.Status {
	if s.Ok() {
		c.metrics.OpenHandles.Add(1)
	}
	return s
}

func (c *counted) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	began := time.Now()
	r, s := c.RawFileSystem.Read(cancel, in, buf)
	if r != nil {
		c.read.Add(int64(r.Size()))
	}
	return r, c.done("read", began, s)
}

func (c *counted) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	began := time.Now()
	n, s := c.RawFileSystem.Write(cancel, in, data)
	c.written.Add(int64(n))
	return n, c.done("write", began, s)
}

func (c *counted) Writev(cancel <-chan struct{}, in *fuse.WriteIn, data [][]byte) (uint32, fuse.Status) {
	began := time.Now()
	n, s := c.RawFileSystem.Writev(cancel, in, data)
	if s == fuse.ENOSYS { // go-fuse asks again, by Write
		return n, s
	}
	c.written.Add(int64(n))
	return n, c.done("write", began, s)
}

func (c *counted) CopyFileRange(cancel <-chan struct{}, in *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	began := time.Now()
	n, s := c.RawFileSystem.CopyFileRange(cancel, in)
	return n, c.done("copy_file_range", began, s)
}

func (c *counted) Flush(cancel <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	return c.done("flush", time.Now(), c.RawFileSystem.Flush(cancel, in))
}

func (c *counted) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return c.done("fsync", time.Now(), c.RawFileSystem.Fsync(cancel, in))
}

func (c *counted) Release(cancel <-chan struct{}, in *fuse.ReleaseIn) {
	began := time.Now()
	c.RawFileSystem.Release(cancel, in)
	c.metrics.OpenHandles.Add(-1)
	c.done("release", began, fuse.OK)
}

func (c *counted) Rename(cancel <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	return c.done("rename", time.Now(), c.RawFileSystem.Rename(cancel, in, oldName, newName))
}

func (c *counted) Unlink(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return c.done("unlink", time.Now(), c.RawFileSystem.Unlink(cancel, h, name))
}

func (c *counted) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return c.done("mkdir", time.Now(), c.RawFileSystem.Mkdir(cancel, in, name, out))
}

func (c *counted) Rmdir(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return c.done("rmdir", time.Now(), c.RawFileSystem.Rmdir(cancel, h, name))
}

func (c *counted) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return c.done("readdir", time.Now(), c.RawFileSystem.ReadDir(cancel, in, out))
}

func (c *counted) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return c.done("readdir", time.Now(), c.RawFileSystem.ReadDirPlus(cancel, in, out))
}
