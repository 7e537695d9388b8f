package crash_test

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"syscall"
	"time"
)

// held is the part of an operation that writes names which are not published when
// they are closed: temporary ones, local ones, and those in staging trees.
type held struct {
	steps   []task   // in the place of the task
	private []string // names that are never in the store, nor what lies below them
	behind  string   // what publishes behind the answers: "", "linger", "unmount"
	flags   []string // of the mount
	stamped bool     // the target bears a mode and a time that were set before the rename
}

// stampMode is the mode that the temporary files of tools are given.
const stampMode = 0o640

func (h *held) isHeld() bool { return len(h.steps) > 0 }

// directory tells whether one step publishes several files.
func (h *held) directory() bool {
	for _, k := range h.steps {
		if k.Do == "rename" && path.Ext(k.Path) == "" && path.Ext(k.To) == "" {
			return true
		}
	}
	return false
}

// patiently is for files that no linger may publish, however slow the machine is.
func patiently() []string { return []string{"--temporary-linger=10m"} }

// heldOperations are what tools do that write under another name first.
func heldOperations() []operation {
	old, fresh := small("old"), small("fresh")
	create := func(name, content string) task {
		return task{Do: "create", Path: name, Name: content, Size: smallSize, Chunks: 1000}
	}
	const tree = "_temporary/0/_temporary/attempt_1"
	all := []operation{
		{
			name: "temporary", after: map[string][]byte{"f.csv": fresh},
			held: held{
				steps:   []task{create("f.csv.tmp", "fresh"), {Do: "rename", Path: "f.csv.tmp", To: "f.csv"}},
				private: []string{"f.csv.tmp"}, flags: patiently(),
			},
		},
		{
			name: "temporary over", seeds: map[string][]byte{"f.csv": old}, after: map[string][]byte{"f.csv": fresh},
			held: held{
				steps: []task{
					{Do: "create", Path: "sedAb1_dE", Name: "fresh", Size: smallSize, Chunks: 1000, Mode: stampMode},
					{Do: "utimes", Path: "sedAb1_dE"},
					{Do: "rename", Path: "sedAb1_dE", To: "f.csv"},
				},
				private: []string{"sedAb1_dE"}, flags: patiently(), stamped: true,
			},
		},
		{
			name: "temporary, left", after: map[string][]byte{"f.csv.tmp": fresh}, target: "f.csv.tmp",
			held: held{steps: []task{create("f.csv.tmp", "fresh")}, behind: "linger", flags: []string{"--temporary-linger=20ms"}},
		},
		{
			name: "temporary, unmounted", after: map[string][]byte{"f.csv.tmp": fresh}, target: "f.csv.tmp",
			held: held{steps: []task{create("f.csv.tmp", "fresh")}, behind: "unmount", flags: patiently()},
		},
		{
			name: "local", seeds: map[string][]byte{"f.csv": old}, after: map[string][]byte{"f.csv": fresh},
			held: held{
				steps:   []task{create("f.csv.lock", "fresh"), {Do: "rename", Path: "f.csv.lock", To: "f.csv"}},
				private: []string{"f.csv.lock"}, flags: patiently(),
			},
		},
	}
	_ = tree
	if soaking() {
		all = append(all, operation{
			name: "temporary over, large", seeds: map[string][]byte{"f.csv": old}, after: map[string][]byte{"f.csv": content("fresh", largeSize)},
			held: held{
				steps:   []task{{Do: "create", Path: ".f.csv.a1B2c3", Name: "fresh", Size: largeSize}, {Do: "rename", Path: ".f.csv.a1B2c3", To: "f.csv"}},
				private: []string{".f.csv.a1B2c3"}, flags: patiently(),
			},
		})
	}
	for i := range all {
		if all[i].target == "" {
			all[i].target = "f.csv"
		}
	}
	return all
}

// seen is what a program finds after n steps.
func (op *operation) seen(n int) tree {
	at := tree{}
	maps.Copy(at, op.seeds)
	for _, k := range op.steps[:n] {
		k.apply(at)
	}
	return at
}

// apply does to at what the task does to a directory.
func (k *task) apply(at tree) {
	switch k.Do {
	case "create":
		at[k.Path] = content(k.Name, k.Size)
	case "unlink":
		delete(at, k.Path)
	case "rename":
		for _, name := range sortedKeys(at) {
			if rest, ok := strings.CutPrefix(name, k.Path); ok && (rest == "" || rest[0] == '/') {
				at[k.To+rest] = at[name]
				delete(at, name)
			}
		}
	}
}

// errNotPublished: what was to be published behind the answers was not.
var errNotPublished = errors.New("not published")

// runHeld has the steps done from one on, and waits for what comes behind them.
func (r *rig) runHeld(op *operation, from int) error {
	k := task{Do: "steps"}
	for _, step := range op.steps[from:] {
		step.Path = r.Path(r.part + "/" + step.Path)
		if step.To != "" {
			step.To = r.Path(r.part + "/" + step.To)
		}
		k.Steps = append(k.Steps, step)
	}
	o, err := r.agent.ask(k)
	r.done = from + o.Done
	switch {
	case err != nil:
		return err
	case op.behind == "linger":
		return r.lingered()
	case op.behind == "unmount":
		return r.unmounted()
	}
	return nil
}

// lingered waits until the linger has come to an end.
func (r *rig) lingered() error {
	err := errors.New("nothing came of it")
	within(time.Minute, func() bool {
		var s status
		if s, err = r.status(); err != nil {
			return true
		}
		if len(s.Staged) == 0 {
			return true
		}
		if w := s.Staged[0]; w.State == "failed" {
			err = fmt.Errorf("%w: %s", errNotPublished, w.Error)
			return true
		}
		err = errors.New("it lingers for a minute")
		return false
	})
	return err
}

// unmounted ends the daemon as umount does.
func (r *rig) unmounted() error {
	r.t.Helper()
	if err := syscall.Kill(r.Pid(), syscall.SIGTERM); err != nil {
		return err
	}
	code := r.Wait()
	r.down = true
	if code != 0 {
		return fmt.Errorf("%w: the daemon ended with %d", errNotPublished, code)
	}
	return nil
}

// up mounts again what an operation has unmounted.
func (r *rig) up() {
	r.t.Helper()
	if r.down {
		r.start("--io-timeout=20s")
	}
}
