package fs_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// job is the one of jobs.json with an id.
func job(t *testing.T, l *mounttest.Lake, id string) fs.JobStatus {
	t.Helper()
	raw, err := l.ReadFile(".lakefs/jobs.json")
	var all struct{ Jobs []fs.JobStatus }
	if err == nil {
		err = json.Unmarshal([]byte(raw), &all)
	}
	if err != nil {
		t.Fatalf("jobs.json: %v, %s", err, raw)
	}
	for _, one := range all.Jobs {
		if one.ID == id {
			return one
		}
	}
	t.Fatalf("jobs.json has no %s: %s", id, raw)
	return fs.JobStatus{}
}

// TestCtlLinesThatAreJobs: the write fails with the job's errno, and jobs.json has the
// reason; a line that is no command is a job too, if it has an id.
func TestCtlLinesThatAreJobs(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	l.PutStored("db/t/dt=8/f", "8\n")
	l.MustSh(`echo 'repair --dry-run --job dry db/t' >.lakefs/ctl`)
	wantRegistered(t, l, "t", "1", "2", "3")
	l.MustSh(`echo 'repair --job wet "db/t"' >.lakefs/ctl`)
	wantRegistered(t, l, "t", "1", "2", "3", "8")
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3", "dt=8")
	for _, id := range []string{"dry", "wet"} {
		if one := job(t, l, id); one.Kind != "repair" || one.Path != "db/t" || one.Ended == nil || one.Error != "" || !strings.Contains(string(one.Result), `"dt=8"`) {
			t.Errorf("the job is %+v, %s", one, one.Result)
		}
	}
	for id, tt := range map[string]struct {
		line, reason string
		errno        syscall.Errno
	}{
		"option":    {"repair --job option --force db/t", `"--force"`, syscall.EINVAL},
		"level":     {"repair --job level db/t/dt=1", "DATABASE/TABLE", syscall.EINVAL},
		"none":      {"repair --job none db/none", "db/none", syscall.ENOENT},
		"format":    {"set-format --job format db/t/dt=1 PARQET", "PARQET", syscall.EINVAL},
		"no-format": {"set-format --job no-format db/t/dt=1", "no FORMAT", syscall.EINVAL},
		"absent":    {"set-format --job absent db/t/dt=77 ORC", "Cannot find partition", syscall.ENOENT},
	} {
		wantErrno(t, tt.line, l.WriteFile(".lakefs/ctl", tt.line+"\n"), tt.errno)
		if one := job(t, l, id); !strings.Contains(one.Error, tt.reason) || one.Ended == nil {
			t.Errorf("%s: the job is %+v", tt.line, one)
		}
	}
}

// TestCtlTakesCommandsWhileOneIsUnderWay, and one whose writer was killed goes on.
func TestCtlTakesCommandsWhileOneIsUnderWay(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	l.PutStored("db/t/dt=8/f", "8\n")
	held := l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: gluetest.Hang()})
	writer := exec.CommandContext(t.Context(), "bash", "-c", "echo 'repair --job slow db/t' >"+l.Path(".lakefs/ctl"))
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	held.Wait(t, 1)
	l.MustSh(`echo refresh db >.lakefs/ctl; cat .lakefs/status.json .lakefs/stats >/dev/null; cat db/t/dt=1/*`)
	if one := job(t, l, "slow"); one.Ended != nil || one.Done == 0 {
		t.Errorf("the job is %+v", one)
	}
	ended := make(chan struct{})
	if err := writer.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = writer.Wait() // it was killed
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("a writer that is killed waits for the command's end")
	}
	if one := job(t, l, "slow"); one.Ended != nil {
		t.Errorf("its writer is killed, and the job is %+v", one)
	}
	l.Catalog.Server.Clear()
	l.Catalog.Server.Release()
	l.Eventually("the job is done", 30*time.Second, func() bool { return job(t, l, "slow").Ended != nil })
	if one := job(t, l, "slow"); one.Error != "" {
		t.Errorf("the job is %+v", one)
	}
	wantRegistered(t, l, "t", "1", "2", "3", "8")
}

// TestSetFormatOfOnePartition is the line of ctl, with a path in quotes.
func TestSetFormatOfOnePartition(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	format := func(dir string) string { return status(t, l, dir).Catalog.Format }
	was := format("db/t/dt=1")
	if was == "avro" {
		t.Fatal("the partition is of the format already")
	}
	l.MustSh(`echo 'set-format --job a "db/t/dt=1" avro' >.lakefs/ctl`)
	if one := job(t, l, "a"); one.Kind != "set-format" || one.Path != "db/t/dt=1" || one.Error != "" {
		t.Errorf("the job is %+v", one)
	}
	if got := format("db/t/dt=1"); got != "avro" {
		t.Errorf("the partition is %s, want avro", got)
	}
	if got := format("db/t/dt=2"); got != was {
		t.Errorf("its neighbour is %s, want %s", got, was)
	}
}
