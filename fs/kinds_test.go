package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// kindCase is a row of "Kinds of table": what reading its directory and making
// a file there answer.
type kindCase struct {
	table       mounttest.Table
	read, write syscall.Errno
	reason      string // in status.json
}

// kindCases are the tables db.NAME that a manifest can express. The data of each
// is in data.bin, where it has a location of its own.
func kindCases(l *mounttest.Lake, outsideLake string) map[string]kindCase {
	cases := map[string]kindCase{
		"delta":       {mounttest.Table{Parameters: map[string]string{"spark.sql.sources.provider": "DELTA"}}, 0, syscall.EROFS, "Delta"},
		"iceberg":     {mounttest.Table{Parameters: map[string]string{"table_type": "ICEBERG"}}, 0, syscall.EROFS, "GlueCatalog"},
		"hudi":        {mounttest.Table{Parameters: map[string]string{"spark.sql.sources.provider": "hudi"}}, 0, syscall.EROFS, "Hudi"},
		"source":      {mounttest.Table{Parameters: map[string]string{"spark.sql.sources.provider": "json"}}, 0, 0, ""},
		"no_source":   {mounttest.Table{Parameters: map[string]string{"spark.sql.sources.provider": "jdbc"}}, 0, syscall.EROFS, "jdbc"},
		"serde":       {mounttest.Table{Serde: "com.example.OddSerDe"}, 0, syscall.EROFS, "com.example.OddSerDe"},
		"property":    {mounttest.Table{Properties: map[string]string{"odd.property": "1"}}, 0, syscall.EROFS, "odd.property"},
		"nested":      {mounttest.Table{Columns: []string{"a:struct<x:int>"}}, 0, syscall.EROFS, "column a"},
		"projection":  {mounttest.Table{Parameters: map[string]string{"projection.enabled": "true"}}, 0, syscall.EROFS, "projection.enabled"},
		"encrypted":   {mounttest.Table{Parameters: map[string]string{"has_encrypted_data": "true"}}, 0, syscall.EROFS, "has_encrypted_data"},
		"stored_by":   {mounttest.Table{Parameters: map[string]string{"storage_handler": "org.example.Handler"}}, 0, syscall.EROFS, "STORED BY"},
		"bad_format":  {mounttest.Table{Parameters: map[string]string{"type": "format-table", "file.format": "csv"}}, 0, syscall.EROFS, "file.format=csv"},
		"branch":      {mounttest.Table{Parameters: map[string]string{"type": "format-table", "file.format": "orc", "branch": "dev"}}, 0, syscall.EROFS, "branch=dev"},
		"cut":         {mounttest.Table{Manifest: `{"manifest_version": 1,`}, syscall.EIO, syscall.EIO, "cut"},
		"empty":       {mounttest.Table{Manifest: " "}, syscall.EIO, syscall.EIO, ""},
		"version":     {mounttest.Table{Manifest: `{"manifest_version": 7}`}, syscall.EIO, syscall.EIO, "7"},
		"no_location": {mounttest.Table{Manifest: `{"manifest_version": 1, "database_name": "db", "name": "no_location", "storage_descriptor": {}}`}, syscall.EIO, syscall.EIO, "location"},
		"placeholder": {mounttest.Table{Manifest: `{"manifest_version": 1, "database_name": "db", "name": "placeholder", "storage_descriptor": {"location": "/x/t-__PLACEHOLDER__"}}`}, syscall.EIO, syscall.EIO, "placeholder"},
		"no_part":     {mounttest.Table{Parameters: map[string]string{"spark.sql.sources.schema.numParts": "3", "spark.sql.sources.schema.part.0": "{", "spark.sql.sources.schema.part.2": "}"}}, syscall.EIO, syscall.EIO, "part"},
		"secret":      {mounttest.Table{Manifest: `{"manifest_version": 1, "database_name": "db", "name": "secret", "sqe": {"secret": "nobody"}, "storage_descriptor": {"location": "x"}}`}, syscall.EIO, syscall.EIO, "nobody"},
		"outside":     {mounttest.Table{Location: outsideLake}, syscall.EACCES, syscall.EACCES, "allow-location"},
		"dotdot":      {mounttest.Table{Location: "_data/../../x"}, syscall.EACCES, syscall.EACCES, `\"..\"`},
		"hdfs":        {mounttest.Table{Location: "hdfs://nn/wh/t"}, syscall.EOPNOTSUPP, syscall.EOPNOTSUPP, "hdfs"},
		"s3":          {mounttest.Table{Location: "s3://bucket/t"}, syscall.EACCES, syscall.EACCES, "local folder"},
		"etc":         {mounttest.Table{Location: "file:///etc"}, syscall.EACCES, syscall.EACCES, ""},
		"host":        {mounttest.Table{Location: "file://other/etc"}, syscall.EACCES, syscall.EACCES, "host"},
		"link":        {mounttest.Table{Location: "_data/out"}, syscall.EACCES, syscall.EACCES, ""},
		"a_file":      {mounttest.Table{Location: "_data/plain"}, syscall.EIO, syscall.EIO, "is a file"},
	}
	if l.OnS3() {
		delete(cases, "link") // no such thing in a bucket
		cases["s3"] = kindCase{mounttest.Table{Location: "s3://bucket/t"}, syscall.EACCES, syscall.EACCES, "allow-location"}
		for name, location := range map[string]string{"etc": "file:///etc", "host": "file://other/etc"} {
			cases[name] = kindCase{mounttest.Table{Location: location}, syscall.EOPNOTSUPP, syscall.EOPNOTSUPP, "in a bucket"}
		}
	}
	for _, format := range []string{"parquet", "orc", "avro", "csv", "text", "json", "sequence", "rc"} {
		cases[format] = kindCase{mounttest.Table{Format: format}, 0, 0, ""}
	}
	return cases
}

func kindTables(cases map[string]kindCase) []mounttest.Table {
	tables := []mounttest.Table{{Database: "db", Name: "view", Type: "VIRTUAL_VIEW", ViewText: "select 1"}}
	for name, c := range cases {
		c.table.Database, c.table.Name = "db", name
		if c.read == 0 {
			c.table.Files = map[string]string{"data.bin": "raw\x00bytes", "d/more.bin": "m"}
		}
		tables = append(tables, c.table)
	}
	return tables
}

func TestKindsOfTable(t *testing.T) {
	t.Parallel()
	l := mounttest.New(t, mounttest.Options{Files: map[string]string{"_data/plain": "x"}})
	away := elsewhere(t, l)
	cases := kindCases(l, away.location)
	l.AddTables(kindTables(cases)...)
	if _, linked := cases["link"]; linked {
		if err := os.Symlink(away.location, filepath.Join(l.Source, "_data/out")); err != nil {
			t.Fatal(err)
		}
	}
	l.Start("--write=delete", "--check-format=off")
	listing := l.MustSh(`ls -p db`)
	for name, c := range cases {
		dir := "db/" + name
		if !strings.Contains("\n"+listing, "\n"+name+"/\n") || !strings.Contains("\n"+listing, "\n"+name+".json\n") {
			t.Errorf("%s is not listed with its directory and its JSON", name)
		}
		wantContent(t, l, dir+".json", l.StoredManifest(dir))
		_, err := l.Names(dir)
		wantErrno(t, name+": readdir", err, c.read)
		if c.read == 0 {
			wantContent(t, l, dir+"/data.bin", "raw\x00bytes")
			wantNames(t, l, dir, "d", "data.bin")
		} else {
			wantErrno(t, name+": look-up below", statErr(l, dir+"/x"), c.read)
		}
		wantErrno(t, name+": create", openErr(l, dir+"/new.bin", creat), c.write)
		wantErrno(t, name+": mkdir", mkdir(l, dir+"/newd"), c.write)
		if c.read == 0 && c.write != 0 {
			wantErrno(t, name+": overwrite", openErr(l, dir+"/data.bin", trunc), c.write)
			wantErrno(t, name+": unlink", unlink(l, dir+"/data.bin"), c.write)
			wantErrno(t, name+": rename", rename(l, dir+"/data.bin", dir+"/x"), c.write)
			wantErrno(t, name+": rename of a directory", rename(l, dir+"/d", dir+"/e"), c.write)
			wantErrno(t, name+": rename into it", rename(l, "db/csv/data.bin", dir+"/x"), c.write)
			wantErrno(t, name+": rename out of it", rename(l, dir+"/data.bin", "db/csv/x"), c.write)
			wantErrno(t, name+": rmdir", rmdir(l, dir+"/d"), c.write)
		}
		raw, err := l.ReadFile(dir + "/.lakefs/status.json")
		if err != nil || !strings.Contains(raw, c.reason) {
			t.Errorf("%s: status.json does not say %q: %v\n%s", name, c.reason, err, raw)
		}
		if s := status(t, l, dir).Catalog; s.Readable != (c.read == 0) || s.Writable != (c.write == 0) {
			t.Errorf("%s: status.json says readable %v, writable %v", name, s.Readable, s.Writable)
		}
	}
	wantContent(t, l, "db/view.json", l.StoredManifest("db/view"))
	wantErrno(t, "the directory of a view", statErr(l, "db/view"), syscall.ENOENT)
	wantErrno(t, "mkdir of the directory of a view", mkdir(l, "db/view"), syscall.EPERM)
}

// Rule 22: a format table takes new files, and none of its own is ever changed.
func TestFormatTableIsInsertOnly(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Flags: []string{"--write=delete"}, Tables: []mounttest.Table{{
		Database: "db", Name: "t", Keys: []string{"dt:date", "n:int"},
		Parameters: map[string]string{"type": "format-table", "file.format": "parquet"},
		Files:      map[string]string{"dt=19723/n=7/a.parquet": mounttest.Parquet(t, 3)},
	}}})
	const p = "db/t/dt=19723/n=7"
	wantErrno(t, "overwrite", openErr(l, p+"/a.parquet", trunc), syscall.EROFS)
	wantErrno(t, "append", openErr(l, p+"/a.parquet", app), syscall.EROFS)
	wantErrno(t, "truncate", truncate(l, p+"/a.parquet"), syscall.EROFS)
	wantErrno(t, "rename", rename(l, p+"/a.parquet", p+"/b.parquet"), syscall.EROFS)
	write(t, l, p+"/c.parquet", mounttest.Parquet(t, 5))
	wantErrno(t, "rename onto a published file", rename(l, p+"/c.parquet", p+"/a.parquet"), syscall.EROFS)
	for name, want := range map[string]syscall.Errno{
		"dt=2024-01-01": syscall.EINVAL, "dt=foo": syscall.EINVAL, "dt=019723": syscall.EINVAL, "dt=19724": 0,
		"dt=__DEFAULT_PARTITION__": 0, "dt=__HIVE_DEFAULT_PARTITION__": syscall.EINVAL, "dt=19723/n=07": syscall.EINVAL, "dt=19723/n=8": 0,
	} {
		wantErrno(t, "mkdir "+name, mkdir(l, "db/t/"+name), want)
	}
	write(t, l, p+"/_SUCCESS", "") // hidden: no data
	l.MustSh("cd " + p + `; echo 1 > _SUCCESS; echo 2 >> _SUCCESS`)
	wantContent(t, l, p+"/_SUCCESS", "1\n2\n")
	wantErrno(t, "unlink", unlink(l, p+"/a.parquet"), 0)
	wantNames(t, l, p, "_SUCCESS", "c.parquet")
}

// another is a place outside the lake where a table may lie: a folder, or another
// bucket.
type another struct {
	location, uri string
	put           func(name, content string)
	get           func(name string) string
}

func elsewhere(t *testing.T, l *mounttest.Lake) another {
	t.Helper()
	if l.OnS3() {
		server, _ := l.Bucket()
		bucket := server.Bucket(t)
		at := "s3://" + bucket + "/away"
		return another{
			at, at,
			func(name, content string) { server.Put(t, bucket, "away/"+name, []byte(content)) },
			func(name string) string { return string(server.Get(t, bucket, "away/"+name)) },
		}
	}
	dir := t.TempDir()
	return another{
		dir, "file://" + dir,
		func(name, content string) { putOutside(t, filepath.Join(dir, name), content) },
		func(name string) string { return outside(t, filepath.Join(dir, name)) },
	}
}

// Edge case 11 and rule 43: a location is checked at every load.
func TestEdge11LocationMovedOutsideTheAllowList(t *testing.T) {
	t.Parallel()
	l := mounttest.New(t, mounttest.Options{Tables: []mounttest.Table{text("t", map[string]string{"f": "x"})}})
	l.Start(shortTTL...)
	wantContent(t, l, "db/t/f", "x")
	away := elsewhere(t, l)
	away.put("f", "secret")
	moved := text("t", nil)
	moved.Location = away.location
	raw, err := moved.JSON()
	if err != nil {
		t.Fatal(err)
	}
	l.PutManifest("db/t", string(raw))
	l.Eventually("EACCES", 0, func() bool { return os.IsPermission(statErr(l, "db/t/f")) })
	wantErrno(t, "create", openErr(l, "db/t/g", creat), syscall.EACCES)
	if s := status(t, l, "db/t").Catalog; !strings.Contains(s.Reason, "--allow-location") {
		t.Errorf("the reason names no remedy: %q", s.Reason)
	}
	l.Remount("--allow-location=" + away.location)
	wantContent(t, l, "db/t/f", "secret")
	write(t, l, "db/t/g", "new")
	if got := away.get("g"); got != "new" {
		t.Errorf("written to the allowed directory: %q", got)
	}
	if uri, err := xattr(l, "db/t/g", "user.lakefs.uri"); uri != away.uri+"/g" || err != nil {
		t.Errorf("uri: %q, %v", uri, err)
	}
}

// Case 54: whatever a manifest is, it fails alone, shows its bytes, and heals.
func TestCase54BrokenManifestsFailAlone(t *testing.T) {
	t.Parallel()
	good := text("good", map[string]string{"f": "x"})
	raw, err := good.JSON()
	if err != nil {
		t.Fatal(err)
	}
	whole := string(raw)
	broken := map[string]string{
		"zero": "", "cut": whole[:100], "bom": "\xef\xbb\xbf" + whole, "trailing": whole + "x", "twice": strings.Replace(whole, `"name":`, `"name": "a", "name":`, 1),
		"array": "[" + whole + "]", "utf8": strings.Replace(whole, "good", "go\xffod", 1), "huge": whole + strings.Repeat(" ", 50<<20), "unlike": whole,
	}
	l := mounttest.New(t, mounttest.Options{Tables: []mounttest.Table{good}})
	for name, m := range broken {
		l.PutManifest("db/"+name, m)
	}
	l.Start(shortTTL...)
	for name, m := range broken {
		wantContent(t, l, "db/"+name+".json", m[:min(len(m), 1<<20)])
		wantContent(t, l, "db/"+name+"/.lakefs/entry.json", m[:min(len(m), 1<<20)])
		if info, err := l.Lstat("db/" + name + ".json"); err != nil || info.Size() != int64(min(len(m), 1<<20)) {
			t.Errorf("%s.json: %v, %v", name, info, err)
		}
		_, err := l.Names("db/" + name)
		wantErrno(t, name+": readdir", err, syscall.EIO)
		if s := status(t, l, "db/"+name).Catalog; s.Reason == "" || s.Readable {
			t.Errorf("%s: status says %+v", name, s)
		}
	}
	wantContent(t, l, "db/good/f", "x")
	for name := range broken {
		healed := text(name, nil)
		l.AddTables(healed)
		l.Eventually(name+" heals", 0, func() bool { _, err := l.Names("db/" + name); return err == nil })
	}
}

// Case 55: what is in an entry is shown to the byte, each time.
func TestCase55EntriesAreShownToTheByte(t *testing.T) {
	t.Parallel()
	table := text("t", nil)
	table.Parameters = map[string]string{"a<b && c>d": "12345678901234567", "sep": "\u2028", "nul": "\x01"}
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{table}})
	want := l.StoredManifest("db/t")
	for range 3 {
		wantContent(t, l, "db/t.json", want)
		wantContent(t, l, "db/t/.lakefs/entry.json", want)
		l.MustSh(`echo refresh > .lakefs/ctl`)
	}
	if got := l.MustSh(`jq -r '.parameters["a<b && c>d"]' db/t.json`); got != "12345678901234567\n" {
		t.Errorf("parameter: %q", got)
	}
}
