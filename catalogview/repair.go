package catalogview

import (
	"context"
	"errors"
)

// Repair describes what View.Repair is to do.
type Repair struct {
	DryRun bool // only find
	// Progress, if not nil, is told how many directories were looked at, how many of
	// these are to be registered, and how many were. It may be called concurrently.
	Progress func(looked, missing, registered int)
}

// Repaired is what View.Repair found and did. The lists hold the first 10,000.
type Repaired struct {
	Table      string            `json:"table"`
	DryRun     bool              `json:"dry_run"`
	Looked     int               `json:"looked"`     // partition directories in the store
	Missing    int               `json:"missing"`    // that the catalog did not have
	Registered int               `json:"registered"` // of these; of a dry run 0
	Added      []string          `json:"added"`      // those that are missing, by their path below the table
	Skipped    []RepairedSkipped `json:"skipped,omitempty"`
	Failed     []RepairedSkipped `json:"failed,omitempty"`
}

// RepairedSkipped is a directory that was not registered, and why.
type RepairedSkipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Repair registers the partitions of the table at path that the store has and the
// catalog does not ("Registering partitions"): it adds, and removes nothing. A failed
// listing is an error, and never taken for an empty one; what was registered by then
// stays, and is told. errors.ErrUnsupported where the table's partitions are not in
// the catalog, or partitions are not written.
func (v *View) Repair(ctx context.Context, path string, how Repair) (Repaired, error) {
	return Repaired{}, errors.ErrUnsupported
}
