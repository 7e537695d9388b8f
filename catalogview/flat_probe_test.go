package catalogview

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func probing(o *Options) { o.Probe = 10 }

// TestASmallDirectoryIsKnownByItsLookup: the look-up of a directory that has few names
// tells of them all; of a larger one it tells no more than that it is there.
func TestASmallDirectoryIsKnownByItsLookup(t *testing.T) {
	for _, c := range []struct {
		files int
		want  map[string]int
	}{{1, map[string]int{}}, {9, map[string]int{}}, {10, map[string]int{"list": 1, "stat": 1}}, {50, map[string]int{"list": 1, "stat": 1}}} {
		keys := make([]string, c.files)
		for i := range keys {
			keys[i] = fmt.Sprintf("f%02d|x", i)
		}
		v, s := bucketView(t, probing, keys...)
		got := s.requests(func() {
			if n := lookup(t, v, "db/t/f00"); n.Kind != KindObject || n.Object.Size != 1 {
				t.Errorf("%d files: got %+v, want the object", c.files, n)
			}
		})
		if !maps.Equal(got, c.want) {
			t.Errorf("%d files: requests %v, want %v", c.files, got, c.want)
		}
		if all, err := list(t.Context(), v, "db/t"); len(all) != c.files || err != nil {
			t.Errorf("%d files: listed %q, %v", c.files, all, err)
		}
	}
}

// TestTwoFilesTellOfAll: of a directory that its parent's listing told of, the look-up
// after one that found something asks for what else is in it, aside. Where one request
// tells of all, later ones ask for nothing.
func TestTwoFilesTellOfAll(t *testing.T) {
	for _, c := range []struct {
		more  int
		third map[string]int
	}{{5, none()}, {10, both()}} {
		synctest.Test(t, func(t *testing.T) {
			keys := []string{"d/a|1", "d/b|1", "d/c|1"}
			for i := range c.more {
				keys = append(keys, fmt.Sprintf("d/f%d|1", i))
			}
			v, s := bucketView(t, probing, keys...)
			lookup(t, v, "db/t/d")
			s.setOn(slow(100 * time.Millisecond))
			for _, step := range []struct {
				name string
				want map[string]int
			}{{"a", both()}, {"b", map[string]int{"list": 2, "stat": 1}}, {"c", c.third}} {
				begin := time.Now()
				got := s.requests(func() {
					wantObject(t, v, "db/t/d/"+step.name, "1")
					synctest.Wait() // for what is asked aside
				})
				wantRequests(t, fmt.Sprintf("%s, and %d more", step.name, c.more), got, step.want)
				if took := time.Since(begin); took > 100*time.Millisecond {
					t.Errorf("%s took %s: it waits for what is asked aside", step.name, took)
				}
			}
		})
	}
}

// TestAProbeNeverHidesAChange: what the mount made or removed since it began holds.
func TestAProbeNeverHidesAChange(t *testing.T) {
	v, s := bucketView(t, probing, "day=1/old|x", "day=1/gone|x")
	l := v.flat.beginProbe()
	for _, name := range []string{"gone", "old"} {
		l.add(item{name: name, size: 1, etag: "1"})
	}
	lookup(t, v, "db/t/day=1")
	v.Wrote(s.set("data/day=1/new", "xy"))
	v.Removed(s.unset("data/day=1/gone"))
	v.flat.endProbe(objectstore.Location{Bucket: "b", Key: "data/day=1/"}, l) // it began before
	if n := lookup(t, v, "db/t/day=1/new"); n.Object.Size != 2 {
		t.Errorf("new: got %+v", n)
	}
	if _, err := v.Lookup(t.Context(), "db/t/day=1/gone"); !errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("gone: got %v, want ErrNotExist", err)
	}
}
