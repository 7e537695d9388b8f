package storetest

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// spool writes a local file on the file system of the store's directory, where
// that is a folder.
func (f fixture) spool(t *testing.T, b []byte) string {
	t.Helper()
	dir := t.TempDir()
	if filepath.IsAbs(f.dir.Bucket) {
		if err := os.MkdirAll(filepath.Join(f.dir.Bucket, ".spool"), 0o700); err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(f.dir.Bucket, ".spool")
	}
	file, err := os.CreateTemp(dir, "spool")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

func wantSpool(t *testing.T, path string, want []byte) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, want) {
		t.Errorf("after an error the file is not as it was: %d bytes, %v", len(b), err)
	}
}

func testAdopt(f fixture) {
	t := f.t
	adopter, ok := f.Store.(objectstore.Adopter)
	if !ok {
		t.Skip("the store is no Adopter")
	}
	path := f.spool(t, data(7000, 1))
	meta := map[string]string{objectstore.MetaMode: "640", objectstore.MetaMTime: "99.5", objectstore.MetaWriteID: writeID}
	o, err := adopter.Adopt(t.Context(), f.at("new/dir/f"), path, objectstore.PutOptions{Meta: meta})
	if err != nil {
		t.Fatal(err)
	}
	got := f.stat(t, "new/dir/f")
	if o.ETag != got.ETag || o.Match != got.Match || o.Size != 7000 {
		t.Errorf("Adopt tells %+v, Stat %+v", o, got)
	}
	for k, want := range meta {
		if got.Meta[k] != want || o.Meta[k] != want {
			t.Errorf("%s: Adopt tells %q, Stat %q, want %q", k, o.Meta[k], got.Meta[k], want)
		}
	}
	f.want(t, "new/dir/f", data(7000, 1))
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the adopted file is still there: %v", err)
	}
	if _, err := adopter.Adopt(t.Context(), f.at("new/dir/f"), f.spool(t, data(5, 2)), objectstore.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	f.want(t, "new/dir/f", data(5, 2))
}

func testAdoptConditions(f fixture) {
	t := f.t
	adopter, ok := f.Store.(objectstore.Adopter)
	if !ok {
		t.Skip("the store is no Adopter")
	}
	v1 := f.put(t, "f", []byte("1"))
	path := f.spool(t, []byte("2"))
	adopt := func(cond objectstore.Cond) error {
		meta := map[string]string{objectstore.MetaMode: "400"}
		_, err := adopter.Adopt(t.Context(), f.at("f"), path, objectstore.PutOptions{Cond: cond, Meta: meta})
		return err
	}
	wantErr(t, "create", adopt(objectstore.Cond{IfNoneMatch: true}), objectstore.ErrExist)
	wantErr(t, "replace another", adopt(objectstore.Cond{IfMatch: "1-2-3"}), objectstore.ErrChanged)
	wantSpool(t, path, []byte("2"))
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode after an error = %v, want 0600", st.Mode())
	}
	f.want(t, "f", []byte("1"))
	if err := adopt(objectstore.Cond{IfMatch: v1.Match}); err != nil {
		t.Error(err)
	}
	f.want(t, "f", []byte("2"))
}

func renamer(t *testing.T, f fixture) objectstore.Renamer {
	t.Helper()
	r, ok := f.Store.(objectstore.Renamer)
	if !ok {
		t.Skip("the store is no Renamer")
	}
	return r
}

func testRename(f fixture) {
	t := f.t
	r := renamer(t, f)
	meta := map[string]string{objectstore.MetaWriteID: writeID}
	src, err := f.Put(t.Context(), f.at("a/f"), bytes.NewReader(data(10, 1)), 10, objectstore.PutOptions{Meta: meta})
	if err != nil {
		t.Fatal(err)
	}
	o, err := r.Rename(t.Context(), f.at("new/b/g"), src, objectstore.Cond{})
	if err != nil {
		t.Fatal(err)
	}
	got := f.stat(t, "new/b/g")
	if o.ETag != got.ETag || o.Match != got.Match || o.Location != f.at("new/b/g") {
		t.Errorf("Rename tells %+v, Stat %+v", o, got)
	}
	if id := got.Meta[objectstore.MetaWriteID]; id != writeID || o.Meta[objectstore.MetaWriteID] != id {
		t.Errorf("write id after the rename = %q", id)
	}
	f.missing(t, "a/f")
	f.want(t, "new/b/g", data(10, 1))
	f.put(t, "new/b/h", []byte("old"))
	if o, err = r.Rename(t.Context(), f.at("new/b/h"), o, objectstore.Cond{}); err != nil {
		t.Fatal(err)
	}
	f.missing(t, "new/b/g")
	if _, err = r.Rename(t.Context(), f.at("new/b/h"), o, objectstore.Cond{}); err != nil {
		t.Errorf("rename to its own name: %v", err)
	}
	f.want(t, "new/b/h", data(10, 1))
}

func testRenameConditions(f fixture) {
	t := f.t
	r := renamer(t, f)
	old := f.put(t, "f", []byte("1"))
	src := f.put(t, "f", []byte("22"))
	dst := f.put(t, "g", []byte("g"))
	_, err := r.Rename(t.Context(), f.at("h"), old, objectstore.Cond{})
	wantErr(t, "rename of an old version", err, objectstore.ErrChanged)
	_, err = r.Rename(t.Context(), f.at("g"), src, objectstore.Cond{IfNoneMatch: true})
	wantErr(t, "rename to a name that is there", err, objectstore.ErrExist)
	_, err = r.Rename(t.Context(), f.at("g"), src, objectstore.Cond{IfMatch: src.Match})
	wantErr(t, "rename over another version", err, objectstore.ErrChanged)
	f.want(t, "f", []byte("22"))
	f.want(t, "g", []byte("g"))
	if _, err = r.Rename(t.Context(), f.at("g"), src, objectstore.Cond{IfMatch: dst.Match}); err != nil {
		t.Fatal(err)
	}
	f.want(t, "g", []byte("22"))
	for _, key := range []string{"f", "no/f", "g/f"} {
		src.Location = f.at(key)
		_, err = r.Rename(t.Context(), f.at("h"), src, objectstore.Cond{})
		wantErr(t, "rename of nothing", err, objectstore.ErrChanged)
	}
	f.missing(t, "h")
}

// testRenameWhole: a name that is renamed over is never missing, never mixed.
func testRenameWhole(f fixture) {
	t := f.t
	r := renamer(t, f)
	const size = 100_000
	f.put(t, "f", bytes.Repeat([]byte{255}, size))
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { whole(t, f, "f", size, done) })
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := f.Stat(t.Context(), f.at("f")); err != nil {
				t.Errorf("a moment without the name: %v", err)
				return
			}
		}
	})
	for i := range 20 {
		src := f.put(t, "tmp/g", bytes.Repeat([]byte{byte(i)}, size))
		if _, err := r.Rename(t.Context(), f.at("f"), src, objectstore.Cond{}); err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
}

func directories(t *testing.T, f fixture) objectstore.Directories {
	t.Helper()
	d, ok := f.Store.(objectstore.Directories)
	if !ok {
		t.Skip("the store has no directories of its own")
	}
	return d
}

func mustMake(t *testing.T, f fixture, key string) {
	t.Helper()
	if err := directories(t, f).MakeDirectory(t.Context(), f.at(key)); err != nil {
		t.Fatal(err)
	}
}

func testMakeDirectory(f fixture) {
	t := f.t
	d := directories(t, f)
	f.put(t, "f", nil)
	mustMake(t, f, "a/")
	if o := f.stat(t, "a/"); o.Size != 0 || o.Location != f.at("a/") {
		t.Errorf("Stat of a directory = %+v", o)
	}
	f.missing(t, "a")
	var n int
	for e, err := range f.List(t.Context(), f.at("a/"), objectstore.ListOptions{Delimiter: true}) {
		if err != nil || e.Key != f.at("a/").Key || e.Prefix || e.Size != 0 {
			t.Errorf("listing of an empty directory yields %+v, %v", e, err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("listing of an empty directory yields %d entries, want itself", n)
	}
	wantErr(t, "make again", d.MakeDirectory(t.Context(), f.at("a/")), objectstore.ErrExist)
	wantErr(t, "make below nothing", d.MakeDirectory(t.Context(), f.at("no/a/")), objectstore.ErrNotExist)
	wantErr(t, "make under a file's name", d.MakeDirectory(t.Context(), f.at("f/")), objectstore.ErrExist)
	_, err := f.putCond(t, "a", nil, objectstore.Cond{})
	wantErr(t, "Put under a directory's name", err, objectstore.ErrDirectory)
}

func testRenameDirectory(f fixture) {
	t := f.t
	d := directories(t, f)
	f.put(t, "a/b/f", []byte("1"))
	mustMake(t, f, "empty/")
	f.put(t, "full/f", []byte("2"))
	f.put(t, "file", nil)
	wantErr(t, "onto a full one", d.RenameDirectory(t.Context(), f.at("full/"), f.at("a/")), objectstore.ErrNotEmpty)
	wantErr(t, "onto a file", d.RenameDirectory(t.Context(), f.at("file/"), f.at("a/")), objectstore.ErrExist)
	wantErr(t, "of nothing", d.RenameDirectory(t.Context(), f.at("x/"), f.at("no/")), objectstore.ErrNotExist)
	wantErr(t, "of a file", d.RenameDirectory(t.Context(), f.at("x/"), f.at("file/")), objectstore.ErrNotExist)
	if err := d.RenameDirectory(t.Context(), f.at("a/b/c/"), f.at("a/")); err == nil {
		t.Error("a directory was moved into itself")
	}
	if err := d.RenameDirectory(t.Context(), f.at("empty/"), f.at("a/")); err != nil {
		t.Fatal(err)
	}
	f.missing(t, "a/")
	f.want(t, "empty/b/f", []byte("1"))
	if err := d.RenameDirectory(t.Context(), f.at("full/new/"), f.at("empty/")); err != nil {
		t.Fatal(err)
	}
	f.want(t, "full/new/b/f", []byte("1"))
}

func testDeleteDirectory(f fixture) {
	t := f.t
	f.put(t, "full/f", nil)
	mustMake(t, f, "a/")
	one := func(key string) (err error) {
		for _, e := range f.Delete(t.Context(), []objectstore.Location{f.at(key)}) {
			err = e
		}
		return err
	}
	wantErr(t, "a full one", one("full/"), objectstore.ErrNotEmpty)
	wantErr(t, "a directory as a file", one("full"), objectstore.ErrDirectory)
	if err := one("full/f/"); err != nil {
		t.Errorf("a file as a directory: %v", err)
	}
	if err := one("a/"); err != nil {
		t.Error(err)
	}
	f.missing(t, "a/")
	f.stat(t, "full/f")
}

func testDeleteVersion(f fixture) {
	t := f.t
	d, ok := f.Store.(objectstore.VersionDeleter)
	if !ok {
		t.Skip("the store is no VersionDeleter")
	}
	old := f.put(t, "a/f", []byte("1"))
	now := f.put(t, "a/f", []byte("22"))
	wantErr(t, "DeleteVersion of an old one", d.DeleteVersion(t.Context(), old), objectstore.ErrChanged)
	f.want(t, "a/f", []byte("22"))
	for range 2 { // nothing there is a success
		if err := d.DeleteVersion(t.Context(), now); err != nil {
			t.Error(err)
		}
		f.missing(t, "a/f")
	}
}
