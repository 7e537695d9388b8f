package staging

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// members are n files of a batch that are in nobody's staging directory.
func members(n int) []BatchMember {
	all := make([]BatchMember, n)
	for i := range all {
		from, to := fmt.Sprintf("t/_temporary/0/f%05d", i), fmt.Sprintf("t/dt=1/f%05d", i)
		all[i] = BatchMember{
			ID:   uuid.NewString(),
			From: Place{Target: objectstore.Location{Bucket: "lake", Key: from}, Path: "db/" + from, Hold: Local, Cond: objectstore.Cond{IfNoneMatch: true}},
			To:   Place{Target: objectstore.Location{Bucket: "lake", Key: to}, Path: "db/" + to, Cond: objectstore.Cond{IfNoneMatch: true}},
			Data: true, Size: int64(i),
		}
	}
	return all
}

// batchRecord is what a batch's record looks like. It may get more, but nothing in it
// may change: an older mount's is read.
const batchRecord = `{"version":1,"id":"6ba7b810-9dad-11d1-80b4-00c04fd430c8","state":"moving",` +
	`"target":{"Bucket":"lake","Key":"t/f"},"path":"t","prefix":{"Bucket":"","Key":""},"cond":{"IfMatch":"","IfNoneMatch":false},` +
	`"size":5,"mode":0,"uid":0,"gid":0,"mtime":"0001-01-01T00:00:00Z","created":"2024-05-06T07:08:09Z","changed":"2024-05-06T07:08:09Z",` +
	`"members":[{"id":"6ba7b811-9dad-11d1-80b4-00c04fd430c8",` +
	`"from":{"target":{"Bucket":"lake","Key":"t/_temporary/f"},"prefix":{"Bucket":"lake","Key":"t/"},"path":"t/_temporary/f","cond":{"IfMatch":"","IfNoneMatch":true},"hold":"local"},` +
	`"to":{"target":{"Bucket":"lake","Key":"t/f"},"prefix":{"Bucket":"lake","Key":"t/"},"path":"t/f","format":"parquet","cond":{"IfMatch":"","IfNoneMatch":true}},` +
	`"data":true,"size":5,"sum":"crc32c:AAAAAA=="}]}` + "\n"

func TestBatchRecord(t *testing.T) {
	const id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	at := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	in := func(key string) objectstore.Location { return objectstore.Location{Bucket: "lake", Key: key} }
	want := Record{
		Version: 1, ID: id, State: BatchMoving, Target: in("t/f"), Path: "t", Size: 5, Created: at, Changed: at,
		Members: []BatchMember{{
			ID:   "6ba7b811-9dad-11d1-80b4-00c04fd430c8",
			From: Place{Target: in("t/_temporary/f"), Prefix: in("t/"), Path: "t/_temporary/f", Cond: objectstore.Cond{IfNoneMatch: true}, Hold: Local},
			To:   Place{Target: in("t/f"), Prefix: in("t/"), Path: "t/f", Format: "parquet", Cond: objectstore.Cond{IfNoneMatch: true}},
			Data: true, Size: 5, Sum: "crc32c:AAAAAA==",
		}},
	}
	raw, err := encodeRecord(want)
	if err != nil || string(raw) != batchRecord {
		t.Errorf("encoded as\n%s%v, want\n%s", raw, err, batchRecord)
	}
	got, err := parseRecord(id, []byte(batchRecord))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("parsed as %+v, %v, want %+v", got, err, want)
	}
}

// TestBatchOfTenThousand: its record can be written and found again, with names that
// are not UTF-8 and long ones.
func TestBatchOfTenThousand(t *testing.T) {
	e := newEnv(t)
	want := members(10_000)
	for i := range want {
		for _, p := range []*Place{&want[i].From, &want[i].To} {
			dir := strings.Repeat("x", 400) + "/caf\xe9/"
			p.Target.Key, p.Path = dir+p.Target.Key, dir+p.Path
			p.Prefix = objectstore.Location{Bucket: "lake", Key: dir}
		}
	}
	b, err := e.area.NewBatch(BatchPlan{Members: want})
	if err == nil {
		err = b.Begin()
	}
	if err != nil {
		t.Fatal(err)
	}
	e.reopen(t)
	got := e.area.Batches()
	if len(got) != 1 || len(e.area.Files()) != 0 {
		t.Fatalf("%d batches, %d writes found", len(got), len(e.area.Files()))
	}
	if !got[0].Recovered() || !reflect.DeepEqual(got[0].Record().Members, want) {
		t.Errorf("recovered %v, and its members are others", got[0].Recovered())
	}
}

func TestBatchLife(t *testing.T) {
	e := newEnv(t)
	want := members(3)
	b, err := e.area.NewBatch(BatchPlan{Members: want})
	if err == nil {
		err = b.Begin()
	}
	if err != nil {
		t.Fatal(err)
	}
	if of, ok := e.area.BatchOf(want[1].ID); !ok || of != b {
		t.Errorf("the batch of a member: %v, %v", of, ok)
	}
	if other, err := e.area.NewBatch(BatchPlan{Members: want[2:]}); err != nil {
		t.Error(err)
	} else if err = other.Begin(); !errors.Is(err, ErrBatched) {
		t.Errorf("a second batch of one file: %v, want ErrBatched", err)
	}
	if err := b.SetState(BatchUndoing, "why"); err != nil {
		t.Fatal(err)
	}
	e.reopen(t)
	b, ok := e.area.FindBatch(b.Record().ID)
	if r := b.Record(); !ok || r.State != BatchUndoing || r.Error != "why" || r.Path != "db/t/dt=1" || r.Size != 3 {
		t.Errorf("found %v: %+v", ok, r)
	}
	for range 2 {
		if err := b.Drop(); err != nil {
			t.Error(err)
		}
	}
	if _, ok := e.area.BatchOf(want[1].ID); ok {
		t.Error("a member is in a batch that is dropped")
	}
	e.reopen(t)
	if n := len(e.area.Batches()) + len(e.area.Files()); n != 0 {
		t.Errorf("%d are left", n)
	}
}

func TestNewBatchRefuses(t *testing.T) {
	e := newEnv(t)
	for name, spoil := range map[string]func(all []BatchMember){
		"two of one target":    func(all []BatchMember) { all[1].To.Target = all[0].To.Target },
		"one file twice":       func(all []BatchMember) { all[1].ID = all[0].ID },
		"another version":      func(all []BatchMember) { all[0].To.Cond = objectstore.Cond{IfMatch: "x"} },
		"outside of its table": func(all []BatchMember) { all[0].To.Prefix = objectstore.Location{Bucket: "lake", Key: "u/"} },
		"a path upwards":       func(all []BatchMember) { all[0].To.Path = "t/../f" },
		"no id":                func(all []BatchMember) { all[0].ID = "../x" },
	} {
		all := members(2)
		spoil(all)
		if _, err := e.area.NewBatch(BatchPlan{Members: all}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := e.area.NewBatch(BatchPlan{}); err == nil {
		t.Error("a batch of nothing was accepted")
	}
}

// TestDamagedBatch: a batch whose record cannot be understood is kept and shown.
func TestDamagedBatch(t *testing.T) {
	e := newEnv(t)
	b, err := e.area.NewBatch(BatchPlan{Members: members(2)})
	if err == nil {
		err = b.Begin()
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(e.dir, b.Record().ID, recordName)
	raw, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, raw[:len(raw)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.reopen(t)
	if files := e.area.Files(); len(files) != 1 || files[0].Record().State != Failed || len(e.area.Batches()) != 0 {
		t.Errorf("found %d writes, %d batches", len(files), len(e.area.Batches()))
	}
}
