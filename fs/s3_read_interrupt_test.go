package fs_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
)

// child is a program that touches the mount while the store does not answer.
type child struct {
	cmd  *exec.Cmd
	out  strings.Builder
	done chan struct{} // closed when it has ended
}

// start starts a program with the dispositions of signals that a shell gives it.
func start(t *testing.T, args ...string) *child {
	t.Helper()
	c := &child{done: make(chan struct{})}
	c.cmd = exec.CommandContext(context.Background(), "env", append([]string{"--default-signal"}, args...)...)
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.WaitDelay = &c.out, &c.out, time.Second
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		_ = c.cmd.Wait() // the state tells
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // it may have ended
		<-c.done
	})
	return c
}

// soon bounds what happens at once, on a busy machine; the store's limit is far
// beyond.
const soon = 20 * time.Second

// wantEnd waits for the end of a program.
func (c *child) wantEnd(t *testing.T) (state syscall.WaitStatus) {
	t.Helper()
	limit := time.NewTimer(soon)
	defer limit.Stop()
	select {
	case <-c.done:
		state, _ = c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	case <-limit.C:
		t.Errorf("%q has not ended %v later", c.cmd.Args, soon)
	}
	return state
}

// A reader that is being killed does not wait for the store; those beside it are
// not touched by its end.
func TestS3InterruptedReaderReturnsAtOnce(t *testing.T) {
	t.Parallel()
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL}
	content := numbered('c', 200_000)
	files := map[string]string{"g": "answered"}
	for _, s := range signals {
		files[fmt.Sprint("open", int(s))], files[fmt.Sprint("read", int(s))], files[fmt.Sprint("dir", int(s), "/x")] = content, content, content
		files[fmt.Sprint("look", int(s), "/x")] = content
	}
	l := behindFaults(t, files, "--io-timeout=5m")
	l.MustSh(`ls -l db/t`)
	faults := map[string]struct {
		program []string
		rule    faulty.Rule
		prints  string
	}{
		"dir%d":    {[]string{"ls"}, faulty.Rule{Op: "ListObjectsV2", Fault: faulty.Hang{}}, "x\n"},
		"look%d/x": {[]string{"stat", "-c", "%s"}, faulty.Rule{Op: "HeadObject", Fault: faulty.Hang{}}, "200000\n"},
		"open%d":   {[]string{"cat"}, faulty.Rule{Op: "GetObject", Fault: faulty.Hang{}}, content},
		"read%d":   {[]string{"cat"}, faulty.Rule{Op: "GetObject", Fault: faulty.StallBody{After: 1000}}, content},
	}
	beside := make(map[*child]string)
	for _, s := range signals {
		for what, f := range faults {
			name := "db/t/" + fmt.Sprintf(what, int(s))
			f.rule.Key = l.Key(name)
			a := l.Proxy.Add(f.rule)
			args := append(slices.Clone(f.program), l.Path(name))
			c := start(t, args...)
			a.Wait(t, 1)
			beside[start(t, args...)] = f.prints
			if err := c.cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			if state := c.wantEnd(t); !state.Signaled() || state.Signal() != s {
				t.Errorf("%q of %s after %v: state %#x, output %q", f.program, name, s, state, brief(c.out.String()))
			}
		}
	}
	wantContent(t, l, "db/t/g", "answered")
	l.Proxy.Clear()
	l.Proxy.Release()
	for c, want := range beside {
		if state := c.wantEnd(t); state.ExitStatus() != 0 {
			t.Errorf("%q beside one that was killed: %d, %s", c.cmd.Args, state.ExitStatus(), brief(c.out.String()))
		}
		if got := c.out.String(); got != want {
			t.Errorf("%q beside one that was killed prints %s", c.cmd.Args, brief(got))
		}
	}
}

// storm reads all of a directory, under a signal each millisecond that does not
// restart system calls, and tells how many came.
const storm = `
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ticks;
static void tick(int s) { ticks++; }
static void must(int failed, const char *what) {
	if (failed) { fprintf(stderr, "%s: %s\n", what, strerror(errno)); exit(1); }
}

int main(int argc, char **argv) {
	struct sigaction sa = { .sa_handler = tick };
	must(sigaction(SIGURG, &sa, 0), "sigaction");
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG };
	timer_t timer;
	must(timer_create(CLOCK_MONOTONIC, &ev, &timer), "timer_create");
	struct itimerspec each = { { 0, 1000000 }, { 0, 1000000 } };
	must(timer_settime(timer, 0, &each, 0), "timer_settime");
	DIR *d = opendir(argv[1]);
	must(!d, "opendir");
	long long total = 0;
	char path[PATH_MAX];
	static char buf[65536];
	struct dirent *e;
	while (errno = 0, (e = readdir(d))) {
		if (e->d_name[0] == '.') continue;
		snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
		struct stat st;
		must(stat(path, &st), "stat");
		int fd = open(path, O_RDONLY);
		must(fd < 0, "open");
		for (ssize_t n; (n = read(fd, buf, sizeof buf)); total += n) must(n < 0, "read");
		must(close(fd), "close");
		snprintf(path, sizeof path, "%s/none-%s", argv[1], e->d_name);
		must(stat(path, &st) == 0 || errno != ENOENT, "stat of nothing");
	}
	must(errno, "readdir");
	printf("%lld bytes, %s\n", total, ticks > 20 ? "stormy" : "calm");
	return 0;
}
`

// Go programs are signalled all the time, and expect no EINTR of a file.
func TestS3SignalsDoNotInterruptReaders(t *testing.T) {
	t.Parallel()
	files := make(map[string]string)
	for i := range 8 {
		files[fmt.Sprint("f", i)] = numbered('a', 100_000)
	}
	files["large"] = numbered('l', 12<<20)
	l := behindFaults(t, files)
	program := compileC(t, storm)
	l.Proxy.SetLatency(faulty.Latency{FirstByte: 50 * time.Millisecond, BytesPerSecond: 20 << 20})
	if got, want := mustExec(t, l, program, "db/t"), fmt.Sprintf("%d bytes, stormy\n", 800_000+(12<<20)); got != want {
		t.Errorf("under signals: %q, want %q", got, want)
	}
}
