package cache

import "testing"

type asked struct{ first, last, until int64 }

// mib is a mebibyte in units of the default size.
const mib = 16

// usual are the limits of a large version with the defaults.
var usual = limits{count: 1024 * mib, part: 2 * mib, window: 64 * mib, start: mib, gap: mib / 2, back: 8 * mib}

func TestReadAhead(t *testing.T) {
	small := usual
	small.count, small.part, small.whole = 5*mib, 5*mib, true
	short := usual
	short.count = 3 * mib
	none := usual
	none.window = 0
	narrow := usual
	narrow.window = mib
	for name, c := range map[string]struct {
		limits limits
		reads  []asked
	}{
		"the first read asks for itself": {usual, []asked{{0, 0, 1}}},
		"reading on widens the window to what was read, by parts at multiples": {usual, []asked{
			{0, 1, 2},
			{2, 3, 20},
			{4, 5, 6},
			{6, 7, 8},
			{8, 9, 10},
			{10, 11, 28},
			{12, 13, 14},
			{14, 15, 16},
			{16, 31, 64},
			{32, 47, 96},
			{48, 63, 128},
		}},
		"a wide window moves on by parts": {usual, []asked{
			{0, 1023, 1024},
			{1024, 1039, 2048},
			{1040, 1055, 2080},
			{1056, 1071, 1072},
			{1072, 1087, 2112},
			{1088, 1103, 1104},
		}},
		"pieces out of order are sequential": {usual, []asked{
			{0, 15, 16}, {16, 31, 64}, {64, 79, 160}, {80, 95, 192}, {32, 47, 48}, {48, 63, 64}, {96, 111, 224},
		}},
		"the first two out of order":    {usual, []asked{{16, 31, 32}, {0, 15, 48}, {32, 47, 96}}},
		"a forward gap is read through": {usual, []asked{{0, 1, 2}, {2, 3, 20}, {12, 12, 29}}},
		"inside the window every place is near": {usual, []asked{
			{0, 255, 256}, {256, 271, 544}, {400, 415, 832}, {300, 301, 302},
		}},
		"a short step back is free": {usual, []asked{{0, 15, 16}, {16, 31, 64}, {18, 19, 20}, {32, 47, 96}}},
		"random reads ask for themselves": {usual, []asked{
			{5000, 5003, 5004}, {200, 203, 204}, {9000, 9004, 9005}, {300, 303, 304}, {7000, 7003, 7004},
		}},
		"pieces of one length, read in two": {usual, []asked{
			{5000, 5015, 5016},
			{200, 215, 216},
			{216, 216, 217 + 16}, // a jump may be a seek
			{9000, 9015, 9016},
			{9016, 9016, 9017},
			{300, 315, 316},
			{316, 316, 317},
			{7000, 7015, 7016},
			{7016, 7016, 7017},
		}},
		"chunks of one length are fetched to their end": {usual, []asked{
			{0, 0, 1},
			{5000, 5007, 5008},
			{5008, 5015, 5032},
			{5016, 5019, 5020},
			{200, 207, 208},
			{208, 215, 216},
			{216, 219, 220},
			{9000, 9001, 9002},
			{9002, 9003, 9020},
			{9004, 9019, 9020},
		}},
		"random reading that turns sequential": {usual, []asked{
			{5000, 5000, 5001},
			{200, 200, 201},
			{9000, 9000, 9001},
			{300, 300, 301},
			{301, 316, 317},
			{317, 332, 352},
			{333, 348, 384},
		}},
		"two places are two streams": {usual, []asked{
			{0, 15, 16}, {8000, 8015, 8016}, {16, 31, 48}, {8016, 8031, 8048}, {32, 47, 96}, {8032, 8047, 8096},
		}},
		"never past the end":       {short, []asked{{0, 15, 16}, {16, 31, 48}, {32, 47, 48}}},
		"one unit":                 {limits{count: 1, part: 32, window: 1024, start: 16}, []asked{{0, 0, 1}, {0, 0, 1}}},
		"no window":                {none, []asked{{0, 1, 2}, {2, 3, 4}, {4, 5, 6}}},
		"a window less than parts": {narrow, []asked{{0, 1, 2}, {2, 3, 20}, {4, 11, 28}, {12, 13, 14}}},
		"all of a small version from its start": {small, []asked{
			{0, 0, 80}, {1, 1, 2}, {40, 40, 41}, {0, 0, 1},
		}},
		"a small version from elsewhere": {small, []asked{{70, 75, 76}, {20, 20, 21}, {0, 0, 80}}},
	} {
		t.Run(name, func(t *testing.T) {
			var r readahead
			for i, read := range c.reads {
				if got := r.next(read.first, read.last, c.limits); got != read.until {
					t.Errorf("read %d of [%d,%d]: got %d, want %d", i, read.first, read.last, got, read.until)
				}
			}
		})
	}
}

// TestReadAheadWithoutMemory: what could not be fetched is asked for again.
func TestReadAheadWithoutMemory(t *testing.T) {
	var r readahead
	for i, read := range []asked{{0, 1023, 1024}, {1024, 1039, 2048}, {1040, 1041, 1042}, {1042, 1043, 2048}} {
		if got := r.next(read.first, read.last, usual); got != read.until {
			t.Fatalf("read %d: got %d, want %d", i, got, read.until)
		}
		if i == 2 {
			r.short(1500)
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
		var r readahead
		l := limits{count: count, part: part, window: window, start: min(part, 16), gap: 8, back: 16, whole: count <= part}
		for _, b := range firsts {
			first := int64(b) % count
			last := min(first+int64(b>>6), count-1)
			got := r.next(first, last, l)
			if got <= last || got > count || !l.whole && got > last+1+window {
				t.Fatalf("read of [%d,%d] of %d units: until %d", first, last, count, got)
			}
			if b%7 == 0 {
				r.short(max(got-int64(b%5), last+1))
			}
		}
	})
}
