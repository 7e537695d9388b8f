package catalogview

import (
	"fmt"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// refusal says why a location is not used.
type refusal struct {
	class   table.Class
	reason  string
	outside string // the directory that would have to be allowed; "" where that is no remedy
}

func denied(format string, args ...any) *refusal {
	return &refusal{class: table.ClassDenied, reason: fmt.Sprintf(format, args...)}
}

// place is a location that may be used.
type place struct {
	objectstore.Location
	real string // in a folder: absolute path without symbolic links
}

// down returns the directory that a path below the place leads to.
func (p place) down(path []string) objectstore.Location {
	loc := p.Location
	for _, c := range path {
		loc.Key += c + "/"
	}
	return loc
}

// resolver turns the locations of entries into places in one of the roots
// (rule 43): a folder's, or a bucket's.
type resolver interface {
	// resolve takes a location as an entry has it; secret names the credentials
	// that it is reached with, "" for the catalog's own.
	resolve(location, secret string) (place, *refusal)
	// inSQE says that a path below a place lies in a _sqe directory of the
	// catalog's root, or is one (rule 51).
	inSQE(p place, below []string) bool
	// oddity says what is unwise about a place, "" for nothing (rule 51).
	oddity(p place, database, name string) string
	// show returns a path below a place as people write it.
	show(p place, below []string) string
}

func newResolver(o Options) resolver {
	if o.Rootless {
		return bucketResolver{roots: bucketRoots(o.Roots), rootless: true, any: len(o.Roots) == 0}
	}
	if len(o.Roots) > 0 {
		if scheme, _ := splitScheme(o.Roots[0]); bucketScheme(scheme) {
			return bucketResolver{roots: bucketRoots(o.Roots)}
		}
	}
	return folderResolver{roots: o.Roots, eval: o.EvalSymlinks}
}

// maskUserinfo hides the credentials that a location has before the "@" of its
// authority. A secret key may hold a "/", which would end the authority: one with
// a ":", which no bucket has, goes on to the last "@".
func maskUserinfo(location string) string {
	scheme, rest := splitScheme(location)
	start := len(location) - len(rest)
	switch i := strings.Index(location, "://"); {
	case i >= 0:
		start = i + len("://")
	case scheme == "":
		return location // a path
	}
	rest = location[start:]
	if scheme != "file" { // a local path may have an "@"
		rest = strings.TrimLeft(rest, "/")
		start = len(location) - len(rest)
	}
	authority, _, _ := strings.Cut(rest, "/")
	if strings.Contains(authority, ":") {
		authority = rest
	}
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return location
	}
	return location[:start] + "…" + rest[at:]
}

// splitScheme takes "scheme:" off a URI; scheme is in lower case, "" for a path.
func splitScheme(location string) (scheme, rest string) {
	i := strings.IndexByte(location, ':')
	if i <= 0 {
		return "", location
	}
	for j, c := range []byte(location[:i]) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		other := c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'
		if !letter && (j == 0 || !other) {
			return "", location
		}
	}
	return strings.ToLower(location[:i]), location[i+1:]
}
