package objectstore

import "hash/crc32"

// combiner computes the CRC of two texts one after the other from those of each.
// A CRC is a polynomial over GF(2), its highest bit that of x^0, and the first
// text's CRC counts for x^(bits of the second) times itself, modulo poly.
type combiner struct {
	poly uint64 // reversed, without its highest term
	one  uint64 // x^0
}

// combinerOf is that of a CRC by its name; false for another checksum.
func combinerOf(algorithm string) (combiner, bool) {
	switch algorithm {
	case sumCRC32C:
		return combiner{poly: crc32.Castagnoli, one: 1 << 31}, true
	case sumCRC64NVME:
		return combiner{poly: polyCRC64NVME, one: 1 << 63}, true
	}
	return combiner{}, false
}

// bytes is the length of a CRC.
func (c combiner) bytes() int {
	if c.one == 1<<31 {
		return 4
	}
	return 8
}

// combine is the CRC of a text with the CRC first and one of n bytes with the CRC
// second. That of the empty text is 0.
func (c combiner) combine(first, second uint64, n int64) uint64 {
	return c.times(first, c.power(n)) ^ second
}

// power is x^(8n).
func (c combiner) power(n int64) uint64 {
	p, square := c.one, c.one>>8 // x^0, x^8
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			p = c.times(p, square)
		}
		square = c.times(square, square)
	}
	return p
}

// times is the product of two polynomials.
func (c combiner) times(a, b uint64) uint64 {
	var p uint64
	for bit := c.one; bit != 0; bit >>= 1 {
		if a&bit != 0 {
			p ^= b
		}
		carry := b & 1
		b >>= 1
		if carry != 0 { // x^degree
			b ^= c.poly
		}
	}
	return p
}
