package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Cases from the field, by their numbers in cases.md.

// watchNames polls a directory of the folder until stop, and returns every name
// that was ever there, and the times that must was missing.
func watchNames(dir, must string) (stop func() (seen map[string]bool, missing int)) {
	seen, missing := make(map[string]bool), 0
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
			}
			entries, _ := os.ReadDir(dir) // an error is an empty listing
			there := false
			for _, e := range entries {
				seen[e.Name()] = true
				there = there || e.Name() == must
			}
			if _, err := os.Lstat(filepath.Join(dir, must)); !there && err != nil {
				missing++
			}
		}
	}()
	return func() (map[string]bool, int) {
		close(quit)
		<-done
		return seen, missing
	}
}

func TestCase1Vim(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	if l.Sh(`command -v vim`).Code != 0 {
		t.Skip("no vim here (make deps installs it)")
	}
	l.MustSh(`printf 'a\n' > ` + csvDir + `/n; vim -es -u NONE -c '%s/a/b/' -c wq ` + csvDir + `/n`)
	wantStore(t, l, csvDir+"/n", "b\n")
	wantClean(t, l, csvDir, "n")
	l.MustSh(`cd ` + csvDir + ` && for i in 1 2 3; do vim -es -u NONE -c 'set backup backupext=~' -c "normal Goline $i" -c wq n; done; rm -f n~`)
	wantStore(t, l, csvDir+"/n", "b\nline 1\nline 2\nline 3\n")
	wantClean(t, l, csvDir, "n")
}

func TestCase2SedInPlace(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "x\nx\n"}, "--write=delete")
	stop := watchNames(l.Window(csvDir), "f")
	for range 20 {
		l.MustSh(`cd ` + csvDir + `; sed -i s/x/y/ f; sed -i s/y/x/ f`)
	}
	seen, missing := stop()
	delete(seen, "f")
	if missing > 0 || len(seen) > 0 {
		t.Errorf("f was missing %d times, and beside it were %v", missing, seen)
	}
	wantStore(t, l, csvDir+"/f", "x\nx\n")
	wantClean(t, l, csvDir, "f")
}

func TestCase6LogRotation(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, "--write=delete")
	out := l.MustSh(`cd ` + csvDir + `; for i in 1 2 3 4 5; do echo $i >> l; done; cp l l.1; : > l; gzip l.1; zcat l.1.gz; stat -c %s l`)
	if out != "1\n2\n3\n4\n5\n0\n" {
		t.Errorf("lines and size: %q", out)
	}
	wantClean(t, l, csvDir, "l", "l.1.gz")
}

func TestCase7PatchedHeads(t *testing.T) {
	t.Parallel()
	l := mountText(t, nil, "--write=delete")
	disk := t.TempDir()
	for name, script := range map[string]string{
		"write, then the head": `python3 -c 'f=open("f","wb"); f.write(b"x"*5000000); f.seek(0); f.write(b"HEADHEAD"); f.close()'`,
		"zip":                  `head -c 300000 /dev/zero | tr '\0' z > in; touch -d @1000000000 in; zip -qX f in; zip -qX f -d nothing || true; unzip -tq f.zip >/dev/null; mv f.zip f; rm in`,
		"wave file":            `python3 -c 'import wave; w=wave.open("f","wb"); w.setparams((1,2,8000,0,"NONE","")); [w.writeframes(b"ab"*5000) for _ in range(9)]; w.close()'`,
		"tar that is appended": `for i in 1 2 3; do echo $i > $i; touch -d @1000000000 $i; done; tar --owner=0 --group=0 -cf f 1; tar --owner=0 --group=0 -rf f 2 3; rm 1 2 3`,
		"dd in the middle":     `head -c 3000000 /dev/zero > f; printf MIDDLE | dd of=f bs=1 seek=1500000 conv=notrunc status=none; truncate -s 2000001 f`,
	} {
		run := func(dir string) string {
			if r := l.Exec("bash", "-ec", "cd '"+dir+"'; rm -f f; "+script); r.Code != 0 {
				t.Errorf("%s in %s: code %d: %s%s", name, dir, r.Code, r.Out, r.Err)
			}
			var raw []byte
			err := l.Do("read", func() (err error) { raw, err = os.ReadFile(filepath.Join(dir, "f")); return err })
			if err != nil {
				t.Error(err)
			}
			return string(raw)
		}
		if got, want := run(l.Path("db/t")), run(disk); got != want || want == "" {
			t.Errorf("%s: %d bytes on the mount, %d on a disk, which differ", name, len(got), len(want))
		}
	}
	wantClean(t, l, "db/t", "f")
}

func TestCase10SizesAndCountsAgree(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: treeTables()})
	for line := range strings.Lines(l.MustSh(`find . -type f -printf '%s %b\n'`)) {
		var size, blocks int64
		if n, err := fmt.Sscan(line, &size, &blocks); n != 2 || blocks != (size+511)/512 {
			t.Errorf("size and blocks: %q, %v", line, err)
		}
	}
	if out := l.MustSh(`cd web/logs; truncate -s 5M sparse; printf end >> sparse; tar -Scf ../../sales/empty/s.tar sparse; tar -xOf ../../sales/empty/s.tar sparse | cmp - sparse; stat -c %s sparse`); out != "5242883\n" {
		t.Errorf("a sparse tar: %q", out)
	}
	out := l.MustSh(`find . | wc -l; perl -MFile::Find -e 'my $n = 0; find({no_chdir => 1, wanted => sub { $n++ }}, "."); print "$n\n"'; find . -noleaf | wc -l`)
	if f := strings.Fields(out); len(f) != 3 || f[0] != f[1] || f[1] != f[2] {
		t.Errorf("find, File::Find and find -noleaf count %q", f)
	}
	du, want := l.MustSh(`du -sb --apparent-size sales/orders | cut -f1`), "8012\n"
	if du != want {
		t.Errorf("du: %q, want %q", du, want)
	}
}

func TestCase11WorkingDirectoryStays(t *testing.T) {
	t.Parallel()
	l := mounttest.New(t, mounttest.Options{Tables: treeTables()})
	l.Start(shortTTL...)
	out := l.MustSh(`cd sales/orders/dt=2026-01-01; a=$(stat -c %i .); sleep 0.5; ls -R "` + l.Root + `" > /dev/null; b=$(stat -c %i .); test $a = $b; test "$(/bin/pwd)" = "$PWD"; cd ..; cd -; /bin/pwd; ls`)
	if !strings.HasSuffix(out, "/sales/orders/dt=2026-01-01\nregion=eu\nregion=us\n") {
		t.Errorf("pwd and ls: %q", out)
	}
	// A directory that a process stands in while others drop all that is cached.
	l.MustSh(`cd sales/orders/dt=2026-01-01/region=eu; echo refresh > "` + l.Root + `/.lakefs/ctl"; /bin/pwd; cat a.csv; echo new > n; ls | grep -qx n`)
}

func TestCase42NeighboursOfACommonPrefixAreLeft(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Flags: []string{"--write=delete"}, Tables: []mounttest.Table{
		text("orders", map[string]string{"a": "1", "d/b": "2"}), text("orders_old", map[string]string{"a": "old", "d/b": "old"}),
		{Database: "db", Name: "ord", Format: "csv", Location: "_data/db/orders_o", Files: map[string]string{"x": "o"}},
	}})
	l.MustSh(`rm -rf db/orders/*`)
	wantNames(t, l, "db/orders")
	wantNames(t, l, "db/orders_old", "a", "d")
	wantContent(t, l, "db/orders_old/d/b", "old")
	wantNames(t, l, "db/ord", "x")
}

// Case 43, of a folder's locations: what is refused, and no file of the host is shown.
func TestCase43LocationsOfAFolder(t *testing.T) {
	t.Parallel()
	mounttest.FolderOnly(t, "locations")
	l := mounttest.New(t, mounttest.Options{})
	at := func(name, location string) mounttest.Table {
		return mounttest.Table{Database: "db", Name: name, Format: "csv", Location: location}
	}
	data := filepath.Join(l.Source, "_d/t")
	l.AddTables(at("relative", "_d/t"), at("absolute", data), at("slashes", l.Source+"//_d/./t/"), at("uri", "file:"+data), at("uri3", "file://"+data),
		at("hdfs", "hdfs://h/t"), at("etc", "file:///etc"), at("root", "/"), at("s3", "s3a://b/t"), at("prefix", l.Source+"2/t"))
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	putOutside(t, filepath.Join(data, "f"), "x")
	l.Start()
	for _, name := range []string{"relative", "absolute", "slashes", "uri", "uri3"} {
		wantContent(t, l, "db/"+name+"/f", "x")
		write(t, l, "db/"+name+"/"+name, name)
		if got := outside(t, filepath.Join(data, name)); got != name {
			t.Errorf("%s: written as %q", name, got)
		}
	}
	for name, want := range map[string]syscall.Errno{"hdfs": syscall.EOPNOTSUPP, "etc": syscall.EACCES, "root": syscall.EACCES, "s3": syscall.EACCES, "prefix": syscall.EACCES} {
		_, err := l.Names("db/" + name)
		wantErrno(t, name+": readdir", err, want)
		wantErrno(t, name+": look-up", statErr(l, "db/"+name+"/passwd"), want)
		wantContent(t, l, "db/"+name+".json", l.StoredManifest("db/"+name))
	}
}

// Two tables at one location show, and write, the same files.
func TestCase45TwoTablesOfOneLocation(t *testing.T) {
	t.Parallel()
	two := mounttest.Table{Database: "db", Name: "u", Format: "csv", Location: "_data/db/t"}
	l := mounttest.New(t, mounttest.Options{Tables: []mounttest.Table{text("t", map[string]string{"f": "x"}), two}})
	l.Start(append(shortTTL, "--write=delete")...)
	write(t, l, "db/u/g", "by u")
	wantContent(t, l, "db/t/g", "by u")
	l.MustSh(`echo more >> db/t/g; rm db/u/f`)
	deadline := time.Now().Add(seenWithin)
	for _, dir := range []string{"db/t", "db/u"} {
		l.Eventually(dir+" shows what was done in the other", time.Until(deadline), func() bool {
			got, err := l.ReadFile(dir + "/g")
			_, gone := l.ReadFile(dir + "/f")
			return err == nil && got == "by umore\n" && os.IsNotExist(gone)
		})
	}
}
