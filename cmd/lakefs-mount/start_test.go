package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestTheSameSignalTwiceDrains: timeout(1) signals its child and the group.
func TestTheSameSignalTwiceDrains(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	f, err := os.Open(lake.Path("sales/notes/dt=2026-01-01/a.csv")) // the unmount waits for it
	if err != nil {
		t.Fatal(err)
	}
	lake.Signal(syscall.SIGTERM)
	lake.WaitLog("unmounting")
	lake.Signal(syscall.SIGTERM)
	lake.Signal(syscall.SIGINT)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if code := lake.Wait(); code != 0 || lake.Mounted() {
		t.Errorf("exit code %d, mounted %v", code, lake.Mounted())
	}
}

func TestALakeOfALakesMountIsRefused(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	dir := t.TempDir()
	link, other := filepath.Join(dir, "link"), filepath.Join(dir, "other")
	if err := os.Symlink(lake.Path("sales"), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	refused := func(source string) {
		t.Helper()
		r := lake.Run("mount", "--state-dir="+filepath.Join(dir, "state"), source, other)
		if r.Code != exitFailed || !strings.Contains(r.Err, lake.Root) || !strings.Contains(r.Err, "lakefs-mount itself") {
			t.Errorf("%s: exit code %d, %q", source, r.Code, r.Err)
		}
	}
	refused(lake.Root)
	refused(lake.Path("sales/notes"))
	refused(link)
	lake.Kill()
	refused(lake.Root) // dead: it cannot be looked at
}

// TestTheStateDirectoryLiesApartFromTheData, at a mount and in recover and check.
func TestTheStateDirectoryLiesApartFromTheData(t *testing.T) {
	mounttest.FolderOnly(t, "a bucket holds no directory of this host")
	lake := mounttest.New(t, sales(t))
	extra := filepath.Join(t.TempDir(), "above", "allowed")
	if err := os.MkdirAll(extra, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(lake.Source, link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, state, other string }{
		{"in the source", filepath.Join(lake.Source, "state"), lake.Source},
		{"the source", lake.Source, lake.Source},
		{"by a link", filepath.Join(link, "a/b"), lake.Source},
		{"in an allowed directory", filepath.Join(extra, "state"), extra},
		{"holds an allowed directory", filepath.Dir(extra), extra},
	} {
		flags := []string{"--allow-location=" + extra, "--state-dir=" + tt.state}
		for _, command := range [][]string{{"mount", lake.Source, lake.Root}, {"recover", lake.Source, lake.Root}, {"check", lake.Source}} {
			r := lake.Run(append(append(command[:1:1], flags...), command[1:]...)...)
			said := r.Err + r.Out
			if r.Code != exitFailed || !strings.Contains(said, "--state-dir") || !strings.Contains(said, tt.state) || !strings.Contains(said, tt.other) {
				t.Errorf("%s: %s: exit code %d, %q", tt.name, command[0], r.Code, said)
			}
		}
	}
	if names, err := os.ReadDir(extra); err != nil || len(names) != 0 {
		t.Errorf("left in the allowed directory: %v (%v)", names, err)
	}
	lake.Start("--allow-location=" + extra) // state beside warehouse
}
