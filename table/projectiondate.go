package table

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// timeUnit is a unit of time, finer ones first.
type timeUnit int

const (
	milliseconds timeUnit = iota
	seconds
	minutes
	hours
	days
	weeks
	months
	years
)

func (u timeUnit) String() string {
	return [...]string{"MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS", "MONTHS", "YEARS"}[u]
}

// length is a unit's: of months and years the shortest.
func (u timeUnit) length() time.Duration {
	const day = 24 * time.Hour
	return [...]time.Duration{
		time.Millisecond, time.Second, time.Minute, time.Hour, day, 7 * day, 28 * day, 365 * day,
	}[u]
}

// parseUnit reads a unit's name, with or without its S where one is optional.
func parseUnit(name string, singular bool) (timeUnit, bool) {
	name = strings.ToUpper(strings.TrimSpace(name))
	for u := milliseconds; u <= years; u++ {
		if name == u.String() || singular && name+"S" == u.String() {
			return u, true
		}
	}
	return 0, false
}

// civil are the fields of a UTC time, by their units.
func civil(at int64) [years + 1]int {
	t := time.Unix(at, 0).UTC()
	return [...]int{
		seconds: t.Second(), minutes: t.Minute(), hours: t.Hour(),
		days: t.Day(), months: int(t.Month()), years: t.Year(),
	}
}

// truncate is the beginning of the second, minute, … year of a time.
func truncate(at int64, u timeUnit) int64 {
	date := civil(at)
	for finer := seconds; finer < u; finer++ {
		date[finer] = 0
	}
	if u > days {
		date[days] = 1
	}
	if u > months {
		date[months] = 1
	}
	return time.Date(date[years], time.Month(date[months]), date[days],
		date[hours], date[minutes], date[seconds], 0, time.UTC).Unix()
}

// step is a distance of time: months, or seconds if those are 0.
type step struct{ months, seconds int64 }

func newStep(n int64, u timeUnit) step {
	switch u {
	case years:
		return step{months: 12 * n}
	case months:
		return step{months: n}
	default:
		return step{seconds: int64(u.length()/time.Millisecond) * n / 1000}
	}
}

// add goes n steps from a time. In a month that is too short a day is its last.
func (s step) add(at, n int64) int64 {
	if s.months == 0 {
		return at + n*s.seconds
	}
	date := civil(at)
	month := monthsOf(date) + n*s.months
	year := month / 12
	date[years], date[months] = int(year), int(month-12*year)+1
	last := time.Date(date[years], time.Month(date[months]+1), 0, 0, 0, 0, 0, time.UTC).Day()
	return time.Date(date[years], time.Month(date[months]), min(date[days], last),
		date[hours], date[minutes], date[seconds], 0, time.UTC).Unix()
}

// monthsOf counts the months since the year 0.
func monthsOf(date [years + 1]int) int64 { return int64(date[years])*12 + int64(date[months]) - 1 }

// count is how many steps lead from a time to the last one that is not after to,
// which is not before from.
func (s step) count(from, to int64) int64 {
	if s.months == 0 {
		return (to - from) / s.seconds
	}
	n := (monthsOf(civil(to)) - monthsOf(civil(from))) / s.months
	if s.add(from, n) > to {
		n--
	}
	return n
}

// fit is the step of n units between values that are written down to finest: a
// step that is shorter than this changes the text once in several steps.
func fit(n int64, u, finest timeUnit) (step, error) {
	if u >= finest {
		return newStep(n, u), nil
	}
	size, whole := u.length()/time.Millisecond, finest.length()/time.Millisecond
	if u == months {
		size, whole = 1, 12
	}
	total := n * int64(size)
	switch {
	case total <= int64(whole):
		return newStep(1, finest), nil
	case total%int64(whole) == 0 && (finest < months || u == months):
		return newStep(total/int64(whole), finest), nil
	}
	return step{}, fmt.Errorf("%d %s are no whole %s, which the format ends with", n, u, finest)
}

// bound is an end of a range: a time, or one that moves with the clock.
type bound struct {
	at    int64 // Unix seconds; of one that moves, the offset in units
	unit  timeUnit
	moves bool
}

func parseBound(text string, f *dateFormat) (bound, error) {
	if offset, ok := strings.CutPrefix(strings.ToUpper(strings.TrimSpace(text)), "NOW"); ok {
		return parseOffset(strings.TrimSpace(offset))
	}
	at, err := f.parse(text) // white space is part of it
	return bound{at: at}, err
}

// parseOffset reads what stands after NOW: nothing, or a sign, a number, a unit.
func parseOffset(text string) (bound, error) {
	if text == "" {
		return bound{moves: true, unit: seconds}, nil
	}
	number := strings.TrimLeft(text[1:], " \t")
	n := len(number) - len(strings.TrimLeft(number, "0123456789"))
	count, err := strconv.ParseInt(number[:n], 10, 64)
	unit, ok := parseUnit(number[n:], true)
	if err != nil || !ok || unit == milliseconds || text[0] != '-' && text[0] != '+' {
		return bound{}, errors.New("not of the form NOW-3YEARS")
	}
	if count > maxCount {
		return bound{}, fmt.Errorf("more than %d", maxCount)
	}
	if text[0] == '-' {
		count = -count
	}
	return bound{at: count, unit: unit, moves: true}, nil
}

// after says that a bound is after another at any time.
func (b bound) after(other bound) bool {
	if b.moves != other.moves {
		return false
	}
	if b.unit == other.unit {
		return b.at > other.at
	}
	return cmp.Compare(b.at, 0) > cmp.Compare(other.at, 0)
}

// time is the bound's at a time, as the format writes it.
func (b bound) time(now time.Time, f *dateFormat) int64 {
	at := b.at
	if b.moves {
		at = f.clamp(newStep(1, b.unit).add(f.clamp(now.Unix()), b.at))
	}
	return truncate(at, f.finest)
}

// clamp brings a time into what can be written.
func (f *dateFormat) clamp(at int64) int64 { return min(max(at, f.first), f.end-1) }

// dateKey has each step-th time from first to last, both included.
type dateKey struct {
	value       *dateFormat // of the values
	location    *dateFormat // of the parameters, and in a template
	first, last bound
	step        step
}

// parseDateKey reads a key of projected dates; typed says that its values are
// dates whatever the format of the locations is.
func parseDateKey(params keyParameters, typed bool) (projectedKey, error) {
	f, err := parseDateFormat(params.get("format"))
	if err != nil {
		return nil, params.errorf("format", "%w", err)
	}
	k := dateKey{value: f, location: f}
	if typed && f.finest >= days {
		if k.value, err = parseDateFormat("yyyy-MM-dd"); err != nil {
			return nil, err // never
		}
	}
	k.first, k.last, err = parseRange(params, func(text string) (bound, error) { return parseBound(text, f) })
	if err != nil {
		return nil, err
	}
	if k.first.after(k.last) {
		return nil, params.errorf("range", "%.100q ends before it begins", params.get("range"))
	}
	k.step, err = parseStep(params, f.finest)
	return k, err
}

// parseStep: without a unit it is the format's finest; hours and less need one.
func parseStep(params keyParameters, finest timeUnit) (step, error) {
	interval, err := positive(params, "interval", maxCount)
	if err != nil {
		return step{}, err
	}
	unit, name := finest, params.get("interval.unit")
	if strings.TrimSpace(name) != "" {
		var ok bool
		if unit, ok = parseUnit(name, false); !ok {
			return step{}, params.errorf("interval.unit", "%.100q is no unit", name)
		}
	} else if finest < days {
		return step{}, params.errorf("interval.unit", "missing, and the format has hours")
	}
	s, err := fit(interval, unit, finest)
	if err != nil {
		return step{}, params.errorf("interval", "%w", err)
	}
	return s, nil
}

func (k dateKey) inRange(value string, now time.Time) bool {
	at, err := k.value.parse(value)
	first, last := k.first.time(now, k.location), k.last.time(now, k.location)
	return err == nil && at >= first && at <= last && k.step.add(first, k.step.count(first, at)) == at
}

func (k dateKey) list(now time.Time) (total int64, at func(i int64) string) {
	first, last := k.first.time(now, k.location), k.last.time(now, k.location)
	if first > last {
		return 0, nil
	}
	n := k.step.count(first, last)
	return n + 1, func(i int64) string { return k.value.format(k.step.add(first, n-i)) }
}

func (k dateKey) path(value string) string {
	if k.value == k.location {
		return value
	}
	at, err := k.value.parse(value)
	if err != nil {
		return value
	}
	return k.location.format(k.location.clamp(at))
}
