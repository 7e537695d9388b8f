package fs

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
	"github.com/lakefs-mount/lakefs-mount/table"
)

type errno = syscall.Errno

// Errors that begin in this package.
var (
	errInterrupted    = errors.New("interrupted")
	errWouldBlock     = errors.New("lock is held by another")
	errReadOnly       = errors.New("the mount is read-only")
	errWriteLevel     = errors.New("not allowed by --write")
	errDraining       = errors.New("the mount is being taken down")
	errEntryWrite     = errors.New("catalog entries are not writable here")
	errDatabaseEntry  = errors.New("a database's entry is not changed through a mount: change it in the catalog")
	errEntryMove      = errors.New("a table's entry keeps its name: write one of the new name, and remove the old one")
	errControl        = errors.New("control files cannot be changed")
	errFixedDirectory = errors.New("databases and tables are made in the catalog")
	errIsDirectory    = errors.New("is a directory")
	errNotDirectory   = errors.New("not a directory")
	errPartitionMove  = errors.New("a partition directory does not move as one")
	errRegistered     = errors.New("the partition is registered in the catalog, which this mount does not change: delete it there, by glue delete-partition or ALTER TABLE … DROP PARTITION")
	errProjected      = errors.New("the table's partition projection has the directory, whatever lies in it")
	errMarkedMove     = errors.New("a directory with a marker of its own does not move as one")
	errSuperseded     = errors.New("superseded by another version")
	errTorn           = errors.New("a writer was killed: the file is kept, not published")
	errBusy           = errors.New("its writer lives")
	errBusyPublish    = fmt.Errorf("it is being published: %w", errBusy)
	errUnsupported    = errors.New("not supported")
	errInvalid        = errors.New("invalid argument")
	errNoAttribute    = errors.New("no such attribute")
	errRange          = errors.New("buffer too small")
	errNoData         = errors.New("no data past this offset")

	errTooManyDirectories = fmt.Errorf("too many empty directories: %w", objectstore.ErrNoSpace)
)

// errnos is the one table of what a program sees (tree.md, "Errors a user
// sees"). The first match counts; what is not in it is EIO.
var errnos = []struct { //nolint:gochecknoglobals // a constant table
	err   error
	errno syscall.Errno
}{
	{commit.ErrFormat, syscall.EBADMSG},
	{table.ErrName, syscall.EINVAL},
	{table.ErrValue, syscall.EINVAL},
	{table.ErrEqual, syscall.EEXIST},
	{table.ErrMetadata, syscall.EROFS},
	{table.ErrInsertOnly, syscall.EROFS},
	{catalogview.ErrNameTooLong, syscall.ENAMETOOLONG},
	{catalogview.ErrLevel, syscall.EPERM},
	{catalogview.ErrEntry, syscall.EINVAL},
	{catalogview.ErrLinkLoop, syscall.ELOOP},
	{objectstore.ErrNoSpace, syscall.ENOSPC},
	{objectstore.ErrTooLarge, syscall.EFBIG},
	{objectstore.ErrChanged, syscall.ESTALE},
	{objectstore.ErrNotEmpty, syscall.ENOTEMPTY},
	{objectstore.ErrCrossDevice, syscall.EXDEV},
	{objectstore.ErrDirectory, syscall.EISDIR},
	{objectstore.ErrName, syscall.EINVAL},
	{objectstore.ErrExist, syscall.EEXIST},
	{objectstore.ErrNotExist, syscall.ENOENT},
	{objectstore.ErrPermission, syscall.EACCES},
	{staging.ErrDropped, syscall.ENOENT},
	{errInterrupted, syscall.EINTR},
	{errWouldBlock, syscall.EAGAIN},
	{errReadOnly, syscall.EROFS},
	{errWriteLevel, syscall.EPERM},
	{errDraining, syscall.ESHUTDOWN},
	{errEntryWrite, syscall.EACCES},
	{errDatabaseEntry, syscall.EACCES},
	{errEntryMove, syscall.EPERM},
	{errControl, syscall.EPERM},
	{errFixedDirectory, syscall.EPERM},
	{errIsDirectory, syscall.EISDIR},
	{errNotDirectory, syscall.ENOTDIR},
	{errPartitionMove, syscall.EXDEV},
	{errRegistered, syscall.EPERM},
	{errProjected, syscall.EPERM},
	{errMarkedMove, syscall.EXDEV},
	{errSuperseded, syscall.ESTALE},
	{errTorn, syscall.EIO},
	{errBusy, syscall.EBUSY},
	{errUnfinished, syscall.EBUSY},
	{errUnsupported, syscall.ENOTSUP},
	{errors.ErrUnsupported, syscall.EOPNOTSUPP},
	{errInvalid, syscall.EINVAL},
	{errNoAttribute, syscall.ENODATA},
	{errRange, syscall.ERANGE},
	{errNoData, syscall.ENXIO},
	{context.DeadlineExceeded, syscall.EIO},
	{context.Canceled, syscall.EINTR}, // its caller is being killed: see FS.work
}

// unregistered returns what err says of a publish that took effect, and whose
// partition the catalog did not take: EACCES where it refused, else EIO. nil if err
// is something else.
func unregistered(err error) *commit.RegisterError {
	var e *commit.RegisterError
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// verdictErrno maps the class of a table's verdict.
func verdictErrno(c table.Class) syscall.Errno {
	switch c {
	case table.ClassReadOnly:
		return syscall.EROFS
	case table.ClassDenied:
		return syscall.EACCES
	case table.ClassUnsupported:
		return syscall.EOPNOTSUPP
	case table.ClassView:
		return syscall.ENOENT
	case table.ClassLoop:
		return syscall.ELOOP
	}
	return syscall.EIO
}

// toErrno returns what a program sees of err; 0 for nil.
func toErrno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if told, ok := err.(syscall.Errno); ok { //nolint:errorlint // an answer of this package itself, not a cause deep in a store's error
		return told
	}
	var verdict *catalogview.VerdictError
	if errors.As(err, &verdict) {
		return verdictErrno(verdict.Class)
	}
	for _, e := range errnos {
		if errors.Is(err, e.err) {
			return e.errno
		}
	}
	return syscall.EIO
}

// ordinary tells errors that programs meet all the time from those that an
// operator should read about.
func ordinary(e syscall.Errno) bool {
	switch e {
	case syscall.ENOENT, syscall.EEXIST, syscall.ENOTEMPTY, syscall.EISDIR, syscall.ENOTDIR, syscall.EXDEV,
		syscall.EINTR, syscall.EAGAIN, syscall.ENOTSUP, syscall.ENODATA, syscall.ERANGE, syscall.ENXIO, syscall.EINVAL,
		syscall.ENAMETOOLONG:
		return true
	}
	return false
}

// refused tells answers that a rule gives from failures.
func refused(e syscall.Errno) bool {
	return e == syscall.ESTALE || e == syscall.EPERM || e == syscall.EACCES || e == syscall.EROFS
}

// absence is the answer that the kernel may remember for a time.
func absence(e syscall.Errno) bool { return e == syscall.ENOENT }

// notMounted tells whether umount(2) found no mount.
func notMounted(err error) bool { return errors.Is(err, syscall.EINVAL) }
