package fs_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Listings are whole or fail, and each name has rights of its own.

// manyKeys are files k00000… in a directory dNUMBER for each number.
func manyKeys(numbers ...int) map[string]string {
	files := make(map[string]string)
	for _, n := range numbers {
		for i := range n {
			files[fmt.Sprintf("d%d/k%05d", n, i)] = ""
		}
	}
	return files
}

// Case 40: at the edges of a page, and over many.
func TestCase40ExactCountsOnS3(t *testing.T) {
	t.Parallel()
	numbers := []int{999, 1000, 1001, 12000}
	l := mounttest.Mount(t, mounttest.Options{S3: true, Tables: []mounttest.Table{text("t", manyKeys(numbers...))}, Timeout: 3 * time.Minute})
	for _, n := range numbers {
		names, err := l.Names(fmt.Sprint("db/t/d", n))
		if err != nil || len(names) != n {
			t.Errorf("%d keys: %d names, %v", n, len(names), err)
		}
		slices.Sort(names)
		if once := slices.Compact(slices.Clone(names)); len(once) != n || once[n-1] != fmt.Sprintf("k%05d", n-1) {
			t.Errorf("%d keys: %d different names", n, len(once))
		}
		if got := l.MustSh(fmt.Sprintf(`cd db/t/d%d; ls | wc -l; find . -type f | sort -u | wc -l`, n)); got != fmt.Sprintf("%d\n%[1]d\n", n) {
			t.Errorf("%d keys: ls and find count %q", n, got)
		}
	}
}

// laterPage takes the requests for all pages of a listing but the first.
func laterPage(q *faulty.Request) bool {
	return q.Query.Has("continuation-token") || q.Query.Has("start-after")
}

func TestCase40APageThatFailsOnS3(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		fault faulty.Fault
		want  syscall.Errno
	}{
		"500": {faulty.Status{Code: http.StatusInternalServerError, S3Code: "InternalError"}, syscall.EIO},
		"403": {faulty.Status{Code: http.StatusForbidden, S3Code: "AccessDenied"}, syscall.EACCES},
		"cut": {faulty.CutBody{After: 5000}, syscall.EIO},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := behindFaults(t, manyKeys(2100), quick...)
			l.MustSh(`ls db`)
			a := l.Proxy.Add(faulty.Rule{Op: "ListObjectsV2", Key: l.Key("db/t/d2100"), If: laterPage, Times: 1, Fault: c.fault})
			if c.want == syscall.EIO { // else it is not asked again
				wantCount(t, l, 2100)
			}
			a.Remove()
			l.MustSh(`echo refresh >.lakefs/ctl; ls db`)
			l.Proxy.Add(faulty.Rule{Op: "ListObjectsV2", Key: l.Key("db/t/d2100"), If: laterPage, Fault: c.fault})
			_, err := l.Names("db/t/d2100")
			wantErrno(t, "a listing whose second page fails", err, c.want)
			if r := l.Sh(`ls db/t/d2100 | wc -l; exit ${PIPESTATUS[0]}`); r.Code == 0 || r.Err == "" {
				t.Errorf("ls of half a listing: exit %d, %s", r.Code, r.Err)
			}
			wantErrno(t, "a name of the first page", statErr(l, "db/t/d2100/k00001"), 0)
			wantErrno(t, "a name of the second page", statErr(l, "db/t/d2100/k02099"), 0)
			l.Proxy.Clear()
			wantCount(t, l, 2100)
		})
	}
}

// badListings are answers that are no whole page of names.
func badListings() map[string]faulty.Fault {
	return map[string]faulty.Fault{
		"cut":            faulty.CutBody{After: 10_000},
		"not whole":      faulty.WrongLength{Short: 10_000},
		"without an end": faulty.WrongLength{Short: 5},
		"empty":          faulty.WrongLength{Short: 1 << 30},
		"a web page":     faulty.Status{Code: http.StatusOK, HTML: true},
		"an error":       faulty.OK200Error{S3Code: "InternalError"},
	}
}

// What is no whole page is not taken for a short one.
func TestCase40ABadPageIsNoShortOneOnS3(t *testing.T) {
	t.Parallel()
	for what, fault := range badListings() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := behindFaults(t, manyKeys(300), quick...)
			l.MustSh(`ls db`)
			a := l.Proxy.Add(faulty.Rule{Op: "ListObjectsV2", Key: l.Key("db/t/d300"), Fault: fault})
			_, err := l.Names("db/t/d300")
			wantErrno(t, "a listing that is none", err, syscall.EIO)
			if a.Hits() == 0 {
				t.Error("nothing met the fault")
			}
			l.Proxy.Clear()
			wantCount(t, l, 300)
			l.MustSh(`echo refresh >.lakefs/ctl; ls db`)
			a = l.Proxy.Add(faulty.Rule{Op: "ListObjectsV2", Key: l.Key("db/t/d300"), Times: 2, Fault: fault})
			wantCount(t, l, 300)
			if a.Hits() != 2 {
				t.Errorf("%d listings met the fault, want 2", a.Hits())
			}
		})
	}
}

func wantCount(t *testing.T, l *mounttest.Lake, want int) {
	t.Helper()
	if names, err := l.Names(fmt.Sprint("db/t/d", want)); err != nil || len(names) != want {
		t.Errorf("%d names, %v; want %d", len(names), err, want)
	}
}

// denied refuses all that is not granted, as a policy does.
func denied(granted func(*faulty.Request) bool) faulty.Rule {
	return faulty.Rule{
		If:    func(q *faulty.Request) bool { return !granted(q) },
		Fault: faulty.Status{Code: http.StatusForbidden, S3Code: "AccessDenied", Message: "Access Denied"},
	}
}

// Case 39: with rights on one prefix alone a deep path works without any on its
// parents.
func TestCase39OnePrefixGrantedOnS3(t *testing.T) {
	t.Parallel()
	const part, other = "db/t/dt=2026-01-01", "db/t/dt=2026-01-02"
	l := mounttest.New(t, mounttest.Options{
		Faulty: true, Flags: []string{"--metadata-ttl=200ms", "--negative-ttl=100ms"}, Tables: []mounttest.Table{
			partitioned(map[string]string{"dt=2026-01-01/f": "granted", "dt=2026-01-01/sub/g": "deeper", "dt=2026-01-02/f": "secret"}, "dt:date"),
			text("u", map[string]string{"f": "secret"}),
		},
	})
	l.Proxy.Add(denied(func(q *faulty.Request) bool {
		return strings.HasPrefix(q.Key, l.Key(part)+"/") || q.Key == "wh/db/t/_sqe/table.json" && q.Op != "ListObjectsV2" || q.Op == "HeadBucket"
	}))
	l.Start()
	for range 2 { // the second time from what is known, or after it
		wantNames(t, l, part, "f", "sub")
		wantContent(t, l, part+"/f", "granted")
		wantContent(t, l, part+"/sub/g", "deeper")
		l.MustSh(`cd ` + part + `; test "$(cat f sub/g)" = granteddeeper; /bin/pwd; ls -l; find . -type f`)
		wantErrno(t, "what is not there", statErr(l, part+"/none"), syscall.ENOENT)
		for _, path := range []string{"", "db", "db/t", other} {
			_, err := l.Names(path)
			wantErrno(t, fmt.Sprintf("list of %q, without rights", path), err, syscall.EACCES)
		}
		for _, path := range []string{other, other + "/f", "db/u/f", "db/t/none", "db/none/f", "elsewhere/t/f", "elsewhere.json"} {
			wantErrno(t, "stat of "+path+", without rights", statErr(l, path), syscall.EACCES)
		}
		l.MustSh(`echo refresh >.lakefs/ctl`)
	}
	write(t, l, part+"/new", "written")
	wantContent(t, l, part+"/new", "written")
	wantErrno(t, "create without rights", openErr(l, other+"/new", creat), syscall.EACCES)
}

// Case 35: archived, restored and plain objects side by side.
func TestCase35ArchivedObjectsOnS3(t *testing.T) {
	t.Parallel()
	l := behindFaults(t, map[string]string{"a-plain": "needle 1\n", "archived": "needle 2\n", "restored": "needle 3\n", "z-plain": "needle 4\n", "sub/f": "needle 5\n"})
	a := l.Proxy.Add(faulty.Rule{Op: "GetObject", Key: l.Key("db/t/archived"), Fault: faulty.Archived{}})
	l.Proxy.Add(faulty.Rule{Op: "HeadObject", Key: l.Key("db/t/archived"), Fault: faulty.Archived{}})
	l.Proxy.Add(faulty.Rule{Op: "HeadObject", Key: l.Key("db/t/restored"), Fault: faulty.Archived{}})
	if got := l.MustSh(`ls -l db/t | awk 'NR > 1 && $1 ~ /^-/ {print $5, $NF}'`); got != "9 a-plain\n9 archived\n9 restored\n9 z-plain\n" {
		t.Errorf("ls -l: %q", got)
	}
	wantErrno(t, "open of an archived object", openErr(l, "db/t/archived", syscall.O_RDONLY), syscall.EACCES)
	if a.Hits() != 1 {
		t.Errorf("%d GETs of an archived object, want 1: it does not come by asking again", a.Hits())
	}
	l.WaitLog("archived: restore it first")
	if r := l.Sh(`cat db/t/archived`); r.Code == 0 || r.Out != "" || !strings.Contains(r.Err, "Permission denied") {
		t.Errorf("cat of an archived object: exit %d, %q, %s", r.Code, r.Out, r.Err)
	}
	r := l.Sh(`grep -rh needle db/t | sort`)
	if r.Out != "needle 1\nneedle 3\nneedle 4\nneedle 5\n" || strings.Count(r.Err, "Permission denied") != 1 {
		t.Errorf("grep -r: %q, %s", r.Out, r.Err)
	}
	wantContent(t, l, "db/t/restored", "needle 3\n")
	wantErrno(t, "stat of an archived object", statErr(l, "db/t/archived"), 0)
}

// Case 37: every JSON file has an exact size, an entry that grows and shrinks too.
func TestCase37JSONFilesOnS3(t *testing.T) {
	t.Parallel()
	l := mounttest.New(t, mounttest.Options{S3: true, Tables: treeTables()})
	l.Start(shortTTL...)
	exact := func(path string) {
		t.Helper()
		script := fmt.Sprintf(`f=%s; t=$(mktemp -d); trap 'rm -r $t' EXIT
exec 3<$f; n=$(stat -Lc %%s /dev/fd/3); cat <&3 >$t/copy; jq -e . <$t/copy >/dev/null && echo $((n - $(wc -c <$t/copy)))`, path)
		if r := l.Sh(script); r.Out != "0\n" || r.Code != 0 {
			t.Errorf("%s: %q, exit %d, %s", path, r.Out, r.Code, r.Err)
		}
	}
	for _, path := range []string{
		"sales.json", "sales/orders.json", ".lakefs/status.json", "sales/.lakefs/entry.json", "sales/.lakefs/status.json", "sales/orders/.lakefs/entry.json",
		"sales/orders/.lakefs/status.json", "sales/orders/dt=2026-01-01/.lakefs/status.json",
	} {
		exact(path)
		l.MustSh(fmt.Sprintf(`set -e; f=%s; jq -e . $f >/dev/null; t=$(mktemp); trap 'rm $t' EXIT; dd if=$f of=$t bs=1 status=none; test $(tail -c 2 $t) = $(tail -c 2 $f)`, path))
	}
	entry := l.StoredManifest("sales/orders")
	for _, spaces := range []int{5000, 0, 300_000, 7} {
		grown := strings.TrimSuffix(entry, "\n") + strings.Repeat(" ", spaces) + "\n"
		was := stat(t, l, "sales/orders.json").Size
		l.PutManifest("sales/orders", grown)
		exact("sales/orders.json")
		exact("sales/orders/.lakefs/entry.json")
		l.Eventually(fmt.Sprintf("%d bytes after %d", len(grown), was), seenWithin, func() bool {
			got, err := l.ReadFile("sales/orders.json")
			return err == nil && got == grown
		})
	}
}
