package cache

// limits of a handle's read-ahead. All but whole are in units.
type limits struct {
	count  int64 // of the version
	part   int64 // that one fetch covers at most
	window int64 // ahead of a reader at most
	start  int64 // the narrowest window, once there is one
	gap    int64 // a reader that leaves out so much reads on
	back   int64 // one that goes back so far does too
	whole  bool  // a read of the start is taken for one of all of it
}

const (
	// maxStreams is how many places of a version one handle is read at in order. A
	// reader of columns has a few, and so have threads that share a descriptor.
	maxStreams = 4
	// randomAfter is how many jumps in a row make reading random.
	randomAfter = 2
	// longest is how many narrowest windows a piece among pieces has at most.
	longest = 8
)

// readahead is the read-ahead of one handle: a state machine that is told each read
// and answers up to which unit bytes should be on their way. It knows nothing of
// memory, stores or time.
//
// A read that goes on near where a stream is (the kernel sends parts of one read out of
// order; readers leave out what they do not want) is sequential. From the second on the
// stream has a window as wide as what was read in order, up to the limit: no more is
// fetched than twice what is read. (After a jump it is the narrowest one, until that much
// was read twice.) When reading comes into the window's last half, or a wide one has room
// for a part, the next part is asked for.
//
// Any other read is a jump: it begins a stream, in the place of the one that rested
// longest, and asks for itself alone. After randomAfter jumps of which none led to
// sequential reading, what is read on from a jump gets no window beyond what the last
// two streams were read in all: chunks of columns are fetched as long as chunks are,
// and reads of one piece alone. A stream that goes on beyond that ends it.
//
// The zero value is a handle that nothing was read from.
type readahead struct {
	streams [maxStreams]stream
	clock   int64 // reads so far
	jumps   int   // since reading was sequential
	// lengths of the last two streams that were given up
	lengths [2]int64
}

// stream is a place that is read on from.
type stream struct {
	used int64 // readahead.clock of the last read; 0: none
	from int64 // first unit
	next int64 // the unit after the highest one that was read
	edge int64 // first unit not asked for
}

// next takes a read of the units first to last, and returns the unit before which
// everything from first on should be fetched: last+1 when nothing more is to be read
// ahead, never above l.count.
func (r *readahead) next(first, last int64, l limits) (until int64) {
	r.clock++
	s := r.find(first, l)
	if s == nil {
		s = r.jump(first, last)
		if l.whole && first == 0 {
			s.edge = l.count
		}
		return s.edge
	}
	s.used = r.clock
	s.from = min(s.from, first)
	s.next = max(s.next, last+1)
	s.edge = max(s.edge, last+1)
	window := r.window(s, l)
	ahead := s.edge - (last + 1)
	if ahead > max(window/2, window-l.part) || window <= ahead || s.edge >= l.count {
		return last + 1
	}
	edge := last + 1 + window
	if whole := edge / l.part * l.part; window > l.part && whole > s.edge {
		edge = whole // the parts that follow begin where parts of the version do
	}
	s.edge = min(max(s.edge, edge), l.count)
	return s.edge
}

// find returns the stream that a read goes on with, the nearest one, or nil.
func (r *readahead) find(first int64, l limits) *stream {
	var best *stream
	for i := range r.streams {
		s := &r.streams[i]
		if s.used == 0 || first > max(s.next+l.gap, s.edge) || first < s.next-l.back || first < s.from-l.start {
			continue
		}
		if best == nil || abs(first-s.next) < abs(first-best.next) {
			best = s
		}
	}
	return best
}

func abs(n int64) int64 { return max(n, -n) }

// jump begins a stream.
func (r *readahead) jump(first, last int64) *stream {
	old := &r.streams[0]
	for i := range r.streams {
		if r.streams[i].used < old.used {
			old = &r.streams[i]
		}
	}
	if r.clock > 1 {
		r.jumps++
	}
	if newest := r.newest(); newest != nil {
		r.lengths[0], r.lengths[1] = r.lengths[1], newest.next-newest.from
	}
	*old = stream{used: r.clock, from: first, next: last + 1, edge: last + 1}
	return old
}

// newest is the stream of the last read.
func (r *readahead) newest() *stream {
	for i := range r.streams {
		if s := &r.streams[i]; s.used > 0 && s.used == r.clock-1 {
			return s
		}
	}
	return nil
}

// window is how far s is read ahead of.
func (r *readahead) window(s *stream, l limits) int64 {
	read := s.next - s.from
	usual := min(r.lengths[0], r.lengths[1], longest*l.start)
	switch {
	case s.from == 0 && r.jumps == 0:
		return min(max(read, l.start), l.window)
	case read > 2*max(usual, l.start): // it is no piece among pieces
		r.jumps = 0
		return min(read, l.window)
	case r.jumps < randomAfter:
		return min(l.start, l.window)
	}
	return min(max(usual-read, 0), l.window)
}

// short tells that nothing from edge on was fetched, as there is no memory: the
// next reads ask for it again.
func (r *readahead) short(edge int64) {
	for i := range r.streams {
		if s := &r.streams[i]; s.used == r.clock {
			s.edge = min(s.edge, edge)
		}
	}
}

// partEnd is where one fetch of the units from first on ends, if all before end
// are wanted: at a multiple of part where that makes no more fetches of them.
func partEnd(first, end, part int64) int64 {
	aligned := (first/part + 1) * part
	if aligned >= end || 1+parts(end-aligned, part) > parts(end-first, part) {
		return min(first+part, end)
	}
	return aligned
}

// parts is how many fetches n units take.
func parts(n, part int64) int64 { return (n + part - 1) / part }
