package fs

import (
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/internal/metrics"
)

// readsNothing answers each read at once.
type readsNothing struct {
	fuse.RawFileSystem
	result fuse.ReadResult
}

// Read is fuse.RawFileSystem's.
func (r readsNothing) Read(<-chan struct{}, *fuse.ReadIn, []byte) (fuse.ReadResult, fuse.Status) {
	return r.result, fuse.OK
}

func countedReads() (c *counted, read func()) {
	c = newCounted(readsNothing{result: fuse.ReadResultData(make([]byte, 4096))}, metrics.NewSet(metrics.Build{}))
	in := &fuse.ReadIn{}
	return c, func() { c.Read(nil, in, nil) }
}

func TestCountingAReadAllocatesNothing(t *testing.T) {
	c, read := countedReads()
	if n := testing.AllocsPerRun(100, read); n != 0 {
		t.Errorf("%v allocations a read, want none", n)
	}
	if got := c.read.Value(); got != 101*4096 {
		t.Errorf("%d bytes are counted, want those of 101 reads", got)
	}
}

func BenchmarkCountedRead(b *testing.B) {
	_, read := countedReads()
	b.ReportAllocs()
	for b.Loop() {
		read()
	}
}
