package fs_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// The place of a table goes while a file is written. What is published is where the
// table said when it was opened, or nowhere: then the bytes are kept. (Entries that
// change meanwhile: glue_write_changes_test.go.)

// TestFolderOfATableIsRemovedUnderAWriter: a new file makes its folders again, as in a
// table whose folder never was; one that was there is another's to lose.
func TestFolderOfATableIsRemovedUnderAWriter(t *testing.T) {
	t.Parallel()
	mounttest.FolderOnly(t, "folders that are removed")
	for what, tt := range map[string]struct {
		name  string
		flags int
		want  syscall.Errno
	}{
		"new":    {"new", creat, 0},
		"append": {"old", syscall.O_WRONLY | syscall.O_APPEND, syscall.ESTALE},
		"over":   {"old", syscall.O_WRONLY | syscall.O_TRUNC, syscall.ESTALE},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{partitioned(map[string]string{"k=a/old": "old\n"}, "k")}})
			err := writeErr(l, "db/t/k=a/"+tt.name, tt.flags, "mine\n", func() {
				if err := os.RemoveAll(l.Data("db/t")); err != nil {
					t.Error(err)
				}
			})
			wantErrno(t, "close", err, tt.want)
			if tt.want == 0 {
				wantStore(t, l, "db/t/k=a/new", "mine\n")
				wantClean(t, l, "db/t/k=a", "new")
				return
			}
			if files := storedTree(t, l, "db"); len(files) > 0 {
				t.Errorf("the store has %q", files)
			}
			kept := l.MustSh(`cat .lakefs/staged/* db/t/.lakefs/staged/* db/t/k=a/.lakefs/staged/* 2>/dev/null || true`)
			if !strings.HasSuffix(kept, "mine\n") {
				t.Errorf("kept: %q", kept)
			}
		})
	}
}

// TestBucketOfAPartitionIsRemovedUnderAWriter: the close says so, the bytes are kept,
// and are published once the bucket is there again.
func TestBucketOfAPartitionIsRemovedUnderAWriter(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	server, _ := l.Bucket()
	other := l.Catalog.Buckets[1]
	l.MustSh(`cat db/t/dt=2/b`)
	err := writeErr(l, "db/t/dt=2/new", creat, "mine\n", func() {
		server.Delete(t, other, "else/where/b")
		if _, err := server.Client().DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: &other}); err != nil {
			t.Error(err)
		}
	})
	wantErrno(t, "close", err, syscall.EIO)
	if got := inBucket(t, l, 0, l.Key("db/t/dt=2/new")); got != "absent" {
		t.Errorf("at the partition's usual place: %q", got)
	}
	l.WaitLog(`path="db/t/dt=2/new"`)
	if n := strings.Count(l.Log(), `path="db/t/dt=2/new"`); n != 1 || !strings.Contains(l.Log(), "no such bucket") {
		t.Errorf("logged %d times:\n%s", n, l.Log())
	}
	if ids := spools(t, l); len(ids) != 1 {
		t.Fatalf("staged: %q, want one", ids)
	}
	if _, err := server.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &other}); err != nil {
		t.Fatal(err)
	}
	l.Unmount()
	l.Start()
	l.MustSh(`echo "recover publish ` + stagedStatus(t, l)[0].ID + `" > .lakefs/ctl`)
	if got := inBucket(t, l, 1, "else/where/new"); got != "mine\n" {
		t.Errorf("after all: %q", got)
	}
	wantContent(t, l, "db/t/dt=2/new", "mine\n")
}

// TestTableIsDroppedUnderAWriterOfAPartition that was registered: the bytes are where
// the partition was, and the close says that it is in no table.
func TestTableIsDroppedUnderAWriterOfAPartition(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: noWait}, inCatalog(), goodTable())
	err := writeErr(l, "db/t/dt=2/new", creat, "mine\n", func() { l.Catalog.Server.Remove("db", "t") })
	wantErrno(t, "close", err, syscall.EIO)
	if got := inBucket(t, l, 1, "else/where/new"); got != "mine\n" {
		t.Errorf("where the partition was: %q", got)
	}
	if got := inBucket(t, l, 0, l.Key("db/t/dt=2/new")); got != "absent" {
		t.Errorf("at the partition's usual place: %q", got)
	}
	wantNames(t, l, "db", "good", "good.json")
	wantContent(t, l, "db/good/k=1/f", "good\n")
}
