package staging

import (
	"fmt"
	"slices"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// The grid of a new file's parts: small ones at first, so that a file of usual
// size goes up while it is written, and larger ones later, so that one of 5 TiB
// needs no more parts than an upload takes.
const (
	firstPartSize = 8 << 20
	partsOfASize  = 1000 // then they are partGrowth times larger
	partGrowth    = 4
)

// span is a range [from, to) of a file.
type span struct{ from, to int64 }

// piece is a part to be: n bytes from off on, which the store copies from the
// older object at the same offset, or which are sent.
type piece struct {
	off, n int64
	copied bool
}

// partAt is where part index, from 0 on, of a new file lies if the file reaches
// so far: by the growing grid, or with fixed over 0 by parts of that size.
func partAt(index int, fixed int64) (off, size int64) {
	if fixed > 0 {
		return int64(index) * fixed, fixed
	}
	size = firstPartSize
	for index >= partsOfASize && size < objectstore.MaxPartSize {
		index -= partsOfASize
		off += partsOfASize * size
		size = min(size*partGrowth, objectstore.MaxPartSize)
	}
	return off + int64(index)*size, size
}

// partOf is partAt's inverse: the index of the part that holds the byte at off.
func partOf(off, fixed int64) int {
	if fixed > 0 {
		return int(off / fixed)
	}
	index, size := 0, int64(firstPartSize)
	for off >= partsOfASize*size && size < objectstore.MaxPartSize {
		index += partsOfASize
		off -= partsOfASize * size
		size = min(size*partGrowth, objectstore.MaxPartSize)
	}
	return index + int(off/size)
}

// planParts says of which parts an object of size bytes is made, in their order,
// if the store has the unchanged spans (sorted, none overlaps another) at the same
// offsets of an older object. What has to be sent, and as little else as the
// limits of parts allow, is sent, along the grid of partAt: without an unchanged
// span the parts are the grid's. With fixed over 0 each but the last has that
// size, whatever it is, and is copied if it is unchanged as a whole.
// objectstore.ErrTooLarge: there would be more parts than an upload takes.
func planParts(size int64, unchanged []span, fixed int64) ([]piece, error) {
	if fixed > 0 {
		return equalParts(size, unchanged, fixed)
	}
	for shortest := int64(objectstore.MinPartSize); ; shortest *= 2 {
		pieces, ok := cutParts(size, growGaps(size, copyable(size, unchanged, shortest)))
		if ok {
			return pieces, nil
		}
		if shortest >= size { // all but the end is sent already
			return nil, tooManyParts(size)
		}
	}
}

func tooManyParts(size int64) error {
	return fmt.Errorf("%d bytes in %d parts: %w", size, objectstore.MaxParts, objectstore.ErrTooLarge)
}

func equalParts(size int64, unchanged []span, fixed int64) ([]piece, error) {
	if size > fixed*objectstore.MaxParts {
		return nil, tooManyParts(size)
	}
	whole := copyable(size, unchanged, 0)
	var pieces []piece
	for off := int64(0); off < size; off += fixed {
		p := piece{off: off, n: min(fixed, size-off)}
		for len(whole) > 0 && whole[0].to < off+p.n {
			whole = whole[1:]
		}
		p.copied = len(whole) > 0 && whole[0].from <= off
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// copyable joins spans that touch and leaves those out that are shorter than
// shortest, for one of which there is no part; at the file's end there is.
func copyable(size int64, unchanged []span, shortest int64) []span {
	var long []span
	for _, s := range unchanged {
		s.to = min(s.to, size)
		last := len(long) - 1
		switch {
		case s.from >= s.to:
		case last >= 0 && long[last].to >= s.from:
			long[last].to = max(long[last].to, s.to)
		default:
			long = append(long, s)
		}
	}
	return slices.DeleteFunc(long, func(s span) bool { return s.to-s.from < shortest && s.to < size })
}

// growGaps makes what lies between the copied spans large enough for a part, at
// the spans' expense; each stays large enough too, or is given up. It works in
// the memory of copied.
func growGaps(size int64, copied []span) []span {
	kept := copied[:0]
	for _, right := range copied {
		var left span
		if len(kept) > 0 {
			left = kept[len(kept)-1]
		}
		need := objectstore.MinPartSize - (right.from - left.to)
		if right.from == left.to || need <= 0 {
			kept = append(kept, right)
			continue
		}
		fromLeft, fromRight := max(left.to-left.from-objectstore.MinPartSize, 0), spare(right, size)
		switch {
		case need <= fromLeft+fromRight:
			fromRight = min(need, fromRight)
			right.from += fromRight
			if need > fromRight {
				kept[len(kept)-1].to -= need - fromRight
			}
		case len(kept) > 0 && left.to-left.from < right.to-right.from:
			kept = kept[:len(kept)-1]
		default:
			continue // the gap goes on to the next span
		}
		if right.from < right.to {
			kept = append(kept, right)
		}
	}
	return kept
}

// spare is how much of a copied span can be sent, from its start on, and the
// rest copied.
func spare(s span, size int64) int64 {
	if s.to == size {
		return s.to - s.from
	}
	return s.to - s.from - objectstore.MinPartSize
}

// cutParts makes pieces of what is copied and what lies between; false if they
// are too many.
func cutParts(size int64, copied []span) ([]piece, bool) {
	var pieces []piece
	at := int64(0)
	for _, s := range copied {
		pieces = cutSent(pieces, span{at, s.from}, false)
		pieces = cutCopied(pieces, s)
		at = s.to
	}
	pieces = cutSent(pieces, span{at, size}, true)
	return pieces, len(pieces) <= objectstore.MaxParts
}

// cutSent appends the parts of s, as large as the grid's at their place; what
// would be too small a rest goes with the one before, unless it ends the file.
// It stops where there are too many.
func cutSent(pieces []piece, s span, last bool) []piece {
	for s.from < s.to && len(pieces) <= objectstore.MaxParts {
		_, n := partAt(len(pieces), 0)
		left := s.to - s.from
		switch {
		case left <= n:
			n = left
		case last || left-n >= objectstore.MinPartSize:
		case left <= objectstore.MaxPartSize:
			n = left
		default:
			n = left - objectstore.MinPartSize
		}
		pieces = append(pieces, piece{off: s.from, n: n})
		s.from += n
	}
	return pieces
}

// cutCopied appends the parts of s, as few as can be and of like size. It stops
// where there are too many.
func cutCopied(pieces []piece, s span) []piece {
	count := (s.to - s.from + objectstore.MaxPartSize - 1) / objectstore.MaxPartSize
	for ; count > 0 && len(pieces) <= objectstore.MaxParts; count-- {
		n := (s.to - s.from + count - 1) / count
		pieces = append(pieces, piece{off: s.from, n: n, copied: true})
		s.from += n
	}
	return pieces
}
