package fs_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Directories that the catalog has, wherever they lie.

func TestCase44_RegisteredWithoutObjects(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Faulty: true, Flags: []string{"--write=delete", "--catalog-writes=none"}}, inCatalog())
	l.MustSh(`ls db/t >/dev/null`)
	l.Proxy.Reset()
	if st := stat(t, l, "db/t/dt=3"); st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		t.Errorf("dt=3 has mode %o, want a directory", st.Mode)
	}
	if asked := l.Proxy.Counts(); len(asked) > 0 {
		t.Errorf("stat of a registered partition asks the store: %v", asked)
	}
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3")
	wantNames(t, l, "db/t/dt=3")
	if got := l.MustSh(`cd db/t; find . | sort; cat */*; du -a dt=3 | wc -l`); got != ".\n./dt=1\n./dt=1/a\n./dt=2\n./dt=2/b\n./dt=3\n1,one\n2,two\n1\n" {
		t.Errorf("find and cat: %q", got)
	}
	wantErrno(t, "mkdir of a partition", mkdir(l, "db/t/dt=3"), syscall.EEXIST)
	wantErrno(t, "mkdir of an equal value", mkdir(l, "db/t/dt=03"), syscall.EEXIST)
	wantErrno(t, "rmdir of a partition with objects", rmdir(l, "db/t/dt=1"), syscall.ENOTEMPTY)
	wantErrno(t, "rmdir of one elsewhere", rmdir(l, "db/t/dt=2"), syscall.ENOTEMPTY)
	wantErrno(t, "rmdir of a partition without", rmdir(l, "db/t/dt=3"), syscall.EPERM)
	l.WaitLog("DROP PARTITION")
	wantErrno(t, "rename of a partition", rename(l, "db/t/dt=3", "db/t/dt=4"), syscall.EXDEV)
	wantErrno(t, "rename over a partition", rename(l, "db/t/dt=1", "db/t/dt=3"), syscall.EXDEV)
	l.MustSh(`rm db/t/dt=1/a`)
	wantNames(t, l, "db/t/dt=1")
	wantErrno(t, "rmdir of one that a removal emptied", rmdir(l, "db/t/dt=1"), syscall.EPERM)
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3")
	wantRegistered(t, l, "t", "1", "2", "3")
	l.MustSh(`echo new > db/t/dt=3/new; test "$(cat db/t/dt=3/new)" = new`)
	wantStore(t, l, "db/t/dt=3/new", "new\n")
}

// TestCase44_ObjectsWithoutRegistration are found by name.
func TestCase44_ObjectsWithoutRegistration(t *testing.T) {
	t.Parallel()
	table := inCatalog()
	table.Files["dt=9/f"] = "nine\n"
	l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete"}}, table)
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3")
	if got := l.MustSh(`cat db/t/dt=9/f; ls db/t/dt=9`); got != "nine\nf\n" {
		t.Errorf("by name: %q", got)
	}
	wantErrno(t, "mkdir", mkdir(l, "db/t/dt=9"), syscall.EEXIST)
	l.MustSh(`rm db/t/dt=9/f; rmdir db/t/dt=9; test ! -e db/t/dt=9`)
	wantRegistered(t, l, "t", "1", "2", "3")
}

func TestDirectoriesAbovePartitions(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete"}}, twoKeys())
	wantNames(t, l, "db/two", "dt=1")
	wantNames(t, l, "db/two/dt=1", "k=x", "k=y")
	if got := l.MustSh(`cat db/two/*/*/[fh]`); got != "x\ny\n" {
		t.Errorf("the files are %q", got)
	}
	wantErrno(t, "rmdir", rmdir(l, "db/two/dt=1"), syscall.ENOTEMPTY)
	wantErrno(t, "mkdir", mkdir(l, "db/two/dt=1"), syscall.EEXIST)
	wantErrno(t, "rename", rename(l, "db/two/dt=1", "db/two/dt=2"), syscall.EXDEV)
	l.MustSh(`cd db/two; rm dt=1/k=x/f; rm -r dt=1/k=x/sub; touch -d @1000000000 dt=1/k=y; echo z > dt=1/k=y/z`)
	wantErrno(t, "rmdir, with no object below", rmdir(l, "db/two/dt=1"), syscall.ENOTEMPTY)
	if got := inBucket(t, l, 1, "z"); got != "z\n" {
		t.Errorf("the bucket of a partition has %q", got)
	}
	if st := stat(t, l, "db/two/dt=1/k=y"); st.Mtim.Sec == 1_000_000_000 {
		t.Error("a directory keeps its time though a file came")
	}
	wantNames(t, l, "db/two/dt=1", "k=x", "k=y")
}

func TestCase45_PartitionInAnotherBucket(t *testing.T) {
	t.Parallel()
	table := inCatalog()
	table.Partitions = append(table.Partitions, mounttest.GluePartition{Values: []string{"4"}, Location: "s3://{1}/else/where/"})
	l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete"}}, table)
	if got := l.MustSh(`cd db/t; cat dt=2/* dt=4/*`); got != "2,two\n2,two\n" {
		t.Errorf("both partitions of one location: %q", got)
	}
	l.MustSh(`cd db/t; echo more >> dt=2/b; echo c > dt=2/c; mkdir dt=2/sub; echo d > dt=2/sub/d; mv dt=2/sub dt=2/moved; mv dt=2/c dt=1/c; mv dt=1/a dt=2/a`)
	for key, want := range map[string]string{"b": "2,two\nmore\n", "c": "absent", "sub/d": "absent", "moved/d": "d\n", "a": "1,one\n"} {
		if got := inBucket(t, l, 1, "else/where/"+key); got != want {
			t.Errorf("%s has %q, want %q", key, got, want)
		}
	}
	wantStore(t, l, "db/t/dt=1/c", "c\n")
	wantNames(t, l, "db/t/dt=2", "a", "b", "moved")
	l.Eventually("the other partition of the location to show it", 20*time.Second, func() bool {
		names, err := l.Names("db/t/dt=4")
		return err == nil && strings.Join(names, " ") == "a b moved"
	})
	l.MustSh(`cd db/t; mv dt=2/moved dt=1/sub; rm dt=2/a dt=2/b`)
	wantStore(t, l, "db/t/dt=1/sub/d", "d\n")
	wantNames(t, l, "db/t/dt=2")
	if got, _ := inStore(t, l, "db/t/dt=2/old"); got != "old\n" {
		t.Errorf("the object at the default path: %q", got)
	}
	wantRegistered(t, l, "t", "1", "2", "3", "4")
}

// TestMoveOfAPartition: mv copies, and removes the old directory.
func TestMoveOfAPartition(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete", late}}, inCatalog())
	l.MustSh(`mv db/t/dt=2 db/t/dt=5`)
	wantStore(t, l, "db/t/dt=5/b", "2,two\n")
	wantNames(t, l, "db/t", "dt=1", "dt=3", "dt=5")
	wantRegistered(t, l, "t", "1", "2", "3", "5") // until it has been gone for a while
	second := l.Second("--write=create")
	wantErrno(t, "rename where nothing may be removed", rename(second, "db/t/dt=1", "db/t/dt=6"), syscall.EPERM)
}

// TestProjectedDirectories are there by the table's word, and nothing is registered.
func TestProjectedDirectories(t *testing.T) {
	t.Parallel()
	table := mounttest.GlueTable{Table: mounttest.Table{
		Database: "db", Name: "p", Format: "csv", Keys: []string{"dt:int"},
		Parameters: map[string]string{"projection.enabled": "true", "projection.dt.type": "integer", "projection.dt.range": "1,3"},
		Files:      map[string]string{"dt=1/f": "1\n"},
	}}
	l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete"}}, table)
	wantErrno(t, "mkdir out of range", mkdir(l, "db/p/dt=9"), syscall.EINVAL)
	wantErrno(t, "mkdir in range", mkdir(l, "db/p/dt=2"), syscall.EEXIST)
	wantErrno(t, "rmdir with objects", rmdir(l, "db/p/dt=1"), syscall.ENOTEMPTY)
	wantErrno(t, "rmdir without", rmdir(l, "db/p/dt=2"), syscall.EPERM)
	l.WaitLog("partition projection has the directory")
	l.MustSh(`echo 2 > db/p/dt=2/f; cat db/p/dt=2/f; rm db/p/dt=2/f; ls db/p/dt=2; test ! -e db/p/dt=9`)
	wantRegistered(t, l, "p")
	if n := l.Catalog.Server.Requests()[registration]; n != 0 {
		t.Errorf("%d registrations", n)
	}
}
