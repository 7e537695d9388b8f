package fs_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Programs take a rename that failed for one that has not taken place.

// TestRule61_RenameIntoAPartitionTheCatalogRefuses: mv and os.rename say so, the file
// keeps its name, and goes where it was to go after the grant.
func TestRule61_RenameIntoAPartitionTheCatalogRefuses(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	l.MustSh(`cd db/t; mkdir dt=7; ls -l dt=1`)
	denied := l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: gluetest.Denied()})
	r := l.Sh(`mv db/t/dt=1/a db/t/dt=7/a`)
	if r.Code == 0 || !strings.Contains(r.Err, "Permission denied") || strings.Contains(r.Err, "same file") {
		t.Errorf("mv: exit code %d, %q; want Permission denied", r.Code, r.Err)
	}
	if script := `import os
try: os.rename("db/t/dt=1/a", "db/t/dt=7/x")
except PermissionError as e: print(e.strerror, os.path.exists("db/t/dt=1/a"), os.path.exists("db/t/dt=7/x"))`; mustPython(t, l, script) != "Permission denied True False\n" {
		t.Error("os.rename did something else")
	}
	wantStore(t, l, "db/t/dt=1/a", "1,one\n")
	wantAbsent(t, l, "db/t/dt=7/a")
	wantAbsent(t, l, "db/t/dt=7/x")
	wantNames(t, l, "db/t/dt=1", "a")
	wantNames(t, l, "db/t/dt=7")
	if log := l.Log(); !strings.Contains(log, "its partition cannot be registered in the catalog") {
		t.Errorf("the log does not tell why:\n%s", log)
	}
	denied.Remove()
	if got := l.MustSh(`cd db/t; mv dt=1/a dt=7/a; ls dt=1; cat dt=7/a`); got != "1,one\n" {
		t.Errorf("after the grant: %q", got)
	}
	wantRegistered(t, l, "t", "1", "2", "3", "7")
	wantAbsent(t, l, "db/t/dt=1/a")
}

// TestRule61_OverwriteByRenameInAPartitionTheCatalogRefuses: editors and the tools
// that write beside and rename leave the old file whole.
func TestRule61_OverwriteByRenameInAPartitionTheCatalogRefuses(t *testing.T) {
	t.Parallel()
	table := inCatalog()
	table.Files["dt=7/f"] = "old,1\nold,2\n"
	l := mountGlue(t, mounttest.Options{}, table)
	l.MustSh(`cd db/t; ls dt=7; cat dt=7/f`)
	denied := l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: gluetest.Denied()})
	if r := l.Sh(`sed -i s/old/new/ db/t/dt=7/f`); r.Code == 0 || !strings.Contains(r.Err, "Permission denied") {
		t.Errorf("sed -i: exit code %d, %q; want Permission denied", r.Code, r.Err)
	}
	wantStore(t, l, "db/t/dt=7/f", "old,1\nold,2\n")
	l.MustSh(`echo new > db/t/dt=7/_f`)
	wantErrno(t, "of a hidden file", rename(l, "db/t/dt=7/_f", "db/t/dt=7/f"), syscall.EACCES)
	wantStore(t, l, "db/t/dt=7/f", "old,1\nold,2\n")
	wantStore(t, l, "db/t/dt=7/_f", "new\n")
	staged := `import os
f = os.open("db/t/dt=7/g", os.O_WRONLY|os.O_CREAT)
os.write(f, b"new\n")
try: os.rename("db/t/dt=7/g", "db/t/dt=7/f")
except PermissionError: print("refused")
os.rename("db/t/dt=7/g", "db/t/dt=1/g")
os.close(f)
print(open("db/t/dt=1/g").read(), end="")`
	if got := mustPython(t, l, staged); got != "refused\nnew\n" {
		t.Errorf("of a file that is open: %q", got)
	}
	wantStore(t, l, "db/t/dt=7/f", "old,1\nold,2\n")
	denied.Remove()
	l.MustSh(`sed -i s/old/new/ db/t/dt=7/f`)
	wantStore(t, l, "db/t/dt=7/f", "new,1\nnew,2\n")
	wantRegistered(t, l, "t", "1", "2", "3", "7")
}
