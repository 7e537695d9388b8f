package fs_test

import (
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
)

// model is what a directory tree of an ordinary disk would be: the reference
// of the random-operations test. Paths are relative, "" is the root.
type model struct {
	files map[string]string
	dirs  map[string]bool
}

func newModel() *model {
	return &model{files: map[string]string{}, dirs: map[string]bool{"": true}}
}

func modelParent(p string) string {
	if d := path.Dir(p); d != "." {
		return d
	}
	return ""
}

// above is the errno of a path's parents: 0 where all are directories.
func (m *model) above(p string) syscall.Errno {
	if p == "" {
		return 0
	}
	d := modelParent(p)
	if e := m.above(d); e != 0 {
		return e
	}
	if _, file := m.files[d]; file {
		return syscall.ENOTDIR
	}
	if !m.dirs[d] {
		return syscall.ENOENT
	}
	return 0
}

// there is the errno of a look-up.
func (m *model) there(p string) syscall.Errno {
	if e := m.above(p); e != 0 {
		return e
	}
	if _, file := m.files[p]; !file && !m.dirs[p] {
		return syscall.ENOENT
	}
	return 0
}

func (m *model) children(dir string) []string {
	var names []string
	for p := range m.all() {
		if p != "" && modelParent(p) == dir {
			names = append(names, path.Base(p))
		}
	}
	slices.Sort(names)
	return names
}

func (m *model) all() map[string]bool {
	all := maps.Clone(m.dirs)
	for p := range m.files {
		all[p] = true
	}
	return all
}

// open is the errno of an open for writing; create makes the name.
func (m *model) open(p string, create bool) syscall.Errno {
	if e := m.above(p); e != 0 {
		return e
	}
	if m.dirs[p] {
		return syscall.EISDIR
	}
	if _, file := m.files[p]; !file && !create {
		return syscall.ENOENT
	}
	return 0
}

// change puts f's result into a file, made if it is not there and create.
func (m *model) change(p string, create bool, f func(old string) string) syscall.Errno {
	if e := m.open(p, create); e != 0 {
		return e
	}
	m.files[p] = f(m.files[p])
	return 0
}

func (m *model) mkdir(p string) syscall.Errno {
	switch e := m.there(p); e {
	case 0:
		return syscall.EEXIST
	case syscall.ENOENT:
		if m.above(p) != 0 {
			return syscall.ENOENT
		}
		m.dirs[p] = true
		return 0
	default:
		return e
	}
}

func (m *model) rmdir(p string) syscall.Errno {
	if e := m.there(p); e != 0 {
		return e
	}
	if !m.dirs[p] {
		return syscall.ENOTDIR
	}
	if len(m.children(p)) > 0 {
		return syscall.ENOTEMPTY
	}
	delete(m.dirs, p)
	return 0
}

func (m *model) unlink(p string) syscall.Errno {
	if e := m.there(p); e != 0 {
		return e
	}
	if m.dirs[p] {
		return syscall.EISDIR
	}
	delete(m.files, p)
	return 0
}

// rename is rename(2), in Linux's order of errors.
func (m *model) rename(from, to string) syscall.Errno {
	if e := m.above(from); e != 0 {
		return e
	}
	if e := m.above(to); e != 0 {
		return e
	}
	if e := m.there(from); e != 0 {
		return e
	}
	dir := m.dirs[from]
	_, file := m.files[to]
	switch {
	case strings.HasPrefix(to, from+"/"):
		return syscall.EINVAL
	case strings.HasPrefix(from, to+"/"):
		return syscall.ENOTEMPTY
	case from == to:
		return 0
	case !dir && m.dirs[to]:
		return syscall.EISDIR
	case dir && file:
		return syscall.ENOTDIR
	case dir && len(m.children(to)) > 0:
		return syscall.ENOTEMPTY
	}
	if !dir {
		m.files[to] = m.files[from]
		delete(m.files, from)
		return 0
	}
	m.move(from, to)
	return 0
}

// move takes a directory with all below it.
func (m *model) move(from, to string) {
	for p := range m.all() {
		if p != from && !strings.HasPrefix(p, from+"/") {
			continue
		}
		q := to + strings.TrimPrefix(p, from)
		if content, file := m.files[p]; file {
			delete(m.files, p)
			m.files[q] = content
			continue
		}
		delete(m.dirs, p)
		m.dirs[q] = true
	}
}

// resize cuts or extends content, as truncate(2) does.
func resize(content string, size int) string {
	if size <= len(content) {
		return content[:size]
	}
	return content + strings.Repeat("\x00", size-len(content))
}

// overwrite puts data into content at off, as pwrite(2) does.
func overwrite(content, data string, off int) string {
	if len(data) == 0 {
		return content
	}
	content = resize(content, max(len(content), off+len(data)))
	return content[:off] + data + content[off+len(data):]
}
