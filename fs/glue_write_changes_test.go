package fs_test

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// The catalog changes while a file is written. It goes where it was to go when it was
// opened, whole, and the log tells where nobody would look for it.

// movePartition gives a partition of db.t another location, as another program would.
func movePartition(l *mounttest.Lake, value, location string) {
	dropPartition(l, value)
	addPartition(l, value, location)
}

func addPartition(l *mounttest.Lake, value, location string) {
	l.Catalog.Server.AddPartition("db", "t", l.Catalog.At(fmt.Sprintf(`{"Values":[%q],"StorageDescriptor":{"Location":%q,"InputFormat":"org.apache.hadoop.mapred.TextInputFormat",
"SerdeInfo":{"SerializationLibrary":"org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"}}}`, value, location)))
}

func dropPartition(l *mounttest.Lake, value string) {
	if _, err := l.Catalog.TryCall("DeletePartition", map[string]any{"DatabaseName": "db", "TableName": "t", "PartitionValues": []string{value}}); err != nil {
		panic(err) // what calls it has no testing.TB to fail
	}
}

// What the log says of a partition that has moved, and of one that is gone.
const (
	elsewhereWarning = "the catalog has this partition at another location"
	movedWarning     = "what was written is in no partition"
)

func TestPartitionMovesUnderAWriter(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		name, was string
		flags     int
	}{
		"new":    {"new", "", creat},
		"append": {"b", "2,two\n", syscall.O_WRONLY | syscall.O_APPEND},
		"over":   {"b", "", syscall.O_WRONLY | syscall.O_TRUNC},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mountGlue(t, mounttest.Options{Flags: noWait}, inCatalog())
			putInBucket(t, l, 1, "moved/b", "of the new location\n")
			err := writeErr(l, "db/t/dt=2/"+tt.name, tt.flags, "mine\n", func() { movePartition(l, "2", "s3://{1}/moved") })
			wantErrno(t, "close", err, 0)
			if got := inBucket(t, l, 1, "else/where/"+tt.name); got != tt.was+"mine\n" {
				t.Errorf("where it was to go: %q", got)
			}
			if got := inBucket(t, l, 1, "moved/b"); got != "of the new location\n" {
				t.Errorf("the object of that name at the new location: %q", got)
			}
			if n := strings.Count(l.Log(), elsewhereWarning); n != 1 {
				t.Errorf("warned %d times, want once:\n%s", n, l.Log())
			}
			wantContent(t, l, "db/t/dt=2/b", "of the new location\n")
			wantNames(t, l, "db/t/dt=2", "b")
			l.MustSh(`echo more >> db/t/dt=2/b`)
			if got := inBucket(t, l, 1, "moved/b"); got != "of the new location\nmore\n" {
				t.Errorf("the next write: %q", got)
			}
			if n := l.Catalog.Server.Requests()[registration]; n != 0 {
				t.Errorf("%d registrations", n)
			}
		})
	}
}

// TestPartitionIsDroppedUnderAWriter: one at the default place is registered anew; one
// elsewhere is not, for at the default place lie other files, and the log tells.
func TestPartitionIsDroppedUnderAWriter(t *testing.T) {
	t.Parallel()
	for value, at := range map[string]string{"1": "default", "2": "elsewhere"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			l := mountGlue(t, mounttest.Options{Flags: noWait}, inCatalog())
			err := writeErr(l, "db/t/dt="+value+"/new", creat, "mine\n", func() { dropPartition(l, value) })
			wantErrno(t, "close", err, 0)
			if at == "default" {
				wantRegistered(t, l, "t", "1", "2", "3")
				wantStore(t, l, "db/t/dt=1/new", "mine\n")
				wantContent(t, l, "db/t/dt=1/a", "1,one\n")
				return
			}
			if got := inBucket(t, l, 1, "else/where/new"); got != "mine\n" {
				t.Errorf("where it was to go: %q", got)
			}
			wantRegistered(t, l, "t", "1", "3")
			if n := strings.Count(l.Log(), movedWarning); n != 1 {
				t.Errorf("warned %d times, want once:\n%s", n, l.Log())
			}
			wantNames(t, l, "db/t", "dt=1", "dt=3")
			l.MustSh(`echo 2 > db/t/dt=2/new`) // a new partition by now
			wantRegistered(t, l, "t", "1", "2", "3")
			wantStore(t, l, "db/t/dt=2/new", "2\n")
		})
	}
}

// TestTableGoesUnderAWriter: the file is published, and the close says that its
// partition could not be registered.
func TestTableGoesUnderAWriter(t *testing.T) {
	t.Parallel()
	for what, gone := range map[string]func(l *mounttest.Lake){
		"dropped":  func(l *mounttest.Lake) { l.Catalog.Server.Remove("db", "t") },
		"database": func(l *mounttest.Lake) { l.Catalog.Server.Remove("db", "") },
		"broken": func(l *mounttest.Lake) {
			l.Catalog.Server.SetTable("db", csvAt("t", "", `,"PartitionKeys":[{"Name":"dt","Type":"int"}]`))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mountGlue(t, mounttest.Options{Flags: noWait}, inCatalog(), goodTable())
			l.MustSh(`mkdir db/t/dt=7`)
			key := l.Key("db/t/dt=7/f")
			err := writeErr(l, "db/t/dt=7/f", creat, "7\n", func() { gone(l) })
			wantErrno(t, "close", err, syscall.EIO)
			if got := inBucket(t, l, 0, key); got != "7\n" {
				t.Errorf("the object is %q", got)
			}
			l.WaitLog("is not registered in the catalog")
			if what != "database" {
				wantContent(t, l, "db/good/k=1/f", "good\n")
			}
			if n := l.Catalog.Server.Requests()[registration]; n != 0 && what != "dropped" {
				t.Errorf("%d registrations", n)
			}
			if ids := spools(t, l); len(ids) != 0 {
				t.Errorf("staged: %q", ids)
			}
		})
	}
}

// TestTableMovesUnderAWriter: the file goes where it was to go, no partition is made
// of the table's new place, and the log tells.
func TestTableMovesUnderAWriter(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: noWait}, inCatalog())
	l.MustSh(`mkdir db/t/dt=7`)
	key := l.Key("db/t/dt=7/f")
	err := writeErr(l, "db/t/dt=7/f", creat, "7\n", func() {
		l.Catalog.Server.SetTable("db", l.Catalog.At(csvAt("t", "s3://{1}/t2", `,"PartitionKeys":[{"Name":"dt","Type":"int"}]`)))
	})
	wantErrno(t, "close", err, 0)
	if got := inBucket(t, l, 0, key); got != "7\n" {
		t.Errorf("where it was to go: %q", got)
	}
	wantLocations(t, l, map[string]string{})
	l.WaitLog(movedWarning)
	l.MustSh(`mkdir -p db/t/dt=7; echo 8 > db/t/dt=7/g`)
	wantLocations(t, l, map[string]string{"t: 7": "s3://{1}/t2/dt=7"})
	if got := inBucket(t, l, 1, "t2/dt=7/g"); got != "8\n" {
		t.Errorf("the next write: %q", got)
	}
}

// TestPartitionsAppearUnderWriters: while files are written into new directories
// another program registers them, some elsewhere: nothing is lost, and no entry is
// replaced.
func TestPartitionsAppearUnderWriters(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	l.MustSh(`for i in $(seq 10 29); do mkdir db/t/dt=$i; done`)
	l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: func(x *gluetest.Exchange, next gluetest.Next) (gluetest.Answer, error) {
		list, _ := x.Call.Input["PartitionInputList"].([]any)
		for _, input := range list { // as many as were asked for at once
			p, _ := input.(map[string]any)
			values, _ := p["Values"].([]any)
			if value := fmt.Sprint(values[0]); value[1]%2 == 1 { // another comes first
				l.Catalog.Server.AddPartition("db", "t", l.Catalog.At(`{"Values":["`+value+`"],"StorageDescriptor":{"Location":"s3://{1}/theirs/`+value+`"}}`))
			}
		}
		return next()
	}})
	var writers sync.WaitGroup
	for i := 10; i < 30; i++ {
		writers.Go(func() {
			if r := l.Sh(fmt.Sprintf(`echo %d > db/t/dt=%[1]d/f`, i)); r.Code != 0 {
				t.Errorf("%d: %s", i, r.Err)
			}
		})
	}
	writers.Wait()
	for i := 10; i < 30; i++ {
		if got := inBucket(t, l, 0, l.Key(fmt.Sprintf("db/t/dt=%d/f", i))); got != fmt.Sprintln(i) {
			t.Errorf("%d: the object is %q", i, got)
		}
	}
	if n := strings.Count(l.Log(), elsewhereWarning); n != 10 {
		t.Errorf("warned %d times, want of 10 partitions:\n%s", n, l.Log())
	}
	l.MustSh(`echo refresh > .lakefs/ctl; for i in 11 29; do echo more > db/t/dt=$i/g; done; echo more >> db/t/dt=10/f`)
	for i, want := range map[int]string{11: "more\n", 29: "more\n", 13: "absent"} {
		if got := inBucket(t, l, 1, fmt.Sprintf("theirs/%d/g", i)); got != want {
			t.Errorf("%d: the other's location has %q, want %q", i, got, want)
		}
	}
}
