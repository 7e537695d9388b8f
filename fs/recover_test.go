package fs_test

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// kept is a file that was written and not published.
type kept struct {
	path, state, reason, content string // reason: a part of it
}

// leaveUnpublished leaves one file of each kind in the lake, and a daemon that
// was killed. What it returns is sorted by path.
func leaveUnpublished(t *testing.T, l *mounttest.Lake) []kept {
	t.Helper()
	mustPython(t, l, script(l, csvDir, `
f = open("taken.csv", "w"); f.write("mine\n"); f.flush()
put_stored("taken.csv", b"theirs\n")
eq(err(f.close), "EEXIST")
f = open("changed.csv", "w"); f.write("mine\n"); f.flush()
put_stored("changed.csv", b"theirs\n")
eq(err(f.close), "ESTALE")
pid = os.fork()
if pid == 0:
    f = open("torn.csv", "w"); f.write("half"); f.flush(); os.kill(os.getpid(), 9)
os.waitpid(pid, 0)
os.chdir("`+l.Path(parquetDir)+`")
f = open("bad.parquet", "w"); f.write("PAR1 and no more\n")
eq(err(f.close), "EBADMSG")
`))
	writing := l.MustSh(`cd ` + csvDir + `; ready=` + l.State + `/ready
		{ exec 3>open.csv; echo half >&3; : > $ready; exec sleep 1000; } >/dev/null 2>&1 &
		until [ -e $ready ]; do sleep .01; done; rm $ready; echo $!`)
	l.Kill()
	pid, err := strconv.Atoi(strings.TrimSpace(writing))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return []kept{
		{parquetDir + "/bad.parquet", "failed", "not of its partition's format", "PAR1 and no more\n"},
		{csvDir + "/changed.csv", "failed", "changed", "mine\n"},
		{csvDir + "/open.csv", "staged", "", "half\n"},
		{csvDir + "/taken.csv", "failed", "exists", "mine\n"},
		{csvDir + "/torn.csv", "torn", "killed by a signal", "half"},
	}
}

// wantKept asserts that exactly these files are shown, in status.json and in
// .lakefs/staged, and that recover lists them.
func wantKept(t *testing.T, l *mounttest.Lake, want []kept) {
	t.Helper()
	all := stagedStatus(t, l)
	slices.SortFunc(all, func(a, b stagedWrite) int { return strings.Compare(a.Path, b.Path) })
	if len(all) != len(want) {
		t.Fatalf("kept are %+v, want %+v", all, want)
	}
	for i, w := range all {
		content, err := l.ReadFile(w.shown())
		if err != nil || w.Path != want[i].path || w.State != want[i].state || content != want[i].content || w.Open ||
			!strings.Contains(w.Error, want[i].reason) || (w.Error == "") != (want[i].reason == "") {
			t.Errorf("kept is %+v with %q (%v), want %+v", w, content, err, want[i])
		}
	}
}

// TestUnpublishedFilesAreKeptOverRemounts: with state and reason, and never
// published by themselves.
func TestUnpublishedFilesAreKeptOverRemounts(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"changed.csv": "old\n", "other.csv": "other\n"})
	want := leaveUnpublished(t, l)
	lake := tree{
		"text/dt=2026-01-01/changed.csv": "theirs\n", "text/dt=2026-01-01/taken.csv": "theirs\n",
		"text/dt=2026-01-01/other.csv": "other\n",
	}
	l.Start()
	for range 2 {
		wantKept(t, l, want)
		if got := storedTree(t, l, "db"); !got.equal(lake) {
			t.Errorf("the lake has %q, want %q", got, lake)
		}
		names, err := l.Names(csvDir)
		if err != nil || !slices.Equal(names, []string{"changed.csv", "other.csv", "taken.csv"}) {
			t.Errorf("listed are %q (%v)", names, err)
		}
		l.Remount()
	}
	// A kept file does not stand in the way of its name.
	l.MustSh(`cd ` + csvDir + `; echo again > torn.csv; echo more >> torn.csv; [ "$(cat torn.csv)" = "again
more" ]`)
	wantKept(t, l, want)
	wantStore(t, l, csvDir+"/torn.csv", "again\nmore\n")
}

// TestRecoverOfEachKind runs the command against a running mount, and against
// the state directory of one that ended.
func TestRecoverOfEachKind(t *testing.T) {
	for _, running := range []bool{true, false} {
		name := "unmounted"
		if running {
			name = "running"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := mountTwo(t, map[string]string{"changed.csv": "old\n"})
			want := leaveUnpublished(t, l)
			r := &recoverer{t: t, l: l}
			if running {
				l.Start()
				r.args = []string{"recover", l.Root}
			} else {
				r.args = []string{"recover", "--state-dir=" + l.State, l.Source, l.Root}
			}
			r.everyKind(want)
			if !running {
				l.Start()
			}
			wantStore(t, l, csvDir+"/torn.csv", "half")
			wantStore(t, l, csvDir+"/taken.csv", "mine\n")
			wantStore(t, l, csvDir+"/changed.csv", "theirs\n")
			wantAbsent(t, l, csvDir+"/open.csv")
			wantAbsent(t, l, parquetDir+"/bad.parquet")
			wantKept(t, l, nil)
		})
	}
}

// recoverer runs the recover command.
type recoverer struct {
	t    *testing.T
	l    *mounttest.Lake
	args []string
}

func (r *recoverer) run(code int, flags ...string) mounttest.Result {
	r.t.Helper()
	res := r.l.Run(slices.Insert(slices.Clone(r.args), 1, flags...)...)
	if res.Code != code {
		r.t.Errorf("recover %q: exit code %d, want %d\n%s%s", flags, res.Code, code, res.Out, res.Err)
	}
	return res
}

// list is recover --json, by base name.
func (r *recoverer) list() map[string]stagedWrite {
	r.t.Helper()
	var all []stagedWrite
	if res := r.run(0, "--json"); json.Unmarshal([]byte(res.Out), &all) != nil {
		r.t.Errorf("recover --json prints %q", res.Out)
	}
	byName := map[string]stagedWrite{}
	for _, w := range all {
		byName[path.Base(w.Path)] = w
	}
	return byName
}

func (r *recoverer) everyKind(want []kept) {
	t := r.t
	t.Helper()
	listed, text := r.list(), r.run(0)
	for _, k := range want {
		w := listed[path.Base(k.path)]
		if w.Path != k.path || w.State != k.state || w.Size != int64(len(k.content)) || !strings.Contains(w.Error, k.reason) {
			t.Errorf("recover --json has %+v, want %+v", w, k)
		}
		for _, part := range []string{w.ID, k.path, k.state, k.reason} {
			if !strings.Contains(text.Out, part) {
				t.Errorf("recover prints\n%swhich lacks %q", text.Out, part)
			}
		}
	}
	dir := t.TempDir()
	r.run(0, "--save", dir)
	saved := tree{}
	for _, k := range want {
		saved[path.Base(k.path)] = k.content
	}
	if got := readTree(t, dir); !got.equal(saved) {
		t.Errorf("saved are %q, want %q", got, saved)
	}
	r.run(0, "--save", dir) // beside the others
	both := readTree(t, dir)
	if res := r.run(1, "--save", dir); !strings.Contains(res.Err, "exists") || !readTree(t, dir).equal(both) || len(both) != 2*len(saved) {
		t.Errorf("saving over files: %q; there are %d files", res.Err, len(both))
	}
	r.run(0, "--publish", listed["torn.csv"].ID[:8])
	refused := r.run(1, "--publish", listed["bad.parquet"].ID+","+listed["changed.csv"].ID+","+listed["taken.csv"].ID)
	for _, k := range want {
		if k.state == "failed" && (!strings.Contains(refused.Err, `publish "`+k.path+`"`) || !strings.Contains(refused.Err, k.reason)) {
			t.Errorf("publishing what cannot be says %q, which lacks %q or %q", refused.Err, k.path, k.reason)
		}
	}
	r.l.RemoveStored(csvDir + "/taken.csv")
	r.run(0, "--publish", listed["taken.csv"].ID)
	r.run(1, "--publish", "01234567")
	if left := r.list(); len(left) != 3 {
		t.Errorf("left are %+v, want three", left)
	}
	r.run(0, "--abort", listed["changed.csv"].ID)
	r.run(0, "--abort", "all")
	if res := r.run(0); !strings.Contains(res.Out, "Nothing is unpublished") {
		t.Errorf("in the end recover prints %q", res.Out)
	}
	if ids := spools(t, r.l); len(ids) > 0 {
		t.Errorf("the staging directory has %q", ids)
	}
}

// TestDamagedRecordsAreShownAndSaved: the others are not affected.
func TestDamagedRecordsAreShownAndSaved(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil)
	for _, name := range []string{"cut", "missing", "huge", "planted", "whole"} {
		l.Sh(`cd ` + csvDir + `; bash -c 'exec 3>` + name + `.csv; echo bytes of ` + name + ` >&3; kill -9 $$'`)
	}
	l.Eventually("five torn files", 0, func() bool { return len(stagedStatus(t, l)) == 5 })
	ids := map[string]string{}
	for _, w := range stagedStatus(t, l) {
		ids[strings.TrimSuffix(path.Base(w.Path), ".csv")] = w.ID
	}
	l.Kill()
	record := func(name string) string { return filepath.Join(l.Staged(), ids[name], "write.json") }
	raw, err := os.ReadFile(record("planted"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, record("planted"), strings.ReplaceAll(string(raw), "planted.csv", "../../../../../planted.csv"))
	writeFile(t, record("huge"), strings.Repeat("[", 2<<20))
	if err := os.Truncate(record("cut"), 100); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(record("missing")); err != nil {
		t.Fatal(err)
	}
	l.Start()
	for _, w := range stagedStatus(t, l) {
		want := "failed"
		if w.ID == ids["whole"] {
			want = "torn"
		}
		if w.State != want || w.Error == "" {
			t.Errorf("kept is %+v, want it %s with a reason", w, want)
		}
	}
	dir := t.TempDir()
	if r := l.Run("recover", "--save", dir, l.Root); r.Code != 0 {
		t.Errorf("save: exit code %d: %s%s", r.Code, r.Out, r.Err)
	}
	for _, name := range []string{"cut", "missing", "huge", "planted"} {
		if got := readTree(t, dir)[ids[name]]; got != "bytes of "+name+"\n" {
			t.Errorf("saved of the %s record are %q", name, got)
		}
		if r := l.Run("recover", "--publish", ids[name], l.Root); r.Code != 1 || !strings.Contains(r.Err, ids[name]) {
			t.Errorf("publish of the %s record: exit code %d, %q", name, r.Code, r.Err)
		}
	}
	if got := readTree(t, dir)["whole.csv"]; got != "bytes of whole\n" {
		t.Errorf("saved of a whole record are %q", got)
	}
	if r := l.Run("recover", "--abort=all", l.Root); r.Code != 0 {
		t.Errorf("abort: exit code %d: %s", r.Code, r.Err)
	}
	wantClean(t, l, csvDir)
}
