package objectstore

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"testing"
)

// TestCombine holds the CRC of parts to that of the whole, as the standard library
// computes it.
func TestCombine(t *testing.T) {
	t.Parallel()
	whole := make([]byte, 1<<20)
	for i := range whole {
		whole[i] = byte(rand.N(256))
	}
	for _, algorithm := range []string{sumCRC32C, sumCRC64NVME} {
		for _, cuts := range [][]int{{}, {0}, {1}, {1, 2, 3}, {65537, 65537, 1 << 19}, {1 << 20}, {0, 1<<20 - 1}} {
			parts, from := []Part(nil), 0
			for _, to := range append(cuts, len(whole)) {
				parts = append(parts, Part{Size: int64(to - from), Checksum: sumText(algorithm, whole[from:to])})
				from = to
			}
			if got, want := combined(algorithm, parts), sumText(algorithm, whole); got != want {
				t.Errorf("%s of parts that end at %v: %s, want %s", algorithm, cuts, got, want)
			}
		}
	}
}

func sumText(algorithm string, b []byte) string {
	sum := newSum(algorithm)
	if _, err := sum.Write(b); err != nil {
		panic(err) // a hash's can not fail
	}
	return base64.StdEncoding.EncodeToString(sum.Sum(nil))
}

// TestCombineLong: zeroes are more than a test can sum up, and their CRC is known
// by another way: that of 2n zeroes is that of n twice.
func TestCombineLong(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{sumCRC32C, sumCRC64NVME} {
		block := bytes.Repeat([]byte{0}, 1<<20)
		part := Part{Size: 1 << 20, Checksum: sumText(algorithm, block)}
		many := make([]Part, 1<<10)
		for i := range many {
			many[i] = part
		}
		for range 10 {
			part = Part{Size: 2 * part.Size, Checksum: combined(algorithm, []Part{part, part})}
		}
		if want := combined(algorithm, many); part.Checksum != want {
			t.Errorf("%s of 1 GiB of zeroes: %s by halves, %s by MiB", algorithm, part.Checksum, want)
		}
	}
}

// TestCombineUnknown: without the checksum of a part there is none of the whole.
func TestCombineUnknown(t *testing.T) {
	t.Parallel()
	sum := sumText(sumCRC32C, []byte("x"))
	for _, sums := range [][]string{{sum, ""}, {"", sum}, {sum, "?"}, {sum, "AAAA"}, {sumText(sumCRC64NVME, []byte("x"))}} {
		var parts []Part
		for _, s := range sums {
			parts = append(parts, Part{Size: 1, Checksum: s})
		}
		if got := combined(sumCRC32C, parts); got != "" {
			t.Errorf("of %q: %q, want none", sums, got)
		}
	}
	if got := combined(sumSHA256, []Part{{Size: 1, Checksum: sumText(sumSHA256, []byte("x"))}}); got != "" {
		t.Errorf("of SHA-256: %q, want none", got)
	}
}
