package s3test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test/port"
)

const (
	readyTimeout = 60 * time.Second // a loaded machine, and Python's imports
	buildTimeout = 10 * time.Minute
	outputTail   = 16 << 10 // of a server's output, kept for errors
)

// keeper runs a server and outlives this process by a moment: its standard input
// is a pipe that ends with this process, however that ends. Then it kills the
// server and removes its directory; told to stop, it leaves the directory.
// The server's process id is the first line of its output, which the keeper
// itself lets go: so the output ends when the server has.
const keeper = `
dir=$1; shift
sh -c 'echo $$; exec "$@"' sh "$@" </dev/null 2>&1 &
exec >/dev/null 2>&1
read -r last
kill -9 $!
wait
[ "$last" = stop ] || rm -rf "$dir"
`

// process is a server that can be stopped and started again.
type process struct {
	port *port.Port
	dir  string
	env  []string
	args []string

	mu struct {
		sync.Mutex
		run *run // nil: stopped
	}
}

// run is one life of the server.
type run struct {
	keeper *exec.Cmd
	stdin  io.WriteCloser
	pid    int           // the server's
	ended  chan struct{} // closed when the server has ended, and all its output was read
	output *tail
}

// newProcess starts a server on a port and in a directory of its own; both are
// told to args.
func newProcess(env []string, args func(addr, dir string) []string) (*process, error) {
	dir, err := makeDir()
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir}
	if p.port, err = port.Reserve(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p.args = args(p.port.Addr, dir)
	p.env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "LC_ALL=C.UTF-8"}, env...)
	if err := p.start(); err != nil {
		return nil, errors.Join(err, p.port.Close(), os.RemoveAll(dir))
	}
	return p, nil
}

// makeDir makes the server's directory where files have extended attributes.
func makeDir() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cache := filepath.Join(root, ".cache", "s3test")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	var failed error
	for _, parent := range []string{os.TempDir(), cache} {
		dir, err := os.MkdirTemp(parent, "s3test")
		if err != nil {
			return "", err
		}
		err = errors.Join(os.Mkdir(filepath.Join(dir, "buckets"), 0o755), unix.Setxattr(dir, "user.s3test", []byte("1"), 0))
		if err == nil {
			return dir, nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", dir, err), os.RemoveAll(dir))
	}
	return "", failed
}

// start runs the server and waits until it answers.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.run != nil {
		return errors.New("the server runs already")
	}
	r, err := p.launch()
	if err != nil {
		return err
	}
	p.mu.run = r
	if err := p.ready(r); err != nil {
		p.mu.run = nil
		return errors.Join(err, r.end(), fmt.Errorf("output: %s", r.output))
	}
	return nil
}

func (p *process) launch() (*run, error) {
	r := &run{ended: make(chan struct{}), output: &tail{}}
	r.keeper = exec.CommandContext(context.Background(), "sh", append([]string{"-c", keeper, "s3test", p.dir}, p.args...)...)
	r.keeper.Env = p.env
	r.keeper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is not for it
	stdin, err := r.keeper.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, server, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	r.stdin, r.keeper.Stdout = stdin, server
	err = errors.Join(r.keeper.Start(), server.Close())
	if err != nil {
		return nil, errors.Join(err, output.Close())
	}
	lines := bufio.NewReader(output)
	pid, err := lines.ReadString('\n')
	if err == nil {
		r.pid, err = strconv.Atoi(strings.TrimSpace(pid))
	}
	go func() {
		defer close(r.ended)
		_, _ = io.Copy(r.output, lines) // the pipe's end is all there is to learn
		_ = output.Close()
	}()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("process id of the server: %w", err), r.end())
	}
	return r, nil
}

// ready waits for any answer to a request.
func (p *process) ready(r *run) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.port.Addr+"/", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := transport.RoundTrip(req)
		if err == nil {
			return resp.Body.Close()
		}
		select {
		case <-tick.C:
		case <-r.ended:
			return errors.New("the server ended by itself")
		case <-ctx.Done():
			return fmt.Errorf("no answer within %v: %w", readyTimeout, err)
		}
	}
}

// stop kills the server and keeps its directory.
func (p *process) stop() error {
	r, err := p.take()
	if err != nil {
		return err
	}
	return r.end()
}

// close kills the server if it runs, and removes its directory.
func (p *process) close() error {
	var err error
	if r, stopped := p.take(); stopped == nil {
		err = r.end()
	}
	return errors.Join(err, p.port.Close(), os.RemoveAll(p.dir))
}

func (p *process) take() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.mu.run
	if r == nil {
		return nil, errors.New("the server does not run")
	}
	p.mu.run = nil
	return r, nil
}

// end has the keeper kill the server, and waits for both.
func (r *run) end() error {
	_, _ = io.WriteString(r.stdin, "stop\n") // it does not matter how the keeper learns of it
	err := errors.Join(r.stdin.Close(), r.keeper.Wait())
	<-r.ended
	return err
}

func (p *process) pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return p.awaitStopped()
}

func (p *process) resume() error { return p.signal(syscall.SIGCONT) }

func (p *process) signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.run == nil {
		return errors.New("the server does not run")
	}
	return syscall.Kill(p.mu.run.pid, s)
}

// awaitStopped waits until every thread of the server stands still: the signal
// alone is a request to do so.
func (p *process) awaitStopped() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.run == nil {
		return errors.New("the server does not run")
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(readyTimeout); time.Now().Before(deadline); <-tick.C {
		if Stopped(p.mu.run.pid) {
			return nil
		}
	}
	return errors.New("the server does not pause")
}

// Stopped tells whether every thread of a process stands still (SIGSTOP).
func Stopped(pid int) bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false
	}
	for _, name := range stats {
		raw, err := os.ReadFile(name)
		if err != nil {
			return false
		}
		if _, state, _ := bytes.Cut(raw, []byte(") ")); !bytes.HasPrefix(state, []byte("T")) {
			return false
		}
	}
	return len(stats) > 0
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	raw []byte
}

// Write never fails.
func (t *tail) Write(raw []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.raw = append(t.raw, raw...)
	t.raw = t.raw[max(0, len(t.raw)-outputTail):]
	return len(raw), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.raw)
}

// buildVersity builds versitygw where that is not done, and returns its path.
func buildVersity() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(root, "tools", "versitygw.sh"))
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build versitygw: %w\n%s", err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}

// moduleRoot is the directory of the project's go.mod, above the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "tools", "versitygw", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no tools/versitygw above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}
