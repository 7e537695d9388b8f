package mounttest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// recorder is a test whose failures are recorded, so that the harness's own
// can be looked at.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (r *recorder) Helper()             {}
func (r *recorder) Cleanup(f func())    { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

func (r *recorder) end() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

func notes() []Table {
	return []Table{{Database: "db", Name: "notes", Format: "csv", Files: map[string]string{"a": "1,one\n", "empty/": ""}}}
}

func TestHungMountFailsAtTheDeadlineAndIsTakenAway(t *testing.T) {
	r := &recorder{TB: t}
	lake := Mount(r, Options{Tables: notes(), Timeout: 3 * time.Second})
	lake.Stop()
	began := time.Now()
	err := lake.Do("stat of a stopped daemon's mount", func() error {
		_, err := os.ReadDir(lake.Path("db"))
		return err
	})
	if took := time.Since(began); err == nil || took > 8*time.Second {
		t.Errorf("Do took %v and returned %v, want an error within the lake's deadline", took, err)
	}
	r.end()
	if !r.Failed() {
		t.Error("a mount that hung failed no test")
	}
	if lake.Mounted() {
		t.Error("still mounted after the test")
	}
}

func TestUnmountReportsWhatDidNotGoCleanly(t *testing.T) {
	r := &recorder{TB: t}
	lake := Mount(r, Options{Tables: notes()})
	daemon := lake.running()
	daemon.kill()
	lake.cleanup()
	r.end()
	if !r.Failed() {
		t.Error("a daemon that died by itself failed no test")
	}
	if lake.Mounted() {
		t.Error("still mounted after the test")
	}
}

func TestHelpersTouchTheMount(t *testing.T) {
	lake := Mount(t, Options{Tables: notes(), Files: map[string]string{"x/readme": "hello"}})
	if got, err := lake.ReadFile("db/notes/a"); err != nil || got != "1,one\n" {
		t.Errorf("ReadFile is %q, %v", got, err)
	}
	if names, err := lake.Names("db/notes"); err != nil || strings.Join(names, " ") != "a empty" {
		t.Errorf("Names are %q, %v", names, err)
	}
	if err := lake.WriteFile("db/notes/b", "2,two\n"); err != nil {
		t.Error(err)
	}
	if got, err := lake.Stored("db/notes/b"); err != nil || got != "2,two\n" {
		t.Errorf("in the store the written file is %q, %v", got, err)
	}
	if info, err := lake.Lstat("db/notes/b"); err != nil || info.Size() != 6 {
		t.Errorf("Lstat is %v, %v", info, err)
	}
	if r := lake.Sh("echo out; echo err >&2; exit 3"); r != (Result{Out: "out\n", Err: "err\n", Code: 3}) {
		t.Errorf("Sh is %+v", r)
	}
	lake.Remount("--read-only")
	if err := lake.WriteFile("db/notes/c", ""); err == nil {
		t.Error("a remount with --read-only can be written")
	}
}

func TestMountAsAnOrdinaryUser(t *testing.T) {
	lake := Mount(t, Options{Tables: notes(), User: 65534})
	if got := lake.MustSh("id -u; cat db/notes/a"); got != "65534\n1,one\n" {
		t.Errorf("as the user the mount shows %q", got)
	}
	lake.Unmount()
}

func TestATestThatDiesLeavesNoMount(t *testing.T) {
	if root := os.Getenv("MOUNTTEST_DIE_IN"); root != "" {
		lake := Mount(t, Options{Tables: notes()})
		if err := os.WriteFile(root, []byte(lake.Root), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // does not return
	}
	note := t.TempDir() + "/root"
	lake := New(t, Options{}) // skips where no mount is possible
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "MOUNTTEST_DIE_IN="+note, "TMPDIR="+t.TempDir())
	cmd.WaitDelay = 10 * time.Second
	out, _ := cmd.CombinedOutput() // it is killed
	root, err := os.ReadFile(note)
	if err != nil {
		t.Fatalf("the other test did not mount: %v\n%s", err, out)
	}
	t.Cleanup(func() { Detach(string(root)) })
	lake.Eventually("the killed test's mount is gone", 10*time.Second, func() bool {
		_, mounted := mountAt(string(root))
		return !mounted
	})
}
