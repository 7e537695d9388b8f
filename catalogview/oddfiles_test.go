package catalogview

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/table"
)

func (l *lake) symlink(target, path string) {
	l.t.Helper()
	l.must(os.MkdirAll(filepath.Dir(filepath.Join(l.root, path)), 0o755))
	l.must(os.Symlink(target, filepath.Join(l.root, path)))
}

func (l *lake) fifo(path string) {
	l.t.Helper()
	l.must(os.MkdirAll(filepath.Dir(filepath.Join(l.root, path)), 0o755))
	l.must(syscall.Mkfifo(filepath.Join(l.root, path), 0o600))
}

func (l *lake) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func TestALocationThatNoStoreCanHoldIsBroken(t *testing.T) {
	l := newLake(t, nil)
	for what, location := range map[string]string{
		"3000 components":    strings.Repeat("a/", 3000),
		"absolute":           l.root + "/" + strings.Repeat("a/", 3000),
		"a long component":   "data/" + strings.Repeat("x", 256),
		"a longer component": "data/" + strings.Repeat("x", 5000) + "/y",
	} {
		l.table("db/t", location, nil, nil)
		n := lookup(t, l.view, "db/t")
		if n.Table.Class != table.ClassBroken || !strings.Contains(n.Table.Reason, "too long") || len(n.Table.Reason) > 1000 {
			t.Errorf("%s: got class %q, %q, want broken, too long", what, n.Table.Class, n.Table.Reason)
		}
		s, err := l.view.Status(t.Context(), "db/t")
		if err != nil || s.Readable || s.Reason == "" {
			t.Errorf("%s: status %+v (%v)", what, s, err)
		}
	}
	// As long as may be.
	l.table("db/t", "data/"+strings.Repeat("x", 255), nil, nil)
	if n := lookup(t, l.view, "db/t"); !n.Table.Readable {
		t.Errorf("255 bytes: %q", n.Table.Reason)
	}
}

func TestALocationThatIsASpecialFileIsBroken(t *testing.T) {
	l := newLake(t, nil)
	l.fifo("data/fifo")
	l.symlink("fifo", "data/link")
	// Its path must be short.
	t.Chdir(l.root)
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", "data/socket")
	l.must(err)
	defer socket.Close() //nolint:errcheck // nothing came
	for location, reason := range map[string]string{"data/fifo": "is a FIFO", "data/link": "is a FIFO", "data/socket": "is a socket"} {
		l.table("db/t", location, nil, nil)
		n := lookup(t, l.view, "db/t")
		if n.Table.Class != table.ClassBroken || !strings.Contains(n.Table.Reason, reason) {
			t.Errorf("%s: got class %q, %q, want broken, %q", location, n.Table.Class, n.Table.Reason, reason)
		}
	}
	l.table("db/t", "data/new", nil, nil)
	wantLs(t, l.view, "db/t")
}

func TestTheControlDirectorysNameIsNoDatabaseAndNoTable(t *testing.T) {
	l := newLake(t, nil)
	l.table("db/t", "data/t", nil, nil)
	l.table("db/.lakefs", "data/x", nil, nil)
	l.table(".lakefs/t", "data/x", nil, nil)
	l.table(".hidden/t", "data/x", nil, nil)
	for range 3 {
		wantLs(t, l.view, "", "db/", "db.json")
		wantLs(t, l.view, "db", "t/", "t.json")
	}
	for _, path := range []string{".lakefs", ".lakefs.json", ".lakefs/t", "db/.lakefs", "db/.lakefs.json", "db/.lakefs/f", ".hidden/t"} {
		if _, err := l.view.Lookup(t.Context(), path); err == nil {
			t.Errorf("%s is there", path)
		}
	}
	for _, path := range []string{".lakefs", "db/.lakefs"} {
		if _, _, err := l.view.EntryJSON(t.Context(), path); err == nil {
			t.Errorf("%s has an entry", path)
		}
	}
	if n := strings.Count(l.log.String(), "table=db/.lakefs"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, l.log)
	}
}

func TestOnlyALocationThatAFlagCanAllowSaysSo(t *testing.T) {
	l := newLake(t, nil)
	l.symlink("/etc", "out")
	for location, outside := range map[string]string{
		"/etc": "/etc", "file:///etc/": "/etc", "/no/where//x": "/no/where/x", "file:/etc": "/etc",
		"out/x": "", "../wh": "", "/etc/../etc": "", "file://other/etc": "", "s3://b/k": "", "hdfs://n/k": "", "/etc\x00": "", "\x1b[2J/../x": "",
	} {
		l.table("db/t", location, nil, nil)
		n := lookup(t, l.view, "db/t").Table
		if n.Outside != outside || (outside != "") != strings.Contains(n.Reason, "--allow-location") {
			t.Errorf("%q: outside %q, reason %q; want outside %q", location, n.Outside, n.Reason, outside)
		}
		if strings.ContainsAny(n.Reason, "\x00\x1b") {
			t.Errorf("%q: the reason has control characters: %q", location, n.Reason)
		}
	}
}
