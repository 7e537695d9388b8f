package fs_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// The edge cases of catalogs that a user meets at a mount, in Glue and in manifests.

// onBoth mounts the tables in a Glue catalog and in manifests, and runs a test in each.
func onBoth(t *testing.T, o mounttest.Options, tables []mounttest.Table, test func(t *testing.T, l *mounttest.Lake)) {
	t.Helper()
	t.Run("Glue", func(t *testing.T) {
		t.Parallel()
		var all []mounttest.GlueTable
		for _, table := range tables {
			all = append(all, mounttest.GlueTable{Table: table})
		}
		test(t, mountGlue(t, o, all...))
	})
	t.Run("manifests", func(t *testing.T) {
		t.Parallel()
		o := o // the other runs beside it
		o.Tables = tables
		test(t, mounttest.Mount(t, o))
	})
}

// TestEdge02_BytesThatAreEscapedAndNot: control bytes are, é, space and } are not; the
// value is what they stand for.
func TestEdge02_BytesThatAreEscapedAndNot(t *testing.T) {
	t.Parallel()
	tables := []mounttest.Table{{Database: "db", Name: "t", Format: "csv", Keys: []string{"k"}}}
	onBoth(t, mounttest.Options{}, tables, func(t *testing.T, l *mounttest.Lake) {
		t.Helper()
		values := map[string]string{"k=%00%1F%7F": "\x00\x1f\x7f", "k=é": "é", "k= ": " ", "k=}": "}", "k=é }": "é }", "k=%7B}": "{}"}
		want := map[string]string{}
		for name, value := range values {
			wantErrno(t, "mkdir "+name, mkdir(l, "db/t/"+name), 0)
			write(t, l, "db/t/"+name+"/f", name)
			wantStore(t, l, "db/t/"+name+"/f", name)
			want[value] = l.Location("db/t") + "/" + name
		}
		for _, name := range []string{"k=%00\x1f\x7f", "k=%C3%A9", "k=%20", "k=%7D", "k={%7D", "k=%7b}"} {
			wantErrno(t, "mkdir "+name, mkdir(l, "db/t/"+name), syscall.EEXIST)
		}
		if l.Catalog == nil {
			return
		}
		if got := registeredAt(t, l, "t"); !maps.Equal(got, want) {
			t.Errorf("the catalog has %q, want %q", got, want)
		}
	})
}

// TestEdge04_TwoEqualSigns make no new name; one that exists splits at its first.
func TestEdge04_TwoEqualSigns(t *testing.T) {
	t.Parallel()
	tables := []mounttest.Table{{Database: "db", Name: "t", Format: "csv", Keys: []string{"k"}, Files: map[string]string{"k=a=b/old": "old\n", "k==/old": "=\n"}}}
	onBoth(t, mounttest.Options{}, tables, func(t *testing.T, l *mounttest.Lake) {
		t.Helper()
		for _, name := range []string{"k=c=d", "k=c==", "k==c", "k=c="} {
			wantErrno(t, "mkdir "+name, mkdir(l, "db/t/"+name), syscall.EINVAL)
			wantErrno(t, "stat "+name, statErr(l, "db/t/"+name), syscall.ENOENT)
		}
		wantContent(t, l, "db/t/k=a=b/old", "old\n")
		wantErrno(t, "its escaped spelling", mkdir(l, "db/t/k=a%3Db"), syscall.EEXIST)
		write(t, l, "db/t/k=a=b/new", "new\n")
		write(t, l, "db/t/k==/new", "new\n")
		wantStore(t, l, "db/t/k=a=b/new", "new\n")
		wantNames(t, l, "db/t", "k=a=b", "k==")
		if l.Catalog == nil {
			return
		}
		at := l.Location("db/t")
		if got, want := registeredAt(t, l, "t"), (map[string]string{"a=b": at + "/k=a=b", "=": at + "/k=="}); !maps.Equal(got, want) {
			t.Errorf("the catalog has %q, want %q", got, want)
		}
	})
}

// TestEdge05_KeysAboveATable are no part of a partition: its spec is dt alone.
func TestEdge05_KeysAboveATable(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, csvAt("t", "s3://{0}/wh/env=prod/dt=0/t", `,"PartitionKeys":[{"Name":"dt","Type":"int"}]`))
	putInBucket(t, l, 0, "wh/env=prod/dt=0/t/dt=1/old", "old\n")
	l.Start()
	wantContent(t, l, "db/t/dt=1/old", "old\n")
	wantErrno(t, "mkdir env=prod", mkdir(l, "db/t/env=prod"), syscall.EINVAL)
	write(t, l, "db/t/dt=1/new", "new\n")
	wantErrno(t, "mkdir dt=2", mkdir(l, "db/t/dt=2"), 0)
	write(t, l, "db/t/dt=2/f", "2\n")
	wantNames(t, l, "db/t", "dt=1", "dt=2")
	wantLocations(t, l, map[string]string{"t: 1": "s3://{0}/wh/env=prod/dt=0/t/dt=1", "t: 2": "s3://{0}/wh/env=prod/dt=0/t/dt=2"})
	for key, want := range map[string]string{"dt=1/new": "new\n", "dt=2/f": "2\n"} {
		if got := inBucket(t, l, 0, "wh/env=prod/dt=0/t/"+key); got != want {
			t.Errorf("the object of %s is %q", key, got)
		}
	}

	m := mounttest.New(t, mounttest.Options{})
	m.AddTables(mounttest.Table{Database: "db", Name: "t", Format: "csv", Keys: []string{"dt:int"}, Location: m.Location("db/env=prod/t")})
	m.PutStored("db/env=prod/t/dt=1/old", "old\n")
	m.Start()
	wantContent(t, m, "db/t/dt=1/old", "old\n")
	wantErrno(t, "mkdir env=prod in manifests", mkdir(m, "db/t/env=prod"), syscall.EINVAL)
	m.MustSh(`mkdir db/t/dt=2; echo 2 > db/t/dt=2/f`)
	if got, _ := inStore(t, m, "db/env=prod/t/dt=2/f"); got != "2\n" {
		t.Errorf("dt=2/f is %q in the store", got)
	}
	if s := status(t, m, "db/t").Catalog; s.Partitions != 2 {
		t.Errorf("status.json counts %d partitions, want 2", s.Partitions)
	}
}

// TestEdge06_EqualIntegers: a table of Hive's has one directory of a value, a format
// table one spelling, which it names.
func TestEdge06_EqualIntegers(t *testing.T) {
	t.Parallel()
	parquet := mounttest.Parquet(t, 1)
	format := formatTable("paimon", []string{"d:int"}).Table
	format.Files = map[string]string{"d=7/f": parquet}
	tables := []mounttest.Table{{Database: "db", Name: "hive", Format: "csv", Keys: []string{"d:int"}, Files: map[string]string{"d=7/f": "7\n"}}, format}
	onBoth(t, mounttest.Options{}, tables, func(t *testing.T, l *mounttest.Lake) {
		t.Helper()
		write(t, l, "db/hive/d=7/g", "7\n") // in Glue: from here on it is registered
		for table, want := range map[string]syscall.Errno{"hive": syscall.EEXIST, "paimon": syscall.EINVAL} {
			wantErrno(t, table+": mkdir d=07", mkdir(l, "db/"+table+"/d=07"), want)
			wantErrno(t, table+": stat d=07", statErr(l, "db/"+table+"/d=07"), syscall.ENOENT)
			wantErrno(t, table+": create in d=07", openErr(l, "db/"+table+"/d=07/f", creat), syscall.ENOENT)
			wantNames(t, l, "db/"+table, "d=7")
		}
		wantLogNames(t, l, "db/paimon/d=07", `d=7`)
		wantErrno(t, "mkdir d=007 where d=7 is not", mkdir(l, "db/hive/d=008"), 0)
		write(t, l, "db/hive/d=008/f", "8\n")
		wantStore(t, l, "db/hive/d=008/f", "8\n")
		wantErrno(t, "mkdir d=8 beside d=008", mkdir(l, "db/hive/d=8"), syscall.EEXIST)
		if l.Catalog != nil {
			wantRegistered(t, l, "hive", "008", "7")
		}
	})
}

// TestEdge07_DatesOfFormatTables are counts of days, or dates, as the table says.
func TestEdge07_DatesOfFormatTables(t *testing.T) {
	t.Parallel()
	parquet := mounttest.Parquet(t, 1)
	tables := []mounttest.Table{formatTable("legacy", []string{"dt:date"}).Table, formatTable("dates", []string{"dt:date"}, "partition.legacy-name", "false").Table}
	onBoth(t, mounttest.Options{}, tables, func(t *testing.T, l *mounttest.Lake) {
		t.Helper()
		for dir, other := range map[string]string{"legacy/dt=19723": "dt=2024-01-01", "dates/dt=2024-01-01": "dt=2024-1-1"} {
			table, name, _ := strings.Cut(dir, "/")
			for _, bad := range []string{other, "dt=foo", "dt=2024-02-30", "dt="} {
				wantErrno(t, table+": mkdir "+bad, mkdir(l, "db/"+table+"/"+bad), syscall.EINVAL)
			}
			wantLogNames(t, l, "db/"+table+"/"+other, name)
			wantErrno(t, "mkdir "+dir, mkdir(l, "db/"+dir), 0)
			write(t, l, "db/"+dir+"/f", parquet)
			wantStore(t, l, "db/"+dir+"/f", parquet)
			wantNames(t, l, "db/"+table, name)
		}
		wantErrno(t, "a count of days where dates are", mkdir(l, "db/dates/dt=19723"), syscall.EINVAL)
	})
}

// TestEdge08_ValuesAlone: the null name is listed and written, hidden names are not
// taken, and metadata is where there is some.
func TestEdge08_ValuesAlone(t *testing.T) {
	t.Parallel()
	parquet := mounttest.Parquet(t, 1)
	alone := func(name string, files ...string) mounttest.Table {
		table := formatTable(name, []string{"k"}, "format-table.partition-path-only-value", "true").Table
		table.Files = map[string]string{}
		for _, f := range files {
			table.Files[f] = parquet
		}
		return table
	}
	tables := []mounttest.Table{alone("plain", "__DEFAULT_PARTITION__/f"), alone("meta", "a/f", "schema/schema-0")}
	onBoth(t, mounttest.Options{Flags: []string{"--write=delete"}}, tables, func(t *testing.T, l *mounttest.Lake) {
		t.Helper()
		for path, want := range map[string]syscall.Errno{
			"plain/_x": syscall.EINVAL, "plain/.x": syscall.EINVAL, "plain/_": syscall.EINVAL, "plain/schema": 0, "plain/branch": 0, "plain/__HIVE_DEFAULT_PARTITION__": syscall.EINVAL,
			"meta/schema": syscall.EEXIST, "meta/branch": syscall.EROFS, "meta/schema/sub": syscall.EROFS, "meta/schemas": 0, "meta/__DEFAULT_PARTITION__": 0, "meta/a%2Fb": 0,
		} {
			wantErrno(t, "mkdir "+path, mkdir(l, "db/"+path), want)
			if want == 0 {
				write(t, l, "db/"+path+"/f", parquet)
				wantStore(t, l, "db/"+path+"/f", parquet)
			}
		}
		write(t, l, "db/plain/__DEFAULT_PARTITION__/g", parquet)
		wantStore(t, l, "db/plain/__DEFAULT_PARTITION__/g", parquet)
		wantErrno(t, "create in schema/", openErr(l, "db/meta/schema/new", creat), syscall.EROFS)
		wantErrno(t, "create in branch/", openErr(l, "db/meta/branch/new", creat), syscall.ENOENT)
		wantErrno(t, "change in schema/", openErr(l, "db/meta/schema/schema-0", syscall.O_WRONLY|syscall.O_TRUNC), syscall.EROFS)
		wantErrno(t, "unlink in schema/", unlink(l, "db/meta/schema/schema-0"), syscall.EROFS)
		wantErrno(t, "rename out of schema/", rename(l, "db/meta/schema/schema-0", "db/meta/a/new"), syscall.EROFS)
		wantErrno(t, "rename into schema/", rename(l, "db/meta/a/f", "db/meta/schema/f"), syscall.EROFS)
		wantStore(t, l, "db/meta/schema/schema-0", parquet)
		wantNames(t, l, "db/plain", "__DEFAULT_PARTITION__", "schema", "branch")
		for table, want := range map[string]int{"plain": 3, "meta": 4} {
			if s := status(t, l, "db/"+table).Catalog; s.Partitions != want {
				t.Errorf("status.json of %s counts %d partitions, want %d", table, s.Partitions, want)
			}
		}
		if l.Catalog != nil {
			wantNothingRegistered(t, l)
		}
	})
}

// wantLogNames asserts that a line of the log is about a path and names the right one.
func wantLogNames(t *testing.T, l *mounttest.Lake, path, right string) {
	t.Helper()
	l.Eventually("logged: "+path+", and "+right, seenWithin, func() bool {
		for line := range strings.Lines(l.Log()) {
			if strings.Contains(line, path) && strings.Contains(strings.ReplaceAll(line, path, ""), `"`+right+`\"`) {
				return true
			}
		}
		return false
	})
}

// TestEdge09_101NewPartitions are two batches; one that another program registers
// meanwhile is fine, and stays where that program has it.
func TestEdge09_101NewPartitions(t *testing.T) {
	t.Parallel()
	const n = 101
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	l.MustSh(fmt.Sprintf(`mkdir %[1]s; cd %[1]s; for i in $(seq 1001 %[2]d); do mkdir dt=$i; echo $i,new >dt=$i/f; done`, txn, 1000+n))
	l.Catalog.Server.Reset()
	l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Times: 1, Fault: func(_ *gluetest.Exchange, next gluetest.Next) (gluetest.Answer, error) {
		addPartition(l, "1001", "s3://{1}/theirs")
		addPartition(l, "1101", "s3://{0}/"+l.Key("db/t")+"/dt=1101")
		return next()
	}})
	l.MustSh(`echo commit > ` + txn + `/ctl`)
	var sizes []int
	for _, call := range l.Catalog.Server.Calls(registration) {
		list, _ := call.Input["PartitionInputList"].([]any)
		sizes = append(sizes, len(list))
	}
	if !slices.Equal(sizes, []int{100, 1}) {
		t.Errorf("batches of %d partitions, want 100 and 1", sizes)
	}
	got := registeredAt(t, l, "t")
	for i := 1001; i <= 1000+n; i++ {
		want := fmt.Sprintf("%s/dt=%d", l.Location("db/t"), i)
		if i == 1001 {
			want = l.Catalog.At("s3://{1}/theirs")
		}
		if at := got[fmt.Sprint(i)]; at != want {
			t.Errorf("dt=%d is registered at %q, want %q", i, at, want)
		}
	}
	if len(got) != n+3 {
		t.Errorf("the catalog has %d partitions, want %d", len(got), n+3)
	}
	l.WaitLog(elsewhereWarning)
	if s := strings.Count(l.Log(), elsewhereWarning); s != 1 {
		t.Errorf("warned %d times of another location:\n%s", s, l.Log())
	}
}

// TestCase53_ErrorsInsideAGoodAnswer are read, each for its own partition.
func TestCase53_ErrorsInsideAGoodAnswer(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	l.MustSh(`mkdir ` + txn + `; cd ` + txn + `; for i in 7 8 9; do mkdir dt=$i; echo $i >dt=$i/f; done`)
	refused := l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: func(_ *gluetest.Exchange, next gluetest.Next) (gluetest.Answer, error) {
		answer, err := next()
		answer.Body = []byte(`{"Errors":[{"PartitionValues":["8"],"ErrorDetail":{"ErrorCode":"InvalidInputException","ErrorMessage":"not eight"}}]}`)
		_, _ = l.Catalog.TryCall("DeletePartition", `{"DatabaseName":"db","TableName":"t","PartitionValues":["8"]}`)
		return answer, err
	}})
	if r := l.Sh(`echo commit > ` + txn + `/ctl`); r.Code == 0 || !strings.Contains(r.Err, "Input/output error") {
		t.Errorf("commit: exit code %d, %s", r.Code, r.Err)
	}
	wantRegistered(t, l, "t", "1", "2", "3", "7", "9")
	for _, i := range []string{"7", "8", "9"} {
		wantStore(t, l, "db/t/dt="+i+"/f", i+"\n")
	}
	if got := l.MustSh(`jq -c '[.unregistered[] | .path, (.reason | contains("not eight"))]' .lakefs/status.json`); got != `["db/t/dt=8",true]`+"\n" {
		t.Errorf("status.json has the unregistered %s", got)
	}
	refused.Remove()
	l.MustSh(`echo more >> db/t/dt=8/f`)
	wantRegistered(t, l, "t", "1", "2", "3", "7", "8", "9")
	if got := l.MustSh(`jq -c '.unregistered // [] | length' .lakefs/status.json`); got != "0\n" {
		t.Errorf("status.json has %s unregistered after all", got)
	}
}
