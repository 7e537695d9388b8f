// Package crash_test proves the promise of the project on the real binary, a real
// kernel mount and a real S3 server, and on a local folder: whatever fails, and
// whenever the daemon is killed, what was acknowledged is in the store exactly,
// what was not is there whole or not at all, nothing is published twice, and
// nothing that is staged is lost.
//
// Three tests do the same operations (operations_test.go):
//
//   - TestFault: each request to the store fails once, or from there on for good;
//   - TestKillBeforeEachStep: the daemon is killed right before each of its system
//     calls that change a disk;
//   - TestKillAtRandom: several writers at once, and SIGKILL at random moments.
//
// Those that write under another name first (held_test.go) are done step by step: what
// answered 0 is known of each, and what of it must be left, and where.
//
// Programs write through an agent: a process beside the test, which tells what
// close and fsync answered over a pipe, outside the mount.
//
// Settings, by environment:
//
//	LAKEFS_CRASH_SEED     repeats the choices of a run that printed it
//	LAKEFS_SOAK           how long TestKillAtRandom goes on, "10m", or how many kills, "5000"
//	LAKEFS_CRASH_SUMMARY  a file that gets what was tried, a line each
package crash_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/killpoint"
)

// atOnce is how many lakes live at a time: a mount waits for its processes more
// than for a processor.
const atOnce = "6"

func TestMain(m *testing.M) {
	if os.Getenv(agentVariable) != "" {
		runAgent()
		return
	}
	flag.Parse()
	_ = flag.Set("test.parallel", atOnce) // it is a number
	// All that is synced is in memory: the tests kill processes, not machines.
	if err := os.Setenv("TMPDIR", "/dev/shm"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := summary.write(os.Getenv("LAKEFS_CRASH_SUMMARY")); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// TestKillPointHelper is no test: daemons that are killed at a step start through it.
func TestKillPointHelper(*testing.T) { killpoint.Exec() }

// seed is of all that is chosen at random.
var seed = sync.OnceValue(func() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("LAKEFS_CRASH_SEED"), 10, 64); err == nil {
		return n
	}
	return uint64(time.Now().UnixNano())
})

// soaking tells that the tests are to take their time.
func soaking() bool { return os.Getenv("LAKEFS_SOAK") != "" }

// summary is what all tests of the process have tried.
var summary tally

type tally struct {
	mu    sync.Mutex
	lines []string
}

// add notes a line, and logs it.
func (s *tally) add(t *testing.T, format string, args ...any) {
	t.Helper()
	line := fmt.Sprintf(format, args...)
	outcome := "none lost, none half, none twice"
	if t.Failed() {
		outcome = "FAILED"
	}
	line = fmt.Sprintf("%s: %s: %s", t.Name(), line, outcome)
	t.Log(line)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

func (s *tally) write(file string) error {
	if file == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return os.WriteFile(file, []byte(strings.Join(s.lines, "\n")+"\n"), 0o600)
}
