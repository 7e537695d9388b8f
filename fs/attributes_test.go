package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

const look = `stat -c '%a %u %g %Y %n' `

func TestAttributesAreKeptOverARemount(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"theirs": "x", "d/f": "y"})
	l.MustSh(`cd db/t
chmod 0640 theirs; chown 12:34 theirs; touch -d '2001-02-03 04:05:06.789' theirs
chmod 0711 d; chown 5:6 d; touch -d '2002-02-03' d
(umask 027; echo mine > mine; mkdir own); touch -d '1999-12-31' mine own; chmod 0401 mine`)
	const files = look + `db/t/theirs db/t/d db/t/mine db/t/own`
	want := l.MustSh(files)
	for _, line := range []string{"640 12 34 981173106 db/t/theirs", "711 5 6 ", "401 0 0 946", "750 0 0 946"} {
		if !strings.Contains(want, line) {
			t.Errorf("no %q in\n%s", line, want)
		}
	}
	if listing := l.MustSh(`ls -ln --time-style=full-iso db/t/theirs`); !strings.Contains(listing, "04:05:06.789") {
		t.Errorf("nanoseconds are lost: %s", listing)
	}
	l.Remount()
	if got := l.MustSh(files); got != want {
		t.Errorf("after a remount:\n%s\nbefore:\n%s", got, want)
	}
	if got := l.MustSh(`find db/t -printf '%m %U %G %p\n'`); !strings.Contains(got, "640 12 34 db/t/theirs\n") {
		t.Errorf("readdir shows others: %s", got)
	}
	if l.OnS3() {
		return
	}
	if info, err := os.Stat(l.Data("db/t/theirs")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the folder's own file was changed: %v, %v", info, err)
	}
}

func TestTimeOfADirectoryHoldsUntilItChanges(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"d/f": "x", "d/e/g": "y"}, noWait...)
	old := func() bool { return stat(t, l, "db/t/d").Mtim.Sec == 1_000_000_000 }
	l.MustSh(`touch -d @1000000000 db/t/d; cd db/t/d; cat f e/g > /dev/null; ls -R > /dev/null; echo more >> e/g; chmod 0700 .`)
	if !old() {
		t.Error("the time is another although no name came or went")
	}
	for _, change := range []string{`echo x > new`, `mkdir newd`, `mv f f2`, `rm new`, `rmdir newd`} {
		l.MustSh(`touch -d @1000000000 db/t/d; cd db/t/d; ` + change)
		if old() {
			t.Errorf("%s: the time is still the one that was set", change)
		}
	}
}

// othersMode is the mode of files that other programs made with mode 0644, or in
// a bucket, which has no modes: --file-mode.
func othersMode(l *mounttest.Lake) os.FileMode {
	if l.OnS3() {
		return 0o600
	}
	return 0o644
}

// What was set belongs to the version that it was set on.
func TestAttributesGoWithTheirVersion(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"f": "one"}, noWait...)
	l.MustSh(`chmod 0600 db/t/f; touch -d 2001-01-01 db/t/f`)
	l.PutStored("db/t/f", "another")
	info, err := l.Lstat("db/t/f")
	if err != nil || info.Mode().Perm() != othersMode(l) || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("a version of another's: %v, %v, %v", info.Mode(), info.ModTime(), err)
	}
	l.MustSh(`chmod 0751 db/t/f; echo more >> db/t/f`)
	if info, err = l.Lstat("db/t/f"); err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("mode after a write: %v, %v; want that before it, 0751", info.Mode(), err)
	}
}

func TestAttributesOfDefaultAndFlags(t *testing.T) {
	t.Parallel()
	l := mounttest.New(t, mounttest.Options{Tables: treeTables()})
	l.Start("--uid=11", "--gid=22", "--file-mode=0664", "--dir-mode=0775", "--umask=0022")
	const files = `stat -c '%a %u %g' sales sales.json sales/orders sales/orders/dt=2026-01-01 sales/orders/.lakefs sales/orders/.lakefs/status.json`
	if got := l.MustSh(files); got != "755 11 22\n444 11 22\n755 11 22\n755 11 22\n555 11 22\n444 11 22\n" {
		t.Errorf("modes and owners: %q", got)
	}
}

// Case 3: rsync of files of several sizes; the second run sends nothing.
func TestCase3RsyncTwice(t *testing.T) {
	t.Parallel()
	l := mountText(t, nil)
	src := t.TempDir()
	for name, size := range map[string]int{"zero": 0, "one": 1, "big": 9 << 20, "d/inner": 1000} {
		path := filepath.Join(src, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat("r", size)), 0o640); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-time.Duration(size+1) * time.Hour / 1000)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour) // not the second in which the mount began, which is a directory's time on S3
	if err := os.Chtimes(filepath.Join(src, "d"), old, old); err != nil {
		t.Fatal(err)
	}
	rsync := `rsync -a --itemize-changes '` + src + `/' db/t/`
	if out := l.MustSh(rsync); strings.Count(out, ">f") != 4 {
		t.Errorf("the first run: %s", out)
	}
	for _, when := range []string{"second", "third, after a remount"} {
		if out := l.MustSh(rsync); out != "" {
			t.Errorf("the %s run changes:\n%s", when, out)
		}
		l.Remount()
	}
	if r := l.Exec("diff", "-r", src, l.Path("db/t")); r.Code != 0 {
		t.Errorf("diff: %s", r.Out)
	}
	wantClean(t, l, "db/t", "zero", "one", "big", "d")
	if out := l.MustSh(`cd db/t; echo changed > one; ` + strings.ReplaceAll(rsync, "db/t/", "./") + ` --checksum`); strings.Count(out, ">f") != 1 {
		t.Errorf("after a change of one file: %s", out)
	}
}

// copyTools put the tree at $1 into the directory d: each must keep bytes,
// modes and times.
var copyTools = map[string]string{
	"cp -a":       `cp -a "$1" d`,
	"cp -p":       `mkdir d; cp -p "$1"/one "$1"/two d; mkdir d/sub; cp -p "$1"/sub/three d/sub`,
	"mv":          `cp -a "$1" "$1.mv"; mv "$1.mv" d; test ! -e "$1.mv"`,
	"rsync":       `rsync -a "$1"/ d/`,
	"tar":         `mkdir d; tar -C "$1" -cf - . | tar -C d -xf -`,
	"tar, sparse": `mkdir d; tar -C "$1" -Scf - . | tar -C d -xf -`,
	"shutil":      `python3 -c 'import shutil,sys; shutil.copytree(sys.argv[1], "d")' "$1"`,
	"install":     `mkdir d d/sub; install -p -m 0640 "$1"/one "$1"/two d; install -p -m 0640 "$1"/sub/three d/sub`,
	"cpio":        `mkdir d; d=$PWD/d; cd "$1"; find . -depth -print0 | cpio -0pdm --quiet "$d" 2>/dev/null`,
}

// Case 4: tools that copy, as root.
func TestCase4CopyingTools(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	for name, content := range map[string]string{"one": "1\n", "two": strings.Repeat("2", 100_000), "sub/three": ""} {
		path := filepath.Join(src, name)
		when := time.Unix(1_000_000_000, 123_456_789)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	l := mountText(t, nil)
	for name, script := range copyTools {
		if strings.HasPrefix(name, "cpio") && l.Sh(`command -v cpio`).Code != 0 {
			continue
		}
		r := l.Exec("bash", "-ec", `cd db/t; `+script, "bash", src)
		if r.Code != 0 {
			t.Errorf("%s: code %d: %s", name, r.Code, r.Err)
			continue
		}
		if r := l.Exec("diff", "-r", src, l.Path("db/t/d")); r.Code != 0 {
			t.Errorf("%s: diff: %s", name, r.Out)
		}
		if r := l.Exec("diff", "-r", src, l.Window("db/t/d")); r.Code != 0 {
			t.Errorf("%s: diff with the folder: %s", name, r.Out)
		}
		for _, file := range []string{"one", "two", "sub/three"} {
			st := stat(t, l, "db/t/d/"+file)
			if st.Mode&0o777 != 0o640 || st.Mtim.Sec != 1_000_000_000 {
				t.Errorf("%s: %s has mode %o and mtime %d", name, file, st.Mode&0o777, st.Mtim.Sec)
			}
		}
		if names := spools(t, l); len(names) > 0 {
			t.Errorf("%s leaves staged: %q", name, names)
		}
		l.MustSh(`rm -r db/t/d`)
	}
}

func TestMakeDoesNothingTheSecondTime(t *testing.T) {
	t.Parallel()
	l := mountText(t, nil)
	write(t, l, "db/t/Makefile", "all: b d/c\nb: a\n\tcp a b\nd/c: b | d\n\tcat b > d/c\nd:\n\tmkdir d\n")
	write(t, l, "db/t/a", "source\n")
	l.MustSh(`cd db/t; make -s`)
	wantContent(t, l, "db/t/d/c", "source\n")
	for range 2 {
		if out := l.MustSh(`cd db/t; make`); !strings.Contains(out, "Nothing to be done") {
			t.Errorf("make again: %s", out)
		}
		l.Remount()
	}
	next := "0.02" // seconds until a change has a later time
	if l.OnS3() {
		next = "2.1" // whole seconds, and versitygw's clock of its Date headers is up to one late
	}
	if out := l.MustSh(`cd db/t; sleep ` + next + `; echo more >> a; make`); !strings.Contains(out, "cp a b") || !strings.Contains(out, "cat b > d/c") {
		t.Errorf("make after a change: %s", out)
	}
}

// Case 5: as a user, a file of mode 0400 is copied in, and removed.
func TestCase5ReadOnlyFileOfAUser(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{text("t", nil)}, User: 1000})
	l.MustSh(`cd db/t; echo secret > "$HOME/s"; chmod 0400 "$HOME/s"; cp "$HOME/s" f; cmp f "$HOME/s"; test "$(stat -c %a-%u f)" = 400-1000
! sh -c 'echo x > f' 2>/dev/null; cp -p "$HOME/s" g; tar -C "$HOME" -cf - s | tar xf -; cmp s f; rsync -a "$HOME/s" h; cmp h f; rm -f f g s h; test -z "$(ls)"`)
}

// Who may do what is by owner and mode, as on any disk.
func TestAttributesDecideAccessForUsers(t *testing.T) {
	t.Parallel()
	l := mounttest.New(t, mounttest.Options{Tables: []mounttest.Table{text("t", map[string]string{"f": "x"})}})
	l.Start("--allow-other", "--dir-mode=0755", "--file-mode=0644")
	l.MustSh(`cd db/t; mkdir -m 1777 tmp; mkdir -m 0700 private; echo secret > private/s; chmod 0600 f`)
	user := func(script string) mounttest.Result {
		return l.Exec("setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "bash", "-c", "cd '"+l.Root+"/db/t' && "+script)
	}
	if os.Chmod(filepath.Dir(filepath.Dir(l.Root)), 0o755) != nil || os.Chmod(filepath.Dir(l.Root), 0o755) != nil {
		t.Fatal("chmod")
	}
	for script, code := range map[string]int{
		`cat f`: 1, `cat private/s`: 1, `ls`: 0, `touch new`: 1, `echo mine > tmp/mine && cat tmp/mine`: 0, `chmod 0777 f`: 1, `chown 1000 f`: 1,
		`mkdir tmp/d && echo x > tmp/d/e && mv tmp/d tmp/d2 && rm -r tmp/d2`: 0, `rm -f f`: 1, `mv f tmp/`: 1,
	} {
		if r := user(script); r.Code != code {
			t.Errorf("%s: code %d, want %d: %s%s", script, r.Code, code, r.Out, r.Err)
		}
	}
	if st := stat(t, l, "db/t/tmp/mine"); st.Uid != 1000 || st.Gid != 1000 {
		t.Errorf("owner of a user's file: %d:%d", st.Uid, st.Gid)
	}
	if r := l.Exec("setpriv", "--reuid=1001", "--regid=1001", "--clear-groups", "rm", "-f", l.Path("db/t/tmp/mine")); r.Code == 0 {
		t.Error("another user removed a file from a sticky directory")
	}
	wantErrno(t, "setuid bit", l.Do("chmod", func() error { return syscall.Chmod(l.Path("db/t/f"), 0o4755) }), 0)
}

// A descriptor of what has no name any more has no links: tail -F and log
// writers find so that they must open the name again.
func TestLinksOfWhatIsGone(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{"read": "x", "over": "y", "d/f": "z"}, "--write=delete")
	l.MustSh(`cd db/t
links() { stat -L -c %h /proc/self/fd/$1; }
exec 3<read 4>new 5<over 6<d; for n in 3 4 5 6; do test "$(links $n)" = 1; done
rm read new; echo z > other; mv other over; rm -r d
for n in 3 4 5 6; do test "$(links $n)" = 0 || { echo "descriptor $n: $(links $n) links" >&2; exit 1; }; done
test "$(cat <&3)" = x; test "$(cat <&5)" = y`)
}
