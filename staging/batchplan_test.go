package staging

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// clearingRecord is what the record of a batch that removes something has more. It may
// get more, but nothing in it may change.
var clearingRecord = strings.Replace(strings.Replace(strings.Replace(batchRecord,
	`"state":"moving"`, `"state":"settling"`, 1),
	`"sum":"crc32c:AAAAAA=="}]`, `"sum":"crc32c:AAAAAA==","done":true}]`, 1),
	"]}\n", `],"clear":[{"target":{"Bucket":"lake","Key":"t/old"},"etag":"x"}],"register_last":true}`+"\n", 1)

func TestClearingRecord(t *testing.T) {
	const id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	want, err := parseRecord(id, []byte(batchRecord))
	if err != nil {
		t.Fatal(err)
	}
	want.State, want.RegisterLast, want.Members[0].Done = BatchSettling, true, true
	want.Clear = []Cleared{{Target: objectstore.Location{Bucket: "lake", Key: "t/old"}, ETag: "x"}}
	raw, err := encodeRecord(want)
	if err != nil || string(raw) != clearingRecord {
		t.Errorf("encoded as\n%s%v, want\n%s", raw, err, clearingRecord)
	}
	got, err := parseRecord(id, []byte(clearingRecord))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("parsed as %+v, %v, want %+v", got, err, want)
	}
}

// cleared are n versions, of names that are not UTF-8.
func cleared(n int) []Cleared {
	all := make([]Cleared, n)
	for i := range all {
		all[i] = Cleared{Target: objectstore.Location{Bucket: "lake", Key: fmt.Sprintf("t/caf\xe9/%d", i)}, ETag: "x"}
	}
	return all
}

func TestClearingBatchLife(t *testing.T) {
	e := newEnv(t)
	want := cleared(3)
	b, err := e.area.NewBatch(BatchPlan{Clear: want, Path: "db/t"})
	if err == nil {
		err = b.Begin()
	}
	if err != nil {
		t.Fatal(err)
	}
	e.reopen(t)
	b, ok := e.area.FindBatch(b.Record().ID)
	if !ok {
		t.Fatal("it is not found")
	}
	if r := b.Record(); r.State != BatchClearing || r.Path != "db/t" || !reflect.DeepEqual(r.Clear, want) {
		t.Errorf("found %+v", r)
	}
	for _, s := range []State{BatchMoving, BatchMoved} {
		if err := b.SetState(s, ""); err != nil {
			t.Error(err)
		}
	}
	if err := b.Settle(nil, "why"); err != nil || b.Record().State != BatchSettling {
		t.Errorf("Settle: %v, %s", err, b.Record().State)
	}
	if err := b.Drop(); err != nil {
		t.Error(err)
	}
	e.reopen(t)
	if n := len(e.area.Batches()) + len(e.area.Files()); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// TestSettleLeavesTheMembers: who has the record from before sees it as it was.
func TestSettleLeavesTheMembers(t *testing.T) {
	e := newEnv(t)
	b, err := e.area.NewBatch(BatchPlan{Members: members(2), Clear: cleared(1)})
	if err == nil {
		err = b.Begin()
	}
	if err != nil {
		t.Fatal(err)
	}
	before := b.Record()
	if err := b.Settle([]bool{true, false}, "why"); err != nil {
		t.Fatal(err)
	}
	now := b.Record()
	if before.Members[0].Done || !now.Members[0].Done || now.Members[1].Done {
		t.Errorf("before %v, now %v and %v", before.Members[0].Done, now.Members[0].Done, now.Members[1].Done)
	}
}

func TestBatchBounds(t *testing.T) {
	e := newEnv(t)
	for name, p := range map[string]BatchPlan{
		"files":   {Members: members(MaxMembers + 1)},
		"removed": {Clear: cleared(MaxMembers + 1)},
	} {
		if _, err := e.area.NewBatch(p); !errors.Is(err, objectstore.ErrTooLarge) {
			t.Errorf("%s: %v, want ErrTooLarge", name, err)
		}
	}
	all := cleared(70_000)
	for i := range all {
		all[i].Target.Key = fmt.Sprintf("%s/%d", strings.Repeat("x", 1000), i)
	}
	b, err := e.area.NewBatch(BatchPlan{Clear: all})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Begin(); !errors.Is(err, objectstore.ErrTooLarge) || len(e.area.Batches()) != 0 {
		t.Errorf("a record of 70 MB: %v, want ErrTooLarge", err)
	}
}
