package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
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
