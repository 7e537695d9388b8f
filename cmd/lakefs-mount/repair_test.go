package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// unregisteredNotes is a lake with two partitions that the catalog does not have, and a
// directory that is none.
func unregisteredNotes(t *testing.T, flags ...string) *mounttest.Lake {
	t.Helper()
	lake := mounttest.New(t, glueNotes())
	for _, dir := range []string{"dt=2026-01-02", "dt=2026-01-03", "ju nk"} {
		lake.PutStored("sales/notes/"+dir+"/a.csv", "2,two\n")
	}
	lake.Start(flags...)
	return lake
}

func TestRepairRegistersWhatTheCatalogLacks(t *testing.T) {
	lake := unregisteredNotes(t)
	path := lake.Path("sales/notes")
	summary := func(added int) string {
		return fmt.Sprintf("sales/notes: 3 directories, 2 not in the catalog, %d added\n", added)
	}
	r := lake.Run("repair", "--dry-run", path)
	if r.Code != exitOK || r.Err != "" || !strings.HasPrefix(r.Out, "missing dt=2026-01-02\nmissing dt=2026-01-03\nskipped \"ju nk\": ") || !strings.HasSuffix(r.Out, summary(0)) {
		t.Errorf("dry run: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	if got := registered(t, lake); len(got) != 1 {
		t.Errorf("after a dry run %q are registered", got)
	}
	r = lake.Run("repair", path)
	if r.Code != exitOK || r.Err != "" || !strings.HasPrefix(r.Out, "added dt=2026-01-02\nadded dt=2026-01-03\nskipped ") || !strings.HasSuffix(r.Out, summary(2)) {
		t.Errorf("repair: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	if got := registered(t, lake); !slices.Equal(got, []string{"2026-01-01", "2026-01-02", "2026-01-03"}) {
		t.Errorf("registered are %q", got)
	}
	if got := lake.MustSh("cd sales/notes; ls -d dt*; cat dt=2026-01-03/a.csv"); got != "dt=2026-01-01\ndt=2026-01-02\ndt=2026-01-03\n2,two\n" {
		t.Errorf("the mount has %q", got)
	}
	r = lake.Run("repair", "--json", path)
	var job fs.JobStatus
	var done catalogview.Repaired
	if err := json.Unmarshal([]byte(r.Out), &job); err != nil {
		t.Fatalf("%v: %q %q", err, r.Out, r.Err)
	}
	if err := json.Unmarshal(job.Result, &done); err != nil || r.Code != exitOK || job.Kind != "repair" || job.Path != "sales/notes" || job.Ended == nil ||
		done.Looked != 3 || done.Missing != 0 || len(done.Added) != 0 || len(done.Skipped) != 1 {
		t.Errorf("a second repair: exit code %d, %+v, %+v (%v)", r.Code, job, done, err)
	}
}

// TestRepairThatTheCatalogRefuses: exit code 1, each partition with the reason, and the
// job has it all.
func TestRepairThatTheCatalogRefuses(t *testing.T) {
	lake := unregisteredNotes(t)
	lake.Catalog.Server.Fault(gluetest.Rule{Op: "BatchCreatePartition", Fault: gluetest.Denied()})
	r := lake.Run("repair", lake.Path("sales/notes"))
	if r.Code != exitFailed || strings.Count(r.Out, "\nfailed dt=2026-01-0")+strings.Count(r.Out, "failed dt=2026-01-02") < 2 || strings.Contains(r.Out, "added dt") || !strings.Contains(r.Out, "AccessDenied") {
		t.Errorf("exit code %d, %q", r.Code, r.Out)
	}
	for _, want := range []string{"2 of 2 partitions", "AccessDenied", "lakefs-mount check", "run again"} {
		if !strings.Contains(r.Err, want) {
			t.Errorf("stderr %q lacks %q", r.Err, want)
		}
	}
	r = lake.Run("repair", "--json", lake.Path("sales/notes"))
	var job fs.JobStatus
	if err := json.Unmarshal([]byte(r.Out), &job); err != nil || r.Code != exitFailed || job.Error == "" || len(job.Result) == 0 {
		t.Errorf("--json: exit code %d, %v: %q %q", r.Code, err, r.Out, r.Err)
	}
	lake.Catalog.Server.Clear()
	if r = lake.Run("repair", lake.Path("sales/notes")); r.Code != exitOK || len(registered(t, lake)) != 3 {
		t.Errorf("once the catalog lets: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
}

// TestRepairOfWhatHasNothingToRepair says so.
func TestRepairOfWhatHasNothingToRepair(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	if r := lake.Run("repair", lake.Path("sales/notes")); r.Code != exitFailed || !strings.Contains(r.Err, "manifests") || strings.Contains(r.Err, "lakefs-mount check") || r.Out != "" {
		t.Errorf("manifests: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	for flag, want := range map[string]string{"--catalog-writes=none": "--catalog-writes=none", "--write=none": "--write=none"} {
		t.Run(flag, func(t *testing.T) {
			lake := unregisteredNotes(t, flag)
			if r := lake.Run("repair", lake.Path("sales/notes")); r.Code != exitFailed || !strings.Contains(r.Err, want) || len(registered(t, lake)) != 1 {
				t.Errorf("exit code %d, %q %q", r.Code, r.Out, r.Err)
			}
			if r := lake.Run("repair", "--dry-run", lake.Path("sales/notes")); r.Code != exitOK || !strings.Contains(r.Out, "missing dt=2026-01-02") {
				t.Errorf("dry run: exit code %d, %q %q", r.Code, r.Out, r.Err)
			}
		})
	}
}

// TestRepairShowsItsProgressOnATerminalAlone: the bar has what was looked at and what is
// to be registered, and the list goes to stdout.
func TestRepairShowsItsProgressOnATerminalAlone(t *testing.T) {
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("no script(1) here, which makes a terminal")
	}
	lake := unregisteredNotes(t)
	lake.Catalog.Server.Fault(gluetest.Rule{Op: "BatchCreatePartition", Fault: gluetest.Hang()})
	out, screen := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "screen")
	cmd := exec.CommandContext(t.Context(), "script", "-qefc", "stty cols 120; "+lake.Binary()+" repair "+lake.Path("sales/notes")+" >"+out, screen)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bar := regexp.MustCompile(`directories.*\(3/-, .*directories/[a-z]+\)`)
	lake.Eventually("the bar shows the directories", 30*time.Second, func() bool {
		raw, err := os.ReadFile(screen)
		return err == nil && bar.Match(raw)
	})
	lake.Catalog.Server.Clear()
	lake.Catalog.Server.Release()
	if err := cmd.Wait(); err != nil {
		t.Errorf("repair: %v", err)
	}
	if raw, err := os.ReadFile(out); err != nil || !strings.HasPrefix(string(raw), "added dt=2026-01-02\n") || strings.Contains(string(raw), "%") {
		t.Errorf("stdout has %q (%v), want the lines alone", raw, err)
	}
}
