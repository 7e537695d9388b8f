package staging

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const (
	gib = int64(1) << 30
	tib = int64(1) << 40
)

func TestPartAt(t *testing.T) {
	for _, tt := range []struct {
		index            int
		fixed, off, size int64
	}{
		{0, 0, 0, 8 * mib},
		{1, 0, 8 * mib, 8 * mib},
		{999, 0, 7992 * mib, 8 * mib},
		{1000, 0, 8000 * mib, 32 * mib},
		{1001, 0, 8032 * mib, 32 * mib},
		{2000, 0, 40_000 * mib, 128 * mib},
		{4999, 0, (8+32+128+512)*1000*mib + 999*2*gib, 2 * gib},
		{5000, 0, (8 + 32 + 128 + 512 + 2048) * 1000 * mib, 5 * gib},
		{9999, 0, (8+32+128+512+2048)*1000*mib + 4999*5*gib, 5 * gib},
		{0, 16 * mib, 0, 16 * mib},
		{9999, 16 * mib, 9999 * 16 * mib, 16 * mib},
	} {
		off, size := partAt(tt.index, tt.fixed)
		if off != tt.off || size != tt.size {
			t.Errorf("partAt(%d, %d) = %d, %d; want %d, %d", tt.index, tt.fixed, off, size, tt.off, tt.size)
		}
		for _, at := range []int64{off, off + 1, off + size - 1} {
			if got := partOf(at, tt.fixed); got != tt.index {
				t.Errorf("partOf(%d, %d) = %d, want %d", at, tt.fixed, got, tt.index)
			}
		}
	}
}

// TestPartAtIsAGrid holds that each part begins where the one before ends, and
// that 5 TiB fit.
func TestPartAtIsAGrid(t *testing.T) {
	for _, fixed := range []int64{0, 5 * mib, 64*mib + 1} {
		end := int64(0)
		for i := range objectstore.MaxParts {
			off, size := partAt(i, fixed)
			if off != end || size < objectstore.MinPartSize || size > objectstore.MaxPartSize {
				t.Fatalf("fixed %d: part %d is %d bytes at %d; the one before ends at %d", fixed, i, size, off, end)
			}
			end = off + size
			if partOf(off, fixed) != i || partOf(end-1, fixed) != i {
				t.Fatalf("fixed %d: partOf of part %d's bytes: %d, %d", fixed, i, partOf(off, fixed), partOf(end-1, fixed))
			}
		}
		if fixed == 0 && end < 5*tib {
			t.Errorf("the parts hold %d bytes", end)
		}
	}
}

func TestPlanParts(t *testing.T) {
	sent := func(off, n int64) piece { return piece{off: off, n: n} }
	copied := func(off, n int64) piece { return piece{off: off, n: n, copied: true} }
	for _, tt := range []struct {
		name      string
		size      int64
		unchanged []span
		fixed     int64
		want      []piece
	}{
		{"nothing", 0, nil, 0, nil},
		{"new", 20 * mib, nil, 0, []piece{sent(0, 8*mib), sent(8*mib, 8*mib), sent(16*mib, 4*mib)}},
		{"a whole copy", 12 * gib, []span{{0, 12 * gib}}, 0, []piece{copied(0, 4*gib), copied(4*gib, 4*gib), copied(8*gib, 4*gib)}},
		{"a small whole copy", 3, []span{{0, 3}}, 0, []piece{copied(0, 3)}},
		{"appended", 12 * mib, []span{{0, 10 * mib}}, 0, []piece{copied(0, 10*mib), sent(10*mib, 2*mib)}},
		{"appended to too little", 6 * mib, []span{{0, 4 * mib}}, 0, []piece{sent(0, 6*mib)}},
		{"the older object is longer", 6 * mib, []span{{0, 40 * mib}}, 0, []piece{copied(0, 6*mib)}},
		{"a head", 100 * mib, []span{{100, 100 * mib}}, 0, []piece{sent(0, 5*mib), copied(5*mib, 95*mib)}},
		{"a head, little else", 6 * mib, []span{{100, 6 * mib}}, 0, []piece{sent(0, 5*mib), copied(5*mib, mib)}},
		{"a head, nothing else", 5 * mib, []span{{100, 5 * mib}}, 0, []piece{sent(0, 5*mib)}},
		{"a hole grows to the right", 100 * mib, []span{{0, 50 * mib}, {50*mib + 7, 100 * mib}}, 0, []piece{
			copied(0, 50*mib), sent(50*mib, 5*mib), copied(55*mib, 45*mib),
		}},
		{"to both sides", 30 * mib, []span{{0, 10 * mib}, {11 * mib, 17 * mib}, {25 * mib, 30 * mib}}, 0, []piece{
			copied(0, 7*mib), sent(7*mib, 5*mib), copied(12*mib, 5*mib), sent(17*mib, 8*mib), copied(25*mib, 5*mib),
		}},
		{"the shorter neighbour is given up", 40 * mib, []span{{0, 5 * mib}, {6 * mib, 12 * mib}, {20 * mib, 40 * mib}}, 0, []piece{
			sent(0, 6*mib), copied(6*mib, 6*mib), sent(12*mib, 8*mib), copied(20*mib, 20*mib),
		}},
		{"the right one is given up", 40 * mib, []span{{mib, 6 * mib}, {7 * mib, 12 * mib}}, 0, []piece{
			sent(0, 7*mib), copied(7*mib, 5*mib), sent(12*mib, 8*mib), sent(20*mib, 8*mib), sent(28*mib, 8*mib), sent(36*mib, 4*mib),
		}},
		{"a short rest goes with the one before", 30 * mib, []span{{9 * mib, 30 * mib}}, 0, []piece{sent(0, 9*mib), copied(9*mib, 21*mib)}},
		{"spans that touch", 12 * mib, []span{{0, 3 * mib}, {3 * mib, 6 * mib}}, 0, []piece{copied(0, 6*mib), sent(6*mib, 6*mib)}},
		{"equal parts", 25 * mib, []span{{3 * mib, 22 * mib}}, 10 * mib, []piece{
			sent(0, 10*mib), copied(10*mib, 10*mib), sent(20*mib, 5*mib),
		}},
		{"equal parts, the last copied", 25 * mib, []span{{0, 9 * mib}, {10 * mib, 20 * mib}, {20 * mib, 26 * mib}}, 10 * mib, []piece{
			sent(0, 10*mib), copied(10*mib, 10*mib), copied(20*mib, 5*mib),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := planParts(tt.size, tt.unchanged, tt.fixed)
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

func TestPlanPartsIsTheGridOfANewFile(t *testing.T) {
	for _, size := range []int64{1, 8 * mib, 8*mib + 1, 8 * gib, 5 * tib} {
		pieces, err := planParts(size, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range pieces {
			off, n := partAt(i, 0)
			if p != (piece{off: off, n: min(n, size-off)}) {
				t.Fatalf("%d bytes: part %d is %+v, of the grid %d bytes at %d", size, i, p, n, off)
			}
		}
	}
}

// TestPlanPartsManyRanges holds that a file with a change every 10 MiB is still
// made of as few parts as an upload takes.
func TestPlanPartsManyRanges(t *testing.T) {
	var unchanged []span
	size := 1 * tib
	for at := int64(0); at < size; at += 10 * mib {
		unchanged = append(unchanged, span{at + 4096, at + 10*mib})
	}
	pieces, err := planParts(size, unchanged, 0)
	if err != nil {
		t.Fatal(err)
	}
	checkPlan(t, size, unchanged, pieces)
}

func TestPlanPartsTooLarge(t *testing.T) {
	for _, tt := range []struct{ size, fixed int64 }{
		{50_001 * mib, 5 * mib},
		{50 * tib, 0},
		{1 << 62, 0},
	} {
		if pieces, err := planParts(tt.size, nil, tt.fixed); !errors.Is(err, objectstore.ErrTooLarge) {
			t.Errorf("%d bytes, fixed %d: %d parts, %v", tt.size, tt.fixed, len(pieces), err)
		}
	}
}

// checkPlan holds what the store asks of parts, that they make up the file, and
// that only unchanged bytes are copied. It returns the number of bytes sent.
func checkPlan(t *testing.T, size int64, unchanged []span, pieces []piece) (sent int64) {
	t.Helper()
	if len(pieces) > objectstore.MaxParts {
		t.Fatalf("%d parts", len(pieces))
	}
	whole := copyable(size, unchanged, 0)
	end := int64(0)
	for i, p := range pieces {
		if p.off != end || p.n <= 0 || p.n > objectstore.MaxPartSize || p.n < objectstore.MinPartSize && i < len(pieces)-1 {
			t.Fatalf("part %d of %d: %+v, the one before ends at %d", i, len(pieces), p, end)
		}
		end = p.off + p.n
		inside := func(s span) bool { return s.from <= p.off && end <= s.to }
		if p.copied && !slices.ContainsFunc(whole, inside) {
			t.Fatalf("part %d is copied: %+v, unchanged are %v", i, p, whole)
		}
		if !p.copied {
			sent += p.n
		}
	}
	if end != size {
		t.Fatalf("the parts end at %d of %d", end, size)
	}
	return sent
}

// FuzzPlanParts makes spans of pairs of lengths: so much changed, so much not.
func FuzzPlanParts(f *testing.F) {
	pairs := func(n ...uint32) (raw []byte) {
		for _, v := range n {
			raw = binary.LittleEndian.AppendUint32(raw, v)
		}
		return raw
	}
	f.Add(pairs(1, 5<<10, 1, 5<<10, 3, 9<<10), int64(7), false)
	f.Add(pairs(0, 6<<10, 9<<10, 4<<10, 4<<10, 5<<10, 1), int64(0), false)
	f.Add(pairs(5<<10, 12<<20, 1<<20, 3), int64(1), true)
	f.Fuzz(func(t *testing.T, raw []byte, tail int64, equal bool) {
		size, unchanged := int64(0), []span(nil)
		for ; len(raw) >= 8; raw = raw[8:] { // in KiB, so that offsets reach far
			from := size + int64(binary.LittleEndian.Uint32(raw))<<10
			size = from + int64(binary.LittleEndian.Uint32(raw[4:]))<<10
			unchanged = append(unchanged, span{from, size})
		}
		size += tail & (1<<36 - 1)
		fixed := int64(0)
		if equal {
			fixed = min(max(objectstore.MinPartSize, size/objectstore.MaxParts+1), objectstore.MaxPartSize)
		}
		pieces, err := planParts(size, unchanged, fixed)
		if errors.Is(err, objectstore.ErrTooLarge) && size > 5*tib {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		sent := checkPlan(t, size, unchanged, pieces)
		most := sentAtMost(size, unchanged)
		if fixed == 0 && size < 40*gib && sent > most {
			t.Errorf("%d bytes are sent, %d at most had to be: %v of %v", sent, most, pieces, unchanged)
		}
	})
}

// sentAtMost counts what is changed, the spans that no part can be made of, and
// 5 MiB for each end of a changed range.
func sentAtMost(size int64, unchanged []span) int64 {
	n := size
	for _, s := range copyable(size, unchanged, objectstore.MinPartSize) {
		n -= s.to - s.from
		n += 2 * objectstore.MinPartSize
	}
	return n
}
