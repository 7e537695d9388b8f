package fs_test

import (
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestOthersTreesAreInNobodysWay: rm -r of what is listed is 0, and takes nothing of a
// staging tree that only the store has; a job writes there as in an empty directory.
func TestOthersTreesAreInNobodysWay(t *testing.T) {
	t.Parallel()
	theirs := []string{"k=0/_temporary/0/x", "k=1/.spark-staging-9/k=1/y", "k=2/old"}
	l := mountPartitioned(t, map[string]string{"k=0/old": "old\n", theirs[0]: "x\n", theirs[1]: "y\n", theirs[2]: "old\n"}, "--write=delete")
	l.MustSh(`cd db/t; rm -r k=0; rmdir k=1; test -d k=0; mkdir k=2/sub`)
	wantNames(t, l, "db/t/k=0")
	wantErrno(t, "rmdir of a directory with a directory", rmdir(l, "db/t/k=2"), syscall.ENOTEMPTY)
	wantErrno(t, "rmdir of a table with a file", rmdir(l, "db/t"), syscall.ENOTEMPTY)
	l.MustSh(`cd db/t; mkdir -p .spark-staging-1/k=0; echo new >.spark-staging-1/k=0/p; mv -T .spark-staging-1/k=0 k=0; rm -r .spark-staging-1`)
	wantNames(t, l, "db/t/k=0", "p")
	wantStored(t, l, append(theirs, "k=0/p")...)
	l.MustSh(`rm -r db/t; test -d db/t`)
	wantStored(t, l, theirs[:2]...)
}

// TestOthersTreesBelowPartitionsOfTwoKeys: a directory with nothing but such
// partitions goes too.
func TestOthersTreesBelowPartitionsOfTwoKeys(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{byKeys([]string{"k:int", "j:int"}, map[string]string{
		"k=1/j=1/_temporary/0/x": "x\n", "k=1/j=1/old": "old\n", "k=1/j=2/old": "old\n",
	})}, Flags: []string{"--write=delete"}})
	l.MustSh(`rm -r db/t/k=1; rm -r db/t`)
	wantStored(t, l, "k=1/j=1/_temporary/0/x")
}

// TestTargetWithAnothersTreeIsNotEmpty, be its files closed: they are a job's work.
func TestTargetWithAnothersTreeIsNotEmpty(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=9/old": "old\n"}, "--write=delete")
	l.MustSh(`cd db/t; mkdir -p k=1/_temporary/0 k=2/_temporary/0 _temporary/k=1 _temporary/k=2 k=9/d/_temporary k=9/e
		echo 1 >_temporary/k=1/p; echo 2 >_temporary/k=2/p; echo part >k=1/_temporary/0/part-0; sync k=1/_temporary/0/part-0; echo part >k=9/d/_temporary/part-1`)
	wantErrno(t, "rename onto a directory with a job's files", rename(l, "db/t/_temporary/k=1", "db/t/k=1"), syscall.ENOTEMPTY)
	wantErrno(t, "of a published directory", rename(l, "db/t/k=9/e", "db/t/k=9/d"), syscall.ENOTEMPTY)
	wantContent(t, l, "db/t/k=1/_temporary/0/part-0", "part\n")
	wantContent(t, l, "db/t/k=9/d/_temporary/part-1", "part\n")
	wantContent(t, l, "db/t/_temporary/k=1/p", "1\n")
	wantErrno(t, "rename onto one with an empty tree", rename(l, "db/t/_temporary/k=2", "db/t/k=2"), 0)
	l.MustSh(`cd db/t; test ! -e k=2/_temporary; rm k=1/_temporary/0/part-0; mv -T _temporary/k=1 k=1; rm -r _temporary`)
	wantStored(t, l, "k=1/p", "k=2/p", "k=9/old")
}

// TestRefusedRmdirPublishesNothing: what lingers in a directory lingers on.
func TestRefusedRmdirPublishesNothing(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=9/old": "old\n"}, "--write=delete", "--temporary-linger=1h")
	l.MustSh(`cd db/t; mkdir k=1 k=9/d k=9/e _temporary; mkdir _temporary/k=1; echo 1 >k=1/f.tmp; echo 2 >k=9/d/g.tmp`)
	wantErrno(t, "rmdir", rmdir(l, "db/t/k=1"), syscall.ENOTEMPTY)
	wantErrno(t, "rename out of a tree", rename(l, "db/t/_temporary/k=1", "db/t/k=1"), syscall.ENOTEMPTY)
	wantErrno(t, "rename", rename(l, "db/t/k=9/e", "db/t/k=9/d"), syscall.ENOTEMPTY)
	wantStored(t, l, "k=9/old")
	l.MustSh(`cd db/t; mv k=1/f.tmp k=1/f; rm k=9/d/g.tmp; rmdir k=9/d`)
	wantStored(t, l, "k=9/old", "k=1/f")
}

// TestTreeInATreeStaysLocal where the directory around it is published.
func TestTreeInATreeStaysLocal(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{byKeys(nil, nil)}, Flags: []string{"--write=delete"}})
	l.MustSh(`cd db/t; mkdir -p _temporary/0/N/_temporary/0 _temporary/0/N/_temporary/1; echo 1 >_temporary/0/N/f; echo 2 >_temporary/0/N/_temporary/0/g
		mv -T _temporary/0/N N; test ! -e _temporary/0/N`)
	wantNames(t, l, "db/t/N", "f")
	wantNames(t, l, "db/t/N/_temporary", "0", "1")
	wantContent(t, l, "db/t/N/_temporary/0/g", "2\n")
	wantStored(t, l, "N/f")
	wantNoTree(t, l)
	if !l.OnS3() {
		l.MustSh(`test ! -e ../warehouse/_data/db/t/N/_temporary`)
	}
	l.Remount()
	wantNames(t, l, "db/t/N/_temporary", "0", "1")
	l.MustSh(`cd db/t; rm -r N; test ! -e N; rm -r _temporary`)
	wantStored(t, l)
}

// TestDirectoryOutOfATreeIsTheMountsOwn at --write=create: made here, so renamed here.
func TestDirectoryOutOfATreeIsTheMountsOwn(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{byKeys(nil, map[string]string{"old/f": "old\n"})}, Flags: []string{"--write=create"}})
	l.MustSh(`cd db/t; mkdir -p _temporary/0/N/sub; echo 1 >_temporary/0/N/f; echo 2 >_temporary/0/N/sub/g
		mv -T _temporary/0/N N; mv N/sub N/sub2; mv N M`)
	wantErrno(t, "rename of another's", rename(l, "db/t/old", "db/t/new"), syscall.EPERM)
	wantStored(t, l, "M/f", "M/sub2/g", "old/f")
}

// TestOthersTreeInARegisteredPartition: it leaves, and its objects bring it back.
func TestOthersTreeInARegisteredPartition(t *testing.T) {
	t.Parallel()
	l := mountLeaving(t, shortly, inCatalog())
	l.PutStored("db/t/dt=1/_temporary/0/x", "theirs\n")
	l.MustSh(`cd db/t; rm -r dt=1`)
	l.WaitLog("it stays in the catalog, and is shown again")
	l.MustSh(`cd db/t; mkdir -p .spark-staging-1/dt=1; echo new >.spark-staging-1/dt=1/p; mv -T .spark-staging-1/dt=1 dt=1`)
	wantNames(t, l, "db/t/dt=1", "p")
	wantRegistered(t, l, "t", "1", "2", "3")
	wantStore(t, l, "db/t/dt=1/_temporary/0/x", "theirs\n")
}

// TestFailedRenameBringsNoPartitionBack: it is leaving as before, and is deregistered.
func TestFailedRenameBringsNoPartitionBack(t *testing.T) {
	t.Parallel()
	table := mounttest.GlueTable{
		Table:      mounttest.Table{Database: "db", Name: "t", Format: "parquet", Keys: []string{"dt:int"}},
		Partitions: []mounttest.GluePartition{{Values: []string{"1"}}, {Values: []string{"2"}}},
	}
	l := mountLeaving(t, late, table)
	l.MustSh(`cd db/t; rmdir dt=1; mkdir -p _temporary/dt=1; echo no parquet >_temporary/dt=1/p.parquet`)
	wantErrno(t, "rename", rename(l, "db/t/_temporary/dt=1", "db/t/dt=1"), syscall.EBADMSG)
	wantErrno(t, "stat of a partition that is leaving", statErr(l, "db/t/dt=1"), syscall.ENOENT)
	wantNames(t, l, "db/t", "dt=2")
	wantRegistered(t, l, "t", "1", "2")
	l.MustSh(`rm -r db/t/_temporary`)
	l.Unmount()
	wantRegistered(t, l, "t", "2")
}
