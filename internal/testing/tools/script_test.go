package tools_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// outside is what scripts fetch files from: $URL/in.txt, and in.txt in the bucket
// $BUCKET of the store that AWS_ENDPOINT_URL and its like name. Other than with
// $OUT's, the lines are "remote N".
type outside struct{ env []string }

func newOutside(t *testing.T) outside {
	t.Helper()
	dir := t.TempDir()
	text := strings.Repeat("remote line\n", 500)
	must(t, os.WriteFile(filepath.Join(dir, "in.txt"), []byte(text), 0o600))
	old := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	must(t, os.Chtimes(filepath.Join(dir, "in.txt"), old, old))
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)

	store := s3test.Versity(t)
	bucket := store.Bucket(t)
	store.Put(t, bucket, "in.txt", []byte(text))
	env := append(store.Env(), "URL="+server.URL, "BUCKET="+bucket, "AWS_ENDPOINT_URL="+store.Endpoint, "AWS_PAGER=")
	return outside{env: env}
}

// place is where a script runs.
type place struct {
	dir, out, folder string
	versions         string // where keep leaves what is there; "": nowhere
	env              []string
}

// result is what a script did, seen from outside.
type result struct {
	code           int
	stdout, stderr string
}

// prepare makes what the tool finds.
func (c tool) prepare(t *testing.T, p place) {
	t.Helper()
	p.versions = ""
	if r := script(t, p, prelude+supply+c.before); r.code != 0 {
		t.Fatalf("preparing it: exit code %d, stderr: %s", r.code, r.stderr)
	}
}

// run runs the script, bounded, with everything that it starts in one group.
func (c tool) run(t *testing.T, p place) result {
	t.Helper()
	return script(t, p, prelude+c.script)
}

func script(t *testing.T, p place, text string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	args := mounttest.Inside(p.dir, "bash", "-c", text)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, 5*time.Second
	path := os.Getenv("PATH")
	if _, err := os.Stat(pythonPath(t)); err == nil {
		path = filepath.Dir(pythonPath(t)) + ":" + path
	}
	cmd.Env = append(slices.Clone(p.env),
		"PATH="+path, "HOME="+filepath.Dir(p.out), "OUT="+p.out, "FOLDER="+p.folder, "MODULE="+mounttest.ModuleRoot(t), "VERSIONS="+p.versions,
		"LC_ALL=C.UTF-8", "TZ=UTC", "TERM=dumb", "PYTHONDONTWRITEBYTECODE=1",
		"GOCACHE="+goenv("GOCACHE"), "GOPATH="+goenv("GOPATH"), "GOTOOLCHAIN=auto",
	)
	killGroup(cmd)
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatalf("bash: %v", err)
	}
	return result{code: cmd.ProcessState.ExitCode(), stdout: scrub(stdout.String(), p), stderr: scrub(stderr.String(), p)}
}

// killGroup makes the end of cmd's context the end of all that it started.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// scrub takes the names of the place out of what was printed.
func scrub(s string, p place) string {
	return strings.NewReplacer(p.dir, "DIR", p.out, "OUT", p.folder, "DIR").Replace(s)
}

// goenv asks go once a process.
var goenv = onceEach(func(name string) string {
	out, _ := exec.CommandContext(context.Background(), "go", "env", name).Output() // no go: the tests of it are skipped
	return strings.TrimSpace(string(out))
})

// prelude is what every script begins with.
const prelude = `set -euo pipefail
umask 022
seed() { seq -f "line %g" 1 "${2:-200}" > "$1"; }
keep() { [ -z "$VERSIONS" ] || cp -rT . "$(printf '%s/%06d' "$VERSIONS" "$(ls "$VERSIONS" | wc -l)")"; }
`

// supply makes what the scripts begin with: files in $OUT.
const supply = `
seed "$OUT/in.txt" 200
seq 1 300000 > "$OUT/in.bin"
mkdir -p "$OUT/tree/sub/deep"
seed "$OUT/tree/one" 10; seed "$OUT/tree/sub/two" 300; : > "$OUT/tree/sub/empty"; seed "$OUT/tree/sub/deep/three" 3
chmod 640 "$OUT/tree/sub/two"; chmod 755 "$OUT/tree/one"; chmod 750 "$OUT/tree/sub/deep"
touch -d 2024-02-29T12:34:56.123456789 "$OUT/in.txt" "$OUT/tree/one" "$OUT/tree/sub/empty"
touch -d 2023-01-01T00:00:00 "$OUT/in.bin" "$OUT/tree/sub/two" "$OUT/tree/sub/deep/three"
touch -d 2022-01-01T00:00:00 "$OUT/tree/sub/deep" "$OUT/tree/sub" "$OUT/tree"
`
