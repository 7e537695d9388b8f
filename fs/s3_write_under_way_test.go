package fs_test

import (
	"os"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// underWay writes a file whose PUT the proxy holds, without its effect or with
// it, and returns once it is held. closed has what the close answers.
func underWay(t *testing.T, l *mounttest.Lake, name string, done bool) (closed <-chan error) {
	t.Helper()
	rule := onFile(l, "PutObject", name, faulty.Hang{Answer: done})
	rule.Times = 1
	held := l.Proxy.Add(rule)
	c := make(chan error, 1)
	go func() {
		c <- l.Do("write "+name, func() error {
			return os.WriteFile(l.Path(csvDir+"/"+name), []byte("mine\n"), 0o644)
		})
	}()
	held.Wait(t, 1)
	return c
}

// A file that is being published can be renamed: the publish is waited for.
func TestS3RenameOfAFileThatIsBeingPublished(t *testing.T) {
	t.Parallel()
	for name, done := range map[string]bool{"before": false, "after": true} {
		t.Run("the store has it: "+name, func(t *testing.T) {
			t.Parallel()
			l := faultyTwo(t, nil)
			warm(t, l)
			closed := underWay(t, l, "f", done)
			renamed := make(chan error, 1)
			go func() {
				renamed <- l.Do("rename", func() error { return os.Rename(l.Path(csvDir+"/f"), l.Path(csvDir+"/g")) })
			}()
			l.Proxy.Release()
			if err := <-closed; err != nil {
				t.Errorf("close: %v", err)
			}
			if err := <-renamed; err != nil {
				t.Errorf("rename: %v", err)
			}
			wantNames(t, l, csvDir, "g")
			wantStore(t, l, csvDir+"/g", "mine\n")
			wantBucket(t, l, "g")
		})
	}
}

// One that is removed is gone, whatever comes of its publish.
func TestS3UnlinkOfAFileThatIsBeingPublished(t *testing.T) {
	t.Parallel()
	for name, done := range map[string]bool{"before": false, "after": true} {
		t.Run("the store has it: "+name, func(t *testing.T) {
			t.Parallel()
			l := faultyTwo(t, nil)
			warm(t, l)
			closed := underWay(t, l, "f", done)
			removed := make(chan error, 1)
			go func() {
				removed <- l.Do("unlink", func() error { return os.Remove(l.Path(csvDir + "/f")) })
			}()
			l.Proxy.Release()
			if err := <-removed; err != nil {
				t.Errorf("unlink: %v", err)
			}
			if err := <-closed; err != nil {
				t.Errorf("close of what was removed: %v", err)
			}
			wantNames(t, l, csvDir)
			wantBucket(t, l)
			wantClean(t, l, csvDir)
		})
	}
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
