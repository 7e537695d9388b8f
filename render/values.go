package render

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"
)

// style is how texts are written: what a row writer joins has to be quoted by then.
type style uint8

const (
	asJSON  style = iota
	asCSV         // a field of RFC 4180
	asTable       // one line, without control characters
)

// The append functions append the text of one value to dst, which is never empty, and
// return it. All styles have the same texts, but for what they quote.

// quote begins or ends a text that is a string in JSON, and needs no quotes in CSV.
func (s style) quote(dst []byte) []byte {
	if s == asJSON {
		return append(dst, '"')
	}
	return dst
}

// appendString appends text. Bytes that are no UTF-8 become U+FFFD.
func (s style) appendString(dst, text []byte) []byte {
	switch s {
	case asJSON:
		return appendJSONString(dst, text)
	case asCSV:
		return appendCSVField(dst, text)
	}
	return appendPlain(dst, text)
}

// appendBytes appends bytes that are not declared as text, in base64.
func (s style) appendBytes(dst, b []byte) []byte {
	if len(b) == 0 {
		return s.appendString(dst, nil)
	}
	return s.quote(base64.StdEncoding.AppendEncode(s.quote(dst), b))
}

func appendBool(dst []byte, b bool) []byte { return strconv.AppendBool(dst, b) }

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

func appendUint(dst []byte, n uint64) []byte { return strconv.AppendUint(dst, n, 10) }

// appendFloat appends the shortest text that reads back as the same number of so many
// bits, 32 or 64; one without a fraction ends in .0. What JSON has no number for is a
// string there: NaN, Infinity, -Infinity.
func (s style) appendFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case f != f:
		return s.quote(append(s.quote(dst), "NaN"...))
	case math.IsInf(f, 1):
		return s.quote(append(s.quote(dst), "Infinity"...))
	case math.IsInf(f, -1):
		return s.quote(append(s.quote(dst), "-Infinity"...))
	}
	if n := int64(f); float64(n) == f && n > -1e15 && n < 1e15 && (n != 0 || !math.Signbit(f)) {
		return append(strconv.AppendInt(dst, n, 10), ".0"...)
	}
	form, abs := byte('f'), math.Abs(f)
	if abs != 0 && (abs < 1e-6 || abs >= 1e16) {
		form = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, form, -1, bits)
	for _, c := range dst[start:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

// halfFloat is the number that 16 bits stand for.
func halfFloat(h uint16) float64 {
	exponent, fraction := int(h>>10)&0x1f, float64(h&0x3ff)
	var f float64
	switch exponent {
	case 0:
		f = math.Ldexp(fraction, -24)
	case 0x1f:
		if fraction != 0 {
			return math.NaN()
		}
		f = math.Inf(1)
	default:
		f = math.Ldexp(1024+fraction, exponent-25)
	}
	if h&0x8000 != 0 {
		return math.Copysign(f, -1)
	}
	return f
}

// appendDecimal appends unscaled / 10^scale with all digits of its scale.
func appendDecimal(dst []byte, unscaled int64, scale int) []byte {
	if scale <= 0 {
		dst = strconv.AppendInt(dst, unscaled, 10)
		if unscaled != 0 {
			dst = appendZeros(dst, -scale)
		}
		return dst
	}
	magnitude := uint64(unscaled)
	if unscaled < 0 {
		dst, magnitude = append(dst, '-'), -magnitude
	}
	if scale < 20 {
		power := powerOfTen(scale)
		dst = strconv.AppendUint(dst, magnitude/power, 10)
		return appendDigits(append(dst, '.'), magnitude%power, scale)
	}
	var digits [20]byte
	return appendPoint(dst, strconv.AppendUint(digits[:0], magnitude, 10), scale)
}

// powerOfTen is 10^n; n is below 20.
func powerOfTen(n int) uint64 {
	power := uint64(1)
	for ; n > 0; n-- {
		power *= 10
	}
	return power
}

// appendDecimalBytes appends a decimal whose unscaled value is big-endian, in two's
// complement; one of no bytes is 0.
func appendDecimalBytes(dst, unscaled []byte, scale int) []byte {
	for len(unscaled) > 1 && (unscaled[0] == 0 && unscaled[1] < 0x80 || unscaled[0] == 0xff && unscaled[1] >= 0x80) {
		unscaled = unscaled[1:]
	}
	if len(unscaled) <= 8 {
		n := int64(0)
		if len(unscaled) > 0 && unscaled[0] >= 0x80 {
			n = -1
		}
		for _, b := range unscaled {
			n = n<<8 | int64(b)
		}
		return appendDecimal(dst, n, scale)
	}
	n := new(big.Int).SetBytes(unscaled)
	if unscaled[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(unscaled))*8))
		dst = append(dst, '-')
		n.Neg(n)
	}
	digits := n.Append(nil, 10)
	if scale <= 0 {
		return appendZeros(append(dst, digits...), -scale)
	}
	return appendPoint(dst, digits, scale)
}

// appendPoint appends digits with a point before the last scale of them.
func appendPoint(dst, digits []byte, scale int) []byte {
	if whole := len(digits) - scale; whole > 0 {
		dst = append(dst, digits[:whole]...)
		return append(append(dst, '.'), digits[whole:]...)
	}
	return append(appendZeros(append(dst, "0."...), scale-len(digits)), digits...)
}

func appendZeros(dst []byte, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, '0')
	}
	return dst
}

// appendDigits appends the last width digits of n.
func appendDigits(dst []byte, n uint64, width int) []byte {
	dst = append(dst, "00000000000000000000"[:width]...)
	for i := len(dst) - 1; width > 0; i, width = i-1, width-1 {
		dst[i] = '0' + byte(n%10)
		n /= 10
	}
	return dst
}

// appendUUID appends the 16 bytes of a UUID.
func (s style) appendUUID(dst, b []byte) []byte {
	dst = s.quote(dst)
	for i, cut := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			dst = append(dst, '-')
		}
		from := [...]int{0, 4, 6, 8, 10}[i]
		dst = hex.AppendEncode(dst, b[from:cut])
	}
	return s.quote(dst)
}

// appendJSONString appends text as a string of JSON.
func appendJSONString(dst, text []byte) []byte {
	dst = append(dst, '"')
	for {
		n := plainLength(text)
		dst = append(dst, text[:n]...)
		if n == len(text) {
			return append(dst, '"')
		}
		var size int
		dst, size = appendEscaped(dst, text[n:])
		text = text[n+size:]
	}
}

// appendEscaped appends the character that text begins with, which a JSON string does not
// hold as it is, or does hold; and says of how many bytes it is.
func appendEscaped(dst, text []byte) (_ []byte, size int) {
	switch c := text[0]; {
	case c == '"' || c == '\\':
		return append(dst, '\\', c), 1
	case c == '\n':
		return append(dst, '\\', 'n'), 1
	case c == '\r':
		return append(dst, '\\', 'r'), 1
	case c == '\t':
		return append(dst, '\\', 't'), 1
	case c < 0x20 || c == 0x7f:
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf]), 1
	}
	r, size := utf8.DecodeRune(text)
	return utf8.AppendRune(dst, r), size
}

const hexDigits = "0123456789abcdef"

// plainLength is how many bytes text begins with that a JSON string holds as they are:
// ASCII without control characters, quotes and backslashes.
func plainLength(text []byte) int {
	i := 0
	for ; i+8 <= len(text); i += 8 {
		if !plain8(le64(text[i:])) {
			break
		}
	}
	for ; i < len(text); i++ {
		if c := text[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

func le64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// plain8 says that each of eight bytes is such a character; it may say no of some that are.
func plain8(v uint64) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	zero := func(v uint64) uint64 { return (v - ones) & ^v } // its high bits: of bytes that are 0, and perhaps of one above such a byte
	low := (v - ones*0x20) & ^v
	return (v|low|zero(v^ones*'"')|zero(v^ones*'\\')|zero(v^ones*0x7f))&high == 0
}

// appendCSVField appends text as RFC 4180 has it: in quotes if it needs them, and if it
// is empty, for NULL is the field without anything.
func appendCSVField(dst, text []byte) []byte {
	quoted, valid := len(text) == 0, true
	for _, c := range text {
		switch {
		case c == ',' || c == '"' || c == '\n' || c == '\r':
			quoted = true
		case c >= utf8.RuneSelf:
			valid = false
		}
	}
	if !quoted && (valid || utf8.Valid(text)) {
		return append(dst, text...)
	}
	if quoted {
		dst = append(dst, '"')
	}
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == '"' {
			dst = append(dst, '"')
		}
		dst = utf8.AppendRune(dst, r)
		text = text[size:]
	}
	if quoted {
		dst = append(dst, '"')
	}
	return dst
}

// appendPlain appends text for a table: control characters are escaped, as in JSON; no
// text at all is "", for a cell that shows nothing would be taken for NULL's.
func appendPlain(dst, text []byte) []byte {
	if len(text) == 0 {
		return append(dst, `""`...)
	}
	for len(text) > 0 {
		if c := text[0]; c == '"' || c == '\\' {
			dst, text = append(dst, c), text[1:]
			continue
		}
		var size int
		dst, size = appendEscaped(dst, text)
		text = text[size:]
	}
	return dst
}
