package fs_test

import (
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestTwoDescriptorsOfOneProcess: the last close publishes, also when the kernel's
// RELEASE of the first descriptor is late; in either order, whichever was written.
func TestTwoDescriptorsOfOneProcess(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: twoTables(nil)})
	out := l.MustSh(`cd db/text/dt=2026-01-01; python3 - <<'EOF'
import os
late = 0
for i in range(300):
    name = "f%d" % i
    a = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    b = os.open(name, os.O_RDWR)
    if i % 3 != 1: os.write(a, b"x" * 1000)
    if i % 3 != 2: os.pwrite(b, b"y" * 10, 990)
    for fd in ((a, b), (b, a))[i // 3 % 2]: os.close(fd)
    if name not in os.listdir("."): late += 1
print("late", late)
EOF`)
	if out != "late 0\n" {
		t.Errorf("of 300 last closes: %s", out)
	}
}
