package fs_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

const registration = "BatchCreatePartition"

func TestFirstPublishRegistersThePartition(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog(), twoKeys())
	l.MustSh(`cd db/t; mkdir dt=7; ls -d dt=7`)
	wantRegistered(t, l, "t", "1", "2", "3")
	l.Catalog.Server.Reset()
	l.MustSh(`cd db/t; echo 7 > dt=7/f; echo 8 > dt=7/g; echo 1 > dt=1/b; mkdir dt=8; echo x > dt=8/_SUCCESS; cd ../two; mkdir -p dt=9/k=z; cp ../t/dt=7/f dt=9/k=z/f`)
	wantRegistered(t, l, "t", "1", "2", "3", "7")
	wantRegistered(t, l, "two", "1/x", "1/y", "9/z")
	if n := l.Catalog.Server.Requests()[registration]; n != 2 {
		t.Errorf("%d registrations, want 2", n)
	}
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3", "dt=7", "dt=8")
	wantNames(t, l, "db/two", "dt=1", "dt=9")
	l.Remount()
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3", "dt=7", "dt=8") // dt=8 is this mount's alone
	second := l.Second()
	wantNames(t, second, "db/t", "dt=1", "dt=2", "dt=3", "dt=7")
	if got := second.MustSh(`cat db/t/dt=7/* db/two/dt=9/*/*`); got != "7\n8\n7\n" {
		t.Errorf("another mount reads %q", got)
	}
}

// TestWithoutCatalogWrites: the directory stays that of this mount, or no listing
// would have it.
func TestWithoutCatalogWrites(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--catalog-writes=none", "--write=delete"}}, inCatalog())
	l.MustSh(`cd db/t; mkdir -p dt=7/sub; echo 7 > dt=7/f; echo 8 > dt=7/sub/g`)
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3", "dt=7")
	l.Remount()
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3", "dt=7")
	wantRegistered(t, l, "t", "1", "2", "3")
	if n := l.Catalog.Server.Requests()[registration]; n != 0 {
		t.Errorf("%d registrations", n)
	}
	l.MustSh(`cd db/t; rm -r dt=7; test ! -e dt=7`)
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3")
}

// TestRegistrationFails: the file is published, the close says that something is
// wrong, nothing is staged, and the next publish registers the partition. A rename
// has moved nothing.
func TestRegistrationFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault gluetest.Fault
		want  syscall.Errno
	}{
		"refused":          {gluetest.Denied(), syscall.EACCES},
		"broken":           {gluetest.Error(http.StatusBadRequest, "InvalidInputException", "no"), syscall.EIO},
		"the table's gone": {gluetest.Error(http.StatusBadRequest, "EntityNotFoundException", "no such table"), syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := mountGlue(t, mounttest.Options{}, inCatalog())
			l.MustSh(`mkdir db/t/dt=7 db/t/dt=8`)
			l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: tt.fault})
			wantErrno(t, "close", writeErr(l, "db/t/dt=7/f", syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, "7\n", nil), tt.want)
			wantStore(t, l, "db/t/dt=7/f", "7\n")
			if n := strings.Count(l.Log(), "is not registered in the catalog"); n != 1 {
				t.Errorf("logged %d times, want once:\n%s", n, l.Log())
			}
			l.Eventually("nothing staged", 20*time.Second, func() bool { return len(stagedStatus(t, l)) == 0 && len(spools(t, l)) == 0 })
			if got := l.MustSh(`cat db/t/dt=7/f; stat -c %s db/t/dt=7/f`); got != "7\n2\n" {
				t.Errorf("the file reads %q", got)
			}
			wantErrno(t, "rename", rename(l, "db/t/dt=1/a", "db/t/dt=8/a"), tt.want)
			wantStore(t, l, "db/t/dt=1/a", "1,one\n")
			wantAbsent(t, l, "db/t/dt=8/a")
			wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3", "dt=7", "dt=8")
			wantRegistered(t, l, "t", "1", "2", "3")
			l.Catalog.Server.Clear()
			l.MustSh(`echo more >> db/t/dt=7/f; mv db/t/dt=1/a db/t/dt=8/a; cat db/t/dt=8/a`)
			wantStore(t, l, "db/t/dt=8/a", "1,one\n")
			wantAbsent(t, l, "db/t/dt=1/a")
			wantRegistered(t, l, "t", "1", "2", "3", "7", "8")
			wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3", "dt=7", "dt=8")
		})
	}
}

// TestMovedTreeIsRegistered: a directory that goes into a new partition registers
// it, once; where that fails, nothing is moved.
func TestMovedTreeIsRegistered(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprint(refused), func(t *testing.T) {
			t.Parallel()
			table := inCatalog()
			for i := range 40 {
				table.Partitions[0].Files[fmt.Sprintf("sub/%02d", i)] = fmt.Sprint(i)
			}
			l := mountGlue(t, mounttest.Options{}, table)
			l.MustSh(`mkdir db/t/dt=7`)
			l.Catalog.Server.Reset()
			if refused {
				denied := l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: gluetest.Denied()})
				wantErrno(t, "rename", rename(l, "db/t/dt=1/sub", "db/t/dt=7/sub"), syscall.EACCES)
				wantRegistered(t, l, "t", "1", "2", "3")
				if files := storedTree(t, l, "db/t/dt=7"); len(files) > 0 || len(storedTree(t, l, "db/t/dt=1/sub")) != 40 {
					t.Errorf("%d files at the new name", len(files))
				}
				if n := denied.Hits(); n != 1 {
					t.Errorf("%d registrations were asked for, want 1", n)
				}
				wantNames(t, l, "db/t/dt=1", "a", "sub")
				wantNames(t, l, "db/t/dt=7")
				denied.Remove()
				l.Catalog.Server.Reset()
			}
			wantErrno(t, "rename", rename(l, "db/t/dt=1/sub", "db/t/dt=7/sub"), 0)
			wantRegistered(t, l, "t", "1", "2", "3", "7")
			if n := l.Catalog.Server.Requests()[registration]; n != 1 {
				t.Errorf("%d registrations, want 1", n)
			}
			if files := storedTree(t, l, "db/t/dt=7/sub"); len(files) != 40 || files["39"] != "39" {
				t.Errorf("%d files at the new name", len(files))
			}
			wantNames(t, l, "db/t/dt=1", "a")
			if got := l.MustSh(`ls db/t/dt=7/sub | wc -l`); got != "40\n" {
				t.Errorf("%q names are listed", got)
			}
		})
	}
}

// TestCrashBetweenPublishAndRegistration: the next mount registers. A rename has not
// begun then.
func TestCrashBetweenPublishAndRegistration(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	l.MustSh(`mkdir db/t/dt=7 db/t/dt=8; cat db/t/dt=1/a`)
	hung := l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: gluetest.Hang()})
	var done sync.WaitGroup
	done.Go(func() { l.Sh(`echo 7 > db/t/dt=7/f`) })
	hung.Wait(t, 1)
	done.Go(func() { l.Sh(`mv db/t/dt=1/a db/t/dt=8/a`) }) // its registration waits for that one
	wantInStore := func(name, want string) {
		t.Helper()
		if got, there := inStore(t, l, name); !there || got != want {
			t.Errorf("%s in the store: %q, there %v; want %q", name, got, there, want)
		}
	}
	wantInStore("db/t/dt=7/f", "7\n")
	wantInStore("db/t/dt=1/a", "1,one\n")
	l.Kill()
	done.Wait()
	l.Catalog.Server.Clear()
	wantRegistered(t, l, "t", "1", "2", "3")
	l.Start()
	l.Eventually("nothing staged", 20*time.Second, func() bool { return len(stagedStatus(t, l)) == 0 && len(spools(t, l)) == 0 })
	wantRegistered(t, l, "t", "1", "2", "3", "7")
	wantInStore("db/t/dt=7/f", "7\n")
	wantInStore("db/t/dt=1/a", "1,one\n")
	wantAbsent(t, l, "db/t/dt=8/a")
}

// TestCase53_WritersOfOneNewPartition: one partition, and no writer is told of
// another's.
func TestCase53_WritersOfOneNewPartition(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	second := l.Second()
	l.MustSh(`mkdir db/t/dt=7`)
	second.MustSh(`mkdir db/t/dt=7`)
	var writers sync.WaitGroup
	for i := range 20 {
		lake := l
		if i%2 == 1 {
			lake = second
		}
		writers.Go(func() {
			if r := lake.Sh(fmt.Sprintf(`echo %d > db/t/dt=7/f%d`, i, i)); r.Code != 0 {
				t.Errorf("writer %d: exit code %d, %s", i, r.Code, r.Err)
			}
		})
	}
	writers.Wait()
	wantRegistered(t, l, "t", "1", "2", "3", "7")
	if got := l.MustSh(`ls db/t/dt=7 | wc -l`); got != "20\n" {
		t.Errorf("%q files are listed", got)
	}
}

// TestCase53_RegisteredElsewhereMeanwhile: what is written goes where the catalog
// says, and no entry is replaced.
func TestCase53_RegisteredElsewhereMeanwhile(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: noWait}, inCatalog())
	l.MustSh(`mkdir db/t/dt=7`)
	l.Catalog.Call("CreatePartition", l.Catalog.At(`{"DatabaseName": "db", "TableName": "t", "PartitionInput": {"Values": ["7"], "StorageDescriptor": {
		"Location": "s3://{1}/seven", "InputFormat": "org.apache.hadoop.mapred.TextInputFormat",
		"SerdeInfo": {"SerializationLibrary": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"}}}}`))
	l.MustSh(`echo 7 > db/t/dt=7/f; cat db/t/dt=7/f`)
	if got := inBucket(t, l, 1, "seven/f"); got != "7\n" {
		t.Errorf("the partition's location has %q", got)
	}
	wantRegistered(t, l, "t", "1", "2", "3", "7")
	if n := l.Catalog.Server.Requests()[registration]; n != 0 {
		t.Errorf("%d registrations", n)
	}
}

// TestCase53_AnswerOfARegistrationIsLost: it took effect, which the mount finds out.
func TestCase53_AnswerOfARegistrationIsLost(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--io-timeout=4s"}}, inCatalog())
	l.MustSh(`mkdir db/t/dt=7`)
	lost := l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Times: 1, Fault: gluetest.HangAnswer()})
	l.MustSh(`echo 7 > db/t/dt=7/f`)
	if lost.Hits() != 1 {
		t.Errorf("%d answers were lost, want 1", lost.Hits())
	}
	wantStore(t, l, "db/t/dt=7/f", "7\n")
	wantRegistered(t, l, "t", "1", "2", "3", "7")
}

// TestPublishIntoAKnownPartition asks the catalog for nothing.
func TestPublishIntoAKnownPartition(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--metadata-ttl=5m", "--negative-ttl=5m"}}, inCatalog())
	l.MustSh(`cd db/t; ls; ls dt=1 dt=2; mkdir dt=7; echo 7 > dt=7/f`)
	l.Catalog.Server.Reset()
	l.MustSh(`cd db/t; for i in 1 2 3; do echo $i > dt=1/n$i; echo $i >> dt=2/b; mv dt=1/n$i dt=2/; echo $i > dt=7/n$i; done`)
	if asked := l.Catalog.Server.Requests(); len(asked) > 0 {
		t.Errorf("publishing into known partitions asks the catalog: %v", asked)
	}
}
