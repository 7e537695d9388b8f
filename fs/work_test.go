package fs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/operation"
)

// statusOf makes a /proc of one thread, 7, with the masks given.
func statusOf(t *testing.T, pending, shared, blocked, ignored, caught string) processTable {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "7"), 0o700); err != nil {
		t.Fatal(err)
	}
	status := "Name:\tcat\nSigQ:\t0/1\nSigPnd:\t" + pending + "\nShdPnd:\t" + shared +
		"\nSigBlk:\t" + blocked + "\nSigIgn:\t" + ignored + "\nSigCgt:\t" + caught + "\n"
	if err := os.WriteFile(filepath.Join(root, "7", "status"), []byte(status), 0o600); err != nil {
		t.Fatal(err)
	}
	return processTable{root: root}
}

func TestDyingIsASignalThatEndsTheProcess(t *testing.T) {
	const none, kill, term, urg = "0000000000000000", "0000000000000100", "0000000000004000", "0000000000400000"
	for _, tt := range []struct {
		name                                      string
		pending, shared, blocked, ignored, caught string
		want                                      bool
	}{
		{"nothing", none, none, none, none, none, false},
		{"SIGKILL", kill, none, none, none, none, true},
		{"SIGKILL to the group", none, kill, none, none, none, true},
		{"SIGTERM", none, term, none, none, none, true},
		{"SIGTERM, caught", none, term, none, none, term, false},
		{"SIGTERM, blocked", none, term, term, none, none, false},
		{"SIGTERM, ignored", none, term, none, term, none, false},
		{"SIGURG, which Go's runtime sends itself", urg, none, none, none, urg, false},
		{"SIGURG, whose default is to do nothing", urg, none, none, none, none, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := statusOf(t, tt.pending, tt.shared, tt.blocked, tt.ignored, tt.caught)
			if got := p.dying(7); got != tt.want {
				t.Errorf("dying = %v, want %v", got, tt.want)
			}
		})
	}
	p := statusOf(t, kill, none, none, none, none)
	if p.dying(0) || p.dying(8) {
		t.Error("a thread that cannot be seen is not known to be dying")
	}
}

func TestDyingOfRealProcesses(t *testing.T) {
	p := processTable{root: "/proc"}
	cmd := exec.CommandContext(context.Background(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if p.dying(uint32(cmd.Process.Pid)) {
		t.Error("a living process is taken for dying")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func TestWorkEndsWhenItsCallerDies(t *testing.T) {
	p := statusOf(t, "0", "0", "0", "0", "0")
	f := &FS{flat: true, proc: p, operations: operation.NewIDs(), Config: Config{RequestTimeout: time.Minute}}
	work, cancel := f.background()
	defer cancel()
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		f.whenDying(over, 7, cancel)
		close(ended)
	}()
	select {
	case <-work.Done():
		t.Fatal("ended by a signal that ends nothing")
	case <-time.After(3 * dyingPoll):
	}
	killed := "Name:\tcat\nSigPnd:\t" + strconv.FormatUint(1<<8, 16) + "\nShdPnd:\t0\n"
	if err := os.WriteFile(filepath.Join(p.root, "7", "status"), []byte(killed), 0o600); err != nil {
		t.Fatal(err)
	}
	<-work.Done()
	<-ended

	work, cancel = f.background()
	defer cancel()
	close(over)
	f.whenDying(over, 8, cancel)
	if work.Err() != nil {
		t.Error("a request that is over ended another's work")
	}
}
