package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// shell runs a script outside any mount.
func shell(t *testing.T, script string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, time.Second
	_ = cmd.Run() // the exit code tells
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func sales(t *testing.T) mounttest.Options {
	t.Helper()
	return mounttest.Options{Tables: []mounttest.Table{{
		Database: "sales", Name: "notes", Format: "csv", Keys: []string{"dt:date"},
		Files: map[string]string{"dt=2026-01-01/a.csv": "1,one\n"},
	}}}
}

func TestMountServesAndLeavesNothing(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	if got := lake.MustSh("cat sales/notes/dt=2026-01-01/a.csv"); got != "1,one\n" {
		t.Errorf("file is %q", got)
	}
	lake.MustSh("diff -r sales/notes " + lake.Window("sales/notes"))
	lake.Unmount()
	if names, err := os.ReadDir(lake.Root); err != nil || len(names) != 0 {
		t.Errorf("after the unmount the mount point has %v (%v)", names, err)
	}
}

func TestBadMounts(t *testing.T) {
	mounttest.FolderOnly(t, "its mistakes are about paths")
	dir := t.TempDir()
	file, full, empty := filepath.Join(dir, "file"), filepath.Join(dir, "full"), filepath.Join(dir, "empty")
	for _, d := range []string{full, empty, filepath.Join(full, "x")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	lake := mounttest.New(t, sales(t))
	state := filepath.Join(dir, "state")
	for _, tt := range []struct {
		name               string
		source, mountpoint string
		flags              []string
		want               []string
	}{
		{name: "mount point missing", source: lake.Source, mountpoint: filepath.Join(dir, "none"), want: []string{"none", "mkdir -p"}},
		{name: "mount point a file", source: lake.Source, mountpoint: file, want: []string{"file", "not a directory"}},
		{name: "mount point not empty", source: lake.Source, mountpoint: full, want: []string{"full", "not empty"}},
		{name: "mount point in the source", source: lake.Source, mountpoint: filepath.Join(lake.Source, "sales"), want: []string{"lie one in the other"}},
		{name: "another's mount", source: lake.Source, mountpoint: "/proc", want: []string{"/proc", "in use", "umount /proc"}},
		{name: "source missing", source: filepath.Join(dir, "nowhere"), mountpoint: empty, want: []string{"nowhere", "no such folder"}},
		{name: "source a file", source: file, mountpoint: empty, want: []string{"file", "not a folder"}},
		{name: "source of another kind", source: "hive://h:9083", mountpoint: empty, want: []string{"hive", "not served by this version", "glue:", "local folder"}},
		{name: "source without a bucket", source: "s3://", mountpoint: empty, want: []string{"s3://", "no name of a bucket"}},
		{name: "source with an empty part", source: "s3://bucket/a//b", mountpoint: empty, want: []string{"s3://bucket/a//b", "no path can have"}},
		{name: "bucket for a folder", source: lake.Source, mountpoint: empty, flags: []string{"--allow-location=s3://b/wh"}, want: []string{"s3://b/wh", "local folder"}},
		{name: "folder for a bucket", source: "s3://bucket/wh", mountpoint: empty, flags: []string{"--allow-location=" + dir}, want: []string{dir, "SOURCE is a bucket of manifests"}},
		{name: "no such profile", source: "s3://bucket/wh", mountpoint: empty, flags: []string{"--profile=no-such-one"}, want: []string{"no-such-one", "--profile", "list-profiles"}},
		{name: "allowed location missing", source: lake.Source, mountpoint: empty, flags: []string{"--allow-location=" + dir + "/gone"}, want: []string{"gone", "--allow-location"}},
		{name: "state directory a file", source: lake.Source, mountpoint: empty, flags: []string{"--state-dir=" + file}, want: []string{"file", "--state-dir"}},
		{name: "staging a symbolic link", source: lake.Source, mountpoint: empty, flags: []string{"--state-dir=" + linkedState(t, dir)}, want: []string{"symbolic link"}},
	} {
		for _, way := range []string{"foreground", "daemon"} {
			t.Run(tt.name+" "+way, func(t *testing.T) {
				args := append([]string{"mount", "--state-dir=" + state}, tt.flags...)
				if way == "daemon" {
					args = append(args, "--daemon")
				}
				before, err := os.ReadFile("/proc/self/mountinfo")
				if err != nil {
					t.Fatal(err)
				}
				r := lake.Run(append(args, tt.source, tt.mountpoint)...)
				if r.Code != exitFailed {
					t.Errorf("exit code %d, want %d", r.Code, exitFailed)
				}
				for _, want := range tt.want {
					if !strings.Contains(r.Err, want) {
						t.Errorf("stderr %q lacks %q", r.Err, want)
					}
				}
				if n := strings.Count(r.Err, "lakefs-mount: "); n != 1 {
					t.Errorf("%d error lines, want 1: %q", n, r.Err)
				}
				after, err := os.ReadFile("/proc/self/mountinfo")
				if err != nil || strings.Count(string(after), tt.mountpoint+" ") != strings.Count(string(before), tt.mountpoint+" ") {
					t.Errorf("something was left mounted (%v)", err)
				}
				if left := mountsOf(t, state); len(left) != 0 {
					t.Errorf("processes are left: %v", left)
				}
			})
		}
	}
}

// linkedState makes a state directory whose staging directory is a symbolic link.
func linkedState(t *testing.T, dir string) string {
	t.Helper()
	state := filepath.Join(dir, "linked")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(state, "staging")); err != nil {
		t.Fatal(err)
	}
	return state
}

func TestCase62SecondMountNamesWhoIsThere(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	r := lake.Run("mount", "--state-dir="+filepath.Join(t.TempDir(), "s"), lake.Source, lake.Root)
	if r.Code != exitFailed || !strings.Contains(r.Err, "in use") || !strings.Contains(r.Err, "lakefs-mount unmount") {
		t.Errorf("same mount point: exit code %d, %q", r.Code, r.Err)
	}
	r = lake.Run("mount", "--daemon", "--state-dir="+lake.State, lake.Source, t.TempDir())
	if r.Code != exitFailed || !strings.Contains(r.Err, "in use") || !strings.Contains(r.Err, "--state-dir") {
		t.Errorf("same state directory: exit code %d, %q", r.Code, r.Err)
	}
}

func TestDeadMountIsMountedAgain(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	lake.Kill()
	if !lake.Mounted() {
		t.Fatal("a killed daemon's mount is gone: this test shows nothing")
	}
	lake.Start()
	if !strings.Contains(lake.Log(), "detached the dead mount") {
		t.Error("the log does not say that a dead mount was detached")
	}
	lake.MustSh("cat sales/notes/dt=2026-01-01/a.csv")
	lake.Unmount()
}

func TestUnmountOfADeadMountClearsIt(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	lake.Kill()
	if r := lake.Run("status", "--json"); r.Code != 0 || !strings.Contains(r.Out, `"state": "dead"`) {
		t.Errorf("status of a dead mount: %d, %s", r.Code, r.Out)
	}
	if r := lake.Run("unmount", lake.Root); r.Code != 0 || lake.Mounted() {
		t.Errorf("unmount of a dead mount: exit code %d, %q, mounted %v", r.Code, r.Err, lake.Mounted())
	}
}

func TestCase62DaemonReturnsWhenMounted(t *testing.T) {
	lake := mounttest.New(t, sales(t))
	r := lake.Run("mount", "--daemon", "--state-dir="+lake.State, lake.Source, lake.Root)
	if r.Code != 0 || !lake.Mounted() {
		t.Fatalf("exit code %d, mounted %v: %s", r.Code, lake.Mounted(), r.Err)
	}
	lake.MustSh("test -f sales.json && test $(cat sales/notes/dt=2026-01-01/a.csv) = 1,one")
	if r := lake.Run("unmount", lake.Root); r.Code != 0 || lake.Mounted() {
		t.Errorf("unmount: exit code %d, %q, mounted %v", r.Code, r.Err, lake.Mounted())
	}
}

func TestMountStyleMountsInTheBackground(t *testing.T) {
	mounttest.FolderOnly(t, "a shell without the store's credentials")
	lake := mounttest.New(t, sales(t))
	helper := filepath.Join(t.TempDir(), "mount.lakefs-mount")
	if err := os.Symlink(lake.Binary(), helper); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{lake.Binary(), helper} {
		out, errs, code := shell(t, name+" "+lake.Source+" "+lake.Root+" -o ro,_netdev,state_dir="+lake.State)
		if code != 0 || !lake.Mounted() {
			t.Fatalf("%s: exit code %d, mounted %v: %s%s", filepath.Base(name), code, lake.Mounted(), out, errs)
		}
		if r := lake.Sh("echo x > sales/notes/dt=2026-01-01/b.csv"); r.Code == 0 || !strings.Contains(r.Err, "Read-only") {
			t.Errorf("writing to a mount with the option ro: exit code %d, %q", r.Code, r.Err)
		}
		if r := lake.Run("unmount", lake.Root); r.Code != 0 {
			t.Fatalf("unmount: %s", r.Err)
		}
	}
}

func TestUnmountNamesWhatIsBusy(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	f, err := os.Open(lake.Path("sales/notes/dt=2026-01-01/a.csv"))
	if err != nil {
		t.Fatal(err)
	}
	r := lake.Run("unmount", lake.Root)
	if r.Code != exitFailed || !strings.Contains(r.Err, "a.csv") || !strings.Contains(r.Err, "pid") || !lake.Mounted() {
		t.Errorf("exit code %d, %q, mounted %v; want an error with the file and its process", r.Code, r.Err, lake.Mounted())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := lake.MustSh("echo 2,two > sales/notes/dt=2026-01-01/b.csv; cat sales/notes/dt=2026-01-01/b.csv"); got != "2,two\n" {
		t.Errorf("after an unmount that failed, a written file is %q", got)
	}
	if r := lake.Run("unmount", lake.Root); r.Code != 0 || lake.Mounted() {
		t.Errorf("exit code %d, %q, mounted %v", r.Code, r.Err, lake.Mounted())
	}
	if code := lake.Wait(); code != 0 {
		t.Errorf("the daemon ended with code %d, want 0", code)
	}
}

func TestStatusCountsUnpublishedFiles(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	torn(t, lake)
	r := lake.Run("status", "--json", lake.Root)
	var all []mountStatus
	if err := json.Unmarshal([]byte(r.Out), &all); err != nil || len(all) != 1 {
		t.Fatalf("status --json: %v: %s", err, r.Out)
	}
	if s := all[0]; s.State != "running" || s.Source != lake.Source || s.sum("staged_writes", "") != 1 {
		t.Errorf("status is %+v, want running with one staged write", s)
	}
	if r = lake.Run("status"); r.Code != 0 || !strings.Contains(r.Out, lake.Root) || !strings.Contains(r.Out, "1 files") {
		t.Errorf("status prints %q", r.Out)
	}
	staged := all[0].staged().Staged
	if len(staged) != 1 || staged[0].Size != 7 || all[0].uploads() != 0 {
		t.Fatalf("status --json has %+v unpublished, want one of 7 bytes", staged)
	}
	r = lake.Run("status", lake.Root)
	for _, part := range []string{staged[0].ID, "torn ", "7 B", "0 B", `"sales/notes/dt=2026-01-01/torn.csv"`, `"its writer was killed by a signal"`} {
		if !strings.Contains(r.Out, part) {
			t.Errorf("status prints\n%swhich lacks %q", r.Out, part)
		}
	}
}

// torn leaves one file in the lake whose writer was killed.
func torn(t *testing.T, lake *mounttest.Lake) {
	t.Helper()
	lake.Sh(`bash -c 'exec 3>sales/notes/dt=2026-01-01/torn.csv; echo 9,nine >&3; kill -9 $$'`)
	lake.Eventually("a torn file is staged", 10*time.Second, func() bool {
		if _, err := lake.StoredInfo("sales/notes/dt=2026-01-01/torn.csv"); err == nil {
			t.Fatal("the file of a killed writer was published")
		}
		return strings.Contains(lake.Run("recover", lake.Root).Out, "torn.csv")
	})
}

func TestRecoverOfARunningMount(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	torn(t, lake)
	saved := t.TempDir()
	if r := lake.Run("recover", "--save", saved, lake.Root); r.Code != 0 {
		t.Errorf("save: %s", r.Err)
	}
	if raw, err := os.ReadFile(filepath.Join(saved, "torn.csv")); err != nil || string(raw) != "9,nine\n" {
		t.Errorf("saved file is %q (%v)", raw, err)
	}
	for _, want := range []int{0, exitFailed} { // beside it, and over both
		if r := lake.Run("recover", "--save", saved, lake.Root); r.Code != want {
			t.Errorf("saving again: exit code %d, want %d", r.Code, want)
		}
	}
	if r := lake.Run("recover", "--publish=all", lake.Root); r.Code != 0 {
		t.Fatalf("publish: %s", r.Err)
	}
	if got := lake.MustSh("cat sales/notes/dt=2026-01-01/torn.csv"); got != "9,nine\n" {
		t.Errorf("published file is %q", got)
	}
	if r := lake.Run("recover", lake.Root); !strings.Contains(r.Out, "Nothing is unpublished") {
		t.Errorf("recover after the publish: %q", r.Out)
	}
	if r := lake.Run("recover", "--abort=12345678", lake.Root); r.Code != exitFailed {
		t.Errorf("abort of an unknown id: exit code %d, want %d", r.Code, exitFailed)
	}
}

func TestRecoverAfterTheMount(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	torn(t, lake)
	lake.Kill()
	if r := lake.Run("recover", lake.Root); r.Code != exitFailed || !strings.Contains(r.Err, "SOURCE") {
		t.Errorf("recover without SOURCE: exit code %d, %q", r.Code, r.Err)
	}
	args := func(more ...string) []string {
		return append(append([]string{"recover", "--state-dir=" + lake.State}, more...), lake.Source, lake.Root)
	}
	if r := lake.Run(args()...); r.Code != 0 || !strings.Contains(r.Out, "torn.csv") || !strings.Contains(r.Out, "torn ") {
		t.Errorf("list: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	if r := lake.Run(args("--publish=all")...); r.Code != 0 {
		t.Errorf("publish: %s", r.Err)
	}
	if got, err := lake.Stored("sales/notes/dt=2026-01-01/torn.csv"); err != nil || got != "9,nine\n" {
		t.Errorf("published file is %q (%v)", got, err)
	}
}

func TestAbortDropsTheBytes(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	torn(t, lake)
	if r := lake.Run("recover", "--abort=all", lake.Root); r.Code != 0 {
		t.Fatalf("abort: %s", r.Err)
	}
	if r := lake.Sh("cat sales/notes/dt=2026-01-01/torn.csv"); r.Code == 0 {
		t.Errorf("a dropped file reads as %q", r.Out)
	}
	if names, err := filepath.Glob(filepath.Join(lake.Staged(), "*", "data")); err != nil || len(names) != 0 {
		t.Errorf("after the abort the staging directory has %q (%v)", names, err)
	}
}

func TestRefreshSeesANewTableAtOnce(t *testing.T) {
	o := sales(t)
	o.Flags = []string{"--metadata-ttl=1h", "--negative-ttl=1h"}
	lake := mounttest.Mount(t, o)
	lake.MustSh("ls sales >&2; test ! -e sales/more")
	lake.AddTables(mounttest.Table{Database: "sales", Name: "more", Format: "csv", Files: map[string]string{"f": "x"}})
	if r := lake.Run("refresh", lake.Path("sales")); r.Code != 0 {
		t.Fatalf("refresh: %s", r.Err)
	}
	lake.MustSh("test -f sales/more/f")
	if r := lake.Run("refresh", "/proc"); r.Code != exitFailed {
		t.Errorf("refresh outside a mount: exit code %d, want %d", r.Code, exitFailed)
	}
}

func TestSignals(t *testing.T) {
	o := sales(t)
	o.Flags = []string{"--metadata-ttl=1h", "--negative-ttl=1h"}
	lake := mounttest.Mount(t, o)
	lake.MustSh("test ! -e sales/more")
	lake.AddTables(mounttest.Table{Database: "sales", Name: "more", Format: "csv", Files: map[string]string{"f": "x"}})
	lake.Signal(syscall.SIGHUP)
	lake.WaitLog("dropping cached metadata")
	lake.Eventually("SIGHUP drops the cache", 5*time.Second, func() bool { return lake.Sh("test -f sales/more/f").Code == 0 })
	lake.Signal(syscall.SIGUSR1)
	lake.WaitLog("msg=state")
	lake.Signal(syscall.SIGINT)
	if code := lake.Wait(); code != 0 || lake.Mounted() {
		t.Errorf("SIGINT: exit code %d, mounted %v", code, lake.Mounted())
	}
}

func TestTermWithAnOpenFileDetachesAndASecondEndsAtOnce(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	f, err := os.OpenFile(lake.Path("sales/notes/dt=2026-01-01/open.csv"), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // its mount is gone
	if _, err := f.WriteString("8,eight\n"); err != nil {
		t.Fatal(err)
	}
	lake.Signal(syscall.SIGTERM)
	lake.WaitLog("unmounting")
	<-time.After(sameSignal)
	began := time.Now()
	lake.Signal(syscall.SIGTERM)
	if code := lake.Wait(); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the second signal took %v", took)
	}
	if lake.Mounted() {
		t.Error("still mounted")
	}
	if !strings.Contains(lake.Log(), "open.csv") {
		t.Error("the log does not name what is not published")
	}
}

func TestNotifyTellsSystemd(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test's socket
	o := sales(t)
	o.Env = []string{"NOTIFY_SOCKET=" + socket}
	lake := mounttest.Mount(t, o)
	lake.Unmount()
	for _, want := range []string{"READY=1", "STOPPING=1"} {
		message := make([]byte, 100)
		if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(message)
		if got := string(message[:n]); err != nil || got != want {
			t.Errorf("systemd was told %q (%v), want %q", got, err, want)
		}
	}
}

func TestDemoMountsAndUnmounts(t *testing.T) {
	lake := mounttest.New(t, mounttest.Options{})
	dir := filepath.Join(t.TempDir(), "demo")
	at := filepath.Join(dir, "lake")
	t.Cleanup(func() { mounttest.Detach(at) })
	for range 2 {
		r := lake.Run("demo", dir)
		if r.Code != 0 || !strings.Contains(r.Out, at) {
			t.Fatalf("demo: exit code %d: %s%s", r.Code, r.Out, r.Err)
		}
	}
	out, errs, code := shell(t, "cd "+at+` && ls && jq -r .table_type sales/orders.json && head -1 web/clicks/dt=2026-01-01/clicks.csv &&
		ls sales/orders/dt=2026-01-02 && ls web/events && wc -c < 'web/events/page=50%25 off/000000_0' &&
		diff -r sales/orders ../warehouse/_data/sales/orders && cat broken/cut.json >&2`)
	if code != 0 {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	for _, want := range []string{"EXTERNAL_TABLE", "__HIVE_DEFAULT_PARTITION__", "page=%2Fcart%3Fstep%3D1", "2026-01-01 00:00:00,/product/0,1000"} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo shows %q, which lacks %q", out, want)
		}
	}
	if r := lake.Run("check", filepath.Join(dir, "warehouse"), "--state-dir="+filepath.Join(dir, "check")); r.Code != exitFailed ||
		!strings.Contains(r.Out, `FAIL  table "broken/cut"`) || !strings.Contains(r.Out, "--allow-location /etc") || !strings.Contains(r.Out, "4 tables can be read") {
		t.Errorf("check: exit code %d: %s", r.Code, r.Out)
	}
	if r := lake.Run("unmount", at); r.Code != 0 {
		t.Errorf("unmount: %s", r.Err)
	}
}

func TestCheckOfAGoodFolder(t *testing.T) {
	mounttest.FolderOnly(t, "TestCheckOfABucket is the other")
	lake := mounttest.New(t, sales(t))
	r := lake.Run("check", "--state-dir="+lake.State, lake.Source)
	if r.Code != 0 || strings.Contains(r.Out, "FAIL") || !strings.Contains(r.Out, "1 tables can be read") {
		t.Errorf("check: exit code %d: %s%s", r.Code, r.Out, r.Err)
	}
}

func TestMountOutlivesTheReaderOfItsLog(t *testing.T) {
	mounttest.FolderOnly(t, "a shell without the store's credentials")
	lake := mounttest.New(t, sales(t))
	t.Cleanup(func() { mounttest.Detach(lake.Root) })
	// head ends after the ready line, so that the next one finds no reader.
	out, errs, code := shell(t, "{ "+lake.Binary()+" mount --log-level=debug --state-dir="+lake.State+" "+lake.Source+" "+lake.Root+" 2>&1 & } | head -1")
	if code != 0 || !strings.HasPrefix(out, "mounted ") {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	lake.MustSh("! cat broken 2>/dev/null; cat sales/notes/dt=2026-01-01/a.csv; ! cat sales/notes/dt=2026-01-01/none 2>/dev/null; ! mkdir sales/x 2>/dev/null")
	if r := lake.Run("unmount", lake.Root); r.Code != 0 || lake.Mounted() {
		t.Errorf("unmount: exit code %d, %q, mounted %v", r.Code, r.Err, lake.Mounted())
	}
}

func TestForeignUmountEndsTheDaemon(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("umount(8) of a FUSE mount is root's")
	}
	lake := mounttest.Mount(t, sales(t))
	if _, errs, code := shell(t, "umount "+lake.Root); code != 0 {
		t.Fatalf("umount: %s", errs)
	}
	if code := lake.Wait(); code != 0 {
		t.Errorf("the daemon ended with code %d, want 0", code)
	}
}
