package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// rowsLake is a lake of tables whose files have rows, and of some that have none.
func rowsLake(t *testing.T) *mounttest.Lake {
	t.Helper()
	three := mounttest.Parquet(t, 3)
	return mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{
		{Database: "db", Name: "t", Columns: []string{"name", "more:int", "id:bigint"}, Keys: []string{"dt:date", "n:int"}, Files: map[string]string{
			"dt=2026-01-01/n=7/a b.parquet": three, "dt=2026-01-01/n=7/many.parquet": mounttest.Parquet(t, 5000),
			"dt=2026-01-01/n=7/hundred.parquet": mounttest.Parquet(t, tableRows), "dt=2026-01-01/n=7/cut.parquet": three[:100],
			"dt=2026-01-01/n=7/_hidden.parquet": three,
		}},
		{Database: "db", Name: "csv", Format: "csv", Files: map[string]string{"a.csv": "1,one\n"}},
		{Database: "db", Name: "orc", Format: "orc", Files: map[string]string{"a.orc": "ORC"}},
		{Database: "db", Name: "wrong", Columns: []string{"id:date"}, Files: map[string]string{"a.parquet": three}},
	}})
}

const inPartition = "db/t/dt=2026-01-01/n=7/"

func TestRowsOfAFileInAMount(t *testing.T) {
	lake := rowsLake(t)
	file := lake.Path(inPartition + "a b.parquet")
	line := func(i int) string {
		return fmt.Sprintf(`{"name":"name","more":null,"id":%d,"dt":"2026-01-01","n":7}`, i) + "\n"
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, line(0) + line(1) + line(2)},
		{[]string{"--limit=2"}, line(0) + line(1)},
		{[]string{"--limit=0"}, line(0) + line(1) + line(2)},
		{[]string{"--limit=9"}, line(0) + line(1) + line(2)},
		{[]string{"--format=jsonl", "--columns=n,id", "--limit=1"}, `{"n":7,"id":0}` + "\n"},
		{[]string{"--columns=n", "--columns=id", "--limit=1"}, `{"n":7,"id":0}` + "\n"},
		{[]string{"--format=csv", "--limit=1"}, "name,more,id,dt,n\nname,,0,2026-01-01,7\n"},
		{[]string{"--format=csv", "--columns=id"}, "id\n0\n1\n2\n"},
		{[]string{"--format=table", "--columns=id,name"}, "id  name\n--  ----\n 0  name\n 1  name\n 2  name\n"},
	} {
		if r := lake.Run(append([]string{"rows", file}, tt.args...)...); r.Code != exitOK || r.Out != tt.want || r.Err != "" {
			t.Errorf("%q: exit code %d, %q %q, want %q", tt.args, r.Code, r.Out, r.Err, tt.want)
		}
	}
	if r := lake.Run("rows", lake.Path(inPartition+"_hidden.parquet"), "--limit=1"); r.Code != exitOK || r.Out != `{"id":0,"name":"name"}`+"\n" {
		t.Errorf("of a hidden file: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	for typed, want := range map[string]string{"": "name more id dt n", "id,": "id,name id,more id,dt id,n", "n,name,id,more,d": "n,name,id,more,dt"} {
		r := lake.Run("__completeNoDesc", "rows", file, "--columns", typed)
		if words, _, _ := strings.Cut(r.Out, "\n:"); strings.Join(strings.Fields(words), " ") != want {
			t.Errorf("--columns %q is completed to %q, want %q", typed, words, want)
		}
	}
	if err := os.Symlink(file, filepath.Join(lake.State, "link")); err != nil {
		t.Fatal(err)
	}
	if r := lake.Run("rows", "link", "--limit=1"); r.Code != exitOK || r.Out != line(0) {
		t.Errorf("by a symbolic link: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	if r := lake.Sh(`cd "` + inPartition + `"; "` + lake.Binary() + `" rows 'a b.parquet' --limit 1`); r.Code != exitOK || r.Out != line(0) {
		t.Errorf("by a relative path: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
}

// TestRowsOfAFileOutside: it tells its columns itself.
func TestRowsOfAFileOutside(t *testing.T) {
	dir := t.TempDir()
	good, text, empty := filepath.Join(dir, "good"), filepath.Join(dir, "text"), filepath.Join(dir, "empty")
	for name, content := range map[string]string{good: mounttest.Parquet(t, 2), text: "1,one\n", empty: ""} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, string, int) {
		t.Helper()
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(t.Context(), mounttest.Binary(t), append([]string{"rows"}, args...)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
		_ = cmd.Run() // the exit code tells
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	if out, errs, code := run("good"); code != exitOK || out != "{\"id\":0,\"name\":\"name\"}\n{\"id\":1,\"name\":\"name\"}\n" || errs != "" {
		t.Errorf("exit code %d, %q %q", code, out, errs)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{text}, exitFailed, "neither a Parquet nor an Avro file; it seems to be text (JSON, CSV) already"},
		{[]string{empty}, exitFailed, "empty"},
		{[]string{dir}, exitFailed, "is a directory"},
		{[]string{"none"}, exitFailed, "no such file"},
		{[]string{"/dev/null"}, exitFailed, "copy it into one"},
		{[]string{good, "--columns=none"}, exitFailed, `"none"`},
		{[]string{"-"}, exitUsage, "standard input"},
		{[]string{good, "--columns=id,name,id"}, exitUsage, `names "id" twice`},
		{[]string{good, "--columns=id,"}, exitUsage, "no name"},
		{[]string{good, "--columns="}, exitUsage, "no column"},
		{[]string{good, "--limit=-1"}, exitUsage, "--limit -1"},
		{[]string{good, "--limit=1e3"}, exitUsage, `invalid argument "1e3" for "--limit" flag: it is a number of rows in digits`},
		{[]string{good, `--columns=q"x`}, exitUsage, "put in quotes"},
		{[]string{good, `--columns=id,"q""x"`}, exitFailed, `"q\"x"`},
		{[]string{good, "--format=json"}, exitUsage, `--format "json": it is jsonl, csv, table; the nearest is jsonl`},
		{[]string{good, "--format="}, exitUsage, "it is jsonl"},
		{[]string{good, good}, exitUsage, "was given 2 arguments"},
		{nil, exitUsage, "was given no arguments"},
	} {
		if out, errs, code := run(tt.args...); code != tt.code || !strings.Contains(errs, tt.want) || out != "" {
			t.Errorf("%q: exit code %d, %q %q, want %d and %q", tt.args, code, out, errs, tt.code, tt.want)
		}
	}
}

// TestRowsThatAMountDoesNotHave: the reason, and what helps.
func TestRowsThatAMountDoesNotHave(t *testing.T) {
	lake := rowsLake(t)
	for name, want := range map[string]string{
		"db/csv/a.csv":             "which is text: cat",
		"db/orc/a.orc":             "of the format orc: rows are shown of Parquet and Avro",
		"db/t.json":                "a catalog entry",
		"db/t/.lakefs/status.json": "text (JSON, CSV) already",
		inPartition + ".lakefs/rows/a b.parquet.jsonl":  "text already",
		inPartition + ".lakefs/footer/a b.parquet.json": "text already",
		inPartition + "none.parquet":                    "no such file",
		inPartition + "cut.parquet":                     "cut.parquet",
		inPartition:                                     "is a directory",
		"db/wrong/a.parquet":                            `column "id"`,
	} {
		if r := lake.Run("rows", lake.Path(name)); r.Code != exitFailed || !strings.Contains(r.Err, want) || r.Out != "" {
			t.Errorf("%s: exit code %d, %q %q, want %q", name, r.Code, r.Out, r.Err, want)
		}
	}
}

// TestRowsAsATableAreTheFirst: and stderr says so, where there are others.
func TestRowsAsATableAreTheFirst(t *testing.T) {
	lake := rowsLake(t)
	for _, tt := range []struct {
		name  string
		args  []string
		lines int
		says  bool
	}{
		{"many.parquet", nil, tableHead + tableRows, true},
		{"hundred.parquet", nil, tableHead + tableRows, false},
		{"many.parquet", []string{"--limit=200"}, tableHead + 200, false},
		{"many.parquet", []string{"--limit=0"}, tableHead + 5000, false},
	} {
		r := lake.Run(append([]string{"rows", "--format=table", lake.Path(inPartition + tt.name)}, tt.args...)...)
		if n := strings.Count(r.Out, "\n"); r.Code != exitOK || n != tt.lines || strings.Contains(r.Err, "the first 100 rows") != tt.says || (r.Err != "") != tt.says {
			t.Errorf("%s %q: exit code %d, %d lines, want %d; %q", tt.name, tt.args, r.Code, n, tt.lines, r.Err)
		}
	}
	for _, format := range []string{"jsonl", "csv"} {
		if r := lake.Run("rows", "--format="+format, lake.Path(inPartition+"many.parquet")); r.Code != exitOK || r.Err != "" || strings.Count(r.Out, "\n") < 5000 {
			t.Errorf("%s: exit code %d, %d lines, %q", format, r.Code, strings.Count(r.Out, "\n"), r.Err)
		}
	}
}

// TestRowsOnATerminal are a table.
func TestRowsOnATerminal(t *testing.T) {
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("no script(1) here, which makes a terminal")
	}
	lake := rowsLake(t)
	screen := filepath.Join(t.TempDir(), "screen")
	file := lake.Path(inPartition + "many.parquet")
	if out, err := exec.CommandContext(t.Context(), "script", "-qefc", lake.Binary()+" rows "+file, screen).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	raw, err := os.ReadFile(screen)
	if err != nil || !regexp.MustCompile(`(?m)^name +more +id +dt +n\r?$`).Match(raw) || !strings.Contains(string(raw), "the first 100 rows") {
		t.Errorf("the screen has %.500q (%v), want a table", raw, err)
	}
}

// TestRowsForHead: who reads no more ends it, as he ends others, and no child is left.
func TestRowsForHead(t *testing.T) {
	lake := rowsLake(t)
	r := lake.Sh(`"` + lake.Binary() + `" rows --format csv ` + inPartition + `many.parquet | head -2; echo ${PIPESTATUS[0]}`)
	lines := strings.Split(r.Out, "\n")
	// The text may fit into the pipe: then nothing told it.
	if len(lines) < 3 || lines[0] != "name,more,id,dt,n" || r.Err != "" || !slices.Contains([]string{"0", fmt.Sprint(128 + int(syscall.SIGPIPE))}, lines[2]) {
		t.Errorf("%q %q", r.Out, r.Err)
	}
	cmd := exec.CommandContext(t.Context(), lake.Binary(), "rows", lake.Path(inPartition+"many.parquet"))
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close() //nolint:errcheck // nobody reads
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = write, &errs
	err = cmd.Run()
	write.Close() //nolint:errcheck // nothing was written
	var exit *exec.ExitError
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !errors.As(err, &exit) || !ok || !status.Signaled() || status.Signal() != syscall.SIGPIPE || errs.Len() > 0 {
		t.Errorf("with nobody to read: %v, %q; want the end by SIGPIPE", err, errs.String())
	}
	if full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil {
		defer full.Close() //nolint:errcheck // it takes nothing
		cmd = exec.CommandContext(t.Context(), lake.Binary(), "rows", lake.Path(inPartition+"many.parquet"))
		cmd.Stdout, cmd.Stderr = full, &errs
		if err = cmd.Run(); cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("to a full disk: %v, %q", err, errs.String())
		}
	}
}

// TestRowsThatTheStoreRefuses: the error is the store's, and the exit status 1.
func TestRowsThatTheStoreRefuses(t *testing.T) {
	lake, proxy := bucketLakeOf(t, func(o *mounttest.Options) {
		o.Tables = []mounttest.Table{{Database: "db", Name: "t", Files: map[string]string{"a.parquet": mounttest.Parquet(t, 4), "b.parquet": mounttest.Parquet(t, 4)}}}
	})
	proxy.Add(faulty.Rule{Op: "GetObject", If: ofKey("a.parquet"), Fault: faulty.Status{Code: 403, S3Code: "AccessDenied"}})
	lake.Start()
	if r := lake.Run("rows", lake.Path("db/t/a.parquet")); r.Code != exitFailed || !strings.Contains(r.Err, "permission denied") || r.Out != "" {
		t.Errorf("exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	proxy.Reset()
	if r := lake.Run("rows", lake.Path("db/t/b.parquet")); r.Code != exitOK || strings.Count(r.Out, "\n") != 4 {
		t.Errorf("exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	if got := requestsOf(proxy, "b.parquet"); got["GetObject"] != 1 || got["HeadObject"] > 0 {
		t.Errorf("a small file is asked for by %v", got)
	}
	lake.Unmount()
}

// TestRowsOfADeadMount says that it is.
func TestRowsOfADeadMount(t *testing.T) {
	lake := rowsLake(t)
	lake.Kill()
	if r := lake.Run("rows", lake.Path(inPartition+"many.parquet")); r.Code != exitFailed || !strings.Contains(r.Err, "mount it again") {
		t.Errorf("exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
}

func TestRowsComplete(t *testing.T) {
	lake := rowsLake(t)
	for _, tt := range []struct{ args, want []string }{
		{[]string{"rows", lake.Path(inPartition + "many.parquet"), "--columns", "id,"}, []string{"id,name", "id,more", "id,dt"}},
		{[]string{"rows", "--columns", ""}, []string{":6"}},
		{[]string{"rows", "none", "--columns", ""}, []string{":6"}},
		{[]string{"rows", "--format", ""}, rowsFormats()},
		{[]string{"rows", "--c"}, []string{"--columns"}},
		{[]string{"ro"}, []string{"rows"}},
		{[]string{"rows", "file", ""}, []string{":4"}},
		{[]string{"du", ""}, []string{":16"}},
		{[]string{"du", "--d"}, []string{"--depth"}},
	} {
		stdout, _, code := call(t, "lakefs-mount", nil, append([]string{"__complete"}, tt.args...)...)
		for _, want := range tt.want {
			if code != exitOK || !strings.Contains("\n"+stdout, "\n"+want) {
				t.Errorf("%q completes to %q (exit code %d), want %q", tt.args, stdout, code, want)
			}
		}
	}
}

func TestCutLines(t *testing.T) {
	for _, tt := range []struct {
		lines int64
		want  string
		cut   bool
	}{{0, "a\nb\nc", false}, {1, "a\n", true}, {2, "a\nb\n", true}, {3, "a\nb\nc", false}} {
		for size := 1; size < 7; size++ {
			var b bytes.Buffer
			c := &cutLines{w: &b, lines: tt.lines}
			for part := range slices.Chunk([]byte("a\nb\nc"), size) {
				if n, err := c.Write(part); n != len(part) || err != nil {
					t.Fatalf("Write: %d, %v", n, err)
				}
			}
			if b.String() != tt.want || c.cut != tt.cut {
				t.Errorf("%d lines, %d bytes at a time: %q, cut %v; want %q, %v", tt.lines, size, b.String(), c.cut, tt.want, tt.cut)
			}
		}
	}
}
