package fs_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestRule57_CheckLevels: what a partition takes at each level of --check-format, in a
// Parquet table with an Avro partition and the other way round.
func TestRule57_CheckLevels(t *testing.T) {
	t.Parallel()
	files := map[string]string{"parquet": mounttest.Parquet(t, 3), "avro": avroFile}
	for _, level := range []string{"strict", "warn", "off"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			var tables []mounttest.GlueTable
			for format, other := range map[string]string{"parquet": "avro", "avro": "parquet"} {
				tables = append(tables, mounttest.GlueTable{
					Table:      mounttest.Table{Database: "db", Name: format, Format: format, Keys: []string{"k"}},
					Partitions: []mounttest.GluePartition{{Values: []string{"own"}}, {Values: []string{"other"}, Format: other}},
				})
			}
			l := mountGlue(t, mounttest.Options{Flags: []string{"--check-format=" + level}}, tables...)
			for format, other := range map[string]string{"parquet": "avro", "avro": "parquet"} {
				for k, is := range map[string]string{"own": format, "other": other} {
					dir := "db/" + format + "/k=" + k + "/"
					wantErrno(t, "a file of the partition's format in "+dir, writeErr(l, dir+"good", creat, files[is], nil), 0)
					for name, content := range files {
						want := syscall.Errno(0)
						if level == "strict" && name != is {
							want = syscall.EBADMSG
						}
						wantErrno(t, name+" in "+dir, writeErr(l, dir+"a."+name, creat, content, nil), want)
						if listed(t, l, dir+"a."+name) != (want == 0) {
							t.Errorf("%s in %s: listed %v", name, dir, want != 0)
						}
					}
				}
			}
			if warned := strings.Contains(l.Log(), "published although the format check fails"); level != "warn" && warned {
				t.Error("published with a warning")
			} else if level == "warn" {
				l.WaitLog("published although the format check fails")
			}
		})
	}
}

// TestFormatCheckOfJSONThatIsNotLines: what Spark reads as it writes is no error, where
// the table's options say how it reads.
func TestFormatCheckOfJSONThatIsNotLines(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	entry := func(name, options string) string {
		return `{"Name":"` + name + `","TableType":"EXTERNAL_TABLE","PartitionKeys":[{"Name":"k","Type":"string"}],"Parameters":{"spark.sql.sources.provider":"json"},
"StorageDescriptor":{"Columns":[{"Name":"col","Type":"array<string>"}],"Location":"s3://{0}/` + name + `","SerdeInfo":{"Parameters":{` + options + `}}}}`
	}
	addEntries(l, entry("lines", `"multiLine":"false","encoding":"UTF-8"`), entry("pretty", `"multiLine":"true"`), entry("old", `"wholeFile":"TRUE"`),
		entry("wide", `"encoding":"UTF-16LE"`), entry("separated", `"lineSep":";"`))
	l.Start()
	for name, content := range map[string]string{
		"pretty": "[\n  {\n    \"a\": 1\n  }\n]\n", "old": "{\n\"a\": 1\n}\n", "wide": "{\x00}\x00\n\x00", "separated": `{"a":1};{"a":2}`,
	} {
		for table, want := range map[string]syscall.Errno{name: 0, "lines": syscall.EBADMSG} {
			dir := "db/" + table + "/k=" + name
			l.MustSh("mkdir -p " + dir)
			wantErrno(t, name+" in "+table, writeErr(l, dir+"/f", creat, content, nil), want)
			wantErrno(t, name+" under a name of gzip in "+table, writeErr(l, dir+"/f.gz", creat, content, nil), syscall.EBADMSG)
		}
	}
	if s := catalogStatus(t, l, "db/pretty"); s.Format != "json" {
		t.Errorf("the format is %q", s.Format)
	}
}
