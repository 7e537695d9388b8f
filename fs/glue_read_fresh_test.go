package fs_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What other clients change in the catalog.

// partitionAt is an input for a partition of one value at a location.
func partitionAt(l *mounttest.Lake, value, location string) string {
	return l.Catalog.At(fmt.Sprintf(`{"Values":[%q],"CreationTime":1767225600,"StorageDescriptor":{"Location":%q}}`, value, location))
}

// mountChanging mounts db.t with the partition k=1, whose file is at a; there is another
// one at b, and the same again as v2.
func mountChanging(t *testing.T, flags ...string) *mounttest.Lake {
	t.Helper()
	l := newGlueLake(t, mounttest.Options{Flags: flags})
	addEntries(l, csvAt("t", "s3://{0}/t", `,"PartitionKeys":[{"Name":"k","Type":"string"}]`))
	l.Catalog.Server.AddPartition("db", "t", partitionAt(l, "1", "s3://{0}/a"))
	putInBucket(t, l, 0, "a/f", numbered('a', 4<<20))
	putInBucket(t, l, 1, "b/f", numbered('b', 3<<20))
	l.Start()
	return l
}

// addOne and dropOne are what another client does with the partition of a value, and
// moveOne with k=1.
func addOne(l *mounttest.Lake, value, location string) {
	l.Catalog.Call("CreatePartition", fmt.Sprintf(`{"DatabaseName":"db","TableName":"t","PartitionInput":%s}`, partitionAt(l, value, location)))
}

func moveOne(l *mounttest.Lake, location string) {
	l.Catalog.Call("UpdatePartition", fmt.Sprintf(`{"DatabaseName":"db","TableName":"t","PartitionValueList":["1"],"PartitionInput":%s}`, partitionAt(l, "1", location)))
}

func dropOne(l *mounttest.Lake, value string) {
	l.Catalog.Call("DeletePartition", fmt.Sprintf(`{"DatabaseName":"db","TableName":"t","PartitionValues":[%q]}`, value))
}

// listedAs tells whether a directory has these names, in their order.
func listedAs(l *mounttest.Lake, dir, want string) bool {
	names, err := l.Names(dir)
	return err == nil && strings.Join(names, " ") == want
}

func TestPartitionsChangedByOthersAreSeenAfterTheTTL(t *testing.T) {
	t.Parallel()
	l := mountChanging(t, shortTTL...)
	wantNames(t, l, "db/t", "k=1")
	wantErrno(t, "a partition that is not there", statErr(l, "db/t/k=2"), syscall.ENOENT)
	addOne(l, "2", "s3://{1}/b")
	l.Eventually("the new partition by name", seenWithin, func() bool { return statErr(l, "db/t/k=2/f") == nil })
	l.Eventually("the new partition in the list", seenWithin, func() bool { return listedAs(l, "db/t", "k=1 k=2") })
	wantContent(t, l, "db/t/k=2/f", numbered('b', 3<<20))
	dropOne(l, "2")
	l.Eventually("the dropped partition gone from the list", seenWithin, func() bool { return listedAs(l, "db/t", "k=1") })
	l.Eventually("the dropped partition gone by name", seenWithin, func() bool { return os.IsNotExist(statErr(l, "db/t/k=2")) })
	if got := inBucket(t, l, 1, "b/f"); got != numbered('b', 3<<20) {
		t.Error("the data of a dropped partition are not as they were")
	}
	addOne(l, "2", "s3://{0}/a/")
	l.Eventually("the partition made again", seenWithin, func() bool { got, err := l.ReadFile("db/t/k=2/f"); return err == nil && got == numbered('a', 4<<20) })
}

// TestPartitionMovedWhileItIsRead: who has a file open reads it on, a new open has
// the file of the new location.
func TestPartitionMovedWhileItIsRead(t *testing.T) {
	t.Parallel()
	l := mountChanging(t, shortTTL...)
	one, two := numbered('a', 4<<20), numbered('b', 3<<20)
	fd := -1
	got := make([]byte, 4096)
	if err := l.Do("open", func() (err error) {
		if fd, err = syscall.Open(l.Path("db/t/k=1/f"), syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err == nil {
			_, err = syscall.Pread(fd, got, 0)
		}
		return err
	}); err != nil || string(got) != one[:4096] {
		t.Fatalf("the first version: %s, %v", brief(string(got)), err)
	}
	moveOne(l, "s3://{1}/b")
	l.Eventually("a new open has the new location's file", seenWithin, func() bool { got, err := l.ReadFile("db/t/k=1/f"); return err == nil && got == two })
	if st := stat(t, l, "db/t/k=1/f"); st.Size != 3<<20 {
		t.Errorf("the new file has %d bytes", st.Size)
	}
	for _, off := range []int64{3<<20 + 12345, 0, 2 << 20} {
		if err := l.Do("read on", func() error { _, err := syscall.Pread(fd, got, off); return err }); err != nil || string(got) != one[off:off+4096] {
			t.Errorf("the open descriptor at %d: %s, %v", off, brief(string(got)), err)
		}
	}
	closeFD(t, l, fd)
	l.MustSh(`echo new >db/t/k=1/new`)
	if got := inBucket(t, l, 1, "b/new"); got != "new\n" {
		t.Errorf("written into the moved partition: %q", got)
	}
	if got := inBucket(t, l, 0, "a/new"); got != "absent" {
		t.Errorf("written where the partition was: %q", got)
	}
}

// TestRefreshOfACatalog: what is cached for long is asked for anew.
func TestRefreshOfACatalog(t *testing.T) {
	t.Parallel()
	l := mountChanging(t, longTTL...)
	wantNames(t, l, "db/t", "k=1")
	wantNames(t, l, "db", "t", "t.json")
	wantNames(t, l, "", "db", "db.json")
	wantContent(t, l, "db/t/k=1/f", numbered('a', 4<<20))
	wantErrno(t, "a partition", statErr(l, "db/t/k=2"), syscall.ENOENT)
	wantErrno(t, "a table", statErr(l, "db/u"), syscall.ENOENT)
	addOne(l, "2", "s3://{1}/b")
	moveOne(l, "s3://{1}/b")
	addEntries(l, csvAt("u", "s3://{0}/u", ""))
	l.Catalog.Server.AddDatabase("new")
	wantNames(t, l, "db/t", "k=1")
	wantNames(t, l, "db", "t", "t.json")
	refresh := func(path string) {
		t.Helper()
		if r := l.Run("refresh", l.Path(path)); r.Code != 0 {
			t.Errorf("refresh of %q: exit code %d, %s", path, r.Code, r.Err)
		}
	}
	refresh("db/t")
	wantNames(t, l, "db/t", "k=1", "k=2")
	wantContent(t, l, "db/t/k=2/f", numbered('b', 3<<20))
	wantContent(t, l, "db/t/k=1/f", numbered('b', 3<<20))
	refresh("db")
	wantNames(t, l, "db", "t", "t.json", "u", "u.json")
	refresh("")
	wantNames(t, l, "", "db", "db.json", "new", "new.json")
	dropOne(l, "1")
	refresh("db/t/k=1")
	wantErrno(t, "a dropped partition", statErr(l, "db/t/k=1"), syscall.ENOENT)
	wantNames(t, l, "db/t", "k=2")
}

// TestTablesChangedByOthers: a table moves, turns into a view, breaks, heals and goes.
func TestTablesChangedByOthers(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: shortTTL})
	server := l.Catalog.Server
	addEntries(l, csvAt("t", "s3://{0}/one", ""))
	putInBucket(t, l, 0, "one/f", "one")
	putInBucket(t, l, 1, "two/f", "two")
	l.Start()
	wantContent(t, l, "db/t/f", "one")
	set := func(entry string) { server.SetTable("db", l.Catalog.At(entry)) }
	set(csvAt("t", "s3://{1}/two", ""))
	l.Eventually("the new location", seenWithin, func() bool { got, err := l.ReadFile("db/t/f"); return err == nil && got == "two" })
	set(csvAt("t", "", ""))
	l.Eventually("a broken entry", seenWithin, func() bool { return errnoOf(listErr(l, "db/t")) == syscall.EIO })
	l.Eventually("its JSON", seenWithin, func() bool { return l.Sh(`jq -e '.Table.StorageDescriptor.Location == ""' db/t.json`).Code == 0 })
	set(csvAt("t", "file:///etc", ""))
	l.Eventually("a local path", seenWithin, func() bool { return errnoOf(listErr(l, "db/t")) == syscall.EOPNOTSUPP })
	set(`{"Name":"t","TableType":"VIRTUAL_VIEW","ViewOriginalText":"SELECT 1"}`)
	l.Eventually("a view", seenWithin, func() bool { return os.IsNotExist(statErr(l, "db/t")) && statErr(l, "db/t.json") == nil })
	l.Eventually("a view in the list", seenWithin, func() bool { return listedAs(l, "db", "t.json") })
	set(csvAt("t", "s3://{0}/one", ""))
	l.Eventually("a table again", seenWithin, func() bool { got, err := l.ReadFile("db/t/f"); return err == nil && got == "one" })
	server.Remove("db", "t")
	l.Eventually("gone", seenWithin, func() bool { return os.IsNotExist(statErr(l, "db/t")) && os.IsNotExist(statErr(l, "db/t.json")) })
	l.Eventually("gone from the list", seenWithin, func() bool { return listedAs(l, "db", "") })
	server.Remove("db", "")
	l.Eventually("the database gone", seenWithin, func() bool { return os.IsNotExist(statErr(l, "db")) })
}

// errnoOf is the errno of a system call; 0 is success.
func errnoOf(err error) syscall.Errno {
	var e syscall.Errno
	errors.As(err, &e)
	return e
}
