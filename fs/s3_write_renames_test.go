package fs_test

import (
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Renames that the store refuses in part, of files and of whole directories.

// TestCase18RemovalOfTheOldNameRefusedOnS3: the copy is taken back, so that no row
// is there twice.
func TestCase18RemovalOfTheOldNameRefusedOnS3(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, map[string]string{"from": "from\n"})
	l.Proxy.Add(onFile(l, "DeleteObject", "from", answers(403, "AccessDenied")))
	wantErrno(t, "rename", rename(l, csvDir+"/from", csvDir+"/to"), syscall.EACCES)
	for range 2 {
		wantNames(t, l, csvDir, "from")
		wantContent(t, l, csvDir+"/from", "from\n")
		wantClean(t, l, csvDir, "from")
		wantBucket(t, l, "from")
		l.Remount("--write=delete")
	}
	wantErrno(t, "unlink", unlink(l, csvDir+"/from"), syscall.EACCES)
	wantStore(t, l, csvDir+"/from", "from\n")
}

// TestS3TwoMountsRenameOneFile: one of them does.
func TestS3TwoMountsRenameOneFile(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, map[string]string{"from": "from\n"}, shortTTL...)
	m := l.Second(shortTTL...)
	met := meanwhile(l, "CopyObject", "mine", func() {
		wantErrno(t, "rename in the other mount", rename(m, csvDir+"/from", csvDir+"/theirs"), 0)
	})
	wantErrno(t, "rename", rename(l, csvDir+"/from", csvDir+"/mine"), syscall.ENOENT)
	if met.Hits() == 0 {
		t.Error("no copy: this test shows nothing")
	}
	wantBucket(t, l, "theirs")
	l.Eventually("both show the one name", seenWithin, func() bool {
		a, errA := l.Names(csvDir)
		b, errB := m.Names(csvDir)
		return errA == nil && errB == nil && slices.Equal(a, []string{"theirs"}) && slices.Equal(b, a)
	})
	wantClean(t, l, csvDir, "theirs")
}

// dirOf are n files of a directory d, by name in csvDir.
func dirOf(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("d/%02d", i)] = fmt.Sprintln("content", i)
	}
	return files
}

// TestS3DirectoryRenameRefusedInPart: what was moved is moved back.
func TestS3DirectoryRenameRefusedInPart(t *testing.T) {
	t.Parallel()
	files := dirOf(40)
	for what, c := range map[string]struct {
		rule  faulty.Rule
		want  syscall.Errno
		extra string // what another put at the new name
	}{
		"a copy":              {faulty.Rule{Op: "CopyObject", Fault: answers(403, "AccessDenied")}, syscall.EACCES, ""},
		"a removal":           {faulty.Rule{Op: "DeleteObject", Fault: answers(403, "AccessDenied")}, syscall.EACCES, ""},
		"a copy, by a 500":    {faulty.Rule{Op: "CopyObject", Fault: answers(500, "InternalError")}, syscall.EIO, ""},
		"another's new name":  {faulty.Rule{}, syscall.EEXIST, "e/33"},
		"another's new names": {faulty.Rule{}, syscall.ENOTEMPTY, "e/other"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := faultyTwo(t, files, "--io-timeout=1s")
			l.MustSh(`ls -l ` + csvDir + ` ` + csvDir + `/d`)
			want := maps.Clone(files)
			switch c.rule.Key = l.Key(csvDir + "/d/33"); {
			case c.rule.Op == "CopyObject":
				c.rule.Key = l.Key(csvDir + "/e/33")
			case c.extra == "e/33": // comes while the others are moved
				meanwhile(l, "CopyObject", "e/00", func() { l.PutStored(csvDir+"/e/33", "theirs\n") })
				want[c.extra] = "theirs\n"
			case c.extra != "":
				l.PutStored(csvDir+"/"+c.extra, "theirs\n")
				want[c.extra] = "theirs\n"
			}
			if c.rule.Fault != nil {
				l.Proxy.Add(c.rule)
			}
			wantErrno(t, "rename", rename(l, csvDir+"/d", csvDir+"/e"), c.want)
			l.Proxy.Clear()
			got, err := l.StoredTree(csvDir)
			if err != nil || !maps.Equal(got, want) {
				t.Errorf("the store has %q (%v), want %q", slices.Sorted(maps.Keys(got)), err, slices.Sorted(maps.Keys(want)))
			}
			l.Remount("--write=delete")
			wantBucket(t, l, slices.Collect(maps.Keys(want))...)
			wantContent(t, l, csvDir+"/d/33", files["d/33"])
			wantErrno(t, "rename, once more", rename(l, csvDir+"/d", csvDir+"/f"), 0)
			wantContent(t, l, csvDir+"/f/33", files["d/33"])
		})
	}
}

// TestS3KilledWhileRenamingADirectory: each object is at one of its names.
func TestS3KilledWhileRenamingADirectory(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"CopyObject", "DeleteObject"} {
		for _, fault := range []faulty.Hang{{}, {Answer: true}} {
			t.Run(fmt.Sprint(op, fault), func(t *testing.T) {
				t.Parallel()
				files := dirOf(40)
				l := faultyTwo(t, files, "--io-timeout=30s")
				rule := onFile(l, op, "", fault)
				rule.Skip = 20
				held := l.Proxy.Add(rule)
				wait := behind(t, l, `mv d e`)
				held.Wait(t, 3)
				l.Kill()
				wait()
				l.Proxy.Clear()
				l.Start("--io-timeout=30s")
				l.Eventually("recovered", 0, func() bool { return len(spools(t, l)) == 0 })
				wantOneName(t, l, files)
				// The next one takes the rest along.
				l.MustSh(`cd ` + csvDir + `; if [ -e d ]; then mv -n d/* e/ && rmdir d; fi; test ! -e d`)
				wantOneName(t, l, files)
			})
		}
	}
}

// wantOneName asserts that each file of d is in d or in e, with its content.
func wantOneName(t *testing.T, l *mounttest.Lake, files map[string]string) {
	t.Helper()
	got, err := l.StoredTree(csvDir)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		old, there := got[name]
		moved, here := got["e"+name[1:]]
		if there == here || old+moved != content {
			t.Errorf("%s: at its old name %v, at its new one %v; %q", name, there, here, old+moved)
		}
	}
	if len(got) != len(files) {
		t.Errorf("the store has %d files, want %d", len(got), len(files))
	}
}
