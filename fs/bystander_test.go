package fs_test

import (
	"strings"
	"testing"
)

// A process that only inherited the descriptor leaves nothing unfinished when it
// is killed; one that wrote does.
func TestKilledBystanderDoesNotTear(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	l.MustSh(`exec 3>db/text/dt=2026-01-01/log; echo one >&3; sleep 60 & kill -9 $!; wait; echo two >&3; exec 3>&-`)
	wantStore(t, l, "db/text/dt=2026-01-01/log", "one\ntwo\n")
	l.MustSh(`exec 3>db/text/dt=2026-01-01/torn; echo one >&3; sh -c 'echo half; kill -9 $$' >&3; echo two >&3; exec 3>&-`)
	wantAbsent(t, l, "db/text/dt=2026-01-01/torn")
	wantStaged(t, l, "db/text/dt=2026-01-01", "torn")
}

// The process that opened the file lives on, and is told.
func TestCloseOfATornFileFails(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	out := mustPython(t, l, `
import subprocess
f = open("db/text/dt=2026-01-01/f", "wb")
subprocess.run(["sh", "-c", "echo half; kill -9 $$"], stdout=f)
try:
    f.close()
    print("closed")
except OSError as e:
    print("errno", e.errno)
`)
	if !strings.Contains(out, "errno 5") {
		t.Errorf("close of a torn file: %q, want EIO", out)
	}
	wantStaged(t, l, "db/text/dt=2026-01-01", "f")
}
