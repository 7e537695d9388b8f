// Package staging holds bytes that no reader may see yet: the spool of each
// write, and a record of it that survives a crash.
//
// A write lives in <staging>/<write id>/ as data (the spool), write.json (its
// [Record]) and, when it began as an older object, blocks (one byte a block of
// 128 KiB: 1 where the spool, not the old object, has the bytes). A [Rename] in
// a store without one has a record alone, and so has a [Batch]. There is no
// shared journal: recovery reads the directory, and so can a person.
//
// In a store that takes objects in parts ([objectstore.Multipart]) a large file goes up
// while it is written, to an upload that nobody sees and that its record names: see
// [NewWrite].Final and [Frozen.Upload]. What is sent counts only as long as the spool
// has the same bytes. No upload is ever aborted but one that a record names.
//
// Guarantees: what [File.Sync] acknowledged survives kill -9 and power loss; a
// record is replaced by rename and is never half written; one [Area] has one
// owner at a time; nothing here is ever visible to a reader of the lake.
package staging

import (
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// State says how far a write has come.
type State string

// The states of a write.
const (
	Staged     State = "staged"     // being written, or waiting for a rename or a complete file
	Publishing State = "publishing" // whole and durable in the spool; the store was asked
	Torn       State = "torn"       // its writer was killed by a signal
	Failed     State = "failed"     // its publish failed; Error says why
	Renaming   State = "renaming"   // no write: Source is being copied to Target and removed; see [Rename]
	Aborting   State = "aborting"   // dropped or published; Aborts are yet to be freed in the store, no bytes are left here
)

// Hold says why a file that its writers have closed is not published.
type Hold string

// The holds.
const (
	Unheld    Hold = ""          // it is published when its writers have closed it
	Temporary Hold = "temporary" // a name that is about to be renamed or removed: it waits for that, for a while
	Local     Hold = "local"     // it lives in the mount alone until it is renamed to a name that is not
)

// Resident reports whether r is a file that lives in the mount alone, and waits for
// nobody to publish it.
func (r Record) Resident() bool { return r.Hold == Local && r.State == Staged }

// Attributes of the file to be, as its writer set them.
type Attributes struct {
	Mode     uint32    `json:"mode"` // permission bits, 07777
	UID      uint32    `json:"uid"`
	GID      uint32    `json:"gid"`
	MTime    time.Time `json:"mtime"`
	MTimeSet bool      `json:"mtime_set,omitempty"` // set by utimens, not by writing
}

// Record is write.json. It is a copy wherever it is handed out.
type Record struct {
	Version int                  `json:"version"` // 1
	ID      string               `json:"id"`      // write id, a UUID
	State   State                `json:"state"`
	Target  objectstore.Location `json:"target"`
	Path    string               `json:"path"`             // in the mount, for people: "sales/orders/dt=1/f"
	Prefix  objectstore.Location `json:"prefix"`           // the table's location: Target stays below it (rule 27)
	Format  string               `json:"format,omitempty"` // what Target must hold to be published ("parquet"; "": anything)
	Cond    objectstore.Cond     `json:"cond"`             // of the publish
	Base    *objectstore.Object  `json:"base,omitempty"`   // the object that it began as; nil: a new file
	// Source is the version that a [Rename] moves; nil in all other records.
	Source *objectstore.Object `json:"source,omitempty"`
	Hold   Hold                `json:"hold,omitempty"`
	Append bool                `json:"append,omitempty"` // nothing but appends to Base happened
	Whole  bool                `json:"whole,omitempty"`  // the spool has every byte: Base and blocks are not needed
	Data   string              `json:"data,omitempty"`   // the spool's name beside the record; "": data
	Size   int64               `json:"size"`             // bytes at the last change of the record; the spool's own length is the truth
	Attributes
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
	Error   string    `json:"error,omitempty"`
	// Copied is the object whose first CopiedSize bytes lie under the spool in the
	// place of Base's ([File.CopyFrom]); nil: Base's do.
	Copied     *objectstore.Object `json:"copied,omitempty"`
	CopiedSize int64               `json:"copied_size,omitempty"`
	// Sum is the checksum of all bytes, where the spool has them and they may not be
	// on the disk yet: what is published anew after a crash must have it. "": they are.
	Sum string `json:"sum,omitempty"`
	// Upload is the multipart upload under way, and Parts what it consists of, from
	// when it has every byte on; Aborts are the uploads that are not needed any more.
	// Nothing but what a record names here is ever aborted.
	Upload *objectstore.Upload  `json:"upload,omitempty"`
	Parts  []objectstore.Part   `json:"parts,omitempty"`
	Aborts []objectstore.Upload `json:"aborts,omitempty"`
	// Unsettled: the last publish failed for its caller, and may have taken effect
	// all the same. It stays until the next publish begins.
	Unsettled bool `json:"unsettled,omitempty"`
	// Members are the files of a [Batch]; none in all other records.
	Members []BatchMember `json:"members,omitempty"`
	// Clear are the objects that a [Batch] removes before it publishes.
	Clear []Cleared `json:"clear,omitempty"`
	// RegisterLast, of a [Batch]: partitions are registered once all is published.
	RegisterLast bool `json:"register_last,omitempty"`
}
