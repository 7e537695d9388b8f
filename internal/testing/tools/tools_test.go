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
// $FOLDER where the files of the directory lie outside the mount (to be read), $URL
// serves $OUT/in.txt, and so does the bucket $BUCKET (see outside).
type tool struct {
	name   string
	before string // a script that makes what the tool finds: its requests do not count
	script string // calls keep after each version of a file that it leaves for others to read
	needs  string // commands, and modules of Python ("py:duckdb"), that it cannot do without

	format string   // of the table; "": text
	keys   []string // of the table

	mtime   bool   // the tool sets times: compare them too
	prints  bool   // what it prints varies from run to run
	varies  string // regular expression of names whose bytes vary from run to run
	random  string // regular expression; what its groups match in a name varies: shown as X
	note    string // what the tool itself does otherwise on a mount, in a file of varies
	differs string // what fails on a mount, and why; "": nothing may be different

	// between makes further versions, which the tool leaves on its way to the next one
	// that is whole: they are known, and none that has to be.
	between string
	// more says why the store gets more than it has to, which is one PUT for each
	// version of a file, a HEAD where there was one, and final names alone.
	more string
	// heads says that how many HEADs there are depends on time: the table has no number.
	heads bool
}

// tools are all rows of the table, in its order.
func tools() []tool {
	return slices.Concat(shellTools(), fileTools(), editTools(), archiveTools(), transferTools(), databaseTools(),
		pythonTools(), officeTools(), readerTools(), programTools())
}

// seen is a row of the table: what a run on the mount did.
type seen struct {
	code     int
	same     bool     // the tree is the plain directory's, byte for byte
	requests string   // those that a bucket got
	names    []string // those that the store had and that are not final
}

// TestToolsInABucket runs every tool in a plain directory and in a bucket, and holds
// the table of docs/semantics.md to what came of it.
func TestToolsInABucket(t *testing.T) {
	all := tools()
	// How often it is asked what is there depends on how long answers are trusted: here
	// on to the end, so that all HEADs are of what is overwritten.
	known := []string{"--metadata-ttl=1h", "--negative-ttl=1h"}
	lake := mounttest.Mount(t, mounttest.Options{Tables: tables(all), Faulty: true, Timeout: 15 * time.Minute, Flags: known})
	// The first publish finds out what the store is able to do.
	lake.MustSh("cd tools/warm; echo one > a; echo two > a; mv a b; rm b")
	checkTable(t, all, runAll(t, lake, all), true)
}

// TestToolsInAFolder does so in a folder, where there are no requests to count.
func TestToolsInAFolder(t *testing.T) {
	mounttest.FolderOnly(t, "tools, which have a test of buckets")
	all := tools()
	lake := mounttest.Mount(t, mounttest.Options{Tables: tables(all), Timeout: 15 * time.Minute})
	checkTable(t, all, runAll(t, lake, all), false)
}

// runAll runs the tools, remounts, and returns their rows.
func runAll(t *testing.T, lake *mounttest.Lake, all []tool) map[string]seen {
	t.Helper()
	rows := make(map[string]seen, len(all))
	out := newOutside(t)
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			if missing := c.missing(t); missing != "" {
				if os.Getenv("CI") == "true" || os.Getenv("MOUNTTEST_REQUIRED") != "" {
					t.Errorf("not on this machine: %s", missing)
				}
				t.Skipf("not on this machine: %s; its row is left as it is", missing)
			}
			if row := c.compare(t, lake, out); !t.Failed() {
				rows[c.name] = row
			}
		})
	}
	t.Run("remount", func(t *testing.T) { survive(t, lake, all) })
	return rows
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
	list := []mounttest.Table{{Database: "tools", Name: "warm", Format: "text", Files: map[string]string{"/": ""}}}
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
		case python:
			if !imports(pythonPath(t) + " " + module) {
				return "Python's " + module + " (make venv)"
			}
		case !isFile(filepath.Join(filepath.Dir(pythonPath(t)), need)):
			if _, err := exec.LookPath(need); err != nil {
				return need
			}
		}
	}
	return ""
}

// imports reports whether a Python has a module: "PATH MODULE".
var imports = onceEach(func(what string) bool {
	python, module, _ := strings.Cut(what, " ")
	return exec.CommandContext(context.Background(), python, "-c", "import "+module).Run() == nil //nolint:gosec // our own list
})

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func pythonPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(mounttest.ModuleRoot(t), ".venv", "bin", "python3")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
