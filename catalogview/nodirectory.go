package catalogview

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"strings"
	"sync"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// noDirectory says why a location can not be a directory, "" where it is one or
// can become one.
func (v *View) noDirectory(ctx context.Context, p place) (string, error) {
	if p.Key == "" {
		return "", nil
	}
	file := objectstore.Location{Bucket: p.Bucket, Key: strings.TrimSuffix(p.Key, "/")}
	if !v.trees {
		if file.Key == "" || strings.HasSuffix(file.Key, "/") {
			return "", nil // no name, which no file has
		}
		return v.noDirectoryFlat(ctx, file, p.Location)
	}
	_, err := v.store.Stat(ctx, file)
	switch {
	case errors.Is(err, objectstore.ErrName):
		return unstorable, nil
	case errors.Is(err, objectstore.ErrDirectory):
		return "", nil
	case noObject(err):
		return v.special(p), nil
	case err != nil:
		return "", err
	}
	there, err := v.anything(ctx, p.Location)
	if err != nil || there {
		return "", err
	}
	return "is a file", nil
}

const unstorable = "cannot be stored: it, or a component of it, is too long or no file name"

// noDirectoryFlat is noDirectory where a name may be a file and a directory at
// once. Rights are not asked for: what is below may be granted alone.
func (v *View) noDirectoryFlat(ctx context.Context, file, dir objectstore.Location) (string, error) {
	_, fileErr, there, dirErr := v.both(ctx, file, dir)
	switch {
	case errors.Is(fileErr, objectstore.ErrName):
		return unstorable, nil
	case there, noObject(fileErr), errors.Is(fileErr, objectstore.ErrPermission), errors.Is(dirErr, objectstore.ErrPermission):
		return "", nil
	case fileErr != nil || dirErr != nil:
		return "", errors.Join(fileErr, dirErr)
	}
	return "is a file", nil
}

// both asks for an object and for a directory at once. Where the directory is,
// the answer on the object is not waited for.
func (v *View) both(ctx context.Context, file, dir objectstore.Location) (o objectstore.Object, fileErr error, there bool, dirErr error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var g sync.WaitGroup
	g.Go(func() {
		if there, dirErr = v.flat.probe(ctx, dir); there {
			cancel()
		}
	})
	o, fileErr = v.store.Stat(ctx, file)
	g.Wait()
	return o, fileErr, there, dirErr
}

// special says that where a folder has no object, something else is that is no
// directory: a FIFO, a socket, a device.
func (v *View) special(p place) string {
	if !v.trees {
		return ""
	}
	info, err := os.Lstat(p.real)
	if err != nil || info.IsDir() || info.Mode().IsRegular() || info.Mode()&iofs.ModeSymlink != 0 { // the last: it came just now
		return ""
	}
	return "is " + kindOfFile(info.Mode()) + ", no directory"
}

// kindOfFile names what a file is.
func kindOfFile(mode iofs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&iofs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&iofs.ModeSocket != 0:
		return "a socket"
	case mode&iofs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// noObject says that an error of Stat is the store's word that no object is there.
func noObject(err error) bool {
	return errors.Is(err, objectstore.ErrNotExist) || errors.Is(err, objectstore.ErrDirectory) || errors.Is(err, objectstore.ErrName)
}

// anything says that something lies under a prefix.
func (v *View) anything(ctx context.Context, prefix objectstore.Location) (bool, error) {
	for _, err := range v.store.List(ctx, prefix, objectstore.ListOptions{Delimiter: true, Limit: 1}) {
		return err == nil, err
	}
	return false, nil
}

// anythingCalled says that an object whose name begins so lies in a directory.
func (v *View) anythingCalled(ctx context.Context, dir objectstore.Location, begins string) (bool, error) {
	for e, err := range v.store.List(ctx, dir, objectstore.ListOptions{Delimiter: true, StartAfter: dir.Key + begins}) {
		switch {
		case err != nil:
			return false, err
		case strings.HasPrefix(e.Key, dir.Key+begins):
			return true, nil
		case !v.trees: // what comes in order is past it
			return false, nil
		}
	}
	return false, nil
}
