package mounttest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// built remembers the outcome of the one build of this process.
var built struct { //nolint:gochecknoglobals // one build serves every test of the process
	once sync.Once
	path string
	err  error
}

// Binary builds the program under test once a process, with -race when the
// test is, and returns its path.
func Binary(tb testing.TB) string {
	tb.Helper()
	built.once.Do(func() { built.path, built.err = build() })
	if built.err != nil {
		tb.Fatal(built.err)
	}
	return built.path
}

// ModuleRoot is the directory of the project's go.mod.
func ModuleRoot(tb testing.TB) string {
	tb.Helper()
	root, err := moduleRoot()
	must(tb, err)
	return root
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		raw, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(raw, []byte("module github.com/lakefs-mount/lakefs-mount\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod of lakefs-mount above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

// build leaves the binary in .cache/mounttest, where other test processes
// build theirs too: under a name of its own, then renamed, so that a process
// that runs the old one keeps it.
func build() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".cache", "mounttest")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	name := filepath.Join(dir, "lakefs-mount")
	args := []string{"build", "-buildvcs=false"}
	if raceEnabled {
		name += "-race"
		args = append(args, "-race")
	}
	if os.Getenv("GOCOVERDIR") != "" {
		args = append(args, "-cover", "-coverpkg=./...")
	}
	own := fmt.Sprintf("%s.%d", name, os.Getpid())
	defer os.Remove(own) //nolint:errcheck // renamed, or not worth an error
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", own, "./cmd/lakefs-mount")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build lakefs-mount: %w\n%s", err, out)
	}
	return name, os.Rename(own, name)
}
