package fs_test

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

const modelTable = "db/t"

// TestRandomOperationsAgainstAModel does random operations on a mount and on a
// model of an ordinary disk, and compares after each step what it touched, and
// at intervals the whole tree, with the folder too.
func TestRandomOperationsAgainstAModel(t *testing.T) {
	t.Parallel()
	random := uint64(time.Now().UnixNano())
	for _, seed := range []uint64{1, 2, 3, 1796054905731097551, random} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := newModelRun(t, seed)
			for r.step = 1; r.step <= 600 && !t.Failed(); r.step++ {
				r.one()
				if r.step%50 == 0 {
					r.compareAll()
				}
				if r.step == 300 {
					r.remount()
				}
			}
			r.closeAll()
			r.compareAll()
			if t.Failed() {
				t.Logf("seed %d, step %d; the last operations:\n%s", seed, r.step, strings.Join(r.log[max(0, len(r.log)-25):], "\n"))
			}
		})
	}
}

// modelRun is one run: the mount, the model, and the descriptors that are open.
type modelRun struct {
	t       *testing.T
	l       *mounttest.Lake
	m       *model
	rnd     *rand.Rand
	step    int
	log     []string
	outside bool // others change the folder, too; TTLs are 0
	readers []modelReader
	writer  *modelWriter
}

// modelReader is a descriptor that must read what it opened, for good.
type modelReader struct {
	f    *os.File
	path string
	want string
}

// modelWriter is a descriptor that is being written. Others see a new file by
// name, and the version before of an old one.
type modelWriter struct {
	f       *os.File
	path    string
	content string
	fresh   bool
}

func newModelRun(t *testing.T, seed uint64) *modelRun {
	t.Helper()
	r := &modelRun{t: t, m: newModel(), rnd: rand.New(rand.NewPCG(seed, 1)), outside: seed%2 == 0}
	flags := []string{"--write=delete"}
	if r.outside {
		flags = append(flags, noWait...)
	}
	r.l = mounttest.Mount(t, mounttest.Options{
		Tables: []mounttest.Table{text("t", nil)}, Flags: flags, Timeout: 3 * time.Minute, Files: map[string]string{"_data/db/t/": ""},
	})
	return r
}

func (r *modelRun) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf("%d: ", r.step)+fmt.Sprintf(format, args...))
}

// path is a random one of few, so that operations meet: mostly a name in a
// directory that is there.
func (r *modelRun) path() string {
	p := ""
	if r.rnd.IntN(4) > 0 {
		dirs := slices.Sorted(maps.Keys(r.m.dirs))
		return filepath.Join(dirs[r.rnd.IntN(len(dirs))], string("abcdef"[r.rnd.IntN(6)]))
	}
	for range 1 + r.rnd.IntN(3) {
		p = filepath.Join(p, string("abcd"[r.rnd.IntN(4)]))
	}
	return p
}

// busy tells paths that the open writer makes special: its own, and those above.
func (r *modelRun) busy(p string) bool {
	return r.writer != nil && (p == r.writer.path || strings.HasPrefix(r.writer.path, p+"/") || strings.HasPrefix(p, r.writer.path+"/"))
}

func (r *modelRun) data() string {
	size := []int{0, 1, 100, 4096, 5000, 131072, 1<<20 - 1, 1<<20 + 1}[min(r.rnd.IntN(12), 7)]
	if size > 100_000 && r.rnd.IntN(3) > 0 {
		size = 300
	}
	return strings.Repeat(fmt.Sprintf("%d.", r.step), size/2+1)[:size]
}

func (r *modelRun) mount(p string) string { return r.l.Path(modelTable + "/" + p) }

// do runs one call on the mount and compares its errno with the model's.
func (r *modelRun) do(what string, want syscall.Errno, call func() error) {
	r.t.Helper()
	r.note("%s → %s", what, name(want))
	wantErrno(r.t, fmt.Sprintf("step %d: %s", r.step, what), r.l.Do(what, call), want)
}

func (r *modelRun) one() {
	p, q := r.path(), r.path()
	if n := r.rnd.IntN(100); n < 12 {
		r.handles(n, p)
		return
	}
	if r.busy(p) || r.busy(q) {
		r.writeOn()
		return
	}
	r.change(p, q)
	r.compare(p)
	r.compare(q)
}

// change does one operation by path.
func (r *modelRun) change(p, q string) {
	data, mount := r.data(), r.mount(p)
	size := r.rnd.IntN(len(r.m.files[p]) + 5000)
	switch r.rnd.IntN(13) {
	case 0, 1:
		r.do("write "+p, r.m.change(p, true, func(string) string { return data }), func() error {
			return mounttest.NoFork(func() error { return os.WriteFile(mount, []byte(data), 0o644) })
		})
	case 2:
		r.do("append "+p, r.m.change(p, true, func(old string) string { return old + data }), func() error {
			return withFile(mount, os.O_WRONLY|os.O_APPEND|os.O_CREATE, func(f *os.File) error { _, err := f.WriteString(data); return err })
		})
	case 3:
		r.do(fmt.Sprintf("write %d at %d of %s", len(data), size, p), r.m.change(p, false, func(old string) string { return overwrite(old, data, size) }), func() error {
			return withFile(mount, os.O_RDWR, func(f *os.File) error { _, err := f.WriteAt([]byte(data), int64(size)); return err })
		})
	case 4:
		r.do(fmt.Sprintf("truncate %s to %d", p, size), r.m.change(p, false, func(old string) string { return resize(old, size) }), func() error { return syscall.Truncate(mount, int64(size)) })
	case 5:
		r.do(fmt.Sprintf("ftruncate %s to %d, write", p, size), r.m.change(p, true, func(old string) string { return overwrite(resize(old, size), data, size/2) }), func() error {
			return withFile(mount, os.O_RDWR|os.O_CREATE, func(f *os.File) error {
				err := f.Truncate(int64(size))
				if err == nil {
					_, err = f.WriteAt([]byte(data), int64(size/2))
				}
				return err
			})
		})
	case 6, 7:
		r.do("mkdir "+p, r.m.mkdir(p), func() error { return syscall.Mkdir(mount, 0o755) })
	case 8:
		r.do("rmdir "+p, r.m.rmdir(p), func() error { return syscall.Rmdir(mount) })
	case 9:
		r.do("unlink "+p, r.m.unlink(p), func() error { return syscall.Unlink(mount) })
	case 10, 11:
		r.do("rename "+p+" to "+q, r.m.rename(p, q), func() error { return syscall.Rename(mount, r.mount(q)) })
	case 12:
		r.others(p, data)
	}
}

// others changes the folder itself, as another program would.
func (r *modelRun) others(p, data string) {
	if !r.outside {
		return
	}
	if _, file := r.m.files[p]; !file {
		return
	}
	r.note("replaced outside: %s", p)
	r.l.PutStored(modelTable+"/"+p, data)
	r.m.files[p] = data
}

func withFile(path string, flags int, op func(*os.File) error) error {
	return mounttest.NoFork(func() error { // from the open on: what forks meanwhile has the descriptor until it has left exec
		f, err := os.OpenFile(path, flags, 0o644)
		if err != nil {
			return err
		}
		return errors.Join(op(f), f.Close())
	})
}

// compare looks at one path: kind, size, bytes, names.
func (r *modelRun) compare(p string) {
	r.t.Helper()
	var st syscall.Stat_t
	err := r.l.Do("stat "+p, func() error { return syscall.Lstat(r.mount(p), &st) })
	want := r.m.there(p)
	wantErrno(r.t, fmt.Sprintf("step %d: stat %s", r.step, p), err, want)
	if want != 0 || err != nil {
		return
	}
	if r.m.dirs[p] {
		if st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
			r.t.Errorf("step %d: %s is no directory", r.step, p)
		}
		return
	}
	content := r.m.files[p]
	got, err := r.l.ReadFile(modelTable + "/" + p)
	if st.Size != int64(len(content)) || got != content || err != nil {
		r.t.Errorf("step %d: %s has size %d and reads %s, %v; want %d, %s", r.step, p, st.Size, brief(got), err, len(content), brief(content))
	}
}

// compareAll walks the mount and the folder, or what a bucket has: files alone.
func (r *modelRun) compareAll() {
	r.t.Helper()
	roots := []string{r.l.Path(modelTable)}
	if r.l.OnS3() {
		if got := storedTree(r.t, r.l, modelTable); !maps.Equal(got, r.m.files) {
			r.t.Errorf("step %d: the bucket has\n%q\nwant\n%q", r.step, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(r.m.files)))
		}
	} else {
		roots = append(roots, r.l.Data(modelTable))
	}
	for _, root := range roots {
		got := newModel()
		err := r.l.Do("walk", func() error {
			return filepath.WalkDir(root, func(path string, d iofs.DirEntry, err error) error {
				if err != nil || path == root {
					return err
				}
				p, _ := filepath.Rel(root, path)
				if d.IsDir() {
					got.dirs[p] = true
					return nil
				}
				raw, err := os.ReadFile(path)
				got.files[p] = string(raw)
				return err
			})
		})
		if err != nil {
			r.t.Errorf("step %d: walk of %s: %v", r.step, root, err)
			continue
		}
		if !maps.Equal(got.files, r.m.files) || !maps.Equal(got.dirs, r.m.dirs) {
			r.t.Errorf("step %d: %s has\n%q\nwant\n%q", r.step, root, slices.Sorted(maps.Keys(got.all())), slices.Sorted(maps.Keys(r.m.all())))
			for p, content := range r.m.files {
				if got.files[p] != content {
					r.t.Errorf("%s: %s, want %s", p, brief(got.files[p]), brief(content))
				}
			}
		}
	}
	open := 0
	if r.writer != nil {
		open = 1
	}
	if n := len(spools(r.t, r.l)); n > open {
		r.t.Errorf("step %d: %d writes in the staging directory, want at most %d", r.step, n, open)
	}
}

// makeEmptyOnes makes the empty directories anew: in a bucket one that mkdir made
// outlives the mount, and one that a removal emptied does not.
func (r *modelRun) makeEmptyOnes() {
	for dir := range r.m.dirs {
		empty := dir != ""
		for p := range r.m.files {
			empty = empty && modelParent(p) != dir
		}
		for p := range r.m.dirs {
			empty = empty && (p == "" || modelParent(p) != dir)
		}
		if !empty {
			continue
		}
		path := filepath.Join(modelTable, dir)
		if err := errors.Join(rmdir(r.l, path), mkdir(r.l, path)); err != nil {
			r.t.Errorf("step %d: make %s anew: %v", r.step, path, err)
		}
	}
}

func (r *modelRun) remount() {
	r.closeAll()
	if r.l.OnS3() {
		r.makeEmptyOnes()
	}
	r.note("remount")
	r.l.Remount()
	r.compareAll()
}
