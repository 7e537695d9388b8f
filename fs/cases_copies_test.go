package fs_test

import (
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Cases of writing, by their numbers in cases.md, with files that the store copies:
// cp(1) within the lake is one CopyObject.

// copiesTwo mounts twoTables, with files to copy and one to replace.
func copiesTwo(t *testing.T) *mounttest.Lake {
	t.Helper()
	l := faultyTwo(t, map[string]string{"from": copied, "over": "over\n"}, "--io-timeout=1s")
	warm(t, l)
	return l
}

var copied = strings.Repeat("copied in the store\n", 10_000)

// wantRefusedCopies copies to a new name and over a file, is told by cp, and
// asserts that nothing changed and the copies are kept.
func wantRefusedCopies(t *testing.T, l *mounttest.Lake, told string) {
	t.Helper()
	for _, to := range []string{"new", "over"} {
		r := l.Sh(`cp ` + csvDir + `/from ` + csvDir + `/` + to)
		if r.Code == 0 || !strings.Contains(r.Err, told) {
			t.Errorf("cp from %s: exit code %d, %q; want %q", to, r.Code, r.Err, told)
		}
	}
	for range 2 {
		wantAbsent(t, l, csvDir+"/new")
		wantStore(t, l, csvDir+"/over", "over\n")
		wantContent(t, l, csvDir+"/over", "over\n")
		wantStore(t, l, csvDir+"/from", copied)
		wantNoUpload(t, l, "from", "over")
		all := stagedStatus(t, l)
		if len(all) != 2 {
			t.Errorf("kept are %+v, want both copies", all)
		}
		l.Proxy.Clear()
		for _, w := range all {
			wantContent(t, l, w.shown(), copied)
		}
		l.Remount()
	}
}

func TestCase16NoCopyTakesEffectOnS3(t *testing.T) {
	t.Parallel()
	l := copiesTwo(t)
	met := l.Proxy.Add(onFile(l, "CopyObject", "", answers(500, "InternalError")))
	wantRefusedCopies(t, l, "Input/output error")
	wantMet(t, l, met)
	for _, name := range []string{"new", "over"} {
		wantFailuresLogged(t, l, name, 1, l.Key(csvDir+"/"+name), "500", requestID)
	}
}

// wantMet asserts that some request met a fault.
func wantMet(t *testing.T, l *mounttest.Lake, rule *faulty.Active) {
	t.Helper()
	if rule.Hits() == 0 {
		t.Errorf("no request met the fault: this test shows nothing\n%s", asked(l))
	}
}

func TestCase17CopyOfAFileAnswers200WithAnErrorOnS3(t *testing.T) {
	t.Parallel()
	l := copiesTwo(t)
	rule := onFile(l, "CopyObject", "once", faulty.OK200Error{S3Code: "InternalError", Message: "We encountered an internal error."})
	rule.Times = 1
	wantCopiedOnce(t, l, l.Proxy.Add(rule), "once")
	if err := unlink(l, csvDir+"/once"); err != nil {
		t.Error(err)
	}
	rule = onFile(l, "CopyObject", "", faulty.OK200Error{S3Code: "InternalError", Message: "We encountered an internal error."})
	met := l.Proxy.Add(rule)
	wantRefusedCopies(t, l, "Input/output error")
	wantMet(t, l, met)
}

// wantCopiedOnce copies to a name, the first request of which meets a fault.
func wantCopiedOnce(t *testing.T, l *mounttest.Lake, fault *faulty.Active, name string) {
	t.Helper()
	l.MustSh(`cp ` + csvDir + `/from ` + csvDir + `/` + name)
	if fault.Hits() != 1 {
		t.Errorf("the fault was met %d times, want once\n%s", fault.Hits(), asked(l))
	}
	wantStore(t, l, csvDir+"/"+name, copied)
	wantContent(t, l, csvDir+"/"+name, copied)
	if n := taken(l, "PutObject", name); n > 0 {
		t.Errorf("the bytes were sent\n%s", asked(l))
	}
}

// TestCase18CopyRefusedOnS3: who may not copy sends the bytes; if those are refused
// too, the old ones stay.
func TestCase18CopyRefusedOnS3(t *testing.T) {
	t.Parallel()
	l := copiesTwo(t)
	met := l.Proxy.Add(onFile(l, "CopyObject", "", answers(403, "AccessDenied")))
	l.MustSh(`cp ` + csvDir + `/from ` + csvDir + `/sent`)
	wantMet(t, l, met)
	wantStore(t, l, csvDir+"/sent", copied)
	if err := unlink(l, csvDir+"/sent"); err != nil {
		t.Error(err)
	}
	l.Proxy.Add(onFile(l, "PutObject", "", answers(403, "AccessDenied")))
	wantRefusedCopies(t, l, "Permission denied")
}

func TestCase21LostAnswerOfACopyOnS3(t *testing.T) {
	t.Parallel()
	l := copiesTwo(t)
	for _, name := range []string{"new", "over"} {
		rule := onFile(l, "CopyObject", name, faulty.LoseAnswer{})
		rule.Times = 1
		wantCopiedOnce(t, l, l.Proxy.Add(rule), name)
		if n := taken(l, "CopyObject", name); n > 0 {
			t.Errorf("it was copied once more\n%s", asked(l))
		}
	}
	for _, q := range l.Proxy.Log() { // versitygw does not look at it in a copy
		if q.Op == "CopyObject" && q.Header.Get("If-None-Match")+q.Header.Get("If-Match") == "" {
			t.Errorf("a copy to %s without a condition", q.Key)
		}
	}
	wantClean(t, l, csvDir, "from", "new", "over")
	wantNoUpload(t, l, "from", "new", "over")
}

// TestCase25CopyMeetsAnotherOnS3: another's file that came in before the close stays,
// and the loser's is kept.
func TestCase25CopyMeetsAnotherOnS3(t *testing.T) {
	t.Parallel()
	l := copiesTwo(t)
	mustPython(t, l, script(l, csvDir, `
src = os.open("from", os.O_RDONLY)
for name, flags, told in ("new", os.O_CREAT | os.O_EXCL, "EEXIST"), ("over", os.O_TRUNC, "ESTALE"):
    fd = os.open(name, os.O_WRONLY | flags, 0o644)
    n = os.fstat(src).st_size
    eq(os.copy_file_range(src, fd, n, 0), n)
    put_stored(name, b"theirs\n")
    eq(err(os.close, fd), told)
    eq(published(name), b"theirs\n")
`))
	all := stagedStatus(t, l)
	if len(all) != 2 {
		t.Errorf("kept are %+v, want both copies", all)
	}
	for _, w := range all {
		wantContent(t, l, w.shown(), copied)
	}
	wantNoUpload(t, l, "from", "new", "over")
}
