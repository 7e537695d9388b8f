package fs_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What a transaction leaves where its commit fails, or is not allowed.

// threeFiles fills a transaction with three files in two partitions.
const threeFiles = `mkdir ` + txn + `; cd ` + txn + `; mkdir k=1 k=2; echo a >k=1/a; echo b >k=2/b; echo c >k=2/c`

// wantOpen asserts that nothing was published, and all is in the transaction.
func wantOpen(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	wantStored(t, l, "k=1/old")
	for _, name := range []string{"k=1/a", "k=2/b", "k=2/c"} {
		wantContent(t, l, txn+"/"+name, name[4:]+"\n")
	}
	wantNames(t, l, "db/t", "k=1")
	wantNames(t, l, txn, "k=1", "k=2")
}

// wantCommits asserts that the commit succeeds by now.
func wantCommits(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	wantErrno(t, "commit", l.WriteFile(txn+"/ctl", "commit\n"), 0)
	wantStored(t, l, "k=1/a", "k=1/old", "k=2/b", "k=2/c")
	wantContent(t, l, "db/t/k=2/c", "c\n")
	l.Eventually("nothing staged", 0, func() bool { return len(spools(t, l)) == 0 })
}

// mountFaulty mounts db.t behind a proxy.
func mountFaulty(t *testing.T, flags ...string) *mounttest.Lake {
	t.Helper()
	return mounttest.Mount(t, mounttest.Options{
		Faulty: true, Tables: []mounttest.Table{byKeys([]string{"k:int"}, map[string]string{"k=1/old": "old\n"})}, Flags: flags,
	})
}

// TestTransactionWhoseStoreRefuses one file, or answers 503 for good: nothing is
// published, and it can be committed once the store takes it.
func TestTransactionWhoseStoreRefuses(t *testing.T) {
	t.Parallel()
	last := func(q *faulty.Request) bool { return strings.HasSuffix(q.Key, "k=2/c") }
	for what, tt := range map[string]struct {
		rule faulty.Rule
		want syscall.Errno
	}{
		"one is refused":    {faulty.Rule{Op: "PutObject", If: last, Fault: faulty.Status{Code: http.StatusForbidden, S3Code: "AccessDenied"}}, syscall.EACCES},
		"one is slowed":     {faulty.Rule{Op: "PutObject", If: last, Fault: faulty.Status{Code: http.StatusServiceUnavailable, S3Code: "SlowDown"}}, syscall.EIO},
		"the store is away": {faulty.Rule{Op: "PutObject", Fault: faulty.Status{Code: http.StatusServiceUnavailable, S3Code: "SlowDown"}}, syscall.EIO},
		"answers are lost":  {faulty.Rule{Op: "PutObject", If: last, Fault: faulty.LoseAnswer{}}, 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mountFaulty(t, "--io-timeout=2s")
			l.MustSh(threeFiles)
			l.Proxy.Add(tt.rule)
			wantErrno(t, "commit", l.WriteFile(txn+"/ctl", "commit\n"), tt.want)
			l.Proxy.Clear()
			if tt.want == 0 {
				wantStored(t, l, "k=1/a", "k=1/old", "k=2/b", "k=2/c")
				return
			}
			wantOpen(t, l)
			l.Remount()
			wantOpen(t, l)
			wantCommits(t, l)
		})
	}
}

// TestTransactionOfWhichThePartIsNotTakenBack, as the store is away by then: the mount
// takes it back as soon as it can, or the next one does.
func TestTransactionOfWhichThePartIsNotTakenBack(t *testing.T) {
	t.Parallel()
	for what, again := range map[string]func(*mounttest.Lake){
		"committed again": func(*mounttest.Lake) {},
		"remounted":       func(l *mounttest.Lake) { l.Remount() },
		"killed":          func(l *mounttest.Lake) { l.Kill(); l.Start() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mountFaulty(t, "--io-timeout=2s")
			l.MustSh(threeFiles)
			l.PutStored("db/t/k=2/c", "theirs\n")
			l.Proxy.Add(faulty.Rule{Op: "DeleteObject", Fault: faulty.Status{Code: http.StatusServiceUnavailable, S3Code: "SlowDown"}})
			if l.WriteFile(txn+"/ctl", "commit\n") == nil {
				t.Error("committed over another's file")
			}
			for _, name := range []string{"k=1/a", "k=2/b", "k=2/c"} {
				wantContent(t, l, txn+"/"+name, name[4:]+"\n")
			}
			l.Proxy.Clear()
			again(l)
			l.RemoveStored("db/t/k=2/c")
			l.Eventually("it can be committed", 0, func() bool { return l.WriteFile(txn+"/ctl", "commit\n") == nil })
			wantStored(t, l, "k=1/a", "k=1/old", "k=2/b", "k=2/c")
			if got := stored(t, l, "db/t/k=2/c"); got != "c\n" {
				t.Errorf("the object is %q", got)
			}
		})
	}
}

// TestRule29_HalfDoneOverwrite keeps what it published; what is left is committed, and not
// overwritten, by the next mount too.
func TestRule29_HalfDoneOverwrite(t *testing.T) {
	t.Parallel()
	l := mountFaulty(t, "--io-timeout=2s")
	l.MustSh(threeFiles)
	refused := func(q *faulty.Request) bool { return strings.HasSuffix(q.Key, "k=2/c") }
	l.Proxy.Add(faulty.Rule{Op: "PutObject", If: refused, Fault: faulty.Func(func(x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
		<-time.After(300 * time.Millisecond) // the others have begun
		return faulty.Status{Code: http.StatusForbidden, S3Code: "AccessDenied"}.Apply(x, next)
	})})
	overwrite := func(want syscall.Errno) {
		t.Helper()
		wantErrno(t, "overwrite", l.WriteFile(txn+"/ctl", "overwrite\n"), want)
		wantStored(t, l, "k=1/a", "k=2/b")
		wantNames(t, l, txn+"/k=2", "c")
		wantContent(t, l, txn+"/k=2/c", "c\n")
	}
	overwrite(syscall.EACCES)
	l.Proxy.Clear()
	overwrite(syscall.EINVAL)
	l.Remount()
	overwrite(syscall.EINVAL)
	l.PutStored("db/t/k=2/c", "theirs\n")
	wantErrno(t, "commit", l.WriteFile(txn+"/ctl", "commit\n"), syscall.EEXIST)
	l.RemoveStored("db/t/k=2/c")
	l.Kill()
	l.Start()
	overwrite(syscall.EINVAL)
	wantErrno(t, "commit", l.WriteFile(txn+"/ctl", "commit\n"), 0)
	wantStored(t, l, "k=1/a", "k=2/b", "k=2/c")
	l.MustSh(`mkdir ` + txn + `; cd ` + txn + `; mkdir k=2; echo d >k=2/d; echo overwrite >ctl`) // another one of the name
	wantStored(t, l, "k=1/a", "k=2/d")
}

// committing has another program commit, one that is not in the mount.
func committing(l *mounttest.Lake) <-chan mounttest.Result {
	done := make(chan mounttest.Result, 1)
	go func() { done <- l.Exec("sh", "-c", `cd /; echo commit > "$0"`, l.Path(txn+"/ctl")) }()
	return done
}

// TestTransactionAndSignals: one SIGTERM waits for the commit that is under way; a second
// one ends the mount at once, and the next one makes it whole.
func TestTransactionAndSignals(t *testing.T) {
	t.Parallel()
	for _, signals := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d signals", signals), func(t *testing.T) {
			t.Parallel()
			l := mountFaulty(t, "--io-timeout=30s")
			l.MustSh(threeFiles)
			gate := make(chan struct{})
			held := l.Proxy.Add(faulty.Rule{
				Op: "PutObject", If: func(q *faulty.Request) bool { return strings.HasSuffix(q.Key, "k=2/c") },
				Fault: faulty.Func(func(_ *faulty.Exchange, next faulty.Next) (*http.Response, error) {
					<-gate
					return next()
				}),
			})
			p := committing(l)
			held.Wait(t, 1)
			terminate(l, signals)
			if signals == 1 {
				close(gate)
			}
			code := l.Wait()
			if signals == 2 {
				close(gate)
			}
			r := <-p
			if done := signals == 1; done != (code == 0) || done != (r.Code == 0) {
				t.Errorf("%d signals: the daemon ended with %d, the program with %d: %s", signals, code, r.Code, r.Err)
			}
			l.Proxy.Clear()
			l.Start()
			wantStored(t, l, "k=1/a", "k=1/old", "k=2/b", "k=2/c")
			wantNames(t, l, "db/t/.lakefs/txn")
			if left := spools(t, l); len(left) > 0 {
				t.Errorf("staged: %q", left)
			}
		})
	}
}

// TestUnmountWithAnOpenTransaction keeps it, and says so.
func TestUnmountWithAnOpenTransaction(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	l.MustSh(threeFiles)
	r := l.Run("unmount", l.Root)
	if r.Code != 0 || !strings.Contains(r.Err, txn) {
		t.Errorf("exit code %d, %q; want 0, and the transaction", r.Code, r.Err)
	}
	l.Wait()
	l.Start()
	wantOpen(t, l)
	wantCommits(t, l)
}

// TestTransactionOfATableThatVanished is refused; its files stay, and can be saved.
func TestTransactionOfATableThatVanished(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"}, noWait...)
	l.MustSh(threeFiles)
	manifest := l.StoredManifest("db/t")
	l.PutManifest("db/t", "{")
	l.MustSh(`echo refresh > .lakefs/ctl`)
	if l.WriteFile(txn+"/ctl", "commit\n") == nil {
		t.Error("committed into a table that is gone")
	}
	dir := filepath.Join(t.TempDir(), "saved")
	if r := l.Run("recover", "--state-dir="+l.State, "--all", "--save", dir, l.Source, l.Root); r.Code != 0 {
		t.Errorf("recover --save: exit code %d, %s%s", r.Code, r.Out, r.Err)
	}
	got := ""
	for name, content := range readTree(t, dir) {
		got += filepath.Base(name) + "=" + strings.TrimSpace(content) + " "
	}
	for _, want := range []string{"a=a", "b=b", "c=c"} {
		if !strings.Contains(got, want) {
			t.Errorf("saved is %q, want %s in it", got, want)
		}
	}
	l.PutManifest("db/t", manifest)
	l.MustSh(`echo refresh > .lakefs/ctl`)
	wantOpen(t, l)
	wantCommits(t, l)
}

// TestTransactionThatIsBeingCommitted is nobody's to change, nor to commit once more.
func TestTransactionThatIsBeingCommitted(t *testing.T) {
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
	for what, err := range map[string]error{
		"commit":            l.WriteFile(txn+"/ctl", "commit\n"),
		"abort":             l.WriteFile(txn+"/ctl", "abort\n"),
		"a new file":        l.WriteFile(txn+"/k=1/n", "n\n"),
		"an overwrite":      l.WriteFile(txn+"/k=1/a", "other\n"),
		"an append":         openErr(l, txn+"/k=1/a", syscall.O_WRONLY|syscall.O_APPEND),
		"unlink":            unlink(l, txn+"/k=1/a"),
		"mkdir":             mkdir(l, txn+"/k=3"),
		"rename":            rename(l, txn+"/k=1/a", txn+"/k=1/z"),
		"rename out":        rename(l, txn+"/k=1/a", "db/t/k=1/z"),
		"rename of a tree":  rename(l, txn+"/k=1", txn+"/k=7"),
		"rmdir of all":      rmdir(l, txn),
		"mkdir of the same": mkdir(l, txn),
	} {
		want := syscall.EBUSY
		if what == "mkdir of the same" {
			want = syscall.EEXIST
		}
		wantErrno(t, what, err, want)
	}
	close(gate)
	if r := <-p; r.Code != 0 {
		t.Errorf("the commit ended with %d: %s", r.Code, r.Err)
	}
	wantStored(t, l, "k=1/a", "k=1/old", "k=2/b", "k=2/c")
	wantContent(t, l, "db/t/k=1/a", "a\n")
}

// TestTransactionWhereNothingIsWritten.
func TestTransactionWhereNothingIsWritten(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]syscall.Errno{"--read-only": syscall.EROFS, "--write=none": syscall.EPERM} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"}, flag)
			wantErrno(t, "mkdir", mkdir(l, txn), want)
			l.Unmount()
		})
	}
	t.Run("a Delta table", func(t *testing.T) {
		t.Parallel()
		l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{{
			Database: "db", Name: "t", Format: "csv", Keys: []string{"k:int"}, Files: map[string]string{"k=1/old": "old\n"},
			Parameters: map[string]string{"spark.sql.sources.provider": "delta"},
		}}})
		wantErrno(t, "mkdir", mkdir(l, txn), syscall.EROFS)
	})
}

// TestTransactionTakesRenamesCopiesAndAppends, as any directory does.
func TestTransactionTakesRenamesCopiesAndAppends(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": strings.Repeat("old\n", 100_000)}, "--write=overwrite")
	l.MustSh(`mkdir ` + txn + `; cd ` + txn + `; mkdir k=1 k=2
		cp --reflink=auto ../../../k=1/old k=2/copied
		echo one >k=2/log; echo two >>k=2/log; sed -i s/one/1/ k=2/log
		mkdir ../other; mkdir ../other/k=5; echo moved >../other/k=5/f; mv ../other/k=5 k=5; rmdir ../other
		mkdir -p ../../../_temporary/0/k=6; echo staged >../../../_temporary/0/k=6/f; mv ../../../_temporary/0/k=6 k=6; rm -r ../../../_temporary
		echo out >k=2/out; mv k=2/out ../../../k=1/out
		ln -s x k=2/link && exit 9; true`)
	wantStored(t, l, "k=1/old", "k=1/out")
	l.MustSh(`echo commit >` + txn + `/ctl`)
	wantStored(t, l, "k=1/old", "k=1/out", "k=2/copied", "k=2/log", "k=5/f", "k=6/f")
	for name, want := range map[string]string{
		"k=1/out": "out\n", "k=2/log": "1\ntwo\n", "k=5/f": "moved\n", "k=6/f": "staged\n", "k=2/copied": strings.Repeat("old\n", 100_000),
	} {
		if got := stored(t, l, "db/t/"+name); got != want {
			t.Errorf("%s is %s, want %s", name, brief(got), brief(want))
		}
	}
}

// TestTransactionOfADroppedTable of a Glue catalog: as of a manifest that is gone.
func TestTransactionOfADroppedTable(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: noWait}, inCatalog())
	l.MustSh(`mkdir ` + txn + `; cd ` + txn + `; mkdir dt=1 dt=7; echo a >dt=1/a2; echo b >dt=7/b`)
	l.Catalog.Call("DeleteTable", map[string]string{"DatabaseName": "db", "Name": "t"})
	l.MustSh(`echo refresh > .lakefs/ctl`)
	if l.WriteFile(txn+"/ctl", "commit\n") == nil {
		t.Error("committed into a table that is gone")
	}
	for _, key := range []string{"db/t/dt=1/a2", "db/t/dt=7/b"} {
		if got := inBucket(t, l, 0, l.Key(key)); got != "absent" {
			t.Errorf("%s is %q in the store", key, got)
		}
	}
	dir := filepath.Join(t.TempDir(), "saved")
	r := l.Run("recover", "--state-dir="+l.State, "--all", "--save", dir, l.Source, l.Root)
	if saved := readTree(t, dir); r.Code != 0 || len(saved) != 2 {
		t.Errorf("recover --save: exit code %d, %s%s; saved %q", r.Code, r.Out, r.Err, saved)
	}
}
