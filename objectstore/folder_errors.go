package objectstore

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// errNamesDirectory: what Stat says of a directory's name without the final "/".
var errNamesDirectory = fmt.Errorf("%w: %w", ErrNotExist, ErrDirectory)

// errHiddenName: what Stat says of a name that is taken and not shown.
var errHiddenName = fmt.Errorf("%w: %w", ErrHidden, ErrNotExist)

var errNoBucket = fmt.Errorf("no such folder: %w", ErrNotExist)

// fail wraps err with the operation and the location; nil stays nil. An errno
// with a sentinel is told by it alone: wrapped as well, ENOTEMPTY would also
// be ErrExist to errors.Is.
func fail(op string, loc Location, err error) error {
	if err == nil {
		return nil
	}
	name := loc.Bucket + "/" + loc.Key
	var errno syscall.Errno
	if errors.As(err, &errno) {
		if s := sentinel(errno); s != nil {
			return fmt.Errorf("%s %q: %w: %s", op, name, s, err.Error())
		}
	}
	return fmt.Errorf("%s %q: %w", op, name, err)
}

// sentinel is the meaning of an errno, nil where it has none of its own.
func sentinel(errno syscall.Errno) error {
	switch errno {
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
		return ErrNotExist
	case unix.EEXIST:
		return ErrExist
	case unix.EACCES, unix.EPERM, unix.EROFS:
		return ErrPermission
	case unix.ENAMETOOLONG:
		return ErrName
	case unix.ENOTEMPTY:
		return ErrNotEmpty
	case unix.EXDEV:
		return ErrCrossDevice
	case unix.ENOSPC, unix.EDQUOT:
		return ErrNoSpace
	case unix.EFBIG:
		return ErrTooLarge
	case unix.EISDIR:
		return ErrDirectory
	case unix.EIO, unix.EAGAIN, unix.ESTALE, unix.ETIMEDOUT, unix.ENOMEM,
		unix.EMFILE, unix.ENFILE, unix.ENOLCK, unix.ENODEV, unix.ENXIO:
		return ErrUnavailable
	}
	return nil
}

// is reports that err is one of the errnos.
func is(err error, errnos ...syscall.Errno) bool {
	if err == nil {
		return false
	}
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains(errnos, errno)
}

// absent reports that err says nothing is there.
func absent(err error) bool {
	return errors.Is(err, ErrNotExist) || is(err, unix.ENOTDIR, unix.ELOOP)
}

// retry calls do until no signal interrupts it.
func retry(do func() error) error {
	for {
		if err := do(); !is(err, unix.EINTR) {
			return err
		}
	}
}
