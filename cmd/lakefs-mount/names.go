package main

import (
	"errors"
	"fmt"

	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

// heldNames are the names of files that are no data yet.
type heldNames struct{ temporary, local, backup fs.Patterns }

// parseNames compiles the patterns that the settings have. The error names each
// setting that has a bad one.
func parseNames(r settings.Resolved) (heldNames, error) {
	var n heldNames
	var problems []error
	for _, list := range []struct {
		name string
		text []string
		at   *fs.Patterns
	}{
		{"temporary-names", r.TemporaryNames, &n.temporary},
		{"local-names", r.LocalNames, &n.local},
		{"backup-names", r.BackupNames, &n.backup},
	} {
		var err error
		if *list.at, err = fs.ParsePatterns(list.text); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", r.Where(list.name), err))
		}
	}
	return n, errors.Join(problems...)
}
