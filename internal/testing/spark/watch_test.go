package spark_test

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watcher sees, by inotify, every name that comes into a folder. Directories made
// meanwhile are watched too, from a little after they were made.
type watcher struct {
	t     *testing.T
	root  string
	file  *os.File
	fd    int
	done  chan struct{}    // closed when the reader has ended
	dirs  map[int32]string // of the reader: by watch, the path below root
	marks int              // of the test

	mu struct {
		sync.Mutex
		seen map[string]bool // by path below root: the file was written in place
		mark map[string]chan struct{}
	}
}

// markName begins the names of files whose events come after those before them.
const markName = ".watched-up-to-here-"

// watch begins to watch root, which exists, until the test ends.
func watch(t *testing.T, root string) *watcher {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	must(t, err)
	w := &watcher{t: t, root: root, fd: fd, file: os.NewFile(uintptr(fd), "inotify"), done: make(chan struct{}), dirs: map[int32]string{}}
	w.mu.seen, w.mu.mark = map[string]bool{}, map[string]chan struct{}{}
	must(t, w.add("."))
	go w.read()
	t.Cleanup(func() {
		must(t, w.file.Close())
		<-w.done
	})
	return w
}

// add watches the directory, and notes what is in it already.
func (w *watcher) add(dir string) error {
	wd, err := unix.InotifyAddWatch(w.fd, filepath.Join(w.root, dir), unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_MODIFY|unix.IN_ONLYDIR)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil // gone again
	}
	if err != nil {
		return fmt.Errorf("watch %q: %w", dir, err)
	}
	w.dirs[int32(wd)] = dir
	entries, _ := os.ReadDir(filepath.Join(w.root, dir)) // gone again: nothing to note
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		w.note(path, false)
		if e.IsDir() {
			if err := w.add(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *watcher) note(path string, inPlace bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.seen[path] = w.mu.seen[path] || inPlace
}

func (w *watcher) read() {
	defer close(w.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			return // closed
		}
		for raw := buf[:n]; len(raw) >= unix.SizeofInotifyEvent; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&raw[0]))
			end := unix.SizeofInotifyEvent + int(e.Len)
			w.event(e.Wd, e.Mask, strings.TrimRight(string(raw[unix.SizeofInotifyEvent:end]), "\x00"))
			raw = raw[end:]
		}
	}
}

func (w *watcher) event(wd int32, mask uint32, name string) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		w.t.Error("inotify lost events")
		return
	}
	if mask&unix.IN_IGNORED != 0 || name == "" {
		return
	}
	path := filepath.Join(w.dirs[wd], name)
	switch {
	case strings.HasPrefix(path, markName):
		w.mu.Lock()
		defer w.mu.Unlock()
		if mark := w.mu.mark[path]; mark != nil && mask&unix.IN_CREATE != 0 {
			close(mark)
		}
	case mask&unix.IN_ISDIR != 0:
		w.note(path, false)
		if err := w.add(path); err != nil {
			w.t.Error(err)
		}
	default:
		w.note(path, mask&(unix.IN_CREATE|unix.IN_MODIFY) != 0)
	}
}

// take returns the names that were seen since the last take, by path below root; of
// each, whether it was a file that was made or changed in place.
func (w *watcher) take() map[string]bool {
	w.t.Helper()
	w.marks++
	name, mark := fmt.Sprint(markName, w.marks), make(chan struct{})
	w.mu.Lock()
	w.mu.mark[name] = mark
	w.mu.Unlock()
	path := filepath.Join(w.root, name)
	must(w.t, os.WriteFile(path, nil, 0o600))
	select {
	case <-mark:
	case <-time.After(10 * time.Second):
		w.t.Error("inotify never told of the last event")
	}
	must(w.t, os.Remove(path))
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.mu.seen
	w.mu.seen = map[string]bool{}
	return seen
}
