package fs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func TestEntryReads(t *testing.T) {
	var r entryReads
	one, again, unknown := program{pid: 7, id: 1}, program{pid: 7, id: 2}, program{}
	r.note(one, "db/t.json", "v1")
	r.note(unknown, "db/t.json", "v0")
	for _, tt := range []struct {
		by   program
		path string
		want string
	}{
		{one, "db/t.json", "v1"},
		{one, "db/u.json", "there"},
		{again, "db/t.json", "there"}, // another process of the number
		{unknown, "db/t.json", "there"},
	} {
		if got := r.version(tt.by, tt.path, "there"); got != tt.want {
			t.Errorf("%v has read version %q of %s, want %q", tt.by, got, tt.path, tt.want)
		}
	}
	for i := range maxEntryReads - 1 {
		r.note(program{pid: uint32(i + 100)}, "db/t.json", "v")
	}
	r.note(one, "db/t.json", "v2")
	r.note(program{pid: 99}, "db/t.json", "v")
	if got := r.version(one, "db/t.json", "forgotten"); got != "v2" {
		t.Errorf("what was read last but one is %q", got)
	}
	if got := r.version(program{pid: 100}, "db/t.json", "forgotten"); got != "forgotten" {
		t.Errorf("the oldest is %q", got)
	}
	if len(r.m) != maxEntryReads || r.order.Len() != maxEntryReads {
		t.Errorf("%d and %d are remembered, want %d", len(r.m), r.order.Len(), maxEntryReads)
	}
}

func TestProgramOfAThread(t *testing.T) {
	p := processTable{root: "/proc"}
	me := p.programOf(uint32(os.Getpid()))
	if me.pid != uint32(os.Getpid()) || p.programOf(me.pid) != me {
		t.Errorf("this process is %v", me)
	}
	if got := p.programOf(0); got != (program{}) {
		t.Errorf("nobody is %v", got)
	}
}

func TestDraftsAreBounded(t *testing.T) {
	var d drafts
	var all []*draftNode
	for i := range maxDrafts {
		s := &draftNode{}
		if err := d.add(s, draftName{path: fmt.Sprint(i)}, true); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := d.add(&draftNode{}, draftName{path: "more"}, false); !errors.Is(err, objectstore.ErrNoSpace) {
		t.Errorf("one more: %v", err)
	}
	d.end(all[0], 0)
	d.end(all[0], 0)
	if err := d.add(&draftNode{data: make([]byte, 10)}, draftName{path: "1"}, true); !errors.Is(err, objectstore.ErrExist) {
		t.Errorf("a name that is taken: %v", err)
	}
	if err := d.add(&draftNode{data: make([]byte, 10)}, draftName{path: "1"}, false); err != nil {
		t.Errorf("one beside it: %v", err)
	}
	if err := d.grow(maxDraftBytes - 10); err != nil {
		t.Errorf("all bytes: %v", err)
	}
	if err := d.grow(1); !errors.Is(err, objectstore.ErrNoSpace) {
		t.Errorf("a byte more: %v", err)
	}
	if err := d.grow(-1); err != nil || d.grow(1) != nil {
		t.Errorf("a byte less, and more: %v", err)
	}
}

func TestDraftsByName(t *testing.T) {
	var d drafts
	fresh, over, temp := &draftNode{}, &draftNode{}, &draftNode{}
	for s, n := range map[*draftNode]draftName{fresh: {path: "db/new.json"}, over: {path: "db/t.json"}, temp: {path: "db/sedabcdef", temporary: true}} {
		if err := d.add(s, n, s != over); err != nil {
			t.Fatal(err)
		}
	}
	d.promise(over, 5)
	for _, tt := range []struct {
		path string
		tid  uint32
		want *draftNode
	}{
		{"db/new.json", 1, fresh}, {"db/t.json", 5, over}, {"db/t.json", 6, nil}, {"db/sedabcdef", 5, temp}, {"db/u.json", 5, nil},
	} {
		if got := d.found(tt.path, tt.tid); got != tt.want {
			t.Errorf("thread %d finds %p at %s, want %p", tt.tid, got, tt.path, tt.want)
		}
	}
	if !d.busy("db/t.json") || d.busy("db/u.json") {
		t.Error("the wrong names are busy")
	}
	if !d.claim(over, 5) || d.claim(over, 5) || d.found("db/t.json", 5) != nil {
		t.Error("a promise is kept once")
	}
	if lost := d.move(temp, draftName{path: "db/new.json"}, true); lost != fresh {
		t.Errorf("a rename over it loses %p, want %p", lost, fresh)
	}
	if n, _ := d.name(fresh); !n.gone || d.visible("db/new.json") != temp || d.visible("db/sedabcdef") != nil {
		t.Errorf("after a rename: %+v, %p", n, d.visible("db/new.json"))
	}
	if lost := d.remove("db/new.json"); !slices.Equal(lost, []*draftNode{temp}) || d.visible("db/new.json") != nil {
		t.Errorf("a removal loses %v", lost)
	}
	d.hide(over)
	d.end(over, 0)
	if _, there := d.name(over); there || d.busy("db/t.json") {
		t.Error("an ended draft has a name")
	}
}
