// Package tools_test runs the programs that people have, unchanged, in a plain
// directory and in a table of a real mount, and holds the two to one another.
// What it sees is the table of docs/semantics.md; the examples of that text are
// run here too.
package tools_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

var update = flag.Bool("update", false, "write what was seen into docs/semantics.md")

// tool is a script that is run twice, by bash -eu, in an empty directory with
// umask 022. $OUT is a directory outside that is made for the run (see supply),
// $FOLDER where the files of the directory lie outside the mount (to be read).
type tool struct {
	name   string
	script string
	needs  string // commands, and modules of Python ("py:duckdb"), that it cannot do without

	format string   // of the table; "": text
	keys   []string // of the table

	mtime   bool   // the tool sets times: compare them too
	prints  bool   // what it prints varies from run to run
	varies  string // regular expression of names whose bytes vary from run to run
	random  string // regular expression; what its groups match in a name varies: shown as X
	note    string // what the tool itself does otherwise on a mount, in a file of varies
	differs string // what fails on a mount, and why; "": nothing may be different
	bucket  string // the same where lakes are in buckets alone
}

// tools are all rows of the table, in its order.
func tools() []tool {
	return slices.Concat(shellTools(), editTools(), archiveTools(), databaseTools(), pythonTools(), readerTools(), programTools())
}

// seen is a row of the table: what a run on the mount did.
type seen struct {
	code      int
	same      bool     // the tree is the plain directory's, byte for byte
	transient []string // names that came into the folder and went, before the script ended
	deep      bool     // some of them lay in a directory made during the run: others may be missed
}

// TestToolsDoOnAMountWhatTheyDoInAPlainDirectory runs every tool in both places.
func TestToolsDoOnAMountWhatTheyDoInAPlainDirectory(t *testing.T) {
	all := tools()
	lake := mounttest.Mount(t, mounttest.Options{Tables: tables(all), Timeout: 12 * time.Minute})
	rows := make(map[string]seen, len(all))
	for _, c := range all {
		if c.differs == "" && lake.OnS3() {
			c.differs = c.bucket
		}
		t.Run(c.name, func(t *testing.T) {
			if missing := c.missing(t); missing != "" {
				t.Skipf("not on this machine: %s", missing)
			}
			rows[c.name] = c.compare(t, lake)
		})
	}
	t.Run("remount", func(t *testing.T) { survive(t, lake, all) })
	checkTable(t, all, rows, lake.OnS3())
}

// survive holds names, bytes, modes and times to be the same after a remount.
func survive(t *testing.T, lake *mounttest.Lake, all []tool) {
	t.Helper()
	trees := func() (list []map[string]node) {
		for _, c := range all {
			must(t, lake.Do("walk "+c.name, func() error {
				all := tool{}.tree(t, lake.Path("tools/"+c.table()), true, true)
				if lake.OnS3() {
					ofObjects(all)
				}
				list = append(list, all)
				return nil
			}))
		}
		return list
	}
	before := trees()
	lake.Remount()
	for i, tree := range trees() {
		compareTrees(t.Errorf, all[i].name+" after a remount", tree, before[i])
	}
}

func tables(all []tool) []mounttest.Table {
	list := make([]mounttest.Table, 0, len(all))
	for _, c := range all {
		format := c.format
		if format == "" {
			format = "text"
		}
		list = append(list, mounttest.Table{Database: "tools", Name: c.table(), Format: format, Keys: c.keys, Files: map[string]string{"/": ""}})
	}
	return list
}

// table is the name of the tool's table.
func (c tool) table() string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(c.name)), "_")
}

// missing names what the machine has not got of what the tool needs.
func (c tool) missing(t *testing.T) string {
	t.Helper()
	for _, need := range strings.Fields(c.needs) {
		module, python := strings.CutPrefix(need, "py:")
		switch {
		case !python:
			if _, err := exec.LookPath(need); err != nil {
				return need
			}
		case exec.CommandContext(t.Context(), pythonPath(t), "-c", "import "+module).Run() != nil: //nolint:gosec // our own list
			return "Python's " + module + " (make venv)"
		}
	}
	return ""
}

func pythonPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(mounttest.ModuleRoot(t), ".venv", "bin", "python3")
}

// place is where a script runs.
type place struct {
	dir, out, folder string
}

// compare runs the tool in both places, and returns what the mount did.
func (c tool) compare(t *testing.T, lake *mounttest.Lake) seen {
	t.Helper()
	name := "tools/" + c.table()
	base := t.TempDir()
	plain := place{dir: filepath.Join(base, "plain", c.table()), out: filepath.Join(base, "plain.out")}
	mount := place{dir: lake.Path(name), out: filepath.Join(base, "mount.out"), folder: lake.Window(name)}
	plain.folder = plain.dir
	for _, dir := range []string{plain.dir, plain.out, mount.out} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	want := c.run(t, plain)
	watched := watch(t, mount.folder)
	got := c.run(t, mount)
	row := seen{code: got.code, same: true}
	row.transient, row.deep = watched.stop(c.hide(t), !lake.OnS3())

	differ := func(format string, args ...any) {
		t.Helper()
		row.same = false
		if c.differs == "" {
			t.Errorf(format, args...)
		}
	}
	if got.code != want.code {
		differ("exit code %d, want %d as in a plain directory\nstderr: %s", got.code, want.code, got.stderr)
	}
	if got.stdout != want.stdout && !c.prints {
		differ("it printed %q, want %q as in a plain directory", got.stdout, want.stdout)
	}
	if want.code != 0 && c.differs == "" {
		t.Errorf("the script fails in a plain directory: code %d, stderr: %s", want.code, want.stderr)
	}
	wantTree := c.tree(t, plain.dir, c.mtime, true)
	var gotTree map[string]node
	must(t, lake.Do("walk "+name, func() error { gotTree = c.tree(t, mount.dir, c.mtime, true); return nil }))
	compareTrees(differ, "the mount", gotTree, wantTree)
	published := c.tree(t, plain.dir, false, false)
	if lake.OnS3() {
		withoutEmpty(published)
	}
	compareTrees(differ, "the store", c.tree(t, mount.folder, false, false), published)
	compareTrees(differ, "what went out", c.tree(t, mount.out, c.mtime, true), c.tree(t, plain.out, c.mtime, true))
	for _, torn := range watched.inPlace() {
		t.Errorf("%s was written in place in the folder, seen by others as it grew", torn)
	}
	nothingStaged(t, lake)
	if c.differs != "" && row.same {
		t.Errorf("nothing is different on the mount; the tool says %q", c.differs)
	}
	return row
}

// nothingStaged waits for the last release to drop its spool: nothing may be
// staged in the whole lake, nor lie in the staging directory.
func nothingStaged(t *testing.T, lake *mounttest.Lake) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	expired := time.After(20 * time.Second)
	for {
		status, err := lake.ReadFile(".lakefs/status.json")
		must(t, err)
		entries, err := os.ReadDir(lake.Staged())
		must(t, err)
		spool := slices.IndexFunc(entries, func(e os.DirEntry) bool { return e.IsDir() && !strings.HasPrefix(e.Name(), "spare.") })
		if spool < 0 && strings.Contains(status, `"staged": []`) {
			return
		}
		select {
		case <-tick.C:
		case <-expired:
			t.Errorf("left in the staging directory: %v; status: %s", entries, status)
			return
		}
	}
}

// result is what a script did, seen from outside.
type result struct {
	code           int
	stdout, stderr string
}

// run runs the script, bounded, with everything that it starts in one group.
func (c tool) run(t *testing.T, p place) result {
	t.Helper()
	return script(t, p, supply+c.script)
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
	cmd.Env = []string{
		"PATH=" + path, "HOME=" + filepath.Dir(p.out), "OUT=" + p.out, "FOLDER=" + p.folder, "MODULE=" + mounttest.ModuleRoot(t),
		"LC_ALL=C.UTF-8", "TZ=UTC", "TERM=dumb", "PYTHONDONTWRITEBYTECODE=1",
		"GOCACHE=" + goenv("GOCACHE"), "GOPATH=" + goenv("GOPATH"), "GOTOOLCHAIN=auto",
	}
	killGroup(cmd)
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatalf("bash: %v", err)
	}
	return result{code: cmd.ProcessState.ExitCode(), stdout: scrub(stdout.String(), p), stderr: scrub(stderr.String(), p)}
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// supply makes what the scripts begin with: files in $OUT, and seed.
const supply = `set -euo pipefail
umask 022
seed() { seq -f "line %g" 1 "${2:-200}" > "$1"; }
seed "$OUT/in.txt" 200
seq 1 300000 > "$OUT/in.bin"
mkdir -p "$OUT/tree/sub/deep"
seed "$OUT/tree/one" 10; seed "$OUT/tree/sub/two" 300; : > "$OUT/tree/sub/empty"; seed "$OUT/tree/sub/deep/three" 3
chmod 640 "$OUT/tree/sub/two"; chmod 755 "$OUT/tree/one"; chmod 750 "$OUT/tree/sub/deep"
touch -d 2024-02-29T12:34:56.123456789 "$OUT/in.txt" "$OUT/tree/one" "$OUT/tree/sub/empty"
touch -d 2023-01-01T00:00:00 "$OUT/in.bin" "$OUT/tree/sub/two" "$OUT/tree/sub/deep/three"
touch -d 2022-01-01T00:00:00 "$OUT/tree/sub/deep" "$OUT/tree/sub" "$OUT/tree"
`
