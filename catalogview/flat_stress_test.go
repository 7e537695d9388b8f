package catalogview

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// Everything at once, in real time, for the race detector; what is kept is so
// little and so short that all of it is dropped and made again all the time.
func TestManyUsersAtOnce(t *testing.T) {
	v, s := bucketView(t, func(o *Options) {
		o.MaxListed, o.TTL, o.NegativeTTL, o.Patience = 60, 3*time.Millisecond, time.Millisecond, time.Millisecond
	})
	paths, dirs := modelPaths()
	for _, p := range paths {
		s.set("data/"+p, "1")
	}
	var g sync.WaitGroup
	for user := range uint64(12) {
		g.Go(func() {
			r := rand.New(rand.NewPCG(user, 1))
			m := &model{t: t, r: r, v: v, s: s, paths: paths, dirs: dirs}
			for range 400 {
				path := m.path()
				switch r.IntN(9) {
				case 0:
					v.Wrote(s.set("data/"+path, m.content()))
				case 1:
					v.Removed(s.unset("data/" + path))
				case 2:
					v.Stale(objectstore.Location{Bucket: "b", Key: "data/" + path})
				case 3:
					v.Refresh([]string{"", "db/t", "db/t/" + path}[r.IntN(3)])
				case 4:
					v.Removed(objectstore.Location{Bucket: "b", Key: "data/" + path + "/"})
				case 5, 6:
					m.listing(dirs[r.IntN(len(dirs))])
				default:
					m.look(path)
				}
			}
		})
	}
	g.Wait()
	<-time.After(5 * time.Millisecond) // the last TTL
	keys := (&model{s: s}).keys()
	for _, path := range paths {
		want := truth(keys, path)
		_, err := v.Lookup(t.Context(), "db/t/"+path)
		if (err == nil) != (want != "") || err != nil && !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("Lookup(%s): %v, want %q", path, err, want)
		}
	}
	v.flat.mu.Lock()
	defer v.flat.mu.Unlock()
	total := 0
	for _, d := range v.flat.mu.dirs {
		total += d.cost
	}
	if total != v.flat.mu.total || total > 60 || v.flat.mu.recent.Len() != len(v.flat.mu.dirs) {
		t.Errorf("%d names in %d directories are kept, %d counted in %d", total, len(v.flat.mu.dirs), v.flat.mu.total, v.flat.mu.recent.Len())
	}
}
