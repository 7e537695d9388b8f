package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/internal/metrics"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// WriteStatus is one unpublished file in status.json, or a rename that is half
// done: then State is staging.Renaming; or files that are published together: then it
// is one of the states of staging.Batch. Sizes are in bytes.
type WriteStatus struct {
	ID       string        `json:"write_id"`
	Path     string        `json:"path"` // of a rename: the new name's
	State    staging.State `json:"state"`
	Hold     staging.Hold  `json:"hold,omitempty"` // why its close did not publish it
	Open     bool          `json:"open"`           // a program has it open
	Size     int64         `json:"size"`           // so far
	Uploaded int64         `json:"uploaded"`       // what the store has of it already, which nobody sees yet
	// Uploading: a multipart upload of it is under way.
	Uploading bool      `json:"uploading,omitempty"`
	Source    string    `json:"source,omitempty"`  // of a rename: the URI where the object was
	Target    string    `json:"target,omitempty"`  // of a rename: the URI where it is to be
	Files     int       `json:"files,omitempty"`   // of a batch: how many there are
	Removes   int       `json:"removes,omitempty"` // of a batch: how many files of the store go first
	Created   time.Time `json:"created"`
	Changed   time.Time `json:"changed"`
	Error     string    `json:"error,omitempty"`
}

// Renames tells whether w is a rename.
func (w WriteStatus) Renames() bool { return w.State == staging.Renaming }

// Together tells whether w is a batch: files below Path that are published all or
// none, and are listed too; or an overwrite, which removes others first.
func (w WriteStatus) Together() bool { return w.Files+w.Removes > 0 }

// Unpublished lists what of area waits to be published or finished, files and then
// renames and batches, each oldest first, and apart from it the files of the mount alone, which
// wait for nobody; Open is false. aborting counts the dropped files whose uploads are
// yet to be freed in the store.
func Unpublished(area *staging.Area) (waiting, local []WriteStatus, aborting int) {
	waiting, local = []WriteStatus{}, []WriteStatus{}
	for _, w := range area.Files() {
		r := w.Record()
		if !w.Dirty() {
			continue
		}
		status := WriteStatus{
			ID: r.ID, Path: r.Path, State: r.State, Hold: r.Hold, Size: w.Size(), Uploaded: w.Uploaded(), Uploading: r.Upload != nil,
			Created: r.Created, Changed: r.Changed, Error: r.Error,
		}
		if r.Resident() {
			local = append(local, status)
		} else {
			waiting = append(waiting, status)
		}
	}
	for _, w := range area.Renames() {
		r := w.Record()
		waiting = append(waiting, WriteStatus{
			ID: r.ID, Path: r.Path, State: r.State, Size: r.Size, Source: uri(r.Source.Location), Target: uri(r.Target),
			Created: r.Created, Changed: r.Changed, Error: r.Error,
		})
	}
	for _, b := range area.Batches() {
		r := b.Record()
		waiting = append(waiting, WriteStatus{
			ID: r.ID, Path: r.Path, State: r.State, Size: r.Size, Files: len(r.Members), Removes: len(r.Clear),
			Created: r.Created, Changed: r.Changed, Error: r.Error,
		})
	}
	return waiting, local, area.Aborting()
}

// mountStatus is the root's part of status.json.
type mountStatus struct {
	Version     string    `json:"version"`
	Source      string    `json:"source"`
	PID         int       `json:"pid"`
	Started     time.Time `json:"started"`
	Write       string    `json:"write"`
	ReadOnly    bool      `json:"read_only"`
	Passthrough bool      `json:"passthrough"`
	Draining    bool      `json:"draining"`
	Store       any       `json:"store,omitempty"`
	// DiskCache is that of --cache-dir.
	DiskCache *cache.DiskStats `json:"disk_cache,omitempty"`
}

// directoryStatus is status.json.
type directoryStatus struct {
	Mount *mountStatus        `json:"mount,omitempty"`
	View  *catalogview.Status `json:"catalog,omitempty"`
	// Staged: the unpublished files of the directory; of the root: all. Local: those
	// that live in the mount alone.
	Staged []WriteStatus `json:"staged"`
	Local  []WriteStatus `json:"local"`
	// Transactions are those that are open, of a table and of the root.
	Transactions []TransactionStatus `json:"transactions,omitempty"`
	// Unregistered: the partitions at and below the directory that this mount failed to
	// register; of the root: all.
	Unregistered []catalogview.Unregistered `json:"unregistered,omitempty"`
	// Aborting, of the root: how many files that were dropped have uploads that are
	// yet to be freed in the store.
	Aborting int `json:"aborting,omitempty"`
}

var writeNames = map[WriteLevel]string{ //nolint:gochecknoglobals // a constant table
	WriteNone: "none", WriteCreate: "create", WriteOverwrite: "overwrite", WriteDelete: "delete",
}

// statusJSON makes status.json of a directory; of the root, of the mount.
func (f *FS) statusJSON(ctx context.Context, dir string) ([]byte, error) {
	var s directoryStatus
	if dir == "" {
		s.Mount = &mountStatus{
			Version: f.Version, Source: f.Source, PID: os.Getpid(), Started: f.started,
			Write: writeNames[f.Write], ReadOnly: f.ReadOnly, Passthrough: f.Passthrough && !f.flat, Draining: f.draining.Load(),
		}
		if f.StoreStatus != nil {
			s.Mount.Store = f.StoreStatus()
		}
		if f.Disk != nil {
			disk := f.Disk.Stats()
			s.Mount.DiskCache = &disk
		}
	} else {
		view, err := f.View.Status(ctx, dir)
		if errors.Is(err, objectstore.ErrNotExist) && view.Kind != "" {
			err = nil // a directory of the mount alone: nothing was published in it yet
		}
		if err != nil {
			return nil, err
		}
		s.View = &view
	}
	waiting, local, aborting := Unpublished(f.Area)
	s.Staged, s.Local = f.ofDirectory(dir, waiting), f.ofDirectory(dir, local)
	s.Transactions = f.transactionsBelow(dir)
	s.Unregistered = f.View.Unregistered(dir)
	if dir == "" {
		s.Aborting = aborting
	}
	return indentJSON(s)
}

// ofDirectory are those of the directory, and whether each is open; of the root all.
func (f *FS) ofDirectory(dir string, all []WriteStatus) []WriteStatus {
	of := []WriteStatus{}
	for _, w := range all {
		if dir == "" || inDirectory(w.Path, dir) {
			w.Open = f.open(w.ID)
			of = append(of, w)
		}
	}
	return of
}

func indentJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// writeStats writes the metrics as text.
func (f *FS) writeStats(w io.Writer) error {
	return f.Metrics.WriteText(w)
}

// observePublish counts a publish.
func (f *FS) observePublish(began time.Time, err error) {
	outcome := metrics.OutcomeOK
	switch {
	case errors.Is(err, commit.ErrFormat), errors.Is(err, objectstore.ErrExist), errors.Is(err, objectstore.ErrChanged):
		outcome = metrics.OutcomeRefused
	case err != nil:
		outcome = metrics.OutcomeError
	}
	f.Metrics.Publishes.With(outcome).Observe(time.Since(began).Seconds())
}

// isEmpty tells an empty file of a format that has no empty files.
func isEmpty(err error) bool { return errors.Is(err, commit.ErrEmpty) }
