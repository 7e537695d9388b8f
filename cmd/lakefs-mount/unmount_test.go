package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What an unmount names as not published, the command and the mount end with 1 for.
func TestUnmountThatNamesFilesFails(t *testing.T) {
	o := sales(t)
	o.Flags = []string{"--temporary-linger=1h"}
	lake := mounttest.Mount(t, o)
	const dir = "sales/notes/dt=2026-01-01"
	lake.MustSh("cd " + dir + "; echo mine > v.tmp; echo fine > w.tmp")
	lake.PutStored(dir+"/v.tmp", "theirs")
	r := lake.Run("unmount", lake.Root)
	if r.Code != exitFailed || !strings.Contains(r.Err, "not published") || !strings.Contains(r.Err, "v.tmp") || !strings.Contains(r.Err, "recover") || strings.Contains(r.Err, "w.tmp") {
		t.Errorf("unmount: exit code %d: %s", r.Code, r.Err)
	}
	if code := lake.Wait(); code != exitFailed || !strings.Contains(lake.Log(), `not published: "`+dir+`/v.tmp"`) {
		t.Errorf("the mount ended with %d: %s", code, lake.Log())
	}
	if lake.Mounted() {
		t.Error("still mounted")
	}
	if got, err := lake.Stored(dir + "/w.tmp"); err != nil || got != "fine\n" {
		t.Errorf("w.tmp in the store: %q, %v", got, err)
	}
	// What is kept of an earlier mount is nothing that this one leaves.
	lake.Start()
	if r := lake.Run("unmount", lake.Root); r.Code != 0 {
		t.Errorf("the next unmount: exit code %d: %s", r.Code, r.Err)
	}
	if code := lake.Wait(); code != 0 {
		t.Errorf("the next mount ended with %d", code)
	}
}

// TestUnmountWaitsForWhatAControlFileBegan, though the program that asked for it has the
// control file open.
func TestUnmountWaitsForWhatAControlFileBegan(t *testing.T) {
	t.Run("commit", func(t *testing.T) {
		lake, proxy, held, path := slowCommit(t)
		asked := background(t, "sh", "-c", `echo commit >"$0"`, path+"/ctl")
		held.Wait(t, 1)
		wantPatientUnmount(t, lake, "waits for: commit of sales/notes/.lakefs/txn/load\n", asked, func() {
			held.Remove()
			proxy.Release()
		})
		lake.Start()
		if got := lake.MustSh("cat sales/notes/*/*; ls sales/notes/.lakefs/txn"); got != "1,one\n2,two\n2,two\n2,two\n" {
			t.Errorf("the table has %q", got)
		}
	})
	t.Run("repair", func(t *testing.T) {
		lake := unregisteredNotes(t)
		held := lake.Catalog.Server.Fault(gluetest.Rule{Op: "BatchCreatePartition", Fault: gluetest.Hang()})
		asked := background(t, "sh", "-c", `echo repair sales/notes >"$0"`, lake.Path(".lakefs/ctl"))
		held.Wait(t, 1)
		wantPatientUnmount(t, lake, "waits for: repair of sales/notes\n", asked, func() {
			lake.Catalog.Server.Clear()
			lake.Catalog.Server.Release()
		})
		if n := len(registered(t, lake)); n != 3 {
			t.Errorf("%d partitions are registered, want 3", n)
		}
	})
}

// background starts a program, which is ended with the test.
func background(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = t.TempDir()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// wantPatientUnmount asserts that an unmount says what it waits for, and is done once that
// is released, and asked, the program that asked for it, with it.
func wantPatientUnmount(t *testing.T, lake *mounttest.Lake, waits string, asked *exec.Cmd, release func()) {
	t.Helper()
	said := filepath.Join(t.TempDir(), "said")
	unmount := background(t, "sh", "-c", `"$0" unmount "$1" 2>"$2"`, lake.Binary(), lake.Root, said)
	text := func() string {
		raw, _ := os.ReadFile(said) // none: nothing is said yet
		return string(raw)
	}
	lake.Eventually("the unmount says that it waits, or why it does not", 30*time.Second, func() bool { return text() != "" })
	if got := text(); !strings.HasSuffix(got, waits) {
		t.Errorf("the unmount says %q", got)
	}
	if !lake.Mounted() {
		t.Error("it is not mounted any more")
	}
	release()
	if err := asked.Wait(); err != nil {
		t.Errorf("who asked for it: %v", err)
	}
	if err := unmount.Wait(); err != nil || lake.Mounted() {
		t.Errorf("unmount: %v, %s", err, text())
	}
	if code := lake.Wait(); code != exitOK {
		t.Errorf("the mount ended with %d: %s", code, lake.Log())
	}
}

func TestControlFiles(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/m/.lakefs/ctl": true, "/m/db/t/.lakefs/txn/x/ctl": true, "/m/db/t/.lakefs/txn/x/ctl (deleted)": true, "/m/.lakefs/jobs.json": true,
		"/m/db/t/ctl": false, "/m/db/t/.lakefs/txn": false, "/m/db/t/.lakefs/txn/x": false, "/m/db/t/.lakefs/txn/x/k=1/f.csv": false, "/m/.lakefs": false, "/m/a.csv": false,
	} {
		if got := isControl(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
