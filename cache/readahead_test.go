package cache

import "testing"

type asked struct{ first, last, until int64 }

func TestReadAheadWindow(t *testing.T) {
	narrow := limits{count: 100, part: 8, window: 8}
	wide := limits{count: 1000, part: 4, window: 32}
	for name, c := range map[string]struct {
		limits limits
		reads  []asked
	}{
		"the first read asks for itself": {narrow, []asked{{0, 0, 1}}},
		"a large first read asks for itself": {
			narrow, []asked{{0, 3, 4}},
		},
		"sequential reads double the window up to 8": {narrow, []asked{
			{0, 0, 1},
			{1, 1, 3},
			{2, 2, 5},
			{3, 3, 8},
			{4, 4, 5},
			{5, 5, 14},
			{6, 6, 7},
			{9, 9, 10}, // a jump inside the window is a jump
		}},
		"a wide window moves on by parts that begin at multiples": {wide, []asked{
			{0, 0, 1},
			{1, 1, 3},
			{2, 2, 5},
			{3, 3, 8},
			{4, 4, 5},
			{5, 5, 12},
			{6, 6, 7},
			{7, 7, 24},
			{8, 8, 9},
			{9, 9, 10},
			{10, 10, 11},
			{11, 11, 44},
			{12, 12, 13},
			{13, 13, 14},
			{14, 14, 15},
			{15, 15, 48},
			{16, 16, 17},
			{17, 17, 18},
			{18, 18, 19},
			{19, 19, 52},
		}},
		"pieces of one block do not widen the window twice": {narrow, []asked{
			{0, 0, 1}, {0, 0, 2}, {0, 0, 1}, {0, 0, 1}, {1, 1, 4}, {1, 1, 2}, {1, 1, 2}, {2, 2, 7},
		}},
		"pieces out of order are sequential": {narrow, []asked{
			{0, 0, 1}, {1, 1, 3}, {0, 0, 1}, {2, 2, 5}, {1, 1, 2}, {3, 3, 8},
		}},
		"a jump ends the window": {narrow, []asked{
			{0, 0, 1}, {1, 1, 3}, {2, 2, 5}, {50, 50, 51}, {51, 51, 53}, {10, 10, 11}, {90, 90, 91},
		}},
		"random reads never read ahead": {narrow, []asked{
			{50, 50, 51}, {20, 20, 21}, {70, 70, 71}, {3, 4, 5}, {99, 99, 100}, {0, 0, 1},
		}},
		"never past the end": {limits{count: 5, part: 8, window: 8}, []asked{
			{0, 0, 1}, {1, 1, 3}, {2, 2, 5}, {3, 3, 4}, {4, 4, 5}, {4, 4, 5},
		}},
		"one block": {limits{count: 1, part: 8, window: 8}, []asked{{0, 0, 1}, {0, 0, 1}}},
		"a read wider than the window": {narrow, []asked{
			{0, 3, 4}, {4, 7, 9}, {8, 11, 14}, {12, 15, 20}, {16, 19, 28}, {20, 23, 32},
		}},
		"no window": {limits{count: 100, part: 4}, []asked{{0, 0, 1}, {1, 1, 2}, {2, 2, 3}}},
		"all of a small version from its start": {limits{count: 6, part: 6, window: 32, whole: true}, []asked{
			{0, 0, 6}, {1, 1, 2}, {4, 4, 5}, {0, 0, 6},
		}},
		"a small version from elsewhere": {limits{count: 6, part: 6, window: 32, whole: true}, []asked{
			{5, 5, 6}, {2, 2, 3}, {0, 0, 6},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var s stream
			for i, r := range c.reads {
				if got := s.next(r.first, r.last, c.limits); got != r.until {
					t.Errorf("read %d of [%d,%d]: got %d, want %d", i, r.first, r.last, got, r.until)
				}
			}
		})
	}
}

// TestReadAheadWithoutMemory: what could not be fetched is asked for again.
func TestReadAheadWithoutMemory(t *testing.T) {
	l := limits{count: 1000, part: 4, window: 32}
	s := stream{begun: true, at: 99, window: 32, edge: 128}
	for _, r := range []asked{{100, 100, 132}, {101, 101, 102}, {102, 102, 132}, {103, 103, 136}} {
		if got := s.next(r.first, r.last, l); got != r.until {
			t.Fatalf("read of %d: got %d, want %d", r.first, got, r.until)
		}
		if r.first == 101 {
			s.short(110)
		}
	}
}

func TestPartEnd(t *testing.T) {
	for _, c := range []struct{ first, end, part, want int64 }{
		{0, 1, 4, 1},
		{0, 4, 4, 4},
		{0, 9, 4, 4},
		{3, 5, 4, 5}, // one fetch, not two
		{3, 8, 4, 4},
		{3, 9, 4, 7}, // two fetches from 3, three by multiples
		{3, 7, 4, 7},
		{3, 11, 4, 7},
		{5, 12, 4, 8},
		{7, 100, 1, 8},
	} {
		if got := partEnd(c.first, c.end, c.part); got != c.want {
			t.Errorf("partEnd(%d, %d, %d): got %d, want %d", c.first, c.end, c.part, got, c.want)
		}
	}
}

func FuzzReadAheadStaysWithinTheVersion(f *testing.F) {
	f.Add(int64(10), int64(2), int64(8), []byte{0, 1, 2, 3, 9, 9, 0})
	f.Fuzz(func(t *testing.T, count, part, window int64, firsts []byte) {
		if count < 1 || count > 1<<40 || part < 1 || part > 1<<20 || window < 0 || window > 1<<20 {
			t.Skip()
		}
		var s stream
		l := limits{count: count, part: part, window: window, whole: count <= part}
		for _, b := range firsts {
			first := int64(b) % count
			last := min(first+int64(b>>6), count-1)
			got := s.next(first, last, l)
			if got <= last || got > count || !l.whole && got > last+1+window {
				t.Fatalf("read of [%d,%d] of %d blocks: until %d", first, last, count, got)
			}
			if b%7 == 0 {
				s.short(max(got-int64(b%5), last+1))
			}
		}
	})
}
