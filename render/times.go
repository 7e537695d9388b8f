package render

const secondsADay = 86400

// ticks is how many of a unit a second has.
func (u unit) ticks() int64 { return int64(powerOfTen(int(u))) }

// appendDate appends a day, counted from 1970-01-01, as 2026-01-31: in the proleptic
// Gregorian calendar, with astronomical years (0000 is 1 BC) and a sign before years
// that have other than four digits.
func (s style) appendDate(dst []byte, days int64) []byte {
	return s.quote(appendDay(s.quote(dst), days))
}

// appendTimeOfDay appends a time since midnight as 12:34:56.123456, with all digits of the
// unit. One that is no time of a day, which a file may have, is shown as what it says: with
// more hours, or with a sign before it.
func (s style) appendTimeOfDay(dst []byte, n int64, from, to unit) []byte {
	dst = s.quote(dst)
	magnitude, ticks := uint64(n), uint64(from.ticks())
	if n < 0 {
		dst, magnitude = append(dst, '-'), -magnitude
	}
	return s.quote(appendClock(dst, int64(magnitude/ticks), rescale(int64(magnitude%ticks), from, to), to))
}

// appendTimestamp appends a time since 1970 as 2026-01-31T12:34:56.123456, with all digits
// of the unit; an instant ends in Z.
func (s style) appendTimestamp(dst []byte, n int64, u unit, utc bool) []byte {
	second, fraction := floorDiv(n, u.ticks())
	days, second := floorDiv(second, secondsADay)
	return s.appendMoment(dst, days, second, fraction, u, utc)
}

// appendMoment appends a day, a second of it and a fraction of that.
func (s style) appendMoment(dst []byte, days, second, fraction int64, u unit, utc bool) []byte {
	dst = append(appendDay(s.quote(dst), days), 'T')
	dst = appendClock(dst, second, fraction, u)
	if utc {
		dst = append(dst, 'Z')
	}
	return s.quote(dst)
}

// appendInterval appends a span of months, days and milliseconds as ISO 8601 has it:
// P14M3DT4.500S. None of the three is turned into another: they have no fixed rate.
func (s style) appendInterval(dst []byte, months, days, ms uint32) []byte {
	dst = append(s.quote(dst), 'P')
	dst = append(appendUint(dst, uint64(months)), 'M')
	dst = append(appendUint(dst, uint64(days)), 'D', 'T')
	dst = append(appendUint(dst, uint64(ms/1000)), '.')
	return s.quote(append(appendDigits(dst, uint64(ms%1000), 3), 'S'))
}

func appendClock(dst []byte, second, fraction int64, u unit) []byte {
	hour := second / 3600
	if hour < 100 {
		dst = appendTwo(dst, hour)
	} else {
		dst = appendInt(dst, hour)
	}
	dst = appendTwo(append(dst, ':'), second/60%60)
	dst = appendTwo(append(dst, ':'), second%60)
	if u == seconds {
		return dst
	}
	return appendDigits(append(dst, '.'), uint64(fraction), int(u))
}

func appendTwo(dst []byte, n int64) []byte { return append(dst, '0'+byte(n/10), '0'+byte(n%10)) }

// appendDay appends a date. The year is counted from March, so that the day that some have
// more is their last (Howard Hinnant's civil_from_days).
func appendDay(dst []byte, days int64) []byte {
	era, day := floorDiv(days+719468, 146097) // of 400 years, from 0000-03-01
	year := (day - day/1460 + day/36524 - day/146096) / 365
	day -= 365*year + year/4 - year/100
	shifted := (5*day + 2) / 153
	month := shifted + 3
	year += era * 400
	if month > 12 {
		month -= 12
		year++
	}
	switch {
	case year < 0:
		dst = append(dst, '-')
		year = -year
	case year > 9999:
		dst = append(dst, '+')
	}
	if year > 9999 {
		dst = appendInt(dst, year)
	} else {
		dst = appendDigits(dst, uint64(year), 4)
	}
	dst = appendTwo(append(dst, '-'), month)
	return appendTwo(append(dst, '-'), day-(153*shifted+2)/5+1)
}

// floorDiv divides towards minus infinity: the rest is not negative.
func floorDiv(n, by int64) (quotient, rest int64) {
	quotient, rest = n/by, n%by
	if rest < 0 {
		quotient--
		rest += by
	}
	return quotient, rest
}
