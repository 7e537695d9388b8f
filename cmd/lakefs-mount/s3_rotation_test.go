package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// notes is the directory of the table that the tests write into.
const notes = "sales/notes/dt=2026-01-01"

// rotating is an AWS configuration whose credentials come from a program. It
// gives those of the accounts "one" and "two" by turns, and each has a session token
// of its own: account, "-" and the time in ms. They are to be fetched anew after 3 s.
func rotating(t *testing.T) (file string) {
	t.Helper()
	dir := t.TempDir()
	script, file := filepath.Join(dir, "credentials"), filepath.Join(dir, "config")
	after := 3 + int(expiryWindow/time.Second)
	text := `#!/bin/bash
ids=(one two); now=$(date +%s%3N); id=${ids[$((now / 1000 % 2))]}
printf '{"Version": 1, "AccessKeyId": "%s", "SecretAccessKey": "%s", "SessionToken": "%s-%s", "Expiration": "%s"}' \
	$id secret-of-$id $id $now $(date -u -d '` + fmt.Sprint(after) + ` seconds' +%FT%TZ)
`
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("[profile rotating]\ncredential_process = "+script+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// door lets requests with young tokens pass, that are signed by their account.
type door struct {
	mu      sync.Mutex
	tokens  map[string]bool
	ids     map[string]bool
	refused int
}

// life is how long the store takes a token: less than its credentials say.
const life = 1500 * time.Millisecond

// Apply refuses what is too old.
func (d *door) Apply(x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
	token := x.Request.Header.Get("X-Amz-Security-Token")
	_, id, _ := strings.Cut(x.Request.Header.Get("Authorization"), "Credential=")
	id, _, _ = strings.Cut(id, "/")
	account, issued, _ := strings.Cut(token, "-")
	ms, err := strconv.ParseInt(issued, 10, 64)
	old := err != nil || time.Since(time.UnixMilli(ms)) > life
	d.note(token, id, old)
	switch {
	case id != account:
		return faulty.Status{Code: http.StatusForbidden, S3Code: "SignatureDoesNotMatch", Message: "the token of another account"}.Apply(x, next)
	case old:
		return faulty.Status{Code: http.StatusBadRequest, S3Code: "ExpiredToken", Message: "The provided token has expired."}.Apply(x, next)
	}
	return next()
}

func (d *door) note(token, id string, old bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens[token], d.ids[id] = true, true
	if old {
		d.refused++
	}
}

func (d *door) seen() (tokens, ids, refused int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.tokens), len(d.ids), d.refused
}

// TestCase63CredentialsRotateOnS3: under a read loop and a slow upload, one of
// whose requests fails at its end. Nobody sees an error, and each request is
// signed with what is good by then.
func TestCase63CredentialsRotateOnS3(t *testing.T) {
	proxy := faulty.New(t, s3test.Mini(t))
	o := sales(t)
	server := proxy.Server()
	o.Server, o.Timeout = server, 3*time.Minute
	o.Env = []string{"AWS_CONFIG_FILE=" + rotating(t)}
	lake := mounttest.New(t, o) // before the door is there: it has lasting credentials
	d := &door{tokens: map[string]bool{}, ids: map[string]bool{}}
	only := func(q *faulty.Request) bool { return q.Header.Get("X-Amz-Security-Token") != "" }
	proxy.Add(faulty.Rule{If: only, Fault: d})
	broken := proxy.Add(faulty.Rule{Op: "UploadPart", Key: lake.Key(notes + "/big"), Times: 1, Fault: faulty.Status{Code: 503, S3Code: "ServiceUnavailable"}})
	proxy.SetLatency(faulty.Latency{BytesPerSecond: 4 << 20})
	lake.Start("--profile=rotating", "--metadata-ttl=0", "--negative-ttl=0", "--io-timeout=30s")
	dir := t.TempDir()
	lake.MustSh(`head -c 16M /dev/urandom >` + dir + `/big`)
	var work sync.WaitGroup
	var failed [2]string
	work.Go(func() {
		failed[0] = lake.Sh(`cd ` + notes + `; until [ -e ` + dir + `/stop ]; do
			[ "$(cat a.csv)" = 1,one ] || echo "read failed"; ls >/dev/null || echo "ls failed"; sleep .1; done 2>&1`).Out
	})
	work.Go(func() {
		failed[1] = lake.Sh(`cp ` + dir + `/big ` + notes + `/big 2>&1 || echo "cp failed"; touch ` + dir + `/copied`).Out
	})
	lake.Eventually("five tokens, refusals, and the copy", 0, func() bool {
		tokens, seen, refused := d.seen()
		_, err := os.Lstat(dir + "/copied")
		return tokens >= 5 && seen == 2 && refused >= 2 && err == nil
	})
	if err := os.WriteFile(dir+"/stop", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	work.Wait()
	if failed != [2]string{} {
		t.Errorf("errors were seen: %q", failed)
	}
	if broken.Hits() != 1 {
		t.Errorf("the upload was broken %d times, want once", broken.Hits())
	}
	if want := readAll(t, dir+"/big"); wantStored(t, lake, notes+"/big") != want {
		t.Error("what was copied differs")
	}
	if log := lake.Log(); strings.Contains(log, "level=ERROR") {
		t.Errorf("errors were logged: %s", log)
	}
	// A refusal that has nothing to do with it is one.
	proxy.Add(faulty.Rule{Op: "GetObject", Key: lake.Key(notes + "/big"), Fault: faulty.Status{Code: http.StatusForbidden, S3Code: "AccessDenied"}})
	if r := lake.Sh(`head -c 1 ` + notes + `/big`); !strings.Contains(r.Err, "Permission denied") {
		t.Errorf("a real denial: exit code %d, %q, want EACCES", r.Code, r.Err)
	}
}

// wantStored is the content of a file of the store, which must be there.
func wantStored(t *testing.T, lake *mounttest.Lake, name string) string {
	t.Helper()
	content, err := lake.Stored(name)
	if err != nil {
		t.Errorf("%s in the store: %v", name, err)
	}
	return content
}

// TestCase63ClockSkewOnS3: of two hours, which the store tells: corrected. One that
// does not go away is named.
func TestCase63ClockSkewOnS3(t *testing.T) {
	const off = 2 * time.Hour
	proxy := faulty.New(t, s3test.Mini(t)) // which does not verify
	o := sales(t)
	o.Server = proxy.Server()
	lake := mounttest.New(t, o)
	skewed := faulty.Status{Code: http.StatusForbidden, S3Code: "RequestTimeTooSkewed", Message: "The difference between the request time and the current time is too large."}
	clock := func(hard bool) faulty.Fault {
		return faulty.Func(func(x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
			now := time.Now().Add(off)
			signed, err := time.Parse("20060102T150405Z", x.Request.Header.Get("X-Amz-Date"))
			answer := next
			if err != nil || hard || now.Sub(signed).Abs() > 15*time.Minute {
				answer = func() (*http.Response, error) { return skewed.Apply(x, next) }
			}
			resp, err := answer()
			if err == nil {
				resp.Header.Set("Date", now.UTC().Format(http.TimeFormat))
			}
			return resp, err
		})
	}
	rule := proxy.Add(faulty.Rule{Fault: clock(false)})
	lake.Start("--metadata-ttl=0", "--negative-ttl=0")
	if got := lake.MustSh(`cat ` + notes + `/a.csv; echo 2,two >` + notes + `/b.csv; ls ` + notes); got != "1,one\na.csv\nb.csv\n" {
		t.Errorf("with a clock that is off the mount shows %q", got)
	}
	if got := wantStored(t, lake, notes+"/b.csv"); got != "2,two\n" {
		t.Errorf("the store has %q", got)
	}
	rule.Remove()
	proxy.Add(faulty.Rule{Op: "PutObject", Fault: clock(true)})
	r := lake.Sh(`echo 3,three | dd of=` + notes + `/c.csv conv=fsync status=none`)
	if r.Code == 0 || !strings.Contains(r.Err, "Permission denied") {
		t.Errorf("exit code %d, %q, want EACCES", r.Code, r.Err)
	}
	lines := slices.DeleteFunc(strings.Split(lake.Log(), "\n"), func(line string) bool { return !strings.Contains(line, notes+"/c.csv") })
	if len(lines) == 0 || !strings.Contains(lines[0], "the clock here is ") {
		t.Errorf("the log does not name the skew: %q", lines)
	}
}
