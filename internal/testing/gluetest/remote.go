package gluetest

import (
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// Remote is an emulator that other people wrote, a process of its own. Its S3 is
// that of the embedded server.
type Remote struct {
	*s3test.Server

	URL string // of Glue and of S3
}

// Moto is the moto of this test process, started on first use; all tests of the
// process share its databases and buckets. Where it is not installed the test is
// skipped (see s3test).
func Moto(tb testing.TB) *Remote {
	tb.Helper()
	return remote(s3test.Moto(tb))
}

// FreshMoto is a moto for one test alone, with an empty catalog.
func FreshMoto(tb testing.TB) *Remote {
	tb.Helper()
	return remote(s3test.FreshMoto(tb))
}

// Mini is the MiniStack of this test process, started on first use, as Moto is.
func Mini(tb testing.TB) *Remote {
	tb.Helper()
	return remote(s3test.Mini(tb))
}

func remote(s *s3test.Server) *Remote { return &Remote{s, s.Endpoint} }
