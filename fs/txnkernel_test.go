package fs_test

import (
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestTransactionIsSeenAtOnce by who looked for its names before, whatever the kernel
// may keep; and another one of its name is another one.
func TestTransactionIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{
		Tables: []mounttest.Table{byKeys([]string{"k:int"}, map[string]string{"k=1/old": "old\n", "k=1/same": "old\n"})},
		Flags:  []string{"--metadata-ttl=1h", "--negative-ttl=1h"},
	})
	for range 2 {
		for _, absent := range []string{"k=1/a", "k=2", "k=2/b"} {
			wantErrno(t, "stat of "+absent, statErr(l, "db/t/"+absent), syscall.ENOENT)
		}
		wantContent(t, l, "db/t/k=1/same", "old\n")
		wantErrno(t, "stat", statErr(l, "db/t/k=1/old"), 0)
	}
	l.MustSh(`mkdir ` + txn + `; cd ` + txn + `; mkdir k=1 k=2; echo a >k=1/a; echo b >k=2/b; echo new >k=1/same; echo overwrite >ctl`)
	wantContent(t, l, "db/t/k=1/a", "a\n")
	wantContent(t, l, "db/t/k=2/b", "b\n")
	wantContent(t, l, "db/t/k=1/same", "new\n")
	wantErrno(t, "stat of what was replaced", statErr(l, "db/t/k=1/old"), syscall.ENOENT)
	wantErrno(t, "stat of what is over", statErr(l, txn), syscall.ENOENT)
	wantErrno(t, "a file in what is over", l.WriteFile(txn+"/k=1/late", "late\n"), syscall.ENOENT)
	l.MustSh(`mkdir ` + txn + `; cd ` + txn + `; ! test -e k=1; ! echo c >k=1/c; mkdir k=1; echo c >k=1/c; echo commit >ctl`)
	wantStored(t, l, "k=1/a", "k=1/c", "k=1/same", "k=2/b")
}
