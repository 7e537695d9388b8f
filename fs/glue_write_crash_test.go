package fs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// The daemon is killed while it writes into partitions of a catalog, which changes
// before the next mount.

// killedAtPut mounts db.t, runs a script there and kills the daemon while the PUT of
// a key that ends so hangs: it has not taken effect.
func killedAtPut(t *testing.T, script, ends string) *mounttest.Lake {
	t.Helper()
	l := mountGlue(t, mounttest.Options{Faulty: true, Flags: []string{"--io-timeout=30s"}}, inCatalog())
	l.MustSh(`mkdir db/t/dt=7`)
	held := l.Proxy.Add(faulty.Rule{Op: "PutObject", If: func(q *faulty.Request) bool { return strings.HasSuffix(q.Key, ends) }, Fault: faulty.Hang{}})
	done := make(chan mounttest.Result, 1)
	go func() { done <- l.Sh(script) }()
	held.Wait(t, 1)
	l.Kill()
	<-done
	l.Proxy.Clear()
	return l
}

// recovered waits until nothing of the last life is left to do.
func recovered(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	l.Eventually("nothing staged", 30*time.Second, func() bool { return len(stagedStatus(t, l)) == 0 && len(spools(t, l)) == 0 })
}

// TestRecoverIntoOtherBuckets: a publish that was under way is finished where it was
// to go, and its partition is registered.
func TestRecoverIntoOtherBuckets(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		script, ends string
		bucket       int
		key, want    string
	}{
		"registered elsewhere": {`echo new > db/t/dt=2/new`, "where/new", 1, "else/where/new", "new\n"},
		"append elsewhere":     {`echo new >> db/t/dt=2/b`, "where/b", 1, "else/where/b", "2,two\nnew\n"},
		"a new partition":      {`echo new > db/t/dt=7/new`, "dt=7/new", 0, "", "new\n"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := killedAtPut(t, tt.script, tt.ends)
			l.Start()
			recovered(t, l)
			if tt.key == "" {
				tt.key = l.Key("db/t/dt=7/new")
				wantRegistered(t, l, "t", "1", "2", "3", "7")
			} else {
				wantRegistered(t, l, "t", "1", "2", "3")
			}
			if got := inBucket(t, l, tt.bucket, tt.key); got != tt.want {
				t.Errorf("the object is %q, want %q", got, tt.want)
			}
		})
	}
}

// TestRecoverAfterThePartitionMoved: what was to be published is published where it
// was to go; the log tells that the partition is elsewhere by now, and nothing of what
// lies there changes.
func TestRecoverAfterThePartitionMoved(t *testing.T) {
	t.Parallel()
	l := killedAtPut(t, `echo new > db/t/dt=2/new`, "where/new")
	movePartition(l, "2", "s3://{0}/moved")
	putInBucket(t, l, 0, "moved/b", "theirs\n")
	l.Start()
	recovered(t, l)
	if got := inBucket(t, l, 1, "else/where/new"); got != "new\n" {
		t.Errorf("the object is %q", got)
	}
	l.WaitLog(elsewhereWarning)
	wantNames(t, l, "db/t/dt=2", "b")
	wantContent(t, l, "db/t/dt=2/b", "theirs\n")
}

// TestRecoverWhileTheCatalogHangs: the mount serves all the same, and tells; the next one
// registers, whatever was written meanwhile.
func TestRecoverWhileTheCatalogHangs(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--io-timeout=5s"}}, inCatalog(), goodTable())
	l.MustSh(`mkdir db/t/dt=7`)
	hung := l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: gluetest.Hang()})
	done := make(chan mounttest.Result, 1)
	go func() { done <- l.Sh(`echo 7 > db/t/dt=7/f`) }()
	hung.Wait(t, 1)
	l.Kill()
	<-done
	l.Start() // the registration hangs still
	wantContent(t, l, "db/good/k=1/f", "good\n")
	wantContent(t, l, "db/t/dt=7/f", "7\n")
	l.MustSh(`echo 2 > db/good/k=1/g`)
	l.WaitLog("a partition is not registered yet")
	if ids := spools(t, l); len(ids) != 1 {
		t.Errorf("staged: %q, want what the next mount is to do", ids)
	}
	l.Catalog.Server.Clear()
	wantRegistered(t, l, "t", "1", "2", "3")
	l.Remount()
	recovered(t, l)
	wantRegistered(t, l, "t", "1", "2", "3", "7")
	wantStore(t, l, "db/t/dt=7/f", "7\n")
}

// TestRecoverWithoutACatalog: a mount whose catalog answers nothing at its start loses
// nothing.
func TestRecoverWithoutACatalog(t *testing.T) {
	t.Parallel()
	l := killedAtPut(t, `echo new > db/t/dt=7/new`, "dt=7/new")
	l.Catalog.Server.Fault(gluetest.Rule{Fault: gluetest.LoseRequest()})
	l.Start("--io-timeout=3s")
	l.WaitLog("a partition is not registered")
	l.Catalog.Server.Clear()
	l.Eventually("nothing staged", 30*time.Second, func() bool { return len(spools(t, l)) == 0 })
	if got := inBucket(t, l, 0, l.Key("db/t/dt=7/new")); got != "new\n" {
		t.Errorf("the object is %q", got)
	}
	l.Eventually("the catalog is asked again", 30*time.Second, func() bool { return statErr(l, "db/t/dt=7/new") == nil })
	l.MustSh(`echo 8 > db/t/dt=7/g`)
	wantRegistered(t, l, "t", "1", "2", "3", "7")
}
