package cache

// maxWindow is the most blocks that one fetch covers.
const maxWindow = 8

// stream is the read-ahead of one handle: a state machine that is told each
// read and answers up to which block bytes should be on their way. It knows
// nothing of memory, stores or time.
//
// A read that goes on where reading is (give or take one block: the kernel
// sends parts of one read out of order) is sequential. The first one asks for
// nothing more, the second for one block; from then on the window doubles each
// time that reading comes into the last half of what was asked for. Any other
// read ends the window, and asks for its own blocks alone.
//
// The zero value is a stream at the beginning of the version.
type stream struct {
	begun  bool
	at     int64 // highest block of the sequential reads so far
	window int64 // blocks asked for ahead the last time
	edge   int64 // first block not asked for
}

// next takes a read of the blocks first to last of a version of count blocks,
// and returns the block before which everything from first on should be
// fetched: last+1 when nothing more is to be read ahead, never above count.
func (s *stream) next(first, last, count int64) (until int64) {
	sequential := first >= s.at-1 && first <= s.at+1
	if !sequential || !s.begun {
		*s = stream{begun: true, at: last, edge: last + 1}
		return last + 1
	}
	s.at = max(s.at, last)
	s.edge = max(s.edge, last+1)
	if s.edge-(last+1) > s.window/2 || s.edge >= count {
		return last + 1
	}
	s.window = min(max(2*s.window, 1), maxWindow)
	s.edge = min(s.edge+s.window, count)
	return s.edge
}
