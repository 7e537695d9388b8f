package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Programs that write trees of partitions, and files of some in other buckets.

// tree3x5 makes a tree of three partitions with five files each, outside the mount:
// dt=7/0 to dt=9/4.
func tree3x5(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for dt := 7; dt <= 9; dt++ {
		partition := filepath.Join(dir, fmt.Sprint("dt=", dt))
		if err := os.Mkdir(partition, 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			writeFile(t, filepath.Join(partition, fmt.Sprint(i)), fmt.Sprintf("%d,%d\n", dt, i))
		}
	}
	return dir
}

// want3x5 asserts that db.t has the tree, in three registrations.
func want3x5(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	for dt := 7; dt <= 9; dt++ {
		for i := range 5 {
			name := fmt.Sprintf("db/t/dt=%d/%d", dt, i)
			if got, _ := inStore(t, l, name); got != fmt.Sprintf("%d,%d\n", dt, i) {
				t.Errorf("%s has %q", name, got)
			}
		}
	}
	wantRegistered(t, l, "t", "1", "2", "3", "7", "8", "9")
	if n := l.Catalog.Server.Requests()[registration]; n != 3 {
		t.Errorf("%d registrations, want 3", n)
	}
	if got := l.MustSh(`cd db/t; find dt=7 dt=8 dt=9 -type f | wc -l; cat dt=[789]/* | sort -u | wc -l`); got != "15\n15\n" {
		t.Errorf("the mount has %q files", got)
	}
}

// TestTreesOfNewPartitions: each is registered once, whatever writes it.
func TestTreesOfNewPartitions(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"cp":    `cp -r $TREE/. db/t/`,
		"cp -p": `cp -rp $TREE/. db/t/`,
		"rsync": `rsync -a $TREE/ db/t/`,
		"tar":   `tar -C $TREE -cf $HOME/x.tar . && tar -C db/t -xf $HOME/x.tar --no-overwrite-dir`,
		"cat":   `for f in $(cd $TREE; find . -type f); do mkdir -p db/t/${f%/*}; cat $TREE/$f > db/t/$f; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := mountGlue(t, mounttest.Options{}, inCatalog())
			tree := tree3x5(t)
			l.MustSh(`TREE=` + tree + `; ` + script)
			want3x5(t, l)
			if name != "rsync" {
				return
			}
			l.Catalog.Server.Reset()
			if out := l.MustSh(`rsync -ai ` + tree + `/ db/t/`); strings.Contains(out, ">f") {
				t.Errorf("a second rsync sends %q", out)
			}
			if n := l.Catalog.Server.Requests()[registration]; n != 0 {
				t.Errorf("%d more registrations", n)
			}
		})
	}
}

// TestParallelCopiesRegisterOnce: files that come at once into one new partition.
func TestParallelCopiesRegisterOnce(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	tree := tree3x5(t)
	l.MustSh(`cd ` + tree + ` && find . -mindepth 1 -type d | while read d; do mkdir -p $OLDPWD/db/t/$d; done; find . -type f | xargs -P 15 -I{} cp {} $OLDPWD/db/t/{}`)
	wantRegistered(t, l, "t", "1", "2", "3", "7", "8", "9")
	if got := l.MustSh(`cat db/t/dt=[789]/* | sort -u | wc -l`); got != "15\n" {
		t.Errorf("%q files", got)
	}
	if n := l.Catalog.Server.Requests()[registration]; n < 1 || n > 15 { // several go together
		t.Errorf("%d registrations", n)
	}
}

// TestCase45_EditsInAnotherBucket: appends, truncation, renames over a file, and
// editors' ways, where the partition's location is another bucket.
func TestCase45_EditsInAnotherBucket(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete"}}, inCatalog())
	for _, step := range []struct{ script, want string }{
		{`echo more >> dt=2/b`, "2,two\nmore\n"},
		{`truncate -s 6 dt=2/b`, "2,two\n"},
		{`sed -i s/two/zwei/ dt=2/b`, "2,zwei\n"},
		{`printf 'x\n' > dt=2/.b.swp; printf 'new\n' > dt=2/b.tmp; mv dt=2/b.tmp dt=2/b; rm dt=2/.b.swp`, "new\n"},
		{`mv dt=1/a dt=2/b`, "1,one\n"},
		{`cp dt=2/b dt=1/a; perl -pi -e 's/one/eins/' dt=2/b`, "1,eins\n"},
		{`truncate -s 3 dt=2/b; dd if=/dev/zero of=dt=2/b bs=1 seek=5 count=1 conv=notrunc status=none`, "1,e\x00\x00\x00"},
		{`: > dt=2/b`, ""},
		{`python3 -c 'import os
f=open("dt=2/b","r+b"); f.write(b"abcdef"); f.seek(2); f.write(b"XY"); f.truncate(5); f.close()'`, "abXYe"},
	} {
		l.MustSh(`cd db/t; ` + step.script)
		if got := inBucket(t, l, 1, "else/where/b"); got != step.want {
			t.Errorf("%s: the object is %q, want %q", step.script, got, step.want)
		}
		wantContent(t, l, "db/t/dt=2/b", step.want)
	}
	server, _ := l.Bucket()
	if keys := server.Keys(t, l.Catalog.Buckets[1], ""); len(keys) != 1 {
		t.Errorf("the other bucket has %q", keys)
	}
	if got, _ := inStore(t, l, "db/t/dt=2/old"); got != "old\n" {
		t.Errorf("at the default path: %q", got)
	}
	wantStore(t, l, "db/t/dt=1/a", "1,one\n")
	if n := l.Catalog.Server.Requests()[registration]; n != 0 {
		t.Errorf("%d registrations of what is registered", n)
	}
}

// TestCase45_ForeignWritesInAnotherBucket: who appends takes another's version in,
// who rewrites is told.
func TestCase45_ForeignWritesInAnotherBucket(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	foreign := func(content string) func() {
		return func() { putInBucket(t, l, 1, "else/where/b", content) }
	}
	l.MustSh(`cat db/t/dt=2/b`)
	wantErrno(t, "append", writeErr(l, "db/t/dt=2/b", syscall.O_WRONLY|syscall.O_APPEND, "mine\n", foreign("theirs\n")), 0)
	if got := inBucket(t, l, 1, "else/where/b"); got != "theirs\nmine\n" {
		t.Errorf("appended: %q", got)
	}
	wantErrno(t, "rewrite", writeErr(l, "db/t/dt=2/b", syscall.O_WRONLY|syscall.O_TRUNC, "mine\n", foreign("theirs again\n")), syscall.ESTALE)
	if got := inBucket(t, l, 1, "else/where/b"); got != "theirs again\n" {
		t.Errorf("rewritten: %q", got)
	}
	wantErrno(t, "new", writeErr(l, "db/t/dt=2/new", creat, "mine\n", func() { putInBucket(t, l, 1, "else/where/new", "theirs\n") }), syscall.EEXIST)
	if got := inBucket(t, l, 1, "else/where/new"); got != "theirs\n" {
		t.Errorf("created: %q", got)
	}
}

// TestCase69_AppendersOfTwoMountsInOneNewPartition: all lines, one partition.
func TestCase69_AppendersOfTwoMountsInOneNewPartition(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	second := l.Second()
	l.MustSh(`mkdir db/t/dt=7`)
	second.MustSh(`mkdir db/t/dt=7`)
	const lines = 40
	var writers sync.WaitGroup
	for i, lake := range []*mounttest.Lake{l, second} {
		writers.Go(func() {
			if r := lake.Sh(fmt.Sprintf(`for i in $(seq %d); do echo %d.$i >> db/t/dt=7/log || exit 1; done`, lines, i)); r.Code != 0 {
				t.Errorf("appender %d: %s", i, r.Err)
			}
		})
	}
	writers.Wait()
	got, _ := inStore(t, l, "db/t/dt=7/log")
	if n := strings.Count(got, "\n"); n != 2*lines {
		t.Errorf("%d lines, want %d", n, 2*lines)
	}
	wantRegistered(t, l, "t", "1", "2", "3", "7")
}
