package fs_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/killpoint"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Cases of writing, committing and crashing, by their numbers in cases.md, on a
// folder: it is full, or shut, where a store refuses.

// fullLake mounts a lake whose folder is a tmpfs of 2 MiB, on which nothing more
// has room until free is called.
func fullLake(t *testing.T) (l *mounttest.Lake, free func()) {
	t.Helper()
	mounttest.FolderOnly(t, "faults of the folder")
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a tmpfs")
	}
	l = mounttest.New(t, mounttest.Options{})
	if err := unix.Mount("tmpfs", l.Source, "tmpfs", 0, "mode=0755,size=2m"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(l.Source, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	l.AddTables(twoTables(nil)...)
	l.Start()
	filler := l.Source + "/filler"
	if err := os.WriteFile(filler, make([]byte, 3<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("fill the folder: %v, want ENOSPC", err)
	}
	return l, func() {
		if err := os.Remove(filler); err != nil {
			t.Error(err)
		}
	}
}

// shutLake mounts a lake whose daemon may not write in csvDir's folder, until open
// is called.
func shutLake(t *testing.T, files map[string]string) (l *mounttest.Lake, open func()) {
	t.Helper()
	mounttest.FolderOnly(t, "faults of the folder")
	var via []string
	if os.Geteuid() == 0 { // modes are to hold for root too
		if _, err := exec.LookPath("setpriv"); err != nil {
			t.Skip("no setpriv here (make deps installs it)")
		}
		via = []string{"setpriv", "--bounding-set=-dac_override,-dac_read_search"}
	}
	l = mounttest.Mount(t, mounttest.Options{Tables: twoTables(files), Flags: []string{"--write=delete"}, Via: via})
	chmod := func(mode uint32) {
		if err := syscall.Chmod(l.Data(csvDir), mode); err != nil {
			t.Error(err)
		}
	}
	chmod(0o555)
	return l, func() { chmod(0o755) }
}

// wantFolder asserts that csvDir's folder has exactly these files, helpers and
// staging trees counted.
func wantFolder(t *testing.T, l *mounttest.Lake, want tree) {
	t.Helper()
	if got := readTree(t, l.Data(csvDir)); !got.equal(want) {
		t.Errorf("the folder has %q, want %q", got, want)
	}
}

// TestCase16NoPublishTakesEffect: the writer is told, where it can be, and nobody
// sees a file. It is kept, and not published by itself.
func TestCase16NoPublishTakesEffect(t *testing.T) {
	for what, c := range map[string]struct {
		lake func(*testing.T) (*mounttest.Lake, func())
		told string
	}{
		"full": {fullLake, "No space left on device"},
		"shut": {func(t *testing.T) (*mounttest.Lake, func()) { t.Helper(); return shutLake(t, nil) }, "Permission denied"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l, mend := c.lake(t)
			l.MustSh(`head -c 1M /dev/urandom >` + l.State + `/small; head -c 20M /dev/urandom >` + l.State + `/large`)
			sizes := map[string]int64{"cp1": 1 << 20, "cp20": 20 << 20, "fsync": 1 << 20, "echo": 2}
			for name, script := range map[string]string{
				"cp1": `cp $S/small cp1`, "cp20": `cp $S/large cp20`,
				"fsync": `dd if=$S/small of=fsync bs=64K conv=fsync status=none`, "echo": `echo x >echo`,
			} {
				r := l.Sh(`S=` + l.State + `; cd ` + csvDir + `; ` + script)
				if name != "echo" && (r.Code == 0 || !strings.Contains(r.Err, c.told)) {
					t.Errorf("%s: exit code %d, %q; want %q", script, r.Code, r.Err, c.told)
				}
				wantAbsent(t, l, csvDir+"/"+name)
				calls := 1
				if name == "fsync" {
					calls = 2 // the close tries once more
				}
				wantFailuresLogged(t, l, name, calls, l.Data(csvDir), strings.ToLower(c.told))
			}
			wantShown(t, l, sizes)
			wantFolder(t, l, tree{})
			mend()
			l.Remount()
			wantNames(t, l, csvDir)
			wantShown(t, l, sizes)
			l.MustSh(`cp ` + l.State + `/small ` + csvDir + `/cp1 && cmp ` + l.State + `/small ` + l.Window(csvDir+"/cp1"))
		})
	}
}

// wantFailuresLogged asserts that the log has so many lines of failures of a name
// in csvDir, each with all parts.
func wantFailuresLogged(t *testing.T, l *mounttest.Lake, name string, n int, parts ...string) {
	t.Helper()
	l.Eventually("the failure is logged: "+name, seenWithin, func() bool { return len(failures(l, name)) >= n })
	lines := failures(l, name)
	if len(lines) != n {
		t.Errorf("%s is logged %d times, want a line for each of %d calls: %q", name, len(lines), n, lines)
	}
	for _, part := range parts {
		if !strings.Contains(lines[0], part) {
			t.Errorf("the log line lacks %q: %s", part, lines[0])
		}
	}
}

// wantShown asserts that status.json has exactly these names in csvDir as failed,
// of these sizes.
func wantShown(t *testing.T, l *mounttest.Lake, sizes map[string]int64) {
	t.Helper()
	all := stagedStatus(t, l)
	for _, w := range all {
		size, ok := sizes[strings.TrimPrefix(w.Path, csvDir+"/")]
		if !ok || w.Size != size || w.State != "failed" || w.Error == "" || w.Open {
			t.Errorf("status shows %+v, want a failed write of %d bytes", w, size)
		}
	}
	if len(all) != len(sizes) {
		t.Errorf("status shows %+v, want %v", all, sizes)
	}
}

// TestCase17RefusedRenameLosesNothing: the target is absent, and what was to be
// renamed is where it was, whichever of the two directories refuses. A file that is
// renamed while it is written is kept.
func TestCase17RefusedRenameLosesNothing(t *testing.T) {
	t.Parallel()
	l, open := shutLake(t, map[string]string{"mine": "mine\n"})
	const other = "db/text/dt=2026-01-02"
	l.MustSh(`mkdir ` + other + `; echo theirs >` + other + `/f`)
	for from, to := range map[string]string{other + "/f": csvDir + "/f", csvDir + "/mine": other + "/mine"} {
		r := l.Sh(`mv ` + from + ` ` + to)
		if r.Code == 0 || !strings.Contains(r.Err, "Permission denied") {
			t.Errorf("mv to %s: exit code %d, %q; want EACCES", to, r.Code, r.Err)
		}
		wantAbsent(t, l, to)
	}
	err := writeErr(l, other+"/writing", creat, "bytes", func() {
		if err := syscall.Rename(l.Path(other+"/writing"), l.Path(csvDir+"/final")); err != nil {
			t.Error(err)
		}
	})
	wantErrno(t, "close of a file that was renamed", err, syscall.EACCES)
	wantAbsent(t, l, csvDir+"/final")
	wantKeptBytes(t, l, csvDir, "final", "bytes")
	wantFolder(t, l, tree{"mine": "mine\n"})
	wantStore(t, l, other+"/f", "theirs\n")
	open()
	wantErrno(t, "rename, when it may", rename(l, csvDir+"/mine", other+"/mine"), 0)
	wantFolder(t, l, tree{})
	wantStore(t, l, other+"/mine", "mine\n")
}

// TestCase18RefusedOverwrite: the old bytes stay, over a remount too, and what was
// written is kept.
func TestCase18RefusedOverwrite(t *testing.T) {
	t.Parallel()
	const old = "the old content\n"
	l, open := shutLake(t, map[string]string{"cut": old, "part": old, "app": old})
	kept := map[string]string{"cut": "refused", "part": "refused" + old[len("refused"):], "app": old + "refused"}
	for name, flags := range map[string]int{"cut": trunc, "part": syscall.O_WRONLY, "app": app} {
		wantErrno(t, "close of "+name, writeErr(l, csvDir+"/"+name, flags, "refused", nil), syscall.EACCES)
	}
	for range 2 {
		for name := range kept {
			wantContent(t, l, csvDir+"/"+name, old)
			if size := stat(t, l, csvDir+"/"+name).Size; size != int64(len(old)) {
				t.Errorf("%s has %d bytes, want %d", name, size, len(old))
			}
		}
		all := stagedStatus(t, l)
		if len(all) != len(kept) {
			t.Errorf("kept are %+v, want %v", all, kept)
		}
		for _, w := range all {
			wantContent(t, l, w.shown(), kept[strings.TrimPrefix(w.Path, csvDir+"/")])
		}
		l.Remount()
	}
	open()
	l.Remount()
	wantFolder(t, l, tree{"cut": old, "part": old, "app": old}) // what failed is not published by itself
}

// killedInTheMiddle kills l's daemon when slowWriter p has 20 MiB staged, and returns
// what the next one has kept of it.
func killedInTheMiddle(t *testing.T, l *mounttest.Lake, p *program) stagedWrite {
	t.Helper()
	l.Eventually("20 MiB are staged", 0, func() bool {
		all := stagedStatus(t, l)
		return len(all) == 1 && all[0].Size == 20<<20
	})
	return killed(t, l, p)
}

// killed kills l's daemon while p writes big.csv, and returns what the next one has
// kept of it.
func killed(t *testing.T, l *mounttest.Lake, p *program) stagedWrite {
	t.Helper()
	l.Kill()
	p.end()
	l.Start("--write=delete")
	wantAbsent(t, l, csvDir+"/big.csv")
	kept := stagedStatus(t, l)
	if len(kept) != 1 || kept[0].Path != csvDir+"/big.csv" || kept[0].State != "staged" {
		t.Fatalf("kept is %+v, want big.csv, staged", kept)
	}
	return kept[0]
}

// TestCase20KilledDaemonInTheMiddleOfAWrite: not listed, staged and shown; what
// another live mount has staged is not touched.
func TestCase20KilledDaemonInTheMiddleOfAWrite(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	m := l.Second()
	other := begin(t, m, `exec 3>theirs.csv; echo one >&3; : >$READY; until [ -e $READY.go ]; do sleep .02; done; echo two >&3; exec 3>&-; cd /`)
	p := begin(t, l, slowWriter)
	killedInTheMiddle(t, l, p)
	if all := stagedStatus(t, m); len(all) != 1 || all[0].Path != csvDir+"/theirs.csv" || !all[0].Open {
		t.Errorf("the other mount has %+v staged, want theirs.csv", all)
	}
	other.goOn(t)
	if code, out := other.wait(t); code != 0 {
		t.Errorf("the other mount's writer ended with %d: %s", code, out)
	}
	wantStore(t, m, csvDir+"/theirs.csv", "one\ntwo\n")
	if r := l.Run("recover", "--abort=all", l.Root); r.Code != 0 {
		t.Errorf("recover --abort: exit code %d, %s%s", r.Code, r.Out, r.Err)
	}
	wantClean(t, l, csvDir, "theirs.csv")
}

// goOn makes the file that a program of begin waits for.
func (p *program) goOn(t *testing.T) {
	t.Helper()
	writeFile(t, strings.TrimPrefix(p.cmd.Env[len(p.cmd.Env)-1], "READY=")+".go", "")
}

// TestCase21PublishTakesEffectAndNobodyLearnsOfIt: the daemon ends right after the
// rename that publishes. The next one finds the file to be its own.
func TestCase21PublishTakesEffectAndNobodyLearnsOfIt(t *testing.T) {
	for what, c := range map[string]struct {
		name, script, content string
		across                bool // the staging directory is on another file system
	}{
		"a new file":                  {"new", `printf new >new`, "new", false},
		"a new file, copied":          {"new", `printf new >new`, "new", true},
		"an overwrite":                {"old", `printf over >old`, "over", false},
		"an append":                   {"old", `printf more >>old`, "old\nmore", false},
		"an append, copied":           {"old", `printf more >>old`, "old\nmore", true},
		"an fsync":                    {"new", `printf new | dd of=new conv=fsync status=none`, "new", false},
		"a new name for a staged one": {"new", `exec 3>first; printf new >&3; mv first new; exec 3>&-`, "new", false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			mounttest.FolderOnly(t, "steps of a publish on a disk")
			trap := killpoint.New(t, "TestKillPointHelper")
			l := mounttest.New(t, mounttest.Options{Tables: twoTables(map[string]string{"old": "old\n"}), Via: trap.Command()})
			next, of := "fsync ", l.Data(csvDir) // the step after the rename
			if c.across {
				l.State = otherFileSystem(t, l.Source)
				next, of = "unlink _temporary", ""
			}
			l.Start()
			held, release := trap.Hold(next, of)
			defer release()
			wait := behind(t, l, c.script)
			select {
			case <-held:
			case <-time.After(30 * time.Second):
				t.Fatalf("no step %q: %q", next, trap.Steps())
			}
			took := mustStoredInfo(t, l, csvDir+"/"+c.name)
			l.Kill()
			release()
			wait()
			l.Start()
			wantStore(t, l, csvDir+"/"+c.name, c.content)
			wantContent(t, l, csvDir+"/"+c.name, c.content)
			if now := mustStoredInfo(t, l, csvDir+"/"+c.name); now != took {
				t.Errorf("published once more: %+v, before %+v", now, took)
			}
			wantFolder(t, l, tree{"old": "old\n", c.name: c.content})
			if ids := spools(t, l); len(ids) > 0 {
				t.Errorf("the staging directory has %q, want nothing", ids)
			}
		})
	}
}

func mustStoredInfo(t *testing.T, l *mounttest.Lake, name string) mounttest.StoredFile {
	t.Helper()
	info, err := l.StoredInfo(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
