package crash_test

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// A transaction's files are written below inTransaction, which stands for the directory
// of the round in it.
const (
	transaction   = "txn"
	inTransaction = transaction + "/here"
)

// at is the path of a name of an operation. "here" is the directory of the round.
func (r *rig) at(name string) string {
	rest, ok := strings.CutPrefix(name, transaction)
	if !ok || rest != "" && rest[0] != '/' {
		return r.Path(r.part + "/" + name)
	}
	table, dir := path.Split(r.part)
	if below, ok := strings.CutPrefix(rest, "/here"); ok {
		rest = "/" + dir + below
	}
	return r.Path(path.Join(table, ".lakefs/txn/load", rest))
}

// said is a line to ctl, of the round.
func (r *rig) said(line string) string {
	return strings.ReplaceAll(line, "here", path.Base(r.part))
}

// transactionOperations are commits of several files at once into a partition that is
// there and a new one.
func transactionOperations() []operation {
	commit, late := task{Do: "tell", Path: transaction + "/ctl", Name: "commit\n"}, task{Do: "rename", Path: inTransaction + "/h=1/b.csv", To: inTransaction + "/h=1/d.csv"}
	refused := commit
	refused.Do = "be told it exists"
	old := tree{"h=1/old.csv": small("old"), "h=1/older.csv": small("older"), "h=3/kept.csv": small("kept")}
	theirs := tree{"h=1/b.csv": small("theirs")}
	written := tree{"h=1/a.csv": small("a.csv"), "h=1/b.csv": small("b.csv"), "h=2/c.csv": small("c.csv")}
	return []operation{
		transactionOf("commit", old, joinTrees(old, written), commit),
		transactionOf("commit, a target is taken", theirs,
			joinTrees(theirs, tree{"h=1/a.csv": written["h=1/a.csv"], "h=1/d.csv": written["h=1/b.csv"], "h=2/c.csv": written["h=2/c.csv"]}),
			refused, late, commit),
		transactionOf("overwrite", old, joinTrees(tree{"h=3/kept.csv": old["h=3/kept.csv"]}, written), overwriting("overwrite\n")),
		transactionOf("overwrite, prefix", old, written, overwriting("overwrite here/\n")),
	}
}

func overwriting(line string) task {
	return task{Do: "tell", Path: transaction + "/ctl", Name: line}
}

func joinTrees(trees ...tree) tree {
	all := tree{}
	for _, t := range trees {
		maps.Copy(all, t)
	}
	return all
}

// transactionOf is an operation that writes three files and then says something to ctl.
func transactionOf(name string, seeds, after tree, said ...task) operation {
	steps := []task{{Do: "mkdir", Path: transaction}, {Do: "mkdir", Path: inTransaction}}
	for _, dir := range []string{"h=1", "h=2"} {
		steps = append(steps, task{Do: "mkdir", Path: inTransaction + "/" + dir})
	}
	for _, file := range []string{"h=1/a.csv", "h=1/b.csv", "h=2/c.csv"} {
		steps = append(steps, task{Do: "create", Path: inTransaction + "/" + file, Name: path.Base(file), Size: smallSize, Chunks: 1000})
	}
	return operation{
		name: "transaction, " + name, seeds: seeds, after: after, target: "h=1/a.csv",
		held: held{steps: slices.Concat(steps, said), private: []string{transaction}, flags: patiently(), table: deepTable},
	}
}

// commits tells whether a step is the end of a transaction, and what it clears first.
func (k *task) commits() (clears string, ok bool) {
	if k.Do != "tell" || k.Path != transaction+"/ctl" {
		return "", false
	}
	verb, scope, _ := strings.Cut(strings.TrimSpace(k.Name), " ")
	switch {
	case verb == "commit":
		return "", true
	case scope == "":
		return "written", true
	}
	return "all", true
}

// applyCommit does to at what a commit does.
func applyCommit(at tree, clears string) {
	written := tree{}
	dirs := make(map[string]bool)
	for _, name := range sortedKeys(at) {
		if final, ok := strings.CutPrefix(name, inTransaction+"/"); ok {
			written[final] = at[name]
			dirs[path.Dir(final)] = true
			delete(at, name)
		}
	}
	for _, name := range sortedKeys(at) {
		if clears == "all" || clears == "written" && dirs[path.Dir(name)] {
			delete(at, name)
		}
	}
	maps.Copy(at, written)
}

// overwrites tells whether an operation clears before it publishes.
func (op *operation) overwrites() bool {
	if len(op.steps) == 0 {
		return false
	}
	clears, ok := op.steps[len(op.steps)-1].commits()
	return ok && clears != ""
}

// wantOverwritten asserts of an overwrite that failed, and whose mount was killed then,
// that it cleared before it published (rule 29): each new file is published or in the
// transaction, and if one is published all that it replaces is gone. The rest is
// committed then.
func (r *rig) wantOverwritten(op *operation, acknowledged bool) {
	r.t.Helper()
	r.wantPrivate(op)
	have := r.store()
	now, err := r.status()
	if err != nil {
		r.t.Fatalf("status.json: %v", err)
	}
	found := r.find(op, now.Staged)
	published, cleared, left := 0, 0, 0
	for name, raw := range op.after {
		_, stays := op.seeds[name]
		private := inTransaction + "/" + name
		switch {
		case stays && string(have[name]) != string(raw):
			r.t.Errorf("%s is %s, and nothing was to happen to it", name, brief(have[name]))
		case stays:
		case string(have[name]) == string(raw) && found[private] == nil:
			published++
		case have[name] == nil && string(found[private]) == string(raw):
			left++
		default:
			r.t.Errorf("%s is %s in the store, %s in the transaction", name, brief(have[name]), brief(found[private]))
		}
	}
	for name, raw := range op.seeds {
		switch _, stays := op.after[name]; {
		case stays:
		case have[name] == nil:
			cleared++
		case string(have[name]) != string(raw):
			r.t.Errorf("%s, which is to be cleared, is %s", name, brief(have[name]))
		case published > 0:
			r.t.Errorf("%s is there beside what replaces it", name)
		}
	}
	if acknowledged && left > 0 || len(now.Staged) > 0 {
		r.t.Errorf("acknowledged: %v; published %d, cleared %d, left %d; status.json has %+v", acknowledged, published, cleared, left, now)
	}
	if left > 0 && r.done == len(op.steps)-1 {
		last := op.steps[len(op.steps)-1]
		if published > 0 {
			last.Name = "commit\n"
		}
		if err := r.agent.do(task{Do: "tell", Path: r.at(last.Path), Name: r.said(last.Name)}); err != nil {
			r.t.Errorf("%s of the rest: %v", last.Name, err)
		}
		have, _ = r.wantState(op, "new")
	}
	r.wantMountShows(have)
	r.wantClean()
}
