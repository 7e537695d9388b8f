package settings

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func toggle(name, usage string, at func(*Values) *bool) Setting {
	s := Setting{Name: name, Default: "false", Usage: usage, set: func(v *Values, raw string) error {
		on, err := strconv.ParseBool(raw)
		if err != nil {
			return errors.New("want true or false")
		}
		*at(v) = on
		return nil
	}}
	return s.with(func(v *Values) any { return *at(v) })
}

func choice(name, usage, def string, allowed []string, at func(*Values) *string) Setting {
	s := Setting{Name: name, Type: strings.Join(allowed, "|"), Default: def, Usage: usage, set: func(v *Values, raw string) error {
		for _, a := range allowed {
			if raw == a {
				*at(v) = raw
				return nil
			}
		}
		return notOneOf(allowed)
	}}
	return s.with(func(v *Values) any { return orNone(*at(v)) })
}

// with adds how the value is told.
func (s Setting) with(get func(v *Values) any) Setting {
	s.get = get
	return s
}

func notOneOf(allowed []string) error {
	return fmt.Errorf("want one of %s", strings.Join(allowed, ", "))
}

func id(name, usage string, at func(*Values) **uint32) Setting {
	s := Setting{Name: name, Type: "ID", Usage: usage, Example: "1000", set: func(v *Values, raw string) error {
		n, err := strconv.ParseUint(raw, 10, 32)
		if err != nil || n == math.MaxUint32 {
			return errors.New("want a numeric id")
		}
		id := uint32(n)
		*at(v) = &id
		return nil
	}}
	return s.with(func(v *Values) any { return *at(v) })
}

func mode(name, usage, def string, at func(*Values) *uint32) Setting {
	s := Setting{Name: name, Type: "MODE", Default: def, Usage: usage, set: func(v *Values, raw string) error {
		n, err := strconv.ParseUint(raw, 8, 32)
		if err != nil || n > 0o777 {
			return errors.New("want octal permission bits, at most 0777")
		}
		*at(v) = uint32(n)
		return nil
	}}
	return s.with(func(v *Values) any { return fmt.Sprintf("%04o", *at(v)) })
}

func duration(name, usage, def string, at func(*Values) *time.Duration) Setting {
	s := Setting{Name: name, Type: "TIME", Default: def, Usage: usage, set: func(v *Values, raw string) error {
		d, err := ParseDuration(raw)
		*at(v) = d
		return err
	}}
	return s.with(func(v *Values) any { return durationText(*at(v)) })
}

func size(name, usage, def string, at func(*Values) *int64) Setting {
	s := Setting{Name: name, Type: "SIZE", Default: def, Usage: usage, Example: "10GiB", set: func(v *Values, raw string) error {
		n, err := ParseSize(raw)
		if err == nil && n == 0 {
			err = errors.New("want more than 0 bytes")
		}
		*at(v) = n
		return err
	}}
	return s.with(func(v *Values) any { return orNone(*at(v)) })
}

// sizeFrom is a size of at least so many bytes.
func sizeFrom(least int64, name, usage, def string, at func(*Values) *int64) Setting {
	s := size(name, usage, def, at)
	set := s.set
	s.set = func(v *Values, raw string) error {
		err := set(v, raw)
		if err == nil && *at(v) < least {
			err = fmt.Errorf("want at least %dMiB", least>>20)
		}
		return err
	}
	return s
}

func count(name, usage, def string, at func(*Values) *int) Setting {
	s := Setting{Name: name, Type: "N", Default: def, Usage: usage, set: func(v *Values, raw string) error {
		n, err := strconv.ParseUint(raw, 10, 31)
		if err != nil || n == 0 {
			return errors.New("want a number from 1 on")
		}
		*at(v) = int(n)
		return nil
	}}
	return s.with(func(v *Values) any { return *at(v) })
}

// countFrom0 is a count that may be 0.
func countFrom0(name, usage, def string, at func(*Values) *int) Setting {
	s := Setting{Name: name, Type: "N", Default: def, Usage: usage, set: func(v *Values, raw string) error {
		n, err := strconv.ParseUint(raw, 10, 31)
		if err != nil {
			return errors.New("want a number from 0 on")
		}
		*at(v) = int(n)
		return nil
	}}
	return s.with(func(v *Values) any { return *at(v) })
}

// addLocation takes a directory by absolute path or file: URI, or s3://BUCKET/PREFIX.
func addLocation(v *Values, raw string) error {
	if uri, ours, err := s3Location(raw); ours {
		v.AllowLocation = append(v.AllowLocation, uri)
		return err
	}
	path := raw
	if rest, isURI := strings.CutPrefix(raw, "file:"); isURI {
		path = rest
		if after, hasHost := strings.CutPrefix(rest, "//"); hasHost {
			path = after
		}
	}
	if !filepath.IsAbs(path) {
		return errors.New("want an absolute directory, file:///DIR or s3://BUCKET/PREFIX")
	}
	v.AllowLocation = append(v.AllowLocation, filepath.Clean(path))
	return nil
}

// ParseSize reads a number of bytes: digits, perhaps with a decimal point, and
// a unit: none or B; K, M, G, T and KiB, MiB, GiB, TiB (1024); KB, MB, GB, TB
// (1000); without regard to case.
func ParseSize(s string) (int64, error) {
	number := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	unit := strings.ToUpper(s[len(number):])
	factor, known := unitFactor(unit)
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !known || strings.ContainsAny(number, "eExXpP_+-") || n*factor >= math.MaxInt64 {
		return 0, errors.New("want a size such as 512MiB")
	}
	return int64(n * factor), nil
}

func unitFactor(unit string) (float64, bool) {
	if unit == "" || unit == "B" {
		return 1, true
	}
	power := strings.IndexByte("KMGT", unit[0]) + 1
	switch {
	case power == 0:
		return 0, false
	case unit[1:] == "" || unit[1:] == "IB":
		return math.Pow(1024, float64(power)), true
	case unit[1:] == "B":
		return math.Pow(1000, float64(power)), true
	}
	return 0, false
}

// ParseDuration reads a time as time.ParseDuration does, and days ("7d",
// "1d12h"); "0" needs no unit. It is never negative.
func ParseDuration(s string) (time.Duration, error) {
	wrong := errors.New("want a time such as 30s, 12h or 7d")
	var days uint64
	rest := s
	if before, after, found := strings.Cut(s, "d"); found {
		var err error
		if days, err = strconv.ParseUint(before, 10, 16); err != nil {
			return 0, wrong
		}
		rest = after
	}
	var d time.Duration
	if rest != "" || s == "" {
		var err error
		if d, err = time.ParseDuration(rest); err != nil || d < 0 {
			return 0, wrong
		}
	}
	d += time.Duration(days) * 24 * time.Hour
	if d < 0 { // more than it can hold
		return 0, wrong
	}
	return d, nil
}
