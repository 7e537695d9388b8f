package s3test_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// A test process that is killed leaves neither a server nor its directory.
func TestEndsWithTheProcess(t *testing.T) {
	if os.Getenv("S3TEST_VICTIM") != "" {
		s := s3test.Versity(t)
		fmt.Fprintln(os.Stdout, "server", s.Endpoint, filepath.Dir(s.Dir(""))) //nolint:errcheck // a broken pipe fails the parent
		select {}
	}
	victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEndsWithTheProcess$")
	victim.Env = append(os.Environ(), "S3TEST_VICTIM=1")
	stdout, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = victim.Start(); err != nil {
		t.Fatal(err)
	}
	var endpoint, dir string
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if _, scanned := fmt.Sscanf(line, "server %s %s", &endpoint, &dir); scanned != nil {
		t.Fatalf("got line %q and %v, want an endpoint", line, err)
	}
	if _, err = os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	if err = victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // it was killed
	eventually(t, "the server has ended", func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(endpoint, "http://"))
		if err == nil {
			conn.Close() //nolint:errcheck // only its being there matters
		}
		return err != nil
	})
	eventually(t, dir+" is gone", func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	expired := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-expired:
			t.Fatalf("never: %s", what)
		}
	}
}
