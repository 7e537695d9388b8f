package crash_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/killpoint"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// patience is how long something is waited for that is done behind an answer.
const patience = 5 * time.Second

// rig is a lake with an agent in it, and in a bucket with a gate before the store.
type rig struct {
	*mounttest.Lake
	t     *testing.T
	agent *agent
	gate  *gate           // nil: in a folder
	trap  *killpoint.Trap // nil: none

	part    string // the directory of the round ("db/text/dt=2026-01-01")
	round   int
	foreign []upload // of another writer
	spare   string   // key at which another mount may have an upload

	orphaned            int       // uploads of which the mount was never told
	atKill              string    // the records that the last kill left
	atRandom            bool      // the kills are: see forgive
	done                int       // steps of the last run that answered 0
	down                bool      // the daemon has been unmounted
	killedAt, startedAt time.Time // the last times; what the gate sees between was sent by the dead
}

// rigOptions describe a rig.
type rigOptions struct {
	s3    bool
	trap  bool
	limit time.Duration // of the lake's life
	flags []string
}

// partSize is what `mount` knows of parts: there are three in a large file.
var partSize = sync.OnceValue(func() []string { return []string{"--part-size=5MiB"} })

func newRig(t *testing.T, o rigOptions) *rig {
	t.Helper()
	r := &rig{t: t, agent: newAgent(t)}
	lake := mounttest.Options{
		Faulty: o.s3, Timeout: o.limit,
		Tables: []mounttest.Table{
			{Database: "db", Name: "text", Format: "csv", Keys: []string{"dt:date"}, Files: map[string]string{"dt=2026-01-01/": ""}},
			{Database: "db", Name: "parquet", Keys: []string{"dt:date"}, Files: map[string]string{"dt=2026-01-01/": ""}},
			{Database: "db", Name: deepTable, Format: "csv", Keys: []string{"dt:date", "h:int"}, Files: map[string]string{"dt=2026-01-01/": ""}},
		},
		Flags: slices.Concat([]string{"--write=delete", "--metadata-ttl=60s", "--negative-ttl=60s"}, o.flags),
	}
	if o.s3 {
		lake.Flags = append(lake.Flags, partSize()...)
	} else {
		mounttest.FolderOnly(t, "the daemon's own steps on a disk")
	}
	if o.trap {
		r.trap = killpoint.New(t, "TestKillPointHelper")
		lake.Via = r.trap.Command()
	}
	r.Lake = mounttest.New(t, lake)
	if o.s3 {
		r.gate = newGate(r.Proxy)
	}
	return r
}

// start mounts, and has the mount learn what the store makes of conditions, so that
// it does not do so in the middle of what is looked at.
func (r *rig) start(flags ...string) {
	r.t.Helper()
	r.Start(flags...)
	r.watch()
	r.warm()
}

// watch has the gate kill this daemon.
func (r *rig) watch() {
	if r.gate == nil {
		return
	}
	pid := r.Pid()
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	r.gate.kill = func() { _ = syscall.Kill(pid, syscall.SIGKILL) } // it may have ended
}

func (r *rig) warm() {
	r.t.Helper()
	file := r.Path("db/text/dt=2026-01-01/warm")
	for _, k := range []task{{Do: "create", Path: file, Name: "warm", Size: 5}, {Do: "unlink", Path: file}} {
		if err := r.agent.do(k); err != nil {
			r.t.Fatalf("warm: %s: %v", k.Do, err)
		}
	}
}

// prepare makes the directory of a new round, as another writer would.
func (r *rig) prepare(op *operation) {
	r.t.Helper()
	r.round++
	r.part = "db/" + cmp.Or(op.table, "text") + "/dt=" + time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, r.round).Format(time.DateOnly)
	if !r.OnS3() {
		if err := os.Mkdir(r.Data(r.part), 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
	r.PutStored(r.part+"/.other", "another's\n") // in a bucket a directory is there by what is in it
	for name, raw := range op.seeds {
		r.PutStored(r.part+"/"+name, string(raw))
	}
	if r.OnS3() {
		r.beginForeign(r.part+"/f.csv", r.part+"/other.csv")
	}
	r.see()
}

// see has the mount see what is in the store now.
func (r *rig) see() {
	r.t.Helper()
	if err := r.agent.do(task{Do: "tell", Path: r.Path(".lakefs/ctl"), Name: "refresh"}); err != nil {
		r.t.Fatalf("refresh: %v", err)
	}
	if _, err := r.agent.ask(task{Do: "walk", Path: r.Path(r.part)}); err != nil {
		r.t.Fatalf("walk: %v", err)
	}
	if r.gate != nil {
		r.gate.forget()
	}
}

// run has an operation done in the directory of the round.
func (r *rig) run(op operation) error {
	if op.isHeld() {
		return r.runHeld(&op, 0)
	}
	k := op.task
	k.Path = r.Path(r.part + "/" + k.Path)
	if k.To != "" {
		k.To = r.Path(r.part + "/" + k.To)
	}
	return r.agent.do(k)
}

// killed ends the daemon, unless something has done so, and waits for what it began.
func (r *rig) killed() {
	r.t.Helper()
	if !r.down {
		r.Kill()
	}
	r.killedAt = time.Now()
	if r.gate != nil {
		r.gate.settled(r.t)
		r.forgive(true)
	}
}

// Start mounts, and knows when.
func (r *rig) Start(flags ...string) {
	r.t.Helper()
	r.startedAt, r.down = time.Now(), false
	r.Lake.Start(flags...)
}

// store is what the directory of the round has, with nothing hidden.
func (r *rig) store() tree {
	r.t.Helper()
	files, err := r.StoredTree(r.part)
	if err != nil {
		r.t.Fatalf("read the store: %v", err)
	}
	return bytesOf(r.t, files)
}

// bytesOf is a listing less the other writer's file, which must be there.
func bytesOf(t *testing.T, files map[string]string) tree {
	t.Helper()
	if files[".other"] != "another's\n" {
		t.Errorf("another's file is %q", files[".other"])
	}
	got := tree{}
	for name, text := range files {
		if name != ".other" {
			got[name] = []byte(text)
		}
	}
	return got
}

// wantMountShows asserts that the mount shows what the store has.
func (r *rig) wantMountShows(have tree) {
	r.t.Helper()
	o, err := r.agent.ask(task{Do: "walk", Path: r.Path(r.part)})
	if err != nil {
		r.t.Errorf("walk: %v", err)
		return
	}
	want := map[string]string{".other": brief([]byte("another's\n"))}
	for name, raw := range have {
		want[name] = brief(raw)
	}
	if !maps.Equal(o.Files, want) {
		r.t.Errorf("the mount shows %v, the store has %v", o.Files, want)
	}
}

// staged is an unpublished file, as `recover --json` and status.json tell.
type staged struct {
	ID    string `json:"write_id"`
	Path  string `json:"path"`
	State string `json:"state"`
	Open  bool   `json:"open"`
	Size  int64  `json:"size"`
	Error string `json:"error"`
	Hold  string `json:"hold"`
}

// shown is where the mount shows its bytes.
func (w staged) shown() string {
	return path.Join(path.Dir(w.Path), ".lakefs", "staged", path.Base(w.Path)+"~"+w.ID[:8])
}

// kept asks the mount what is staged.
func (r *rig) kept() []staged {
	r.t.Helper()
	s, err := r.status()
	if err != nil {
		r.t.Fatalf("status.json: %v", err)
	}
	return s.Staged
}

// status is of status.json what is not published.
type status struct {
	Staged []staged `json:"staged"`
	Local  []staged `json:"local"`
}

func (r *rig) status() (s status, err error) {
	o, err := r.agent.ask(task{Do: "read", Path: r.Path(".lakefs/status.json")})
	if err == nil {
		err = json.Unmarshal(o.Raw, &s)
	}
	return s, err
}

// keptByCommand is kept as the command tells it.
func (r *rig) keptByCommand() []staged {
	r.t.Helper()
	res := r.command("--json")
	var all []staged
	if err := json.Unmarshal([]byte(res.Out), &all); res.Code != 0 || err != nil {
		r.t.Fatalf("recover --json: code %d, %v\n%s%s", res.Code, err, res.Out, res.Err)
	}
	return all
}

// command is `recover`, of a running mount or of none.
func (r *rig) command(args ...string) mounttest.Result {
	r.t.Helper()
	return r.Run(slices.Concat([]string{"recover", "--state-dir=" + r.State}, args, []string{r.Source, r.Root})...)
}

// writes are the directories of the staging directory.
func (r *rig) writes() []string {
	r.t.Helper()
	entries, err := os.ReadDir(r.Staged())
	if err != nil {
		r.t.Fatal(err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), "spare.") {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// wantClean asserts that nothing is left of what the mount began.
func (r *rig) wantClean() {
	r.t.Helper()
	var ids []string
	if !within(patience, func() bool { ids = r.writes(); return len(ids) == 0 }) { // it may be done behind the answer
		r.t.Errorf("the staging directory has %q", ids)
	}
	if r.OnS3() {
		r.forgive(false)
		r.wantUploads()
	}
}

// wantState asserts that the directory is in one of the states, and returns its name.
func (r *rig) wantState(op *operation, names ...string) (tree, string) {
	r.t.Helper()
	have := r.store()
	states := map[string]tree{"old": op.seeds, "new": op.after, "both names": op.half()}
	for _, name := range names {
		if state := states[name]; state != nil && have.equal(state) || name == "old" && len(have) == 0 && len(op.seeds) == 0 {
			return have, name
		}
	}
	r.t.Errorf("the store has %v, want %q of old %v, new %v", have, names, op.seeds, op.after)
	return have, "wrong"
}

// wantOnce asserts how often the target was published, and that it bears the id of that.
func (r *rig) wantOnce(op *operation, state string) {
	r.t.Helper()
	if !r.OnS3() {
		return
	}
	if op.directory() {
		return // what is taken back and published again is so under another condition
	}
	key := r.Key(r.part + "/" + op.target)
	var made []request
	for _, q := range r.gate.requests(key) {
		if q.published() && q.key == key {
			made = append(made, q)
		}
	}
	want := 0
	if state == "new" || state == "both names" {
		want = 1
	}
	if len(made) != want {
		r.t.Errorf("published %d times, want %d (%s)", len(made), want, state)
		return
	}
	if want == 0 {
		return
	}
	id := made[0].writeID
	if made[0].op == "CompleteMultipartUpload" {
		id = r.gate.writeIDOf(made[0].upload)
	}
	server, bucket := r.Bucket()
	head := server.Head(r.t, bucket, key)
	if got := head.Metadata["lakefs-write-id"]; got != id || id == "" {
		r.t.Errorf("the object bears the write id %q, its publish %q", got, id)
	}
}

// writeIDOf is the write id that an upload was begun with.
func (g *gate) writeIDOf(upload string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, q := range g.log {
		if q.op == "CreateMultipartUpload" && q.upload == upload {
			return q.writeID
		}
	}
	return ""
}

// trace is what passed the gate below the directory of the round, a line each.
func (r *rig) trace() string {
	if r.gate == nil {
		return ""
	}
	var b strings.Builder
	all := r.gate.requests(r.Key(r.part))
	for _, q := range all[max(0, len(all)-40):] {
		fmt.Fprintf(&b, "  %v\n", &q)
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
