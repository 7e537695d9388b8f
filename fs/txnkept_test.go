package fs_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestTransactionIsNoLimitsToDrop: --staged-max and --staged-keep take no file out of an
// open transaction, nor count what is in one.
func TestTransactionIsNoLimitsToDrop(t *testing.T) {
	t.Parallel()
	for what, flags := range map[string][]string{"max": {"--staged-max=1MiB"}, "keep": {"--staged-keep=1ms"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
			l.MustSh(threeFiles + `; head -c 2M /dev/zero >k=1/big; head -c 2M /dev/zero >k=2/big
				mkdir ../../../_temporary; echo other >../../../_temporary/x`)
			l.Kill()
			l.Start(flags...)
			wantNames(t, l, txn+"/k=1", "a", "big")
			if what == "max" {
				l.WaitLog("open transactions alone hold more than --staged-max")
				wantContent(t, l, "db/t/_temporary/x", "other\n")
			}
			l.Remount(flags...)
			l.MustSh(`rm -rf db/t/_temporary; cd ` + txn + `; mv k=1/big k=3; mkdir k=4; mv k=3 k=4/f; echo commit >ctl`)
			wantStored(t, l, "k=1/a", "k=1/old", "k=2/b", "k=2/big", "k=2/c", "k=4/f")
		})
	}
}

// TestTransactionTakesLocalFilesAlong: what is not published goes to its place, and lives
// in the mount alone there.
func TestTransactionTakesLocalFilesAlong(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	l.MustSh(threeFiles + `; mkdir k=7; echo lock >poetry.lock; echo swap >k=2/.b.swp; echo sum >k=1/.a.crc; echo alone >k=7/x.lock
		echo commit >ctl --job local`)
	published := func() {
		t.Helper()
		wantStored(t, l, "k=1/a", "k=1/old", "k=2/b", "k=2/c")
		wantContent(t, l, "db/t/poetry.lock", "lock\n")
		wantContent(t, l, "db/t/k=2/.b.swp", "swap\n")
		wantContent(t, l, "db/t/k=7/x.lock", "alone\n")
		wantNames(t, l, "db/t/.lakefs/txn")
	}
	published()
	wantContent(t, l, "db/t/k=1/.a.crc", "sum\n")
	if jobs, err := l.ReadFile(".lakefs/jobs.json"); err != nil || !strings.Contains(strings.ReplaceAll(jobs, " ", ""), `"local":4`) {
		t.Errorf("jobs.json: %v, %s", err, jobs)
	}
	l.Remount()
	published()
	l.MustSh(`mkdir ` + txn + `; cd ` + txn + `; mkdir k=5; echo n >k=5/n; echo new >poetry.lock`)
	wantErrno(t, "commit over a local file", l.WriteFile(txn+"/ctl", "commit\n"), syscall.EEXIST)
	wantContent(t, l, txn+"/poetry.lock", "new\n")
	l.MustSh(`echo overwrite >` + txn + `/ctl`)
	wantStored(t, l, "k=1/a", "k=1/old", "k=2/b", "k=2/c", "k=5/n")
	wantContent(t, l, "db/t/poetry.lock", "new\n")
}

// TestTransactionOfLocalFilesMeetsAnothersObject of the name, which stays.
func TestTransactionOfLocalFilesMeetsAnothersObject(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n", "k=1/x.lock": "theirs\n"})
	l.MustSh(threeFiles + `; echo mine >k=1/x.lock`)
	wantErrno(t, "commit", l.WriteFile(txn+"/ctl", "commit\n"), syscall.EEXIST)
	wantStored(t, l, "k=1/old", "k=1/x.lock")
	wantContent(t, l, txn+"/k=1/x.lock", "mine\n")
	wantContent(t, l, "db/t/k=1/x.lock", "theirs\n")
}

// TestTransactionIsRemovedWhileItIsCommitted: rm -r, and all else that has a file of it
// in hand, takes nothing of what is published, and brings nothing back.
func TestTransactionIsRemovedWhileItIsCommitted(t *testing.T) {
	t.Parallel()
	for what, command := range map[string]string{
		"rm -r":    `rm -r "$0"`,
		"unlink":   `rm "$0/k=1/a"`,
		"move":     `mv -T "$0/k=1/a" "$0/../../../k=1/z"`,
		"move all": `mv -T "$0/k=1" "$0/../../../k=9"`,
		"truncate": `truncate -s 0 -c "$0/k=1/a"`,
		"chmod":    `chmod 600 "$0/k=1/a"`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mountFaulty(t)
			l.MustSh(threeFiles)
			gate := make(chan struct{})
			held := l.Proxy.Add(faulty.Rule{Op: "PutObject", Fault: faulty.Func(func(_ *faulty.Exchange, next faulty.Next) (*http.Response, error) {
				<-gate
				return next()
			})})
			p := committing(l)
			held.Wait(t, 3)
			removed := make(chan mounttest.Result, 1)
			go func() { removed <- l.Exec("sh", "-c", "cd /; "+command, l.Path(txn)) }()
			var r mounttest.Result
			select {
			case r = <-removed:
				close(gate)
			case <-time.After(2 * time.Second): // it waits for the commit
				close(gate)
				r = <-removed
			}
			if r.Code == 0 || !strings.Contains(r.Err, "busy") {
				t.Errorf("it ended with %d: %s", r.Code, r.Err)
			}
			if r := <-p; r.Code != 0 {
				t.Errorf("the commit ended with %d: %s", r.Code, r.Err)
			}
			wantStored(t, l, "k=1/a", "k=1/old", "k=2/b", "k=2/c")
			wantContent(t, l, "db/t/k=1/a", "a\n")
			wantNames(t, l, "db/t/.lakefs/txn")
			wantErrno(t, "mkdir of another one", mkdir(l, txn), 0)
			wantNames(t, l, txn)
		})
	}
}

// TestTransactionSaysWhatIsInItsWay in words that hold for its files.
func TestTransactionSaysWhatIsInItsWay(t *testing.T) {
	t.Parallel()
	tab := byKeys([]string{"k:int"}, nil)
	tab.Format = "parquet"
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{tab}})
	l.MustSh(`mkdir ` + txn + `; cd ` + txn + `; mkdir k=1 _temporary; echo nonsense >k=1/f.parquet; echo z >_temporary/z`)
	wantErrno(t, "commit with a staging tree", l.WriteFile(txn+"/ctl", "commit\n"), syscall.EBUSY)
	l.WaitLog("it lies in a staging tree")
	if strings.Contains(l.Log(), "its writer lives") {
		t.Errorf("the log tells of a writer: %s", l.Log())
	}
	l.MustSh(`rm -r ` + txn + `/_temporary`)
	wantErrno(t, "commit of what is no Parquet", l.WriteFile(txn+"/ctl", "commit\n"), syscall.EBADMSG)
	l.WaitLog("recover --all --save DIR copies it out")
	l.MustSh(`: >` + txn + `/k=1/f.parquet`)
	l.Remount("--check-format=warn")
	l.MustSh(`echo commit >` + txn + `/ctl`)
	l.WaitLog("published although the format check fails")
}

// TestFileOfATransactionIsAborted by its id, while the mount runs and without one; the
// others stay.
func TestFileOfATransactionIsAborted(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	l.MustSh(threeFiles)
	abort := func(name string, args ...string) {
		t.Helper()
		for _, s := range mountStatusOf(t, l).Local {
			if s.Path != txn+"/"+name {
				continue
			}
			if len(args) > 2 {
				l.Unmount()
				defer l.Start()
			}
			if r := l.Run(append([]string{"recover", "--abort", s.ID}, args...)...); r.Code != 0 {
				t.Errorf("recover --abort of %s: exit code %d, %s%s", name, r.Code, r.Out, r.Err)
			}
			return
		}
		t.Errorf("status does not tell of %s", name)
	}
	abort("k=1/a", l.Root)
	wantNames(t, l, txn+"/k=1")
	abort("k=2/b", "--state-dir="+l.State, l.Source, l.Root)
	wantNames(t, l, txn+"/k=2", "c")
	l.MustSh(`echo commit >` + txn + `/ctl`)
	wantStored(t, l, "k=1/old", "k=2/c")
}
