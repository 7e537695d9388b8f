package crash_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// agentVariable makes this test binary an agent.
const agentVariable = "LAKEFS_CRASH_AGENT"

// task is what the agent is to do, in the mount.
type task struct {
	ID     int
	Do     string // see agent.run
	Path   string // absolute
	To     string // of renames and copies
	Name   string // of the content
	Size   int
	Off    int64
	Sync   bool   // fsync before the close
	Chunks int    // bytes a write; 0: 1 MiB
	Mode   uint32 // of "create": fchmod before the close; 0: none
	Steps  []task // of "steps": one after the other, until one fails
}

// errDead: a call failed for the daemon is gone.
var errDead = errors.New("the daemon is gone")

// errIO: a call failed with EIO. Of a connection that ends the kernel says so too: an
// open whose answer it has, and a close whose pages could not be written.
var errIO = errors.New("EIO")

// outcome is what came of it: acknowledged only if Err is "".
type outcome struct {
	ID    int
	Err   string
	Dead  bool              // the daemon is gone
	IO    bool              // EIO
	Raw   []byte            // of "read"
	Files map[string]string // of "walk": brief of each file, by path below Path
	Done  int               // of "steps": how many answered 0
	Mode  uint32            // of "stat"
	MTime int64             // of "stat"; a second
}

// agent is a process that works in a mount, and outlives it.
type agent struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{} // closed when it has ended

	mu      sync.Mutex
	next    int
	waiting map[int]chan outcome
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	a := &agent{done: make(chan struct{}), waiting: make(map[int]chan outcome)}
	a.cmd = exec.CommandContext(context.Background(), os.Args[0]) //nolint:gosec // this program
	a.cmd.Env = append(os.Environ(), agentVariable+"=1")
	a.cmd.Stderr = os.Stderr
	a.cmd.Dir = "/"
	var out io.ReadCloser
	var err error
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if out, err = a.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go a.listen(out)
	t.Cleanup(func() {
		_ = a.cmd.Process.Kill() // it may have ended
		<-a.done
		_ = a.cmd.Wait() // it was killed
	})
	return a
}

// listen hands the outcomes to those who wait.
func (a *agent) listen(out io.Reader) {
	defer close(a.done)
	lines := json.NewDecoder(out)
	for {
		var o outcome
		if lines.Decode(&o) != nil {
			return
		}
		a.mu.Lock()
		c := a.waiting[o.ID]
		delete(a.waiting, o.ID)
		a.mu.Unlock()
		if c != nil {
			c <- o
		}
	}
}

// do has a task done, and returns what the system calls answered.
func (a *agent) do(k task) error {
	_, err := a.ask(k)
	return err
}

func (a *agent) ask(k task) (outcome, error) {
	c := make(chan outcome, 1)
	a.mu.Lock()
	a.next++
	k.ID = a.next
	a.waiting[k.ID] = c
	raw, err := json.Marshal(k)
	if err == nil {
		_, err = a.in.Write(append(raw, '\n'))
	}
	a.mu.Unlock()
	if err != nil {
		return outcome{}, err
	}
	patience := time.NewTimer(agentPatience)
	defer patience.Stop()
	select {
	case o := <-c:
		if o.Err != "" {
			if o.Dead {
				return o, fmt.Errorf("%w: %s", errDead, o.Err)
			}
			if o.IO {
				return o, fmt.Errorf("%w: %s", errIO, o.Err)
			}
			return o, errors.New(o.Err)
		}
		return o, nil
	case <-a.done:
		return outcome{}, errors.New("the agent has ended")
	case <-patience.C:
		return outcome{}, errors.New("the agent does not answer")
	}
}

// agentPatience is more than any lake has: what hangs in a mount ends with it.
const agentPatience = 10 * time.Minute

// runAgent is the life of an agent. Tasks run at the same time.
func runAgent() {
	tasks := bufio.NewScanner(os.Stdin)
	held := &handles{open: make(map[string]*os.File)}
	var mu sync.Mutex
	answers := json.NewEncoder(os.Stdout)
	for tasks.Scan() {
		var k task
		if err := json.Unmarshal(tasks.Bytes(), &k); err != nil {
			panic(err)
		}
		go func() {
			o := outcome{ID: k.ID}
			if err := held.run(k, &o); err != nil {
				o.Err = err.Error()
				o.IO = errors.Is(err, syscall.EIO)
				o.Dead = errors.Is(err, syscall.ENOTCONN) || errors.Is(err, syscall.ECONNABORTED)
			}
			mu.Lock()
			defer mu.Unlock()
			_ = answers.Encode(o) // the test has ended
		}()
	}
}

// handles are files that stay open over tasks, by path.
type handles struct {
	mu   sync.Mutex
	open map[string]*os.File
}

func (h *handles) run(k task, o *outcome) (err error) {
	switch k.Do {
	case "read":
		o.Raw, err = os.ReadFile(k.Path)
		return err
	case "walk":
		o.Files, err = walk(k.Path)
		return err
	case "tell":
		return os.WriteFile(k.Path, []byte(k.Name), 0o600)
	case "be told it exists":
		if err = os.WriteFile(k.Path, []byte(k.Name), 0o600); errors.Is(err, iofs.ErrExist) {
			return nil
		}
		return errors.Join(err, errors.New("that was not told"))
	case "create":
		return k.write(os.O_CREATE | os.O_TRUNC)
	case "append":
		return k.write(os.O_CREATE | os.O_APPEND)
	case "patch":
		return k.write(0)
	case "rename":
		return unix.Rename(k.Path, k.To) // os.Rename refuses to replace an empty directory
	case "unlink":
		return os.Remove(k.Path)
	case "copy":
		return k.copy()
	case "mkdir":
		if err = os.Mkdir(k.Path, 0o755); errors.Is(err, iofs.ErrExist) { // of an attempt before
			return nil
		}
		return err
	case "remove all":
		return os.RemoveAll(k.Path)
	case "utimes":
		return os.Chtimes(k.Path, stamp, stamp)
	case "stat":
		info, failed := os.Stat(k.Path)
		if failed == nil {
			o.Mode, o.MTime = uint32(info.Mode().Perm()), info.ModTime().Unix()
		}
		return failed
	case "steps":
		for _, step := range k.Steps {
			if err := h.run(step, o); err != nil {
				return fmt.Errorf("step %d: %w", o.Done+1, err)
			}
			o.Done++
		}
		return nil
	case "renamed before its close":
		return k.renamedWhileOpen()
	case "hold":
		return h.hold(k)
	case "release":
		h.mu.Lock()
		f := h.open[k.Path]
		delete(h.open, k.Path)
		h.mu.Unlock()
		return f.Close()
	}
	return fmt.Errorf("no task is called %q", k.Do)
}

// stamp is the time that "utimes" sets.
var stamp = time.Date(2020, 2, 2, 2, 2, 2, 0, time.UTC)

// walk is what a directory shows, file by file.
func walk(root string) (map[string]string, error) {
	files := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d iofs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err == nil {
			files[strings.TrimPrefix(path, root+"/")] = brief(raw)
		}
		return err
	})
	return files, err
}

// write writes the content into a file that is opened so.
func (k *task) write(flag int) error {
	f, err := os.OpenFile(k.Path, os.O_WRONLY|flag, 0o644)
	if err != nil {
		return err
	}
	err = k.fill(f, flag&os.O_APPEND != 0)
	if err == nil && k.Mode != 0 {
		err = f.Chmod(os.FileMode(k.Mode))
	}
	if err == nil && k.Sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (k *task) fill(f *os.File, appending bool) error {
	chunk := k.Chunks
	if chunk == 0 {
		chunk = 1 << 20
	}
	rest, off := content(k.Name, k.Size), k.Off
	for len(rest) > 0 {
		piece := rest[:min(chunk, len(rest))]
		var err error
		if appending {
			_, err = f.Write(piece)
		} else {
			_, err = f.WriteAt(piece, off)
		}
		if err != nil {
			return err
		}
		rest, off = rest[len(piece):], off+int64(len(piece))
	}
	return nil
}

func (k *task) renamedWhileOpen() error {
	f, err := os.OpenFile(k.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	err = k.fill(f, false)
	if err == nil {
		err = os.Rename(k.Path, k.To)
	}
	return errors.Join(err, f.Close())
}

// hold writes, syncs if so asked, and leaves the file open.
func (h *handles) hold(k task) error {
	f, err := os.OpenFile(k.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	h.mu.Lock()
	if old := h.open[k.Path]; old != nil {
		_ = old.Close() // of a mount that is gone
	}
	h.open[k.Path] = f
	h.mu.Unlock()
	err = k.fill(f, false)
	if err == nil && k.Sync {
		err = f.Sync()
	}
	return err
}

// copy copies as cp does: by copy_file_range, and by hand where that is refused.
func (k *task) copy() error {
	from, err := os.Open(k.Path)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // only read
	to, err := os.OpenFile(filepath.Clean(k.To), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	for err == nil {
		var n int
		n, err = unix.CopyFileRange(int(from.Fd()), nil, int(to.Fd()), nil, 1<<30, 0)
		if err == nil && n == 0 {
			return to.Close()
		}
	}
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.EXDEV) {
		_, err = io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from})
	}
	return errors.Join(err, to.Close())
}
