package fs_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// The tree of tree.md, "What the mount shows".

// treeTables are two databases: a partitioned table, an empty one, a nested one.
func treeTables() []mounttest.Table {
	return []mounttest.Table{
		{Database: "sales", Name: "orders", Format: "csv", Keys: []string{"dt:date", "region"}, Files: map[string]string{
			"dt=2026-01-01/region=eu/a.csv": "1,one\n",
			"dt=2026-01-01/region=us/b.csv": "2,two\n",
			"dt=2026-01-02/region=eu/c.csv": strings.Repeat("3,three\n", 1000),
		}},
		{Database: "sales", Name: "empty", Format: "csv"},
		{Database: "web", Name: "logs", Format: "text", Files: map[string]string{"x/y/z.log": "line\n", "top.log": "top\n"}},
	}
}

func TestTreeShowsNameJSONBesideEachDirectory(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables(), Files: map[string]string{
		"_hidden/x/_sqe/table.json": "{}", ".git/HEAD": "x", "sales/no_manifest/readme": "x", "plain.txt": "x", "none/": "",
	}})
	wantNames(t, l, "", "none", "none.json", "sales", "sales.json", "web", "web.json")
	wantNames(t, l, "none")
	wantNames(t, l, "sales", "empty", "empty.json", "orders", "orders.json")
	wantNames(t, l, "sales/orders", "dt=2026-01-01", "dt=2026-01-02")
	wantNames(t, l, "sales/orders/dt=2026-01-01", "region=eu", "region=us")
	wantNames(t, l, "sales/orders/dt=2026-01-01/region=eu", "a.csv")
	wantNames(t, l, "sales/empty")
	wantContent(t, l, "sales/orders/dt=2026-01-01/region=eu/a.csv", "1,one\n")
	wantContent(t, l, "sales/orders.json", l.StoredManifest("sales/orders"))
	wantContent(t, l, "sales.json", "{\n  \"Database\": {\n    \"Name\": \"sales\",\n    \"LocationUri\": \""+databaseURI(l, "sales")+"\"\n  }\n}\n")
	for _, path := range []string{"_hidden", ".git", "sales/no_manifest", "plain.txt", "sales/no_manifest.json", "_data", "x.json"} {
		wantErrno(t, "stat "+path, statErr(l, path), syscall.ENOENT)
	}
}

// databaseURI is where a database of manifests lies.
func databaseURI(l *mounttest.Lake, database string) string {
	if l.OnS3() {
		return l.Source + database
	}
	return "file://" + l.Source + "/" + database
}

func TestTreeRealNameWinsOverEntry(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{
		text("t", map[string]string{"f": "of t"}), text("t.json", map[string]string{"g": "of t.json"}),
		{Database: "db.json", Name: "u", Format: "csv", Files: map[string]string{"h": "of db.json"}},
	}})
	wantNames(t, l, "", "db", "db.json", "db.json.json")
	wantNames(t, l, "db", "t", "t.json", "t.json.json")
	wantContent(t, l, "db/t.json/g", "of t.json")
	wantContent(t, l, "db.json/u/h", "of db.json")
	wantContent(t, l, "db/t.json.json", l.StoredManifest("db/t.json"))
	wantContent(t, l, "db/t/.lakefs/entry.json", l.StoredManifest("db/t"))
}

func TestTreeNameTooLongForAnEntryHasNone(t *testing.T) {
	t.Parallel()
	long, longest := strings.Repeat("n", 250), strings.Repeat("m", 251)
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{text(long, nil), text(longest, nil)}})
	wantNames(t, l, "db", long, long+".json", longest)
	wantErrno(t, "stat of a name of 256 bytes", statErr(l, "db/"+longest+".json"), syscall.ENAMETOOLONG)
	wantContent(t, l, "db/"+longest+"/.lakefs/entry.json", l.StoredManifest("db/"+longest))
}

// treeWalkers are programs that go through the whole tree below the mount point.
var treeWalkers = []string{
	`find . -name '.lakefs*' -o -name staged -o -name ctl`,
	`ls -RA | grep -E '\.lakefs|^staged$|^stats$'`,
	`du -a . | grep -F .lakefs`,
	`grep -rl . . | grep -F .lakefs`,
	`rm -rf ../copy && cp -r . ../copy && find ../copy -name '.lakefs*'`,
	`rsync -a --list-only . | grep -F .lakefs`,
	`tar cf - . | tar tf - | grep -F .lakefs`,
}

func TestTreeControlDirectoryIsInNoListing(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables()})
	for _, dir := range []string{"", "sales", "sales/orders", "sales/orders/dt=2026-01-01", "web/logs/x/y"} {
		path := strings.TrimPrefix(dir+"/.lakefs", "/")
		if st := stat(t, l, path); st.Mode&syscall.S_IFMT != syscall.S_IFDIR || st.Nlink != 1 {
			t.Errorf("%s: mode %o, nlink %d", path, st.Mode, st.Nlink)
		}
		names, err := l.Names(dir)
		if err != nil || slices.Contains(names, ".lakefs") {
			t.Errorf("list %q: %q, %v", dir, names, err)
		}
	}
	for _, script := range treeWalkers {
		if out := l.Sh("{ " + script + "; } || true"); out.Out != "" || out.Err != "" || out.Code != 0 {
			t.Errorf("%s\nfound %q, stderr %q, code %d", script, out.Out, out.Err, out.Code)
		}
	}
}

func TestTreeKeyOfTheControlNameIsShadowedAndCounted(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{".lakefs/evil": "x", "f": "y"})
	wantNames(t, l, "db/t", "f")
	wantErrno(t, "stat of the shadowed key", statErr(l, "db/t/.lakefs/evil"), syscall.ENOENT)
	if s := status(t, l, "db/t"); s.Catalog.Shadowed != 1 {
		t.Errorf("shadowed is %d in status.json, want 1", s.Catalog.Shadowed)
	}
}

func TestTreeDiffWithTheFolderFindsNothing(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables()})
	for _, table := range []string{"sales/orders", "web/logs"} {
		if r := l.Exec("diff", "-r", l.Path(table), l.Window(table)); r.Code != 0 {
			t.Errorf("diff -r of %s: %s%s", table, r.Out, r.Err)
		}
	}
	l.MustSh(`mkdir sales/orders/dt=2026-02-02 sales/orders/dt=2026-02-02/region=x; echo n > sales/orders/dt=2026-02-02/region=x/n; rm -rf web/logs/none`)
	if r := l.Exec("diff", "-r", l.Path("sales/orders"), l.Window("sales/orders")); r.Code != 0 {
		t.Errorf("diff -r after a write: %s%s", r.Out, r.Err)
	}
}

func TestTreeAttributesOfFilesAndDirectories(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables()})
	for path, size := range map[string]int64{
		"sales/orders/dt=2026-01-01/region=eu/a.csv": 6, "sales/orders/dt=2026-01-02/region=eu/c.csv": 8000,
		"sales/orders.json": int64(len(l.StoredManifest("sales/orders"))),
	} {
		st := stat(t, l, path)
		if st.Size != size || st.Blocks != (size+511)/512 || st.Nlink != 1 || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
			t.Errorf("%s: size %d, blocks %d, nlink %d, mode %o; want %d, %d, 1, a file", path, st.Size, st.Blocks, st.Nlink, st.Mode, size, (size+511)/512)
		}
	}
	for _, path := range []string{"", "sales", "sales/orders", "sales/orders/dt=2026-01-01"} {
		if st := stat(t, l, path); st.Nlink != 1 || st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
			t.Errorf("%q: nlink %d, mode %o; want 1, a directory", path, st.Nlink, st.Mode)
		}
	}
	own, err := l.StoredInfo("web/logs/top.log")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := l.Lstat("web/logs/top.log"); err != nil || !info.ModTime().Truncate(resolution(l)).Equal(own.ModTime) {
		t.Errorf("mtime of top.log: %v, %v; want the file's own, %v", info, err, own.ModTime)
	}
}

func TestTreeStatfsIsLargeAndFinite(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables()})
	fields := strings.Fields(l.MustSh(`df -P web/logs/top.log | tail -1`))
	if len(fields) != 6 || fields[5] != l.Root || fields[2] != "0" || len(fields[1]) < 10 || len(fields[1]) > 16 {
		t.Errorf("df -P: %q, want six sane columns of a large file system", fields)
	}
	var st unix.Statfs_t
	if err := l.Do("statfs", func() error { return unix.Statfs(l.Path("web"), &st) }); err != nil || st.Namelen != 255 || st.Bavail == 0 {
		t.Errorf("statfs: %+v, %v", st, err)
	}
	if out := l.MustSh(`findmnt -no FSTYPE .`); out != "fuse.lakefs-mount\n" {
		t.Errorf("type of the file system: %q", out)
	}
}
