package fs_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Backup names: a file that is renamed out of the way of its successor.

// settledAs waits until the store has exactly these files of csvDir.
func settledAs(t *testing.T, l *mounttest.Lake, want map[string]string) {
	t.Helper()
	l.Eventually("the store is as the mount is", 20*time.Second, func() bool {
		files, err := l.StoredTree(csvDir)
		return err == nil && tree(files).equal(want)
	})
}

func TestBackupNamesWaitForTheFileThatReplacesThem(t *testing.T) {
	t.Parallel()
	// A name each: of a file that was just written here a rename is made at once, for as
	// long as the kernel has not told of its release.
	l := mountTwo(t, map[string]string{"a": "old\n", "b": "old\n", "c": "old\n", "f": "old\n"}, "--write=delete", neverLingers)
	mustPython(t, l, script(l, csvDir, `
for name, backup in ("a", "a~"), ("b", "b.bak"), ("c", "c.orig"):
    before = version(name)
    os.rename(name, backup)
    eq((published(name), version(name), published(backup)), (b"old\n", before, None))
    eq(err(os.stat, name), "ENOENT")
    assert name not in os.listdir(".")
    eq((open(backup).read(), os.stat(backup).st_size), ("old\n", 4))
    r = os.open(backup, os.O_RDONLY)
    with open(name, "x") as f: f.write("new\n")
    eq((published(name), published(backup)), (b"new\n", None))
    eq((open(name).read(), open(backup).read(), os.read(r, 9)), ("new\n", "old\n", b"old\n"))
    os.unlink(backup)
    eq((published(name), published(backup), err(os.stat, backup)), (b"new\n", None, "ENOENT"))
# and back
os.rename("f", "f~"); os.rename("f~", "f")
eq((published("f"), open("f").read(), published("f~")), (b"old\n", "old\n", None))
eq(sorted(os.listdir(".")), ["a", "b", "c", "f"])
`))
	wantSettled(t, l)
	wantClean(t, l, csvDir, "a", "b", "c", "f")
}

func TestBackupNamesThatStayArePublished(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "old\n", "alone": "alone\n"}, "--write=delete", lingersBriefly)
	l.MustSh(`cd ` + csvDir + `; mv f f~; echo new > f; mv alone alone.bak; cat f~ alone.bak; test ! -e alone`)
	settledAs(t, l, tree{"f": "new\n", "f~": "old\n", "alone.bak": "alone\n"})
	wantSettled(t, l)
	wantNames(t, l, csvDir, "alone.bak", "f", "f~")
	l.MustSh(`cd ` + csvDir + `; cat f~ alone.bak; rm f~; test ! -e alone`)
	settledAs(t, l, tree{"f": "new\n", "alone.bak": "alone\n"})
}

func TestUnmountMakesRenamesToBackupNames(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "old\n", "g": "g\n"}, "--write=delete", neverLingers)
	l.MustSh(`cd ` + csvDir + `; mv f f~; mv g g~; echo new > g`)
	l.Remount()
	wantClean(t, l, csvDir, "f~", "g", "g~")
	wantStore(t, l, csvDir+"/f~", "old\n")
	wantStore(t, l, csvDir+"/g~", "g\n")
	wantStore(t, l, csvDir+"/g", "new\n")
}

func TestKilledBesideABackupName(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "old\n", "g": "g\n"}, "--write=delete", neverLingers)
	l.MustSh(`cd ` + csvDir + `; mv f f~; mv g g~; echo new > g`)
	l.Kill()
	l.Start()
	wantStore(t, l, csvDir+"/f", "old\n") // it was never renamed
	wantStore(t, l, csvDir+"/g", "new\n")
	wantAbsent(t, l, csvDir+"/f~")
	// The old bytes of g are in the state directory alone, and not lost. In a bucket, whose
	// objects others may replace, the backup of f has its own, too.
	var kept []string
	for _, name := range staged(t, l, csvDir) {
		content, err := l.ReadFile(csvDir + "/.lakefs/staged/" + name)
		kept = append(kept, name[:2]+content)
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{"g~g\n"}
	if l.OnS3() {
		want = []string{"f~old\n", "g~g\n"}
	}
	if !slices.Equal(kept, want) {
		t.Errorf("kept are %q, want %q", kept, want)
	}
}

func TestBackupNamesKeepTheRulesOfRemoval(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "old\n", "g": "g\n", "g~": "older\n"}, neverLingers)
	wantErrno(t, "rename", rename(l, csvDir+"/f", csvDir+"/f~"), 0)
	wantErrno(t, "unlink of the backup of another's file", unlink(l, csvDir+"/f~"), syscall.EPERM)
	wantContent(t, l, csvDir+"/f~", "old\n")
	wantErrno(t, "rename back", rename(l, csvDir+"/f~", csvDir+"/f"), 0)
	wantStore(t, l, csvDir+"/f", "old\n")
	// A backup that is there is replaced, as by any rename.
	wantErrno(t, "rename over a backup", rename(l, csvDir+"/g", csvDir+"/g~"), 0)
	wantStore(t, l, csvDir+"/g~", "g\n")
	wantAbsent(t, l, csvDir+"/g")
	l.Remount("--write=delete", neverLingers)
	wantErrno(t, "rename", rename(l, csvDir+"/f", csvDir+"/f~"), 0)
	wantErrno(t, "unlink of the backup", unlink(l, csvDir+"/f~"), 0)
	wantAbsent(t, l, csvDir+"/f")
	wantClean(t, l, csvDir, "g~")
}

// Tools that save the old file beside the new one, and what an edit of theirs costs.
func TestToolsWithBackups(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"f": "a\n"}, "--write=delete", neverLingers)
	for _, tool := range []struct{ name, script string }{
		{"cp -b", `echo b > "$HOME/in"; cp -b "$HOME/in" f; cat f~; rm f~`},
		{"sed", `sed -i.bak s/a/b/ f; cat f.bak; rm f.bak`},
		{"perl", `perl -pi.bak -e s/a/b/ f; cat f.bak; rm f.bak`},
		{"fileinput", `python3 -c 'import fileinput
for line in fileinput.input("f", inplace=True): print(line.replace("a", "b"), end="")'; echo a; test ! -e f.bak`},
	} {
		write(t, l, csvDir+"/f", "a\n")
		watch := watchNames(l.Window(csvDir), "f")
		if got := l.MustSh(`cd ` + csvDir + `; ` + tool.script); got != "a\n" {
			t.Errorf("%s: the backup has %q", tool.name, got)
		}
		wantStore(t, l, csvDir+"/f", "b\n")
		names, missing := watch()
		delete(names, "f")
		if missing > 0 || len(names) > 0 {
			t.Errorf("%s: the store showed %v, and f was missing %d times", tool.name, names, missing)
		}
	}
	wantSettled(t, l)
	if got := l.StoredNames(csvDir); !slices.Equal(got, []string{"f"}) {
		t.Errorf("the store has %q", got)
	}
}

func TestS3AnEditBesideABackupIsOnePUT(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{
		Faulty: true, Tables: []mounttest.Table{text("t", map[string]string{"f": "old"})}, Flags: []string{"--metadata-ttl=5m", "--negative-ttl=5m", "--write=delete", neverLingers},
	})
	l.MustSh(`ls -l db/t; echo x > db/t/first; echo y > db/t/first`)
	l.Proxy.Reset()
	l.MustSh(`cd db/t; mv f f~; printf new > f; rm f~`)
	got := l.Proxy.Counts()
	if got["PutObject"] != 1 || got["CopyObject"]+got["DeleteObject"]+got["DeleteObjects"] > 0 {
		t.Errorf("an edit beside a backup: %v, want one PUT, no copy and no removal\n%s", got, asked(l))
	}
	wantStore(t, l, "db/t/f", "new")
}
