package cache

import "testing"

func TestReadAheadWindow(t *testing.T) {
	type read struct{ first, last, until int64 }
	for name, c := range map[string]struct {
		count int64
		reads []read
	}{
		"the first read asks for itself": {100, []read{{0, 0, 1}}},
		"a large first read asks for itself": {
			100, []read{{0, 3, 4}},
		},
		"sequential reads double the window up to 8": {100, []read{
			{0, 0, 1},
			{1, 1, 3},
			{2, 2, 5},
			{3, 3, 9},
			{4, 4, 5},
			{5, 5, 6},
			{6, 6, 17},
			{7, 7, 8},
			{8, 8, 9},
			{12, 12, 13}, // a jump inside the window is a jump
		}},
		"pieces of one block do not widen the window twice": {100, []read{
			{0, 0, 1}, {0, 0, 2}, {0, 0, 1}, {0, 0, 1}, {1, 1, 4}, {1, 1, 2}, {1, 1, 2}, {2, 2, 8},
		}},
		"pieces out of order are sequential": {100, []read{
			{0, 0, 1}, {1, 1, 3}, {0, 0, 1}, {2, 2, 5}, {1, 1, 2}, {3, 3, 9},
		}},
		"a jump ends the window": {100, []read{
			{0, 0, 1}, {1, 1, 3}, {2, 2, 5}, {50, 50, 51}, {51, 51, 53}, {10, 10, 11}, {90, 90, 91},
		}},
		"random reads never read ahead": {100, []read{
			{50, 50, 51}, {20, 20, 21}, {70, 70, 71}, {3, 4, 5}, {99, 99, 100}, {0, 0, 1},
		}},
		"never past the end": {5, []read{
			{0, 0, 1}, {1, 1, 3}, {2, 2, 5}, {3, 3, 4}, {4, 4, 5}, {4, 4, 5},
		}},
		"one block": {1, []read{{0, 0, 1}, {0, 0, 1}}},
		"a read wider than the window": {100, []read{
			{0, 3, 4}, {4, 7, 9}, {8, 11, 14}, {12, 15, 20}, {16, 19, 28}, {20, 23, 36},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var s stream
			for i, r := range c.reads {
				if got := s.next(r.first, r.last, c.count); got != r.until {
					t.Errorf("read %d of [%d,%d]: got %d, want %d", i, r.first, r.last, got, r.until)
				}
			}
		})
	}
}

func FuzzReadAheadStaysWithinTheVersion(f *testing.F) {
	f.Add(int64(10), []byte{0, 1, 2, 3, 9, 9, 0})
	f.Fuzz(func(t *testing.T, count int64, firsts []byte) {
		if count < 1 || count > 1<<40 {
			t.Skip()
		}
		var s stream
		for _, b := range firsts {
			first := int64(b) % count
			last := min(first+int64(b>>6), count-1)
			got := s.next(first, last, count)
			if got <= last || got > count {
				t.Fatalf("read of [%d,%d] of %d blocks: until %d", first, last, count, got)
			}
		}
	})
}
