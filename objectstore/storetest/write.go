package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// A write id as staging makes them.
const writeID = "0193b0f0-5f9e-7c3a-9d1e-1f0b5a6c7d8e"

func testPutReplaces(f fixture) {
	t := f.t
	f.put(t, "a/b/c", data(5000, 1))
	o := f.put(t, "a/b/c", data(10, 2))
	if o.Size != 10 || o.Location != f.at("a/b/c") {
		t.Errorf("Put tells %+v", o)
	}
	f.want(t, "a/b/c", data(10, 2))
	for key := range f.list(t, "", objectstore.ListOptions{}) {
		if key != "a/b/c" && !strings.HasSuffix(key, "/") {
			t.Errorf("Put left %q behind", key)
		}
	}
}

func testPutMeta(f fixture) {
	t := f.t
	meta := map[string]string{
		objectstore.MetaMode:    "640",
		objectstore.MetaMTime:   "1234567890.000000001",
		objectstore.MetaWriteID: writeID,
	}
	o, err := f.Put(t.Context(), f.at("f"), strings.NewReader("x"), 1, objectstore.PutOptions{Meta: meta})
	if err != nil {
		t.Fatal(err)
	}
	got := f.stat(t, "f")
	for k, want := range meta {
		if o.Meta[k] != want || got.Meta[k] != want {
			t.Errorf("%s: Put tells %q, Stat %q, want %q", k, o.Meta[k], got.Meta[k], want)
		}
	}
	f.put(t, "f", []byte("y"))
	if id := f.stat(t, "f").Meta[objectstore.MetaWriteID]; id != "" {
		t.Errorf("write id %q of an object that another write replaced", id)
	}
}

func testPutShortSource(f fixture) {
	t := f.t
	_, err := f.Put(t.Context(), f.at("f"), strings.NewReader("123"), 5, objectstore.PutOptions{})
	wantErr(t, "Put of 5 bytes of 3", err, io.ErrUnexpectedEOF)
	f.missing(t, "f")
}

func testPutIfNoneMatch(f fixture) {
	t := f.t
	cond := objectstore.Cond{IfNoneMatch: true}
	if _, err := f.putCond(t, "f", []byte("1"), cond); err != nil {
		t.Fatal(err)
	}
	_, err := f.putCond(t, "f", []byte("2"), cond)
	wantErr(t, "second create", err, objectstore.ErrExist)
	f.want(t, "f", []byte("1"))
}

func testPutIfMatch(f fixture) {
	t := f.t
	v1 := f.put(t, "f", []byte("1"))
	v2, err := f.putCond(t, "f", []byte("2"), objectstore.Cond{IfMatch: v1.Match})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.putCond(t, "f", []byte("3"), objectstore.Cond{IfMatch: v1.Match})
	wantErr(t, "Put on the old Match", err, objectstore.ErrChanged)
	_, err = f.putCond(t, "f", []byte("3"), objectstore.Cond{IfMatch: v1.ETag})
	wantErr(t, "Put on the old ETag", err, objectstore.ErrChanged)
	f.want(t, "f", []byte("2"))
	if _, err = f.putCond(t, "f", []byte("4"), objectstore.Cond{IfMatch: v2.ETag}); err != nil {
		t.Errorf("Put on the ETag: %v", err)
	}
	for _, key := range []string{"no", "no/no"} {
		_, err = f.putCond(t, key, []byte("3"), objectstore.Cond{IfMatch: v2.Match})
		wantErr(t, "Put on a version of nothing", err, objectstore.ErrChanged)
		f.missing(t, key)
	}
	f.missing(t, "no/") // nor was a directory made for it
}

// whole polls key until done is closed, and fails the test when it sees
// anything but nothing or one byte size times.
func whole(t *testing.T, f fixture, key string, size int, done <-chan struct{}) {
	t.Helper()
	for {
		select {
		case <-done:
			return
		default:
		}
		o, err := f.Stat(t.Context(), f.at(key))
		if errors.Is(err, objectstore.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Error(err)
			return
		}
		b, err := readRange(t.Context(), f, o, 0, o.Size)
		if errors.Is(err, objectstore.ErrChanged) || errors.Is(err, objectstore.ErrNotExist) {
			continue
		}
		if err != nil || len(b) != size || bytes.Count(b, b[:1]) != size {
			t.Errorf("%s: %d bytes of %d, mixed or cut: %v", key, len(b), size, err)
			return
		}
	}
}

func testPutWhole(f fixture) {
	t := f.t
	const size = 300_000
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { whole(t, f, "f", size, done) })
	for i := range 20 {
		f.put(t, "f", bytes.Repeat([]byte{byte(i)}, size))
	}
	close(done)
	wg.Wait()
}

// testCreate20: of 20 writers that create one name, one wins.
func testCreate20(f fixture) {
	t := f.t
	var wins atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			_, err := f.putCond(t, "d/f", []byte{byte(i)}, objectstore.Cond{IfNoneMatch: true})
			if err == nil {
				wins.Add(1)
			} else {
				wantErr(t, "lost create", err, objectstore.ErrExist)
			}
		})
	}
	wg.Wait()
	if n := wins.Load(); n != 1 {
		t.Errorf("%d of 20 writers created the name", n)
	}
}

func testReadModifyWrite(f fixture) { Increment(f.t, f.dir, f.Store, f.Store) }

// Increment has each of the stores, all over the same directory, count one
// object up at the same moment, and fails if an update is lost.
func Increment(t *testing.T, dir objectstore.Location, stores ...objectstore.Store) {
	t.Helper()
	const each = 25
	counter := objectstore.Location{Bucket: dir.Bucket, Key: dir.Key + "counter"}
	if _, err := stores[0].Put(t.Context(), counter, strings.NewReader("0"), 1, objectstore.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, s := range stores {
		wg.Go(func() {
			for done, tries := 0, 0; done < each; tries++ {
				if tries == 40*each {
					t.Errorf("%d of %d updates in %d tries", done, each, tries)
					return
				}
				switch err := increment(t, s, counter); {
				case err == nil:
					done++
				case !errors.Is(err, objectstore.ErrChanged):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	got, err := number(t, stores[0], counter)
	if want := each * len(stores); err != nil || got != want {
		t.Errorf("counter = %d (%v), want %d: updates were lost", got, err, want)
	}
}

func increment(t *testing.T, s objectstore.Store, loc objectstore.Location) error {
	t.Helper()
	o, err := s.Stat(t.Context(), loc)
	if err != nil {
		return err
	}
	b, err := readRange(t.Context(), s, o, 0, o.Size)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return err
	}
	next := fmt.Sprint(n + 1)
	opts := objectstore.PutOptions{Cond: objectstore.Cond{IfMatch: o.Match}}
	_, err = s.Put(t.Context(), loc, strings.NewReader(next), int64(len(next)), opts)
	return err
}

func number(t *testing.T, s objectstore.Store, loc objectstore.Location) (int, error) {
	t.Helper()
	o, err := s.Stat(t.Context(), loc)
	if err != nil {
		return 0, err
	}
	b, err := readRange(t.Context(), s, o, 0, o.Size)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(b))
}

func testCopy(f fixture) {
	t := f.t
	meta := map[string]string{
		objectstore.MetaMode: "600", objectstore.MetaMTime: "1234567890", objectstore.MetaWriteID: writeID,
	}
	src, err := f.Put(t.Context(), f.at("f"), bytes.NewReader(data(9000, 1)), 9000, objectstore.PutOptions{Meta: meta})
	if err != nil {
		t.Fatal(err)
	}
	o, err := f.Copy(t.Context(), f.at("new/g"), src, objectstore.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := f.stat(t, "new/g")
	if o.ETag != got.ETag || o.Size != 9000 || o.Location != f.at("new/g") {
		t.Errorf("Copy tells %+v, Stat %+v", o, got)
	}
	for k, want := range meta {
		if got.Meta[k] != want {
			t.Errorf("copied %s = %q, want %q", k, got.Meta[k], want)
		}
	}
	f.want(t, "f", data(9000, 1))
	f.want(t, "new/g", data(9000, 1))
	opts := objectstore.PutOptions{Meta: map[string]string{objectstore.MetaMode: "644"}}
	if _, err := f.Copy(t.Context(), f.at("h"), src, opts); err != nil {
		t.Fatal(err)
	}
	if m := f.stat(t, "h").Meta; m[objectstore.MetaMode] != "644" || m[objectstore.MetaWriteID] != "" {
		t.Errorf("Meta of a copy with Meta of its own = %v", m)
	}
}

func testCopyConditions(f fixture) {
	t := f.t
	v1 := f.put(t, "f", []byte("1"))
	g := f.put(t, "g", []byte("g"))
	_, err := f.Copy(t.Context(), f.at("g"), v1, objectstore.PutOptions{Cond: objectstore.Cond{IfNoneMatch: true}})
	wantErr(t, "Copy to a name that is there", err, objectstore.ErrExist)
	_, err = f.Copy(t.Context(), f.at("g"), v1, objectstore.PutOptions{Cond: objectstore.Cond{IfMatch: v1.ETag}})
	wantErr(t, "Copy over another version", err, objectstore.ErrChanged)
	f.put(t, "f", []byte("22"))
	_, err = f.Copy(t.Context(), f.at("g"), v1, objectstore.PutOptions{})
	wantErr(t, "Copy of an old version", err, objectstore.ErrChanged)
	f.want(t, "g", []byte("g"))
	v1.Location = f.at("no")
	_, err = f.Copy(t.Context(), f.at("g"), v1, objectstore.PutOptions{Cond: objectstore.Cond{IfMatch: g.Match}})
	wantErr(t, "Copy of nothing", err, objectstore.ErrChanged)
	f.want(t, "g", []byte("g"))
}

func remove(t *testing.T, f fixture, key string) {
	t.Helper()
	for _, err := range f.Delete(t.Context(), []objectstore.Location{f.at(key)}) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func testDelete(f fixture) {
	t := f.t
	var locs []objectstore.Location
	for _, key := range []string{"a/1", "a/2", "b/1", "a/3", "c"} {
		f.put(t, key, nil)
		locs = append(locs, f.at(key))
	}
	f.put(t, "a/keep", []byte("k"))
	locs = append(locs, f.at("no"), f.at("no/no"), f.at("a/no"), f.at("a/keep/below"), f.at("no/"))
	var got []objectstore.Location
	for loc, err := range f.Delete(t.Context(), locs) {
		if err != nil {
			t.Error(err)
		}
		got = append(got, loc)
	}
	if len(got) != len(locs) {
		t.Errorf("%d outcomes of %d", len(got), len(locs))
	}
	for i, key := range []string{"a/1", "a/2", "b/1", "a/3", "c"} {
		f.missing(t, key)
		if got[i] != locs[i] {
			t.Errorf("outcome %d is of %v, want %v", i, got[i], locs[i])
		}
	}
	f.want(t, "a/keep", []byte("k"))
	for _, err := range f.Delete(t.Context(), []objectstore.Location{f.at("a/keep"), f.at("x")}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	f.missing(t, "a/keep")
}

// oddNames are names that are no names to some program.
func oddNames() []string {
	return []string{
		"with space", "100%", "a%20b", "~", "#", "?", "'single' \"double\"", "é", "e\u0301", "🦆", "*", "new\nline",
		"k=S%C3%A3o", "-rf", ".hidden", "_SUCCESS", "a..b", "...", "back\\slash", "tab\t", "+", "&", ";", "{a}",
		strings.Repeat("n", 255),
	}
}

func testOddNames(f fixture) {
	t := f.t
	names := oddNames()
	for i, name := range names {
		f.put(t, "d/"+name+"/"+name, []byte{byte(i)})
	}
	dirs := f.list(t, "d/", objectstore.ListOptions{Delimiter: true})
	if len(dirs) != len(names) {
		t.Errorf("%d directories listed of %d", len(dirs), len(names))
	}
	for i, name := range names {
		if _, ok := dirs["d/"+name+"/"]; !ok {
			t.Errorf("%q is not listed", name)
		}
		f.want(t, "d/"+name+"/"+name, []byte{byte(i)})
		remove(t, f, "d/"+name+"/"+name)
		f.missing(t, "d/"+name+"/"+name)
	}
}
