package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

func TestRecoverDoesOneThingAtATime(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	torn(t, lake)
	for _, flags := range [][]string{
		{"--publish=all", "--abort=all"}, {"--abort=all", "--save=."}, {"--publish=all", "--save=."}, {"--publish=all", "--abort=all", "--save=."},
	} {
		r := lake.Run(append(append([]string{"recover"}, flags...), lake.Root)...)
		if r.Code != exitUsage || !strings.Contains(r.Err, "one of them at a time") || r.Out != "" {
			t.Errorf("%q: exit code %d, %q %q", flags, r.Code, r.Out, r.Err)
		}
	}
	if r := lake.Run("recover", lake.Root); !strings.Contains(r.Out, "torn.csv") {
		t.Errorf("after the refusals: %q", r.Out)
	}
	lake.MustSh("test ! -e sales/notes/dt=2026-01-01/torn.csv")
}

// TestRecoverShowsItsProgressOnATerminalAlone, and there on stderr.
func TestRecoverShowsItsProgressOnATerminalAlone(t *testing.T) {
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("no script(1) here, which makes a terminal")
	}
	lake := mounttest.Mount(t, sales(t))
	torn(t, lake)
	if r := lake.Run("recover", "--save", t.TempDir(), lake.Root); r.Code != 0 || r.Err != "" || strings.Count(r.Out, "\n") != 1 {
		t.Errorf("without a terminal: exit code %d, %q %q, want one line", r.Code, r.Out, r.Err)
	}
	out := filepath.Join(t.TempDir(), "out")
	script := lake.Binary() + ` recover --save=` + t.TempDir() + ` ` + lake.Root + ` >` + out
	r := lake.Exec("script", "-qec", script, "/dev/null")
	if r.Code != 0 || !strings.Contains(r.Out, "0%") {
		t.Errorf("on a terminal: exit code %d, %q, want a bar", r.Code, r.Out)
	}
	if raw, err := os.ReadFile(out); err != nil || !strings.HasPrefix(string(raw), "saved as ") || strings.Contains(string(raw), "%") {
		t.Errorf("stdout has %q (%v), want the line alone", raw, err)
	}
}

// TestRecoverSavesFilesOfOneName: two partitions have a file of the same name each;
// the directory is made.
func TestRecoverSavesFilesOfOneName(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	torn(t, lake)
	lake.MustSh(`cd sales/notes; mkdir -p dt=2026-01-02; cd dt=2026-01-02
		python3 -c 'import os,signal; f=open("torn.csv","w"); f.write("other\n"); f.flush(); os.kill(os.getpid(), signal.SIGKILL)' || true`)
	dir := filepath.Join(t.TempDir(), "a", "b")
	r := lake.Run("recover", "--save", dir, lake.Root)
	saved, err := filepath.Glob(filepath.Join(dir, "torn.csv*"))
	if r.Code != 0 || err != nil || len(saved) != 2 {
		t.Errorf("exit code %d, %s%s; saved %q, %v", r.Code, r.Out, r.Err, saved, err)
	}
	if again := lake.Run("recover", "--publish", "", lake.Root); again.Code != exitUsage || !strings.Contains(again.Err, "nothing is named") {
		t.Errorf("--publish of nothing: exit code %d, %q", again.Code, again.Err)
	}
}

// TestLocalFilesWaitForNobody: they are counted, listed on demand, and dropped by
// name; only a rename publishes them. So it is in a mount, and of one that ended.
func TestLocalFilesWaitForNobody(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	lake.MustSh(`cd sales/notes/dt=2026-01-01; printf sums >.a.csv.crc; : >one.lock; test ! -e two.lock`)
	torn(t, lake)
	for _, running := range []bool{true, false} {
		if !running {
			lake.Unmount()
			if strings.Contains(lake.Log(), "one.lock") {
				t.Errorf("the end of the mount names local files: %s", lake.Log())
			}
		}
		recoverWith := func(flags ...string) mounttest.Result {
			return lake.Run(append(append([]string{"recover", "--state-dir=" + lake.State}, flags...), lake.Source, lake.Root)...)
		}
		r := recoverWith()
		if r.Code != 0 || !strings.Contains(r.Out, "torn.csv") || strings.Contains(r.Out, "one.lock") || !strings.Contains(r.Out, "Local: 2 files, 4 B") {
			t.Errorf("running %v: recover: %d, %q %q", running, r.Code, r.Out, r.Err)
		}
		r = recoverWith("--all")
		if r.Code != 0 || strings.Count(r.Out, "staged, local") != 2 || !strings.Contains(r.Out, "torn.csv") {
			t.Errorf("running %v: recover --all: %d, %q %q", running, r.Code, r.Out, r.Err)
		}
		var all []stagedWrite
		r = recoverWith("--json")
		if err := json.Unmarshal([]byte(r.Out), &all); err != nil || len(all) != 3 {
			t.Fatalf("running %v: recover --json: %v, %q %q", running, err, r.Out, r.Err)
		}
		lock := slices.IndexFunc(all, func(w stagedWrite) bool { return strings.HasSuffix(w.Path, "/one.lock") })
		if lock < 0 || all[lock].Hold != staging.Local || slices.ContainsFunc(all, func(w stagedWrite) bool { return strings.HasSuffix(w.Path, "torn.csv") && w.Hold != "" }) {
			t.Fatalf("running %v: recover --json has %+v", running, all)
		}
		if r = recoverWith("--publish=" + all[lock].ID); r.Code != exitFailed || !strings.Contains(r.Err, "rename it") {
			t.Errorf("running %v: --publish of a local file: %d, %q %q", running, r.Code, r.Out, r.Err)
		}
		dir := t.TempDir()
		if r = recoverWith("--save=" + dir); r.Code != 0 || strings.Count(r.Out, "\n") != 1 {
			t.Errorf("running %v: --save: %d, %q %q", running, r.Code, r.Out, r.Err)
		}
		if r = recoverWith("--save="+dir, "--all"); r.Code != 0 || strings.Count(r.Out, "\n") != 3 {
			t.Errorf("running %v: --save --all: %d, %q %q", running, r.Code, r.Out, r.Err)
		}
		if running {
			continue
		}
		if r = recoverWith("--abort=" + all[lock].ID[:8]); r.Code != 0 || !strings.Contains(r.Out, "dropped") {
			t.Errorf("--abort of a local file: %d, %q %q", r.Code, r.Out, r.Err)
		}
		if r = recoverWith("--abort=all"); r.Code != 0 || strings.Count(r.Out, "dropped") != 1 {
			t.Errorf("--abort=all: %d, %q %q", r.Code, r.Out, r.Err)
		}
		if r = recoverWith(); !strings.Contains(r.Out, "Nothing is unpublished.") || !strings.Contains(r.Out, "Local: 1 file, 4 B") {
			t.Errorf("at last: %q %q", r.Out, r.Err)
		}
	}
}

// TestStatusTellsLocalFilesApart from those that wait to be published.
func TestStatusTellsLocalFilesApart(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	lake.MustSh(`cd sales/notes/dt=2026-01-01; printf lock >one.lock`)
	r := lake.Run("status", lake.Root)
	if r.Code != 0 || !strings.Contains(r.Out, "0 files, 0 B") || !strings.Contains(r.Out, "local, of this mount alone: 1 file, 4 B") || strings.Contains(r.Out, "Not published") {
		t.Errorf("status prints %q %q", r.Out, r.Err)
	}
	r = lake.Run("status", "--json", lake.Root)
	var all []mountStatus
	if err := json.Unmarshal([]byte(r.Out), &all); err != nil || len(all) != 1 {
		t.Fatalf("status --json: %v: %s", err, r.Out)
	}
	if list := all[0].staged(); len(list.Staged) != 0 || len(list.Local) != 1 || list.Local[0].Hold != staging.Local || all[0].sum("local_files", "") != 1 {
		t.Errorf("status --json: %+v", list)
	}
	lake.Remount()
	if log := lake.Log(); strings.Contains(log, "earlier mount is staged") || strings.Contains(log, "one.lock") {
		t.Errorf("the next mount warns of a local file: %s", log)
	}
	id := all[0].staged().Local[0].ID
	if r = lake.Run("recover", "--abort="+id, lake.Root); r.Code != 0 {
		t.Errorf("--abort in a mount: %q %q", r.Out, r.Err)
	}
	lake.MustSh(`test ! -e sales/notes/dt=2026-01-01/one.lock`)
}
