package fs_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

const pollName = "big.csv"

// sighting is a file as a poller saw it.
type sighting struct {
	name string
	size int64
	sum  [sha256.Size]byte
}

// poller lists a folder as fast as it can and notes each version of each name.
type poller struct {
	t     *testing.T
	dir   string
	stop  chan struct{}
	ended sync.WaitGroup
	once  sync.Once

	rounds int
	seen   []sighting
	known  map[string]os.FileInfo
}

// poll watches dir, in the store, until stopped.
func poll(t *testing.T, dir string) *poller {
	t.Helper()
	p := &poller{t: t, dir: dir, stop: make(chan struct{}), known: map[string]os.FileInfo{}}
	p.ended.Go(func() {
		for {
			select {
			case <-p.stop:
				return
			default:
				p.round()
			}
		}
	})
	t.Cleanup(func() { p.end() })
	return p
}

// end stops the poller and returns all that it saw.
func (p *poller) end() []sighting {
	p.once.Do(func() { close(p.stop) })
	p.ended.Wait()
	return p.seen
}

func (p *poller) round() {
	p.rounds++
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		p.t.Errorf("poll: %v", err)
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(p.dir, e.Name()))
		if err != nil {
			continue // replaced since
		}
		p.look(e.Name(), f)
		_ = f.Close() // only read
	}
}

// look notes a version that was not seen before. One that is known by inode,
// size and time must not have other bytes: a whole one is looked at once more
// whenever its time has moved.
func (p *poller) look(name string, f *os.File) {
	info, err := f.Stat()
	if err != nil {
		p.t.Errorf("poll: %v", err)
		return
	}
	old := p.known[name]
	if old != nil && os.SameFile(old, info) && old.Size() == info.Size() && old.ModTime().Equal(info.ModTime()) {
		return
	}
	p.known[name] = info
	h := sha256.New()
	buf := make([]byte, 1<<20)
	var size int64
	for {
		n, err := f.Read(buf)
		h.Write(buf[:n])
		size += int64(n)
		if err != nil {
			break
		}
	}
	p.seen = append(p.seen, sighting{name, size, [sha256.Size]byte(h.Sum(nil))})
}

// listScript is the poller of the mount: it lists a directory until its
// standard input ends, and prints each new size of each name.
const listScript = `import os, select, sys
known, rounds = {}, 0
while not select.select([sys.stdin], [], [], 0)[0]:
    rounds += 1
    for e in os.scandir(sys.argv[1]):
        try: size = e.stat(follow_symlinks=False).st_size
        except FileNotFoundError: continue
        if known.get(e.name) != size: print(e.name, size)
        known[e.name] = size
print("rounds", rounds)
`

// listWhile runs work while a process lists part of the mount, and returns
// "name size" of all that it saw.
func listWhile(t *testing.T, l *mounttest.Lake, part string, work func()) []string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "list.py")
	writeFile(t, script, listScript)
	fifo := filepath.Join(t.TempDir(), "stop")
	out := ""
	var lister sync.WaitGroup
	if r := l.Sh("mkfifo " + fifo); r.Code != 0 {
		t.Fatal(r.Err)
	}
	lister.Go(func() { out = l.Sh(python(t) + " " + script + " " + part + " < " + fifo).Out })
	stop, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	work()
	_ = stop.Close() // a fifo's end
	lister.Wait()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, "rounds ") || last == "rounds 0" {
		t.Fatalf("the lister of the mount ended badly: %q", last)
	}
	t.Logf("lister of the mount: %s", last)
	return lines[:len(lines)-1]
}

// TestPollersSeeWholeVersionsOnly: one process polls the folder, one lists the
// mount, while others copy 200 MiB in, overwrite and append.
func TestPollersSeeWholeVersionsOnly(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{
		Tables: twoTables(nil), Timeout: 3 * time.Minute,
		Flags: []string{"--metadata-ttl=0", "--negative-ttl=0"},
	})
	big := filepath.Join(t.TempDir(), "big")
	l.MustSh(`head -c 200M /dev/urandom > ` + big)
	raw, err := os.ReadFile(big)
	if err != nil {
		t.Fatal(err)
	}
	bigSum := sha256.Sum256(raw)
	p := poll(t, l.Window(csvDir))
	listed := listWhile(t, l, csvDir, func() {
		var tools sync.WaitGroup
		tools.Go(func() { l.MustSh("cp " + big + " " + csvDir + "/" + pollName) })
		tools.Go(func() {
			l.MustSh(`cd ` + csvDir + `; for i in $(seq 40); do yes $i | head -c ${i}0000 > over.csv; done`)
		})
		tools.Go(func() { l.MustSh(`cd ` + csvDir + `; for i in $(seq 100); do echo line $i >> log.csv; done`) })
		tools.Wait()
	})
	seen := p.end()
	t.Logf("poller of the folder: %d rounds, %d versions", p.rounds, len(seen))
	checkSightings(t, seen, bigSum)
	for _, line := range listed {
		name, size, _ := strings.Cut(line, " ")
		if !wholeSize(name, size) {
			t.Errorf("a listing of the mount showed %s of %s bytes", name, size)
		}
	}
	for _, name := range []string{pollName, "over.csv", "log.csv"} {
		if !slices.ContainsFunc(listed, func(line string) bool { return strings.HasPrefix(line, name+" ") }) {
			t.Errorf("the listings of the mount never had %s", name)
		}
	}
	wantClean(t, l, csvDir, pollName, "log.csv", "over.csv")
	want := logLines(100)
	if got, _ := inStore(t, l, csvDir+"/log.csv"); got != want {
		t.Errorf("log.csv has %d bytes, want %d", len(got), len(want))
	}
}

// logLines is the log after n appends.
func logLines(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

// overVersion is what the ith overwrite makes.
func overVersion(i int) string {
	return strings.Repeat(fmt.Sprintf("%d\n", i), 5_000*i)[:i*10_000]
}

// checkSightings asserts that each is a version that was written as a whole, in
// order.
func checkSightings(t *testing.T, seen []sighting, big [sha256.Size]byte) {
	t.Helper()
	whole := map[sighting]int{{pollName, 200 << 20, big}: 1}
	for i := 1; i <= 100; i++ {
		content := logLines(i)
		whole[sighting{"log.csv", int64(len(content)), sha256.Sum256([]byte(content))}] = i
	}
	for i := 1; i <= 40; i++ {
		content := overVersion(i)
		whole[sighting{"over.csv", int64(len(content)), sha256.Sum256([]byte(content))}] = i
	}
	last, count := map[string]int{}, map[string]int{}
	for _, s := range seen {
		at, ok := whole[s]
		switch {
		case s.name == "_temporary": // of a copy across file systems
			t.Errorf("the folder shows %s", s.name)
		case !ok:
			t.Errorf("the folder had %s of %d bytes, which is no whole version", s.name, s.size)
		case at < last[s.name]:
			t.Errorf("the folder had version %d of %s after version %d", at, s.name, last[s.name])
		}
		last[s.name] = at
		count[s.name]++
	}
	for name, least := range map[string]int{pollName: 1, "over.csv": 5, "log.csv": 5} {
		if count[name] < least {
			t.Errorf("the poller saw %d versions of %s: it is too slow to tell", count[name], name)
		}
	}
}

// wholeSize tells whether a version of name has that size.
func wholeSize(name, size string) bool {
	switch name {
	case pollName:
		return size == fmt.Sprint(200<<20)
	case "over.csv":
		return strings.HasSuffix(size, "0000")
	case "log.csv":
		for i := 1; i <= 100; i++ {
			if size == fmt.Sprint(len(logLines(i))) {
				return true
			}
		}
	}
	return false
}

// TestKilledCopyIsAbsentAndKept: `kill -9` of a cp of 200 MiB that has copied
// 20 of them.
func TestKilledCopyIsAbsentAndKept(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"other.csv": "1\n"})
	p := poll(t, l.Window(csvDir))
	const part = 20 << 20
	l.MustSh(`cd ` + csvDir + `; S=` + t.TempDir() + `; mkfifo $S/big; head -c 200M /dev/urandom > $S/all
		cp $S/big ` + pollName + ` & copy=$!
		exec 3>$S/big; head -c 20M $S/all >&3
		until [ "$(stat -c %s ` + pollName + `)" = 20971520 ]; do sleep .01; done
		ls -a | grep -v '^[.]*$' | tr '\n' ' ' > $S/listed; ls .lakefs/staged > $S/staged
		staging=_temporary/.tmp.$(basename $(ls -d ` + l.Staged() + `/*-*))
		cmp -n 20971520 $staging $S/all || exit 3
		rm $staging 2>&1 | grep -q busy || exit 4
		ls -A _temporary | grep . && exit 5
		rm -rf _temporary; cmp -n 20971520 $staging $S/all || exit 5
		kill -9 $copy; wait $copy 2>/dev/null
		[ "$(cat $S/listed)" = "other.csv " ] || { cat $S/listed; exit 6; }
		grep -q '^` + pollName + `~........$' $S/staged || exit 7
		ls -A | grep -v other.csv && exit 8
		cmp -n 20971520 $staging $S/all && cmp -n 20971520 .lakefs/staged/* $S/all || exit 9
		test ! -e ` + pollName + ` || exit 10`)
	for _, s := range p.end() {
		if s.name != "other.csv" {
			t.Errorf("the folder showed %s of %d bytes", s.name, s.size)
		}
	}
	wantAbsent(t, l, csvDir+"/"+pollName)
	kept := stagedStatus(t, l)
	if len(kept) != 1 || kept[0].State != "torn" || kept[0].Size != part || kept[0].Open || kept[0].Error == "" {
		t.Errorf("kept is %+v, want one torn file of %d bytes, with a reason", kept, part)
	}
	l.Remount()
	if again := stagedStatus(t, l); !slices.Equal(again, kept) {
		t.Errorf("after a remount kept is %+v, want %+v", again, kept)
	}
	wantAbsent(t, l, csvDir+"/"+pollName)
}
