package fs_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// The next small files of a directory that is being read in order are fetched ahead:
// what that costs, as the proxy counts it, and that nobody is disturbed by it.

// small are n files of a few KiB, each different, in a directory.
func small(dir string, n int) map[string]string {
	files := make(map[string]string)
	for i := range n {
		files[fmt.Sprintf("%s/f%05d.txt", dir, i)] = numbered('a'+byte(i%26), 3000+i)
	}
	return files
}

// prefetches mounts db.t of files behind a proxy, its directories known, and
// counts from there.
func prefetches(t *testing.T, files map[string]string, flags ...string) *mounttest.Lake {
	t.Helper()
	l := behindFaults(t, files, append([]string{"--metadata-ttl=5m", "--negative-ttl=5m"}, flags...)...)
	l.MustSh(`ls -lR db/t >/dev/null`)
	l.Proxy.Reset()
	return l
}

// prefetched are the counts of the metrics: files that were fetched ahead, and those
// that were opened then.
func prefetched(t *testing.T, l *mounttest.Lake) (files, used int) {
	t.Helper()
	out := l.MustSh(`grep -E '^lakefs_mount_prefetched_(files|used)_total ' .lakefs/stats | cut -d' ' -f2`)
	if _, err := fmt.Sscan(out, &files, &used); err != nil {
		t.Fatalf("stats say %q: %v", out, err)
	}
	return files, used
}

// answeredCounts are the requests by operation, but for those that were given up before
// their answer and asked again, as a store that is slow is.
func answeredCounts(l *mounttest.Lake) map[string]int {
	counts := make(map[string]int)
	for _, q := range l.Proxy.Log() {
		if q.Status != 0 {
			counts[q.Op]++
		}
	}
	return counts
}

func TestS3ToolsReadADirectoryByOneGETAFile(t *testing.T) {
	t.Parallel()
	const n = 250
	tools := map[string]string{
		"cp":     `cp -r db/t/$D $T/out && diff -r db/t/$D $T/out`,
		"grep":   `test $(grep -rl "^[a-z] 0$" db/t/$D | wc -l) = 250`,
		"cat":    `test $(cat db/t/$D/* | wc -c) = 781125`,
		"tar":    `mkdir $T/out && tar cf - -C db/t $D | tar xf - -C $T/out && diff -r db/t/$D $T/out/$D`,
		"rsync":  `rsync -a db/t/$D/ $T/out/ && diff -r db/t/$D $T/out`,
		"python": `python3 -c 'import os; d = "db/t/" + os.environ["D"]; [open(d + "/" + n).read() for n in sorted(os.listdir(d))]'`,
		"xargs":  `ls db/t/$D/* | xargs -P4 -n1 cat >/dev/null`,
	}
	files := make(map[string]string)
	for tool := range tools {
		maps.Copy(files, small(tool, n))
	}
	l := prefetches(t, files)
	for tool, script := range tools {
		l.MustSh(fmt.Sprintf("D=%s T=%s; export D T; %s", tool, t.TempDir(), script))
		got := answeredCounts(l)
		if got["GetObject"] != n || got["HeadObject"] > 0 || got["ListObjectsV2"] > 0 {
			t.Errorf("%s of %d files: %v\n%s", tool, n, got, asked(l))
		}
		l.Proxy.Reset()
	}
	if ahead, used := prefetched(t, l); ahead < len(files)/2 || ahead > len(files) || used < ahead-40 || used > ahead {
		t.Errorf("of %d files %d were fetched ahead, and %d of these opened", len(files), ahead, used)
	}
}

func TestS3CopyOfAThousandFiles(t *testing.T) {
	t.Parallel()
	files := small("d", 1000)
	l := behindFaults(t, files, "--metadata-ttl=5m", "--negative-ttl=5m")
	l.Proxy.Reset()
	out := t.TempDir()
	l.MustSh(`cp -r db/t/d ` + out)
	got, all := answeredCounts(l), 0
	for _, n := range got {
		all += n
	}
	if all > 1010 || got["GetObject"] > 1003 { // one is of the table's manifest
		t.Errorf("cp -r of 1,000 files in a cold mount: %v\n%s", got, asked(l))
	}
	for name, want := range files {
		if raw, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(raw) != want {
			t.Errorf("%s: %d bytes, %v", name, len(raw), err)
		}
	}
}

// TestS3PrefetchAsksForManyAtOnce: while one file's answer is held back, those of the
// files behind it are asked for, and come.
func TestS3PrefetchAsksForManyAtOnce(t *testing.T) {
	t.Parallel()
	files := small("d", 60)
	l := prefetches(t, files)
	held := l.Proxy.Add(faulty.Rule{Op: "GetObject", Key: l.Key("db/t/d/f00020.txt"), Fault: faulty.Hang{}})
	done := make(chan string, 1)
	go func() { done <- l.Sh(`cat db/t/d/*`).Out }()
	held.Wait(t, 1)
	l.Eventually("files behind the one that is held are fetched", time.Minute, func() bool {
		n := 0
		for _, q := range l.Proxy.Log() {
			if q.Op == "GetObject" && q.Key > l.Key("db/t/d/f00020.txt") && q.Sent > 0 {
				n++
			}
		}
		return n >= 8
	})
	select {
	case <-done:
		t.Fatal("cat ended although a file is held back")
	default:
	}
	held.Remove()
	l.Proxy.Release()
	var want strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		want.WriteString(files[name])
	}
	if got := <-done; got != want.String() {
		t.Errorf("cat has %d bytes, want %d", len(got), want.Len())
	}
}

func TestS3PrefetchWastesLittle(t *testing.T) {
	t.Parallel()
	files := maps.Clone(small("random", 400))
	maps.Copy(files, small("breaks", 400))
	for name, content := range small("kinds", 200) {
		files[name] = content
		files[strings.TrimSuffix(name, "txt")+"json"] = content
	}
	l := prefetches(t, files)
	for _, c := range []struct {
		what, script string
		most         int
	}{
		{"60 of 400 at random", `python3 -c 'import random
random.seed(3)
for i in random.sample(range(400), 60): open("db/t/random/f%05d.txt" % i).read()'`, 60 + 4},
		{"100 in order, then others", `cd db/t/breaks; cat f000*.txt >/dev/null; cat f00350.txt f00200.txt f00300.txt f00150.txt >/dev/null`, 104 + 32},
		{"200 of one kind", `cat db/t/kinds/*.txt >/dev/null`, 200},
	} {
		l.MustSh(c.script)
		if got := answeredCounts(l); got["GetObject"] > c.most || got["HeadObject"] > 0 {
			t.Errorf("%s: %v, want at most %d GETs\n%s", c.what, got, c.most, asked(l))
		}
		l.Proxy.Reset()
	}
}

// TestS3PrefetchOfFilesThatAreReadInPart: who reads the first byte of each file does
// not have all of them fetched.
func TestS3PrefetchOfFilesThatAreReadInPart(t *testing.T) {
	t.Parallel()
	files := make(map[string]string)
	for i := range 24 {
		files[fmt.Sprintf("d/f%05d", i)] = numbered('a'+byte(i), 5<<20)
	}
	l := prefetches(t, files)
	l.MustSh(`head -qc1 db/t/d/* | wc -c | grep -q 24`)
	l.Unmount()
	var bytes int64
	for _, q := range l.Proxy.Log() {
		if q.Op == "GetObject" {
			bytes += q.Sent
		}
	}
	if most := int64(8*5+16*1) << 20; bytes > most {
		t.Errorf("%d bytes were fetched for the first bytes of 24 files of 5 MiB, want at most %d\n%s", bytes, most, asked(l))
	}
}

// A store that fails for the files that nobody reads yet disturbs nobody.
func TestS3PrefetchThatFails(t *testing.T) {
	t.Parallel()
	files := small("d", 80)
	behind := func(l *mounttest.Lake) func(*faulty.Request) bool {
		return func(q *faulty.Request) bool { return q.Key > l.Key("db/t/d/f00015.txt") }
	}
	for what, fault := range map[string]faulty.Fault{"hangs": faulty.Hang{}, "503": slowDown(), "403": faulty.Status{Code: 403, S3Code: "AccessDenied"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := prefetches(t, files)
			a := l.Proxy.Add(faulty.Rule{Op: "GetObject", If: behind(l), Fault: fault})
			for i := range 16 {
				name := fmt.Sprintf("d/f%05d.txt", i)
				wantContent(t, l, "db/t/"+name, files[name])
			}
			a.Wait(t, 1)
			l.Proxy.Clear()
			l.Proxy.Release()
			for i := range 80 {
				name := fmt.Sprintf("d/f%05d.txt", i)
				wantContent(t, l, "db/t/"+name, files[name])
			}
		})
		t.Run(what+" until the end", func(t *testing.T) {
			t.Parallel()
			l := prefetches(t, files)
			a := l.Proxy.Add(faulty.Rule{Op: "GetObject", If: behind(l), Fault: fault})
			l.MustSh(`cat db/t/d/f0000?.txt db/t/d/f0001[0-5].txt | wc -c | grep -q 48120`)
			a.Wait(t, 1)
			l.Unmount()
		})
	}
}

func TestS3PrefetchInLittleMemory(t *testing.T) {
	t.Parallel()
	files := make(map[string]string)
	for i := range 60 {
		files[fmt.Sprintf("d/f%05d", i)] = numbered('a'+byte(i%26), 1<<20+i)
	}
	l := prefetches(t, files, "--memory-limit=16MiB")
	out := t.TempDir()
	l.MustSh(`cp -r db/t/d ` + out + `/1 & cp -r db/t/d ` + out + `/2 & cat db/t/d/* >` + out + `/3; wait`)
	for name, want := range files {
		for _, copied := range []string{"1", "2"} {
			if raw, err := os.ReadFile(filepath.Join(out, copied, filepath.Base(name))); err != nil || string(raw) != want {
				t.Errorf("%s: %d bytes, %v", name, len(raw), err)
			}
		}
	}
	if st, err := os.Stat(filepath.Join(out, "3")); err != nil || st.Size() != 60<<20+60*59/2 {
		t.Errorf("cat: %v, %v", st, err)
	}
}

// Case 28: a file that was fetched ahead is replaced before it is opened.
func TestCase28ReplacedAfterItWasFetchedAheadOnS3(t *testing.T) {
	t.Parallel()
	files := small("d", 40)
	l := behindFaults(t, files, shortTTL...)
	l.MustSh(`cd db/t/d; ls -l >/dev/null; cat f0000[0-7].txt >/dev/null`)
	const next = "d/f00009.txt"
	l.PutStored("db/t/"+next, "another version")
	l.Eventually("the new version is read", seenWithin, func() bool {
		got, err := l.ReadFile("db/t/" + next)
		if err != nil || got != "another version" && got != files[next] {
			t.Fatalf("%q, %v", got, err)
		}
		return got == "another version"
	})
	for range 20 {
		wantContent(t, l, "db/t/"+next, "another version")
	}
	l.RemoveStored("db/t/d/f00010.txt")
	l.Eventually("the removed one is gone", seenWithin, func() bool {
		return statErr(l, "db/t/d/f00010.txt") == syscall.ENOENT //nolint:errorlint // as wantErrno has it
	})
}

func TestPrefetchIsOff(t *testing.T) {
	t.Parallel()
	l := prefetches(t, small("d", 30), "--prefetch-files=0")
	l.MustSh(`cat db/t/d/* >/dev/null`)
	if ahead, _ := prefetched(t, l); ahead > 0 {
		t.Errorf("%d files were fetched ahead", ahead)
	}
	folder := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{text("t", small("d", 30))}})
	folder.MustSh(`cat db/t/d/* >/dev/null`)
	if ahead, _ := prefetched(t, folder); ahead > 0 && !folder.OnS3() {
		t.Errorf("%d files of a folder were fetched ahead", ahead)
	}
}
