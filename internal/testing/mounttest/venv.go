package mounttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Venv is a program of the Python environment of the tests ("aws", "python3"),
// which has these modules. Where it is not there the test is skipped with the
// reason, unless MOUNTTEST_REQUIRED is set: then it fails.
func Venv(tb testing.TB, program string, modules ...string) string {
	tb.Helper()
	bin := filepath.Join(ModuleRoot(tb), ".venv", "bin")
	path := filepath.Join(bin, program)
	_, err := os.Stat(path)
	if err == nil && len(modules) > 0 {
		// Only looked for: to import some takes seconds.
		find := "import importlib.util as u, sys; sys.exit(any(u.find_spec(m) is None for m in sys.argv[1:]))"
		err = exec.CommandContext(tb.Context(), filepath.Join(bin, "python3"), append([]string{"-c", find}, modules...)...).Run()
	}
	if err == nil {
		return path
	}
	what := strings.Join(append([]string{program}, modules...), ", ")
	if os.Getenv("MOUNTTEST_REQUIRED") != "" {
		tb.Fatalf("%s: not installed: run tools/venv.sh .venv: %v", what, err)
	}
	tb.Skipf("%s: not installed: run tools/venv.sh .venv", what)
	return ""
}
