package table

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// dateFormat is a Java date pattern (DateTimeFormatter) of the letters that make
// up a point in time: y or u, M or L, d, H, m, s. It writes and reads the same
// texts: what it reads is what it would have written.
type dateFormat struct {
	tokens     []dateToken
	finest     timeUnit // the precision
	first, end int64    // Unix seconds: what it can write, end excluded
}

// dateToken is a literal or a field of a date.
type dateToken struct {
	literal string
	field   timeUnit // of no literal
	letters int      // 0 of a literal
}

var errFormat = errors.New("not of the format")

func parseDateFormat(pattern string) (*dateFormat, error) {
	if pattern == "" {
		return nil, errors.New("missing")
	}
	if len(pattern) > maxFormat {
		return nil, fmt.Errorf("longer than %d bytes", maxFormat)
	}
	f := &dateFormat{}
	for rest := pattern; rest != ""; {
		token, n, err := nextToken(rest)
		if err != nil {
			return nil, err
		}
		f.tokens = append(f.tokens, token)
		rest = rest[n:]
	}
	return f, f.check()
}

// nextToken reads a token, and how long it is in the pattern.
func nextToken(pattern string) (dateToken, int, error) {
	c := pattern[0]
	switch {
	case c == '\'':
		return quoted(pattern)
	case strings.IndexByte("[]{}#", c) >= 0:
		return dateToken{}, 0, fmt.Errorf("%q is not supported", c)
	case c|0x20 < 'a' || c|0x20 > 'z':
		return dateToken{literal: pattern[:1]}, 1, nil
	}
	n := len(pattern) - len(strings.TrimLeft(pattern, pattern[:1]))
	field, widths := fieldOf(c)
	if strings.IndexByte(widths, byte('0'+min(n, 9))) < 0 {
		return dateToken{}, 0, fmt.Errorf("%q is not supported", pattern[:n])
	}
	return dateToken{field: field, letters: n}, n, nil
}

// fieldOf is the field of a letter, and how often it may stand.
func fieldOf(letter byte) (field timeUnit, widths string) {
	switch letter {
	case 'y', 'u':
		return years, "124"
	case 'M', 'L':
		return months, "1234"
	case 'd':
		return days, "12"
	case 'H':
		return hours, "12"
	case 'm':
		return minutes, "12"
	case 's':
		return seconds, "12"
	}
	return 0, ""
}

// quoted reads a text in quotes; two quotes are one.
func quoted(pattern string) (dateToken, int, error) {
	var b strings.Builder
	for i := 1; i < len(pattern); i++ {
		if pattern[i] != '\'' {
			b.WriteByte(pattern[i])
			continue
		}
		if i+1 < len(pattern) && pattern[i+1] == '\'' {
			b.WriteByte('\'')
			i++
			continue
		}
		if i == 1 {
			b.WriteByte('\'')
		}
		return dateToken{literal: b.String()}, i + 1, nil
	}
	return dateToken{}, 0, errors.New("a quote is not closed")
}

// check finds the precision and what can be written. Each field down to the
// finest has to be there, and it must be seen where a number ends.
func (f *dateFormat) check() error {
	var has [years + 1]bool
	firstYear, endYear := 1, 10000
	f.finest = years
	for i, t := range f.tokens {
		if t.letters == 0 {
			continue
		}
		has[t.field] = true
		f.finest = min(f.finest, t.field)
		if t.field == years && t.letters == 2 {
			firstYear, endYear = 2000, 2100
		}
		if t.letters == 1 && i+1 < len(f.tokens) && f.tokens[i+1].startsWithDigit() {
			return errors.New("a number of one letter must not have digits after it")
		}
	}
	for _, u := range []timeUnit{years, months, days, hours, minutes, seconds} {
		if u >= f.finest && !has[u] {
			return fmt.Errorf("has no %s", strings.TrimSuffix(strings.ToLower(u.String()), "s"))
		}
	}
	f.first = time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	f.end = time.Date(endYear, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	return nil
}

func (t dateToken) startsWithDigit() bool {
	if t.letters > 0 {
		return !t.named()
	}
	return t.literal != "" && t.literal[0] >= '0' && t.literal[0] <= '9'
}

// named says that a month stands by its name.
func (t dateToken) named() bool { return t.field == months && t.letters > 2 }

// format writes a time, in Unix seconds, that lies in what can be written.
func (f *dateFormat) format(at int64) string {
	date := civil(at)
	var b strings.Builder
	for _, t := range f.tokens {
		switch {
		case t.letters == 0:
			b.WriteString(t.literal)
		case t.named():
			b.WriteString(t.monthName(date[months]))
		case t.field == years && t.letters == 2:
			fmt.Fprintf(&b, "%02d", date[years]%100)
		default:
			fmt.Fprintf(&b, "%0*d", t.letters, date[t.field])
		}
	}
	return b.String()
}

func (t dateToken) monthName(month int) string {
	name := time.Month(month).String()
	if t.letters == 3 {
		name = name[:3]
	}
	return name
}

// parse reads what format writes, and nothing else: it returns Unix seconds.
func (f *dateFormat) parse(text string) (int64, error) {
	date := [years + 1]int{years: 1, months: 1, days: 1}
	rest := text
	for _, t := range f.tokens {
		var ok bool
		if t.letters == 0 {
			rest, ok = strings.CutPrefix(rest, t.literal)
		} else {
			date[t.field], rest, ok = t.read(rest)
		}
		if !ok {
			return 0, errFormat
		}
	}
	at := time.Date(date[years], time.Month(date[months]), date[days],
		date[hours], date[minutes], date[seconds], 0, time.UTC).Unix()
	// A day or an hour that is not there is written otherwise.
	if rest != "" || at < f.first || at >= f.end || f.format(at) != text {
		return 0, errFormat
	}
	return at, nil
}

// read reads a field from the beginning of a text.
func (t dateToken) read(text string) (value int, rest string, ok bool) {
	if t.named() {
		for month := 1; month <= 12; month++ {
			if rest, ok = strings.CutPrefix(text, t.monthName(month)); ok {
				return month, rest, true
			}
		}
		return 0, text, false
	}
	most := t.letters
	if most == 1 {
		most = 2
		if t.field == years {
			most = 4
		}
	}
	n := 0
	for n < min(most, len(text)) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	if n < t.letters {
		return 0, text, false
	}
	value, err := strconv.Atoi(text[:n])
	if t.field == years && t.letters == 2 {
		value += 2000
	}
	return value, text[n:], err == nil
}
