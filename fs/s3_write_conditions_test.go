package fs_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Others who write in between: what they wrote is never replaced unseen.

// meanwhile lets another program act once, just before the store gets the first
// request of an operation on a name in csvDir.
func meanwhile(l *mounttest.Lake, op, name string, act func()) *faulty.Active {
	var once sync.Once
	return l.Proxy.Add(onFile(l, op, name, faulty.Func(func(_ *faulty.Exchange, next faulty.Next) (*http.Response, error) {
		once.Do(act)
		return next()
	})))
}

// TestS3ForeignWriteBeforeThePublish: a writer that rewrites is refused, one that
// appends goes behind.
func TestS3ForeignWriteBeforeThePublish(t *testing.T) {
	t.Parallel()
	const old, theirs = "the old content\n", "another's, which is longer than the old\n"
	for what, c := range map[string]struct {
		flags  int
		theirs string // "": removed
		want   syscall.Errno
		after  string // "": nothing
		kept   string // "": nothing
	}{
		"rewritten":           {trunc, theirs, syscall.ESTALE, theirs, "mine\n"},
		"changed in place":    {syscall.O_WRONLY, theirs, syscall.ESTALE, theirs, "mine\nld content\n"},
		"appended":            {syscall.O_WRONLY | syscall.O_APPEND, theirs, 0, theirs + "mine\n", ""},
		"rewritten, removed":  {trunc, "", syscall.ESTALE, "", "mine\n"},
		"appended, removed":   {syscall.O_WRONLY | syscall.O_APPEND, "", syscall.ESTALE, "", old + "mine\n"},
		"created, and theirs": {creat, theirs, syscall.EEXIST, theirs, "mine\n"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"f": old}
			if c.flags == creat {
				files = nil
			}
			l := faultyTwo(t, files)
			warm(t, l)
			const f = csvDir + "/f"
			err := writeErr(l, f, c.flags, "mine\n", func() {
				if c.theirs == "" {
					l.RemoveStored(f)
				} else {
					l.PutStored(f, c.theirs)
				}
			})
			wantErrno(t, "close", err, c.want)
			if c.after == "" {
				wantBucket(t, l)
				l.Eventually("the removal is seen", seenWithin, func() bool { return statErr(l, f) != nil })
			} else {
				wantStore(t, l, f, c.after)
				l.Eventually("the other's version is seen", seenWithin, func() bool { got, err := l.ReadFile(f); return err == nil && got == c.after })
				wantBucket(t, l, "f")
			}
			if c.kept == "" {
				wantClean(t, l, csvDir, "f")
				return
			}
			wantKeptBytes(t, l, csvDir, "f", c.kept)
			l.Remount()
			wantKeptBytes(t, l, csvDir, "f", c.kept)
		})
	}
}

// TestS3RenameMeetsAnother: who replaces or makes the source or the target, each
// time anew, loses nothing, and neither does who renames.
func TestS3RenameMeetsAnother(t *testing.T) {
	t.Parallel()
	const theirs = "theirs" // the last of the other's versions
	for what, c := range map[string]struct {
		op, at  string // before which request
		put, to string // which name another writes, and what target is meant
		flags   uint
		want    syscall.Errno
		after   tree
	}{
		"the source, before it is copied": {
			"CopyObject", "new", "from", "new", 0, syscall.ESTALE, tree{"from": theirs, "over": "over\n"},
		},
		"the source, before it is copied over a file": {
			"CopyObject", "over", "from", "over", 0, syscall.ESTALE, tree{"from": theirs, "over": "over\n"},
		},
		"the source, before it is removed": {
			"DeleteObject", "from", "from", "new", 0, 0, tree{"from": theirs, "new": "from\n", "over": "over\n"},
		},
		"the target, which was not there": {
			"HeadObject", "from", "new", "new", 0, syscall.EEXIST, tree{"from": "from\n", "new": theirs, "over": "over\n"},
		},
		"the target, which was not there and must not be": {
			"HeadObject", "from", "new", "new", 1, syscall.EEXIST, tree{"from": "from\n", "new": theirs, "over": "over\n"},
		},
		"the target, which was there": {
			"HeadObject", "from", "over", "over", 0, syscall.ESTALE, tree{"from": "from\n", "over": theirs},
		},
		"nobody, but the target must not be there": {
			"CopyObject", "none", "", "over", 1, syscall.EEXIST, tree{"from": "from\n", "over": "over\n"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := faultyTwo(t, map[string]string{"from": "from\n", "over": "over\n"}, shortTTL...)
			warm(t, l)
			l.MustSh(`ls -l ` + csvDir)
			n := 0
			l.Proxy.Add(onFile(l, c.op, c.at, faulty.Func(func(_ *faulty.Exchange, next faulty.Next) (*http.Response, error) {
				n++ // a rename makes one request at a time
				l.PutStored(csvDir+"/"+c.put, fmt.Sprintln("theirs", n))
				return next()
			})))
			wantErrno(t, "rename", rename2(l, csvDir+"/from", csvDir+"/"+c.to, c.flags), c.want)
			l.Proxy.Clear()
			if c.put != "" && n == 0 {
				t.Fatalf("no %s of %s: this test shows nothing\n%s", c.op, c.at, asked(l))
			}
			var names []string
			for name, content := range c.after {
				if content == theirs {
					content = fmt.Sprintln("theirs", n)
				}
				names = append(names, name)
				l.Eventually(name+" is seen", seenWithin, func() bool { got, err := l.ReadFile(csvDir + "/" + name); return err == nil && got == content })
				wantStore(t, l, csvDir+"/"+name, content)
			}
			wantBucket(t, l, names...)
			wantClean(t, l, csvDir, names...)
		})
	}
}

// TestS3RenameIsRepeatedByTheKernel: ESTALE makes it ask once more. The rename is
// one of what is there by then, as if it had come a moment later.
func TestS3RenameIsRepeatedByTheKernel(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, map[string]string{"from": "from\n"}, shortTTL...)
	warm(t, l)
	l.MustSh(`ls -l ` + csvDir)
	met := meanwhile(l, "CopyObject", "to", func() { l.PutStored(csvDir+"/from", "theirs\n") })
	wantErrno(t, "rename", rename(l, csvDir+"/from", csvDir+"/to"), 0)
	if met.Hits() != 2 {
		t.Errorf("%d copies, want two\n%s", met.Hits(), asked(l))
	}
	wantStore(t, l, csvDir+"/to", "theirs\n")
	wantBucket(t, l, "to")
}

// TestS3StoreThatIgnoresConditions: it is found out at the first publish and told
// once, and from then on each write is preceded by a look.
func TestS3StoreThatIgnoresConditions(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, map[string]string{"old": "old\n", "log": "one\n"})
	l.Proxy.Add(faulty.Rule{Fault: faulty.StripConditions{}})
	write(t, l, csvDir+"/first", "first\n")
	warned := func() int { return strings.Count(l.Log(), "ignores conditions") }
	l.Eventually("it is told", seenWithin, func() bool { return warned() > 0 })
	if json := l.MustSh(`cat .lakefs/status.json`); !strings.Contains(json, `"if_match": "ignored"`) || !strings.Contains(json, `"if_none_match": "ignored"`) {
		t.Errorf("status.json does not tell it: %s", json)
	}
	if r := l.Run("status"); !strings.Contains(r.Out, "ignores conditions") {
		t.Errorf("status does not tell it: %s", r.Out)
	}
	l.MustSh(`ls -l ` + csvDir)
	l.Proxy.Reset()
	for i := range 3 {
		write(t, l, fmt.Sprint(csvDir, "/new", i), "new\n")
		write(t, l, csvDir+"/old", fmt.Sprintln("version", i))
	}
	if got := l.Proxy.Counts(); got["PutObject"] != 6 || got["HeadObject"] != 3+2*3 {
		t.Errorf("3 new files and 3 overwrites: %v, want 6 PUTs and 9 HEADs\n%s", got, asked(l))
	}
	put := func(name, content string) func() { return func() { l.PutStored(csvDir+"/"+name, content) } }
	wantErrno(t, "create of another's name", writeErr(l, csvDir+"/taken", creat, "mine\n", put("taken", "theirs\n")), syscall.EEXIST)
	wantErrno(t, "overwrite of another's version", writeErr(l, csvDir+"/old", trunc, "mine\n", put("old", "theirs, of old\n")), syscall.ESTALE)
	wantErrno(t, "append to another's version", writeErr(l, csvDir+"/log", syscall.O_WRONLY|syscall.O_APPEND, "three\n", put("log", "one\ntwo\n")), 0)
	for name, content := range map[string]string{"taken": "theirs\n", "old": "theirs, of old\n", "log": "one\ntwo\nthree\n"} {
		wantStore(t, l, csvDir+"/"+name, content)
	}
	wantErrno(t, "rename with NOREPLACE", noReplace(l, csvDir+"/log", csvDir+"/old"), syscall.EEXIST)
	wantErrno(t, "rename", rename(l, csvDir+"/new0", csvDir+"/old"), 0)
	wantStore(t, l, csvDir+"/old", "new\n")
	if n := warned(); n != 1 {
		t.Errorf("it is told %d times, want once", n)
	}
	wantBucket(t, l, "first", "log", "new1", "new2", "old", "taken")
}
