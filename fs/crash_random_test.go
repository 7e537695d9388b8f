package fs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// loadScript works in a partition until a call fails. Before each operation it
// prints what the partition will have ("next"), after it "done": name to SHA-256.
const loadScript = `import hashlib, json, os, random, sys
os.chdir(sys.argv[1]); seed = int(sys.argv[2]); r = random.Random(seed)
have = {n: open(n, "rb").read() for n in os.listdir(".")}
def say(word, state):
    print(word, json.dumps({n: hashlib.sha256(b).hexdigest() for n, b in state.items()}), flush=True)
def fresh(n):
    return (b"%d %d " % (seed, r.randrange(1 << 30))) * (n // 8) if n else b""
def put(name, mode, data):
    with open(name, mode, buffering=0) as f:
        while data: data = data[f.write(data[:70000]):]
        if r.random() < .3: os.fsync(f.fileno())
def step():
    name, data = r.choice("abcdef"), fresh(r.choice([0, 10, 5000, 70000, 1500000]))
    if name not in have: return dict(have, **{name: data}), lambda: put(name, "xb", data)
    kind, rest = r.random(), {n: b for n, b in have.items() if n != name}
    if kind < .3: return dict(have, **{name: data}), lambda: put(name, "wb", data)
    if kind < .6 and len(have[name]) < 4000000:
        data = data or b"x"
        return dict(have, **{name: have[name] + data}), lambda: put(name, "ab", data)
    if kind < .8:
        to = r.choice("abcdef")
        return dict(rest, **{to: have[name]}), lambda: os.rename(name, to)
    return rest, lambda: os.unlink(name)
say("done", have)
while True:
    after, run = step()
    say("next", after)
    run()
    have = after
    say("done", have)
`

// TestKillAtRandomMomentsUnderLoad ends the daemon while two programs create,
// overwrite, append, rename and unlink, again and again.
func TestKillAtRandomMomentsUnderLoad(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, nil, "--write=delete", "--metadata-ttl=0", "--negative-ttl=0")
	interpreter := python(t)
	parts := []string{csvDir, "db/text/dt=2026-01-02"}
	makePartition(t, l, parts[1])
	r := rand.New(rand.NewPCG(19, 20)) //nolint:gosec // the same moments each time
	operations, least, slower := 0, 100, time.Duration(1)
	if l.OnS3() {
		least, slower = 30, 3
	}
	for round := range 20 {
		said := make([]string, len(parts))
		var workers sync.WaitGroup
		for i, part := range parts {
			workers.Go(func() {
				said[i] = l.Exec(interpreter, "-c", loadScript, l.Path(part), fmt.Sprint(2*round+i)).Out
			})
		}
		<-time.After(slower * time.Duration(100+r.IntN(400)) * time.Millisecond) // the moment of the kill
		l.Kill()
		workers.Wait()
		l.Start()
		for i, part := range parts {
			operations += strings.Count(said[i], "done")
			checkLoad(t, l, part, said[i])
		}
		dropStaged(t, l)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d operations", operations)
	if operations < least {
		t.Errorf("only %d operations were done: the load is none", operations)
	}
}

// checkLoad asserts that the partition has what was acknowledged last, or what
// the operation that was under way makes of it.
func checkLoad(t *testing.T, l *mounttest.Lake, part, said string) {
	t.Helper()
	var done, next map[string]string
	for line := range strings.Lines(said) {
		word, text, _ := strings.Cut(line, " ")
		var state map[string]string
		if !strings.HasSuffix(line, "\n") || json.Unmarshal([]byte(text), &state) != nil {
			continue // cut by the kill
		}
		if next = state; word == "done" {
			done = state
		}
	}
	got := map[string]string{}
	for name, content := range storedTree(t, l, part) {
		got[name] = digest(content)
	}
	switch {
	case done == nil && len(got) > 0 && next == nil: // ended before it said anything: nothing to compare
	case done != nil && maps.Equal(got, done), maps.Equal(got, next):
	default:
		t.Errorf("%s has\n%v, acknowledged was\n%v, under way\n%v", part, got, done, next)
	}
}

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// dropStaged drops all that is staged, after a read of each.
func dropStaged(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	for _, w := range stagedStatus(t, l) {
		if content, err := l.ReadFile(w.shown()); err != nil || int64(len(content)) != w.Size {
			t.Errorf("staged %+v: %d bytes, %v", w, len(content), err)
		}
		if err := l.Do("drop", func() error { return os.Remove(l.Path(w.shown())) }); err != nil {
			t.Errorf("drop %+v: %v", w, err)
		}
	}
	if ids := spools(t, l); len(ids) > 0 {
		t.Errorf("all that is shown as staged is dropped, and the staging directory has %q", ids)
	}
}
