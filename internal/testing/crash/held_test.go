package crash_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
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
	table   string   // "": text
	backup  string   // the name to which a file is renamed before it is written anew
}

// stampMode is the mode that the temporary files of tools are given.
const stampMode = 0o640

func (h *held) isHeld() bool { return len(h.steps) > 0 }

// directory tells whether one step publishes several files.
func (h *held) directory() bool { return h.table == deepTable }

// deepTable has two keys: in a directory of the first, one of the second can be published.
const deepTable = "deep"

// patiently is for files that no linger may publish, however slow the machine is.
func patiently() []string { return []string{"--temporary-linger=10m"} }

// created is the task that writes a small file as f.csv is to be.
func created(name string) task {
	return task{Do: "create", Path: name, Name: "fresh", Size: smallSize, Chunks: 1000}
}

// heldOperations are what tools do that write under another name first.
func heldOperations() []operation {
	all := slices.Concat(temporaryOperations(), backupOperations(), treeOperations(), transactionOperations())
	if soaking() {
		all = append(all, operation{
			name: "temporary over, large", seeds: tree{"f.csv": small("old")}, after: tree{"f.csv": content("fresh", largeSize)},
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

// temporaryOperations are those of temporary and of local names.
func temporaryOperations() []operation {
	old, fresh := tree{"f.csv": small("old")}, tree{"f.csv": small("fresh")}
	left := operation{
		after: tree{"f.csv.tmp": small("fresh")}, target: "f.csv.tmp",
		held: held{steps: []task{created("f.csv.tmp")}},
	}
	lingers, unmounted := left, left
	lingers.name, lingers.behind, lingers.flags = "temporary, left", "linger", []string{"--temporary-linger=20ms"}
	unmounted.name, unmounted.behind, unmounted.flags = "temporary, unmounted", "unmount", patiently()
	return []operation{
		{
			name: "temporary", after: fresh,
			held: held{
				steps:   []task{created("f.csv.tmp"), {Do: "rename", Path: "f.csv.tmp", To: "f.csv"}},
				private: []string{"f.csv.tmp"}, flags: patiently(),
			},
		},
		{
			name: "temporary over", seeds: old, after: fresh,
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
			name: "local", seeds: old, after: fresh,
			held: held{
				steps:   []task{created("f.csv.lock"), {Do: "rename", Path: "f.csv.lock", To: "f.csv"}},
				private: []string{"f.csv.lock"}, flags: patiently(),
			},
		},
		lingers, unmounted,
	}
}

// backupOperations rename a file before it is written anew, or is not.
func backupOperations() []operation {
	old := tree{"f.csv": small("old")}
	rename := task{Do: "rename", Path: "f.csv", To: "f.csv~"}
	left := operation{
		seeds: old, after: tree{"f.csv~": small("old")}, target: "f.csv~",
		held: held{steps: []task{rename}, backup: "f.csv~"},
	}
	lingers, unmounted := left, left
	lingers.name, lingers.behind, lingers.flags = "backup, left", "linger", []string{"--temporary-linger=20ms"}
	unmounted.name, unmounted.behind, unmounted.flags = "backup, unmounted", "unmount", patiently()
	return []operation{
		{
			name: "backup", seeds: old, after: tree{"f.csv": small("fresh")},
			held: held{
				steps:   []task{rename, created("f.csv"), {Do: "unlink", Path: "f.csv~"}},
				private: []string{"f.csv~"}, backup: "f.csv~", flags: patiently(),
			},
		},
		lingers, unmounted,
	}
}

// treeOperations do as Hadoop's committers: an attempt writes in a staging tree, its
// directory is renamed when it is done, and then what is in it is renamed out.
func treeOperations() []operation {
	const job, attempt = "_temporary/0", "_temporary/0/_temporary/attempt_1"
	dirs := []task{{Do: "mkdir", Path: "_temporary"}, {Do: "mkdir", Path: job}, {Do: "mkdir", Path: job + "/_temporary"}, {Do: "mkdir", Path: attempt}}
	done := task{Do: "rename", Path: attempt, To: job + "/task_1"}
	remove := task{Do: "remove all", Path: "_temporary"}
	three, after := []task{{Do: "mkdir", Path: attempt + "/h=1"}}, tree{}
	for _, name := range []string{"a.csv", "b.csv", "c.csv"} {
		three = append(three, task{Do: "create", Path: attempt + "/h=1/" + name, Name: name, Size: smallSize, Chunks: 1000})
		after["h=1/"+name] = small(name)
	}
	return []operation{
		{
			name: "tree, file", after: tree{"f.csv": small("fresh")},
			held: held{
				steps: slices.Concat(dirs, []task{
					created(attempt + "/f.csv"), done, {Do: "rename", Path: job + "/task_1/f.csv", To: "f.csv"}, remove,
				}),
				private: []string{"_temporary"}, flags: patiently(),
			},
		},
		{
			name: "tree, directory", target: "h=1/b.csv", after: after,
			held: held{
				steps: slices.Concat(dirs, three, []task{
					done, {Do: "rename", Path: job + "/task_1/h=1", To: "h=1"}, remove,
				}),
				private: []string{"_temporary"}, flags: patiently(), table: deepTable,
			},
		},
	}
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
	case "tell":
		if clears, ok := k.commits(); ok {
			applyCommit(at, clears)
		}
	case "unlink", "remove all", "rename":
		for _, name := range sortedKeys(at) {
			rest, ok := strings.CutPrefix(name, k.Path)
			if !ok || rest != "" && rest[0] != '/' {
				continue
			}
			if k.Do == "rename" {
				at[k.To+rest] = at[name]
			}
			delete(at, name)
		}
	}
}

// errNotPublished: what was to be published behind the answers was not.
var errNotPublished = errors.New("not published")

// runHeld has the steps done from one on, and waits for what comes behind them.
func (r *rig) runHeld(op *operation, from int) error {
	k := task{Do: "steps"}
	for _, step := range op.steps[from:] {
		step.Path = r.at(step.Path)
		if step.To != "" {
			step.To = r.at(step.To)
		}
		if strings.HasSuffix(step.Path, "/ctl") {
			step.Name = r.said(step.Name)
		}
		k.Steps = append(k.Steps, step)
	}
	o, err := r.agent.ask(k)
	r.done = from + o.Done
	switch {
	case err != nil:
		return err
	case op.behind == "linger":
		return r.lingered(op)
	case op.behind == "unmount":
		return r.unmounted()
	}
	return nil
}

// lingered waits until the linger has come to an end.
func (r *rig) lingered(op *operation) error {
	err := errors.New("nothing came of it")
	within(time.Minute, func() bool {
		var s status
		if s, err = r.status(); err != nil {
			return true
		}
		switch {
		case len(s.Staged) > 0 && s.Staged[0].State == "failed":
			err = fmt.Errorf("%w: %s", errNotPublished, s.Staged[0].Error)
			return true
		case len(s.Staged) == 0:
			files, failed := r.StoredTree(r.part) // it may change meanwhile
			if failed == nil && bytesOf(r.t, files).equal(op.after) {
				return true
			}
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
