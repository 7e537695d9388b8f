package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// part is where the tests of the disk cache have their files.
const part = "sales/notes/dt=2026-01-01/"

// noise is n bytes that no two seeds have in common.
func noise(seed byte, n int) string {
	raw := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(raw)
	return string(raw)
}

// diskLake is a lake in a bucket behind a proxy, with files, to be mounted with a disk
// cache in dir.
func diskLake(t *testing.T, files map[string]string) (lake *mounttest.Lake, proxy *faulty.Proxy, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "cache")
	lake, proxy = bucketLakeOf(t, func(o *mounttest.Options) {
		o.Flags = []string{"--cache-dir=" + dir, "--cache-size=256MiB"}
		for name, content := range files {
			o.Tables[0].Files["dt=2026-01-01/"+name] = content
		}
	})
	return lake, proxy, dir
}

// sizes are files of the sizes at which blocks begin and end.
func sizes() map[string]string {
	files := map[string]string{}
	for i, n := range []int{0, 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 9<<20 + 5} {
		files[fmt.Sprintf("s%d.csv", n)] = noise(byte(i), n)
	}
	return files
}

// wantEqual reads files through the mount and compares them.
func wantEqual(t *testing.T, lake *mounttest.Lake, files map[string]string) {
	t.Helper()
	for name, want := range files {
		got, err := readMounted(lake, part+name)
		if err != nil || got != want {
			t.Errorf("%s: %d bytes (%v) that are not the store's %d", name, len(got), err, len(want))
		}
	}
}

func readMounted(lake *mounttest.Lake, name string) (content string, err error) {
	err = lake.Do("read "+name, func() error {
		raw, failed := os.ReadFile(lake.Path(name))
		content = string(raw)
		return failed
	})
	return content, err
}

// diskOf is what the mount tells of its disk cache.
func diskOf(t *testing.T, lake *mounttest.Lake) cache.DiskStats {
	t.Helper()
	d := diskCacheOf([]byte(lake.MustSh("cat .lakefs/status.json")))
	if d == nil {
		t.Fatal("status.json tells of no disk cache")
	}
	return *d
}

// onDisk waits until nothing is on its way to the disk.
func onDisk(t *testing.T, lake *mounttest.Lake) (d cache.DiskStats) {
	t.Helper()
	lake.Eventually("blocks are on the disk", 20*time.Second, func() bool {
		d = diskOf(t, lake)
		return d.Pending == 0
	})
	return d
}

// dataGets counts the GETs that brought bytes of files.
func dataGets(proxy *faulty.Proxy) (n int) {
	for _, q := range proxy.Log() {
		if q.Op == "GetObject" && strings.HasSuffix(q.Key, ".csv") && q.Sent > 0 {
			n++
		}
	}
	return n
}

// blockFiles are the block files of a cache directory.
func blockFiles(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "blocks"), func(path string, e iofs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.Contains(e.Name(), "-") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestDiskCacheOutlivesTheMount: what one mount read the next one reads without a GET,
// and with one HEAD an open file.
func TestDiskCacheOutlivesTheMount(t *testing.T) {
	files := sizes()
	lake, proxy, dir := diskLake(t, files)
	lake.Start()
	wantEqual(t, lake, files)
	if d := onDisk(t, lake); d.Blocks != 15 || d.Dropped != 0 { // 1, 1, 1, 2, 10
		t.Errorf("on the disk: %+v, want 15 blocks", d)
	}
	lake.Remount("--metadata-ttl=1m")
	lake.MustSh("ls -l " + part)
	proxy.Reset()
	wantEqual(t, lake, files)
	wantEqual(t, lake, files)
	if n := dataGets(proxy); n > 0 {
		t.Errorf("the next mount made %d GETs, want none: %v", n, proxy.Counts())
	}
	heads := 0
	for _, q := range proxy.Log() {
		if q.Op == "HeadObject" && strings.HasSuffix(q.Key, ".csv") {
			heads++
		}
	}
	if heads != len(files)-1 { // an empty file is asked for by itself
		t.Errorf("%d HEADs of %d files, want one each within the TTL", heads, len(files)-1)
	}
	if d := diskOf(t, lake); d.Hits < 15 || d.Misses > 0 || d.Corrupt > 0 || d.Dir != dir || d.Limit != 256<<20 {
		t.Errorf("status.json: %+v", d)
	}
	stats := lake.MustSh("cat .lakefs/stats")
	for _, want := range []string{"disk_cache_misses_total 0\n", "disk_cache_limit_bytes 2.68435456e+08\n"} {
		if !strings.Contains(stats, "lakefs_mount_"+want) {
			t.Errorf("stats lack %q", want)
		}
	}
	if r := lake.Run("status"); !strings.Contains(r.Out, "disk cache in "+dir) || !strings.Contains(r.Out, "of 256.0 MiB, 100 % hits") {
		t.Errorf("status is %q", r.Out)
	}
	lake.Unmount()
}

// TestCase34DiskCacheOfAnotherMount: one directory, one mount.
func TestCase34DiskCacheOfAnotherMount(t *testing.T) {
	lake, _, dir := diskLake(t, nil)
	lake.Start()
	r := lake.Run("mount", "--daemon", "--state-dir="+t.TempDir(), "--cache-dir="+dir, lake.Source, t.TempDir())
	if r.Code != exitFailed || !strings.Contains(r.Err, "in use") || !strings.Contains(r.Err, lake.Root) || !strings.Contains(r.Err, "unmount") {
		t.Errorf("a second mount on the directory: exit code %d, %q, want a refusal that names the first and the remedy", r.Code, r.Err)
	}
	wantEqual(t, lake, map[string]string{"a.csv": "1,one\n"})
}

// TestCase34DiskCacheDamaged: bytes are the store's, whatever is in the files.
func TestCase34DiskCacheDamaged(t *testing.T) {
	files := map[string]string{"big.csv": noise(1, 5<<20+17)}
	lake, _, dir := diskLake(t, files)
	lake.Start()
	wantEqual(t, lake, files)
	onDisk(t, lake)
	for what, damage := range map[string]func(paths []string) error{
		"a flipped bit": func(paths []string) error {
			raw, err := os.ReadFile(paths[0])
			if err == nil {
				raw[len(raw)/2] ^= 1
				err = os.WriteFile(paths[0], raw, 0o600)
			}
			return err
		},
		"a torn block": func(paths []string) error { return os.Truncate(paths[0], 1000) },
		"two in the place of each other": func(paths []string) error {
			for _, move := range [][2]string{{paths[0], paths[0] + "~"}, {paths[1], paths[0]}, {paths[0] + "~", paths[1]}} {
				if err := os.Rename(move[0], move[1]); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		lake.Unmount()
		if err := damage(blockFiles(t, dir)); err != nil {
			t.Fatal(err)
		}
		lake.Start()
		wantEqual(t, lake, files)
		if d := onDisk(t, lake); d.Corrupt == 0 {
			t.Errorf("%s: nothing was found damaged: %+v", what, d)
		}
	}
	lake.Unmount()
}

// TestCase34DiskCacheAfterAKill: a mount that is killed while it fills leaves nothing
// that is served for what it is not.
func TestCase34DiskCacheAfterAKill(t *testing.T) {
	files := map[string]string{"big.csv": noise(2, 48<<20)}
	lake, _, dir := diskLake(t, files)
	for round := range 4 {
		lake.Start()
		reading := make(chan struct{})
		go func() {
			defer close(reading)
			_ = lake.Sh("cat " + part + "big.csv > /dev/null") // it is cut
		}()
		lake.Eventually("blocks are written", 20*time.Second, func() bool { return len(blockFiles(t, dir)) > 8*(round+1) })
		lake.Kill()
		<-reading
		lake.Start()
		wantEqual(t, lake, files)
		if d := onDisk(t, lake); d.Corrupt != 0 || d.Bytes > d.Limit {
			t.Errorf("round %d: %+v", round, d)
		}
		lake.Unmount()
		if err := os.RemoveAll(filepath.Join(dir, "blocks")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCase34DiskCacheOfAReplacedObject: never an old version's bytes.
func TestCase34DiskCacheOfAReplacedObject(t *testing.T) {
	files := map[string]string{"big.csv": noise(3, 3<<20)}
	lake, _, _ := diskLake(t, files)
	lake.Start("--metadata-ttl=0", "--negative-ttl=0")
	for i := range 3 {
		wantEqual(t, lake, files)
		onDisk(t, lake)
		files["big.csv"] = noise(byte(10+i), 3<<20)
		lake.PutStored(part+"big.csv", files["big.csv"])
		wantEqual(t, lake, files)
		lake.Remount("--metadata-ttl=0", "--negative-ttl=0")
		wantEqual(t, lake, files)
	}
	lake.Unmount()
}

// TestCase34DiskCacheIsBounded: more than fits is read, and again under a smaller size.
func TestCase34DiskCacheIsBounded(t *testing.T) {
	files := map[string]string{}
	for i := range 6 {
		files[fmt.Sprintf("f%d.csv", i)] = noise(byte(i), 9<<20)
	}
	lake, _, dir := diskLake(t, files)
	for _, size := range []int64{32 << 20, 16 << 20} {
		lake.Start(fmt.Sprintf("--cache-size=%d", size))
		wantEqual(t, lake, files)
		if d := onDisk(t, lake); d.Bytes > size || d.Evicted == 0 || d.Limit != size {
			t.Errorf("%d MiB: %+v", size>>20, d)
		}
		lake.Unmount()
		var used int64
		for _, path := range blockFiles(t, dir) {
			var st unix.Stat_t
			if err := unix.Stat(path, &st); err != nil {
				t.Fatal(err)
			}
			used += st.Blocks * 512
		}
		if used > size || used < size/2 {
			t.Errorf("%d bytes are on the disk, want at most %d", used, size)
		}
	}
}

// TestCase34DiskCacheOnAFullDisk: one warning, and the bytes are the store's.
func TestCase34DiskCacheOnAFullDisk(t *testing.T) {
	files := map[string]string{"big.csv": noise(4, 24<<20)}
	lake, _, dir := diskLake(t, files)
	onTmpfs(t, dir, "size=4m")
	lake.Start()
	for range 3 {
		wantEqual(t, lake, files)
		lake.MustSh("python3 -c 'import os; f = os.open(\"" + part + "big.csv\", os.O_RDONLY); os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)'")
	}
	d := onDisk(t, lake)
	if !strings.Contains(d.Failed, "no space left") || d.Blocks == 0 {
		t.Errorf("status.json: %+v, want what the disk says", d)
	}
	if n := strings.Count(lake.Log(), "the disk cache does not work"); n != 1 {
		t.Errorf("%d warnings, want 1: %s", n, lake.Log())
	}
	if !strings.Contains(lake.Log(), "file_system_bytes=4194304") {
		t.Errorf("no warning of a size that is more than the file system's: %s", lake.Log())
	}
	if r := lake.Run("status"); !strings.Contains(r.Out, "does not work") {
		t.Errorf("status is %q", r.Out)
	}
	lake.Unmount()
}

// TestCase34DiskCacheOnAReadOnlyDisk: a mount starts without it.
func TestCase34DiskCacheOnAReadOnlyDisk(t *testing.T) {
	files := map[string]string{"big.csv": noise(5, 3<<20)}
	lake, _, dir := diskLake(t, files)
	onTmpfs(t, dir, "ro")
	lake.Start()
	wantEqual(t, lake, files)
	if n := strings.Count(lake.Log(), "the disk cache does not work"); n != 1 {
		t.Errorf("%d warnings, want 1: %s", n, lake.Log())
	}
	lake.Unmount()
}

// onTmpfs makes dir a file system of its own.
func onTmpfs(t *testing.T, dir, options string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a tmpfs")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var flags uintptr
	if options == "ro" {
		flags, options = unix.MS_RDONLY, ""
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// TestCacheDirectoryThatCannotBe: a mount that is told nonsense does not start.
func TestCacheDirectoryThatCannotBe(t *testing.T) {
	lake, _, dir := diskLake(t, nil)
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := lake.TryStart(); err == nil || !strings.Contains(err.Error(), "--cache-dir") || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a file as the directory: %v", err)
	}
	for _, path := range []string{"/dev/null/x", "/proc/x"} {
		if err := lake.TryStart("--cache-dir=" + path); err == nil || !strings.Contains(err.Error(), "there can be no such directory") {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{lake.State, filepath.Join(lake.State, "cache")} {
		if err := lake.TryStart("--cache-dir=" + path); err == nil || !strings.Contains(err.Error(), "the state directory") {
			t.Errorf("%s beside the state directory %s: %v", path, lake.State, err)
		}
	}
	if err := lake.TryStart("--cache-dir=" + filepath.Join(lake.Root, "cache")); err == nil || !strings.Contains(err.Error(), "the cache directory") {
		t.Errorf("a directory in the mount: %v", err)
	}
}

// TestDirectoriesInAMount: what a mount keeps never becomes data of another.
func TestDirectoriesInAMount(t *testing.T) {
	lake, _ := bucketLake(t)
	lake.Start("--write=delete")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(lake.Path(part), link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{lake.Path(part), lake.Path(part + "new/deep"), filepath.Join(link, "new")} {
		for _, flags := range [][]string{{"--state-dir=" + t.TempDir(), "--cache-dir=" + dir}, {"--state-dir=" + dir}} {
			r := lake.Run(append(append([]string{"mount", "--daemon"}, flags...), lake.Source, t.TempDir())...)
			if r.Code != exitFailed || !strings.Contains(r.Err, "lies in the mount of lakefs-mount at \""+lake.Root) || !strings.Contains(r.Err, dir) {
				t.Errorf("%q: exit code %d, %q", flags, r.Code, r.Err)
			}
		}
	}
	if got := lake.MustSh("ls " + part); got != "a.csv\n" {
		t.Errorf("the mount has %q", got)
	}
}

// ofKey tells requests for a file.
func ofKey(name string) func(*faulty.Request) bool {
	return func(q *faulty.Request) bool { return strings.HasSuffix(q.Key, name) }
}

// warmOf runs warm and reads its JSON.
func warmOf(t *testing.T, lake *mounttest.Lake, args ...string) (warmed, mounttest.Result) {
	t.Helper()
	r := lake.Run(append([]string{"warm", "--json"}, args...)...)
	var w warmed
	if r.Out != "" {
		if err := json.Unmarshal([]byte(r.Out), &w); err != nil {
			t.Fatalf("%v: %q", err, r.Out)
		}
	}
	return w, r
}

func TestWarm(t *testing.T) {
	files := sizes()
	lake, proxy, _ := diskLake(t, files)
	lake.Start()
	wantEqual(t, lake, map[string]string{"s1048576.csv": files["s1048576.csv"]}) // it is in the page cache and in memory
	w, r := warmOf(t, lake, lake.Path("sales"), lake.Path("no/such"))
	if r.Code != exitFailed || len(w.Failed) != 1 || w.Failed[0].Path != lake.Path("no/such") || !strings.Contains(r.Err, "no/such") {
		t.Errorf("exit code %d, %+v, %q; want %d and the path that is not there", r.Code, w, r.Err, exitFailed)
	}
	if w.Files != len(files)+1 || w.Bytes != 12<<20+5+1+6 || len(w.Mounts) != 1 || w.Mounts[0].NotKept != 0 || w.Mounts[0].DiskCache.Blocks != 16 {
		t.Errorf("warm read %+v, want %d files", w, len(files)+1)
	}
	lake.Remount()
	proxy.Reset()
	wantEqual(t, lake, files)
	if n := dataGets(proxy); n > 0 {
		t.Errorf("after a warm a mount makes %d GETs", n)
	}
	lake.MustSh("cd " + part + "; \"" + lake.Binary() + "\" warm s1.csv | grep -q '^1 file, 1 B read'")
	for what, want := range map[string]string{t.TempDir(): "in no mount", "/proc/self/status": "in no mount"} {
		if _, r := warmOf(t, lake, lake.Path(part), what); r.Code != exitFailed || !strings.Contains(r.Err, want) || r.Out != "" {
			t.Errorf("warm %s: exit code %d, %q %q", what, r.Code, r.Out, r.Err)
		}
	}
	lake.Unmount()
}

// TestWarmReadsDataOnce: what is no data is left out, and what is named twice is read
// once.
func TestWarmReadsDataOnce(t *testing.T) {
	lake, _, _ := diskLake(t, map[string]string{"x.json": "{}\n", "x/y.csv": "2\n"})
	lake.Start()
	all := lake.Path(part) + "/"
	w, r := warmOf(t, lake, lake.Path("sales/notes.json"), lake.Path("sales/notes/.lakefs/entry.json"), lake.Path(".lakefs"))
	if r.Code != exitOK || w.Files != 0 || len(w.Failed) > 0 || strings.Count(r.Err, "is left out") != 3 {
		t.Errorf("no data: exit code %d, %+v, %q", r.Code, w, r.Err)
	}
	for _, paths := range [][]string{
		{all},
		{all, all},
		{all + "a.csv", all},
		{all, all + "x", lake.Path("sales")},
		{all + "x.json", all + "x", all + "x/y.csv", all + "x/../a.csv", all + "a.csv"},
	} {
		if w, r := warmOf(t, lake, paths...); r.Code != exitOK || w.Files != 3 || w.Bytes != 11 || strings.Contains(r.Err, "left out") {
			t.Errorf("%q: exit code %d, %+v, %q, want 3 files of 11 bytes", paths, r.Code, w, r.Err)
		}
	}
}

// TestWarmAsksOnce for each small file, and with little memory too.
func TestWarmAsksOnce(t *testing.T) {
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("f%03d.csv", i)] = noise(byte(i), 2000+i)
	}
	lake, proxy, dir := diskLake(t, files)
	for _, flag := range []string{"--memory-limit=16MiB", "--memory-limit=1GiB"} {
		lake.Start(flag)
		proxy.Reset()
		w, r := warmOf(t, lake, lake.Path(part))
		if r.Code != exitOK || w.Files != len(files)+1 || w.Mounts[0].NotKept > 0 {
			t.Fatalf("%s: exit code %d, %+v, %q", flag, r.Code, w, r.Err)
		}
		if n := dataGets(proxy); n != len(files)+1 {
			t.Errorf("%s: %d GETs of %d files", flag, n, len(files)+1)
		}
		lake.Unmount()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWarmThatFails: the others are read.
func TestWarmThatFails(t *testing.T) {
	lake, proxy, _ := diskLake(t, map[string]string{"bad.csv": "1\n", "good.csv": "2\n"})
	lake.Start()
	proxy.Add(faulty.Rule{Op: "GetObject", If: ofKey("bad.csv"), Fault: faulty.Status{Code: 403, S3Code: "AccessDenied"}})
	w, r := warmOf(t, lake, lake.Path(part))
	if r.Code != exitFailed || w.Files != 2 || len(w.Failed) != 1 || !strings.HasSuffix(w.Failed[0].Path, "bad.csv") || !strings.Contains(r.Err, "permission denied") {
		t.Errorf("exit code %d, %+v, %q", r.Code, w, r.Err)
	}
	lake.Unmount()
}

// TestWarmWarns of what does not stay.
func TestWarmWarns(t *testing.T) {
	lake, _, _ := diskLake(t, map[string]string{"big.csv": noise(1, 17<<20)})
	lake.Start("--cache-size=16MiB")
	if _, r := warmOf(t, lake, lake.Path(part)); r.Code != exitOK || !strings.Contains(r.Err, "--cache-size is 16.0 MiB") {
		t.Errorf("more than fits: exit code %d, %q", r.Code, r.Err)
	}
	lake.Unmount()
	plain, _ := bucketLake(t)
	plain.Start()
	if _, r := warmOf(t, plain, plain.Root); r.Code != exitOK || !strings.Contains(r.Err, "no --cache-dir") {
		t.Errorf("without a disk: exit code %d, %q", r.Code, r.Err)
	}
}

// TestWarmIsInterrupted at once, and leaves a mount that goes on.
func TestWarmIsInterrupted(t *testing.T) {
	lake, proxy, _ := diskLake(t, map[string]string{"big.csv": noise(1, 17<<20)})
	lake.Start()
	held := proxy.Add(faulty.Rule{Op: "GetObject", If: ofKey("big.csv"), Fault: faulty.Hang{}})
	done := make(chan mounttest.Result)
	go func() { done <- lake.Run("warm", lake.Path(part)) }()
	held.Wait(t, 1)
	for _, pid := range strings.Fields(lake.MustSh("pgrep -f '" + "warm " + lake.Path(part) + "'")) {
		lake.MustSh("kill -INT " + pid + " 2>/dev/null; true")
	}
	select {
	case r := <-done:
		if r.Code != exitFailed || !strings.Contains(r.Err, "interrupted") {
			t.Errorf("exit code %d, %q", r.Code, r.Err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
	held.Remove()
	wantEqual(t, lake, map[string]string{"a.csv": "1,one\n"})
}

// TestWarmOfAFolder: there is nothing to do.
func TestWarmOfAFolder(t *testing.T) {
	mounttest.FolderOnly(t, "it is about the folder")
	lake := mounttest.New(t, sales(t))
	if err := lake.TryStart("--cache-dir=" + t.TempDir()); err == nil || !strings.Contains(err.Error(), "--cache-dir") {
		t.Errorf("a disk cache of a local folder: %v, want an error", err)
	}
	lake.Start()
	if _, r := warmOf(t, lake, lake.Root); r.Code != exitFailed || !strings.Contains(r.Err, "local folder") {
		t.Errorf("exit code %d, %q", r.Code, r.Err)
	}
}

// TestDiskCacheNamesNothing: a directory listing tells no key, and nobody else reads it.
func TestDiskCacheNamesNothing(t *testing.T) {
	lake, _, dir := diskLake(t, nil)
	lake.Start()
	wantEqual(t, lake, map[string]string{"a.csv": "1,one\n"})
	onDisk(t, lake)
	lake.Unmount()
	paths := blockFiles(t, dir)
	if len(paths) != 1 {
		t.Fatalf("%d blocks, want 1", len(paths))
	}
	raw, err := os.ReadFile(paths[0])
	if err != nil || bytes.Contains(raw, []byte("a.csv")) || !bytes.HasSuffix(raw, []byte("1,one\n")) {
		t.Errorf("the block is %q (%v)", raw, err)
	}
	if info, err := os.Stat(paths[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v), want 0600", info.Mode(), err)
	}
}
