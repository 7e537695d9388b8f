package crash_test

import (
	"bytes"
	"strings"
)

// dropLocal removes the files of local names, which are found by them.
func (w *world) dropLocal(got tree) {
	w.t.Helper()
	now, err := w.status()
	if err != nil {
		w.t.Fatalf("status.json: %v", err)
	}
	for _, s := range now.Local {
		first := strings.TrimPrefix(s.Path, worldPart+"/")
		fresh := w.maybe[w.first[first]]
		o, err := w.agent.ask(task{Do: "read", Path: w.Path(s.Path)})
		if err != nil || !bytes.HasPrefix(fresh, o.Raw) || w.closed[first] && len(o.Raw) != len(fresh) {
			w.t.Errorf("%+v is %s, %v; written was %s", s, brief(o.Raw), err, brief(fresh))
		}
		if bytes.Equal(got[w.first[first]], fresh) {
			w.t.Errorf("%+v is published as well", s)
		}
		if err := w.agent.do(task{Do: "unlink", Path: w.Path(s.Path)}); err != nil {
			w.t.Errorf("drop %+v: %v", s, err)
		}
		delete(w.closed, first)
		w.sum.kept++
	}
}

// drop drops what is staged, which each is of a write that was not acknowledged and
// has what was written.
func (w *world) drop(got tree) {
	w.t.Helper()
	staged := make(map[string]bool)
	for _, s := range w.kept() {
		o, err := w.agent.ask(task{Do: "read", Path: w.Path(s.shown())})
		if err != nil || int64(len(o.Raw)) != s.Size {
			w.t.Errorf("%+v has %d bytes, %v", s, len(o.Raw), err)
		}
		name := strings.TrimPrefix(s.Path, worldPart+"/")
		first := name
		if target := w.first[name]; target != "" {
			name = target
		}
		staged[name] = true
		fresh, begun := w.maybe[name]
		switch {
		case s.Path == incomplete && w.synced != nil:
			if !bytes.Equal(o.Raw, w.synced) {
				w.t.Errorf("%+v has other bytes than were synced", s)
			}
			w.synced = nil
		case s.Path == incomplete:
		case !begun:
			w.t.Errorf("%+v is staged, and its write was acknowledged", s)
		case w.closed[first] && !bytes.Equal(o.Raw, fresh):
			w.t.Errorf("%+v was closed, and has %d bytes", s, len(o.Raw))
		case bytes.Equal(o.Raw, w.have[name]): // opened, and not yet made shorter
		case !bytes.HasPrefix(fresh, o.Raw):
			w.t.Errorf("%+v has other bytes than were written", s)
		}
		if err := w.agent.do(task{Do: "unlink", Path: w.Path(s.shown())}); err != nil {
			w.t.Errorf("drop %+v: %v", s, err)
		}
		w.sum.kept++
	}
	for first := range w.closed {
		name := w.first[first]
		if !staged[name] && !bytes.Equal(got[name], w.maybe[name]) {
			w.t.Errorf("%s was closed, and is neither published nor staged", first)
		}
	}
	if w.synced != nil {
		w.t.Errorf("%s was synced, and is not staged", incomplete)
	}
	w.wantClean()
}
