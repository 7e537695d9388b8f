package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// fsType is the type of our mounts in the mount table.
const fsType = "fuse.lakefs-mount"

// tableEntry is one line of the mount table.
type tableEntry struct {
	device string // minor device number: the FUSE connection's
	path   string
	fsType string
	source string
	ro     bool // the kernel refuses every change
}

// ours tells whether it is a mount of this program.
func (e tableEntry) ours() bool { return e.fsType == fsType }

// mountTable is what is mounted, as this process sees it, in order of mounting.
func mountTable() ([]tableEntry, error) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w; lakefs-mount needs /proc: mount -t proc proc /proc", err)
	}
	return parseMountTable(string(raw)), nil
}

// parseMountTable reads /proc/PID/mountinfo; lines that it does not understand
// are left out.
func parseMountTable(raw string) []tableEntry {
	var table []tableEntry
	for line := range strings.Lines(raw) {
		left, right, _ := strings.Cut(line, " - ")
		f, r := strings.Fields(left), strings.Fields(right)
		if len(f) < 6 || len(r) < 2 {
			continue
		}
		_, minor, _ := strings.Cut(f[2], ":")
		table = append(table, tableEntry{
			device: minor, path: unescapeMount(f[4]), fsType: r[0], source: unescapeMount(r[1]),
			ro: slices.Contains(strings.Split(f[5], ","), "ro") || len(r) > 2 && slices.Contains(strings.Split(r[2], ","), "ro"),
		})
	}
	return table
}

// unescapeMount undoes the kernel's octal escapes (\040 for a space).
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && octal(s[i+1]) && octal(s[i+2]) && octal(s[i+3]) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func octal(c byte) bool { return c >= '0' && c <= '7' }

// mountedAt is the topmost mount at path.
func mountedAt(path string) (tableEntry, bool, error) {
	table, err := mountTable()
	if err != nil {
		return tableEntry{}, false, err
	}
	for i := len(table) - 1; i >= 0; i-- {
		if table[i].path == path {
			return table[i], true, nil
		}
	}
	return tableEntry{}, false, nil
}

// mountOf is the mount of ours that path lies in.
func mountOf(path string) (tableEntry, error) {
	table, err := mountTable()
	if err != nil {
		return tableEntry{}, err
	}
	best := mountHolding(table, path)
	if !best.ours() {
		return tableEntry{}, fmt.Errorf("%q is in no mount of lakefs-mount; see: lakefs-mount status", path)
	}
	return best, nil
}

// mountHolding is the mount of any kind that path lies in.
func mountHolding(table []tableEntry, path string) tableEntry {
	var best tableEntry
	for _, e := range table {
		if within(path, e.path) && len(e.path) >= len(best.path) {
			best = e
		}
	}
	return best
}
