package fs_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What the mount asks of a bucket, counted by the proxy in front of it.

// counted mounts db.t of files behind a proxy, knows its directory, and counts
// from there.
func counted(t *testing.T, files map[string]string) *mounttest.Lake {
	t.Helper()
	l := mounttest.Mount(t, mounttest.Options{
		Faulty: true, Tables: []mounttest.Table{text("t", files)}, Flags: []string{"--metadata-ttl=5m", "--negative-ttl=5m"}, Timeout: 2 * time.Minute,
	})
	l.MustSh(`ls db`)
	if _, known := files["f"]; known {
		l.MustSh(`ls -l db/t`)
	}
	l.Proxy.Reset()
	return l
}

// crowded adds so many files to files that looking their directory up does not make
// it known: its listing, and each name in it, are still to be asked for.
func crowded(files map[string]string) map[string]string {
	all := maps.Clone(files)
	for i := range catalogview.DefaultProbe {
		all[fmt.Sprintf("other%03d", i)] = ""
	}
	return all
}

// wantRequests asserts what was asked since the last time, and that it was all.
func wantRequests(t *testing.T, l *mounttest.Lake, what string, want map[string]int) {
	t.Helper()
	got := l.Proxy.Counts()
	if !maps.Equal(got, want) {
		t.Errorf("%s: %v, want %v\n%s", what, got, want, asked(l))
	}
	l.Proxy.Reset()
}

// asked are the requests of the proxy's log, a line each.
func asked(l *mounttest.Lake) string {
	var b strings.Builder
	for _, q := range l.Proxy.Log() {
		fmt.Fprintf(&b, "%s %s %s %d\n", q.Op, q.Key, q.Range, q.Status)
	}
	return b.String()
}

// Case 68: attributes come with the names.
func TestCase68ListingOfTenThousandKeysIsElevenRequestsOnS3(t *testing.T) {
	t.Parallel()
	files := make(map[string]string)
	for i := range 10_000 {
		files[fmt.Sprintf("k%05d", i)] = ""
	}
	l := counted(t, files)
	if got := l.MustSh(`ls -l db/t | wc -l`); got != "10001\n" {
		t.Errorf("ls -l counts %q", got)
	}
	got := l.Proxy.Counts()
	if lists := got["ListObjectsV2"]; lists > 11 || lists < 10 || len(got) != 1 {
		t.Errorf("ls -l of 10,000 keys: %v, want 10 or 11 listings and no more\n%s", got, asked(l))
	}
	l.Proxy.Reset()
	l.MustSh(`ls -l db/t >/dev/null; stat db/t/k00001 db/t/k09999 >/dev/null; test ! -e db/t/none`)
	wantRequests(t, l, "once more, within the TTL", map[string]int{})
}

// TestCase68FirstNameBeforeTheLastPageOnS3: names are shown while the later pages of
// their directory are still to come.
func TestCase68FirstNameBeforeTheLastPageOnS3(t *testing.T) {
	t.Parallel()
	const n = 6000
	l := counted(t, manyKeys(n))
	l.MustSh(fmt.Sprintf(`stat db/t/d%d`, n))
	l.Proxy.Reset()
	later := l.Proxy.Add(faulty.Rule{Op: "ListObjectsV2", Key: l.Key(fmt.Sprintf("db/t/d%d", n)), If: laterPage, Fault: faulty.Hang{}})
	withDir(t, l, fmt.Sprintf("db/t/d%d", n), 600, func(d openDir) error {
		first, err := d.next()
		if err != nil || len(first) < 3 {
			t.Errorf("while the second page is held: %v, %v", first, err)
		}
		later.Wait(t, 1)
		later.Remove()
		l.Proxy.Release()
		rest, err := d.rest()
		for _, e := range first {
			if e.name != "." && e.name != ".." {
				rest = append(rest, e.name)
			}
		}
		if len(wantOnce(t, rest)) != n {
			t.Errorf("%d names, want %d", len(rest), n)
		}
		return err
	})
	if got := l.Proxy.Counts(); got["ListObjectsV2"] > n/1000+1 || got["HeadObject"] > 0 {
		t.Errorf("%d names: %v\n%s", n, got, asked(l))
	}
}

func TestS3ReadingAFileIsItsGETsAlone(t *testing.T) {
	t.Parallel()
	content := numbered('x', 20<<20)
	l := counted(t, map[string]string{"f": content, "small": "s", "empty": ""})
	for name, most := range map[string]int{"f": 20, "small": 1, "empty": 1} {
		if name == "f" {
			l.MustSh(`cat db/t/f | cmp - ` + l.Window("db/t/f"))
		} else {
			l.MustSh(`cat db/t/` + name)
		}
		got := l.Proxy.Counts()
		if n := got["GetObject"]; n > most || n < most/20 || len(got) > 1 || len(got) == 1 && n == 0 {
			t.Errorf("reading %s: %v, want at most %d GETs and no more\n%s", name, got, most, asked(l))
		}
		l.Proxy.Reset()
	}
}

func TestS3PublishingIsOnePUT(t *testing.T) {
	t.Parallel()
	l := counted(t, map[string]string{"f": "old"})
	// The first of each shows what the store makes of conditions.
	write(t, l, "db/t/first", "small")
	write(t, l, "db/t/first", "other")
	l.Proxy.Reset()
	for i := range 3 {
		write(t, l, fmt.Sprint("db/t/new", i), "small")
		wantRequests(t, l, "a new file", map[string]int{"PutObject": 1})
	}
	for i := range 3 {
		write(t, l, "db/t/f", fmt.Sprint("version ", i))
		wantRequests(t, l, "an overwrite", map[string]int{"HeadObject": 1, "PutObject": 1})
	}
	wantContent(t, l, "db/t/f", "version 2")
}

func TestS3FiftyProcessesListOnce(t *testing.T) {
	t.Parallel()
	files := crowded(map[string]string{"a": "x", "b": "y"})
	l := counted(t, files)
	var want strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&want, " 50 %s\n", name)
	}
	if got := l.MustSh(`for i in $(seq 50); do ls db/t & done | LC_ALL=C sort | uniq -c | tr -s ' '`); got != want.String() {
		t.Errorf("fifty listings have %q", got)
	}
	wantRequests(t, l, "fifty listings at once", map[string]int{"ListObjectsV2": 1})
}
