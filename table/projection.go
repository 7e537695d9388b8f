package table

import (
	"fmt"
	"iter"
	"strings"
	"time"
)

// Projection is the partition projection of a table (projection.enabled=true): the
// ranges of its keys' values, and where each partition lies. It is immutable.
//
// Nothing is expanded: each call costs what it returns, however wide a range is.
type Projection struct {
	keys     []projectedKey // one a level
	template []piece        // empty: none
}

// projectedKey is the projection of one key.
type projectedKey interface {
	inRange(value string, now time.Time) bool
	// list returns how many values there are, and the i-th as they are listed;
	// -1 if they cannot be listed.
	list(now time.Time) (total int64, at func(i int64) string)
	// path is what stands in a location for a value in range.
	path(value string) string
}

// piece of a location template: a literal, or the value of a level.
type piece struct {
	literal string
	level   int // -1 of a literal
}

// Limits, so that no entry makes a call long: a value is a directory's name, a
// location is a bucket and a key of 1,024 bytes.
const (
	maxTemplate = 8192
	maxFormat   = 255
	maxDigits   = 100
	maxCount    = 1_000_000_000 // of an interval of dates, and in NOW-3YEARS
)

const templateParameter = "storage.location.template"

// parseProjection reads projection.* and storage.location.template of a table's
// parameters. An error names the parameter.
func parseProjection(keys []Column, parameters map[string]string) (*Projection, error) {
	template, err := parseTemplate(keys, parameters[templateParameter])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", templateParameter, err)
	}
	p := &Projection{template: template}
	for _, key := range keys {
		k, err := parseKey(key, keyParameters{"projection." + key.Name + ".", parameters}, p.Templated())
		if err != nil {
			return nil, err
		}
		p.keys = append(p.keys, k)
	}
	return p, nil
}

// keyParameters are the parameters of one key.
type keyParameters struct {
	prefix string
	all    map[string]string
}

func (k keyParameters) get(name string) string { return k.all[k.prefix+name] }

func (k keyParameters) errorf(name, format string, args ...any) error {
	return fmt.Errorf("%s%s: %w", k.prefix, name, fmt.Errorf(format, args...))
}

func parseKey(key Column, params keyParameters, templated bool) (projectedKey, error) {
	switch kind := strings.ToLower(strings.TrimSpace(params.get("type"))); kind {
	case "enum":
		return parseEnum(params)
	case "integer":
		return parseInteger(params)
	case "date":
		// Elsewhere the directories of the store are shown as they are.
		return parseDateKey(params, templated && baseType(key.Type) == "date")
	case "injected":
		return injectedKey{}, nil
	case "":
		return nil, params.errorf("type", "missing")
	default:
		return nil, params.errorf("type", "%.100q is not enum, integer, date or injected", kind)
	}
}

// parseTemplate splits a template at its ${key}; each key has to be in it.
func parseTemplate(keys []Column, template string) ([]piece, error) {
	if len(template) > maxTemplate {
		return nil, fmt.Errorf("longer than %d bytes", maxTemplate)
	}
	var pieces []piece
	seen := make([]bool, len(keys))
	for rest := template; rest != ""; {
		literal, after, found := strings.Cut(rest, "${")
		if literal != "" {
			pieces = append(pieces, piece{literal, -1})
		}
		if !found {
			break
		}
		name, tail, closed := strings.Cut(after, "}")
		level := levelOf(keys, name)
		if !closed || level < 0 {
			return nil, fmt.Errorf("${%.100s is no partition key", after)
		}
		seen[level] = true
		pieces = append(pieces, piece{level: level})
		rest = tail
	}
	for level, key := range keys {
		if template != "" && !seen[level] {
			return nil, fmt.Errorf("lacks ${%s}", key.Name)
		}
	}
	return pieces, nil
}

// levelOf is the level of the key of this name, -1 if there is none.
func levelOf(keys []Column, name string) int {
	for level, key := range keys {
		if key.Name == name {
			return level
		}
	}
	return -1
}

// InRange says whether a value of a level's key is one of the table's, written as
// the projection writes it; an injected key takes any value that is not empty.
func (p *Projection) InRange(level int, value string, now time.Time) bool {
	return level >= 0 && level < len(p.keys) && p.keys[level].inRange(value, now)
}

// Values yields at most limit values of a level's key, each once, the newest of a
// date key first, integers ascending and enums as declared, and how many there are
// in all (the greatest int64 if there are more). Of an injected key there are none
// to list: total is -1.
//
// The values of a date key are in its projection's format; but in a table with a
// template, those of a key of type DATE are YYYY-MM-DD, and the format is the
// template's alone.
func (p *Projection) Values(level int, limit int, now time.Time) (values iter.Seq[string], total int64) {
	if level < 0 || level >= len(p.keys) {
		return func(func(string) bool) {}, 0
	}
	total, at := p.keys[level].list(now)
	n := min(total, int64(limit))
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(at(i)) {
				return
			}
		}
	}, total
}

// Templated says that the table has a storage.location.template: what lies below
// its own location tells nothing of its partitions.
func (p *Projection) Templated() bool { return len(p.template) > 0 }

// Location is where the partition of these values lies by the template, one value
// a key, not escaped; it ends in "/" if the template does. "" without a template,
// or with fewer values than keys.
func (p *Projection) Location(values []string) string {
	if len(values) < len(p.keys) {
		return ""
	}
	var b strings.Builder
	for _, piece := range p.template {
		if piece.level < 0 {
			b.WriteString(piece.literal)
		} else {
			b.WriteString(p.keys[piece.level].path(values[piece.level]))
		}
	}
	return b.String()
}
