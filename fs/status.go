package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/internal/metrics"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// stagedStatus is one unpublished file in status.json.
type stagedStatus struct {
	WriteID string        `json:"write_id"`
	Path    string        `json:"path"`
	State   staging.State `json:"state"`
	Open    bool          `json:"open"`
	Size    int64         `json:"size"` // bytes so far
	Created time.Time     `json:"created"`
	Changed time.Time     `json:"changed"`
	Error   string        `json:"error,omitempty"`
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
}

// directoryStatus is status.json.
type directoryStatus struct {
	Mount *mountStatus        `json:"mount,omitempty"`
	View  *catalogview.Status `json:"catalog,omitempty"`
	// Staged: the unpublished files of the directory; of the root: all.
	Staged []stagedStatus `json:"staged"`
}

var writeNames = map[WriteLevel]string{ //nolint:gochecknoglobals // a constant table
	WriteNone: "none", WriteCreate: "create", WriteOverwrite: "overwrite", WriteDelete: "delete",
}

// statusJSON makes status.json of a directory; of the root, of the mount.
func (f *FS) statusJSON(ctx context.Context, dir string) ([]byte, error) {
	s := directoryStatus{Staged: []stagedStatus{}}
	if dir == "" {
		s.Mount = &mountStatus{
			Version: f.Version, Source: f.Source, PID: os.Getpid(), Started: f.started,
			Write: writeNames[f.Write], ReadOnly: f.ReadOnly, Passthrough: f.Passthrough && !f.flat, Draining: f.draining.Load(),
		}
		if f.StoreStatus != nil {
			s.Mount.Store = f.StoreStatus()
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
	for _, w := range f.Area.Files() {
		if r := w.Record(); w.Dirty() && (dir == "" || inDirectory(r.Path, dir)) {
			s.Staged = append(s.Staged, stagedStatus{
				WriteID: r.ID, Path: r.Path, State: r.State, Open: f.open(r.ID),
				Size: w.Size(), Created: r.Created, Changed: r.Changed, Error: r.Error,
			})
		}
	}
	return indentJSON(s)
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
	f.Metrics.Publishes.With(outcome).Inc()
	f.Metrics.PublishSeconds.Observe(time.Since(began))
}

// isEmpty tells an empty file of a format that has no empty files.
func isEmpty(err error) bool { return errors.Is(err, commit.ErrEmpty) }
