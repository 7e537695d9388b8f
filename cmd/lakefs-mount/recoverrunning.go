package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// publishLimit bounds the wait for a publish that is asked for. The mount goes on
// with it as long as bytes move, and ends it by itself when none do.
const publishLimit = 24 * time.Hour

// runningWrites are those of the mount at a mount point.
type runningWrites struct{ mountpoint string }

func (r runningWrites) list(ctx context.Context) (stagedList, error) {
	return stagedIn(ctx, r.mountpoint)
}

// stagedIn lists the unpublished files of a running mount.
func stagedIn(ctx context.Context, mountpoint string) (stagedList, error) {
	var list stagedList
	raw, err := readControl(ctx, mountpoint, "status.json")
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	for _, w := range list.Staged {
		if err == nil && len(w.ID) < 8 {
			err = errors.New("a write without an id")
		}
	}
	if err != nil {
		return stagedList{}, fmt.Errorf("ask the mount at %q: %w", mountpoint, err)
	}
	return list, nil
}

func (r runningWrites) uploaded(ctx context.Context, w stagedWrite) int64 {
	now, _ := r.find(ctx, w.ID)
	return now.Uploaded
}

// find is the write as the mount knows it now; false: it knows none, or does not say.
func (r runningWrites) find(ctx context.Context, id string) (stagedWrite, bool) {
	all, err := stagedIn(ctx, r.mountpoint)
	i := slices.IndexFunc(all.Staged, func(w stagedWrite) bool { return w.ID == id })
	if err != nil || i < 0 {
		return stagedWrite{}, false
	}
	return all.Staged[i], true
}

func (r runningWrites) publish(ctx context.Context, w stagedWrite) error {
	err := longControl(ctx, r.mountpoint, "recover publish "+w.ID, publishLimit)
	if err == nil {
		return nil
	}
	// The control file can answer an errno alone; the record says why, if it is there.
	var answer syscall.Errno
	all, statusErr := stagedIn(ctx, r.mountpoint)
	i := slices.IndexFunc(all.Staged, func(now stagedWrite) bool { return now.ID == w.ID })
	switch {
	case statusErr != nil || !errors.As(err, &answer):
	case i >= 0 && all.Staged[i].Error != "":
		err = fmt.Errorf("%w: %s", err, all.Staged[i].Error)
	case w.Renames():
	case i < 0 && !errors.Is(answer, iofs.ErrNotExist): // it was not gone before
		return fmt.Errorf("%q is published, but its partition is not registered in the catalog: %w"+
			" (the mount's log says why; it is tried again while mounted, and by the next publish into it)", w.Path, answer)
	}
	return fmt.Errorf("publish %s: %w", nameOf(w), err)
}

func (r runningWrites) abort(ctx context.Context, w stagedWrite) error {
	if err := writeControl(ctx, r.mountpoint, "recover abort "+w.ID, answerTimeout); err != nil {
		return fmt.Errorf("abort %s: %w", nameOf(w), err)
	}
	return nil
}

func (r runningWrites) save(_ context.Context, w stagedWrite, dir string) (string, error) {
	from := filepath.Join(r.mountpoint, ".lakefs", "staged", "~"+w.ID[:8])
	base := path.Base(w.Path)
	if w.Path == "" {
		base = w.ID // its record is damaged
	}
	to := filepath.Join(dir, base)
	if err := copyNew(from, to); err != nil {
		return "", fmt.Errorf("save %q: %w", w.Path, err)
	}
	return to, nil
}

func (r runningWrites) Close() error { return nil }

// copyNew copies a file durably to a name that is not there.
func copyNew(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Sync(), out.Close())
	if err != nil {
		_ = os.Remove(to) // a part of it would look like the whole
	}
	return err
}
