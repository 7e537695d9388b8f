package fs_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Rules of format tables and of names, as they are met at the mount of a Glue catalog.

// TestRule17_TheFilesAreAFormatTable: what a listing finds is the table, whatever the
// catalog has; file.format is every file's, whatever the classes say.
func TestRule17_TheFilesAreAFormatTable(t *testing.T) {
	t.Parallel()
	parquet := mounttest.Parquet(t, 2)
	var tables []mounttest.GlueTable
	for name, format := range map[string]string{"p": "parquet", "o": "ORC", "c": "csv", "none": ""} {
		table := formatTable(name, []string{"k"}, "type", "FORMAT-TABLE", "file.format", format)
		table.Files = map[string]string{"k=a/f": parquet}
		table.Partitions = []mounttest.GluePartition{{Values: []string{"gone"}, Location: "s3://{1}/gone", Files: map[string]string{"g": parquet}}}
		tables = append(tables, table)
	}
	l := mountGlue(t, mounttest.Options{Flags: noWait}, tables...)
	for name, want := range map[string]struct {
		parquet, orc syscall.Errno
		reason       string
	}{"p": {0, syscall.EBADMSG, ""}, "o": {syscall.EBADMSG, 0, ""}, "c": {syscall.EROFS, syscall.EROFS, "file.format=csv"}, "none": {syscall.EROFS, syscall.EROFS, "file.format"}} {
		dir := "db/" + name
		wantNames(t, l, dir, "k=a")
		wantErrno(t, "a partition of the catalog alone", statErr(l, dir+"/k=gone"), syscall.ENOENT)
		l.PutStored(dir+"/k=b/f", parquet)
		wantNames(t, l, dir, "k=a", "k=b")
		wantContent(t, l, dir+"/k=b/f", parquet)
		wantErrno(t, name+": Parquet", writeErr(l, dir+"/k=b/p", creat, parquet, nil), want.parquet)
		wantErrno(t, name+": ORC", writeErr(l, dir+"/k=b/o", creat, orcFile, nil), want.orc)
		if s := catalogStatus(t, l, dir); !s.Readable || s.Writable != (want.reason == "") || !strings.Contains(s.Reason, want.reason) || s.Kind != "format-table" {
			t.Errorf("status of %s: %+v", name, s)
		}
	}
	wantNothingRegistered(t, l)
}

// TestRule18_KeysInNamesOrNot: key=value, or the value alone where the table says so;
// either way, the other is no partition.
func TestRule18_KeysInNamesOrNot(t *testing.T) {
	t.Parallel()
	parquet := mounttest.Parquet(t, 1)
	l := mountGlue(t, mounttest.Options{},
		formatTable("named", []string{"a", "b:int"}), formatTable("alone", []string{"a", "b:int"}, "format-table.partition-path-only-value", "true"),
		formatTable("said", []string{"a", "b:int"}, "format-table.partition-path-only-value", "false"))
	good := map[string]string{"named": "a=x y/b=7", "alone": "x y/7", "said": "a=x y/b=7"}
	bad := map[string][]string{"named": {"x y", "b=7", "a=x=y", "A=x"}, "alone": {"a=x", "x:y", "_x"}, "said": {"x y"}}
	for table, dir := range good {
		for _, name := range bad[table] {
			wantErrno(t, table+": mkdir "+name, mkdir(l, "db/"+table+"/"+name), syscall.EINVAL)
		}
		l.MustSh(`mkdir -p 'db/` + table + `/` + dir + `'`)
		write(t, l, "db/"+table+"/"+dir+"/f", parquet)
		wantStore(t, l, "db/"+table+"/"+dir+"/f", parquet)
		if got := slices.Collect(maps.Keys(storedTree(t, l, "db/"+table))); !slices.Equal(got, []string{dir + "/f"}) {
			t.Errorf("%s: the store has %q, want %s/f alone", table, got, dir)
		}
	}
	wantNothingRegistered(t, l)
}

// TestRule19_HiddenNames are no partitions, are not checked and register nothing; but
// the null name does, and the name of a key that begins with _.
func TestRule19_HiddenNames(t *testing.T) {
	t.Parallel()
	null := "__HIVE_DEFAULT_PARTITION__"
	hive := mounttest.GlueTable{Table: mounttest.Table{Database: "db", Name: "h", Keys: []string{"_year:int", "k"}}}
	l := mountGlue(t, mounttest.Options{}, hive, formatTable("f", []string{"k"}, "format-table.partition-path-only-value", "true"))
	parquet := mounttest.Parquet(t, 1)
	for _, name := range []string{"db/h/_logs", "db/h/.x", "db/h/_other=1", "db/h/_year=2024/k=a/_sub", "db/h/_year=2024/k=a/.sub", "db/h/_year=2024/_k=a", "db/f/k/_sub"} {
		l.MustSh(`mkdir -p ` + name + `; echo text > ` + name + `/f; echo text > ` + name + `/g.parquet`)
		wantStore(t, l, name+"/f", "text\n")
	}
	for _, name := range []string{"db/h/_year=2024/k=a/_SUCCESS", "db/h/_year=2024/k=a/.part.crc2", "db/f/k/_note"} {
		write(t, l, name, "text\n")
		wantStore(t, l, name, "text\n")
	}
	wantRegistered(t, l, "h")
	wantErrno(t, "text that counts", writeErr(l, "db/h/_year=2024/k=a/text", creat, "text", nil), syscall.EBADMSG)
	wantRegistered(t, l, "h")
	for _, dir := range []string{"db/h/_year=2024/k=a", "db/h/_year=" + null + "/k=" + null, "db/f/__DEFAULT_PARTITION__"} {
		l.MustSh(`mkdir -p ` + dir)
		wantErrno(t, "text into "+dir, writeErr(l, dir+"/text2", creat, "text", nil), syscall.EBADMSG)
		write(t, l, dir+"/f", parquet)
		wantStore(t, l, dir+"/f", parquet)
	}
	wantRegistered(t, l, "h", "2024/a", null+"/"+null)
	if s := catalogStatus(t, l, "db/h"); s.Partitions != 2 || s.Unregistereds != 0 {
		t.Errorf("status.json counts %d partitions and %d that are not registered: %q", s.Partitions, s.Unregistereds, s.Unregistered)
	}
	if s := catalogStatus(t, l, "db/f"); s.Partitions != 2 { // k and the null name
		t.Errorf("status.json of f counts %d partitions, want 2", s.Partitions)
	}
}

// TestRule21_MetadataElsewhere: schema and branch are ordinary values where no schema/
// lies below the table, and below the first level; else they are the table's own.
func TestRule21_MetadataElsewhere(t *testing.T) {
	t.Parallel()
	parquet := mounttest.Parquet(t, 1)
	alone := []string{"format-table.partition-path-only-value", "true"}
	under, named, elsewhere := formatTable("under", []string{"a", "b"}, alone...), formatTable("named", []string{"a", "b"}), formatTable("elsewhere", []string{"a", "b"}, alone...)
	under.Files = map[string]string{"schema/schema-0": "{}", "branch/branch-dev/x": "x", "v/schema/f": parquet}
	named.Files = map[string]string{"schema/schema-0": "{}"}
	l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete"}}, under, named, elsewhere)
	for path, want := range map[string]syscall.Errno{
		"under/schema/x": syscall.EROFS, "under/branch/x": syscall.EROFS, "under/branch/branch-dev/y": syscall.EROFS, "under/v/branch": 0, "under/w": 0,
		"named/schema/x": syscall.EROFS, "named/branch": syscall.EROFS, "named/a=schema": 0, "named/a=branch": 0,
		"elsewhere/schema": 0, "elsewhere/branch": 0,
	} {
		wantErrno(t, "mkdir "+path, mkdir(l, "db/"+path), want)
	}
	wantErrno(t, "mkdir elsewhere/schema/branch", mkdir(l, "db/elsewhere/schema/branch"), 0)
	for _, dir := range []string{"under/v/branch", "under/v/schema", "elsewhere/schema/branch"} {
		write(t, l, "db/"+dir+"/new", parquet)
		wantStore(t, l, "db/"+dir+"/new", parquet)
	}
	for _, path := range []string{"under/schema/schema-0", "under/branch/branch-dev/x", "named/schema/schema-0"} {
		before := stored(t, l, "db/"+path)
		wantErrno(t, "write over "+path, openErr(l, "db/"+path, syscall.O_WRONLY|syscall.O_TRUNC), syscall.EROFS)
		wantErrno(t, "unlink "+path, unlink(l, "db/"+path), syscall.EROFS)
		wantContent(t, l, "db/"+path, before)
	}
	if s := catalogStatus(t, l, "db/under"); s.Partitions != 1 { // v; w has no files
		t.Errorf("status.json counts %d partitions, want v alone", s.Partitions)
	}
	wantNothingRegistered(t, l)
}

// TestRule35_TheDirectoryHasTheValue: a file that stores another value of its key is
// published as it is, in its directory's partition.
func TestRule35_TheDirectoryHasTheValue(t *testing.T) {
	t.Parallel()
	program := mounttest.Venv(t, "python3", "pyarrow", "duckdb")
	l := mountGlue(t, mounttest.Options{}, mounttest.GlueTable{Table: mounttest.Table{Database: "db", Name: "p", Columns: []string{"id:bigint"}, Keys: []string{"dt"}}})
	out := mustExec(t, l, program, "-c", `
import pyarrow as pa, pyarrow.parquet as pq, os, duckdb
os.mkdir("db/p/dt=b")
pq.write_table(pa.table({"id": [1, 2], "dt": ["a", "z"]}), "db/p/dt=b/f.parquet")
print(pq.ParquetFile("db/p/dt=b/f.parquet").read()["dt"].to_pylist(), duckdb.sql("select distinct dt from read_parquet('db/p/*/*', hive_partitioning=true)").fetchall())`)
	if out != "['a', 'z'] [('b',)]\n" {
		t.Errorf("the file's own values, and what DuckDB reads: %s", out)
	}
	wantRegistered(t, l, "p", "b")
}

// TestRule36_KeysOfFormatTables: of their types alone; and not every column is a key.
func TestRule36_KeysOfFormatTables(t *testing.T) {
	t.Parallel()
	good := map[string]string{"boolean": "true", "tinyint": "7", "smallint": "-7", "int": "7", "bigint": "7", "string": "x", "date": "19723"}
	bad := []string{"double", "decimal(3,1)", "timestamp", "varchar(3)", "array<int>"}
	name := func(typ string) string {
		return "t_" + strings.NewReplacer("(", "_", ")", "_", ",", "_", "<", "_", ">", "_").Replace(typ)
	}
	var tables []mounttest.GlueTable
	for typ := range good {
		tables = append(tables, formatTable(name(typ), []string{"k:" + strings.ToUpper(typ)}))
	}
	for _, typ := range bad {
		tables = append(tables, formatTable(name(typ), []string{"k:" + typ}))
	}
	all := formatTable("all", []string{"id:int"})
	all.Columns = []string{"id:int"}
	l := mountGlue(t, mounttest.Options{}, append(tables, all)...)
	parquet := mounttest.Parquet(t, 1)
	for typ, value := range good {
		l.MustSh(`mkdir db/` + name(typ) + `/k=` + value)
		write(t, l, "db/"+name(typ)+"/k="+value+"/f", parquet)
		wantStore(t, l, "db/"+name(typ)+"/k="+value+"/f", parquet)
	}
	for _, table := range append(mapped(bad, name), "all") {
		wantErrno(t, table+": mkdir", mkdir(l, "db/"+table+"/k=7"), syscall.EROFS)
		wantErrno(t, table+": create", openErr(l, "db/"+table+"/f", creat), syscall.EROFS)
		want := "partition key k"
		if table == "all" {
			want = "every column is a partition column"
		}
		if s := catalogStatus(t, l, "db/"+table); !s.Readable || s.Writable || !strings.Contains(s.Reason, want) {
			t.Errorf("status of %s: %+v", table, s)
		}
	}
	wantNothingRegistered(t, l)
}

// TestRule37_OptionsThatAreNotActedOn are refused by name where they would change which
// files are read or written, and pass where they touch nothing.
func TestRule37_OptionsThatAreNotActedOn(t *testing.T) {
	t.Parallel()
	refused := [][2]string{{"metastore.partitioned-table", "true"}, {"format-table.commit-hive-sync-url", "thrift://x"}, {"branch", "dev"}, {"file.format", "avro"}}
	pass := [][2]string{
		{"metastore.partitioned-table", "false"},
		{"branch", "main"},
		{"data-file.path-directory", "x"},
		{"format-table.implementation", "engine"},
		{"write-buffer-spillable", "true"},
		{"sink.writer-memory", "1g"},
	}
	var tables []mounttest.GlueTable
	for i, option := range append(refused, pass...) {
		tables = append(tables, formatTable(fmt.Sprint("t", i), []string{"k"}, option[0], option[1]))
	}
	l := mountGlue(t, mounttest.Options{}, tables...)
	parquet := mounttest.Parquet(t, 1)
	for i, option := range append(refused, pass...) {
		dir := fmt.Sprint("db/t", i)
		s := catalogStatus(t, l, dir)
		if i >= len(refused) {
			l.MustSh(`mkdir ` + dir + `/k=v`)
			write(t, l, dir+"/k=v/f", parquet)
			wantStore(t, l, dir+"/k=v/f", parquet)
			if !s.Writable || s.Reason != "" {
				t.Errorf("%s=%s: status %+v", option[0], option[1], s)
			}
			continue
		}
		wantErrno(t, "mkdir", mkdir(l, dir+"/k=v"), syscall.EROFS)
		wantErrno(t, "create", openErr(l, dir+"/f", creat), syscall.EROFS)
		if s.Writable || !s.Readable || !strings.Contains(s.Reason, option[0]) {
			t.Errorf("%s=%s: status %+v", option[0], option[1], s)
		}
		if files := storedTree(t, l, dir); len(files) > 0 {
			t.Errorf("%s=%s: the store has %q", option[0], option[1], files)
		}
	}
}

func mapped(list []string, by func(string) string) (out []string) {
	for _, s := range list {
		out = append(out, by(s))
	}
	return out
}
