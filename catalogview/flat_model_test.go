package catalogview

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// truth says what is at a path below the table, from the keys there: "" for
// nothing, "dir", or the content of an object after "=".
func truth(keys map[string]string, path string) string {
	key := "data/" + path
	for k := range keys {
		if strings.HasPrefix(k, key+"/") {
			return "dir"
		}
	}
	content, there := keys[key]
	marker, marked := keys[key+markerSuffix]
	switch {
	case there && !isMarker(key, int64(len(content))):
		return "=" + content
	case there:
		return ""
	case marked && marker == "":
		return "dir"
	}
	return ""
}

func modelNames() []string { return []string{"a", "b", "c", "a-", "a_$folder$"} }

// modelPaths are all paths of the model, and modelDirs those that may be directories.
func modelPaths() (paths, dirs []string) {
	dirs = []string{""}
	for _, x := range modelNames() {
		paths = append(paths, x)
		dirs = append(dirs, x)
		for _, y := range modelNames() {
			paths = append(paths, x+"/"+y)
		}
	}
	return paths, dirs
}

// model is a view over a store that is changed by the mount and by others.
type model struct {
	t     *testing.T
	r     *rand.Rand
	v     *View
	s     *pageStore
	n     int // of contents
	paths []string
	dirs  []string
}

func newModel(t *testing.T, seed uint64, change func(*Options)) *model {
	t.Helper()
	m := &model{t: t, r: rand.New(rand.NewPCG(seed, 7))}
	m.paths, m.dirs = modelPaths()
	m.v, m.s = bucketView(t, change)
	for range 8 {
		m.s.set("data/"+m.path(), m.content())
	}
	return m
}

func (m *model) path() string { return m.paths[m.r.IntN(len(m.paths))] }

func (m *model) content() string {
	if m.r.IntN(4) == 0 {
		return "" // a marker, where the name is one's
	}
	m.n++
	return strconv.Itoa(m.n)
}

func (m *model) keys() map[string]string {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return maps.Clone(m.s.keys)
}

// look returns what the view has at a path, as truth does.
func (m *model) look(path string) string {
	n, err := m.v.Lookup(m.t.Context(), "db/t/"+path)
	switch {
	case errors.Is(err, objectstore.ErrNotExist):
		return ""
	case err != nil:
		m.t.Errorf("Lookup(%s): %v", path, err)
	case n.Kind == KindDirectory:
		return "dir"
	}
	content, err := strconv.Unquote(n.ETag)
	if err != nil {
		m.t.Errorf("Lookup(%s): %v", path, err)
	}
	return "=" + content
}

// listing returns what the view lists in a directory, by path.
func (m *model) listing(dir string) map[string]string {
	all := map[string]string{}
	for n, err := range m.v.ReadDir(m.t.Context(), strings.TrimSuffix("db/t/"+dir, "/")) {
		if errors.Is(err, objectstore.ErrNotExist) {
			return nil
		}
		if err != nil {
			m.t.Errorf("ReadDir(%s): %v", dir, err)
			return nil
		}
		path := strings.TrimPrefix(n.Path, "db/t/")
		if _, twice := all[path]; twice {
			m.t.Errorf("ReadDir(%s): %s twice", dir, path)
		}
		all[path] = "dir"
		if content, err := strconv.Unquote(n.ETag); n.Kind == KindObject {
			all[path] = "=" + content
			if err != nil {
				m.t.Error(err)
			}
		}
	}
	return all
}

// ownChange does what a mount may do: it writes no object over a directory and
// none below an object, and removes what it sees.
func (m *model) ownChange() string {
	path, keys := m.path(), m.keys()
	now := truth(keys, path)
	up, _, below := strings.Cut(path, "/")
	switch {
	case now == "dir" && m.r.IntN(2) == 0:
		marker := "data/" + path + markerSuffix
		if content, ok := keys[marker]; ok && content == "" {
			m.v.Removed(m.s.unset(marker))
			return "remove the marker of " + path
		}
	case strings.HasPrefix(now, "=") && m.r.IntN(2) == 0:
		if marker, marked := keys["data/"+path+markerSuffix]; marked && marker == "" {
			return "nothing" // the directory that comes to light is seen after the negative TTL
		}
		m.v.Removed(m.s.unset("data/" + path))
		return "remove " + path
	case now != "dir" && (!below || !strings.HasPrefix(truth(keys, up), "=")):
		content := m.content()
		m.v.Wrote(m.s.set("data/"+path, content))
		return fmt.Sprintf("write %s: %q", path, content)
	}
	return "nothing"
}

// background reads at random, beside the changes.
func (m *model) background(g *sync.WaitGroup) {
	path, dir := m.path(), m.dirs[m.r.IntN(len(m.dirs))]
	g.Go(func() { m.look(path) })
	g.Go(func() { m.listing(dir) })
}

// checkAll compares everything with the truth.
func (m *model) checkAll(log []string) {
	keys := m.keys()
	for _, path := range m.paths {
		if got, want := m.look(path), truth(keys, path); got != want {
			m.t.Fatalf("Lookup(%s): got %q, want %q after\n%s", path, got, want, strings.Join(log, "\n"))
		}
	}
	for _, dir := range m.dirs {
		want := map[string]string{}
		for _, name := range modelNames() {
			path := strings.TrimPrefix(dir+"/"+name, "/")
			if is := truth(keys, path); is != "" {
				want[path] = is
			}
		}
		if dir != "" && truth(keys, dir) != "dir" {
			want = nil
		}
		if got := m.listing(dir); !maps.Equal(got, want) || (got == nil) != (want == nil) {
			m.t.Fatalf("ReadDir(%s): got %q, want %q after\n%s", dir, got, want, strings.Join(log, "\n"))
		}
	}
}

// Where the mount alone changes the store, the view is exact at every moment.
func TestModelOwnChangesShowAtOnce(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, seed, func(o *Options) {
				if seed%3 == 0 {
					o.MaxListed = 40
				}
			})
			m.s.early = seed%2 == 0
			m.s.setOn(slow(40 * time.Millisecond))
			var g sync.WaitGroup
			var log []string
			for range 60 {
				m.background(&g)
				pass(time.Duration(m.r.IntN(60)) * time.Millisecond)
				log = append(log, m.ownChange())
				if m.r.IntN(4) == 0 {
					m.checkAll(log)
				}
				if m.r.IntN(5) == 0 {
					pass(time.Duration(m.r.IntN(8)) * time.Second)
					log = append(log, "wait")
				}
				if t.Failed() {
					break
				}
			}
			g.Wait()
		})
	}
}

// What others change is seen within the TTL, and never undoes an own change.
func TestModelForeignChangesShowAfterTheTTL(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, seed, nil)
			m.s.early = true
			h := &history{own: map[string]time.Time{}}
			h.note(m.keys())
			for range 150 {
				switch m.r.IntN(6) {
				case 0:
					m.s.set("data/"+m.path(), m.content())
				case 1:
					m.s.unset("data/" + m.path())
				case 2:
					path := m.path()
					m.v.Wrote(m.s.set("data/"+path, m.content()))
					h.own[path] = time.Now()
				case 3:
					path := m.path()
					m.v.Removed(m.s.unset("data/" + path))
					h.own[path] = time.Now()
				case 4:
					m.v.Stale(objectstore.Location{Bucket: "b", Key: "data/" + m.path()})
				default:
					pass(time.Duration(m.r.IntN(3000)) * time.Millisecond)
				}
				h.note(m.keys())
				path, dir := m.path(), m.dirs[m.r.IntN(len(m.dirs))]
				h.check(t, path, m.look(path))
				for path, is := range m.listing(dir) {
					h.check(t, path, is)
				}
			}
		})
	}
}

// history is what the store held at each time.
type history struct {
	at   []time.Time
	keys []map[string]string
	own  map[string]time.Time // last own change of a path
}

func (h *history) note(keys map[string]string) {
	h.at = append(h.at, time.Now())
	h.keys = append(h.keys, keys)
}

// check holds an answer to what was there at some time that it may be of.
func (h *history) check(t *testing.T, path, got string) {
	t.Helper()
	since := time.Now().Add(-5 * time.Second)
	own := h.own[path]
	if own.After(since) && got != "dir" {
		since = own
	}
	for i := len(h.at) - 1; i >= 0; i-- {
		if is := truth(h.keys[i], path); is == got {
			return
		}
		// An object beside a directory that another made may show for the TTL, and
		// be gone for the negative TTL when the mount removed it.
		content, there := h.keys[i]["data/"+path]
		if there && got == "="+content || !there && got == "" && own.After(time.Now().Add(-time.Second)) {
			return
		}
		if h.at[i].Before(since) {
			break // in force at since
		}
	}
	t.Errorf("%s: got %q, which was not there within the TTL; now %q", path, got, truth(h.keys[len(h.keys)-1], path))
}

// What is kept gives the answers that the store gives, whatever is in it.
func TestCachedAnswersAreTheStores(t *testing.T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			var keys []string
			c := append(components(), "..", "n\x00l", strings.Repeat("x", 256), ".lakefs")
			for range 40 {
				key := c[r.IntN(len(c))]
				for range r.IntN(3) {
					key += "/" + c[r.IntN(len(c))]
				}
				keys = append(keys, key+[]string{"|", "/|", "|x", "|y", "//z|x"}[r.IntN(5)])
			}
			cached, s := bucketView(t, nil, keys...)
			plain := NewView(cached.src, s, Options{Roots: []string{"s3://b/wh/", "s3://b/data/"}, TTL: -1, NegativeTTL: -1})
			dirs := []string{"db/t"}
			for i := 0; i < len(dirs); i++ {
				want := names3(t, plain, dirs[i])
				for range 2 {
					if got := names3(t, cached, dirs[i]); !slices.Equal(got, want) {
						t.Errorf("ReadDir(%s): got %q, want %q", dirs[i], got, want)
					}
				}
				for _, name := range components() {
					path := dirs[i] + "/" + name
					want, wantErr := plain.Lookup(t.Context(), path)
					got, gotErr := cached.Lookup(t.Context(), path)
					if got.Kind != want.Kind || got.ETag != want.ETag || got.Size != want.Size || (gotErr == nil) != (wantErr == nil) || errors.Is(gotErr, objectstore.ErrNotExist) != errors.Is(wantErr, objectstore.ErrNotExist) {
						t.Errorf("Lookup(%s): got %+v, %v, want %+v, %v", path, got, gotErr, want, wantErr)
					}
					if wantErr == nil && want.Kind == KindDirectory && len(dirs) < 60 {
						dirs = append(dirs, path)
					}
				}
			}
			if err := plain.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// names3 lists a directory as names with kind and version; a verdict is one too.
func names3(t *testing.T, v *View, dir string) []string {
	t.Helper()
	var all []string
	for n, err := range v.ReadDir(t.Context(), dir) {
		if err != nil {
			all = append(all, err.Error())
			continue
		}
		all = append(all, n.Path+" "+n.Kind.String()+" "+n.ETag)
	}
	slices.Sort(all)
	return all
}
