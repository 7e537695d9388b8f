package crash_test

import (
	"bytes"
	"path"
)

// wantSettled asserts, of a mount after a crash, that what was begun is finished, or is
// shown and can be published, and that nothing else is left. complete: the program had
// written all before the end, and none of it may be lost.
func (r *rig) wantSettled(op *operation, acknowledged, complete bool) {
	r.t.Helper()
	if r.gate != nil {
		r.gate.settled(r.t)
	}
	if complete && op.overwrites() { // a kill alone leaves all or nothing
		r.wantOverwritten(op, acknowledged)
		return
	}
	if op.isHeld() {
		r.wantHeldSettled(op, acknowledged)
		return
	}
	allowed := []string{"old", "new"}
	if acknowledged {
		allowed = []string{"new"}
	}
	have, state := r.wantState(op, allowed...)
	r.wantMountShows(have)
	kept := r.kept()
	switch {
	case state == "new" && len(kept) > 0:
		r.t.Errorf("all is published, and %+v is staged", kept)
	case state == "old" && complete && op.writes && len(kept) == 0:
		r.t.Errorf("what was written is neither published nor staged")
	}
	if len(kept) > 0 {
		have, state = r.resolve(op, kept, complete)
		r.wantMountShows(have)
	}
	r.wantOnce(op, state)
	r.wantClean()
}

// resolve publishes what is staged by the command, if it is whole, and drops it if it
// is not.
func (r *rig) resolve(op *operation, kept []staged, complete bool) (tree, string) {
	r.t.Helper()
	if shown := r.keptByCommand(); len(shown) != len(kept) || shown[0].ID != kept[0].ID {
		r.t.Errorf("recover shows %+v, status.json %+v", shown, kept)
	}
	if len(kept) > 1 {
		r.t.Errorf("one file was written, and staged are %+v", kept)
	}
	w := kept[0]
	o, err := r.agent.ask(task{Do: "read", Path: r.Path(w.shown())})
	if err != nil || int64(len(o.Raw)) != w.Size {
		r.t.Errorf("%+v has %d bytes, %v", w, len(o.Raw), err)
	}
	whole := bytes.Equal(o.Raw, op.after[op.target])
	if complete && !whole {
		r.t.Errorf("%+v is %s: not what was written", w, brief(o.Raw))
	}
	what, want := "--abort=all", "old"
	if whole {
		what, want = "--publish=all", "new"
	}
	if res := r.command(what); res.Code != 0 {
		r.t.Errorf("recover %s of %+v: code %d\n%s%s", what, w, res.Code, res.Out, res.Err)
	}
	if whole && path.Base(w.Path) != op.target { // killed before its rename: it has its first name
		return r.store(), "renamed"
	}
	return r.wantState(op, want)
}
