package fs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The course is a state machine: these tests are the opens of programs, and what is
// fetched for them.

// listedNames are n names of a directory, in order.
func listedNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("f%05d.txt", i)
	}
	return names
}

// drive feeds a course with opens, and counts what it fetches.
type drive struct {
	*course
	t       *testing.T
	room    room
	fetched map[string]int // how often
	used    int
	most    int // pending at once
}

func newDrive(t *testing.T, names []string) *drive {
	t.Helper()
	d := &drive{course: newCourse(names, 32, inodeHash), t: t, fetched: make(map[string]int)}
	d.room = room{files: 64, bytes: 32 << 20, size: func(string) (int64, bool) { return 64 << 10, true }}
	return d
}

// open opens files one after the other, as the prefetcher does it.
func (d *drive) open(names ...string) {
	d.t.Helper()
	for _, name := range names {
		if len(d.orders) == 1 && d.lead == nil && len(d.recent) == minOpens {
			d.byInode()
		}
		fetch, used := d.opened(name, d.room)
		if used {
			d.used++
		}
		for _, name := range fetch {
			d.fetched[name]++
		}
		if d.lost { // looked at anew
			fresh := newCourse(d.names, d.limit, d.inode)
			fresh.strikes, fresh.partly = d.strikes, d.partly
			d.course = fresh
		}
		d.most = max(d.most, len(d.pending))
		var bytes int64
		for _, n := range d.pending {
			bytes += n
		}
		if bytes != d.bytes || bytes > d.room.bytes {
			d.t.Fatalf("after %s: %d bytes are pending, %d counted, %d allowed", name, bytes, d.bytes, d.room.bytes)
		}
	}
}

// wantCourse asserts that of opened all but the first few were fetched before, and no
// more than waste others.
func (d *drive) wantCourse(opened []string, few, waste int) {
	d.t.Helper()
	if got := len(opened) - d.used; got > few {
		d.t.Errorf("%d of %d files were not fetched when they were opened, want at most %d", got, len(opened), few)
	}
	if got := len(d.fetched) - d.used; got > waste {
		d.t.Errorf("%d files were fetched for nothing, want at most %d", got, waste)
	}
	for name, n := range d.fetched {
		if n > 1 {
			d.t.Errorf("%s was fetched %d times", name, n)
		}
	}
}

func byInodeHash(names []string) []string {
	sorted := slices.Clone(names)
	slices.SortFunc(sorted, func(a, b string) int {
		if inodeHash(a) < inodeHash(b) {
			return -1
		}
		return 1
	})
	return sorted
}

// jittered are names as n readers in parallel open them.
func jittered(names []string, n int) []string {
	out := slices.Clone(names)
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; i+n <= len(out); i += n {
		r.Shuffle(n, func(a, b int) { out[i+a], out[i+b] = out[i+b], out[i+a] })
	}
	return out
}

func TestCourseFollowsEachOrder(t *testing.T) {
	names := listedNames(1000)
	for what, c := range map[string]struct {
		opens []string
		few   int
	}{
		"listed":                  {names, 3},
		"from the middle":         {names[500:], 3},
		"by inode number":         {byInodeHash(names), 4},
		"4 readers":               {jittered(names, 4), 12},
		"4 readers, by inode":     {jittered(byInodeHash(names), 4), 16},
		"each opened twice":       {twice(names), 1003}, // the second time nothing is to be fetched
		"every fourth not opened": {everyBut(names, 4), 1000},
	} {
		t.Run(what, func(t *testing.T) {
			d := newDrive(t, names)
			d.open(c.opens...)
			waste := 0
			if what == "every fourth not opened" {
				waste = 250
			}
			d.wantCourse(c.opens, c.few, waste)
			if d.most > 32 {
				t.Errorf("%d files were pending at once", d.most)
			}
		})
	}
}

func twice(names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, name, name)
	}
	return out
}

func everyBut(names []string, n int) []string {
	var out []string
	for i, name := range names {
		if i%n != 0 {
			out = append(out, name)
		}
	}
	return out
}

func TestCourseWindowGrowsWithUse(t *testing.T) {
	names := listedNames(100)
	d := newDrive(t, names)
	for i, want := range []int{0, 0, 4, 5, 6, 7} {
		d.open(names[i])
		if got := len(d.pending); i < 3 && got != want || got > want {
			t.Errorf("after %d opens: %d files are pending, want %d", i+1, got, want)
		}
	}
	d.open(names[6:60]...)
	if got := len(d.pending); got != 32 {
		t.Errorf("far in: %d files are pending, want 32", got)
	}
}

// TestCourseOfOneKind: who reads *.csv does not have the files between fetched.
func TestCourseOfOneKind(t *testing.T) {
	var names, csv []string
	for i := range 300 {
		names = append(names, fmt.Sprintf("f%05d.csv", i))
		csv = append(csv, names[len(names)-1])
		for j := range 7 {
			names = append(names, fmt.Sprintf("f%05d.json%d", i, j))
		}
	}
	for what, opens := range map[string][]string{"listed": csv, "by inode number": byInodeHash(csv)} {
		d := newDrive(t, names)
		d.open(opens...)
		d.wantCourse(opens, 4, 0)
		t.Logf("%s: %d fetched", what, len(d.fetched))
	}
	d := newDrive(t, names) // and who reads all has all
	d.open(names...)
	d.wantCourse(names, 3, 0)
}

// TestCourseAtRandom: a bounded number of files is fetched for nothing.
func TestCourseAtRandom(t *testing.T) {
	for _, n := range []int{100, 1000, 50_000} {
		worst := 0
		names := listedNames(n)
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 7))
			d := newDrive(t, names)
			for range 2000 {
				d.open(names[r.IntN(n)])
			}
			worst = max(worst, len(d.fetched)-d.used)
		}
		t.Logf("%d names: at most %d files fetched for nothing", n, worst)
		if worst > 40 {
			t.Errorf("%d names: %d files fetched for nothing, want at most 40", n, worst)
		}
	}
}

func TestCourseInReverseFetchesNothing(t *testing.T) {
	names := listedNames(500)
	backwards := slices.Clone(names)
	slices.Reverse(backwards)
	d := newDrive(t, names)
	d.open(backwards...)
	if len(d.fetched) > 0 {
		t.Errorf("%d files were fetched", len(d.fetched))
	}
}

// TestCourseOfEverySecondFile: what is passed over all the time ends the order, each
// time for longer.
func TestCourseOfEverySecondFile(t *testing.T) {
	names := listedNames(4000)
	var half []string
	for i := 0; i < len(names); i += 2 {
		half = append(half, names[i])
	}
	d := newDrive(t, names)
	d.open(half...)
	if waste := len(d.fetched) - d.used; waste > 150 {
		t.Errorf("%d of %d files were fetched for nothing", waste, len(half))
	}
}

func TestCourseThatBreaks(t *testing.T) {
	names := listedNames(1000)
	d := newDrive(t, names)
	d.open(names[:100]...)
	if len(d.pending) != 32 {
		t.Fatalf("%d files are pending", len(d.pending))
	}
	d.open(names[900], names[300]) // two others between change nothing
	d.open(names[100:110]...)
	if d.used < 100 || len(d.pending) != 32 {
		t.Errorf("after two strangers: %d used, %d pending", d.used, len(d.pending))
	}
	before := len(d.fetched)
	d.open(names[900], names[300], names[600])
	if len(d.pending) != 0 || len(d.fetched) != before {
		t.Errorf("after the break: %d pending, %d more fetched", len(d.pending), len(d.fetched)-before)
	}
	d.open(names[700:706]...)
	if len(d.pending) == 0 {
		t.Error("the next run of opens finds no order")
	}
}

func TestCourseStaysInItsRoom(t *testing.T) {
	names := listedNames(200)
	d := newDrive(t, names)
	d.room = room{files: 64, bytes: 16 << 20, size: func(name string) (int64, bool) { return 5 << 20, name != names[8] }}
	d.open(names[:50]...)
	if d.most > 3 || d.most == 0 {
		t.Errorf("%d files of 5 MiB were pending in 16 MiB", d.most)
	}
	if d.fetched[names[8]] > 0 {
		t.Error("a file that is not to be fetched was")
	}
	for _, none := range []room{{files: 0, bytes: 1 << 30, size: d.room.size}, {files: 10, bytes: 1 << 20, size: d.room.size}, {files: -3, bytes: -1, size: d.room.size}} {
		d = newDrive(t, names)
		d.room = none
		if none.bytes < 0 {
			d.room.bytes = 0 // what drive checks
		}
		d.open(names[:50]...)
		if len(d.fetched) > 0 {
			t.Errorf("room %d, %d: %d files were fetched", none.files, none.bytes, len(d.fetched))
		}
	}
}

// TestCourseOfFilesThatAreReadInPart: large files of which a byte is read are left.
func TestCourseOfFilesThatAreReadInPart(t *testing.T) {
	names := listedNames(200)
	large := map[string]bool{}
	for i := range names {
		large[names[i]] = i%2 == 0
	}
	d := newDrive(t, names)
	d.room.size = func(name string) (int64, bool) {
		if large[name] {
			return 5 << 20, true
		}
		return 1 << 10, true
	}
	for _, name := range names[:100] {
		d.open(name)
		size, _ := d.room.size(name)
		d.closed(size, min(size, 100<<10))
	}
	for name := range d.fetched {
		if large[name] && name > names[20] {
			t.Errorf("%s was fetched", name)
		}
	}
	if !slices.Contains(mapsKeys(d.pending), names[101]) {
		t.Error("the small files are not fetched")
	}
	d.closed(5<<20, 5<<20)
	d.open(names[100:110]...)
	found := false
	for name := range d.fetched {
		found = found || large[name] && name > names[110]
	}
	if !found {
		t.Error("files that are read whole again are not fetched")
	}
}

func mapsKeys(m map[string]int64) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

func TestCourseOfFilesThatFail(t *testing.T) {
	names := listedNames(200)
	d := newDrive(t, names)
	d.open(names[:10]...)
	first := names[10]
	if _, is := d.pending[first]; !is {
		t.Fatal("the next file is not pending")
	}
	d.failed(first, false)
	if _, is := d.pending[first]; is || d.lead == nil {
		t.Error("one that failed is pending, or ended the order")
	}
	d.open(names[10:12]...)
	d.failed(names[13], true)
	if !d.lost || len(d.pending) > 0 {
		t.Errorf("a store that fails: %d files are pending", len(d.pending))
	}
}

func TestKindsOfNames(t *testing.T) {
	for _, same := range [][]string{
		{"a.csv", "b.csv"},
		{"x.0001", "x.1234"},
		{"part-00000", "part-00001"},
		{".a", "b"},
		{"a.c000.parquet", "b.c001.parquet"},
		{"a.0123456789abcdef0123", "b"},
	} {
		if kind(same[0]) != kind(same[1]) {
			t.Errorf("%q and %q are of the kinds %q and %q", same[0], same[1], kind(same[0]), kind(same[1]))
		}
	}
	if kind("a.csv") == kind("a.json") {
		t.Error("a.csv and a.json are of one kind")
	}
}
