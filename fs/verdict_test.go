package fs

import (
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

func TestErrnoOfAVerdict(t *testing.T) {
	for class, want := range map[table.Class]syscall.Errno{
		table.ClassBroken: syscall.EIO, table.ClassReadOnly: syscall.EROFS, table.ClassDenied: syscall.EACCES,
		table.ClassUnsupported: syscall.EOPNOTSUPP, table.ClassView: syscall.ENOENT, table.ClassLoop: syscall.ELOOP,
	} {
		if got := toErrno(&catalogview.VerdictError{Class: class}); got != want {
			t.Errorf("%s: %v, want %v", class, got, want)
		}
	}
}

// TestErrnoOfARegistration: whatever the catalog says, the file is there.
func TestErrnoOfARegistration(t *testing.T) {
	verdict := &catalogview.VerdictError{Class: table.ClassView}
	for cause, want := range map[error]syscall.Errno{
		objectstore.ErrPermission: syscall.EACCES, objectstore.ErrNotExist: syscall.EIO, objectstore.ErrExist: syscall.EIO,
		objectstore.ErrUnavailable: syscall.EIO, verdict: syscall.EIO,
	} {
		if got := toErrno(&commit.RegisterError{Path: "db/t/dt=1/f", Cause: cause}); got != want {
			t.Errorf("%v: %v, want %v", cause, got, want)
		}
	}
}
