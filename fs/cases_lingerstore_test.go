package fs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Temporary names whose wait ends while the store does not answer: they stay what they
// are, and wait anew.

// drainFails has the mount publish what lingers, which it can not.
func drainFails(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	if r := l.Sh(`echo drain > .lakefs/ctl`); r.Code == 0 {
		t.Error("a drain succeeds that publishes nothing")
	}
}

// wantWaiting asserts that a.tmp is staged, and found by its name.
func wantWaiting(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	if got := stagedStatus(t, l); len(got) != 1 || got[0].State != "staged" || got[0].Open {
		t.Errorf("staged are %+v, want a.tmp alone, to be published", got)
	}
	wantContent(t, l, csvDir+"/a.tmp", "mine\n")
}

func TestLingeringNamesAreTriedAgainWhenTheStoreAnswersNot(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, map[string]string{"old": "old\n"}, lingersBriefly, "--io-timeout=1s")
	warm(t, l)
	l.MustSh(`ls ` + csvDir)
	l.Proxy.Down()
	write(t, l, csvDir+"/a.tmp", "mine\n")
	l.Eventually("it was tried three times", 50*time.Second, func() bool {
		return l.Sh(`grep -q 'publish_seconds_count.*error.* [3-9]$' .lakefs/stats`).Code == 0
	})
	wantContent(t, l, csvDir+"/a.tmp", "mine\n")
	l.MustSh(`cd ` + csvDir + `; echo more >> a.tmp; cat a.tmp`)
	if n := strings.Count(l.Log(), "request failed"); n != 1 {
		t.Errorf("the log tells %d times of it:\n%s", n, l.Log())
	}
	l.Proxy.Up()
	l.Eventually("a.tmp is published", 50*time.Second, func() bool { _, there := inStore(t, l, csvDir+"/a.tmp"); return there })
	wantStore(t, l, csvDir+"/a.tmp", "mine\nmore\n")
	wantSettled(t, l)
	wantClean(t, l, csvDir, "a.tmp", "old")
}

// What nobody knows about is not left behind by the rename, be it there or not.
func TestLingeringNamesAreRenamedAfterTheStoreAnsweredNot(t *testing.T) {
	t.Parallel()
	for what, from := range map[string]func(*mounttest.Lake) faulty.Func{"took effect": blindFrom, "did not": refuseFrom} {
		for _, to := range []string{"a", "old", "b.tmp"} {
			t.Run(what+" "+to, func(t *testing.T) {
				t.Parallel()
				l := faultyTwo(t, map[string]string{"old": "old\n"}, neverLingers, "--io-timeout=1s")
				warm(t, l)
				l.Proxy.Add(onFile(l, "PutObject", "a.tmp", from(l)))
				write(t, l, csvDir+"/a.tmp", "mine\n")
				drainFails(t, l)
				wantWaiting(t, l)
				l.Proxy.Clear()
				l.MustSh(`cd ` + csvDir + `; mv a.tmp ` + to + `; test ! -e a.tmp; cat ` + to)
				want := []string{"old"}
				if to == "a" {
					want = append(want, to)
				}
				if to == "b.tmp" {
					wantUnpublished(t, l, csvDir+"/b.tmp", "mine\n")
					l.MustSh(`rm ` + csvDir + `/b.tmp`)
				} else {
					wantStore(t, l, csvDir+"/"+to, "mine\n")
				}
				wantClean(t, l, csvDir, want...)
			})
		}
	}
}

// The unmount tries once more, names what it kept, and the command and the mount fail.
func TestUnmountNamesLingeringNamesThatTheStoreDidNotTake(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, map[string]string{"old": "old\n"}, neverLingers, "--io-timeout=1s")
	warm(t, l)
	write(t, l, csvDir+"/a.tmp", "mine\n")
	l.Proxy.Down()
	drainFails(t, l)
	wantWaiting(t, l)
	if r := l.Run("unmount", l.Root); r.Code != 1 || !strings.Contains(r.Err, "a.tmp") {
		t.Errorf("unmount: exit code %d, %s", r.Code, r.Err)
	}
	if code := l.Wait(); code != 1 || !strings.Contains(l.Log(), `not published: "`+csvDir+`/a.tmp"`) {
		t.Errorf("the mount ended with %d:\n%s", code, l.Log())
	}
	l.Proxy.Up()
	l.Start()
	wantContent(t, l, wantStaged(t, l, csvDir, "a.tmp"), "mine\n")
	if r := l.Run("recover", "--publish=all", l.Root); r.Code != 0 {
		t.Errorf("recover: exit code %d, %s%s", r.Code, r.Out, r.Err)
	}
	wantStore(t, l, csvDir+"/a.tmp", "mine\n")
}
