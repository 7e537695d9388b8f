package fs_test

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// handles opens, uses and closes descriptors that live over several steps.
func (r *modelRun) handles(n int, p string) {
	switch {
	case n < 5:
		r.openReader(p)
	case n < 7 && r.writer == nil:
		r.openWriter(p)
	case n < 10:
		r.writeOn()
	default:
		r.closeWriter()
	}
}

// openReader opens a file that is there, and reads an older one to its end.
func (r *modelRun) openReader(p string) {
	if len(r.readers) > 3 {
		r.closeReader(r.readers[0])
		r.readers = r.readers[1:]
	}
	content, file := r.m.files[p]
	if !file || r.busy(p) {
		return
	}
	var f *os.File
	r.do("open to read "+p, 0, func() (err error) { f, err = os.Open(r.mount(p)); return err })
	if f != nil {
		r.readers = append(r.readers, modelReader{f, p, content})
	}
}

func (r *modelRun) closeReader(d modelReader) {
	var got []byte
	r.do("read the version of "+d.path+" that was opened", 0, func() error {
		raw, err := io.ReadAll(d.f)
		got = raw
		return errors.Join(err, d.f.Close())
	})
	if string(got) != d.want {
		r.t.Errorf("step %d: the descriptor of %s reads %s, want %s", r.step, d.path, brief(string(got)), brief(d.want))
	}
}

func (r *modelRun) openWriter(p string) {
	old, there := r.m.files[p]
	want := r.m.open(p, true)
	flags, content := os.O_RDWR|os.O_CREATE, old
	if r.rnd.IntN(2) == 0 {
		flags, content = flags|os.O_TRUNC, ""
	}
	var f *os.File
	r.do("open to write "+p, want, func() (err error) { f, err = os.OpenFile(r.mount(p), flags, 0o644); return err })
	if f != nil {
		r.writer = &modelWriter{f: f, path: p, content: content, fresh: !there}
	}
}

// writeOn writes into the open file, and looks at it from both sides.
func (r *modelRun) writeOn() {
	w := r.writer
	if w == nil {
		return
	}
	data := r.data()
	off := r.rnd.IntN(len(w.content) + 100)
	w.content = overwrite(w.content, data, off)
	r.do("write into the open "+w.path, 0, func() error { _, err := w.f.WriteAt([]byte(data), int64(off)); return err })
	back := make([]byte, len(w.content))
	r.do("read it back", 0, func() error {
		n, err := w.f.ReadAt(back, 0)
		if n == len(back) {
			return nil
		}
		return err
	})
	if string(back) != w.content {
		r.t.Errorf("step %d: reading back %s: %s, want %s", r.step, w.path, brief(string(back)), brief(w.content))
	}
	seen := w.content
	if !w.fresh {
		seen = r.m.files[w.path]
	}
	if got, err := r.l.ReadFile(modelTable + "/" + w.path); got != seen || err != nil {
		r.t.Errorf("step %d: %s by name, while it is written: %s, %v; want %s", r.step, w.path, brief(got), err, brief(seen))
	}
	_, err := r.l.StoredInfo(modelTable + "/" + w.path)
	if w.fresh != errors.Is(err, iofs.ErrNotExist) {
		r.t.Errorf("step %d: %s in the folder while it is written: %v", r.step, w.path, err)
	}
}

func (r *modelRun) closeWriter() {
	w := r.writer
	if w == nil {
		return
	}
	r.writer = nil
	r.m.files[w.path] = w.content
	r.do("close "+w.path, 0, func() error { return mounttest.NoFork(w.f.Close) })
	// A child of another test may have had the descriptor until its exec: RELEASE publishes then.
	r.l.Eventually("published: "+w.path, 10*time.Second, func() bool {
		got, there := inStore(r.t, r.l, modelTable+"/"+w.path)
		return there && got == w.content
	})
	r.compare(w.path)
}

func (r *modelRun) closeAll() {
	r.closeWriter()
	for _, d := range r.readers {
		r.closeReader(d)
	}
	r.readers = nil
}
