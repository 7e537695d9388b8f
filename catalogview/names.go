package catalogview

import (
	"fmt"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const (
	maxName      = 255
	entrySuffix  = ".json"
	markerSuffix = "_$folder$"
	controlName  = ".lakefs"
)

// badName says that no path has a component of this name.
func badName(name string) bool {
	return name == "" || name == "." || name == ".." || len(name) > maxName || strings.ContainsAny(name, "/\x00")
}

// split returns a path's components, none for the root.
func split(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	comps := strings.Split(path, "/")
	for _, c := range comps {
		if len(c) > maxName {
			return nil, fmt.Errorf("%.40q…: %w", c, ErrNameTooLong)
		}
		if badName(c) {
			return nil, notExist(path)
		}
	}
	return comps, nil
}

func notExist(path string) error { return fmt.Errorf("%q: %w", path, objectstore.ErrNotExist) }

// entryName returns the name right below prefix that a listing's entry stands
// for. ok is false for the prefix itself and for a key outside it.
func entryName(prefix string, e objectstore.Entry) (name string, ok bool) {
	name, ok = strings.CutPrefix(e.Key, prefix)
	if !ok || name == "" {
		return "", false
	}
	if e.Prefix {
		name = strings.TrimSuffix(name, "/")
	}
	return name, true
}

// entryOf returns the name whose entry base may be.
func entryOf(base string) (name string, ok bool) {
	name, ok = strings.CutSuffix(base, entrySuffix)
	return name, ok && name != ""
}

// hasEntry says that a name's NAME.json is no longer than a name may be.
func hasEntry(name string) bool { return len(name)+len(entrySuffix) <= maxName }

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
