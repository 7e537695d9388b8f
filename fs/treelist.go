package fs

import "slices"

// fetchTree is fetch in a staging tree: what the mount has in it, as it was when the
// listing began, and then what the store has under other names.
func (h *dirHandle) fetchTree(path string) (more bool) {
	if h.own == nil {
		h.beginTree(path)
	}
	if len(h.mine) == 0 {
		return false
	}
	base := h.mine[0]
	h.mine = h.mine[1:]
	h.given.add(base, h.own[base]) // READDIRPLUS looks it up, which asks for nothing
	return true
}

// beginTree takes down what the mount has in path.
func (h *dirHandle) beginTree(path string) {
	f := h.dir.fs
	h.own = make(map[string]bool) // whether it is a directory
	for _, base := range f.local.children(path) {
		h.own[base] = true
	}
	for _, base := range f.names.stagedDirectories(path) {
		h.own[base] = true
	}
	for _, base := range f.names.stagedIn(path) {
		h.own[base] = false
	}
	h.mine = make([]string, 0, len(h.own))
	for base := range h.own {
		h.mine = append(h.mine, base)
	}
	slices.Sort(h.mine)
}
