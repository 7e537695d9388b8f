package table

import (
	"errors"
	"iter"
	"time"
)

// Projection is the partition projection of a table (projection.enabled=true): the
// ranges of its keys' values, and where each partition lies. It is immutable.
type Projection struct{}

// parseProjection reads projection.* and storage.location.template of a table's
// parameters. An error names the parameter.
func parseProjection(keys []Column, parameters map[string]string) (*Projection, error) {
	return nil, errors.New("not yet")
}

// InRange says whether a value of a level's key is one of the table's; an injected
// key takes any value that is not empty.
func (p *Projection) InRange(level int, value string, now time.Time) bool { return false }

// Values yields at most limit values of a level's key, the newest of a date key
// first, and how many there are in all. Of an injected key there are none to list:
// total is -1.
func (p *Projection) Values(level int, limit int, now time.Time) (values iter.Seq[string], total int64) {
	return func(func(string) bool) {}, 0
}

// Templated says that the table has a storage.location.template: what lies below
// its own location tells nothing of its partitions.
func (p *Projection) Templated() bool { return false }

// Location is where the partition of these values lies by the template, one value
// a key; "" without a template.
func (p *Projection) Location(values []string) string { return "" }
