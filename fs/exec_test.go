package fs_test

import (
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// A descriptor that is closed by execve itself is flushed while the kernel holds
// a lock that every look at the process needs: a daemon that looks too waits for
// itself, and ps on the whole machine with it.
const execWriter = `
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void run(int rounds, int fd) {
	for (int i = 0; i < rounds; i++) {
		if (dprintf(fd, "line %d\n", i) < 0) { perror("write"); exit(1); }
		pid_t pid = i % 2 ? vfork() : fork();
		if (pid == 0) { execl("/bin/true", "true", (char *)0); _exit(127); }
		int status;
		if (waitpid(pid, &status, 0) != pid || status) { fprintf(stderr, "child: %d\n", status); exit(1); }
	}
}

int main(int argc, char **argv) {
	int fd = open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0) { perror("open"); return 1; }
	run(atoi(argv[2]), fd);
	if (argc > 3) { /* the opener itself leaves by execve */
		execl("/bin/echo", "echo", "gone", (char *)0);
		return 127;
	}
	if (close(fd)) { perror("close"); return 1; }
	return 0;
}
`

func TestCloseOnExecDescriptorsNeverHangTheMachine(t *testing.T) {
	t.Parallel()
	writer := compileC(t, execWriter)
	l := mounttest.Mount(t, mounttest.Options{Tables: twoTables(nil), Timeout: 2 * time.Minute})
	began := time.Now()
	out := l.MustSh(`cd ` + csvDir + `
		(while test ! -e ` + l.State + `/stop; do timeout 20 ps axww -o pid,stat,args >/dev/null || echo "ps hangs"; done) &
		` + writer + ` closed 20; echo $?
		` + writer + ` left 4 exec; echo $?
		touch ` + l.State + `/stop; wait`)
	if out != "0\ngone\n0\n" {
		t.Errorf("output %q", out)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("24 children took %v", took)
	}
	l.Eventually("what execve closed is published", 10*time.Second, func() bool { return listed(t, l, csvDir+"/left") })
	wantStore(t, l, csvDir+"/left", "line 0\nline 1\nline 2\nline 3\n")
	if got, _ := inStore(t, l, csvDir+"/closed"); len(got) != 10*7+10*8 {
		t.Errorf("closed has %d bytes", len(got))
	}
	wantSettled(t, l)
	wantClean(t, l, csvDir, "closed", "left")
}

// Python's and Go's descriptors are all close-on-exec; both programs' children
// are started while a file is being written.
func TestChildrenOfPythonWhileItWrites(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	mustPython(t, l, script(l, csvDir, `
f = open("f", "w")
for i in range(10):
    print(i, file=f, flush=True)
    subprocess.run(["true"], check=True, close_fds=i % 2 == 0)
    eq(os.spawnlp(os.P_WAIT, "true", "true"), 0)
    eq(published("f"), None)
f.close()
eq(published("f"), b"0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n")
`))
	wantClean(t, l, csvDir, "f")
}

// A signal every millisecond: no call of an ordinary program may end by EINTR.
const interrupted = `
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long ticks;
static void tick(int s) { (void)s; ticks++; }
#define must(call) do { if ((call) < 0) { fprintf(stderr, "%s: %s\n", #call, strerror(errno)); exit(1); } } while (0)

int main(int argc, char **argv) {
	struct sigaction a = {.sa_handler = tick}; /* no SA_RESTART */
	must(sigaction(SIGALRM, &a, 0));
	struct itimerval every = {{0, 1000}, {0, 1000}};
	must(setitimer(ITIMER_REAL, &every, 0));
	static char block[300000];
	memset(block, 'x', sizeof block);
	time_t end = time(0) + atoi(argv[1]);
	int rounds = 0;
	for (; time(0) < end || rounds < 5; rounds++) {
		char name[32], other[40];
		snprintf(name, sizeof name, "f%d", rounds % 7);
		snprintf(other, sizeof other, "%s.moved", name);
		int fd, again;
		must(fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644));
		for (size_t done = 0; done < sizeof block;) {
			ssize_t n;
			must(n = write(fd, block + done, sizeof block - done > 65536 ? 65536 : sizeof block - done));
			done += n;
		}
		must(lseek(fd, 0, SEEK_SET));
		must(read(fd, block, sizeof block));
		struct stat st;
		must(fstat(fd, &st));
		must(fsync(fd));
		must(ftruncate(fd, 1000));
		must(close(fd));
		must(stat(name, &st));
		if (st.st_size != 1000) { fprintf(stderr, "size %ld\n", (long)st.st_size); return 1; }
		must(again = open(name, O_WRONLY | O_APPEND));
		must(write(again, "y", 1));
		must(close(again));
		must(rename(name, other));
		must(chmod(other, 0640));
		must(mkdir("d", 0755));
		DIR *d = opendir(".");
		if (!d) { perror("opendir"); return 1; }
		errno = 0;
		while (readdir(d)) {}
		if (errno) { perror("readdir"); return 1; }
		must(closedir(d));
		must(rmdir("d"));
		must(unlink(other));
	}
	if (ticks < rounds) { fprintf(stderr, "%ld signals in %d rounds\n", ticks, rounds); return 1; }
	return 0;
}
`

func TestCase15WriterUnderAnIntervalTimerSeesNoEINTR(t *testing.T) {
	t.Parallel()
	program := compileC(t, interrupted)
	l := mountTwo(t, nil)
	l.MustSh(`cd ` + csvDir + ` && ` + program + ` 3`)
	wantClean(t, l, csvDir)
}
