package tools_test

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watcher sees, by inotify, every name that comes into a folder. Directories
// made while it watches are watched too, from a little after they were made.
type watcher struct {
	t    *testing.T
	root string
	file *os.File
	fd   int
	mark chan struct{} // closed when the last event was read
	done chan struct{} // closed when the reader has ended

	// Of the reading goroutine, and after done of all.
	dirs    map[int32]string // by watch: path below root
	deep    map[string]bool  // directories made meanwhile
	names   map[string]struct{}
	written map[string]struct{} // files created or modified in place: seen while they grew
}

// markName is the file whose event comes after all others.
const markName = ".watched-up-to-here"

const events = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MODIFY

// watch begins to watch root, which exists.
func watch(t *testing.T, root string) *watcher {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	must(t, err)
	w := &watcher{
		t: t, root: root, fd: fd, file: os.NewFile(uintptr(fd), "inotify"), mark: make(chan struct{}), done: make(chan struct{}),
		dirs: map[int32]string{}, deep: map[string]bool{}, names: map[string]struct{}{}, written: map[string]struct{}{},
	}
	must(t, w.add(""))
	go w.read()
	return w
}

// add watches the directory, and notes what is in it already.
func (w *watcher) add(dir string) error {
	wd, err := unix.InotifyAddWatch(w.fd, filepath.Join(w.root, dir), events|unix.IN_ONLYDIR)
	if err != nil {
		return fmt.Errorf("watch %q: %w", dir, err)
	}
	w.dirs[int32(wd)] = dir
	entries, _ := os.ReadDir(filepath.Join(w.root, dir)) // gone again: nothing to note
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		w.names[path] = struct{}{}
		if e.IsDir() {
			w.enter(path)
		}
	}
	return nil
}

func (w *watcher) enter(dir string) {
	w.deep[dir] = true
	if err := w.add(dir); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		w.t.Error(err)
	}
}

func (w *watcher) read() {
	defer close(w.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			return // closed by stop
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
	path := filepath.Join(w.dirs[wd], name)
	if path == markName {
		if mask&unix.IN_CREATE != 0 {
			close(w.mark)
		}
		return
	}
	switch {
	case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) == 0 || name == "":
	case mask&unix.IN_ISDIR != 0:
		w.names[path] = struct{}{}
		w.enter(path)
		return
	default:
		w.names[path] = struct{}{}
	}
	if mask&unix.IN_ISDIR == 0 && mask&(unix.IN_CREATE|unix.IN_MODIFY) != 0 {
		w.written[path] = struct{}{}
	}
}

// stop ends the watch, and returns the paths of all files that came in.
func (w *watcher) stop() map[string]struct{} {
	w.t.Helper()
	must(w.t, w.drain())
	maps.DeleteFunc(w.names, func(path string, _ struct{}) bool { return w.deep[path] })
	return w.names
}

// drain reads the events up to one of our own.
func (w *watcher) drain() error {
	path := filepath.Join(w.root, markName)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	var lost error
	select {
	case <-w.mark:
	case <-time.After(10 * time.Second):
		lost = errors.New("inotify never told of the last event")
	}
	err := errors.Join(lost, os.Remove(path), w.file.Close())
	<-w.done
	return err
}

// inPlace lists files that were created or changed in the folder itself.
func (w *watcher) inPlace() []string { return slices.Sorted(maps.Keys(w.written)) }

// hide replaces each random part of a name by XXXXXX.
func (c tool) hide(t *testing.T) func(string) string {
	t.Helper()
	if c.random == "" {
		return func(s string) string { return s }
	}
	random := regexp.MustCompile(c.random)
	return func(s string) string {
		groups := random.FindStringSubmatchIndex(s)
		for i := len(groups) - 2; i >= 2; i -= 2 {
			if groups[i] >= 0 {
				s = s[:groups[i]] + "XXXXXX" + s[groups[i+1]:]
			}
		}
		return s
	}
}
