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

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/objectstore/sparse"
	"github.com/lakefs-mount/lakefs-mount/staging"
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
	for _, w := range list.all() {
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
	list, err := stagedIn(ctx, r.mountpoint)
	all := list.all()
	i := slices.IndexFunc(all, func(w stagedWrite) bool { return w.ID == id })
	if err != nil || i < 0 {
		return stagedWrite{}, false
	}
	return all[i], true
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
	case w.Renames(), w.Together():
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

func (r runningWrites) save(_ context.Context, w stagedWrite, dir string) (saved commit.Saved, err error) {
	from := filepath.Join(r.mountpoint, ".lakefs", "staged", "~"+w.ID[:8])
	base := path.Base(w.Path)
	if w.Path == "" {
		base = w.ID // its record is damaged
	}
	for _, name := range commit.SaveNames(base, w.ID) {
		if saved, err = saveRunning(from, filepath.Join(dir, name)); !errors.Is(err, iofs.ErrExist) {
			break
		}
	}
	if err != nil {
		return commit.Saved{}, fmt.Errorf("save %q: %w", w.Path, err)
	}
	return saved, nil
}

func saveRunning(from, to string) (commit.Saved, error) {
	saved := commit.Saved{Path: to}
	var err error
	saved.Size, err = copyNew(from, to)
	if err != nil && olderGone(err) {
		return saveOwn(from+".partial", filepath.Join(filepath.Dir(to), commit.PartialName(filepath.Base(to))), err)
	}
	return saved, err
}

func (r runningWrites) Close() error { return nil }

// olderGone tells errors of reading a file whose older version is gone.
func olderGone(err error) bool {
	var failed *iofs.PathError
	return errors.As(err, &failed) && failed.Op == "read" &&
		(errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ESTALE)) //nolint:forbidigo // the mount's answer
}

// saveOwn saves what of a file is its own; gone is why the whole could not be.
func saveOwn(from, to string, gone error) (commit.Saved, error) {
	own, err := ownRanges(from)
	if errors.Is(err, iofs.ErrNotExist) { // the mount is an older program
		err = gone
	} else if err == nil && len(own) == 0 {
		err = fmt.Errorf("none of its bytes are its own: the version that it changed is gone: %w", gone)
	}
	if err != nil {
		return commit.Saved{}, err
	}
	size, err := copyNew(from, to)
	return commit.Saved{Path: to, Size: size, Partial: true, Own: own}, err
}

// ownRanges are the ranges of a file that are no holes.
func ownRanges(path string) ([]staging.Range, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // only read
	var own []staging.Range
	for end := int64(0); ; {
		from, err := in.Seek(end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { //nolint:forbidigo // lseek's way to say that no data follow
			return own, nil
		}
		if err == nil {
			end, err = in.Seek(from, unix.SEEK_HOLE)
		}
		if err != nil {
			return nil, err
		}
		own = append(own, staging.Range{From: from, To: end})
	}
}

// copyNew copies a file durably to a name that is not there, and returns its size.
func copyNew(from, to string) (int64, error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close() //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	w := &sparse.Writer{File: out}
	size, err := io.CopyBuffer(w, struct{ io.Reader }{in}, make([]byte, 1<<20))
	err = errors.Join(err, w.Finish(), out.Sync(), out.Close())
	if err != nil {
		_ = os.Remove(to) // a part of it would look like the whole
	}
	return size, err
}
