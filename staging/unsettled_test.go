package staging

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// unsettledRecord is what the record of an unsettled write looks like. It may get
// more, but nothing in it may change: an older mount's is read.
const unsettledRecord = `{
  "version": 1,
  "id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
  "state": "failed",
  "target": {
    "Bucket": "lake",
    "Key": "t/f"
  },
  "path": "db/t/f",
  "prefix": {
    "Bucket": "lake",
    "Key": "t/"
  },
  "cond": {
    "IfMatch": "",
    "IfNoneMatch": true
  },
  "whole": true,
  "size": 5,
  "mode": 416,
  "uid": 0,
  "gid": 0,
  "mtime": "0001-01-01T00:00:00Z",
  "created": "2024-05-06T07:08:09Z",
  "changed": "2024-05-06T07:08:09Z",
  "error": "nobody knows",
  "unsettled": true
}
`

func TestUnsettledRecord(t *testing.T) {
	const id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	at := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	settled := Record{
		Version: 1, ID: id, State: Failed, Path: "db/t/f", Size: 5, Whole: true, Created: at, Changed: at, Error: "nobody knows",
		Target: objectstore.Location{Bucket: "lake", Key: "t/f"}, Prefix: objectstore.Location{Bucket: "lake", Key: "t/"},
		Cond: objectstore.Cond{IfNoneMatch: true}, Attributes: Attributes{Mode: 0o640},
	}
	unsettled := settled
	unsettled.Unsettled = true
	// A record without the field is as older programs wrote it.
	older := strings.Replace(unsettledRecord, ",\n  \"unsettled\": true", "", 1)
	for text, want := range map[string]Record{unsettledRecord: unsettled, older: settled} {
		raw, err := encodeRecord(want)
		if err != nil || string(raw) != text {
			t.Errorf("encoded as\n%s%v, want\n%s", raw, err, text)
		}
		got, err := parseRecord(id, []byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parsed as %+v, %v, want %+v", got, err, want)
		}
	}
}

// TestUnsettledUntilTheNextPublish: another state does not settle a write.
func TestUnsettledUntilTheNextPublish(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{})
	mustWrite(t, f, 0, "x")
	z, err := f.Freeze(t.Context())
	if err == nil {
		err = z.SetUnsettled("nobody knows")
	}
	if err != nil || !z.Record.Unsettled {
		t.Fatalf("%v, %+v", err, z.Record)
	}
	z.Release()
	if err := f.SetState(Torn, "killed"); err != nil {
		t.Fatal(err)
	}
	e.reopen(t)
	f, ok := e.area.Find(f.ID())
	if !ok || !f.Record().Unsettled || f.Record().State != Torn {
		t.Fatalf("after a restart: %v, %+v", ok, f.Record())
	}
	if err := f.SetState(Publishing, ""); err != nil || f.Record().Unsettled {
		t.Errorf("publishing: %v, %+v", err, f.Record())
	}
}
