package fs_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Readers that are killed while the store holds their answers leave nothing behind.

const (
	cacheMemory = `lakefs_mount_memory_bytes{holder="budget"}`
	openHandles = `lakefs_mount_open_handles`
)

// wantClosed asserts that soon no handle is open.
func wantClosed(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	l.Eventually("all handles are closed", seenWithin, func() bool { return statistic(t, l, openHandles) == 0 })
}

// Many readers are killed in the middle of their bodies, one beside each is not:
// that one gets its bytes when they come, every request ends, and the memory is
// there for the next.
func TestS3KilledReadersGiveAllBack(t *testing.T) {
	t.Parallel()
	const readers = 12
	content := numbered('k', 6<<20)
	files := map[string]string{"after": numbered('n', 6<<20)}
	for i := range readers {
		files[fmt.Sprint("f", i)] = content
	}
	l := behindFaults(t, files, "--memory-limit=32MiB", "--io-timeout=5m")
	l.MustSh(`ls -l db/t`)
	w := watch(l)
	held := l.Proxy.Add(faulty.Rule{Op: "GetObject", Fault: faulty.StallBody{After: 1 << 20}})
	var killed, beside []*child
	for i := range readers {
		path := l.Path(fmt.Sprint("db/t/f", i))
		killed = append(killed, start(t, "cat", path))
		beside = append(beside, start(t, "md5sum", path))
	}
	held.Wait(t, readers)
	for _, c := range killed {
		if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if state := c.wantEnd(t); state.Signal() != syscall.SIGKILL {
			t.Errorf("a killed reader: state %#x, %s", state, brief(c.out.String()))
		}
	}
	l.Proxy.Clear()
	l.Proxy.Release()
	want := l.MustSh(`md5sum <` + l.Window("db/t/f0"))[:32]
	for _, c := range beside {
		if state := c.wantEnd(t); state.ExitStatus() != 0 || len(c.out.String()) < 32 || c.out.String()[:32] != want {
			t.Errorf("%q beside one that was killed: %d, %s", c.cmd.Args, state.ExitStatus(), brief(c.out.String()))
		}
	}
	w.quiet(l)
	wantClosed(t, l)
	// There is room to keep a file again: what is read twice is fetched once.
	w = watch(l)
	for range 2 {
		wantContent(t, l, "db/t/after", files["after"])
		l.MustSh(`dd if=db/t/after iflag=nocache count=0 status=none`)
	}
	if n := w.fetched(l, "db/t/after"); n != int64(len(files["after"])) {
		t.Errorf("%d bytes came of %d\n%s", n, len(files["after"]), w)
	}
}

// The store never answers them: their requests end with the time that a request may
// take, and so does their memory.
func TestS3KilledReadersOfASilentStore(t *testing.T) {
	t.Parallel()
	const readers = 8
	files := map[string]string{"other": "fine"}
	for i := range readers {
		files[fmt.Sprint("f", i)] = numbered('k', 3<<20)
	}
	l := behindFaults(t, files, quick...)
	l.MustSh(`ls -l db/t`)
	w := watch(l)
	before := statistic(t, l, cacheMemory)
	silent := l.Proxy.Add(faulty.Rule{Op: "GetObject", Key: l.Key("db/t/f"), Fault: faulty.Hang{}})
	var killed []*child
	for i := range readers {
		killed = append(killed, start(t, "cat", l.Path(fmt.Sprint("db/t/f", i))))
	}
	silent.Wait(t, readers)
	if got := statistic(t, l, cacheMemory); got <= before {
		t.Errorf("%d bytes of memory with %d fetches under way, %d before", got, readers, before)
	}
	for _, c := range killed {
		if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		c.wantEnd(t)
	}
	wantContent(t, l, "db/t/other", "fine")
	w.quiet(l)
	kept := int64(64 << 10) // of the other file
	l.Eventually("the memory is given back", time.Minute, func() bool { return statistic(t, l, cacheMemory) <= before+kept })
	wantClosed(t, l)
	silent.Remove()
	for name, content := range files {
		wantContent(t, l, "db/t/"+name, content)
	}
}
