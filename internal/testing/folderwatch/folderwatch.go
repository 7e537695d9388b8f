// Package folderwatch tells a test which names came into a folder, and which files grew
// there in place, however short they were there.
package folderwatch

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

// Seen is what was seen of a name.
type Seen struct {
	Directory bool
	InPlace   bool // a file that was made or changed there: it was seen while it grew
}

// Watcher sees, by inotify, every name that comes into a folder. Directories made
// meanwhile are watched too, from a little after they were made. It is for one
// goroutine.
type Watcher struct {
	t     *testing.T
	root  string
	file  *os.File
	fd    int
	done  chan struct{}    // closed when the reader has ended
	dirs  map[int32]string // of the reader: by watch, the path below root
	marks int              // of the test

	mu struct {
		sync.Mutex
		seen map[string]Seen // by path below root
		mark map[string]chan struct{}
	}
}

// MarkName begins the names of the files that Take makes, and removes: their events
// come after those before them.
const MarkName = ".watched-up-to-here-"

// Watch begins to watch root, which exists, until the test ends.
func Watch(t *testing.T, root string) *Watcher {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	must(t, err)
	w := &Watcher{t: t, root: root, fd: fd, file: os.NewFile(uintptr(fd), "inotify"), done: make(chan struct{}), dirs: map[int32]string{}}
	w.mu.seen, w.mu.mark = map[string]Seen{}, map[string]chan struct{}{}
	must(t, w.add("."))
	go w.read()
	t.Cleanup(func() {
		must(t, w.file.Close())
		<-w.done
	})
	return w
}

// add watches the directory, and notes what is in it already.
func (w *Watcher) add(dir string) error {
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
		w.note(path, Seen{Directory: e.IsDir()})
		if e.IsDir() {
			if err := w.add(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Watcher) note(path string, now Seen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.mu.seen[path]
	w.mu.seen[path] = Seen{Directory: was.Directory || now.Directory, InPlace: was.InPlace || now.InPlace}
}

func (w *Watcher) read() {
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

func (w *Watcher) event(wd int32, mask uint32, name string) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		w.t.Error("inotify lost events")
		return
	}
	if mask&unix.IN_IGNORED != 0 || name == "" {
		return
	}
	path := filepath.Join(w.dirs[wd], name)
	switch {
	case strings.HasPrefix(path, MarkName):
		w.mu.Lock()
		defer w.mu.Unlock()
		if mark := w.mu.mark[path]; mark != nil && mask&unix.IN_CREATE != 0 {
			close(mark)
		}
	case mask&unix.IN_ISDIR != 0:
		w.note(path, Seen{Directory: true})
		if err := w.add(path); err != nil {
			w.t.Error(err)
		}
	default:
		w.note(path, Seen{InPlace: mask&(unix.IN_CREATE|unix.IN_MODIFY) != 0})
	}
}

// Take returns the names that were seen since the last Take, by path below root.
func (w *Watcher) Take() map[string]Seen {
	w.t.Helper()
	w.marks++
	name, mark := fmt.Sprint(MarkName, w.marks), make(chan struct{})
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
	w.mu.seen = map[string]Seen{}
	return seen
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
