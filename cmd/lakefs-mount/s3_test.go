package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// daemonOf mounts a lake by --daemon, as a shell does.
func daemonOf(lake *mounttest.Lake, flags ...string) mounttest.Result {
	return lake.Run(slices.Concat([]string{"mount", "--daemon", "--state-dir=" + lake.State}, flags, []string{lake.Source, lake.Root})...)
}

func TestALakeInABucket(t *testing.T) {
	o := sales(t)
	o.S3 = true
	lake := mounttest.Mount(t, o)
	if got := lake.MustSh("cat sales/notes/dt=2026-01-01/a.csv"); got != "1,one\n" {
		t.Errorf("file is %q", got)
	}
	lake.MustSh("echo 2,two > sales/notes/dt=2026-01-01/b.csv")
	if got, err := lake.Stored("sales/notes/dt=2026-01-01/b.csv"); err != nil || got != "2,two\n" {
		t.Errorf("the bucket has %q (%v)", got, err)
	}
	if e, _, err := mountedAt(lake.Root); err != nil || e.source != lake.Source {
		t.Errorf("the mount table has %q (%v), want %q", e.source, err, lake.Source)
	}
	server, _ := lake.Bucket()
	status := lake.Run("status")
	if !strings.Contains(status.Out, lake.Source) || !strings.Contains(status.Out, "S3 at "+server.Endpoint+"\n") {
		t.Errorf("status is %q", status.Out)
	}
	json := lake.MustSh("cat .lakefs/status.json")
	if !strings.Contains(json, `"kind": "s3"`) || !strings.Contains(json, `"if_match": "honoured"`) {
		t.Errorf("status.json lacks the store: %s", json)
	}
	stats := lake.MustSh("cat .lakefs/stats")
	for _, counted := range []string{`store_request_seconds_count{operation="put",outcome="ok"}`, `store_request_seconds_count{operation="list",outcome="ok"}`, `store_bytes_total{direction="written"}`, `store_bytes_total{direction="read"}`} {
		if strings.Contains(stats, counted+" 0\n") || !strings.Contains(stats, counted) {
			t.Errorf("stats do not count %s", counted)
		}
	}
	lake.Unmount()
}

func TestStatusNamesAStoreThatIgnoresConditions(t *testing.T) {
	lake, proxy := bucketLake(t)
	proxy.Add(faulty.Rule{Op: "PutObject", Fault: faulty.StripConditions{}})
	lake.Start()
	lake.MustSh("echo x > sales/notes/dt=2026-01-01/b.csv; grep -q ignored .lakefs/status.json")
	if r := lake.Run("status"); !strings.Contains(r.Out, "ignores conditions") {
		t.Errorf("status is %q", r.Out)
	}
	if n := strings.Count(lake.Log(), "ignores conditions"); n != 1 {
		t.Errorf("the log says so %d times, want once: %s", n, lake.Log())
	}
}

// TestCase62ADaemonIsReadyOrSaysWhyNotOnS3: else nothing is mounted.
func TestCase62ADaemonIsReadyOrSaysWhyNotOnS3(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags []string
		spoil func(t *testing.T, lake *mounttest.Lake, proxy *faulty.Proxy)
		want  []string
	}{
		{name: "no such bucket", want: []string{"NoSuchBucket"}, spoil: func(_ *testing.T, lake *mounttest.Lake, _ *faulty.Proxy) {
			lake.Source = "s3://no-such-bucket/wh/"
		}},
		{name: "wrong key", want: []string{"SignatureDoesNotMatch"}, spoil: func(t *testing.T, lake *mounttest.Lake, _ *faulty.Proxy) {
			t.Helper()
			server, _ := lake.Bucket()
			server.Secret = "wrong"
		}},
		{name: "refused", want: []string{"AccessDenied"}, spoil: func(_ *testing.T, _ *mounttest.Lake, proxy *faulty.Proxy) {
			proxy.Add(faulty.Rule{Fault: faulty.Status{Code: http.StatusForbidden, S3Code: "AccessDenied"}})
		}},
		{name: "not there", flags: []string{"--io-timeout=1s"}, want: []string{"refused"}, spoil: func(_ *testing.T, _ *mounttest.Lake, proxy *faulty.Proxy) {
			proxy.Down()
		}},
		{name: "no answer", flags: []string{"--io-timeout=1s"}, want: []string{"in time"}, spoil: func(_ *testing.T, _ *mounttest.Lake, proxy *faulty.Proxy) {
			proxy.Add(faulty.Rule{Fault: faulty.Hang{}})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lake, proxy := bucketLake(t)
			tt.spoil(t, lake, proxy)
			r := daemonOf(lake, tt.flags...)
			if r.Code != exitFailed || lake.Mounted() {
				t.Errorf("exit code %d, mounted: %v; want %d and nothing", r.Code, lake.Mounted(), exitFailed)
			}
			for _, want := range append(tt.want, strings.TrimSuffix(lake.Source, "/")) {
				if !strings.Contains(r.Err, want) {
					t.Errorf("stderr %q lacks %q", r.Err, want)
				}
			}
		})
	}
}

func TestADaemonOfALakeInABucket(t *testing.T) {
	lake, _ := bucketLake(t)
	config := filepath.Join(t.TempDir(), "lake.yaml")
	if err := os.WriteFile(config, []byte("write: none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := daemonOf(lake, "--config="+config); r.Code != exitOK || !lake.Mounted() {
		t.Fatalf("exit code %d, mounted: %v: %q", r.Code, lake.Mounted(), r.Err)
	}
	if got := lake.MustSh("cat sales/notes/dt=2026-01-01/a.csv; grep '\"write\"' .lakefs/status.json"); !strings.HasPrefix(got, "1,one\n") || !strings.Contains(got, "none") {
		t.Errorf("the mount shows %q: the settings file counts in the daemon too", got)
	}
	if r := daemonOf(lake); r.Code != exitFailed || !strings.Contains(r.Err, "in use") {
		t.Errorf("a second one: exit code %d, %q", r.Code, r.Err)
	}
	if r := lake.Run("unmount", lake.Root); r.Code != exitOK || lake.Mounted() {
		t.Errorf("unmount: exit code %d, %q", r.Code, r.Err)
	}
}

// TestAForegroundMountWaitsForNoStore: it is there, and says what is wrong.
func TestAForegroundMountWaitsForNoStore(t *testing.T) {
	lake, proxy := bucketLake(t)
	proxy.Down()
	lake.Start("--io-timeout=1s")
	if r := lake.Sh("ls"); r.Code == 0 || !strings.Contains(r.Err, "Input/output error") {
		t.Errorf("ls without a store: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	lake.WaitLog("the catalog cannot be read")
	proxy.Up()
	lake.Eventually("the mount shows the lake when the store is there", 20*time.Second, func() bool {
		return lake.Sh("cat sales/notes/dt=2026-01-01/a.csv").Out == "1,one\n"
	})
}

// TestSecretsAreNowhere is case 65: in the environment, in a file, with the log at
// its most.
func TestSecretsAreNowhere(t *testing.T) {
	const secret, token = "wJalrXUtnFEMIK7MDENGbPxRfiCY", "AQoDYXdzEJr1K5rVexampletoken"
	server := *s3test.Versity(t)
	dir := t.TempDir()
	credentials := filepath.Join(dir, "credentials")
	if err := os.WriteFile(credentials, []byte("[other]\naws_access_key_id = AKIAOTHER\naws_secret_access_key = "+secret+"\naws_session_token = "+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "lake.yaml")
	if err := os.WriteFile(config, []byte("log-level: debug\nsecrets: {partner: other}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := sales(t)
	o.S3, o.Flags, o.Env = true, []string{"--config=" + config}, []string{"AWS_SHARED_CREDENTIALS_FILE=" + credentials}
	o.Tables = append(o.Tables, mounttest.Table{Database: "sales", Name: "partners", Format: "csv"})
	lake := mounttest.New(t, o)
	manifest := lake.StoredManifest("sales/partners")
	lake.PutManifest("sales/partners", strings.Replace(manifest, "{", `{"sqe": {"secret": "partner"},`, 1))
	lake.Start()
	lake.MustSh("cat sales/notes/dt=2026-01-01/a.csv; echo x > sales/notes/dt=2026-01-01/b.csv; ls sales/partners; cat sales/*.json; true")
	shown := lake.MustSh("cat .lakefs/status.json .lakefs/stats .lakefs/config.json sales/partners/.lakefs/status.json; find . -print; true")
	for what, text := range map[string]string{
		"the log":         lake.Log(),
		"the mount":       shown,
		"the mount table": readAll(t, "/proc/self/mountinfo"),
		"ps":              readAll(t, filepath.Join("/proc", strconv.Itoa(lake.Pid()), "cmdline")),
		"status":          lake.Run("status", "--json").Out,
		"check":           lake.Run("check", "--state-dir="+lake.State, lake.Source).Out,
	} {
		for _, s := range []string{server.Secret, secret, token} {
			if strings.Contains(text, s) {
				t.Errorf("%s shows %q: %s", what, s, text)
			}
		}
		if text == "" {
			t.Errorf("%s is empty: this test shows nothing", what)
		}
	}
	if !strings.Contains(lake.Log(), "level=DEBUG") {
		t.Log("nothing was logged at level debug")
	}
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestCredentialsAreReadAnew: what another program wrote into the file counts after
// SIGHUP, another key and another secret of the same key.
func TestCredentialsAreReadAnew(t *testing.T) {
	server := s3test.Versity(t)
	for name, wrong := range map[string][2]string{
		"another key":    {"nobody", server.Secret},
		"another secret": {server.Access, "wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "credentials")
			write := func(id, secret string) {
				t.Helper()
				text := "[lake]\naws_access_key_id = " + id + "\naws_secret_access_key = " + secret + "\n"
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(wrong[0], wrong[1])
			o := sales(t)
			o.S3, o.Flags, o.Env = true, []string{"--profile=lake"}, []string{"AWS_SHARED_CREDENTIALS_FILE=" + file}
			lake := mounttest.Mount(t, o)
			if r := lake.Sh("ls"); !strings.Contains(r.Err, "Permission denied") {
				t.Errorf("with a wrong key: exit code %d, %q %q, want EACCES", r.Code, r.Out, r.Err)
			}
			write(server.Access, server.Secret)
			lake.Signal(syscall.SIGHUP)
			lake.Eventually("the new key is used", 20*time.Second, func() bool { return lake.Sh("ls").Code == 0 })
		})
	}
}

// TestExpiredCredentialsAreNobodysError is of case 63: they are fetched anew, and
// the request is signed anew.
func TestExpiredCredentialsAreNobodysError(t *testing.T) {
	lake, proxy := bucketLake(t)
	lake.Start("--metadata-ttl=0", "--negative-ttl=0")
	expired := faulty.Status{Code: http.StatusBadRequest, S3Code: "ExpiredToken", Message: "The provided token has expired."}
	for _, op := range []string{"ListObjectsV2", "GetObject", "PutObject"} {
		lake.PutStored("sales/notes/dt=2026-01-01/new-"+op, "1,one\n")
		once := proxy.Add(faulty.Rule{Op: op, Times: 1, Fault: expired})
		lake.MustSh("cd sales/notes/dt=2026-01-01; ls; cat new-" + op + "; echo x > " + op)
		if once.Hits() != 1 {
			t.Errorf("%s was refused %d times, want once", op, once.Hits())
		}
		if got, err := lake.Stored("sales/notes/dt=2026-01-01/" + op); err != nil || got != "x\n" {
			t.Errorf("%s: the bucket has %q (%v)", op, got, err)
		}
		once.Remove()
	}
	if log := lake.Log(); strings.Contains(log, "level=ERROR") {
		t.Errorf("errors were logged: %s", log)
	}
}

// TestAMountStartsWithoutTheStoreThatItOwes: a publish that an earlier mount began
// waits in the staging directory.
func TestAMountStartsWithoutTheStoreThatItOwes(t *testing.T) {
	lake, proxy := bucketLake(t)
	lake.Start("--io-timeout=2s")
	held := proxy.Add(faulty.Rule{Op: "PutObject", Fault: faulty.Hang{}})
	writing := lake.Exec // the writer is left behind by the kill
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = writing("bash", "-c", "echo 2,two > sales/notes/dt=2026-01-01/b.csv")
	}()
	held.Wait(t, 1)
	lake.Kill()
	<-done
	held.Remove()
	proxy.Down()
	lake.Start("--io-timeout=1s")
	if r := lake.Run("recover", lake.Root); !strings.Contains(r.Out, "b.csv") {
		t.Errorf("recover lists %q %q", r.Out, r.Err)
	}
	proxy.Up()
	lake.Remount("--io-timeout=10s")
	if got, err := lake.Stored("sales/notes/dt=2026-01-01/b.csv"); err != nil || got != "2,two\n" {
		t.Errorf("after the next mount the bucket has %q (%v)", got, err)
	}
}

// TestRecoverOfABucketLake: what a mount could not publish is published after it.
func TestRecoverOfABucketLake(t *testing.T) {
	lake, proxy := bucketLake(t)
	lake.Start("--io-timeout=1s")
	refuse := proxy.Add(faulty.Rule{Op: "PutObject", Fault: faulty.Status{Code: http.StatusForbidden, S3Code: "AccessDenied"}})
	if err := lake.WriteFile("sales/notes/dt=2026-01-01/b.csv", "2,two\n"); err == nil {
		t.Error("a write that the store refuses returned no error")
	}
	lake.Unmount()
	refuse.Remove()
	args := []string{"recover", "--state-dir=" + lake.State, "--publish=all", lake.Source, lake.Root}
	if r := lake.Run(args...); r.Code != exitOK || !strings.Contains(r.Out, "published") {
		t.Errorf("recover: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	if got, err := lake.Stored("sales/notes/dt=2026-01-01/b.csv"); err != nil || got != "2,two\n" {
		t.Errorf("the bucket has %q (%v)", got, err)
	}
}

// TestNoCredentialsAreLookedForAtTheStart: an instance's metadata service that never
// answers holds up nothing.
func TestNoCredentialsAreLookedForAtTheStart(t *testing.T) {
	silent := faulty.New(t, s3test.Versity(t))
	silent.Add(faulty.Rule{Fault: faulty.Hang{}})
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", silent.URL)
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_EC2_METADATA_DISABLED"} {
		t.Setenv(name, "")
	}
	p := &program{}
	r := &request{}
	r.settings.IOTimeout = time.Second
	if err := p.setSource(t.Context(), r, "s3://lake/wh/"); err != nil {
		t.Fatal(err)
	}
	if n := len(silent.Log()); n != 0 {
		t.Errorf("%d requests were made at the start", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := r.aws.main.Credentials.Retrieve(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("credentials of a service that does not answer: %v, %v", err, ctx.Err())
	}
}
