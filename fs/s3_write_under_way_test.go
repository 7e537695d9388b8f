package fs_test

import (
	"os"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// whilePublished writes the file f, and does what while the proxy holds its PUT:
// before the store has it, and after. What is known to be under way when the store
// was asked looks times for the head of name or its marker, which comes second:
// that nothing was there is known by then.
func whilePublished(t *testing.T, name string, looks int, what func(l *mounttest.Lake) error, then func(t *testing.T, l *mounttest.Lake)) {
	t.Helper()
	for stage, done := range map[string]bool{"before": false, "after": true} {
		t.Run("the store has it: "+stage, func(t *testing.T) {
			t.Parallel()
			l := faultyTwo(t, nil, "--negative-ttl=0") // each look is a request
			warm(t, l)
			rule := onFile(l, "PutObject", "f", faulty.Hang{Answer: done})
			rule.Times = 1
			held, begun := l.Proxy.Add(rule), l.Proxy.Add(onFile(l, "HeadObject", name, faulty.Delay{}))
			closed, did := make(chan error, 1), make(chan error, 1)
			go func() {
				closed <- l.Do("write f", func() error {
					return os.WriteFile(l.Path(csvDir+"/f"), []byte("mine\n"), 0o644)
				})
			}()
			held.Wait(t, 1)
			before := begun.Hits()
			go func() { did <- l.Do("change f", func() error { return what(l) }) }()
			begun.Wait(t, before+looks)
			l.Proxy.Release()
			if err := <-closed; err != nil {
				t.Errorf("close: %v", err)
			}
			if err := <-did; err != nil {
				t.Error(err)
			}
			then(t, l)
		})
	}
}

// A file that is being published can be renamed: the publish is waited for.
func TestS3RenameOfAFileThatIsBeingPublished(t *testing.T) {
	t.Parallel()
	whilePublished(t, "g", 4, func(l *mounttest.Lake) error { // looked up by the kernel, and by the rename
		return os.Rename(l.Path(csvDir+"/f"), l.Path(csvDir+"/g"))
	}, func(t *testing.T, l *mounttest.Lake) {
		t.Helper()
		wantNames(t, l, csvDir, "g")
		wantStore(t, l, csvDir+"/g", "mine\n")
		wantBucket(t, l, "g")
		wantClean(t, l, csvDir, "g")
	})
}

// One that is removed is gone, whatever comes of its publish.
func TestS3UnlinkOfAFileThatIsBeingPublished(t *testing.T) {
	t.Parallel()
	whilePublished(t, "f", 2, func(l *mounttest.Lake) error {
		return os.Remove(l.Path(csvDir + "/f"))
	}, func(t *testing.T, l *mounttest.Lake) {
		t.Helper()
		wantNames(t, l, csvDir)
		wantBucket(t, l)
		wantClean(t, l, csvDir)
	})
}

// Below --write=delete a removal and a rename-over are of the version that was
// judged: another's that came in its place is judged anew.
func TestS3RemovalIsOfTheVersionThatWasJudged(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, nil, "--write=create", "--metadata-ttl=1h")
	warm2 := csvDir + "/warm"
	write(t, l, warm2, "small")
	for _, name := range []string{"removed", "over", "from"} {
		write(t, l, csvDir+"/"+name, "mine\n")
	}
	wantNames(t, l, csvDir, "from", "over", "removed", "warm")
	l.PutStored(csvDir+"/removed", "theirs, and longer\n")
	l.PutStored(csvDir+"/over", "theirs, and longer\n")
	if err := unlink(l, csvDir+"/removed"); err == nil {
		t.Error("another's file was removed at --write=create")
	}
	if err := l.Do("rename", func() error { return os.Rename(l.Path(csvDir+"/from"), l.Path(csvDir+"/over")) }); err == nil {
		t.Error("another's file was replaced at --write=create")
	}
	wantStore(t, l, csvDir+"/removed", "theirs, and longer\n")
	wantStore(t, l, csvDir+"/over", "theirs, and longer\n")
	wantStore(t, l, csvDir+"/from", "mine\n")
	if err := unlink(l, warm2); err != nil {
		t.Errorf("removal of what this mount made: %v", err)
	}
}
