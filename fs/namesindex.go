package fs

import (
	"maps"
	"slices"
	"strings"
)

// stagedWithin are the names of one directory that lead to unpublished files, and how
// many do in it and below it.
type stagedWithin struct {
	names map[*name]struct{}
	dirs  map[string]struct{} // the directories in it that have some
	below int
}

// lead makes n lead to the unpublished file s, or to the published one again (nil).
// The caller holds mu.
func (t *names) lead(n *name, s *stagedNode) {
	n.staged = s
	if indexed := s != nil && !n.gone; indexed != n.indexed {
		n.indexed = indexed
		t.index(n)
	}
}

// index enters n into within, or takes it out.
func (t *names) index(n *name) {
	change := -1
	if n.indexed {
		change = 1
	}
	dir, _ := parent(n.path)
	t.count(dir, change)
	if w := t.within[dir]; w != nil && n.indexed {
		w.names[n] = struct{}{}
	} else if w != nil {
		delete(w.names, n)
	}
}

// count counts the unpublished files in and below dir, and in all above it.
func (t *names) count(dir string, change int) {
	for {
		w := t.within[dir]
		if w == nil {
			w = &stagedWithin{names: make(map[*name]struct{}), dirs: make(map[string]struct{})}
			t.within[dir] = w
		}
		w.below += change
		if w.below == 0 {
			delete(t.within, dir)
		}
		if dir == "" {
			return
		}
		above, base := parent(dir)
		switch up := t.within[above]; {
		case w.below == 0:
			delete(up.dirs, base)
		case up == nil:
			t.within[above] = &stagedWithin{names: make(map[*name]struct{}), dirs: map[string]struct{}{base: {}}}
		default:
			up.dirs[base] = struct{}{}
		}
		dir = above
	}
}

// stagedBelow reports whether an unpublished file lies in or below dir.
func (t *names) stagedBelow(dir string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.within[dir] != nil
}

// stagedIn returns the names of the unpublished files in dir.
func (t *names) stagedIn(dir string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.within[dir]
	if w == nil {
		return nil
	}
	bases := make([]string, 0, len(w.names))
	for n := range w.names {
		_, base := parent(n.path)
		bases = append(bases, base)
	}
	return bases
}

// stagedDirectories returns the names of the directories in dir in or below which
// unpublished files lie.
func (t *names) stagedDirectories(dir string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.within[dir]
	if w == nil {
		return nil
	}
	return slices.Collect(maps.Keys(w.dirs))
}

// stagedTree returns the unpublished files in and below dir, in no order, with the
// path of each.
func (t *names) stagedTree(dir string) []stagedPath {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.within[dir] == nil {
		return nil
	}
	var all []stagedPath
	for d, w := range t.within {
		if d != dir && !strings.HasPrefix(d, dir+"/") {
			continue
		}
		for n := range w.names {
			all = append(all, stagedPath{n.path, n.staged})
		}
	}
	return all
}

// stagedPath is an unpublished file, and where it is found.
type stagedPath struct {
	path string
	node *stagedNode
}

// sortedKeys are the members of a set.
func sortedKeys(set map[string]struct{}) []string { return slices.Sorted(maps.Keys(set)) }
