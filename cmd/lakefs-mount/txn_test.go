package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// openTransaction makes one of these files ("dt=2026-01-02/b.csv"), and returns its path.
func openTransaction(t *testing.T, lake *mounttest.Lake, files ...string) string {
	t.Helper()
	lake.MustSh("mkdir sales/notes/.lakefs/txn/load")
	for _, name := range files {
		lake.MustSh("cd sales/notes/.lakefs/txn/load && mkdir -p " + filepath.Dir(name) + " && echo 2,two >" + name)
	}
	return lake.Path("sales/notes/.lakefs/txn/load")
}

func TestCommitPublishesATransaction(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	path := openTransaction(t, lake, "dt=2026-01-02/b.csv", "dt=2026-01-03/c.csv")
	r := lake.Run("status", lake.Root)
	if r.Code != exitOK || !strings.Contains(r.Out, "Open transactions in") || !strings.Contains(r.Out, "sales/notes/.lakefs/txn/load  2      12 B") {
		t.Errorf("status prints %q %q", r.Out, r.Err)
	}
	r = lake.Run("commit", path)
	if r.Code != exitOK || r.Err != "" || r.Out != "published 2 files (12 B) of sales/notes/.lakefs/txn/load\n" {
		t.Errorf("commit: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	if got := lake.MustSh("cat sales/notes/*/*; ls sales/notes/.lakefs/txn"); got != "1,one\n2,two\n2,two\n" {
		t.Errorf("the table has %q", got)
	}
	r = lake.Run("commit", path)
	if r.Code != exitFailed || !strings.Contains(r.Err, "no such transaction") || !strings.Contains(r.Err, "committed or dropped") {
		t.Errorf("a second commit: exit code %d, %q", r.Code, r.Err)
	}
}

func TestCommitOverwritesAScope(t *testing.T) {
	for _, tt := range []struct {
		flag string
		left string // of the old files
	}{
		{"--overwrite", "dt=2026-01-01/a.csv\n"},
		{"--overwrite=dt=2026-01-02", "dt=2026-01-01/a.csv\n"},
		{"--overwrite=dt=2026-01-02/", "dt=2026-01-01/a.csv\n"},
		{"--overwrite=*", ""},
	} {
		t.Run(tt.flag, func(t *testing.T) {
			lake := mounttest.Mount(t, sales(t))
			lake.MustSh("mkdir sales/notes/dt=2026-01-02; echo old >sales/notes/dt=2026-01-02/old.csv")
			path := openTransaction(t, lake, "dt=2026-01-02/b.csv")
			r := lake.Run("commit", tt.flag, "--json", path)
			var job fs.JobStatus
			if err := json.Unmarshal([]byte(r.Out), &job); err != nil || r.Code != exitOK || job.Kind != "overwrite" || job.Error != "" || job.Ended == nil || len(job.Result) == 0 {
				t.Errorf("exit code %d, %q %q (%v)", r.Code, r.Out, r.Err, err)
			}
			if got := lake.MustSh("cd sales/notes; find . -type f -printf '%P\\n' | sort"); got != tt.left+"dt=2026-01-02/b.csv\n" {
				t.Errorf("the table has %q", got)
			}
		})
	}
}

// TestCommitThatFailsSaysWhyAndWhatToDo: the errno of the write is not all.
func TestCommitThatFailsSaysWhyAndWhatToDo(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	path := openTransaction(t, lake)
	r := lake.Run("commit", path)
	if r.Code != exitFailed || !strings.Contains(r.Err, "has no files") || !strings.Contains(r.Err, "lakefs-mount abort "+path) {
		t.Errorf("an empty transaction: exit code %d, %q", r.Code, r.Err)
	}
	lake.MustSh("cd " + path + "; mkdir dt=2026-01-01; echo other >dt=2026-01-01/a.csv")
	r = lake.Run("commit", "--json", path)
	var job fs.JobStatus
	if err := json.Unmarshal([]byte(r.Out), &job); err != nil || job.Error == "" {
		t.Errorf("stdout is %q (%v)", r.Out, err)
	}
	if r.Code != exitFailed || !strings.Contains(r.Err, "a.csv") || !strings.Contains(r.Err, "commit again") || !strings.Contains(r.Err, "lakefs-mount abort "+path) {
		t.Errorf("a file that is there: exit code %d, %q", r.Code, r.Err)
	}
	if r = lake.Run("commit", "--overwrite=dt=2026-01-09/", path); r.Code != exitFailed || !strings.Contains(r.Err, "outside") {
		t.Errorf("another scope: exit code %d, %q", r.Code, r.Err)
	}
	if r = lake.Run("commit", "--overwrite=none/", path); r.Code != exitFailed || !strings.Contains(r.Err, `"none"`) {
		t.Errorf("no scope: exit code %d, %q", r.Code, r.Err)
	}
	if got := lake.MustSh("cat sales/notes/*/*; ls " + path); got != "1,one\ndt=2026-01-01\n" {
		t.Errorf("there is %q", got)
	}
	r = lake.Run("abort", path)
	if r.Code != exitOK || r.Out != "dropped sales/notes/.lakefs/txn/load\n" || r.Err != "" {
		t.Errorf("abort: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	if got := lake.MustSh("ls sales/notes/.lakefs/txn; cat sales/notes/*/*"); got != "1,one\n" {
		t.Errorf("after the abort there is %q", got)
	}
}

// TestAbortAsJSON has the job.
func TestAbortAsJSON(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	path := openTransaction(t, lake, "dt=2026-01-02/b.csv")
	r := lake.Run("abort", "--json", path)
	var job fs.JobStatus
	if err := json.Unmarshal([]byte(r.Out), &job); err != nil || r.Code != exitOK || job.Kind != "abort" || job.Path != "sales/notes/.lakefs/txn/load" {
		t.Errorf("exit code %d, %q %q (%v)", r.Code, r.Out, r.Err, err)
	}
}

// TestCommitThatTheCatalogRefuses has published all: status names what is not registered,
// and repair registers it.
func TestCommitThatTheCatalogRefuses(t *testing.T) {
	lake := mounttest.Mount(t, glueNotes())
	path := openTransaction(t, lake, "dt=2026-01-02/b.csv", "dt=2026-01-03/c.csv")
	lake.Catalog.Server.Fault(gluetest.Rule{Op: "BatchCreatePartition", Fault: gluetest.Denied()})
	r := lake.Run("commit", path)
	if r.Code != exitFailed || r.Out != "" && !strings.HasPrefix(r.Out, "published 2 files") {
		t.Errorf("commit: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	for _, want := range []string{"AccessDenied", "the files are published", "lakefs-mount repair " + lake.Path("sales/notes")} {
		if !strings.Contains(r.Err, want) {
			t.Errorf("stderr %q lacks %q", r.Err, want)
		}
	}
	r = lake.Run("status", lake.Root)
	for _, want := range []string{"Not in the catalog of", "sales/notes/dt=2026-01-02 ", "sales/notes/dt=2026-01-03 ", "AccessDenied"} {
		if r.Code != exitOK || !strings.Contains(r.Out, want) || strings.Contains(r.Out, "Open transactions") {
			t.Errorf("status: exit code %d, %q lacks %q", r.Code, r.Out, want)
		}
	}
	lake.Catalog.Server.Clear()
	if r = lake.Run("repair", lake.Path("sales/notes")); r.Code != exitOK || len(registered(t, lake)) != 3 {
		t.Errorf("repair: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	if r = lake.Run("status", lake.Root); strings.Contains(r.Out, "Not in the catalog") {
		t.Errorf("status after the repair: %q", r.Out)
	}
}

// slowCommit is a transaction of three files whose commit waits for a store that does not
// answer for one of them, until the proxy releases it.
func slowCommit(t *testing.T) (lake *mounttest.Lake, proxy *faulty.Proxy, held *faulty.Active, path string) {
	t.Helper()
	lake, proxy = bucketLake(t)
	lake.Start()
	path = openTransaction(t, lake, "dt=2026-01-02/b.csv", "dt=2026-01-03/c.csv", "dt=2026-01-04/d.csv")
	held = proxy.Add(faulty.Rule{Op: "PutObject", If: func(r *faulty.Request) bool { return strings.HasSuffix(r.Key, "/d.csv") }, Fault: faulty.Hang{}})
	return lake, proxy, held, path
}

// runningJob is the one job of the mount that has not ended.
func runningJob(t *testing.T, lake *mounttest.Lake) fs.JobStatus {
	t.Helper()
	raw, err := lake.ReadFile(".lakefs/jobs.json")
	var all struct{ Jobs []fs.JobStatus }
	if err == nil {
		err = json.Unmarshal([]byte(raw), &all)
	}
	all.Jobs = slices.DeleteFunc(all.Jobs, func(job fs.JobStatus) bool { return job.Ended != nil })
	if err != nil || len(all.Jobs) != 1 {
		t.Fatalf("jobs.json: %v, %s", err, raw)
	}
	return all.Jobs[0]
}

// TestAnInterruptEndsTheWaitForACommitAlone: the program ends at once, and says that the
// commit does not; meanwhile the mount takes other commands, and a second one for the
// transaction is refused.
func TestAnInterruptEndsTheWaitForACommitAlone(t *testing.T) {
	lake, proxy, held, path := slowCommit(t)
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), lake.Binary(), "commit", path)
	cmd.Stderr, cmd.Dir = &stderr, t.TempDir()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	held.Wait(t, 1)
	lake.Eventually("two of three are published", 20*time.Second, func() bool { return runningJob(t, lake).Done == 2 })
	if job := runningJob(t, lake); job.Kind != "commit" || job.Total != 3 || job.Path != "sales/notes/.lakefs/txn/load" {
		t.Errorf("the job is %+v", job)
	}
	if r := lake.Run("refresh", lake.Path("sales")); r.Code != exitOK {
		t.Errorf("refresh meanwhile: exit code %d, %q", r.Code, r.Err)
	}
	if r := lake.Run("status", lake.Root); r.Code != exitOK || !strings.Contains(r.Out, "committing") {
		t.Errorf("status meanwhile: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	if r := lake.Run("commit", "--overwrite", path); r.Code != exitFailed || !strings.Contains(r.Err, "being committed") {
		t.Errorf("a second commit: exit code %d, %q", r.Code, r.Err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its state tells
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		proxy.Release()
		t.Fatal("the program waits for the commit")
	}
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(stderr.String(), "goes on with it") || !strings.Contains(stderr.String(), "jobs.json") {
		t.Errorf("exit code %d, %q", code, &stderr)
	}
	if job := runningJob(t, lake); job.Done != 2 {
		t.Errorf("after the interrupt the job is %+v", job)
	}
	held.Remove()
	proxy.Release()
	lake.Eventually("the commit is done", 30*time.Second, func() bool {
		_, err := lake.Lstat("sales/notes/.lakefs/txn/load")
		return err != nil
	})
	if got := lake.MustSh("cat sales/notes/*/*"); got != "1,one\n2,two\n2,two\n2,two\n" {
		t.Errorf("the table has %q", got)
	}
}

// TestCommitShowsItsProgressOnATerminalAlone, and there on stderr: how many files of how
// many, how fast, and how long yet.
func TestCommitShowsItsProgressOnATerminalAlone(t *testing.T) {
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("no script(1) here, which makes a terminal")
	}
	lake, proxy, held, path := slowCommit(t)
	out, screen := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "screen")
	cmd := exec.CommandContext(t.Context(), "script", "-qefc", "stty cols 120; "+lake.Binary()+" commit "+path+" >"+out, screen)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	held.Wait(t, 1)
	bar := regexp.MustCompile(`files +66% .*\(2/3, .*files/[a-z]+\) \[.*:.*\]`)
	lake.Eventually("the bar shows two of three files", 30*time.Second, func() bool {
		raw, err := os.ReadFile(screen)
		return err == nil && bar.Match(raw)
	})
	held.Remove()
	proxy.Release()
	if err := cmd.Wait(); err != nil {
		t.Errorf("commit: %v", err)
	}
	if raw, err := os.ReadFile(out); err != nil || string(raw) != "published 3 files (18 B) of sales/notes/.lakefs/txn/load\n" {
		t.Errorf("stdout has %q (%v), want the line alone", raw, err)
	}
}
