package cache_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/cache"
)

// What is begun for nobody asks for nothing where there is no memory for it.
func TestBeginAheadIsSpeculation(t *testing.T) {
	c, _ := newCache(t, 4)
	read, ahead, other := newSource("read", 64*kib), newSource("ahead", 64*kib), newSource("other", 64*kib)
	h := open(t, c, read)
	checkRead(t, h, read, 0, 64*kib)
	if asked, err := open(t, c, ahead).BeginAhead(t.Context()); err != nil || !asked {
		t.Fatalf("where there is memory: asked %v, %v", asked, err)
	}
	checkRead(t, open(t, c, ahead), ahead, 0, 64*kib)
	if got, want := ahead.fetches(), []fetched{{0, 64 * kib}}; !slices.Equal(got, want) {
		t.Errorf("fetches: %v, want %v", got, want)
	}
	if asked, err := open(t, c, ahead).BeginAhead(t.Context()); err != nil || asked {
		t.Errorf("of what is there: asked %v, %v", asked, err)
	}

	none, _ := newCache(t, 0)
	if _, err := open(t, none, other).BeginAhead(t.Context()); !errors.Is(err, cache.ErrNoMemory) || len(other.fetches()) > 0 {
		t.Errorf("without memory: %v, and %d fetches", err, len(other.fetches()))
	}
}

func TestInPartsFetchesWhatIsRead(t *testing.T) {
	c, _ := newCache(t, 64)
	s := newSource("f", 640*kib)
	h := open(t, c, s)
	h.InParts()
	if _, err := h.Begin(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	checkRead(t, h, s, 0, 1)
	if got, want := s.fetches(), []fetched{{0, 64 * kib}}; !slices.Equal(got, want) {
		t.Errorf("fetches: %v, want %v", got, want)
	}
	checkRead(t, h, s, 0, 640*kib)
}

func TestExactlyFetchesWhatIsRead(t *testing.T) {
	c, _ := newCache(t, 64)
	s := newSource("f", 640*kib)
	h := open(t, c, s)
	h.Exactly()
	for off := 0; off < 256*kib; off += 64 * kib {
		checkRead(t, h, s, off, 64*kib)
	}
	want := []fetched{{0, 64 * kib}, {64 * kib, 64 * kib}, {128 * kib, 64 * kib}, {192 * kib, 64 * kib}}
	if got := s.fetches(); !slices.Equal(got, want) {
		t.Errorf("fetches: %v, want %v", got, want)
	}
}
