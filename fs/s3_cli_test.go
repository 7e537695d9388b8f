package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// What the AWS CLI puts into a bucket is read through the mount to the byte, and
// the reverse.

// sums is a script that prints the sum of each file in the working directory.
const sums = `sha256sum * | sort -k2`

func TestS3HashesAgreeWithTheAWSCLI(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{S3: true, Tables: []mounttest.Table{text("t", nil)}, Timeout: 5 * time.Minute})
	server, bucket := l.Bucket()
	source, back := t.TempDir(), t.TempDir()
	const mib = 1 << 20
	for _, size := range []int{0, 1, mib - 1, mib, mib + 1, 64 * mib} {
		writeFile(t, filepath.Join(source, fmt.Sprint(size)), numbered('s', size))
	}
	want := l.MustSh(`cd ` + source + ` && ` + sums)
	if n := strings.Count(want, "\n"); n != 6 {
		t.Fatalf("%d files, want 6:\n%s", n, want)
	}
	s3test.CLI(t, server, "s3", "cp", "--recursive", "--quiet", source, "s3://"+bucket+"/"+l.Key("db/t/in"))
	if got := l.MustSh(`cd db/t/in && ` + sums); got != want {
		t.Errorf("through the mount:\n%swant\n%s", got, want)
	}
	l.MustSh(`mkdir db/t/out && cp ` + source + `/* db/t/out/`)
	s3test.CLI(t, server, "s3", "cp", "--recursive", "--quiet", "s3://"+bucket+"/"+l.Key("db/t/out"), back)
	if got := l.MustSh(`cd ` + back + ` && ` + sums); got != want {
		t.Errorf("by the CLI:\n%swant\n%s", got, want)
	}
	if got := l.MustSh(`cd db/t/out && ` + sums); got != want {
		t.Errorf("what was written, through the mount:\n%swant\n%s", got, want)
	}
}

// largeVariable allows tests that take minutes and tens of GB.
const largeVariable = "MOUNTTEST_LARGE"

// TestLargeS3FiveGiB: the most that one PUT may have.
func TestLargeS3FiveGiB(t *testing.T) {
	if os.Getenv(largeVariable) == "" {
		t.Skipf("set %s (make test-large): it takes minutes, and 20 GB", largeVariable)
	}
	l := mounttest.Mount(t, mounttest.Options{S3: true, Tables: []mounttest.Table{text("t", nil)}, Timeout: 40 * time.Minute})
	server, bucket := l.Bucket()
	aws := filepath.Join(mounttest.ModuleRoot(t), ".venv", "bin", "aws") + ` --endpoint-url ` + server.Endpoint + ` s3 cp --quiet `
	big := filepath.Join(t.TempDir(), "big")
	// Zeroes, with other bytes in every 64 MiB and at the very end.
	want := l.MustSh(`truncate -s 5G ` + big + `; for i in $(seq 0 64 5119) 5119; do
			dd if=/dev/urandom of=` + big + ` bs=1M count=1 seek=$i conv=notrunc status=none; done; sha256sum < ` + big)
	l.MustSh(aws + big + ` s3://` + bucket + `/` + l.Key("db/t/in"))
	if got := l.MustSh(`sha256sum < db/t/in; stat -c %s db/t/in`); got != want+"5368709120\n" {
		t.Errorf("through the mount: %s, want %s", got, want)
	}
	l.RemoveStored("db/t/in")
	l.MustSh(`cp ` + big + ` db/t/out`)
	if got := l.MustSh(aws + `s3://` + bucket + `/` + l.Key("db/t/out") + ` - | sha256sum`); got != want {
		t.Errorf("by the CLI: %s, want %s", got, want)
	}
}
