package cache

// limits of a stream, in blocks.
type limits struct {
	count  int64 // of the version
	part   int64 // that one fetch covers at most
	window int64 // ahead of a reader at most
	whole  bool  // a read of its start is taken for one of all of it
}

// stream is the read-ahead of one handle: a state machine that is told each
// read and answers up to which block bytes should be on their way. It knows
// nothing of memory, stores or time.
//
// A read that goes on where reading is (give or take one block: the kernel
// sends parts of one read out of order) is sequential. The first one asks for
// nothing more, the second for one block; from then on the window doubles each
// time that reading comes into the last half of what was asked for, until it is
// as wide as it may be: then each part that was read through asks for the next
// one. Any other read ends the window, and asks for its own blocks alone.
//
// The zero value is a stream at the beginning of the version.
type stream struct {
	begun  bool
	at     int64 // highest block of the sequential reads so far
	window int64 // blocks asked for ahead the last time
	edge   int64 // first block not asked for
}

// next takes a read of the blocks first to last, and returns the block before
// which everything from first on should be fetched: last+1 when nothing more is
// to be read ahead, never above l.count.
func (s *stream) next(first, last int64, l limits) (until int64) {
	sequential := first >= s.at-1 && first <= s.at+1
	if !sequential || !s.begun {
		*s = stream{begun: true, at: last, edge: last + 1}
		if l.whole && first == 0 {
			s.edge = l.count
		}
		return s.edge
	}
	s.at = max(s.at, last)
	s.edge = max(s.edge, last+1)
	ahead := s.edge - (last + 1)
	if ahead > max(s.window/2, s.window-l.part) || s.edge >= l.count {
		return last + 1
	}
	s.window = min(max(2*s.window, 1), l.window)
	edge := last + 1 + s.window
	if whole := edge / l.part * l.part; s.window > l.part && whole > s.edge {
		edge = whole // the parts that follow begin where parts of the version do
	}
	s.edge = min(max(s.edge, edge), l.count)
	return s.edge
}

// short tells that nothing from edge on was fetched, as there is no memory: the
// next reads ask for it again.
func (s *stream) short(edge int64) {
	s.edge = min(s.edge, edge)
}

// partEnd is where one fetch of the blocks from first on ends, if all before end
// are wanted: at a multiple of part where that makes no more fetches of them.
func partEnd(first, end, part int64) int64 {
	aligned := (first/part + 1) * part
	if aligned >= end || 1+parts(end-aligned, part) > parts(end-first, part) {
		return min(first+part, end)
	}
	return aligned
}

// parts is how many fetches n blocks take.
func parts(n, part int64) int64 { return (n + part - 1) / part }
