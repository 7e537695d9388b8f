package fs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestJobLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line string
		want jobLine // of an id "": one was made
		bad  string  // what the error says
	}{
		{line: "repair a/b", want: jobLine{path: "a/b"}},
		{line: "repair --dry-run --job x-1 /a/b/", want: jobLine{id: "x-1", dryRun: true, path: "a/b"}},
		{line: "repair a/b c", want: jobLine{path: "a/b c"}},
		{line: `repair --job j "a/b \"c\xff"`, want: jobLine{id: "j", path: "a/b \"c\xff"}},
		{line: "repair --job j -- --dry-run/b", want: jobLine{id: "j", path: "--dry-run/b"}},
		{line: "set-format a/b/dt=1 PARQUET", want: jobLine{path: "a/b/dt=1", format: "PARQUET"}},
		{line: "set-format --job j a/b INPUTFORMAT 'x y' OUTPUTFORMAT 'z'", want: jobLine{id: "j", path: "a/b", format: "INPUTFORMAT 'x y' OUTPUTFORMAT 'z'"}},
		{line: `set-format "a/b/k=x y" ORC`, want: jobLine{path: "a/b/k=x y", format: "ORC"}},
		{line: "repair", bad: "no PATH"},
		{line: "repair --job j /", want: jobLine{id: "j"}, bad: "no PATH"},
		{line: "repair --force a/b", bad: `option "--force"`},
		{line: "repair --job a/b", bad: `--job "a/b"`},
		{line: "repair --job", bad: `--job ""`},
		{line: `repair --job j "a/b`, want: jobLine{id: "j"}, bad: "double quotes"},
		{line: `repair "a/b" c`, bad: `"c" behind it`},
		{line: "set-format a/b", bad: "no FORMAT"},
		{line: "set-format --dry-run a/b ORC", bad: "--dry-run"},
	} {
		verb, rest, _ := strings.Cut(tt.line, " ")
		got, err := parseJob(verb, rest)
		if tt.bad != "" {
			if !errors.Is(err, errCommand) || !strings.Contains(err.Error(), tt.bad) || tt.want.id != "" && got.id != tt.want.id || got.id == "" {
				t.Errorf("%q: id %q, %v; want id %q and an error with %q", tt.line, got.id, err, tt.want.id, tt.bad)
			}
			continue
		}
		if tt.want.id == "" && len(got.id) == 36 {
			got.id = ""
		}
		if err != nil || got != tt.want {
			t.Errorf("%q is %+v, %v; want %+v", tt.line, got, err, tt.want)
		}
	}
}

// TestJobsThatEndedAreBounded, those that run are not forgotten.
func TestJobsThatEndedAreBounded(t *testing.T) {
	t.Parallel()
	var all jobs
	running := all.begin("running", jobRepair, "a/b")
	running.progress(7, 0)
	running.progress(5, 10)
	large := strings.Repeat("x", keptResults/4)
	for i := range keptJobs + 3 {
		all.begin(fmt.Sprint(i), jobRepair, "a/b").end(large, errors.New("no"))
	}
	raw, err := all.json()
	var told struct{ Jobs []JobStatus }
	if err == nil {
		err = json.Unmarshal(raw, &told)
	}
	if err != nil || len(told.Jobs) != keptJobs+1 {
		t.Fatalf("%d jobs are told of (%v), want %d", len(told.Jobs), err, keptJobs+1)
	}
	if first := told.Jobs[0]; first.ID != "running" || first.Done != 7 || first.Total != 10 || first.Ended != nil {
		t.Errorf("the job that runs is %+v", first)
	}
	if second := told.Jobs[1]; second.ID != "3" || second.Error != "no" || second.Ended == nil || second.Result != nil {
		t.Errorf("the oldest that ended is %s of %v, %q, with %d bytes", second.ID, second.Ended, second.Error, len(second.Result))
	}
	if last := told.Jobs[keptJobs]; len(last.Result) < len(large) {
		t.Errorf("the last has a result of %d bytes, want %d", len(last.Result), len(large))
	}
	size := 0
	for _, one := range told.Jobs {
		size += len(one.Result)
	}
	if size > keptResults {
		t.Errorf("the results are %d bytes, want at most %d", size, keptResults)
	}
}
