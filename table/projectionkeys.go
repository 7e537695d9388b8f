package table

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// injectedKey takes what a query gives.
type injectedKey struct{}

func (injectedKey) inRange(value string, _ time.Time) bool                { return value != "" }
func (injectedKey) list(time.Time) (total int64, at func(i int64) string) { return -1, nil }
func (injectedKey) path(value string) string                              { return value }

// enumKey has the values that are listed.
type enumKey struct {
	values []string
	is     map[string]bool
}

// parseEnum: white space is part of a value. One named twice counts once; none
// is empty, as there would be no directory for it.
func parseEnum(params keyParameters) (projectedKey, error) {
	k := enumKey{is: map[string]bool{}}
	for value := range strings.SplitSeq(params.get("values"), ",") {
		if value != "" && !k.is[value] {
			k.is[value] = true
			k.values = append(k.values, value)
		}
	}
	if len(k.values) == 0 {
		return nil, params.errorf("values", "no values")
	}
	return k, nil
}

func (k enumKey) inRange(value string, _ time.Time) bool { return k.is[value] }

func (k enumKey) list(time.Time) (total int64, at func(i int64) string) {
	return int64(len(k.values)), func(i int64) string { return k.values[i] }
}

func (k enumKey) path(value string) string { return value }

// integerKey has each interval-th number from first to last, both included.
type integerKey struct {
	first, last, interval int64
	digits                int // padded with zeros to this width, the sign included
}

func parseInteger(params keyParameters) (projectedKey, error) {
	first, last, err := parseRange(params, parseWhole)
	if err != nil {
		return nil, err
	}
	if first > last {
		return nil, params.errorf("range", "%d is more than %d", first, last)
	}
	interval, err := positive(params, "interval", math.MaxInt64)
	if err != nil {
		return nil, err
	}
	digits, err := positive(params, "digits", maxDigits)
	if err != nil {
		return nil, err
	}
	return integerKey{first, last, interval, int(digits)}, nil
}

func parseWhole(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, errors.New("not a whole number of 64 bits") // without the text, which may be long
	}
	return n, nil
}

// parseRange reads the two ends of a range.
func parseRange[T any](params keyParameters, parse func(text string) (T, error)) (first, last T, err error) {
	left, right, ok := strings.Cut(params.get("range"), ",")
	if !ok || strings.Contains(right, ",") {
		return first, last, params.errorf("range", "%.100q is not two values with a comma between them", params.get("range"))
	}
	if first, err = parse(left); err != nil {
		return first, last, params.errorf("range", "%.100q: %w", left, err)
	}
	if last, err = parse(right); err != nil {
		return first, last, params.errorf("range", "%.100q: %w", right, err)
	}
	return first, last, nil
}

// positive reads a number from 1 to most; 1 if there is none.
func positive(params keyParameters, name string, most int64) (int64, error) {
	text := strings.TrimSpace(params.get(name))
	if text == "" {
		return 1, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, params.errorf(name, "%.100q is not a whole number from 1 to %d", text, most)
	}
	return n, nil
}

func (k integerKey) inRange(value string, _ time.Time) bool {
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && n >= k.first && n <= k.last &&
		(uint64(n)-uint64(k.first))%uint64(k.interval) == 0 && k.format(n) == value
}

// list: the distance of two int64 fits in a uint64, and the sums wrap around.
func (k integerKey) list(time.Time) (total int64, at func(i int64) string) {
	steps := (uint64(k.last) - uint64(k.first)) / uint64(k.interval)
	total = math.MaxInt64
	if steps < math.MaxInt64 {
		total = int64(steps) + 1
	}
	return total, func(i int64) string {
		return k.format(int64(uint64(k.first) + uint64(i)*uint64(k.interval)))
	}
}

func (k integerKey) path(value string) string { return value }

func (k integerKey) format(n int64) string { return fmt.Sprintf("%0*d", k.digits, n) }
