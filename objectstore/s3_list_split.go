package objectstore

import (
	"strings"
	"unicode/utf8"
)

// fewEntries tell nothing about how keys lie.
const fewEntries = 16

// splitAt guesses the key that some n keys lie below that are greater than from, by
// how the keys of a page lie: numbered names, hashes, dates. hi is the end of the range
// that is to be split ("": none). ok is false where the guess would be no better than
// none, or the range is likely to end within half as many keys more. base is the length
// of the prefix that all keys have.
//
// The key is one that all stores agree about: byte order and the order of UTF-16 units
// differ only beyond U+D800. It has no "/" behind the last one of the page's keys, so
// that it lies in no directory of a listing with a delimiter.
func splitAt(page []Entry, from, hi string, base, n int) (at string, ok bool) {
	if len(page) < fewEntries {
		return "", false
	}
	s := scaleOf(page, base)
	first, _ := s.value(page[0].Key)
	last, _ := s.value(page[len(page)-1].Key)
	begin, here := s.value(from)
	if last <= first || !here {
		return "", false
	}
	step := (last - first) / float64(len(page)-1) * float64(n)
	end := s.end()
	if hi != "" {
		if v, here := s.value(hi); here {
			end = v
		}
		end -= step / 2
	}
	if begin+step >= end {
		return "", false
	}
	at = s.key(begin+step, step/16)
	return at, at > from && (hi == "" || at < hi) && portable(at[base:])
}

// portable says that a name orders alike everywhere, and does not harm an answer that has
// it in its text.
func portable(name string) bool {
	for _, c := range name {
		if c < ' ' || c == 0x7f || c >= 0xd800 { // utf8.RuneError too
			return false
		}
	}
	return true
}

// scale takes keys for numbers: those of the characters at one place.
type scale struct {
	stem   string // all before the place
	digits string // in order
	width  int    // how many characters count
}

// alphabets are what names are made of that are counted, hashed or random, the
// narrowest first.
func alphabets() []string {
	const digits, lower, upper = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return []string{digits, digits + "abcdef", digits + "ABCDEF", digits + lower, digits + upper, digits + upper + lower}
}

// carry is how many characters before the first that differs may change too.
const carry = 4

// scaleOf finds the place where the keys of a page differ, and what they are made of
// there.
func scaleOf(page []Entry, base int) scale {
	all := alphabets()
	widest := all[len(all)-1]
	first, last := page[0].Key, page[len(page)-1].Key
	differ := base
	for differ < min(len(first), len(last)) && first[differ] == last[differ] {
		differ++
	}
	place := differ
	for place > max(base, differ-carry) && strings.IndexByte(widest, last[place-1]) >= 0 {
		place--
	}
	for place > base && place < len(last) && !utf8.RuneStart(last[place]) {
		place--
	}
	s := scale{stem: last[:place]}
	seen := func(digits string) bool {
		for _, e := range page {
			for i := place; i < min(len(e.Key), place+8) && strings.IndexByte(widest, e.Key[i]) >= 0; i++ {
				if strings.IndexByte(digits, e.Key[i]) < 0 {
					return false
				}
			}
		}
		return true
	}
	for _, s.digits = range all {
		if seen(s.digits) {
			break
		}
	}
	for v := 1.0; v < 1<<50; v *= float64(len(s.digits)) {
		s.width++
	}
	return s
}

// end is greater than every value.
func (s scale) end() float64 {
	end := 1.0
	for range s.width {
		end *= float64(len(s.digits))
	}
	return end
}

// value is the number of a key; here is false where it differs before the place.
func (s scale) value(key string) (v float64, here bool) {
	rest, here := strings.CutPrefix(key, s.stem)
	unit := s.end()
	for i := range min(s.width, len(rest)) {
		unit /= float64(len(s.digits))
		digit := strings.IndexByte(s.digits, rest[i])
		if digit < 0 { // between two: what follows does not count
			for digit = 0; digit < len(s.digits) && s.digits[digit] < rest[i]; {
				digit++
			}
			return v + float64(digit)*unit, here
		}
		v += float64(digit) * unit
	}
	return v, here
}

// key is the shortest key whose value is v, or less by the tolerance at most.
func (s scale) key(v, tolerance float64) string {
	unit := s.end()
	key := []byte(s.stem)
	for unit > max(tolerance, 1) {
		unit /= float64(len(s.digits))
		digit := min(int(v/unit), len(s.digits)-1)
		v -= float64(digit) * unit
		key = append(key, s.digits[digit])
	}
	return string(key)
}
