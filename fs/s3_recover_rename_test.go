package fs_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// halfRenamed is a mount whose rename of csvDir/from to csvDir/to failed for its
// caller after op took effect, and its note.
func halfRenamed(t *testing.T, op string) (*mounttest.Lake, stagedWrite) {
	t.Helper()
	l := faultyTwo(t, map[string]string{"from": "from\n"}, "--io-timeout=1s")
	l.MustSh(`ls -l ` + csvDir)
	l.Proxy.Add(onFile(l, op, "", blindFrom(l)))
	wantErrno(t, "rename", rename(l, csvDir+"/from", csvDir+"/to"), syscall.EIO)
	l.Proxy.Clear()
	all := stagedStatus(t, l)
	if len(all) != 1 {
		t.Fatalf("status shows %+v, want the rename", all)
	}
	return l, all[0]
}

// TestS3RecoverOfAHalfDoneRename: it is listed with both names, and finished or
// forgotten as asked, by a running mount and after one.
func TestS3RecoverOfAHalfDoneRename(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		op, flag string
		running  bool
		left     []string
	}{
		"finished, running":          {"DeleteObject", "--publish", true, []string{"to"}},
		"finished, after it":         {"CopyObject", "--publish", false, []string{"to"}},
		"finished, copied, running":  {"CopyObject", "--publish", true, []string{"to"}},
		"forgotten, running":         {"CopyObject", "--abort", true, []string{"from", "to"}},
		"forgotten, after it":        {"CopyObject", "--abort", false, []string{"from", "to"}},
		"forgotten, removed already": {"DeleteObject", "--abort", true, []string{"to"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l, note := halfRenamed(t, c.op)
			r := recovererOf(t, l, c.running)
			want := stagedWrite{
				ID: note.ID, Path: csvDir + "/to", State: "renaming", Size: 5,
				Source: l.URI(csvDir + "/from"), Target: l.URI(csvDir + "/to"),
			}
			if got := r.list()["to"]; got != want || note != want {
				t.Errorf("listed is %+v, in status.json %+v, want %+v", got, note, want)
			}
			text := r.run(0).Out
			for _, part := range []string{note.ID, "renaming", `"` + want.Source + `" → "` + want.Target + `"`} {
				if !strings.Contains(text, part) {
					t.Errorf("recover prints\n%swhich lacks %q", text, part)
				}
			}
			if res := r.run(0, "--save", t.TempDir()); res.Out != "" {
				t.Errorf("of a rename there are no bytes to save: %q", res.Out)
			}
			if res := r.run(0, c.flag, note.ID); !strings.Contains(res.Out, note.ID) || !strings.Contains(res.Out, want.Source) {
				t.Errorf("recover %s prints %q", c.flag, res.Out)
			}
			if ids := spools(t, l); len(ids) > 0 {
				t.Errorf("the staging directory has %q", ids)
			}
			if !c.running {
				l.Start()
			}
			for _, name := range c.left {
				wantStore(t, l, csvDir+"/"+name, "from\n")
				wantContent(t, l, csvDir+"/"+name, "from\n")
			}
			wantClean(t, l, csvDir, c.left...)
			wantBucket(t, l, c.left...)
		})
	}
}
