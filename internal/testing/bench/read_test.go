package main

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
)

// A piece of the pattern is that of the whole, and one that differs is told.
func TestPattern(t *testing.T) {
	const size, off = 100_003, 4096
	whole, err := io.ReadAll(&patternReader{seed: 7, size: size})
	if err != nil || len(whole) != size {
		t.Fatalf("got %d bytes and %v, want %d", len(whole), err, size)
	}
	piece := make([]byte, size-off)
	pattern(piece, 7, off)
	if !bytes.Equal(piece, whole[off:]) {
		t.Error("a piece is not that of the whole")
	}
	if err := same(whole[off:], 7, off); err != nil {
		t.Error(err)
	}
	for name, other := range map[string]error{"another file": same(whole[off:], 8, off), "another place": same(whole[off:], 7, off+8)} {
		if !errors.Is(other, errDiffers) {
			t.Errorf("%s: got %v, want %v", name, other, errDiffers)
		}
	}
}

func TestVerdicts(t *testing.T) {
	o := func(value, peak, cpu float64) outcome {
		return outcome{Value: value, figures: figures{Peak: peak, CPU: cpu, Requests: map[string]int{"GetObject": 3}}}
	}
	early := o(1000, 1, 1)
	early.Early = true
	failed := outcome{figures: figures{Problem: "mount: no"}}
	row := readRow{
		Unit: "MiB/s", Bytes: 1 << 30, Goals: goals{Peers: 1.6, Plain: 0.7, Peak: 220, Requests: 2, CPU: true},
		By: map[string]outcome{ours: o(700, 200, 1), plain: o(1001, 30, 0.2), plainFew: o(9999, 30, 0), "slow": o(90, 90, 0.9), "fast": o(400, 90, 2), "early": early, "broken": failed},
	}
	if got := row.best(); got != "fast" {
		t.Errorf("got best peer %q, want fast", got)
	}
	want := []string{"≥ 1.6 × best peer", "≥ 0.7 × plain MISSED", "RSS ≤ 220 MiB", "≤ 2 requests MISSED", "CPU ≤ any peer MISSED"}
	if got, missed := row.verdicts(); !slices.Equal(got, want) || missed != 3 {
		t.Errorf("got %q, %d missed, want %q", got, missed, want)
	}
	row.Lower = true
	if got, ratio := row.best(), row.ratio("slow"); got != "slow" || ratio != 90.0/700 {
		t.Errorf("got best peer %q, %v times as good, where less is better", got, ratio)
	}
}
