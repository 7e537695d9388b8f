package objectstore_test

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// outside makes a directory with a secret beside the folder, and returns both.
func outside(t *testing.T) (dir, out string) {
	t.Helper()
	top := t.TempDir()
	dir, out = top+"/lake", top+"/out"
	for _, d := range []string{dir, dir + "/in", out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, out+"/secret", "secret")
	write(t, dir+"/in/f", "inside")
	return dir, out
}

func TestFolderLinksThatLeave(t *testing.T) {
	dir, out := outside(t)
	for name, target := range map[string]string{
		"absolute":        out + "/secret",
		"absolute-inside": dir + "/in/f",
		"up":              "../out/secret",
		"in/up":           "../../out/secret",
		"directory":       out,
		"in/directory":    "../../out",
		"there-and-back":  "../lake/in/f",
		"chain":           "in/up",
		"dangling":        "no",
		"loop":            "loop",
		"magic":           "/proc/self/root/etc/passwd",
	} {
		symlink(t, target, dir+"/"+name)
	}
	f := newFolder(t, dir)
	wantListed(t, f, dir, "", "in/")
	wantListed(t, f, dir, "in/", "in/f")
	for _, key := range []string{
		"absolute", "absolute-inside", "up", "in/up", "directory", "directory/", "directory/secret",
		"in/directory/secret", "there-and-back", "chain", "dangling", "loop", "loop/x", "magic",
	} {
		wantNotThere(t, f, at(dir, key))
	}
	wantListed(t, f, dir, "directory/")
	for _, key := range []string{"absolute", "up", "in/up", "directory", "directory/", "there-and-back", "chain", "loop", "magic"} {
		wantHidden(t, f, at(dir, key), true)
	}
	for _, key := range []string{"dangling", "directory/secret", "in/directory/secret", "loop/x", "free", "in/f/"} {
		wantHidden(t, f, at(dir, key), false)
	}
	put := func(key string) error {
		_, err := f.Put(t.Context(), at(dir, key), strings.NewReader("x"), 1, objectstore.PutOptions{})
		return err
	}
	wantErr(t, "Put below a link", put("directory/new"), objectstore.ErrNotExist)
	wantErr(t, "Put far below a link", put("directory/new/new"), objectstore.ErrNotExist)
	wantErr(t, "MakeDirectory", f.MakeDirectory(t.Context(), at(dir, "directory/d/")), objectstore.ErrNotExist)
	err := f.RenameDirectory(t.Context(), at(dir, "directory/d/"), at(dir, "in/"))
	wantErr(t, "RenameDirectory", err, objectstore.ErrNotExist)
	if err := put("absolute"); err != nil { // the link itself gives way
		t.Error(err)
	}
	wantNames(t, out, "secret")
	if b, err := os.ReadFile(out + "/secret"); err != nil || string(b) != "secret" {
		t.Errorf("the file outside holds %q, %v", b, err)
	}
}

// wantHidden looks whether a name that is not there is told from a free one.
func wantHidden(t *testing.T, f *objectstore.Folder, loc objectstore.Location, want bool) {
	t.Helper()
	_, err := f.Stat(t.Context(), loc)
	if got := errors.Is(err, objectstore.ErrHidden); got != want || !errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("Stat %s: %v: hidden %v, want %v, and ErrNotExist", loc.Key, err, got, want)
	}
}

// wantNotThere tries all that reads or deletes.
func wantNotThere(t *testing.T, f *objectstore.Folder, loc objectstore.Location) {
	t.Helper()
	_, err := f.Stat(t.Context(), loc)
	wantErr(t, "Stat "+loc.Key, err, objectstore.ErrNotExist)
	if !strings.HasSuffix(loc.Key, "/") {
		_, _, err = f.Read(t.Context(), objectstore.Object{Location: loc}, 0, 1)
		wantErr(t, "Read "+loc.Key, err, objectstore.ErrNotExist)
		_, err = f.OpenObject(t.Context(), objectstore.Object{Location: loc})
		wantErr(t, "OpenObject "+loc.Key, err, objectstore.ErrNotExist)
	}
	for _, err := range f.Delete(t.Context(), []objectstore.Location{loc}) {
		if err != nil {
			t.Errorf("Delete %s: %v", loc.Key, err)
		}
	}
	if !strings.Contains(loc.Key, "/") {
		if _, err := os.Lstat(loc.Bucket + "/" + loc.Key); err != nil {
			t.Errorf("Delete took a link that is not shown: %v", err)
		}
	}
}

func TestFolderLinksThatStay(t *testing.T) {
	dir, _ := outside(t)
	symlink(t, "in/f", dir+"/link")
	symlink(t, "../in/f", dir+"/in/up")
	symlink(t, "in", dir+"/dir")
	symlink(t, "..", dir+"/in/loop")
	f := newFolder(t, dir)
	wantListed(t, f, dir, "", "dir/", "in/", "link")
	wantListed(t, f, dir, "dir/", "dir/f", "dir/loop/", "dir/up")
	for _, key := range []string{"link", "in/up", "dir/f", "dir/loop/in/f"} {
		o, err := f.Stat(t.Context(), at(dir, key))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := readAll(t, f, o); got != "inside" {
			t.Errorf("%s reads %q", key, got)
		}
	}
	o, err := f.Stat(t.Context(), at(dir, "link"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Rename(t.Context(), at(dir, "in/moved"), o, objectstore.Cond{})
	wantErr(t, "Rename of a link", err, objectstore.ErrCrossDevice)
	if _, err = f.Put(t.Context(), at(dir, "link"), strings.NewReader("new"), 3, onlyIf(o.Match)); err != nil {
		t.Error(err)
	}
	if b, rerr := os.ReadFile(dir + "/in/f"); rerr != nil || string(b) != "inside" {
		t.Errorf("Put over a link wrote through it: %q, %v", b, rerr)
	}
	err = f.RenameDirectory(t.Context(), at(dir, "dir2/"), at(dir, "dir/"))
	wantErr(t, "RenameDirectory of a link", err, objectstore.ErrCrossDevice)
	for _, err := range f.Delete(t.Context(), []objectstore.Location{at(dir, "dir/")}) {
		wantErr(t, "Delete of a link to a directory", err, objectstore.ErrPermission)
	}
}

// A link to a directory above would make a deep listing endless.
func TestFolderListLoopOfLinksEnds(t *testing.T) {
	dir, _ := outside(t)
	symlink(t, "..", dir+"/in/loop")
	symlink(t, ".", dir+"/self")
	f := newFolder(t, dir)
	n := 0
	for e, err := range f.List(t.Context(), at(dir, ""), objectstore.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n > 10 {
			t.Fatalf("listing goes on at %q", e.Key)
		}
	}
}

// Somebody swaps a directory for a link to the outside and back, as fast as
// the kernel lets him: no read ever leaves the folder.
func TestFolderLinkRaced(t *testing.T) {
	dir, out := outside(t)
	write(t, out+"/f", "secret of another size")
	symlink(t, out, dir+"/evil")
	f := newFolder(t, dir)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			err := unix.Renameat2(unix.AT_FDCWD, dir+"/in", unix.AT_FDCWD, dir+"/evil", unix.RENAME_EXCHANGE)
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	inside, hidden := 0, 0
	for range 3000 {
		o, err := f.Stat(t.Context(), at(dir, "in/f"))
		if errors.Is(err, objectstore.ErrNotExist) {
			hidden++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if o.Size != int64(len("inside")) || o.ETag == "" {
			t.Fatalf("Stat = %+v", o)
		}
		file, err := f.OpenObject(t.Context(), o)
		if errors.Is(err, objectstore.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err) // ErrChanged: it saw the file outside
		}
		closing(t, file)
		inside++
		_, err = f.Put(t.Context(), at(dir, "in/w"), strings.NewReader(""), 0, objectstore.PutOptions{})
		if err != nil && !errors.Is(err, objectstore.ErrNotExist) {
			t.Fatal(err)
		}
	}
	close(done)
	wg.Wait()
	wantNames(t, out, "f", "secret")
	if inside == 0 || hidden == 0 {
		t.Logf("no race seen: %d inside, %d hidden", inside, hidden)
	}
}
