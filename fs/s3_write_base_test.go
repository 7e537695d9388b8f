package fs_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestS3ForeignWriteBeforeTheFirstWrite: the version that a writer began with is
// gone before any of it was fetched. Who appends goes behind the new one.
func TestS3ForeignWriteBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	old, theirs := strings.Repeat("old 4567\n", 400_000), strings.Repeat("theirs 89\n", 500_000)
	for what, c := range map[string]struct {
		flags  int
		theirs string // "": removed
		want   syscall.Errno
		after  string
	}{
		"appended":                  {syscall.O_WRONLY | syscall.O_APPEND, theirs, 0, theirs + "mine\n"},
		"appended, and read":        {syscall.O_RDWR | syscall.O_APPEND, theirs, 0, theirs + "mine\n"},
		"appended to a shorter one": {syscall.O_WRONLY | syscall.O_APPEND, "short\n", 0, "short\nmine\n"},
		"appended to an empty one":  {syscall.O_WRONLY | syscall.O_APPEND, "\n", 0, "\nmine\n"},
		"changed in place":          {syscall.O_WRONLY, theirs, syscall.ESTALE, theirs},
		"truncated":                 {trunc, theirs, syscall.ESTALE, theirs},
		"appended, removed":         {syscall.O_WRONLY | syscall.O_APPEND, "", syscall.ESTALE, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := faultyTwo(t, map[string]string{"f": old})
			const f = csvDir + "/f"
			err := l.Do("write "+f, func() error {
				return mounttest.NoFork(func() error {
					fd, err := syscall.Open(l.Path(f), c.flags|syscall.O_CLOEXEC, 0o644)
					if err != nil {
						return err
					}
					if c.theirs == "" {
						l.RemoveStored(f)
					} else {
						l.PutStored(f, c.theirs)
					}
					_, err = syscall.Write(fd, []byte("mine\n"))
					return errors.Join(err, syscall.Close(fd))
				})
			})
			wantErrno(t, "write and close", err, c.want)
			if got, there := inStore(t, l, f); got != c.after || there != (c.after != "") {
				t.Errorf("the store has %s, there %v; want %s", brief(got), there, brief(c.after))
			}
			if c.want == 0 {
				wantClean(t, l, csvDir, "f")
			}
		})
	}
}

// TestS3SlowUploadOutlastsTheTimeout: bytes that move are no failure. What the sockets
// between hold, some 10 MiB of the kernel's, leaves in silence within the time limit.
func TestS3SlowUploadOutlastsTheTimeout(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, nil, "--io-timeout=4s", onePut)
	warm(t, l)
	file := t.TempDir() + "/file"
	l.MustSh(`head -c 48M /dev/urandom >` + file)
	l.Proxy.SetLatency(faulty.Latency{BytesPerSecond: 8 << 20})
	l.MustSh(`cp ` + file + ` ` + csvDir + `/f && cmp ` + file + ` ` + l.Window(csvDir+"/f"))
	if n := putsOf(l, "f"); n != 1 {
		t.Errorf("%d PUTs, want one\n%s", n, asked(l))
	}
	l.Proxy.SetLatency(faulty.Latency{})
	wantClean(t, l, csvDir, "f")
}
