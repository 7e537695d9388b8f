package commit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// TestAppendersWhoseAnswersAreLost: each line is there once, though answers are
// lost of puts that took effect, and the other appends before anybody looks.
func TestAppendersWhoseAnswersAreLost(t *testing.T) {
	const lines = 50
	first, second := newWorld(t, flat), newWorld(t, flat)
	second.share(first)
	for n, w := range []*world{first, second} {
		var mu sync.Mutex
		r := rand.New(rand.NewPCG(uint64(n), 1))
		other := []*world{second, first}[n]
		lose := func(op string) error {
			mu.Lock()
			defer mu.Unlock()
			if op == "put" && r.IntN(4) == 0 {
				return objectstore.ErrUnavailable
			}
			return nil
		}
		w.before = lose
		extra := 0
		w.answer = func(op string) error {
			err := lose(op)
			if err != nil && n == 0 { // a third appender is at work just then
				extra++
				appendBehind(other.mem, other.loc(target), fmt.Sprintf("third-%03d\n", extra))
			}
			return err
		}
	}
	appendBoth(t, lines, first.echo, second.echo)
	var kept []string
	for line := range strings.Lines(first.lake()) {
		if !strings.HasPrefix(line, "third") {
			kept = append(kept, line)
		}
	}
	checkLines(t, strings.Join(kept, ""), lines)
}

// appendBehind is an append of another mount.
func appendBehind(b *bucket, loc objectstore.Location, line string) {
	b.mu.Lock()
	e := b.objects[loc]
	base := e.object(loc)
	b.mu.Unlock()
	meta := Meta(staging.Record{ID: strings.TrimSpace(line), Append: true, Base: &base})
	b.put(loc, append(slices.Clone(e.data), line...), meta)
}

func TestLineage(t *testing.T) {
	base := &objectstore.Object{}
	for i := range 20 {
		base.Meta = Meta(staging.Record{ID: fmt.Sprint("id-", i), Append: true, Base: base})
	}
	got := lineage(base)
	if len(got) != maxBehind || got[0] != "id-19" || got[15] != "id-4" {
		t.Errorf("lineage: %v", got)
	}
	if m := Meta(staging.Record{ID: "x", Base: base}); m[metaBehind] != "" {
		t.Errorf("a rewrite stands behind %q", m[metaBehind])
	}
	for _, tt := range []struct {
		obj, base []string
		want      bool
	}{
		{[]string{"theirs", "me"}, nil, true},
		{[]string{"theirs", "me"}, []string{"me"}, false},
		{[]string{"theirs", "me", "me"}, []string{"me"}, true},
		{[]string{"theirs", "old"}, []string{"old"}, false},
	} {
		r := staging.Record{ID: "me", Append: true, Base: ofLineage(tt.base)}
		if got := isBehindOurs(*ofLineage(tt.obj), r); got != tt.want {
			t.Errorf("%v behind %v: got %v, want %v", tt.obj, tt.base, got, tt.want)
		}
		r.Append = false
		if isBehindOurs(*ofLineage(tt.obj), r) {
			t.Errorf("%v: behind a rewrite", tt.obj)
		}
	}
}

func ofLineage(ids []string) *objectstore.Object {
	if len(ids) == 0 {
		return nil
	}
	return &objectstore.Object{Meta: map[string]string{objectstore.MetaWriteID: ids[0], metaBehind: strings.Join(ids[1:], ",")}}
}
