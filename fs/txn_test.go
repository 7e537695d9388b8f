package fs_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

const txn = "db/t/.lakefs/txn/load-1"

// TestTransactionPublishesAllAtOnce: until the commit nobody sees a file but who looks
// in the transaction; then all are where they belong, and it is over.
func TestTransactionPublishesAllAtOnce(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	l.MustSh(`mkdir ` + txn + `; cd ` + txn + `; mkdir k=1 k=2; echo 1 >k=1/a; echo 2 >k=2/b; echo 3 >k=2/c; chmod 640 k=2/b; mkdir k=9; mv k=2/c k=2/d; echo gone >k=2/e; rm k=2/e`)
	wantNames(t, l, "db/t", "k=1")
	wantNames(t, l, "db/t/k=1", "old")
	wantNames(t, l, "db/t/.lakefs/txn", "load-1")
	wantNames(t, l, txn, "k=1", "k=2", "k=9")
	wantNames(t, l, txn+"/k=2", "b", "d")
	wantContent(t, l, txn+"/k=2/d", "3\n")
	wantStored(t, l, "k=1/old")
	l.MustSh(`cd db/t; echo commit >.lakefs/txn/load-1/ctl`)
	wantStored(t, l, "k=1/a", "k=1/old", "k=2/b", "k=2/d")
	wantNames(t, l, "db/t/.lakefs/txn")
	wantErrno(t, "stat of what is over", statErr(l, txn), syscall.ENOENT)
	wantNames(t, l, "db/t", "k=1", "k=2")
	wantContent(t, l, "db/t/k=2/d", "3\n")
	if mode := stat(t, l, "db/t/k=2/b").Mode & 0o777; mode != 0o640 {
		t.Errorf("mode %o, want 640", mode)
	}
	if left := stagedStatus(t, l); len(left) > 0 || len(spools(t, l)) > 0 {
		t.Errorf("left staged: %v, %q", left, spools(t, l))
	}
	l.MustSh(`mkdir ` + txn + `; echo again >` + txn + `/k=1; true`)
}

// TestTransactionIDs: what can be a name of one, and where.
func TestTransactionIDs(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	at := "db/t/.lakefs/txn/"
	for _, id := range []string{"a b", "é", "x:y", strings.Repeat("x", 65), "a=b"} {
		wantErrno(t, "mkdir of "+id, mkdir(l, at+id), syscall.EINVAL)
	}
	for _, id := range []string{"a", "A.b_c-9", strings.Repeat("x", 64)} {
		wantErrno(t, "mkdir of "+id, mkdir(l, at+id), 0)
	}
	wantErrno(t, "mkdir of one that is open", mkdir(l, at+"a"), syscall.EEXIST)
	wantErrno(t, "in a database", statErr(l, "db/.lakefs/txn"), syscall.ENOENT)
	wantErrno(t, "in a partition", statErr(l, "db/t/k=1/.lakefs/txn"), syscall.ENOENT)
	wantErrno(t, "of none", statErr(l, at+"b"), syscall.ENOENT)
	wantErrno(t, "rmdir", rmdir(l, at+"a"), 0)
	wantErrno(t, "stat after rmdir", statErr(l, at+"a"), syscall.ENOENT)
	wantErrno(t, "control directory", statErr(l, at+"A.b_c-9/.lakefs"), syscall.ENOENT)
	wantErrno(t, "a file called ctl", l.WriteFile(at+"A.b_c-9/ctl", "nonsense\n"), syscall.EINVAL)
	wantErrno(t, "reading ctl", openErr(l, at+"A.b_c-9/ctl", syscall.O_RDONLY), syscall.EACCES)
	wantErrno(t, "mkdir of ctl", mkdir(l, at+"A.b_c-9/ctl"), syscall.EEXIST)
	l.MustSh(`cd db/t; test -z "$(find . -name '*lakefs*')"; rmdir ../t; test -d .lakefs/txn/A.b_c-9`)
}

// TestTransactionHoldsToTheRulesOfNames when a name is made, not when all is written.
func TestTransactionHoldsToTheRulesOfNames(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{byKeys([]string{"k:int", "j:int"}, map[string]string{"k=1/j=1/old": "old\n"})}})
	l.MustSh(`mkdir ` + txn)
	for dir, want := range map[string]syscall.Errno{
		"k=x": syscall.EINVAL, "k=01": syscall.EEXIST, "k=": syscall.EINVAL, "k=1=2": syscall.EINVAL, "k=1": 0, "k=2": 0, "k=02": syscall.EEXIST,
	} {
		if dir != "k=02" {
			wantErrno(t, "mkdir "+dir, mkdir(l, txn+"/"+dir), want)
		}
	}
	wantErrno(t, "mkdir beside one of the transaction", mkdir(l, txn+"/k=02"), syscall.EEXIST)
	wantErrno(t, "mkdir of a doubled key", mkdir(l, txn+"/k=1/k=1"), syscall.EINVAL)
	l.MustSh(`cd ` + txn + `; mkdir k=1/j=5; echo x >k=1/j=5/f; echo y >k=1/loose`)
	wantErrno(t, "commit with a file in no partition", l.WriteFile(txn+"/ctl", "commit\n"), syscall.EINVAL)
	wantStored(t, l, "k=1/j=1/old")
	wantContent(t, l, txn+"/k=1/loose", "y\n")
	l.MustSh(`cd ` + txn + `; rm k=1/loose; echo s >_SUCCESS; echo commit >ctl`)
	wantStored(t, l, "_SUCCESS", "k=1/j=1/old", "k=1/j=5/f")
}

// TestRule28_AppendThatMeetsAnothersFile publishes nothing, and can be committed again.
func TestRule28_AppendThatMeetsAnothersFile(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	l.MustSh(`mkdir ` + txn + `; cd ` + txn + `; mkdir k=1 k=2; for i in 1 2 3; do echo $i >k=2/f$i; done; echo mine >k=1/old`)
	wantErrno(t, "commit", l.WriteFile(txn+"/ctl", "commit\n"), syscall.EEXIST)
	wantStored(t, l, "k=1/old")
	if got := stored(t, l, "db/t/k=1/old"); got != "old\n" {
		t.Errorf("another's file has %q", got)
	}
	wantNames(t, l, "db/t", "k=1")
	wantNames(t, l, txn+"/k=2", "f1", "f2", "f3")
	l.MustSh(`cd ` + txn + `; mv k=1/old k=1/new; echo commit >ctl`)
	wantStored(t, l, "k=1/new", "k=1/old", "k=2/f1", "k=2/f2", "k=2/f3")
}

// TestRule30_ScopesOfAnOverwrite: the partitions that are written; a prefix, written or
// not; the table. What is hidden stays.
func TestRule30_ScopesOfAnOverwrite(t *testing.T) {
	t.Parallel()
	old := map[string]string{
		"k=1/j=1/a": "old\n", "k=1/j=1/sub/b": "old\n", "k=1/j=2/a": "old\n", "k=2/j=1/a": "old\n", "k=1/j=1/_SUCCESS": "", "k=1/j=1/_temporary/0/x": "theirs\n",
	}
	hidden := []string{"k=1/j=1/_SUCCESS", "k=1/j=1/_temporary/0/x"}
	for _, tt := range []struct {
		name, command, files string
		parameters           map[string]string
		flags                []string
		want                 []string
		errno                syscall.Errno
	}{
		{name: "dynamic", command: "overwrite", files: "k=1/j=1/n", want: []string{"k=1/j=1/n", "k=1/j=2/a", "k=2/j=1/a"}},
		{name: "same name", command: "overwrite", files: "k=1/j=1/a", want: []string{"k=1/j=1/a", "k=1/j=2/a", "k=2/j=1/a"}},
		{name: "prefix", command: "overwrite k=1/", files: "k=1/j=1/n", want: []string{"k=1/j=1/n", "k=2/j=1/a"}},
		{name: "prefix without files", command: "overwrite k=1/j=2", flags: []string{"--write=delete"}, want: []string{"k=1/j=1/a", "k=1/j=1/sub/b", "k=2/j=1/a"}},
		{name: "table", command: "overwrite *", files: "k=3/j=3/n", want: []string{"k=3/j=3/n"}},
		{name: "not dynamic", command: "overwrite", files: "k=3/j=3/n", parameters: map[string]string{"dynamic-partition-overwrite": "false"}, want: []string{"k=3/j=3/n"}},
		{name: "dynamic without files", command: "overwrite", want: []string{"k=1/j=1/a", "k=1/j=1/sub/b", "k=1/j=2/a", "k=2/j=1/a"}},
		{name: "without files and level", command: "overwrite *", errno: syscall.EPERM, want: []string{"k=1/j=1/a", "k=1/j=1/sub/b", "k=1/j=2/a", "k=2/j=1/a"}},
		{name: "outside", command: "overwrite k=2/", files: "k=1/j=1/n", errno: syscall.EINVAL, want: []string{"k=1/j=1/a", "k=1/j=1/sub/b", "k=1/j=2/a", "k=2/j=1/a"}},
		{name: "no prefix", command: "overwrite x/", errno: syscall.EINVAL, want: []string{"k=1/j=1/a", "k=1/j=1/sub/b", "k=1/j=2/a", "k=2/j=1/a"}},
		{name: "level create", command: "overwrite", files: "k=1/j=1/n", flags: []string{"--write=create"}, errno: syscall.EPERM, want: []string{"k=1/j=1/a", "k=1/j=1/sub/b", "k=1/j=2/a", "k=2/j=1/a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tab := byKeys([]string{"k:int", "j:int"}, old)
			tab.Parameters = tt.parameters
			l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{tab}, Flags: tt.flags})
			l.MustSh(`mkdir ` + txn + `; find db >/dev/null`)
			if tt.files != "" {
				l.MustSh(`cd ` + txn + `; mkdir -p ` + tt.files + `; rmdir ` + tt.files + `; echo new >` + tt.files)
			}
			wantErrno(t, tt.command, l.WriteFile(txn+"/ctl", tt.command+"\n"), tt.errno)
			wantStored(t, l, append(tt.want, hidden...)...)
			for _, name := range tt.want {
				wantContent(t, l, "db/t/"+name, stored(t, l, "db/t/"+name))
			}
			if tt.errno == 0 && tt.files != "" {
				wantContent(t, l, "db/t/"+tt.files, "new\n")
			}
			if tt.errno == 0 {
				wantErrno(t, "stat", statErr(l, txn), syscall.ENOENT)
			} else {
				wantErrno(t, "stat", statErr(l, txn), 0)
			}
		})
	}
}

// TestRule33_Abort drops the staged files alone.
func TestRule33_Abort(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	fill := `mkdir ` + txn + `; mkdir -p ` + txn + `/k=1 ` + txn + `/k=2; echo a >` + txn + `/k=1/a; echo b >` + txn + `/k=2/b; `
	l.MustSh(fill + `rm -r ` + txn)
	wantErrno(t, "stat after rm -r", statErr(l, txn), syscall.ENOENT)
	l.MustSh(fill + `echo abort >` + txn + `/ctl`)
	wantErrno(t, "stat after abort", statErr(l, txn), syscall.ENOENT)
	wantStored(t, l, "k=1/old")
	if left := stagedStatus(t, l); len(left) > 0 || len(spools(t, l)) > 0 {
		t.Errorf("left staged: %v, %q", left, spools(t, l))
	}
	wantErrno(t, "commit of what is over", l.WriteFile(txn+"/ctl", "commit\n"), syscall.ENOENT)
}

// TestTransactionSurvives a remount and a kill, with what was closed in it.
func TestTransactionSurvives(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	l.MustSh(`mkdir ` + txn + `; mkdir ` + txn + `/k=2; echo 1 >` + txn + `/k=2/a`)
	l.Remount()
	l.MustSh(`echo 2 >` + txn + `/k=2/b; sync ` + txn + `/k=2/b`)
	l.Kill()
	l.Start()
	wantNames(t, l, "db/t/.lakefs/txn", "load-1")
	wantNames(t, l, txn+"/k=2", "a", "b")
	wantStored(t, l, "k=1/old")
	l.MustSh(`echo commit >` + txn + `/ctl`)
	wantStored(t, l, "k=1/old", "k=2/a", "k=2/b")
	l.Remount()
	wantNames(t, l, "db/t/.lakefs/txn")
}

// TestTransactionOfOpenAndTornFiles is not committed.
func TestTransactionOfOpenAndTornFiles(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	l.MustSh(`mkdir ` + txn + `; cd ` + txn + `; mkdir k=2; exec 3>k=2/a; echo 1 >&3; ! echo commit >ctl; exec 3>&-`)
	wantStored(t, l, "k=1/old")
	l.MustSh(`cd ` + txn + `; yes >k=2/torn & until test -s k=2/torn; do sleep .01; done; kill -9 $!; wait; ! echo commit >ctl`)
	wantStored(t, l, "k=1/old")
	l.MustSh(`cd ` + txn + `; echo whole >k=2/torn; echo commit >ctl`)
	wantStored(t, l, "k=1/old", "k=2/a", "k=2/torn")
	wantContent(t, l, "db/t/k=2/torn", "whole\n")
}

// TestTransactionsAreShown in status.json of the root and of their table, and their
// commits in jobs.json.
func TestTransactionsAreShown(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	l.MustSh(`mkdir ` + txn + `; cd ` + txn + `; mkdir k=2; echo 1 >k=2/a; echo 22 >k=2/b`)
	for _, path := range []string{".lakefs/status.json", "db/t/.lakefs/status.json"} {
		var s struct {
			Transactions []struct {
				Path  string
				Files int
				Bytes int64
			}
		}
		raw, err := l.ReadFile(path)
		if err == nil {
			err = json.Unmarshal([]byte(raw), &s)
		}
		if err != nil || len(s.Transactions) != 1 || s.Transactions[0].Path != txn || s.Transactions[0].Files != 2 || s.Transactions[0].Bytes != 5 {
			t.Errorf("%s: %v, %+v", path, err, s.Transactions)
		}
	}
	l.MustSh(`echo 'commit --job mine' >` + txn + `/ctl`)
	raw, err := l.ReadFile(".lakefs/jobs.json")
	var jobs struct {
		Jobs []struct {
			ID, Kind, Path, Error string
			Done, Total           int
			Result                struct{ Files, Bytes int }
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(raw), &jobs)
	}
	if err != nil || len(jobs.Jobs) != 1 {
		t.Fatalf("%v, %s", err, raw)
	}
	if j := jobs.Jobs[0]; j.ID != "mine" || j.Kind != "commit" || j.Path != txn || j.Result.Files != 2 || j.Result.Bytes != 5 || j.Done != j.Total {
		t.Errorf("%s", raw)
	}
}

// TestOverwriteThatIsRefusedChangesNothing: neither what it was to replace, nor what is
// remembered of that.
func TestOverwriteThatIsRefusedChangesNothing(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{
		Tables: []mounttest.Table{{Database: "db", Name: "t", Format: "json", Keys: []string{"k:int"}}}, Flags: []string{"--write=create"},
	})
	l.MustSh(`cd db/t; mkdir k=1; echo '{"a":1}' >k=1/old; chmod 640 k=1/old; mkdir .lakefs/txn/load-1; cd .lakefs/txn/load-1; mkdir k=1; echo 'no json' >k=1/new; ! echo overwrite >ctl`)
	wantContent(t, l, "db/t/k=1/old", "{\"a\":1}\n")
	if mode := stat(t, l, "db/t/k=1/old").Mode & 0o777; mode != 0o640 {
		t.Errorf("mode %o, want 640", mode)
	}
	l.MustSh(`cd ` + txn + `; echo '{"a":2}' >k=1/new; echo overwrite >ctl`)
	wantStored(t, l, "k=1/new")
}
