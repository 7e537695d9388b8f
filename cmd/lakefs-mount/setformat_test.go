package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// descriptor is what the catalog has of the one partition of sales.notes.
func descriptor(t *testing.T, lake *mounttest.Lake) (input, serde string) {
	t.Helper()
	var answer struct {
		Partitions []struct {
			StorageDescriptor struct {
				InputFormat string
				SerdeInfo   struct{ SerializationLibrary string }
			}
		}
	}
	raw := lake.Catalog.Call("GetPartitions", `{"DatabaseName": "sales", "TableName": "notes"}`)
	if err := json.Unmarshal(raw, &answer); err != nil || len(answer.Partitions) != 1 {
		t.Fatalf("%v: %s", err, raw)
	}
	d := answer.Partitions[0].StorageDescriptor
	return d.InputFormat, d.SerdeInfo.SerializationLibrary
}

// TestRule59SetFormatCommand: a keyword, and classes as a shell gives them; a partition
// alone.
func TestRule59SetFormatCommand(t *testing.T) {
	lake := mounttest.New(t, glueNotes())
	lake.Start()
	path := lake.Path("sales/notes/dt=2026-01-01")
	r := lake.Run("set-format", path, "avro")
	if input, _ := descriptor(t, lake); r.Code != exitOK || r.Err != "" || r.Out != "sales/notes/dt=2026-01-01 is avro in the catalog\n" || !strings.HasSuffix(input, ".AvroContainerInputFormat") {
		t.Errorf("exit code %d, %q %q; the catalog has %s", r.Code, r.Out, r.Err, input)
	}
	if got := lake.MustSh("jq -r .catalog.format sales/notes/dt=2026-01-01/.lakefs/status.json"); got != "avro\n" {
		t.Errorf("the mount has %q", got)
	}
	r = lake.Run("set-format", "--json", path, "INPUTFORMAT", "a.b.In", "OUTPUTFORMAT", "a.b.Out", "SERDE", "a.b.Serde")
	var job fs.JobStatus
	if err := json.Unmarshal([]byte(r.Out), &job); err != nil || r.Code != exitOK || job.Kind != "set-format" || job.Error != "" || job.Ended == nil {
		t.Errorf("--json: exit code %d, %v: %q %q", r.Code, err, r.Out, r.Err)
	}
	if input, serde := descriptor(t, lake); input != "a.b.In" || serde != "a.b.Serde" {
		t.Errorf("the catalog has %s and %s", input, serde)
	}
}

func TestRule59SetFormatCommandThatIsRefused(t *testing.T) {
	folder := mounttest.Mount(t, sales(t))
	r := folder.Run("set-format", folder.Path("sales/notes/dt=2026-01-01"), "ORC")
	if r.Code != exitFailed || r.Out != "" || !strings.Contains(r.Err, "no entries") || !strings.Contains(r.Err, "nothing was changed") {
		t.Errorf("a manifest's partition: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	lake := mounttest.New(t, glueNotes())
	lake.PutStored("sales/notes/dt=2026-01-09/a.csv", "9\n")
	lake.Start()
	r = lake.Run("set-format", lake.Path("sales/notes/dt=2026-01-09"), "ORC")
	if r.Code != exitFailed || r.Out != "" || !strings.Contains(r.Err, "sales/notes/dt=2026-01-09") || !strings.Contains(r.Err, "repair") {
		t.Errorf("a partition that is not registered: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	r = lake.Run("set-format", lake.Path("sales/notes"), "ORC")
	if r.Code != exitFailed || !strings.Contains(r.Err, "--catalog-writes=entries") {
		t.Errorf("a table's: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	before, _ := descriptor(t, lake)
	for _, flag := range []string{"--catalog-writes=none", "--write=none"} {
		lake.Remount(flag)
		r = lake.Run("set-format", "--json", lake.Path("sales/notes/dt=2026-01-01"), "ORC")
		var job fs.JobStatus
		if err := json.Unmarshal([]byte(r.Out), &job); err != nil || r.Code != exitFailed || job.Error == "" || !strings.Contains(r.Err, flag) {
			t.Errorf("%s: exit code %d, %v: %q %q", flag, r.Code, err, r.Out, r.Err)
		}
		if r = lake.Run("set-format", lake.Path("sales/notes"), "ORC"); r.Code != exitFailed || !strings.Contains(r.Err, flag) {
			t.Errorf("%s: a table: exit code %d, %q", flag, r.Code, r.Err)
		}
		if now, _ := descriptor(t, lake); now != before {
			t.Errorf("%s: the catalog has %s", flag, now)
		}
	}
}
