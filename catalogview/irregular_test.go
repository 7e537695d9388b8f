package catalogview

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/table"
)

func TestAManifestThatIsNoRegularFileIsABrokenTable(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/good", "data/good", nil, nil)
	l.write("data/real.json", manifestOf("db/linked", "data/l", nil, nil))
	outside := filepath.Join(l.extra, "sqe", "table.json")
	l.write(outside, manifestOf("db/out", "data", nil, nil))

	l.symlink("../../../data/real.json", "db/linked/_sqe/table.json")
	l.symlink(outside, "db/out/_sqe/table.json")
	l.symlink("nowhere", "db/dangling/_sqe/table.json")
	l.symlink("table.json", "db/loop/_sqe/table.json")
	l.symlink(filepath.Dir(outside), "db/dirlink/_sqe")
	l.fifo("db/fifo/_sqe/table.json")
	l.mkdir("db/dir/_sqe/table.json")
	// These are ordinary directories.
	l.mkdir("db/plain")
	l.mkdir("db/empty/_sqe")
	l.write("db/file/_sqe", "x")

	wantLs(t, l.view, "db", "good/", "good.json", "linked/", "linked.json", "out/", "out.json", "dangling/", "dangling.json",
		"loop/", "loop.json", "dirlink/", "dirlink.json", "fifo/", "fifo.json", "dir/", "dir.json")
	if n := lookup(t, l.view, "db/linked"); !n.Table.Readable {
		t.Errorf("a manifest by a link within the folder: %q", n.Table.Reason)
	}
	for name, reason := range map[string]string{
		"out": "table.json is a symbolic link", "dangling": "table.json is a symbolic link", "loop": "table.json is a symbolic link",
		"dirlink": "_sqe is a symbolic link", "fifo": "is a FIFO", "dir": "is a directory",
	} {
		n := lookup(t, l.view, "db/"+name)
		if n.Table.Kind != table.Broken || n.Table.Class != table.ClassBroken || !strings.Contains(n.Table.Reason, reason) {
			t.Errorf("%s: got %q %q, %q, want broken, %q", name, n.Table.Kind, n.Table.Class, n.Table.Reason, reason)
		}
		s, err := l.view.Status(t.Context(), "db/"+name)
		if err != nil || s.Readable || !strings.Contains(s.Reason, reason) {
			t.Errorf("%s: status %+v (%v)", name, s, err)
		}
		if _, err = list(t.Context(), l.view, "db/"+name); err == nil {
			t.Errorf("%s: it lists", name)
		}
		raw, _, err := l.view.EntryJSON(t.Context(), "db/"+name)
		if err != nil || len(raw) != 0 {
			t.Errorf("%s: entry %q (%v), want an empty one", name, raw, err)
		}
	}
	// Mended, it is a table at the next look.
	l.must(os.Remove(filepath.Join(l.root, "db/fifo/_sqe/table.json")))
	l.table("db/fifo", "data/fifo", nil, nil)
	if n := lookup(t, l.view, "db/fifo"); !n.Table.Readable {
		t.Errorf("a mended manifest: %q", n.Table.Reason)
	}
}

func TestAnIrregularManifestCostsNoFurtherRequest(t *testing.T) {
	l := newLake(t, nil)
	l.fifo("db/fifo/_sqe/table.json")
	l.mkdir("db/plain")
	for _, name := range []string{"fifo", "plain"} {
		got := l.store.requests(func() { _, _ = l.view.src.(*Manifests).Stat(t.Context(), "db", name) })
		wantRequests(t, name, got, map[string]int{"stat": 1})
	}
}
