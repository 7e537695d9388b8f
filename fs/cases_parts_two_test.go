package fs_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Who sees what of a file whose parts are up, and who wins.

// TestCase24PartsThatAreUpAreSeenByNobodyOnS3: this mount reads the file by its
// name; another mount and the bucket have nothing. What is written again meanwhile
// counts.
func TestCase24PartsThatAreUpAreSeenByNobodyOnS3(t *testing.T) {
	t.Parallel()
	l := partsTwo(t, nil)
	m := l.Second(noWait...)
	file := largeIn(t, "")
	p := begin(t, l, `exec 3>n; cat `+file+` >&3; : >$READY; until [ -e $READY.go ]; do sleep .02; done; exec 3>&-; cd /`)
	partsUp(l, "n", 3)
	wantAbsent(t, l, csvDir+"/n")
	if names := l.StoredNames(csvDir); len(names) > 0 {
		t.Errorf("the bucket lists %q", names)
	}
	if uploads := uploadsOf(t, l); len(uploads) != 1 || uploads[0] != l.Key(csvDir+"/n") {
		t.Errorf("the uploads are %q, want the file's own", uploads)
	}
	wantErrno(t, "look-up in the other mount", statErr(m, csvDir+"/n"), syscall.ENOENT)
	wantNames(t, m, csvDir)
	wantContent(t, l, csvDir+"/n", fourParts())
	wantContent(t, l, wantStaged(t, l, csvDir, "n"), fourParts())
	if size := stat(t, l, csvDir+"/n").Size; size != int64(len(fourParts())) {
		t.Errorf("by its name it has %d bytes, want %d", size, len(fourParts()))
	}
	wantErrno(t, "create", openErr(l, csvDir+"/n", creat), syscall.EEXIST)
	const at = 6 << 20 // in a part that is up
	l.MustSh(fmt.Sprint(`printf PATCH | dd of=`, csvDir, `/n bs=1M seek=6 conv=notrunc status=none`))
	patched := fourParts()[:at] + "PATCH" + fourParts()[at+5:]
	wantContent(t, l, csvDir+"/n", patched)
	wantAbsent(t, l, csvDir+"/n")
	p.goOn(t)
	if code, out := p.wait(t); code != 0 {
		t.Errorf("the writer ended with %d: %s", code, out)
	}
	wantStore(t, l, csvDir+"/n", patched)
	wantByParts(t, l, "n")
	wantNames(t, m, csvDir, "n")
	wantContent(t, m, csvDir+"/n", patched)
	wantClean(t, l, csvDir, "n")
	wantNoUpload(t, l, "n")
}

// raced is how two writers of one name ended.
type raced struct{ first, second error }

// raceWith opens a name on both mounts, writes to both, and closes first the one
// and then the other.
func raceWith(t *testing.T, l, m *mounttest.Lake, name string, flags int, ours, theirs string) (r raced) {
	t.Helper()
	r.second = writeErr(m, name, flags, theirs, func() { r.first = writeErr(l, name, flags, ours, nil) })
	return r
}

// TestCase25TwoMountsPublishOneNameByPartsOnS3: the loser's close tells, its bytes
// are kept and listed; it does not matter who of them needs parts.
func TestCase25TwoMountsPublishOneNameByPartsOnS3(t *testing.T) {
	ours, theirs := fourParts(), strings.Repeat("the loser's\n", 1_000_000)
	for what, c := range map[string]struct{ ours, theirs string }{
		"both": {ours, theirs}, "the first": {ours, "small"}, "the second": {"small", theirs},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := partsTwo(t, map[string]string{"old": "old\n"})
			m := l.Second(ofParts)
			for name, k := range map[string]struct {
				flags int
				want  syscall.Errno
			}{"new": {creat, syscall.EEXIST}, "old": {trunc, syscall.ESTALE}} {
				path := csvDir + "/" + name
				r := raceWith(t, l, m, path, k.flags, c.ours, c.theirs)
				wantErrno(t, name+": close of the first", r.first, 0)
				wantErrno(t, name+": close of the second", r.second, k.want)
				wantStore(t, l, path, c.ours)
				m.Eventually("the loser's mount shows the winner's "+name, seenWithin, func() bool {
					got, err := m.ReadFile(path)
					return err == nil && got == c.ours
				})
			}
			if c.ours == ours {
				wantByParts(t, l, "new")
			}
			wantClean(t, l, csvDir, "new", "old")
			wantNoUpload(t, l, "new", "old")
			for range 2 {
				all := stagedStatus(t, m)
				if len(all) != 2 {
					t.Errorf("the loser has %+v, want both files", all)
				}
				for _, w := range all {
					wantContent(t, m, w.shown(), c.theirs)
				}
				m.Remount()
			}
		})
	}
}

// TestCase25AnAppenderByPartsAndARewriterOnS3: the appender goes behind, with
// either version's bytes from the store.
func TestCase25AnAppenderByPartsAndARewriterOnS3(t *testing.T) {
	t.Parallel()
	l := partsTwo(t, map[string]string{"f": strings.Repeat("old content\n", 1_000_000)})
	m := l.Second(ofParts)
	const f = csvDir + "/f"
	err := writeErr(l, f, app, "appended\n", func() {
		wantErrno(t, "close of the rewriter", writeErr(m, f, trunc, fourParts(), nil), 0)
	})
	wantErrno(t, "close of the appender", err, 0)
	wantStore(t, l, f, fourParts()+"appended\n")
	wantByParts(t, l, "f")
	err = writeErr(l, f, trunc, strings.Repeat("lost\n", 3_000_000), func() {
		wantErrno(t, "close of the appender", writeErr(m, f, app, "more\n", nil), 0)
	})
	wantErrno(t, "close of the rewriter", err, syscall.ESTALE)
	wantStore(t, m, f, fourParts()+"appended\nmore\n")
	wantKeptBytes(t, l, csvDir, "f", strings.Repeat("lost\n", 3_000_000))
	wantClean(t, m, csvDir, "f")
	wantNoUpload(t, l, "f")
}

// TestCase69AppendersByPartsOnS3: each line of a log that is published by parts is
// there once, of two shells in one mount and in two.
func TestCase69AppendersByPartsOnS3(t *testing.T) {
	const lines = `for i in $(seq 10); do echo "$w $i" >>log; done`
	head := fourParts()[:2*partSize+100] + "\n"
	for what, mounts := range map[string]int{"one mount": 1, "two mounts": 2} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := partsTwo(t, map[string]string{"log": head})
			m := l
			if mounts == 2 {
				m = l.Second(ofParts)
			}
			l.MustSh(`(cd ` + l.Path(csvDir) + `; w=a; ` + lines + `) & (cd ` + m.Path(csvDir) + `; w=b; ` + lines + `) & wait`)
			wantSettled(t, l)
			wantSettled(t, m)
			log, _ := inStore(t, l, csvDir+"/log")
			added, ok := strings.CutPrefix(log, head)
			if !ok {
				t.Fatalf("the log's old bytes are gone: %d bytes, %s", len(log), brief(log))
			}
			appended(t, added, 10, "a", "b")
			if taken(l, "CompleteMultipartUpload", "log") == 0 || taken(l, "UploadPartCopy", "log") == 0 {
				t.Errorf("nothing was published by parts, and by copied ones\n%s", asked(l))
			}
			wantNoUpload(t, l, "log")
		})
	}
}

// TestCase72LastOfTwoHandlesPublishesPartsOnS3: whole, at the last close, though
// parts of both were up before.
func TestCase72LastOfTwoHandlesPublishesPartsOnS3(t *testing.T) {
	t.Parallel()
	l := partsTwo(t, nil)
	stop := seen(l.Window(csvDir + "/f"))
	defer stop()
	file := largeIn(t, "")
	p := begin(t, l, `exec 3>f; exec 4>>f; cat `+file+` >&3; exec 3>&-; cat `+file+` >&4; : >$READY; until [ -e $READY.go ]; do sleep .02; done; exec 4>&-; cd /`)
	partsUp(l, "f", 7)
	wantAbsent(t, l, csvDir+"/f")
	p.goOn(t)
	if code, out := p.wait(t); code != 0 {
		t.Errorf("the writer ended with %d: %s", code, out)
	}
	wantStore(t, l, csvDir+"/f", fourParts()+fourParts())
	if got := stop(); len(got) != 1 || got[0] != fourParts()+fourParts() {
		t.Errorf("the store showed %d versions, want the whole file once", len(got))
	}
	wantByParts(t, l, "f")
	wantClean(t, l, csvDir, "f")
	wantNoUpload(t, l, "f")
}
