package fs_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// fio writes a file through the mount, with a sum in each block, and finds every
// block right in each way of reading it, from a mount that has nothing of it.
func TestS3FioVerifies(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("no fio here (make deps installs it)")
	}
	l := mounttest.Mount(t, mounttest.Options{
		S3: true, Tables: []mounttest.Table{text("t", nil)}, Timeout: 3 * time.Minute,
		Flags: []string{"--memory-limit=16MiB"}, // less than the file
	})
	job := func(name, options string) []string {
		return append([]string{"--name=" + name, "--filename=" + l.Path("db/t/f")},
			strings.Fields("--size=32M --bs=64k --verify=crc32c --verify_fatal=1 --verify_state_save=0 --thread "+options)...)
	}
	fio := func(jobs ...[]string) {
		t.Helper()
		args := append([]string{"--minimal", "--aux-path=" + t.TempDir()}, slices.Concat(jobs...)...)
		if out := mustExec(t, l, "fio", args...); strings.Contains(out, "error") {
			t.Error(out)
		}
	}
	fio(job("write", "--rw=write --do_verify=0 --ioengine=psync --fallocate=none --create_on_open=1"))
	// Alone, and then in all ways at once.
	l.Remount()
	fio(job("sequential", "--rw=read --ioengine=psync"))
	l.Remount()
	fio(
		job("random", "--rw=randread --ioengine=psync --numjobs=4 --io_size=8M"),
		job("mapped", "--rw=randread --ioengine=mmap"),
		job("direct", "--rw=read --ioengine=libaio --direct=1 --iodepth=16"),
	)
	// It would have found a block that is another one.
	content, err := l.Stored("db/t/f")
	if err != nil {
		t.Fatal(err)
	}
	bad := []byte(content)
	bad[len(bad)/2+100] ^= 1
	l.Unmount()
	l.PutStored("db/t/f", string(bad))
	l.Start()
	r := l.Exec("fio", job("bad", "--rw=read --ioengine=psync")...)
	if r.Code == 0 || !strings.Contains(r.Err+r.Out, "verify") {
		t.Errorf("a block that is not the one written: exit %d, %s%s", r.Code, r.Out, r.Err)
	}
}
