package crash_test

import (
	"fmt"
	"slices"
)

const (
	smallSize = 3000
	partBytes = 5 << 20
	largeSize = 2*partBytes + 123 // what has two full parts is not sent by one request
)

// operation is one thing that a program does, which takes a directory from one
// state to the next.
type operation struct {
	name   string
	seeds  tree // before
	after  tree
	target string // what is published
	task   task   // its paths are names in the directory
	writes bool   // its bytes exist nowhere else: lost is what is neither published nor staged
	held          // of names that are not published at the close
}

func small(name string) []byte { return content(name, smallSize) }

// joined is one content behind the other.
func joined(pieces ...[]byte) []byte { return slices.Concat(pieces...) }

// patched is a content in which another one replaces bytes.
func patched(old []byte, at int, by []byte) []byte {
	out := slices.Clone(old)
	copy(out[at:], by)
	return out
}

// writing are operations that write one file of both sizes.
func writing(size string, n int) []operation {
	old, fresh, more := content("old", n), content("fresh", n), small("more")
	at := n - n/100 // of a large file in the last part
	return []operation{
		{
			name: "publish " + size, after: tree{"f.csv": fresh},
			task: task{Do: "create", Name: "fresh", Size: n},
		},
		{
			name: "publish and fsync " + size, after: tree{"f.csv": fresh},
			task: task{Do: "create", Name: "fresh", Size: n, Sync: true},
		},
		{
			name: "overwrite " + size, seeds: tree{"f.csv": old}, after: tree{"f.csv": fresh},
			task: task{Do: "create", Name: "fresh", Size: n},
		},
		{
			name: "append to " + size, seeds: tree{"f.csv": old}, after: tree{"f.csv": joined(old, more)},
			task: task{Do: "append", Name: "more", Size: smallSize, Chunks: 1000},
		},
		{
			name: "patch " + size, seeds: tree{"f.csv": old}, after: tree{"f.csv": patched(old, at, more[:min(smallSize, n-at)])},
			task: task{Do: "patch", Name: "more", Size: min(smallSize, n-at), Off: int64(at)},
		},
		{
			name: "copy " + size, seeds: tree{"a.csv": old}, after: tree{"a.csv": old, "f.csv": old},
			task: task{Do: "copy", Path: "a.csv", To: "f.csv"},
		},
	}
}

// operations are all of them.
func operations() []operation {
	all := slices.Concat(writing("small", smallSize), writing("large", largeSize))
	for i := range all {
		all[i].writes = true
		if all[i].task.Path == "" {
			all[i].task.Path = "f.csv"
		}
	}
	a, f := small("a"), small("f")
	all = append(all,
		operation{
			name: "rename", seeds: tree{"a.csv": a}, after: tree{"f.csv": a},
			task: task{Do: "rename", Path: "a.csv", To: "f.csv"},
		},
		operation{
			name: "rename over", seeds: tree{"a.csv": a, "f.csv": f}, after: tree{"f.csv": a},
			task: task{Do: "rename", Path: "a.csv", To: "f.csv"},
		},
		operation{
			name: "rename before the close", after: tree{"f.csv": a}, writes: true,
			task: task{Do: "renamed before its close", Path: "a.csv", To: "f.csv", Name: "a", Size: smallSize},
		},
	)
	for i := range all {
		all[i].target = "f.csv"
	}
	return append(all, heldOperations()...)
}

// named finds an operation.
func named(name string) operation {
	for _, op := range operations() {
		if op.name == name {
			return op
		}
	}
	panic(fmt.Sprintf("no operation %q", name))
}

// large tells whether it has files of several parts.
func (op *operation) large() bool { return len(op.after[op.target]) > partBytes }

// half is the state of a rename between its two steps: the object is at both names.
func (op *operation) half() tree {
	first := op.task
	if len(op.steps) == 1 {
		first = op.steps[0]
	}
	if first.Do != "rename" {
		return nil
	}
	both := tree{first.Path: op.seeds[first.Path]}
	for name, raw := range op.after {
		both[name] = raw
	}
	return both
}
