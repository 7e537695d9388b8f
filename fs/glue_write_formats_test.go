package fs_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// A publish is checked by the format of the partition, not of the table.

// wantPublished writes a file, and asserts that it is published as it is.
func wantPublished(t *testing.T, l *mounttest.Lake, path, bucketKey, content string) {
	t.Helper()
	wantErrno(t, "write "+path, writeErr(l, path, creat, content, nil), 0)
	if got := inBucket(t, l, 0, bucketKey); got != content {
		t.Errorf("%s has %s, want %s", bucketKey, brief(got), brief(content))
	}
}

// wantBadFormat writes a file, and asserts that the close refuses its format, that
// nothing is in the bucket, and that the bytes are staged.
func wantBadFormat(t *testing.T, l *mounttest.Lake, path, bucketKey, content string) {
	t.Helper()
	wantErrno(t, "write "+path, writeErr(l, path, creat, content, nil), syscall.EBADMSG)
	if got := inBucket(t, l, 0, bucketKey); got != "absent" {
		t.Errorf("%s has %s", bucketKey, brief(got))
	}
	dir, base := path[:strings.LastIndex(path, "/")], path[strings.LastIndex(path, "/")+1:]
	for _, name := range staged(t, l, dir) {
		if strings.HasPrefix(name, base+"~") {
			wantContent(t, l, dir+"/.lakefs/staged/"+name, content)
			return
		}
	}
	t.Errorf("%s is not staged", path)
}

// avroFile and orcFile are whole, and without rows.
const (
	avroFile = "Obj\x01\x02\x16avro.schema\x0a\"int\"\x00" + "0123456789abcdef"
	orcFile  = "ORC" + "\x22\x02\x08\x0c" + "\x08\x04\x82\xf4\x03\x03ORC" + "\x09"
)

// TestRule57_PublishIntoPartitionsOfOtherFormats: each partition takes files of its own
// format, whatever their names and whatever the table's format.
func TestRule57_PublishIntoPartitionsOfOtherFormats(t *testing.T) {
	t.Parallel()
	partitions := func(table string) []mounttest.GluePartition {
		return []mounttest.GluePartition{
			{Values: []string{"own"}, Location: "s3://{0}/" + table + "/own"},
			{Values: []string{"avro"}, Format: "avro", Location: "s3://{0}/" + table + "/avro"},
			{Values: []string{"orc"}, Format: "orc", Location: "s3://{0}/" + table + "/orc"},
			{Values: []string{"parquet"}, Format: "parquet", Location: "s3://{0}/" + table + "/parquet"},
			{Values: []string{"csv"}, Format: "csv", Location: "s3://{0}/" + table + "/csv"},
		}
	}
	l := mountGlue(t, mounttest.Options{},
		mounttest.GlueTable{Table: mounttest.Table{Database: "db", Name: "p", Keys: []string{"k"}}, Partitions: partitions("p")},
		mounttest.GlueTable{Table: mounttest.Table{Database: "db", Name: "c", Format: "csv", Keys: []string{"k"}}, Partitions: partitions("c")},
	)
	parquet := mounttest.Parquet(t, 3)
	for _, table := range []string{"p", "c"} {
		for _, k := range []string{"own", "avro", "orc", "parquet", "csv"} {
			dir, key := "db/"+table+"/k="+k+"/", table+"/"+k+"/"
			format := k
			if k == "own" {
				format = map[string]string{"p": "parquet", "c": "csv"}[table]
			}
			for name, file := range map[string]struct{ format, data string }{
				"000000_0": {"csv", "1,text\n"}, "data.avro": {"avro", avroFile}, "data.orc": {"orc", orcFile},
				"000001_0": {"parquet", parquet}, "x.csv": {"parquet", parquet}, "cut.parquet": {"", parquet[:len(parquet)-1]},
			} {
				want := wantBadFormat
				if format == "csv" || format == file.format {
					want = wantPublished
				}
				want(t, l, dir+name, key+name, file.data)
			}
			wantPublished(t, l, dir+"_SUCCESS", key+"_SUCCESS", "")
			wantPublished(t, l, dir+"_note.parquet", key+"_note.parquet", "hidden")
		}
	}
	wantErrno(t, "rename of Avro into Parquet", rename(l, "db/p/k=avro/data.avro", "db/p/k=own/data.avro"), syscall.EBADMSG)
	wantErrno(t, "rename of Avro into CSV", rename(l, "db/p/k=avro/data.avro", "db/c/k=csv/moved"), 0)
	wantErrno(t, "rename of Parquet into Parquet", rename(l, "db/c/k=csv/000001_0", "db/p/k=parquet/000002_0"), 0)
	if got := inBucket(t, l, 0, "c/csv/moved"); got != avroFile {
		t.Errorf("the renamed file has %s", brief(got))
	}
	wantErrno(t, "append to Parquet", writeErr(l, "db/c/k=parquet/000001_0", syscall.O_WRONLY|syscall.O_APPEND, "text", nil), syscall.EBADMSG)
	if got := inBucket(t, l, 0, "c/parquet/000001_0"); got != parquet {
		t.Error("an append that is refused changed the object")
	}
}

// TestRule60_FormatsWithoutClasses: of a partition or a table that names no classes
// nothing is known, and any file passes; a new partition is of the table's format.
func TestRule60_FormatsWithoutClasses(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	l.AddGlueTables(mounttest.GlueTable{Table: mounttest.Table{Database: "db", Name: "p", Keys: []string{"k"}}})
	l.Catalog.Server.AddPartition("db", "p", l.Catalog.At(`{"Values":["bare"],"StorageDescriptor":{"Location":"s3://{0}/bare"}}`))
	addEntries(l, `{"Name":"plain","TableType":"EXTERNAL_TABLE","PartitionKeys":[{"Name":"k","Type":"string"}],"StorageDescriptor":{"Location":"s3://{0}/plain"}}`)
	l.Start()
	wantPublished(t, l, "db/p/k=bare/f", "bare/f", "any\n")
	l.MustSh(`cd db/p; mkdir k=new; echo any > k=new/f || true`)
	wantRegistered(t, l, "p", "bare")
	if r := l.Sh(`cp db/p/k=bare/f db/p/k=new/g`); r.Code == 0 {
		t.Error("text passes for Parquet in a new partition")
	}
	l.MustSh(`mkdir -p db/plain/k=v; echo any > db/plain/k=v/f`)
	wantRegistered(t, l, "plain", "v")
	if s := catalogStatus(t, l, "db/p/k=bare"); s.Format != "" && s.Format != "unknown" || !s.Writable {
		t.Errorf("status %+v", s)
	}
}

// TestRule09_FormatOfASparkTable: its provider says what is checked, and its
// partitions' classes nothing.
func TestRule09_FormatOfASparkTable(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	classes := `"InputFormat":"org.apache.hadoop.mapred.SequenceFileInputFormat","OutputFormat":"org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",` +
		`"SerdeInfo":{"SerializationLibrary":"org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe","Parameters":{"path":"s3://{0}/spark"}}`
	addEntries(l, `{"Name":"spark","TableType":"EXTERNAL_TABLE","PartitionKeys":[{"Name":"k","Type":"string"}],"Parameters":{"spark.sql.sources.provider":"PARQUET"},
"StorageDescriptor":{"Columns":[{"Name":"col","Type":"array<string>"}],"Location":"s3://{0}/spark-__PLACEHOLDER__",`+classes+`}}`)
	l.Catalog.Server.AddPartition("db", "spark", l.Catalog.At(`{"Values":["old"],"StorageDescriptor":{"Location":"s3://{0}/spark/k=old",`+classes+`}}`))
	l.Start()
	parquet := mounttest.Parquet(t, 3)
	l.MustSh(`mkdir db/spark/k=new`)
	for _, k := range []string{"k=old", "k=new"} {
		wantBadFormat(t, l, "db/spark/"+k+"/bad", "spark/"+k+"/bad", "text")
		wantPublished(t, l, "db/spark/"+k+"/good", "spark/"+k+"/good", parquet)
	}
	wantRegistered(t, l, "spark", "new", "old")
}
