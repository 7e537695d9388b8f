package fs_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// leaver writes to a close-on-exec descriptor and leaves it to its execve, once
// the file argv[2] is there.
const leaver = `
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
	int fd = open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || dprintf(fd, "line\n") < 0) { perror("write"); return 1; }
	if (close(creat(getenv("READY"), 0644))) { perror("ready"); return 1; }
	while (access(argv[2], F_OK)) usleep(1000);
	execl("/bin/true", "true", (char *)0);
	return 127;
}
`

// A descendant of the closing process is inside execve, which waits for another
// mount: it has nothing to do with the file, and the close does not wait for it,
// let alone leave the file to a RELEASE that takes the writer for killed.
func TestCloseBesideAnExecThatWaitsForAnotherMount(t *testing.T) {
	t.Parallel()
	program := compileC(t, leaver)
	l, other := mountTwo(t, nil), mountTwo(t, nil)
	leave := filepath.Join(t.TempDir(), "go")
	p := begin(t, other, `exec `+program+` f `+leave)
	open := descriptors(t, p)
	resume := stop(t, other)
	defer resume()
	writeFile(t, leave, "")
	other.Eventually("execve closes the file", 0, func() bool { return descriptors(t, p) < open })
	wantErrno(t, "close of what is no Parquet", writeErr(l, parquetDir+"/f.parquet", creat, "x", nil), syscall.EBADMSG)
	write(t, l, csvDir+"/f", "x\n")
	wantStore(t, l, csvDir+"/f", "x\n")
	resume()
	if code, out := p.wait(t); code != 0 {
		t.Errorf("the other program ends with %d: %s", code, out)
	}
	other.Eventually("what execve closed is published", 0, func() bool { return listed(t, other, csvDir+"/f") })
	wantKeptBytes(t, l, parquetDir, "f.parquet", "x")
}

// stop stops a daemon until resume is called, which may be more than once.
func stop(t *testing.T, l *mounttest.Lake) (resume func()) {
	t.Helper()
	l.Stop()
	return func() { l.Signal(syscall.SIGCONT) }
}

// descriptors counts those of a program.
func descriptors(t *testing.T, p *program) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// A program with many children is told by close, too, what became of its file.
func TestCloseOfAProgramWithManyChildren(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	mustPython(t, l, script(l, parquetDir, `
import signal
children = []
try:
    for i in range(100):
        pid = os.fork()
        if pid == 0:
            while True: signal.pause()
        children.append(pid)
    fd = os.open("f.parquet", os.O_WRONLY | os.O_CREAT, 0o644); os.write(fd, b"x")
    eq(err(os.close, fd), "EBADMSG")
finally:
    for pid in children: os.kill(pid, signal.SIGKILL)
`))
}
