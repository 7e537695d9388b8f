package staging

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// The spool is a local file, so that errno values reach this package from the
// kernel; this file alone names them.

// ioError wraps err with the operation and its object, and makes a full disk or
// a used-up quota objectstore.ErrNoSpace, a size or offset that the file system
// does not take objectstore.ErrTooLarge.
func ioError(op, object string, err error) error {
	if isNoSpace(err) && !errors.Is(err, objectstore.ErrNoSpace) {
		return fmt.Errorf("%s %s: %w: %w", op, object, objectstore.ErrNoSpace, err)
	}
	if isTooLarge(err) && !errors.Is(err, objectstore.ErrTooLarge) {
		return fmt.Errorf("%s %s: %w: %w", op, object, objectstore.ErrTooLarge, err)
	}
	return fmt.Errorf("%s %s: %w", op, object, err)
}

// ownTrouble is err without what it would say of the object: that a record's
// directory is gone, or closed to this program, is no answer of the store.
func ownTrouble(err error) error {
	if errors.Is(err, objectstore.ErrNotExist) || errors.Is(err, objectstore.ErrPermission) {
		return errors.New(err.Error())
	}
	return err
}

func isTooLarge(err error) bool {
	return errors.Is(err, objectstore.ErrTooLarge) ||
		errors.Is(err, unix.EFBIG) //nolint:forbidigo // see above
}

func isNoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || //nolint:forbidigo // see above
		errors.Is(err, unix.EDQUOT) //nolint:forbidigo // see above
}

func isReadOnly(err error) bool {
	return errors.Is(err, unix.EROFS) //nolint:forbidigo // see above
}

func isUnsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || //nolint:forbidigo // see above
		errors.Is(err, unix.ENOSYS) //nolint:forbidigo // see above
}

func isLocked(err error) bool {
	return errors.Is(err, unix.EWOULDBLOCK) //nolint:forbidigo // see above
}

// isSymlink: what O_NOFOLLOW answers for a symbolic link.
func isSymlink(err error) bool {
	return errors.Is(err, unix.ELOOP) //nolint:forbidigo // see above
}

// seekError makes lseek's "no data (or hole) from here on" io.EOF.
func seekError(id string, err error) error {
	if errors.Is(err, unix.ENXIO) { //nolint:forbidigo // see above
		return io.EOF
	}
	return ioError("seek", id, err)
}

// retryEINTR calls fn until it is not interrupted (the runtime's preemption
// signals interrupt slow system calls).
func retryEINTR(fn func() error) error {
	for {
		if err := fn(); !errors.Is(err, unix.EINTR) { //nolint:forbidigo // see above
			return err
		}
	}
}
