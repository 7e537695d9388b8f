package objectstore

import "context"

// VersionDeleter is a Store that removes one version of an object. A store
// without [Renamer] renames by Copy and DeleteVersion.
type VersionDeleter interface {
	// DeleteVersion removes o if it is what its location holds: ErrChanged if
	// another version is there, which stays. Where nothing is there it is a
	// success. ErrUnavailable: it may have happened; asking again is harmless.
	DeleteVersion(ctx context.Context, o Object) error
}
