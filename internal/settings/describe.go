package settings

import (
	"strconv"
	"strings"
	"time"
)

// Value is what v has for the setting, for JSON: nil where nothing was chosen, a list
// of texts for a List, bytes for a size; all else as a user would write it.
func (s Setting) Value(v *Values) any { return s.get(v) }

// Choices are the values that it may have, where these can be counted; else none.
func (s Setting) Choices() []string {
	switch {
	case s.Type == "":
		return []string{"true", "false"}
	case strings.Contains(s.Type, "|"):
		return strings.Split(s.Type, "|")
	}
	return nil
}

// Form says, for people, what a value looks like: "a time: 30s, 12h or 7d".
func (s Setting) Form() string {
	if choices := s.Choices(); len(choices) > 0 {
		last := len(choices) - 1
		return strings.Join(choices[:last], ", ") + " or " + choices[last]
	}
	form, known := map[string]string{
		"TIME":     "a time: 30s, 12h or 7d",
		"SIZE":     "a size: 16MiB, 10GiB; a bare number is bytes",
		"N":        "a number",
		"ID":       "a numeric id",
		"MODE":     "octal permission bits, at most 0777",
		"DIR":      "a directory",
		"FILE":     "a file",
		"URL":      "http://HOST:PORT or https://HOST:PORT",
		"LOCATION": "an absolute directory, file:///DIR or s3://BUCKET/PREFIX",
		"GLOB":     "a pattern of *, ? and [a-z]",
		"LIST":     "patterns, parted by commas",
		"ADDRESS":  "HOST:PORT, :PORT or unix:PATH",
		"NAME":     "a name",
		"REGION":   "a region such as eu-central-1",
		"KEY":      "a key's id, ARN or alias",
		"CLASS":    "a class such as STANDARD_IA",
		"ACCOUNT":  "the 12 digits of an account",
	}[s.Type]
	if !known {
		return s.Type
	}
	return form
}

// Masked takes what may be secret out of a URL: who is before its "@", and what follows
// its "?". bare: text may be one without a scheme, as a proxy's may. What is no URL
// stays as it is.
func Masked(text string, bare bool) string {
	scheme, rest, isURL := strings.Cut(text, "://")
	switch {
	case isURL:
		scheme += "://"
	case bare:
		scheme, rest = "", text
	default:
		return text
	}
	if before, _, queried := strings.Cut(rest, "?"); queried {
		rest = before + "?****"
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = "****" + rest[i:]
	}
	return scheme + rest
}

// orNone is x, or nil for the zero value.
func orNone[T comparable](x T) any {
	var zero T
	if x == zero {
		return nil
	}
	return x
}

// list is never nil: JSON has [] for none.
func list(values []string) any { return append([]string{}, values...) }

// durationText is as [ParseDuration] reads it, without the zeros of time.Duration's.
func durationText(d time.Duration) string {
	const day = 24 * time.Hour
	text := ""
	if days := d / day; days > 0 {
		text = strconv.FormatInt(int64(days), 10) + "d"
	}
	if d %= day; d > 0 {
		rest := d.String()
		if strings.HasSuffix(rest, "m0s") {
			rest = strings.TrimSuffix(rest, "0s")
		}
		if strings.HasSuffix(rest, "h0m") {
			rest = strings.TrimSuffix(rest, "0m")
		}
		text += rest
	}
	if text == "" {
		return "0"
	}
	return text
}
