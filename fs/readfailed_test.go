package fs

import (
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/lakefs-mount/lakefs-mount/internal/pause"
)

func TestFailedReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failedReads
		want := func(what string, off, n int64, errno syscall.Errno) {
			t.Helper()
			if got, found := f.again(off, n); got != errno || found != (errno != 0) {
				t.Errorf("%s: %v, %v; want %v", what, got, found, errno)
			}
		}
		want("nothing failed", 0, 4096, 0)
		f.note(1<<20, 1<<17, syscall.EIO)
		want("a read of all of it", 1<<20, 1<<17, 0)
		want("before it", 1<<20-4096, 4096, 0)
		want("after it", 1<<20+1<<17, 4096, 0)
		want("across its end", 1<<20+1<<17-1, 4096, 0)
		want("its first page", 1<<20, 4096, syscall.EIO)
		want("the same once more", 1<<20, 4096, 0)
		f.note(0, 1<<17, syscall.EACCES)
		f.note(1<<17, 1<<17, syscall.EIO)
		want("a page of the second", 1<<17+4096, 4096, syscall.EIO)
		want("the last bytes of the first", 1<<17-10, 10, syscall.EACCES)
		f.note(0, 4096, syscall.EIO)
		want("a page after a page", 0, 4096, 0)
		f.note(0, 1<<17, syscall.EIO)
		if err := pause.For(t.Context(), failedFor+1); err != nil {
			t.Fatal(err)
		}
		want("later", 0, 4096, 0)
		for range 10 * maxFailed {
			f.note(0, 1<<17, syscall.EIO)
		}
		if len(f.all) != maxFailed {
			t.Errorf("%d failures are remembered, want %d", len(f.all), maxFailed)
		}
	})
}
