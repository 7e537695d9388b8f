package catalogview

import (
	"bytes"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// isTimeField says that a member of this name, where it is a number, holds
// seconds since 1970. No other number of an entry is one.
func isTimeField(key string) bool {
	switch key {
	case "CreateTime", "UpdateTime", "LastAccessTime", "CreationTime", "LastAnalyzedTime":
		return true
	}
	return false
}

// readableTimes returns a value with its times as ISO-8601, and everything else
// byte for byte.
func readableTimes(value []byte) []byte {
	var b bytes.Buffer
	b.Grow(len(value) + 64)
	kept := 0 // up to where value is in b
	for i := 0; i < len(value); i++ {
		if value[i] != '"' {
			continue
		}
		end := skipString(value, i)
		colon := skipSpace(value, end)
		key := value[i+1 : end-1]
		i = end - 1
		if colon == len(value) || value[colon] != ':' || !isTimeField(string(key)) {
			continue
		}
		start := skipSpace(value, colon+1)
		after := skipValue(value, start)
		if text, ok := isoTime(value[start:after]); ok {
			b.Write(value[kept:start])
			b.WriteString(`"` + text + `"`)
			kept = after
			i = after - 1
		}
	}
	b.Write(value[kept:])
	return b.Bytes()
}

// isoTime is a number of seconds since 1970 as the AWS CLI prints it (in UTC);
// ok is false for what is no number, or no time of the years 1 to 9999.
func isoTime(number []byte) (text string, ok bool) {
	t, ok := jsonTime(number)
	if !ok {
		return "", false
	}
	layout := "2006-01-02T15:04:05"
	if t.Nanosecond() != 0 {
		layout += ".000000"
	}
	return t.Format(layout) + "+00:00", true
}

// jsonTime is a JSON number of seconds since 1970, exact to the microsecond.
func jsonTime(number []byte) (time.Time, bool) {
	micros, ok := decimalMicros(string(number))
	if !ok {
		return time.Time{}, false
	}
	t := time.UnixMicro(micros).UTC()
	return t, t.Year() >= 1 && t.Year() <= 9999
}

// decimalMicros is a JSON number times a million, rounded to the nearest (half to
// even). It is false for what is no number, or too large for any time.
func decimalMicros(number string) (int64, bool) {
	if number == "" || number[0] != '-' && (number[0] < '0' || number[0] > '9') {
		return 0, false
	}
	const most = 40 // digits, and places that the point moves: times have a dozen
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	shift := 0
	if exponent != "" {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil {
			return 0, false
		}
	}
	digits, ok := new(big.Int).SetString(whole+fraction, 10)
	shift += 6 - min(len(fraction), most+1)
	if !ok || len(whole)+len(fraction) > most || shift > most || shift < -most {
		return 0, false
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	if shift >= 0 {
		digits.Mul(digits, power)
	} else {
		divideEven(digits, power)
	}
	return digits.Int64(), digits.IsInt64()
}

// divideEven divides n by power, to the nearest, half to even.
func divideEven(n, power *big.Int) {
	away, rest := big.NewInt(int64(n.Sign())), new(big.Int)
	n.QuoRem(n, power, rest)
	switch half := rest.Abs(rest).Lsh(rest, 1).Cmp(power); {
	case half > 0, half == 0 && n.Bit(0) == 1:
	default:
		return
	}
	n.Add(n, away)
}
