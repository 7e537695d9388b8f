package fs

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

func newLocal(t *testing.T, file string) *localDirectories {
	t.Helper()
	l, err := newLocalDirectories(file)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func wantLocal(t *testing.T, l *localDirectories, paths ...string) {
	t.Helper()
	var got []string
	for p := range l.dirs {
		got = append(got, p)
	}
	slices.Sort(got)
	if !slices.Equal(got, paths) {
		t.Errorf("known: %q, want %q", got, paths)
	}
}

func TestLocalDirectoriesStayWhileSomethingSpeaksForThem(t *testing.T) {
	l := newLocal(t, "")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(l.make("s/o/a/b"))
	wantLocal(t, l, "", "s", "s/o", "s/o/a", "s/o/a/b")
	if got := l.children("s/o/a"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("children = %q", got)
	}
	if l.has("s/o/a/c") || !l.has("s/o/a") {
		t.Error("has is wrong")
	}
	l.empty("s/o/a")
	must(l.remove("s/o/a/b"))
	wantLocal(t, l, "", "s", "s/o", "s/o/a")
	must(l.make("s/o/a/c/d"))
	must(l.filled("s/o/a/c", ""))
	wantLocal(t, l, "", "s", "s/o", "s/o/a", "s/o/a/c", "s/o/a/c/d")
	must(l.filled("s/o/a/c/d", ""))
	wantLocal(t, l)
	must(l.make("s/o/x/y"))
	must(l.remove("s/o/x"))
	wantLocal(t, l)
	if l.made != 0 {
		t.Errorf("made = %d, want 0", l.made)
	}
	must(l.make("s/o/a/b"))
	must(l.make("s/o/a"))
	must(l.filled("s/o/a/b", "s/o/a")) // a partition that the catalog does not know
	wantLocal(t, l, "", "s", "s/o", "s/o/a")
	must(l.filled("s/o/a", "s/o/a"))
	wantLocal(t, l, "", "s", "s/o", "s/o/a")
}

func TestLocalDirectoriesMove(t *testing.T) {
	file := filepath.Join(t.TempDir(), "directories")
	l := newLocal(t, file)
	for _, p := range []string{"s/o/a", "s/o/a/b", "s/o/a/c"} {
		if err := l.make(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.move("s/o/a", "s/o/x/y", false); err != nil {
		t.Fatal(err)
	}
	wantLocal(t, l, "", "s", "s/o", "s/o/x", "s/o/x/y", "s/o/x/y/b", "s/o/x/y/c")
	if err := l.move("s/o/x/y/b", "s/o/b", true); err != nil {
		t.Fatal(err)
	}
	want := []string{"", "s", "s/o", "s/o/x", "s/o/x/y", "s/o/x/y/c"}
	wantLocal(t, l, want...)
	wantLocal(t, newLocal(t, file), want...)
	if l.made != 2 {
		t.Errorf("made = %d, want 2", l.made)
	}
}

func TestLocalDirectoriesSurviveARemount(t *testing.T) {
	file := filepath.Join(t.TempDir(), "directories")
	l := newLocal(t, file)
	for _, p := range []string{"s/o/a", "s/o/b", "s/o/new\nline"} {
		if err := l.make(p); err != nil {
			t.Fatal(err)
		}
	}
	l.empty("s/o/emptied")
	if err := l.remove("s/o/b"); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`+"s/o/cut`); err != nil { // by a crash
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l = newLocal(t, file)
		wantLocal(t, l, "", "s", "s/o", "s/o/a", "s/o/new\nline")
	}
}

func TestLocalDirectoriesAreBounded(t *testing.T) {
	l := newLocal(t, "")
	l.made = maxLocalDirectories
	if err := l.make("s/o/a"); err == nil {
		t.Error("no limit")
	}
	if l.has("s/o/a") {
		t.Error("made past the limit")
	}
}

func TestLocalDirectoriesKeepTheRenamesThatAreUnderWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "directories")
	l := newLocal(t, file)
	one, two := treeIntent{From: []byte("s/o/_temporary/\xff"), To: []byte("s/o/_temporary/b")}, treeIntent{From: []byte("s/o/_temporary/c"), To: []byte("s/o/_temporary/d")}
	for _, err := range []error{l.begin(one), l.begin(two), l.finish(two)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // over a compaction
		l = newLocal(t, file)
		if got := l.unfinished(); len(got) != 1 || string(got[0].From) != string(one.From) || string(got[0].To) != string(one.To) {
			t.Errorf("unfinished: %q", got)
		}
	}
	if err := l.finish(one); err != nil {
		t.Fatal(err)
	}
	if got := newLocal(t, file).unfinished(); len(got) != 0 {
		t.Errorf("unfinished: %q, want none", got)
	}
}

func TestTreeIntentMovesRecords(t *testing.T) {
	intent := treeIntent{
		From: []byte("d/t/_temporary/a"), To: []byte("d/u/_temporary/b"), FromKey: []byte("t/_temporary/a/"), ToKey: []byte("u/_temporary/b/"),
		ToBucket: []byte("two"), PrefixBucket: []byte("two"), PrefixKey: []byte("u/"),
	}
	r := staging.Record{
		Path: "d/t/_temporary/a/k=1/f", Target: objectstore.Location{Bucket: "one", Key: "t/_temporary/a/k=1/f"},
		Prefix: objectstore.Location{Bucket: "one", Key: "t/"}, Hold: staging.Local,
	}
	got, ok := intent.moved(r)
	want := staging.NewWrite{
		Path: "d/u/_temporary/b/k=1/f", Target: objectstore.Location{Bucket: "two", Key: "u/_temporary/b/k=1/f"},
		Prefix: objectstore.Location{Bucket: "two", Key: "u/"}, Hold: staging.Local,
	}
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("moved: %+v, %v; want %+v", got, ok, want)
	}
	r.Path = "d/t/_temporary/ab/f"
	if _, ok := intent.moved(r); ok {
		t.Error("a record beside the directory moves")
	}
}
