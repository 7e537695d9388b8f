package main

import (
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

func TestSchemaCommand(t *testing.T) {
	for name, o := range map[string]mounttest.Options{"folder": sales(t), "glue": glueNotes()} {
		t.Run(name, func(t *testing.T) {
			lake := mounttest.Mount(t, o)
			r := lake.Run("schema", lake.Path("sales/notes"))
			if want := lake.MustSh("cat sales/notes/.lakefs/schema.sql"); r.Code != exitOK || r.Err != "" || r.Out != want || !strings.Contains(want, "CREATE EXTERNAL TABLE `sales`.`notes`") {
				t.Errorf("exit code %d, %q %q; the file is %q", r.Code, r.Out, r.Err, want)
			}
		})
	}
}

// TestSchemaCommandThatFails says the reason, which an errno cannot.
func TestSchemaCommandThatFails(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	lake.PutManifest("sales/notes", strings.Replace(lake.StoredManifest("sales/notes"), "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", "com.example.OtherSerDe", 1))
	lake.MustSh("cat sales/notes.json >/dev/null")
	r := lake.Run("schema", lake.Path("sales/notes"))
	if r.Code != exitFailed || r.Out != "" || !strings.Contains(r.Err, `"com.example.OtherSerDe" is not known`) {
		t.Errorf("a manifest: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	glue := mounttest.Mount(t, glueNotes())
	glue.Catalog.Server.LoadFixtures("../../table/testdata/glue")
	r = glue.Run("schema", glue.Path("hand/broken_partcol"))
	if r.Code != exitFailed || r.Out != "" || !strings.Contains(r.Err, `partition column "dt"`) {
		t.Errorf("an entry of Glue: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
}
