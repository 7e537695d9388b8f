package main

import (
	iofs "io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// TestCase65SecretsAreNowhereWhenThingsFailOnS3: with retries, refusals, a kept
// file and a dump of the state, all at level debug, and credentials of a program.
func TestCase65SecretsAreNowhereWhenThingsFailOnS3(t *testing.T) {
	proxy := faulty.New(t, s3test.Mini(t))
	o := sales(t)
	o.Server, o.Env = proxy.Server(), []string{"AWS_CONFIG_FILE=" + rotating(t)}
	lake := mounttest.New(t, o)
	d := &door{tokens: map[string]bool{}, ids: map[string]bool{}}
	proxy.Add(faulty.Rule{If: func(q *faulty.Request) bool { return q.Header.Get("X-Amz-Security-Token") != "" }, Fault: d})
	lake.Start("--profile=rotating", "--log-level=debug", "--io-timeout=1s", "--metadata-ttl=0", "--negative-ttl=0")
	for _, f := range []faulty.Fault{
		faulty.Refuse{},
		faulty.Status{Code: 503, S3Code: "SlowDown"},
		faulty.Status{Code: 502, HTML: true},
		faulty.Status{Code: http.StatusForbidden, S3Code: "SignatureDoesNotMatch"},
		faulty.Status{Code: 400, S3Code: "InvalidToken", Message: "The provided token is malformed or otherwise invalid."},
	} {
		rule := proxy.Add(faulty.Rule{Fault: f})
		_ = lake.Sh(`cd ` + notes + `; ls; cat a.csv; echo 2,two >kept.csv`)
		rule.Remove()
	}
	lake.Signal(syscall.SIGUSR1)
	lake.Signal(syscall.SIGHUP)
	lake.Eventually("the lake is there again", 0, func() bool { return lake.Sh(`cat `+notes+`/a.csv`).Out == "1,one\n" })
	shown := map[string]string{
		"the log":         lake.Log(),
		"the mount":       lake.MustSh(`cat .lakefs/status.json .lakefs/stats ` + notes + `/.lakefs/status.json; find . -print; true`),
		"the mount table": readAll(t, "/proc/self/mountinfo"),
		"ps":              readAll(t, filepath.Join("/proc", strconv.Itoa(lake.Pid()), "cmdline")),
		"status":          lake.Run("status", "--json").Out,
	}
	if !strings.Contains(shown["the log"], "level=DEBUG") || !strings.Contains(shown["the log"], "level=ERROR") {
		t.Errorf("nothing was logged at level debug, or no error: %s", shown["the log"])
	}
	lake.Unmount()
	err := filepath.WalkDir(lake.State, func(path string, e iofs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			shown[path] = readAll(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(shown) < 7 {
		t.Errorf("the state directory has no files: %d places in all", len(shown))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	secrets := []string{"secret-of-"}
	for token := range d.tokens {
		secrets = append(secrets, token)
	}
	for what, text := range shown {
		for _, s := range secrets {
			if strings.Contains(text, s) {
				t.Errorf("%s shows %q", what, s)
			}
		}
	}
}
