package fs_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Tables of a Glue catalog whose partitions are the directories that a listing finds.

// formatTable is a format table of Parquet files with further parameters.
func formatTable(name string, keys []string, parameters ...string) mounttest.GlueTable {
	all := map[string]string{"type": "format-table", "file.format": "parquet"}
	for i := 0; i < len(parameters); i += 2 {
		all[parameters[i]] = parameters[i+1]
	}
	return mounttest.GlueTable{Table: mounttest.Table{Database: "db", Name: name, Format: "text", Keys: keys, Parameters: all}}
}

// wantNothingRegistered asserts that the catalog was asked neither for partitions nor
// to register any.
func wantNothingRegistered(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	for op, n := range l.Catalog.Server.Requests() {
		if strings.Contains(op, "Partition") {
			t.Errorf("%d requests of %s", n, op)
		}
	}
}

// TestRule22_FormatTablesAreInsertOnly: new files, and nothing changed of published
// ones, in a Glue catalog too.
func TestRule22_FormatTablesAreInsertOnly(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete"}}, formatTable("f", []string{"dt:date", "n:int"}), formatTable("whole", nil))
	parquet := mounttest.Parquet(t, 3)
	l.MustSh(`mkdir -p db/f/dt=19723/n=7`)
	for _, dir := range []string{"db/f/dt=19723/n=7", "db/whole"} {
		wantErrno(t, "create", writeErr(l, dir+"/f.parquet", creat, parquet, nil), 0)
		wantErrno(t, "create text", writeErr(l, dir+"/text", creat, "text", nil), syscall.EBADMSG)
		wantErrno(t, "append", openErr(l, dir+"/f.parquet", syscall.O_WRONLY|syscall.O_APPEND), syscall.EROFS)
		wantErrno(t, "write over", writeErr(l, dir+"/f.parquet", syscall.O_RDWR, "x", nil), syscall.EROFS)
		wantErrno(t, "truncate", l.Do("truncate", func() error { return syscall.Truncate(l.Path(dir+"/f.parquet"), 1) }), syscall.EROFS)
		wantStore(t, l, dir+"/f.parquet", parquet)
		l.MustSh(`cd ` + dir + `; cp f.parquet g.parquet; cp f.parquet h.parquet; rm g.parquet; cat h.parquet >/dev/null`)
		wantErrno(t, "rename", rename(l, dir+"/f.parquet", dir+"/i.parquet"), syscall.EROFS)
	}
	l.Remount()
	wantNames(t, l, "db/f/dt=19723/n=7", "f.parquet", "h.parquet")
	wantNothingRegistered(t, l)
}

// TestRule34_SpellingOfFormatTables: the table decides the name of a value.
func TestRule34_SpellingOfFormatTables(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{},
		formatTable("legacy", []string{"dt:date"}), formatTable("dates", []string{"dt:date"}, "partition.legacy-name", "false"),
		formatTable("kinds", []string{"b:boolean", "n:int"}), formatTable("null", []string{"k"}, "partition.default-name", "nil"))
	parquet := mounttest.Parquet(t, 1)
	l.MustSh(`mkdir db/kinds/b=false`)
	for path, want := range map[string]syscall.Errno{
		"legacy/dt=19723": 0, "legacy/dt=2024-01-01": syscall.EINVAL, "legacy/dt=foo": syscall.EINVAL, "legacy/dt=019723": syscall.EINVAL,
		"legacy/dt=__DEFAULT_PARTITION__": 0,
		"dates/dt=2024-01-01":             0, "dates/dt=2024-1-1": syscall.EINVAL, "dates/dt=19723": syscall.EINVAL, "dates/dt=2024-02-30": syscall.EINVAL,
		"kinds/b=true": 0, "kinds/b=TRUE": syscall.EINVAL, "kinds/b=1": syscall.EINVAL, "kinds/b=false/n=7": 0, "kinds/b=false/n=07": syscall.EINVAL,
		"kinds/b=false/n=2147483648": syscall.EINVAL, "null/k=nil": 0,
	} {
		wantErrno(t, "mkdir "+path, mkdir(l, "db/"+path), want)
	}
	for _, dir := range []string{"legacy/dt=19723", "legacy/dt=__DEFAULT_PARTITION__", "dates/dt=2024-01-01", "kinds/b=false/n=7", "null/k=nil"} {
		write(t, l, "db/"+dir+"/f", parquet)
		wantStore(t, l, "db/"+dir+"/f", parquet)
	}
	wantNothingRegistered(t, l)
}

// TestRule20_ValueOnlyDirectories: the value is the name; one that would be hidden is
// refused, but for the null name.
func TestRule20_ValueOnlyDirectories(t *testing.T) {
	t.Parallel()
	table := formatTable("v", []string{"dt:date", "k"}, "format-table.partition-path-only-value", "true", "partition.legacy-name", "false")
	parquet := mounttest.Parquet(t, 3)
	table.Files = map[string]string{"2024-01-01/a/f": parquet}
	meta := formatTable("meta", []string{"k"}, "format-table.partition-path-only-value", "true")
	meta.Files = map[string]string{"schema/schema-0": "{}", "a/f": parquet}
	l := mountGlue(t, mounttest.Options{}, table, meta)
	wantContent(t, l, "db/v/2024-01-01/a/f", parquet)
	l.MustSh(`mkdir -p db/v/2024-01-02/b db/v/2024-01-02/a%3Db db/v/2024-01-02/__DEFAULT_PARTITION__ db/v/__DEFAULT_PARTITION__/schema`)
	for _, dir := range []string{"2024-01-02/b", "2024-01-02/a%3Db", "2024-01-02/__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__/schema"} {
		write(t, l, "db/v/"+dir+"/f", parquet)
		wantStore(t, l, "db/v/"+dir+"/f", parquet)
	}
	for path, want := range map[string]syscall.Errno{
		"v/dt=2024-01-01": syscall.EINVAL, "v/2024-1-1": syscall.EINVAL, "v/2024-01-01/_x": syscall.EINVAL, "v/2024-01-01/.x": syscall.EINVAL, "v/2024-01-01/a=b": syscall.EINVAL,
		"meta/schema/x": syscall.EROFS, "meta/branch": syscall.EROFS, "meta/_x": syscall.EINVAL, "meta/b": 0,
	} {
		wantErrno(t, "mkdir "+path, mkdir(l, "db/"+path), want)
	}
	wantErrno(t, "write into metadata", openErr(l, "db/meta/schema/schema-1", creat), syscall.EROFS)
	wantErrno(t, "change of metadata", openErr(l, "db/meta/schema/schema-0", syscall.O_WRONLY|syscall.O_TRUNC), syscall.EROFS)
	wantNothingRegistered(t, l)
}

// TestRule08_PartitionsOfTheFileSystem: what listing finds is there, what the catalog
// has registered is not asked for, and nothing is registered.
func TestRule08_PartitionsOfTheFileSystem(t *testing.T) {
	t.Parallel()
	table := inCatalog()
	table.Parameters = map[string]string{"spark.sql.partitionProvider": "filesystem"}
	l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete"}}, table)
	wantNames(t, l, "db/t", "dt=1", "dt=2") // dt=3 has no objects
	wantContent(t, l, "db/t/dt=2/old", "old\n")
	l.MustSh(`cd db/t; mkdir dt=7; echo 7 > dt=7/f; mv dt=1/a dt=7/a; rm -r dt=2; cp -r dt=7 dt=8; mkdir dt=9; rmdir dt=9 dt=1`)
	wantNames(t, l, "db/t", "dt=7", "dt=8")
	wantStore(t, l, "db/t/dt=8/a", "1,one\n")
	if got := inBucket(t, l, 1, "else/where/b"); got != "2,two\n" {
		t.Errorf("where the catalog has dt=2: %q", got)
	}
	wantNothingRegistered(t, l)
	wantRegistered(t, l, "t", "1", "2", "3")
}
