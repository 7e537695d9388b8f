package fs_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// A store that is away for a while: programs get errors in time, or what is right.

// outage is a lake whose store goes away, and programs at work in it.
type outage struct {
	*mounttest.Lake
	t     *testing.T
	files map[string]string // of db/t/d, which nobody changes

	stop  chan struct{}
	loops sync.WaitGroup

	mu      sync.Mutex
	written map[string]bool // names in db/t/w, and whether the close told success
	fine    map[string]int  // loops' rounds that succeeded
}

func newOutage(t *testing.T, server *s3test.Server) *outage {
	t.Helper()
	o := &outage{
		t: t, files: make(map[string]string), stop: make(chan struct{}),
		written: make(map[string]bool), fine: make(map[string]int),
	}
	all := map[string]string{"w/first": "first", "idle/a": "a", "idle/b": "b"}
	for i := range 20 {
		o.files[fmt.Sprintf("small%02d", i)] = numbered('s', 50_000+i)
	}
	o.files["large"] = numbered('l', 20<<20)
	for name, content := range o.files {
		all["d/"+name] = content
	}
	o.Lake = mounttest.Mount(t, mounttest.Options{
		Server: server, Tables: []mounttest.Table{text("t", all)}, Timeout: 5 * time.Minute,
		Flags: []string{"--io-timeout=3s", "--memory-limit=64MiB"},
	})
	return o
}

// loop does a round again and again until the end. A round's error must be EIO:
// each other one tells something that is not so.
func (o *outage) loop(what string, round func(n int) error) {
	o.loops.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-o.stop:
				return
			default:
			}
			err := round(n)
			switch {
			case err == nil:
				o.mu.Lock()
				o.fine[what]++
				o.mu.Unlock()
			case !errors.Is(err, syscall.EIO):
				o.t.Errorf("%s: %v; want success or EIO", what, err)
				return
			}
		}
	})
}

// rounds are those of a loop that succeeded.
func (o *outage) rounds(what string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fine[what]
}

func (o *outage) read(n int) error {
	names := slices.Sorted(maps.Keys(o.files))
	name := names[n%len(names)]
	got, err := o.ReadFile("db/t/d/" + name)
	if err == nil && got != o.files[name] || !strings.HasPrefix(o.files[name], got) {
		o.t.Errorf("%s reads %s, %v", name, brief(got), err)
	}
	return err
}

func (o *outage) list(int) error {
	got, err := o.Names("db/t/d")
	if err == nil && !slices.Equal(got, slices.Sorted(maps.Keys(o.files))) {
		o.t.Errorf("the directory lists %q", got)
	}
	return err
}

// write has a program write: a call of ours would keep all others from starting
// any while it waits for the store.
func (o *outage) write(n int) error {
	name := fmt.Sprintf("f%04d", n)
	source := filepath.Join(o.State, name)
	if err := os.WriteFile(source, []byte("content of "+name), 0o600); err != nil {
		return err
	}
	r := o.Exec("timeout", "60", "cp", source, o.Path("db/t/w/"+name))
	o.mu.Lock()
	o.written[name] = r.Code == 0
	o.mu.Unlock()
	switch {
	case r.Code == 0:
		return nil
	case strings.Contains(r.Err, "Input/output error"):
		return syscall.EIO
	}
	return fmt.Errorf("cp: exit %d, %s", r.Code, r.Err)
}

// works asserts what needs no store, while there is none.
func (o *outage) works() {
	o.t.Helper()
	for _, script := range []string{
		`df .`, `test "$(ls db/t/idle | tr '\n' ' ')" = 'a b '`, `jq -e .mount.pid .lakefs/status.json`, `grep -q lakefs .lakefs/stats`,
		fmt.Sprintf(`%s status %s | grep -q running`, o.Binary(), o.Root),
	} {
		if r := o.Sh(`set -o pipefail; timeout 15 bash -c '` + strings.ReplaceAll(script, `'`, `'\''`) + `'`); r.Code != 0 {
			o.t.Errorf("%s while the store is away: exit %d, %s%s", script, r.Code, r.Out, r.Err)
		}
	}
}

// run has the loops work, the store go away for a time, and all be well after.
func (o *outage) run(down, up func(testing.TB), lasts time.Duration) {
	o.t.Helper()
	o.MustSh(`ls -l db/t db/t/idle`)
	loops := map[string]func(int) error{"read": o.read, "list": o.list, "write": o.write}
	for what, round := range loops {
		o.loop(what, round)
	}
	progress := func(what string, than map[string]int) func() bool {
		return func() bool { return o.t.Failed() || o.rounds(what) > than[what]+3 }
	}
	for what := range loops {
		o.Eventually(what+" works", 0, progress(what, nil))
	}
	o.MustSh(`ls -l db/t/idle`)
	down(o.t)
	away := time.NewTimer(lasts)
	written := o.rounds("write")
	o.works()
	<-away.C
	if now := o.rounds("write"); now > written+1 { // one may have been on its way
		o.t.Errorf("%d files were written while the store was away", now-written)
	}
	o.MustSh(`df . && cat .lakefs/status.json .lakefs/stats`)
	up(o.t)
	before := make(map[string]int)
	for what := range loops {
		before[what] = o.rounds(what)
	}
	for what := range loops {
		o.Eventually(what+" works again", 0, progress(what, before))
	}
	close(o.stop)
	o.loops.Wait()
	o.settled()
}

// settled asserts that what was said to be written is, and that what was not is
// absent or whole.
func (o *outage) settled() {
	o.t.Helper()
	inStore, err := o.StoredTree("db/t/w")
	if err != nil {
		o.t.Fatal(err)
	}
	for name, said := range o.written {
		got, there := inStore[name]
		if said && !there || there && got != "content of "+name {
			o.t.Errorf("%s: said to be written %v, in the store %v as %s", name, said, there, brief(got))
		}
	}
	for name, content := range o.files {
		wantContent(o.t, o.Lake, "db/t/d/"+name, content)
	}
	dropStaged(o.t, o.Lake)
}

// awhile is how long the store is away, but in the tests of large things.
const awhile = 10 * time.Second

func TestS3StoreIsStoppedForAWhile(t *testing.T) {
	t.Parallel()
	server := s3test.Fresh(t)
	newOutage(t, server).run(server.Stop, server.Start, awhile)
}

func TestS3StoreIsSilentForAWhile(t *testing.T) {
	t.Parallel()
	server := s3test.Fresh(t)
	newOutage(t, server).run(server.Pause, server.Resume, awhile)
}

func TestLargeS3StoreIsStoppedForAMinute(t *testing.T) {
	if os.Getenv("MOUNTTEST_LARGE") == "" {
		t.Skip("takes a minute: set MOUNTTEST_LARGE")
	}
	server := s3test.Fresh(t)
	newOutage(t, server).run(server.Stop, server.Start, time.Minute)
}
