package tools_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/folderwatch"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// compare runs the tool in both places, and returns what the mount did.
func (c tool) compare(t *testing.T, lake *mounttest.Lake, o outside) seen {
	t.Helper()
	name := "tools/" + c.table()
	base := t.TempDir()
	plain := place{dir: filepath.Join(base, "plain", c.table()), out: filepath.Join(base, "plain.out"), versions: filepath.Join(base, "versions"), env: o.env}
	mount := place{dir: lake.Path(name), out: filepath.Join(base, "mount.out"), folder: lake.Window(name), env: o.env}
	plain.folder = plain.dir
	for _, dir := range []string{plain.dir, plain.out, plain.versions, mount.out} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	c.prepare(t, plain)
	known := c.versions(t, plain, func() result { return c.run(t, plain) })
	want := known.result

	c.prepare(t, mount)
	settle(t, lake)
	script(t, mount, "ls -R") // what is there is known from here on
	watched := folderwatch.Watch(t, mount.folder)
	poll := c.poll(t, lake, known)
	if lake.Proxy != nil {
		lake.Proxy.Reset()
	}
	got := c.run(t, mount)
	settle(t, lake)
	row := seen{code: got.code, same: true}
	looks, names, wrong := poll.stop()
	t.Logf("looked %d times", looks)
	for _, what := range wrong {
		t.Error(what)
	}
	var torn []string
	for path, what := range watched.Take() {
		if !what.Directory {
			names[path] = struct{}{}
		}
		if what.InPlace {
			torn = append(torn, path)
		}
	}
	if lake.Proxy != nil {
		sent := changes(lake.Proxy.Log(), lake.Key(name)+"/")
		row.requests = sent.String()
		if c.heads {
			row.requests = regexp.MustCompile(`HEAD \d+`).ReplaceAllString(row.requests, "HEADs")
		}
		for key := range sent.keys {
			names[key] = struct{}{}
		}
		t.Logf("%s: %v", sent, sent.counts)
		c.hold(t, sent.beyond(known))
	}
	row.names = c.strange(t, known, names)

	differ := func(format string, args ...any) {
		t.Helper()
		row.same = false
		if c.differs == "" {
			t.Errorf(format, args...)
		}
	}
	if got.code != want.code {
		differ("exit code %d, want %d as in a plain directory\nstderr: %s", got.code, want.code, got.stderr)
	}
	if got.stdout != want.stdout && !c.prints {
		differ("it printed %q, want %q as in a plain directory", got.stdout, want.stdout)
	}
	if want.code != 0 && c.differs == "" {
		t.Errorf("the script fails in a plain directory: code %d, stderr: %s", want.code, want.stderr)
	}
	wantTree := c.tree(t, plain.dir, c.mtime, true)
	var gotTree map[string]node
	must(t, lake.Do("walk "+name, func() error { gotTree = c.tree(t, mount.dir, c.mtime, true); return nil }))
	compareTrees(differ, "the mount", gotTree, wantTree)
	published := c.tree(t, plain.dir, false, false)
	if lake.OnS3() {
		withoutEmpty(published)
	}
	compareTrees(differ, "the store", c.tree(t, mount.folder, false, false), published)
	compareTrees(differ, "what went out", c.tree(t, mount.out, c.mtime, true), c.tree(t, plain.out, c.mtime, true))
	if len(torn) > 0 {
		t.Errorf("written in place in the folder, seen by others as they grew: %q", torn)
	}
	if c.differs != "" && row.same {
		t.Errorf("nothing is different on the mount; the tool says %q", c.differs)
	}
	return row
}

// hold asserts that the store gets no more than it has to, and that what says
// otherwise is no lie.
func (c tool) hold(t *testing.T, beyond []string) {
	t.Helper()
	switch {
	case c.more == "" && len(beyond) > 0:
		t.Errorf("the store got more than one PUT for each version of a file, and a HEAD where there was one:\n%s", strings.Join(beyond, "\n"))
	case c.more != "" && len(beyond) == 0:
		t.Errorf("the store got nothing that it need not get; the tool says %q", c.more)
	}
}

// strange are the names that the store had and that are not final, without what is
// random in them, sorted.
func (c tool) strange(t *testing.T, known versions, names map[string]struct{}) []string {
	t.Helper()
	hide := c.hide(t)
	list := map[string]struct{}{}
	for path := range names {
		if !known.final(path) {
			list[hide(filepath.Base(path))] = struct{}{}
		}
	}
	if len(list) > 0 && c.more == "" {
		t.Errorf("the store had names that are not final: %q", slices.Sorted(maps.Keys(list)))
	}
	return slices.Sorted(maps.Keys(list))
}

// settle waits until what a script did is done: files that lie under temporary or
// backup names come into the store a while after it, and the last release drops its
// spool. Nothing may be staged in the whole lake then, nor lie in the staging directory.
func settle(t *testing.T, lake *mounttest.Lake) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	expired := time.After(40 * time.Second)
	for {
		status, err := lake.ReadFile(".lakefs/status.json")
		must(t, err)
		entries, err := os.ReadDir(lake.Staged())
		must(t, err)
		spool := slices.IndexFunc(entries, func(e os.DirEntry) bool { return e.IsDir() && !strings.HasPrefix(e.Name(), "spare.") })
		if spool < 0 && strings.Contains(status, `"staged": []`) {
			return
		}
		select {
		case <-tick.C:
		case <-expired:
			t.Errorf("left in the staging directory: %v; status: %s", entries, status)
			return
		}
	}
}
