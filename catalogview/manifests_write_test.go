package catalogview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

func editable(o *Options) { o.WriteEntries, o.TTL, o.NegativeTTL = true, time.Hour, time.Hour }

func (l *lake) manifest(id string) string {
	l.t.Helper()
	b, err := os.ReadFile(filepath.Join(l.root, id, "_sqe/table.json"))
	if err != nil {
		l.t.Fatal(err)
	}
	return string(b)
}

// TestRule49_EntriesAreWrittenAndDropped: what is written is the manifest, byte for
// byte, and shows at once; dropping it leaves the data.
func TestRule49_EntriesAreWrittenAndDropped(t *testing.T) {
	l := newLake(t, editable)
	ctx := t.Context()
	l.table("db/t", "db/t", []string{"day:int"}, nil)
	l.write("db/t/day=1/f", "data")
	wantLs(t, l.view, "db", "t.json", "t/")
	if _, _, err := l.view.FreshEntry(ctx, "db/new"); !errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("FreshEntry of none: %v", err)
	}
	if _, err := l.view.Lookup(ctx, "db/new"); !errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("Lookup of none: %v", err)
	}

	entry := "  " + manifestOf("db/new", "data/new", []string{"dt:string"}, nil) + " \n"
	n, err := l.view.WriteEntry(ctx, "db/new", []byte(entry), "", false)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.manifest("db/new"); got != entry {
		t.Errorf("the manifest is %q, want %q", got, entry)
	}
	if n.Kind != KindEntry || n.Path != "db/new.json" || n.Size != int64(len(entry)) || n.Table == nil || n.Table.Location != "data/new" {
		t.Errorf("got the node %+v", n)
	}
	wantLs(t, l.view, "db", "new.json", "new/", "t.json", "t/")
	if got := lookup(t, l.view, "db/new.json"); got.ETag != n.ETag || got.Size != n.Size {
		t.Errorf("Lookup: version %q, want %q", got.ETag, n.ETag)
	}
	if _, err = l.view.WriteEntry(ctx, "db/new", []byte(entry), "", false); !errors.Is(err, objectstore.ErrExist) {
		t.Errorf("a second new one: %v, want ErrExist", err)
	}

	moved := manifestOf("db/new", "data/moved", []string{"dt:string"}, nil)
	l.write("data/moved/dt=2/f", "x")
	if err = os.Chmod(filepath.Join(l.root, "db/new/_sqe/table.json"), 0o640); err != nil {
		t.Fatal(err)
	}
	_, fresh, err := l.view.FreshEntry(ctx, "db/new")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = l.view.WriteEntry(ctx, "db/new", []byte(moved), fresh.ETag, false); err != nil {
		t.Fatal(err)
	}
	wantLs(t, l.view, "db/new", "dt=2/")
	info, err := os.Stat(filepath.Join(l.root, "db/new/_sqe/table.json"))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the new version is %v, %v, want the mode of the old", info, err)
	}
	for base, want := range map[string]error{fresh.ETag: objectstore.ErrChanged, "no version": objectstore.ErrChanged, "": objectstore.ErrExist} {
		if _, err = l.view.WriteEntry(ctx, "db/new", []byte(entry), base, false); !errors.Is(err, want) {
			t.Errorf("of the version %q: got %v, want %v", base, err, want)
		}
	}
	if _, err = l.view.WriteEntry(ctx, "db/gone", []byte(manifestOf("db/gone", "x", nil, nil)), fresh.ETag, false); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("of a table that went: got %v, want ErrChanged", err)
	}

	if err = l.view.RemoveEntry(ctx, "db/t", fresh.ETag); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("RemoveEntry of another version: %v, want ErrChanged", err)
	}
	if err = l.view.RemoveEntry(ctx, "db/t", lookup(t, l.view, "db/t.json").ETag); err != nil {
		t.Error(err)
	}
	if err = l.view.RemoveEntry(ctx, "db/t", ""); !errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("RemoveEntry of none: %v, want ErrNotExist", err)
	}
	wantLs(t, l.view, "db", "new.json", "new/")
	if _, err = os.Stat(filepath.Join(l.root, "db/t/day=1/f")); err != nil {
		t.Error(err)
	}
	if _, err = os.Stat(filepath.Join(l.root, "db/t/_sqe")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the manifest's directory: %v, want it gone", err)
	}
}

// TestRule42_BadEntriesAreRefused: each names what is wrong, and the old entry stays.
func TestRule42_BadEntriesAreRefused(t *testing.T) {
	l := newLake(t, func(o *Options) {
		editable(o)
		o.Secrets = []string{"known"}
	})
	l.table("db/t", "db/t", []string{"day:int"}, nil)
	l.write("a file", "x")
	good := l.manifest("db/t")
	etag := lookup(t, l.view, "db/t.json").ETag
	columns := func(n int) []obj {
		all := make([]obj, n)
		for i := range all {
			all[i] = obj{"name": fmt.Sprintf("c%d", i), "type": "int"}
		}
		return all
	}
	with := func(change func(m obj)) string { return manifestOf("db/t", "db/t", []string{"day:int"}, change) }
	for _, c := range []struct{ name, entry, reason string }{
		{"empty", "", "empty"},
		{"2 MiB", with(func(m obj) { m["parameters"] = obj{"p": strings.Repeat("x", 2<<20)} }), "limit of 1048576 bytes"},
		{"columns", with(func(m obj) { m["storage_descriptor"].(obj)["columns"] = columns(4097) }), "limit of 4096 columns"},
		{"keys", with(func(m obj) { m["partition_keys"] = columns(33) }), "limit of 32 partition keys"},
		{"version", with(func(m obj) { m["manifest_version"] = 2 }), "manifest_version is 2"},
		{"no version", with(func(m obj) { delete(m, "manifest_version") }), "manifest_version is missing"},
		{"another table's", manifestOf("db/other", "db/t", nil, nil), `name is "other"`},
		{"another database's", manifestOf("dc/t", "db/t", nil, nil), `database_name is "dc"`},
		{"no location", with(func(m obj) { delete(m["storage_descriptor"].(obj), "location") }), "storage_descriptor.location is missing"},
		{"no storage descriptor", with(func(m obj) { delete(m, "storage_descriptor") }), "storage_descriptor.location is missing"},
		{"secret", with(func(m obj) { m["sqe"] = obj{"secret": "unknown"} }), "sqe.secret"},
		{"cut JSON", good[:len(good)/2], "it is cut"},
		{"bad JSON", "{" + good, "no JSON"},
		{"trailing garbage", good + "x", "something follows"},
		{"an array", "[" + good + "]", "an array"},
		{"a key twice", `{"name":"t",` + good[1:], "there twice"},
		{"bad UTF-8", strings.Replace(good, `"day"`, "\"d\xffy\"", 1), "not UTF-8"},
		{"a nesting bomb", strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000), "nests deeper than 64"},
		{"a file", strings.Replace(good, `"location":"db/t"`, `"location":"a file"`, 1), "is a file"},
	} {
		_, err := l.view.WriteEntry(t.Context(), "db/t", []byte(c.entry), etag, false)
		var invalid *EntryError
		if !errors.As(err, &invalid) || !errors.Is(err, ErrEntry) || !strings.Contains(invalid.Reason, c.reason) {
			t.Errorf("%s: got %v, want an EntryError with %q", c.name, err, c.reason)
		}
		if tooLarge := errors.Is(err, objectstore.ErrTooLarge); tooLarge != (c.name == "2 MiB") {
			t.Errorf("%s: got %v", c.name, err)
		}
		if got := l.manifest("db/t"); got != good {
			t.Fatalf("%s: the entry is now %q", c.name, got)
		}
		wantRejected(t, l.view, "db/t", c.reason)
		wantRejected(t, l.view, "db", c.reason)
	}
	for path, want := range map[string]error{
		"db/_sqe": ErrEntry, "db/.lakefs": objectstore.ErrNotExist, "db": objectstore.ErrNotExist, "db/t/f": objectstore.ErrNotExist,
		"db/" + strings.Repeat("x", 251): ErrNameTooLong,
	} {
		if _, err := l.view.WriteEntry(t.Context(), path, []byte(good), "", false); !errors.Is(err, want) {
			t.Errorf("WriteEntry(%.20s): got %v, want %v", path, err, want)
		}
	}
	if _, err := l.view.WriteEntry(t.Context(), "db/t", []byte(good+"\n"), etag, false); err != nil {
		t.Fatal(err)
	}
	wantRejected(t, l.view, "db/t")
}

// wantRejected checks the reasons of status.json.
func wantRejected(t *testing.T, v *View, path string, reasons ...string) {
	t.Helper()
	st, err := v.Status(t.Context(), path)
	if err != nil || len(st.Rejected) != len(reasons) {
		t.Fatalf("status of %s: %+v, %v, want %d rejected", path, st.Rejected, err, len(reasons))
	}
	for i, r := range st.Rejected {
		if !strings.Contains(r.Reason, reasons[i]) || r.At.IsZero() || r.Path != "db/t.json" {
			t.Errorf("status of %s: %+v, want %q", path, r, reasons[i])
		}
	}
	b, err := json.Marshal(st)
	if err != nil || strings.Contains(string(b), "entry_rejected") != (len(reasons) > 0) {
		t.Errorf("status of %s: %s, %v", path, b, err)
	}
}

// TestRule43_WrittenLocationsAreChecked: as at every load, and the old entry stays.
func TestRule43_WrittenLocationsAreChecked(t *testing.T) {
	l := newLake(t, editable)
	l.table("db/t", "db/t", nil, nil)
	good := l.manifest("db/t")
	etag := lookup(t, l.view, "db/t.json").ETag
	for location, class := range map[string]table.Class{
		"/etc": table.ClassDenied, "../x": table.ClassDenied, "s3://b/k": table.ClassDenied, "hdfs://nn/x": table.ClassUnsupported,
	} {
		_, err := l.view.WriteEntry(t.Context(), "db/t", []byte(manifestOf("db/t", location, nil, nil)), etag, false)
		var verdict *VerdictError
		if !errors.As(err, &verdict) || verdict.Class != class || errors.Is(err, objectstore.ErrPermission) != (class == table.ClassDenied) {
			t.Errorf("%s: got %v, want a verdict of class %s", location, err, class)
		}
		if l.manifest("db/t") != good {
			t.Fatalf("%s: the entry is another", location)
		}
		wantRejected(t, l.view, "db/t", location)
	}
	if _, err := l.view.WriteEntry(t.Context(), "db/t", []byte(manifestOf("db/t", l.extra+"/x", nil, nil)), etag, false); err != nil {
		t.Error(err)
	}
	link := filepath.Join(l.root, "db/l/_sqe/table.json")
	l.mkdir("db/l/_sqe")
	if err := os.Symlink("/etc/hostname", link); err != nil {
		t.Fatal(err)
	}
	if err := l.view.RemoveEntry(t.Context(), "db/l", ""); !errors.Is(err, ErrEntry) {
		t.Errorf("RemoveEntry of a link that leaves the folder: %v", err)
	}
	for _, base := range []string{"", lookup(t, l.view, "db/l.json").ETag} {
		if _, err := l.view.WriteEntry(t.Context(), "db/l", []byte(manifestOf("db/l", "x", nil, nil)), base, false); !errors.Is(err, ErrEntry) {
			t.Errorf("over a link that leaves the folder: got %v", err)
		}
	}
}

// Entries that are written and dropped at once leave nothing stale behind.
func TestWritesAtOnceLeaveNothingStale(t *testing.T) {
	l := newLake(t, editable)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 25 {
				entry := manifestOf("db/t", fmt.Sprintf("data/%d-%d", i, j), nil, nil)
				_, n, err := l.view.FreshEntry(t.Context(), "db/t")
				if err == nil && (i+j)%3 == 0 {
					err = l.view.RemoveEntry(t.Context(), "db/t", n.ETag)
				} else if err == nil || errors.Is(err, objectstore.ErrNotExist) {
					_, err = l.view.WriteEntry(t.Context(), "db/t", []byte(entry), n.ETag, false)
				}
				if err != nil && !errors.Is(err, objectstore.ErrChanged) && !errors.Is(err, objectstore.ErrExist) && !errors.Is(err, objectstore.ErrNotExist) {
					t.Error(err)
				}
				_, _ = list(t.Context(), l.view, "db")
			}
		})
	}
	wg.Wait()
	_, fresh, err := l.view.src.Table(t.Context(), "db", "t", "")
	there := !errors.Is(err, objectstore.ErrNotExist)
	n, err := l.view.Lookup(t.Context(), "db/t.json")
	if there != (err == nil) || n.ETag != fresh.ETag {
		t.Errorf("there: %v, shown %+v, %v, want the version %q", there, n, err, fresh.ETag)
	}
	if names := ls(t, l.view, "db"); slices.Contains(names, "t.json") != there {
		t.Errorf("there: %v, listed %q", there, names)
	}
}

// Without the option nothing is written, and nothing is noted.
func TestEntriesAreNotWrittenUnasked(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "db/t", nil, nil)
	etag := lookup(t, l.view, "db/t.json").ETag
	_, writeErr := l.view.WriteEntry(t.Context(), "db/t", []byte(manifestOf("db/t", "x", nil, nil)), etag, false)
	f := table.FormatChange{InputFormat: "I"}
	for what, err := range map[string]error{
		"WriteEntry": writeErr, "RemoveEntry": l.view.RemoveEntry(t.Context(), "db/t", etag), "SetFormat": l.view.SetFormat(t.Context(), "db/t", f),
	} {
		if !errors.Is(err, objectstore.ErrPermission) {
			t.Errorf("%s: got %v, want ErrPermission", what, err)
		}
	}
	wantRejected(t, l.view, "db/t")
}

// lostStore does what it is asked, and loses the answer.
type lostStore struct{ *probe }

func (s lostStore) Put(ctx context.Context, loc objectstore.Location, r io.ReaderAt, size int64, opts objectstore.PutOptions) (objectstore.Object, error) {
	if _, err := s.probe.Put(ctx, loc, r, size, opts); err != nil {
		return objectstore.Object{}, err
	}
	return objectstore.Object{}, objectstore.ErrUnavailable
}

func (s lostStore) Delete(ctx context.Context, locs []objectstore.Location) iter.Seq2[objectstore.Location, error] {
	return func(yield func(objectstore.Location, error) bool) {
		for loc, err := range s.probe.Delete(ctx, locs) {
			if err == nil {
				err = objectstore.ErrUnavailable
			}
			if !yield(loc, err) {
				return
			}
		}
	}
}

// An answer that was lost is settled by looking.
func TestLostAnswersAreSettled(t *testing.T) {
	l := newLake(t, nil)
	m := NewManifests(lostStore{l.store}, objectstore.Location{Bucket: l.root}, Options{})
	entry := []byte(manifestOf("db/t", "x", nil, nil))
	_, raw, err := m.PutTable(t.Context(), "db", "t", EntryWrite{Entry: entry})
	if err != nil || raw.ETag == "" {
		t.Fatalf("PutTable: %+v, %v", raw, err)
	}
	if _, raw, err = m.PutTable(t.Context(), "db", "t", EntryWrite{Entry: append(entry, '\n'), Base: raw.ETag}); err != nil {
		t.Fatal(err)
	}
	if _, _, err = m.PutTable(t.Context(), "db", "t", EntryWrite{Entry: entry, Base: "another"}); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("PutTable of another version: %v", err)
	}
	if err = m.DeleteTable(t.Context(), "db", "t", raw.ETag); err != nil {
		t.Error(err)
	}
	if _, err = m.Stat(t.Context(), "db", "t"); !errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("after DeleteTable: %v", err)
	}
}

// The refusals that are remembered are bounded: the latest count.
func TestRejectionsAreBounded(t *testing.T) {
	var r rejectedEntries
	for i := range 3 * maxRejected {
		r.note(t.Context(), time.Unix(int64(i), 0), fmt.Sprintf("db/t%d", i), &EntryError{Reason: strings.Repeat("é", maxReason)})
	}
	all := r.of("db")
	if len(all) != maxRejected || all[len(all)-1].Path != fmt.Sprintf("db/t%d.json", 3*maxRejected-1) {
		t.Errorf("%d remembered, the last %q", len(all), all[len(all)-1].Path)
	}
	if slices.ContainsFunc(all, func(e RejectedEntry) bool { return len(e.Reason) > maxReason+len("…") }) {
		t.Error("a reason is not cut")
	}
	if len(r.of("d")) != 0 || len(r.of("db/t")) != 0 || len(r.of("db/t299")) != 1 {
		t.Errorf("of others: %v, %v, %v", r.of("d"), r.of("db/t"), r.of("db/t299"))
	}
}
