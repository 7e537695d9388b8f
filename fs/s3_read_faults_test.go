package fs_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What a store answers that is not what it should: it is asked again, or the
// program gets an error. Bytes that are not the object's are never served.

// quick are flags under which a store that fails for good is an error soon, and
// nothing that is known ends by its age.
var quick = []string{"--io-timeout=3s", "--metadata-ttl=5m", "--negative-ttl=5m"}

// behindFaults mounts db.t of files behind a proxy.
func behindFaults(t *testing.T, files map[string]string, flags ...string) *mounttest.Lake {
	t.Helper()
	return mounttest.Mount(t, mounttest.Options{
		Faulty: true, Tables: []mounttest.Table{text("t", files)}, Flags: flags, Timeout: 2 * time.Minute,
	})
}

// slowDown is what an overloaded store answers.
func slowDown() faulty.Fault {
	return faulty.Status{Code: http.StatusServiceUnavailable, S3Code: "SlowDown"}
}

// uses are the ways in which a program needs an answer of each kind.
func uses(l *mounttest.Lake) map[string]func() error {
	return map[string]func() error{
		"ListObjectsV2": func() error { _, err := l.Names("db/t"); return err },
		"HeadObject":    func() error { _, err := l.Lstat("db/t/f"); return err },
		"GetObject":     func() error { _, err := l.ReadFile("db/t/f"); return err },
	}
}

func TestCase29ThreeTimes503OnS3(t *testing.T) {
	t.Parallel()
	for op := range uses(&mounttest.Lake{}) {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			files := crowded(map[string]string{"f": "content"})
			l := behindFaults(t, files, "--metadata-ttl=5m", "--negative-ttl=5m")
			a := l.Proxy.Add(faulty.Rule{Op: op, Key: l.Key("db/t"), Times: 3, Fault: slowDown()})
			wantErrno(t, op+" after three 503", uses(l)[op](), 0)
			if a.Hits() != 3 {
				t.Errorf("%d requests of %s were refused, want 3\n%s", a.Hits(), op, asked(l))
			}
			wantContent(t, l, "db/t/f", "content")
			wantNames(t, l, "db/t", slices.Sorted(maps.Keys(files))...)
		})
	}
}

func TestCase29Always503OnS3(t *testing.T) {
	t.Parallel()
	for op := range uses(&mounttest.Lake{}) {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			files := crowded(map[string]string{"f": "content"})
			l := behindFaults(t, files, quick...)
			l.Proxy.Add(faulty.Rule{Op: op, Key: l.Key("db/t"), Fault: slowDown()})
			wantErrno(t, op+" where the store answers 503", uses(l)[op](), syscall.EIO)
			wantErrno(t, "once more", uses(l)[op](), syscall.EIO)
			if op == "GetObject" {
				wantErrno(t, "stat, which needs no GET", statErr(l, "db/t/f"), 0)
			}
			l.Proxy.Clear()
			// At once: neither the name's absence nor the failure is remembered.
			wantErrno(t, op+" when the store is well", uses(l)[op](), 0)
			wantContent(t, l, "db/t/f", "content")
			wantNames(t, l, "db/t", slices.Sorted(maps.Keys(files))...)
			wantErrno(t, "a name that is not there", statErr(l, "db/t/none"), syscall.ENOENT)
		})
	}
}

// Where a directory is is not known from a store that fails: an error, and no
// directory without a place.
func TestS3AttributesOfADirectoryFail(t *testing.T) {
	t.Parallel()
	l := behindFaults(t, map[string]string{"d/f": "content"}, "--io-timeout=3s", "--metadata-ttl=1ms", "--negative-ttl=1ms")
	place := func() (string, error) {
		buf := make([]byte, 1000)
		n := 0
		err := l.Do("getxattr", func() (err error) {
			n, err = unix.Getxattr(l.Path("db/t/d"), "user.lakefs.location", buf)
			return err
		})
		return string(buf[:max(n, 0)]), err
	}
	want := l.URI("db/t/d") + "/"
	if got, err := place(); err != nil || got != want {
		t.Errorf("location of a directory: %q, %v; want %q", got, err, want)
	}
	l.Proxy.Add(faulty.Rule{Fault: slowDown()})
	var err error
	l.Eventually("what is known ends", seenWithin, func() bool { _, err = place(); return err != nil })
	wantErrno(t, "location where the store answers 503", err, syscall.EIO)
	l.Proxy.Clear()
	if got, err := place(); err != nil || got != want {
		t.Errorf("location when the store is well: %q, %v; want %q", got, err, want)
	}
}

func TestS3RefusedConnections(t *testing.T) {
	t.Parallel()
	l := behindFaults(t, map[string]string{"f": "content"}, quick...)
	l.Proxy.Down()
	for op, use := range uses(l) {
		wantErrno(t, op+" where connections are refused", use(), syscall.EIO)
	}
	l.Proxy.Up()
	for op, use := range uses(l) {
		wantErrno(t, op+" when they are taken again", use(), 0)
	}
	wantContent(t, l, "db/t/f", "content")
	if strings.Contains(l.Log(), "not in the table") {
		t.Error("a failure was taken for absence")
	}
}

func TestCase31ABodyThatEndsEarlyOnceOnS3(t *testing.T) {
	t.Parallel()
	small, large := numbered('s', 100_000), numbered('l', 9<<20)
	l := behindFaults(t, map[string]string{"small": small, "large": large})
	for name, content := range map[string]string{"small": small, "large": large} {
		a := l.Proxy.Add(faulty.Rule{Op: "GetObject", Key: l.Key("db/t/" + name), Times: 1, Fault: faulty.CutBody{After: 50_000}})
		wantContent(t, l, "db/t/"+name, content)
		if a.Hits() != 1 {
			t.Errorf("%d bodies of %s were cut, want 1", a.Hits(), name)
		}
	}
}

// A body that stands still is asked for again from where it stopped.
func TestCase31ABodyThatStallsOnS3(t *testing.T) {
	t.Parallel()
	content := numbered('s', 9<<20)
	l := behindFaults(t, map[string]string{"f": content}, quick...)
	a := l.Proxy.Add(faulty.Rule{Op: "GetObject", Key: l.Key("db/t/f"), Times: 1, Fault: faulty.StallBody{After: 100_000}})
	wantContent(t, l, "db/t/f", content)
	if a.Hits() != 1 {
		t.Errorf("%d bodies stalled, want 1", a.Hits())
	}
}

// A store that cuts each body gets on all the same, as long as bytes come.
func TestCase31EachBodyEndsEarlyOnS3(t *testing.T) {
	t.Parallel()
	content := numbered('c', 3<<20)
	l := behindFaults(t, map[string]string{"f": content})
	a := l.Proxy.Add(faulty.Rule{Op: "GetObject", Key: l.Key("db/t/f"), Fault: faulty.CutBody{After: 400_000}})
	wantContent(t, l, "db/t/f", content)
	if a.Hits() < 3 {
		t.Errorf("%d bodies were cut, want several", a.Hits())
	}
}

// wantNoBytes reads name by programs that notice nothing but an error: each must
// get one, and no more than the beginning of content.
func wantNoBytes(t *testing.T, l *mounttest.Lake, name, content string) {
	t.Helper()
	for _, script := range []string{`cat ` + name, `dd if=` + name + ` bs=1k skip=1 status=none`} {
		r := l.Sh(script)
		// A size that is another one is that of another version.
		if r.Code == 0 || !strings.Contains(r.Err, "Input/output error") && !strings.Contains(r.Err, "Stale file handle") {
			t.Errorf("%s: exit %d, %s; want an I/O error", script, r.Code, r.Err)
		}
		if !strings.Contains(content, r.Out) {
			t.Errorf("%s prints what is not in the object: %s", script, brief(r.Out))
		}
	}
}

// badBodies are answers whose body is not what was asked for.
func badBodies() map[string]faulty.Fault {
	return map[string]faulty.Fault{
		"cut":                faulty.CutBody{},
		"short":              faulty.WrongLength{Short: 1},
		"long":               faulty.ExtraBytes{N: 1},
		"another range":      faulty.WrongRange{},
		"a range of another": faulty.WrongRange{Value: "bytes 0-9/10"},
		"no range":           faulty.WrongRange{Value: "*"},
		"a page of an error": faulty.Status{Code: http.StatusBadGateway, HTML: true},
	}
}

// mostAsked bounds the requests of a few programs that fail: a store that answers
// badly is not asked without a pause.
const mostAsked = 500

// ranged takes GETs of a part of an object.
func ranged(q *faulty.Request) bool { return q.Range != "" }

func TestCase31BadBodiesAreNeverServedOnS3(t *testing.T) {
	t.Parallel()
	for what, fault := range badBodies() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			neverServed(t, numbered('c', 20<<20), ranged, fault) // more than is fetched whole
		})
	}
	for _, what := range []string{"cut", "short", "long", "a page of an error"} {
		t.Run(what+", of a small file", func(t *testing.T) {
			t.Parallel()
			neverServed(t, numbered('c', 100_000), nil, badBodies()[what])
		})
	}
}

// neverServed reads a file whose GETs fail for good, or those that match, and then
// do not.
func neverServed(t *testing.T, content string, match func(*faulty.Request) bool, fault faulty.Fault) {
	t.Helper()
	l := behindFaults(t, map[string]string{"f": content, "other": "fine"}, quick...)
	l.MustSh(`ls db/t`)
	a := l.Proxy.Add(faulty.Rule{Op: "GetObject", Key: l.Key("db/t/f"), If: match, Fault: fault})
	wantNoBytes(t, l, "db/t/f", content)
	if hits := a.Hits(); hits == 0 || hits > mostAsked {
		t.Errorf("%d requests met the fault, want 1 to %d", hits, mostAsked)
	}
	wantContent(t, l, "db/t/other", "fine")
	a.Remove()
	if got := l.MustSh(`md5sum <db/t/f`); got != l.MustSh(`md5sum <`+l.Window("db/t/f")) {
		t.Error("afterwards the file has another sum, so wrong bytes were kept")
	}
}

// The same once or twice in a row: no program learns of it.
func TestCase31BadBodiesAreAskedForAgainOnS3(t *testing.T) {
	t.Parallel()
	content := numbered('c', 20<<20)
	l := behindFaults(t, map[string]string{"f": content})
	faults := badBodies()
	for _, what := range slices.Sorted(maps.Keys(faults)) {
		name := "db/t/" + strings.ReplaceAll(what, " ", "-")
		l.PutStored(name, content)
		a := l.Proxy.Add(faulty.Rule{Op: "GetObject", Key: l.Key(name), If: ranged, Times: 2, Fault: faults[what]})
		l.Eventually(name+" is seen", seenWithin, func() bool { return statErr(l, name) == nil })
		if r := l.Sh(fmt.Sprintf(`cmp %s %s`, name, l.Window(name))); r.Code != 0 {
			t.Errorf("%s twice: %s%s", what, r.Out, r.Err)
		}
		if a.Hits() != 2 {
			t.Errorf("%s: %d requests met the fault, want 2", what, a.Hits())
		}
		l.RemoveStored(name)
	}
}

// A store that knows no ranges serves whole objects: of those the right bytes are
// taken, or none.
func TestS3WholeObjectForARange(t *testing.T) {
	t.Parallel()
	content := numbered('c', 12<<20)
	l := behindFaults(t, map[string]string{"f": content}, quick...)
	a := l.Proxy.Add(faulty.Rule{Op: "GetObject", Key: l.Key("db/t/f"), If: ranged, Fault: faulty.FullForRange{}})
	for _, script := range []string{`tail -c 1000 db/t/f`, `dd if=db/t/f bs=1M skip=5 count=1 status=none`, `cat db/t/f`} {
		r := l.Sh(script)
		if r.Code == 0 && r.Out != l.MustSh(strings.ReplaceAll(script, "db/t/f", l.Window("db/t/f"))) {
			t.Errorf("%s prints other bytes", script)
		}
		if r.Code != 0 && (!strings.Contains(r.Err, "Input/output error") || !strings.Contains(content, r.Out)) {
			t.Errorf("%s: exit %d, %s", script, r.Code, r.Err)
		}
	}
	if a.Hits() == 0 {
		t.Error("nothing met the fault")
	}
	l.Proxy.Clear()
	l.MustSh(`cmp db/t/f ` + l.Window("db/t/f"))
}

func TestS3SilentStoreIsAnErrorInTime(t *testing.T) {
	t.Parallel()
	l := behindFaults(t, crowded(map[string]string{"f": "content", "g": "other"}), quick...)
	wantContent(t, l, "db/t/g", "other")
	l.Proxy.Add(faulty.Rule{Fault: faulty.Hang{}})
	for _, script := range []string{`ls db/t`, `stat db/t/f`, `cat db/t/f`, `cat db/t/none`, `ls db/t/d`} {
		began := time.Now()
		r := l.Sh(script)
		took := time.Since(began)
		if r.Code == 0 || !strings.Contains(r.Err, "Input/output error") {
			t.Errorf("%s where the store is silent: exit %d, %s%s; want an I/O error", script, r.Code, r.Out, r.Err)
		}
		if took > 15*time.Second { // of a limit of 3 s, on a busy machine
			t.Errorf("%s took %v", script, took)
		}
	}
	l.Proxy.Clear()
	l.Proxy.Release()
	wantContent(t, l, "db/t/f", "content")
	wantErrno(t, "a name that is not there", statErr(l, "db/t/none"), syscall.ENOENT)
}

// A request that is lost in the network costs the first-byte limit, and no more:
// it is made once more, on another connection.
func TestS3FirstByteLimit(t *testing.T) {
	t.Parallel()
	l := behindFaults(t, map[string]string{"f": "content"}, quick...)
	l.MustSh(`ls db/t`)
	var mu sync.Mutex
	var from []string
	note := faulty.Func(func(x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
		mu.Lock()
		from = append(from, x.HTTP.RemoteAddr)
		mu.Unlock()
		return next()
	})
	l.Proxy.Add(faulty.Rule{Op: "GetObject", Fault: note})
	a := l.Proxy.Add(faulty.Rule{Op: "GetObject", Key: l.Key("db/t/f"), Times: 1, Fault: faulty.Hang{}})
	wantContent(t, l, "db/t/f", "content")
	if a.Hits() != 1 {
		t.Errorf("%d requests hung, want 1", a.Hits())
	}
	mu.Lock()
	defer mu.Unlock()
	if len(from) != 2 || from[0] == from[1] {
		t.Errorf("the GETs came from %q, want two of two connections", from)
	}
}
