package staging

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func newRename() NewRename {
	return NewRename{
		Target: objectstore.Location{Bucket: "lake", Key: "t/new"}, Path: "t/new",
		Source: objectstore.Object{Location: objectstore.Location{Bucket: "lake", Key: "t/old"}, Size: 5, ETag: "abc"},
		Cond:   objectstore.Cond{IfNoneMatch: true},
	}
}

// renameRecord is what a rename's record looks like. It may get more, but
// nothing in it may change: an older mount's is read.
const renameRecord = `{
  "version": 1,
  "id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
  "state": "renaming",
  "target": {
    "Bucket": "lake",
    "Key": "t/new"
  },
  "path": "t/new",
  "prefix": {
    "Bucket": "",
    "Key": ""
  },
  "cond": {
    "IfMatch": "",
    "IfNoneMatch": true
  },
  "source": {
    "Bucket": "lake",
    "Key": "t/old",
    "Size": 5,
    "ETag": "abc",
    "Match": "",
    "ModTime": "0001-01-01T00:00:00Z",
    "Meta": null
  },
  "size": 5,
  "mode": 0,
  "uid": 0,
  "gid": 0,
  "mtime": "0001-01-01T00:00:00Z",
  "created": "2024-05-06T07:08:09Z",
  "changed": "2024-05-06T07:08:09Z"
}
`

func TestRenameRecord(t *testing.T) {
	const id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	n, at := newRename(), time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	want := Record{
		Version: 1, ID: id, State: Renaming, Target: n.Target, Path: n.Path, Source: &n.Source, Cond: n.Cond,
		Size: 5, Created: at, Changed: at,
	}
	raw, err := encodeRecord(want)
	if err != nil || string(raw) != renameRecord {
		t.Errorf("encoded as\n%s%v, want\n%s", raw, err, renameRecord)
	}
	got, err := parseRecord(id, []byte(renameRecord))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("parsed as %+v, %v, want %+v", got, err, want)
	}
}

// TestWriteRecordsAreWithoutSource: what older programs read is as it was.
func TestWriteRecordsAreWithoutSource(t *testing.T) {
	raw, err := encodeRecord(Record{Version: 1, ID: "x", State: Staged, Base: &objectstore.Object{Size: 1}})
	var fields map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &fields)
	}
	if _, there := fields["source"]; err != nil || there {
		t.Errorf("record of a write: %s, %v", raw, err)
	}
}

func TestRenameNamesAreExact(t *testing.T) {
	e := newEnv(t)
	n := newRename()
	n.Source.Key, n.Target.Key = "t/caf\xe9", "t/\xff"
	if _, err := e.area.BeginRename(n); err != nil {
		t.Fatal(err)
	}
	e.reopen(t)
	got := e.area.Renames()
	if len(got) != 1 || got[0].Record().Source.Key != n.Source.Key || got[0].Record().Target != n.Target {
		t.Errorf("found %+v", got)
	}
}

func TestRenameOutlivesItsProcess(t *testing.T) {
	e := newEnv(t)
	r, err := e.area.BeginRename(newRename())
	if err != nil {
		t.Fatal(err)
	}
	if r.Recovered() || len(e.area.Files()) != 0 {
		t.Errorf("a new rename: recovered %v, %d writes", r.Recovered(), len(e.area.Files()))
	}
	want := r.Record()
	e.reopen(t)
	got, ok := e.area.FindRename(want.ID)
	if !ok || !got.Recovered() || got.Record().Target != want.Target || !reflect.DeepEqual(got.Record().Source, want.Source) || got.Record().Cond != want.Cond {
		t.Fatalf("after a restart: %v, %+v, want %+v", ok, got, want)
	}
	if n := len(e.area.Renames()); n != 1 || len(e.area.Files()) != 0 {
		t.Errorf("after a restart: %d renames, %d writes, want 1 and none", n, len(e.area.Files()))
	}
	if err := errors.Join(got.Drop(), got.Drop()); err != nil {
		t.Fatal(err)
	}
	e.reopen(t)
	if n := len(e.area.Renames()); n != 0 {
		t.Errorf("after Drop: %d renames", n)
	}
	if _, err := os.Stat(filepath.Join(e.dir, want.ID)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Drop its directory: %v, want none", err)
	}
}

func TestRenamesThatAreNone(t *testing.T) {
	e := newEnv(t)
	for name, spoil := range map[string]func(n *NewRename){
		"to itself":          func(n *NewRename) { n.Target = n.Source.Location },
		"of no version":      func(n *NewRename) { n.Source.ETag = "" },
		"of nothing":         func(n *NewRename) { n.Source.Key = "" },
		"to nowhere":         func(n *NewRename) { n.Target.Key = "" },
		"out of the lake":    func(n *NewRename) { n.Target.Key = "t/../x" },
		"of a negative size": func(n *NewRename) { n.Source.Size = -1 },
	} {
		n := newRename()
		spoil(&n)
		if _, err := e.area.BeginRename(n); err == nil {
			t.Errorf("%s: was noted", name)
		}
	}
	if n := len(e.area.Renames()); n != 0 {
		t.Errorf("%d renames", n)
	}
	for name, change := range map[string][2]string{
		"no source":             {`"source": {`, `"sauce": {`},
		"a source in a write":   {`"state": "renaming"`, `"state": "staged"`},
		"a source without ETag": {`"ETag": "abc"`, `"ETag": ""`},
	} {
		raw := strings.Replace(renameRecord, change[0], change[1], 1)
		if _, err := parseRecord("6ba7b810-9dad-11d1-80b4-00c04fd430c8", []byte(raw)); err == nil {
			t.Errorf("%s: was read", name)
		}
	}
}

func TestRenameAfterClose(t *testing.T) {
	e := newEnv(t)
	if err := e.area.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.area.BeginRename(newRename()); !errors.Is(err, ErrDropped) {
		t.Errorf("got %v, want ErrDropped", err)
	}
	entries, err := os.ReadDir(e.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if isID(entry.Name()) {
			t.Errorf("left %s", entry.Name())
		}
	}
}
