package fs

import (
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// TestOperationsExplainEachErrno that a program can see, and no other.
func TestOperationsExplainEachErrno(t *testing.T) {
	raw, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(raw), "\n| errno | what happened | what to do |\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/operations.md has no table of errnos")
	}
	section, _, _ = strings.Cut(section, "\n\n")
	explained := map[string]bool{}
	for row := range strings.Lines(section) {
		names, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
		for _, name := range strings.Split(names, ", ") {
			explained[name] = true
		}
	}
	want := map[string]bool{"ENOTCONN": true} // the kernel's own
	add := func(e syscall.Errno) {
		if e == syscall.EOPNOTSUPP { // ENOTSUP is the same number
			want["EOPNOTSUPP"] = true
			return
		}
		want[unix.ErrnoName(e)] = true
	}
	for _, e := range errnos {
		add(e.errno)
	}
	for _, c := range []table.Class{
		table.ClassBroken, table.ClassReadOnly, table.ClassDenied, table.ClassUnsupported, table.ClassView, table.ClassLoop,
	} {
		add(verdictErrno(c))
	}
	add(toErrno(os.ErrClosed)) // what is not in the table
	if got, all := slices.Sorted(maps.Keys(explained)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, all) {
		t.Errorf("docs/operations.md explains %q, a program can see %q", got, all)
	}
}
