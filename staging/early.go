package staging

// earlyBytes of sequential writing start their own write-back. Measured on a
// virtual disk with ext4: the fsync after 256 MiB takes 20 ms with it and 83 ms
// without, and a write costs no more.
const earlyBytes = 8 << 20

// early decides when the kernel is told to start writing a spool to the disk,
// so that the fsync of a close finds little left to do and the disk works while
// the program still writes.
type early struct{ start, end int64 }

// wrote notes a write of [off, end); due tells that [from, from+n) shall go out.
func (e *early) wrote(off, end int64) (from, n int64, due bool) {
	if off != e.end {
		e.start = off
	}
	e.end = end
	if e.end-e.start < earlyBytes {
		return 0, 0, false
	}
	from, n = e.start, e.end-e.start
	e.start = e.end
	return from, n, true
}
