package crash_test

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"
)

// wantHeldPublished asserts of an operation that succeeded what is said of its names.
func (r *rig) wantHeldPublished(op *operation) {
	r.t.Helper()
	r.wantPrivate(op)
	if !op.stamped {
		return
	}
	o, err := r.agent.ask(task{Do: "stat", Path: r.Path(r.part + "/" + op.target)})
	if err != nil || o.Mode != stampMode || o.MTime != stamp.Unix() {
		r.t.Errorf("%s has mode %o and time %d, %v; want those of the temporary name: %o, %d", op.target, o.Mode, o.MTime, err, stampMode, stamp.Unix())
	}
}

// wantPrivate asserts that no request ever wrote a private name.
func (r *rig) wantPrivate(op *operation) {
	r.t.Helper()
	if r.gate == nil {
		return
	}
	for _, q := range r.gate.requests(r.Key(path.Dir(r.part) + "/.lakefs")) {
		r.t.Errorf("%v: that name is none of the store's", &q)
	}
	below := r.Key(r.part) + "/"
	for _, q := range r.gate.requests(below) {
		top, _, _ := strings.Cut(strings.TrimPrefix(q.key, below), "/")
		if q.writes() && slices.Contains(op.private, top) {
			r.t.Errorf("%v: that name is none of the store's", &q)
		}
	}
}

// wantHeldSettled is wantSettled of an operation in steps: the files are as they were
// after the last step that answered 0, or after the one that was begun, all of them;
// those of local names are found by name, those of temporary ones are staged.
func (r *rig) wantHeldSettled(op *operation, acknowledged bool) {
	r.t.Helper()
	r.wantPrivate(op)
	allowed := []string{"old", "new"}
	if acknowledged {
		allowed = []string{"new"}
	}
	have, _ := r.wantState(op, allowed...)
	now, err := r.status()
	if err != nil {
		r.t.Fatalf("status.json: %v", err)
	}
	at, whole := r.wantSteps(op, r.find(op, now.Staged), have)
	if at == len(op.steps) && have.equal(op.after) && len(now.Staged)+len(now.Local) > 0 {
		r.t.Errorf("all is published, and there are %+v", now)
	}
	if len(now.Staged) > 0 {
		have = r.resolveHeld(op, have, now.Staged)
	}
	if r.t.Failed() {
		r.t.Logf("%d of %d steps had answered 0; staged and local are %+v", r.done, len(op.steps), now)
		return
	}
	switch {
	case at == len(op.steps) || len(now.Staged) > 0:
	case whole && r.round%2 == 0:
		if err := r.runHeld(op, at); err != nil {
			r.t.Errorf("the rest of the steps, from %d on: %v", at+1, err)
		}
		r.up()
		have, _ = r.wantState(op, "new")
		r.wantHeldPublished(op)
	default:
		r.removePrivate(op)
	}
	if got := r.store(); !got.equal(have) {
		r.t.Errorf("the store has %v, want %v", got, have)
	}
	r.wantMountShows(have)
	state := "old"
	if bytes.Equal(have[op.target], op.after[op.target]) {
		state = "new"
	}
	r.wantOnce(op, state)
	r.wantClean()
}

// find is what is at the names of the operation, or staged for them.
func (r *rig) find(op *operation, kept []staged) tree {
	r.t.Helper()
	names := make(map[string]bool)
	for n := range len(op.steps) + 1 {
		for name := range op.seen(n) {
			names[name] = true
		}
	}
	found := tree{}
	for name := range names {
		o, err := r.agent.ask(task{Do: "read", Path: r.at(name)})
		switch {
		case err == nil:
			found[name] = o.Raw
		case !strings.Contains(err.Error(), "no such file"):
			r.t.Errorf("read %s: %v", name, err)
		}
	}
	for _, w := range kept {
		o, err := r.agent.ask(task{Do: "read", Path: r.Path(w.shown())})
		if err != nil || int64(len(o.Raw)) != w.Size {
			r.t.Errorf("%+v has %d bytes, %v", w, len(o.Raw), err)
		}
		found[strings.TrimPrefix(w.Path, r.part+"/")] = o.Raw
	}
	return found
}

// wantSteps asserts that the files are those after the steps that were done, or after
// one more, and returns how many that are; whole is false if the last left a part.
func (r *rig) wantSteps(op *operation, found, have tree) (n int, whole bool) {
	r.t.Helper()
	n = r.done
	if op.backup != "" {
		return r.wantBackup(op, found, have)
	}
	before := op.seen(n)
	if found.equal(before) {
		return n, true
	}
	if n < len(op.steps) {
		if found.equal(op.seen(n + 1)) {
			return n + 1, true
		}
		begun := op.steps[n]
		rest := maps.Clone(found)
		delete(rest, begun.Path)
		if begun.Do == "create" && rest.equal(before) && bytes.HasPrefix(content(begun.Name, begun.Size), found[begun.Path]) {
			return n, false
		}
	}
	r.t.Errorf("after %d steps there are %v; want %v, or what the next makes of it", n, found, before)
	return n, false
}

// wantBackup is wantSteps of a rename to a backup name: once the mount is dead it has
// not taken place, but for one in whose place a new file was published.
func (r *rig) wantBackup(op *operation, found, have tree) (n int, whole bool) {
	r.t.Helper()
	fresh, old := op.after[op.target], op.seeds[op.target]
	if len(op.steps) == 1 { // and nothing is written
		return r.wantRenamed(op, found)
	}
	backup, there := found[op.backup]
	at := found[op.target]
	if there && !bytes.Equal(backup, old) {
		r.t.Errorf("the backup is %s", brief(backup))
	}
	switch {
	case bytes.Equal(at, fresh) && r.done >= 1:
		if !there && have.equal(op.after) && r.done < len(op.steps)-1 {
			r.t.Errorf("after %d steps the new file is published, and of the old one there is no backup", r.done)
		}
		if !there {
			return len(op.steps), true
		}
		return max(r.done, 2), true
	case bytes.Equal(at, old) && r.done <= 1:
		return 0, true
	case bytes.HasPrefix(fresh, at) && r.done == 1:
		return 1, false
	}
	r.t.Errorf("after %d steps there are %v", r.done, found)
	return 0, false
}

// wantRenamed is wantBackup where the rename is made at last: the file has one of the
// names, or both while a rename that failed is kept.
func (r *rig) wantRenamed(op *operation, found tree) (n int, whole bool) {
	r.t.Helper()
	switch {
	case found.equal(op.after):
		return len(op.steps), true
	case !found.equal(op.seeds) && !found.equal(op.half()):
		r.t.Errorf("there are %v", found)
	}
	return 0, true
}

// resolveHeld publishes what is staged and whole, under the names that it has, and
// drops the rest. It returns what the store is to have then.
func (r *rig) resolveHeld(op *operation, have tree, kept []staged) tree {
	r.t.Helper()
	var listed []string
	for _, w := range r.keptByCommand() {
		listed = append(listed, w.ID)
	}
	want := maps.Clone(have)
	for _, w := range kept {
		if w.Hold == "local" {
			r.t.Errorf("a file of the mount alone is not found by its name: %+v", w)
		}
		if !slices.Contains(listed, w.ID) {
			r.t.Errorf("recover does not list %+v", w)
		}
		o, err := r.agent.ask(task{Do: "read", Path: r.Path(w.shown())})
		if err != nil {
			r.t.Errorf("%+v: %v", w, err)
			continue
		}
		name := strings.TrimPrefix(w.Path, r.part+"/")
		do := "--abort="
		if bytes.Equal(o.Raw, op.after[op.target]) || bytes.Equal(o.Raw, op.after[name]) {
			do, want[name] = "--publish=", o.Raw
		}
		if res := r.command(do + w.ID); res.Code != 0 {
			r.t.Errorf("recover %s of %+v: code %d\n%s%s", do, w, res.Code, res.Out, res.Err)
		}
	}
	return want
}

// removePrivate removes what lives in the mount alone.
func (r *rig) removePrivate(op *operation) {
	r.t.Helper()
	for _, name := range op.private {
		if err := r.agent.do(task{Do: "remove all", Path: r.at(name)}); err != nil {
			r.t.Errorf("remove %s: %v", name, err)
		}
	}
}
