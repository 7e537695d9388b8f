package fs_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// lakeStatus is status.json, as its readers find it.
type lakeStatus struct {
	Mount *struct {
		Source   string `json:"source"`
		PID      int    `json:"pid"`
		Write    string `json:"write"`
		ReadOnly bool   `json:"read_only"`
	} `json:"mount"`
	Catalog *struct {
		Kind            string   `json:"kind"`
		Format          string   `json:"format"`
		FormatFrom      string   `json:"format_from"`
		Location        string   `json:"location"`
		Readable        bool     `json:"readable"`
		Writable        bool     `json:"writable"`
		Reason          string   `json:"reason"`
		Partitions      int      `json:"partitions"`
		UnreachableKeys int      `json:"unreachable_keys"`
		Shadowed        int      `json:"shadowed"`
		HiddenObjects   []string `json:"hidden_objects"`
		Unparsable      []string `json:"unparsable"`
	} `json:"catalog"`
	Staged []stagedFile `json:"staged"`
}

// stagedFile is an unpublished file in status.json.
type stagedFile struct {
	WriteID string `json:"write_id"`
	Path    string `json:"path"`
	State   string `json:"state"`
	Open    bool   `json:"open"`
	Size    int64  `json:"size"`
	Error   string `json:"error"`
}

// status reads the status.json of a directory.
func status(t *testing.T, l *mounttest.Lake, dir string) lakeStatus {
	t.Helper()
	raw, err := l.ReadFile(dir + "/.lakefs/status.json")
	if err != nil {
		t.Fatalf("status of %q: %v", dir, err)
	}
	var s lakeStatus
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		t.Fatalf("status of %q: %v\n%s", dir, err, raw)
	}
	return s
}

func TestControlFilesOfEachLevel(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables()})
	wantNames(t, l, ".lakefs", "config.json", "ctl", "jobs.json", "staged", "stats", "status.json", "version")
	wantNames(t, l, "sales/.lakefs", "entry.json", "staged", "status.json")
	wantNames(t, l, "sales/orders/.lakefs", "entry.json", "footer", "rows", "schema.sql", "staged", "status.json", "txn")
	wantNames(t, l, "sales/orders/dt=2026-01-01/.lakefs", "footer", "rows", "staged", "status.json")
	wantErrno(t, "entry.json of a manifest's partition", statErr(l, "sales/orders/dt=2026-01-01/.lakefs/entry.json"), syscall.ENOENT)
	for _, path := range []string{"sales/.lakefs/version", ".lakefs/x", ".lakefs/entry.json", ".lakefs/staged/x"} {
		wantErrno(t, "stat "+path, statErr(l, path), syscall.ENOENT)
	}
	wantContent(t, l, "sales/.lakefs/entry.json", l.MustSh("cat sales.json"))
	wantContent(t, l, "sales/orders/.lakefs/entry.json", l.StoredManifest("sales/orders"))
	version, err := l.ReadFile(".lakefs/version")
	if err != nil || strings.TrimSpace(version) == "" || !strings.HasSuffix(version, "\n") {
		t.Errorf("version: %q, %v", version, err)
	}
	stats, err := l.ReadFile(".lakefs/stats")
	if err != nil || !strings.Contains(stats, "\nlakefs_mount_") {
		t.Errorf("stats: %s, %v", brief(stats), err)
	}
}

func TestControlDirectoriesOfEachLevelHaveNumbersThatAgree(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables()})
	for _, dir := range []string{".lakefs", "sales/.lakefs", "web/logs/.lakefs"} {
		for base, ino := range direntInodes(t, l, dir) {
			if st := stat(t, l, dir+"/"+base); st.Ino != ino {
				t.Errorf("%s/%s: d_ino %d, st_ino %d", dir, base, ino, st.Ino)
			}
		}
	}
}

func TestStatusSaysWhatTheMountMakesOfEachDirectory(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables()})
	root := status(t, l, "")
	if root.Mount == nil || root.Mount.Source != l.Source || root.Mount.PID != l.Pid() || root.Mount.Write != "overwrite" {
		t.Errorf("status of the root: %+v", root.Mount)
	}
	s := status(t, l, "sales/orders").Catalog
	if s.Kind != "hive" || s.Format != "csv" || s.FormatFrom == "" || strings.TrimSuffix(s.Location, "/") != l.Location("sales/orders") || !s.Readable || !s.Writable || s.Partitions != 2 {
		t.Errorf("status of sales.orders: %+v", s)
	}
	if s := status(t, l, "sales/orders/dt=2026-01-01").Catalog; strings.TrimSuffix(s.Location, "/") != l.Location("sales/orders/dt=2026-01-01") || s.Partitions != 2 {
		t.Errorf("status of a partition: %+v", s)
	}
	if s := status(t, l, "sales").Catalog; s.Kind != "database" {
		t.Errorf("status of a database: %+v", s)
	}
}

func TestStatusNamesUnpublishedFilesHereAndAllAtTheRoot(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	r := l.Sh(`exec 3>` + csvDir + `/open.csv; echo one >&3; cat ` + csvDir + `/.lakefs/status.json; cat db/.lakefs/status.json .lakefs/status.json`)
	dec := json.NewDecoder(strings.NewReader(r.Out))
	for i, want := range []int{1, 0, 1} {
		var s lakeStatus
		if err := dec.Decode(&s); err != nil {
			t.Fatalf("%v\n%s%s", err, r.Out, r.Err)
		}
		if len(s.Staged) != want {
			t.Errorf("status %d names %d unpublished files, want %d", i, len(s.Staged), want)
		}
		for _, w := range s.Staged {
			if w.Path != csvDir+"/open.csv" || !w.Open || w.Size != 4 || len(w.WriteID) != 36 {
				t.Errorf("status %d: %+v", i, w)
			}
		}
	}
}

// Case 37: every JSON file has an exact size, and one whole version an open.
func TestCase37JSONFilesHaveExactSizes(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables()})
	for _, path := range []string{
		"sales.json", "sales/orders.json", ".lakefs/status.json", "sales/.lakefs/entry.json", "sales/.lakefs/status.json",
		"sales/orders/.lakefs/status.json", "sales/orders/dt=2026-01-01/.lakefs/status.json",
	} {
		script := fmt.Sprintf(`f=%s; t=$(mktemp -d); trap 'rm -r $t' EXIT
cp $f $t/copy && jq -e . < $t/copy > /dev/null && jq -e . $f > /dev/null
n=$(stat -c %%s $f); echo $((n - $(wc -c < $f))) $((n - $(stat -c %%s $t/copy))) $((n - $(dd if=$f bs=1 2>/dev/null | wc -c)))
tail -c 2 $f | cmp - <(tail -c 2 $t/copy) && cmp $f $t/copy`, path)
		if r := l.Sh(script); r.Out != "0 0 0\n" || r.Code != 0 {
			t.Errorf("%s: %q, code %d, %s", path, r.Out, r.Code, r.Err)
		}
	}
}

func TestCase37AnOpenEntryIsOneWholeVersion(t *testing.T) {
	t.Parallel()
	l := mounttest.New(t, mounttest.Options{Tables: []mounttest.Table{text("t", nil)}})
	l.Start(shortTTL...)
	versions := make(map[string]bool)
	for _, n := range []int{10, 20000, 3, 300000} {
		versions[fmt.Sprintf("{\"n\": %q}\n", strings.Repeat("x", n))] = true
	}
	stop, done := make(chan struct{}), make(chan struct{})
	defer func() { close(stop); <-done }()
	go func() {
		defer close(done)
		for {
			for v := range versions {
				l.PutManifest("db/t", v)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	first := ""
	for range 300 {
		got, err := l.ReadFile("db/t.json")
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = got
		}
		if !versions[got] && got != first {
			t.Fatalf("read %d bytes, which is no version: %s", len(got), brief(got))
		}
	}
}

func TestControlCommandsAnswerByTheWrite(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables()})
	for command, code := range map[string]int{
		"refresh": 0, "refresh sales": 0, "refresh /sales/orders/": 0, "refresh none/at/all": 0, "drain": 0,
		"bogus": 1, "recover publish no-such-id": 1, "recover": 1, "REFRESH": 1,
	} {
		if r := l.Sh(`bash -c 'echo "` + command + `" > .lakefs/ctl'`); r.Code != code {
			t.Errorf("echo %q > ctl: code %d, want %d: %s", command, r.Code, code, r.Err)
		}
	}
	wantErrno(t, "read of ctl", openErr(l, ".lakefs/ctl", syscall.O_RDONLY), syscall.EACCES)
	l.MustSh(`dd if=<(echo refresh) of=.lakefs/ctl conv=fsync status=none; echo refresh >> .lakefs/ctl`)
	l.WaitLog("bogus")
}

func TestControlRefreshShowsAtOnceWhatOthersMade(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables(), Flags: []string{"--metadata-ttl=1h", "--negative-ttl=1h"}})
	wantErrno(t, "stat before it is made", statErr(l, "sales/late"), syscall.ENOENT)
	wantContent(t, l, "web/logs/top.log", "top\n")
	names, _ := l.Names("sales")
	l.AddTables(mounttest.Table{Database: "sales", Name: "late", Format: "csv", Files: map[string]string{"f": "x"}})
	l.PutStored("web/logs/top.log", "changed\n")
	wantNames(t, l, "sales", names...)
	l.MustSh(`echo refresh sales > .lakefs/ctl; echo refresh web/logs/top.log > .lakefs/ctl`)
	wantNames(t, l, "sales", append(slices.Clone(names), "late", "late.json")...)
	wantContent(t, l, "sales/late/f", "x")
	wantContent(t, l, "web/logs/top.log", "changed\n")
}

func TestControlFilesCannotBeChanged(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables(), Flags: []string{"--write=delete"}})
	const d = "web/logs/.lakefs"
	wantErrno(t, "create in .lakefs", openErr(l, d+"/x", syscall.O_CREAT|syscall.O_WRONLY), syscall.EPERM)
	wantErrno(t, "write of status.json", openErr(l, d+"/status.json", syscall.O_WRONLY), syscall.EPERM)
	wantErrno(t, "mkdir in .lakefs", mkdir(l, d+"/x"), syscall.EPERM)
	wantErrno(t, "mkdir .lakefs", mkdir(l, d), syscall.EEXIST)
	wantErrno(t, "rmdir .lakefs", rmdir(l, d), syscall.EPERM)
	wantErrno(t, "unlink of status.json", unlink(l, d+"/status.json"), syscall.EPERM)
	wantErrno(t, "unlink of .lakefs", unlink(l, d), syscall.EISDIR)
	wantErrno(t, "rename of .lakefs", rename(l, d, "web/logs/x2"), syscall.EPERM)
	wantErrno(t, "rename into .lakefs", rename(l, "web/logs/top.log", d+"/top.log"), syscall.EPERM)
	wantErrno(t, "rename out of .lakefs", rename(l, d+"/status.json", "web/logs/s.json"), syscall.EPERM)
	wantErrno(t, "rename onto .lakefs", rename(l, "web/logs/x", d), syscall.EPERM)
	wantErrno(t, "rmdir of staged", rmdir(l, d+"/staged"), syscall.EPERM)
	wantErrno(t, "create .lakefs in a new directory", openErr(l, "web/logs/.lakefs", syscall.O_CREAT|syscall.O_WRONLY), syscall.EISDIR)
	wantContent(t, l, "web/logs/top.log", "top\n")
}

func TestExtendedAttributes(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables()})
	const file, dir = "web/logs/x/y/z.log", "web/logs/x/y"
	uri := l.URI(file)
	if got, err := xattr(l, file, "user.lakefs.uri"); got != uri || err != nil {
		t.Errorf("uri: %q, %v; want %q", got, err, uri)
	}
	etag, err := xattr(l, file, "user.lakefs.etag")
	if etag == "" || err != nil {
		t.Errorf("etag: %q, %v", etag, err)
	}
	if got, err := xattr(l, dir, "user.lakefs.location"); got != l.URI(dir)+"/" || err != nil {
		t.Errorf("location: %q, %v", got, err)
	}
	write(t, l, file, "another version\n")
	if again, err := xattr(l, file, "user.lakefs.etag"); again == etag || again == "" || err != nil {
		t.Errorf("etag of the next version: %q, %v; before %q", again, err, etag)
	}
	target := mustPython(t, l, "import os\nf=open('"+dir+"/new','w')\nprint(os.getxattr('"+dir+"/new','user.lakefs.target').decode(), os.listxattr('"+dir+"/new'))")
	if want := l.URI(dir+"/new") + " ['user.lakefs.target']\n"; target != want {
		t.Errorf("target of a staged file: %q, want %q", target, want)
	}
	for _, path := range []string{"", "web", dir, file, "web.json", ".lakefs", ".lakefs/status.json", ".lakefs/ctl", "web/.lakefs/staged"} {
		err := l.Do("setxattr", func() error { return unix.Lsetxattr(l.Path(path), "user.x", []byte("1"), 0) })
		wantErrno(t, "setxattr of "+path, err, syscall.ENOTSUP)
		err = l.Do("removexattr", func() error { return unix.Lremovexattr(l.Path(path), "user.lakefs.etag") })
		wantErrno(t, "removexattr of "+path, err, syscall.ENOTSUP)
		_, err = xattr(l, path, "user.none")
		wantErrno(t, "getxattr of "+path, err, syscall.ENODATA)
	}
	// ls -l asks each file again where the answer is that there is none.
	for _, path := range []string{dir, file} {
		for _, name := range []string{"security.selinux", "system.posix_acl_access"} {
			_, err := xattr(l, path, name)
			wantErrno(t, name+" of "+path, err, syscall.ENOTSUP)
		}
	}
}
