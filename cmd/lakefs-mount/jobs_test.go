package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestCommandsOfAMountSayWhatIsWrongWithAPath: each with the remedy, and exit code 1.
func TestCommandsOfAMountSayWhatIsWrongWithAPath(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	outside := t.TempDir()
	txn := lake.Path("sales/notes/.lakefs/txn/")
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"repair", outside}, []string{"in no mount", "lakefs-mount status"}},
		{[]string{"repair", lake.Root}, []string{"is the mount point", "DATABASE/TABLE"}},
		{[]string{"repair", lake.Path("sales")}, []string{"level of databases", lake.Path("sales/TABLE")}},
		{[]string{"repair", lake.Path("sales/none")}, []string{"no such table", "ls "}},
		{[]string{"repair", lake.Path("sales/\x1b[2J")}, []string{"no such table", `\x1b[2J`}},
		{[]string{"repair", lake.Path("sales/notes.json")}, []string{"is a file", "directory of the table"}},
		{[]string{"repair", lake.Path("sales/notes/dt=2026-01-01")}, []string{"lies in one", "lakefs-mount repair " + lake.Path("sales/notes")}},
		{[]string{"schema", outside}, []string{"in no mount"}},
		{[]string{"schema", lake.Path("sales/notes/dt=2026-01-01")}, []string{"lies in one", "lakefs-mount schema " + lake.Path("sales/notes")}},
		{[]string{"set-format", outside, "ORC"}, []string{"in no mount"}},
		{[]string{"set-format", lake.Path("sales"), "ORC"}, []string{"has no format", "partition"}},
		{[]string{"set-format", lake.Path("sales/notes/dt=2026-01-01/a.csv"), "ORC"}, []string{"is a file", "directory"}},
		{[]string{"commit", outside}, []string{"in no mount"}},
		{[]string{"commit", lake.Path("sales/notes")}, []string{"no transaction", ".lakefs/txn/ID"}},
		{[]string{"commit", lake.Path("sales/notes/.lakefs/txn/none")}, []string{"no such transaction", "committed or dropped"}},
		{[]string{"abort", txn + "/a/dt=2026-01-01"}, []string{"lies in a transaction", "/a"}},
		{[]string{"abort", lake.Path("sales/notes/.lakefs/txn/none")}, []string{"no such transaction"}},
	} {
		r := lake.Run(tt.args...)
		if r.Code != exitFailed || r.Out != "" || strings.Contains(r.Err, "\x1b") {
			t.Errorf("%q: exit code %d, %q, %q; want %d and nothing on stdout", tt.args, r.Code, r.Out, r.Err, exitFailed)
		}
		for _, want := range tt.want {
			if !strings.Contains(r.Err, want) {
				t.Errorf("%q: %q lacks %q", tt.args, r.Err, want)
			}
		}
	}
}

func TestCommandsOfAMountThatIsReadOnly(t *testing.T) {
	lake := mounttest.New(t, sales(t))
	lake.Start("--read-only")
	for _, args := range [][]string{
		{"repair", "--dry-run", lake.Path("sales/notes")},
		{"set-format", lake.Path("sales/notes"), "ORC"},
		{"commit", lake.Path("sales/notes/.lakefs/txn/a")},
		{"abort", lake.Path("sales/notes/.lakefs/txn/a")},
	} {
		r := lake.Run(args...)
		if r.Code != exitFailed || !strings.Contains(r.Err, "read-only") || !strings.Contains(r.Err, "without --read-only") {
			t.Errorf("%q: exit code %d, %q", args, r.Code, r.Err)
		}
		if args[0] == "repair" && !strings.Contains(r.Err, "a dry run is asked of the mount by a control file") {
			t.Errorf("a dry run says %q", r.Err)
		}
	}
}

func TestUsageOfCommandsOfAMount(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"repair"}, "TABLE, was given no arguments"},
		{[]string{"repair", "--dryrun", "/x"}, "unknown flag"},
		{[]string{"set-format", "/x"}, "PATH FORMAT…, was given 1 argument"},
		{[]string{"set-format", "/x", "PARQET"}, "PARQUET"},
		{[]string{"commit", "/x", "--overwrite="}, "no SCOPE"},
		{[]string{"commit", "--overwrite", "dt=1/", "/x"}, "--overwrite=dt=1/"},
		{[]string{"commit", "/x", "--overwrite=dt=1/\nabort"}, "line's end"},
		{[]string{"set-format", "/x", "INPUTFORMAT 'a.b'\ndrain"}, "drain"},
		{[]string{"set-format", "/x", "INPUTFORMAT 'a.b'\n OUTPUTFORMAT 'a.c'"}, "one line"},
		{[]string{"schema"}, "takes [flags] TABLE, was given no arguments"},
		{[]string{"abort"}, "PATH, was given no arguments"},
	} {
		_, stderr, code := call(t, "lakefs-mount", nil, tt.args...)
		if code != exitUsage || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: exit code %d, %q; want %d and %q", tt.args, code, stderr, exitUsage, tt.want)
		}
	}
}

// standIn is a directory in the place of a mount: it has these files in its control
// directory, and nobody answers.
func standIn(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".lakefs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, ".lakefs", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAMountOfAnOlderVersionHasNoJobs(t *testing.T) {
	dir := standIn(t, map[string]string{"version": "0.1.0 (old\x1b[2J)\n", "ctl": ""})
	var out, errs bytes.Buffer
	p := &program{stdout: &out, stderr: &errs}
	_, err := p.runJob(t.Context(), jobAsk{mountpoint: dir, control: rootControl(dir), verb: "repair", rest: `"a/b"`, what: "repair"})
	if err == nil || !strings.Contains(err.Error(), `0.1.0 (old\x1b[2J)`) || !strings.Contains(err.Error(), "mount it with this one") {
		t.Errorf("the error is %v", err)
	}
	if line, err := os.ReadFile(rootControl(dir)); err != nil || len(line) > 0 {
		t.Errorf("ctl was written %q (%v)", line, err)
	}
}

// TestAJobIsToldByItsID: the line has an id, by which the mount tells of the job.
func TestAJobIsToldByItsID(t *testing.T) {
	dir := standIn(t, map[string]string{"jobs.json": `{"jobs": []}`, "ctl": ""})
	p := &program{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	job, err := p.runJob(t.Context(), jobAsk{mountpoint: dir, control: rootControl(dir), verb: "overwrite", rest: "dt=1/", what: "x"})
	if err != nil || job.ID != "" {
		t.Errorf("a job that the mount does not tell of is %+v, %v", job, err)
	}
	line, err := os.ReadFile(rootControl(dir))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(line))
	if len(words) != 4 || words[0] != "overwrite" || words[1] != "--job" || len(words[2]) != 36 || words[3] != "dt=1/" {
		t.Errorf("the line is %q", line)
	}
	if err := os.WriteFile(filepath.Join(dir, ".lakefs", "jobs.json"), fmt.Appendf(nil, `{"jobs": [{"id": "a"}, {"id": %q, "error": "no"}]}`, words[2]), 0o644); err != nil {
		t.Fatal(err)
	}
	if job, told := jobOf(t.Context(), dir, words[2]); !told || job.Error != "no" {
		t.Errorf("the job is %+v, %v", job, told)
	}
}

// TestTheOutcomeIsPrintedOnce, as text or as JSON, and what was not asked not at all.
func TestTheOutcomeIsPrintedOnce(t *testing.T) {
	failed := errors.New("why")
	result := json.RawMessage(`{"added": ["dt=1"]}`)
	for _, tt := range []struct {
		name   string
		job    fs.JobStatus
		failed error
		asJSON bool
		want   string
	}{
		{name: "not asked", failed: failed},
		{name: "not asked, JSON", failed: failed, asJSON: true},
		{name: "failed", job: fs.JobStatus{ID: "x"}, failed: failed},
		{name: "failed in part", job: fs.JobStatus{ID: "x", Result: result}, failed: failed, want: "text\n"},
		{name: "done", job: fs.JobStatus{ID: "x"}, want: "text\n"},
		{name: "failed, JSON", job: fs.JobStatus{ID: "x", Error: "why"}, failed: failed, asJSON: true, want: `"error": "why"`},
	} {
		var out bytes.Buffer
		p := &program{stdout: &out, stderr: &bytes.Buffer{}}
		err := p.tellJob(tt.job, tt.failed, tt.asJSON, func() error { p.printf("text\n"); return nil })
		if !errors.Is(err, tt.failed) || !strings.Contains(out.String(), tt.want) || tt.want == "" && out.Len() > 0 {
			t.Errorf("%s: %v, prints %q; want %v and %q", tt.name, err, &out, tt.failed, tt.want)
		}
	}
}

// TestStatusShowsPendingWork in the text as in the JSON of the mount.
func TestStatusShowsPendingWork(t *testing.T) {
	var out bytes.Buffer
	p := &program{stdout: &out, stderr: &bytes.Buffer{}}
	now := time.Now().Add(-time.Minute).Format(time.RFC3339)
	s := mountStatus{MountPoint: "/mnt", State: "running", Status: json.RawMessage(`{
		"transactions": [{"path": "a/b/.lakefs/txn/x\u001b", "files": 3, "bytes": 2048, "created": "` + now + `"},
			{"path": "a/b/.lakefs/txn/y", "files": 1, "bytes": 1, "created": "` + now + `", "committing": true},
			{"path": "a/b/.lakefs/txn/z", "files": 1, "bytes": 1, "created": "` + now + `", "half_published": true}],
		"unregistered": [{"path": "a/b/dt=1", "reason": "AccessDenied\u001b"}]}`)}
	if err := p.printMount(s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Open transactions in /mnt:", `"a/b/.lakefs/txn/x\x1b"  3      2.0 KiB  1m0s  open`, "committing", "half published", "a/b/dt=1   AccessDenied\\x1b", "lakefs-mount repair"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("status prints %q, which lacks %q", &out, want)
		}
	}
}

// TestCompletion: what the shell asks for, by the command that its scripts call.
func TestCompletion(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "dt=1"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"rep"}, []string{"repair"}},
		{[]string{"sche"}, []string{"schema"}},
		{[]string{"set-format", "x", ""}, formatKeywords()},
		{[]string{"repair", "--d"}, []string{"--dry-run"}},
		{[]string{"commit", "--o"}, []string{"--overwrite"}},
		{[]string{"commit", dir, "--overwrite="}, []string{"*", "dt=1/"}},
		{[]string{"abort", "--j"}, []string{"--json"}},
	} {
		stdout, _, code := call(t, "lakefs-mount", nil, append([]string{"__complete"}, tt.args...)...)
		for _, want := range tt.want {
			if code != exitOK || !strings.Contains("\n"+stdout, "\n"+want) {
				t.Errorf("%q completes to %q (exit code %d), want %q", tt.args, stdout, code, want)
			}
		}
	}
}

// TestEveryCommandIsInTheREADME, and explains itself.
func TestEveryCommandIsInTheREADME(t *testing.T) {
	raw, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	p := &program{}
	for _, cmd := range p.rootCommand().Commands() {
		if cmd.Name() == "version" || cmd.Hidden {
			continue
		}
		if !strings.Contains(string(raw), "| `lakefs-mount "+cmd.Name()) {
			t.Errorf("README.md has no line for %s", cmd.Name())
		}
		if cmd.Short == "" || cmd.Args == nil {
			t.Errorf("%s does not explain itself", cmd.Name())
		}
	}
}
