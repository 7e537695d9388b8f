package catalogview

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The servers of s3test live as long as the process, and their clients.
		goleak.IgnoreAnyFunction("github.com/lakefs-mount/lakefs-mount/internal/testing/s3test.(*process).launch.func1"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}
