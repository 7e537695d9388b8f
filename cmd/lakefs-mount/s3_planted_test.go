package main

import (
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// planted are secrets, by where a mount finds them.
func planted() map[string]string {
	return map[string]string{
		"key of the environment":     "planted-key-of-the-environment",
		"session of the environment": "planted-session-of-the-environment",
		"password of a proxy":        "planted-password-of-a-proxy",
		"token of a container":       "planted-token-of-a-container",
		"key of a profile":           "planted-key-of-a-profile",
		"session of a profile":       "planted-session-of-a-profile",
	}
}

// TestCase65PlantedSecretsAreNowhereOnS3: not in what a mount logs at level debug, in
// its process and those that it starts, in the mount table, in any file that it makes
// up, in its metrics and profiles, in its state directory, and not in what commands say.
func TestCase65PlantedSecretsAreNowhereOnS3(t *testing.T) {
	secret := planted()
	dir := t.TempDir()
	credentials, config := filepath.Join(dir, "credentials"), filepath.Join(dir, "lake.yaml")
	for path, text := range map[string]string{
		credentials: "[partner]\naws_access_key_id = AKIAPARTNER\naws_secret_access_key = " + secret["key of a profile"] +
			"\naws_session_token = " + secret["session of a profile"] + "\n",
		config: "secrets:\n  partner: {profile: partner}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store := s3test.Mini(t) // it takes any key
	other := store.Bucket(t)
	store.Put(t, other, "x/dt=2026-01-01/far.csv", []byte("7,far\n"))
	o := sales(t)
	o.Server, o.Env = store, []string{
		"AWS_SECRET_ACCESS_KEY=" + secret["key of the environment"], "AWS_SESSION_TOKEN=" + secret["session of the environment"],
		"HTTPS_PROXY=http://me:" + secret["password of a proxy"] + "@proxy.test:3128", "HTTP_PROXY=http://me:" + secret["password of a proxy"] + "@proxy.test:3128",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN=" + secret["token of a container"], "AWS_SHARED_CREDENTIALS_FILE=" + credentials,
	}
	o.Tables = append(o.Tables,
		mounttest.Table{Database: "sales", Name: "far", Format: "csv", Keys: []string{"dt:date"}, Location: "s3://" + other + "/x"},
		mounttest.Table{Database: "sales", Name: "orders", Format: "parquet", Files: map[string]string{"a.parquet": mounttest.Parquet(t, 300_000)}})
	lake := mounttest.New(t, o)
	lake.PutManifest("sales/far", strings.Replace(lake.StoredManifest("sales/far"), "{", `{"sqe": {"secret": "partner"},`, 1))
	lake.Start("--config="+config, "--allow-location=s3://"+other+"/x/", "--log-level=debug", "--metrics-addr=:0", "--pprof", "--metadata-ttl=0")
	if got := lake.MustSh(`cat sales/far/dt=2026-01-01/far.csv`); got != "7,far\n" {
		t.Errorf("the table elsewhere has %q", got)
	}
	shown := map[string]string{}
	lake.MustSh(`echo 2,two >` + notes + `/b.csv; cat sales/orders/a.parquet >/dev/null; cat nothing sales/nothing 2>/dev/null; true`)
	lake.Signal(syscall.SIGUSR1)
	lake.Signal(syscall.SIGHUP)
	// A child shows rows for as long as they are read.
	shown["children"] = lake.MustSh(`exec 3<sales/orders/.lakefs/rows/a.parquet.jsonl; head -c 1 <&3 >/dev/null
		for task in /proc/` + strconv.Itoa(lake.Pid()) + `/task/*; do for child in $(cat $task/children); do
			echo child; tr '\0' '\n' </proc/$child/cmdline; tr '\0' '\n' </proc/$child/environ; done; done; exit 0`)
	made := lake.MustSh(`find . -type d | while read -r d; do find "$d/.lakefs" -type f ! -name ctl -exec sh -c 'for f do echo "=== $f"; head -c 1M "$f"; done' sh {} + 2>&1; done
		find . -name '*.json' -exec cat {} +; find . -exec getfattr -d -m - {} + 2>/dev/null; true`)
	for _, want := range []string{"=== ./.lakefs/config.json", "=== ./.lakefs/stats", "=== ./sales/orders/.lakefs/schema.sql"} {
		if !strings.Contains(made, want) {
			t.Errorf("no %q was read in the mount", want)
		}
	}
	shown["the mount"] = made
	proc := filepath.Join("/proc", strconv.Itoa(lake.Pid()))
	shown["ps"] = readAll(t, proc+"/cmdline") + readAll(t, proc+"/comm")
	shown["the mount table"] = readAll(t, "/proc/self/mountinfo")
	addr, profiles := servedAt(t, lake, "metrics"), servedAt(t, lake, "profiles")
	for _, path := range []string{"/metrics", "/healthz"} {
		_, shown[path] = fetch(t, addr, path)
	}
	for _, path := range []string{"/debug/pprof/cmdline", "/debug/pprof/", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1"} {
		status, text := fetch(t, profiles, path)
		if shown[path] = text; status != 200 {
			t.Errorf("%s: HTTP status %d, %q", path, status, text)
		}
	}
	shown["status"] = lake.Run("status", "--json").Out + lake.Run("status", lake.Root).Out
	env := slices.Concat(store.Env(), o.Env)
	checked, _ := bareRun(t, lake, env, "check", "--config="+config, "--endpoint-url="+store.Endpoint, "--path-style", "--state-dir="+filepath.Join(dir, "state"), lake.Source)
	shown["check"] = checked
	if !strings.Contains(checked, `secret "partner"`) {
		t.Errorf("check says nothing of the secret: %q", checked)
	}
	lake.Unmount()
	shown["the log"] = lake.Log()
	for _, want := range []string{"level=DEBUG", "store request"} {
		if !strings.Contains(shown["the log"], want) {
			t.Errorf("the log has no %q", want)
		}
	}
	addFiles(t, shown, lake.State)
	wantNoneShown(t, shown, secret)
}

// TestCase65SecretsInWrongPlacesAreNotShown: where they are no settings, the error names
// the place alone.
func TestCase65SecretsInWrongPlacesAreNotShown(t *testing.T) {
	const secret = "planted-in-a-wrong-place"
	lake := mounttest.New(t, sales(t))
	file := filepath.Join(t.TempDir(), "lake.yaml")
	for _, tt := range []struct {
		name, text string
		env, flags []string
		want       string
	}{
		{name: "a key of the settings file", text: "secret-access-key: " + secret + "\n", want: "secret-access-key"},
		{name: "a key below secrets", text: "secrets:\n  partner: {profile: p, aws_secret_access_key: " + secret + "}\n", want: `secrets: "partner"`},
		{name: "the endpoint", text: "endpoint-url: https://me:" + secret + "@store.test\n", want: "endpoint"},
		{name: "a variable", env: []string{"LAKEFS_MOUNT_SECRET_ACCESS_KEY=" + secret}, want: "LAKEFS_MOUNT_SECRET_ACCESS_KEY"},
		{name: "a flag", flags: []string{"--secret-access-key=" + secret}, want: "--secret-access-key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			args := slices.Concat([]string{"mount", "--daemon", "--config=" + file, "--state-dir=" + lake.State}, tt.flags, []string{"s3://no-such-bucket/wh/", lake.Root})
			said, code := bareRun(t, lake, tt.env, args...)
			if code == exitOK || !strings.Contains(said, tt.want) || lake.Mounted() {
				t.Errorf("exit code %d, mounted %v, %q; want an error that names %s", code, lake.Mounted(), said, tt.want)
			}
			if strings.Contains(said, secret) {
				t.Errorf("the secret is shown: %q", said)
			}
		})
	}
}

// addFiles adds the files below a directory to what is shown.
func addFiles(t *testing.T, shown map[string]string, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e iofs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			shown[path] = readAll(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func wantNoneShown(t *testing.T, shown, secrets map[string]string) {
	t.Helper()
	for _, where := range slices.Sorted(maps.Keys(shown)) {
		if shown[where] == "" && !strings.HasPrefix(where, "/") {
			t.Errorf("%s is empty", where)
		}
		for what, secret := range secrets {
			if strings.Contains(shown[where], secret) {
				t.Errorf("%s shows the %s", where, what)
			}
		}
	}
}
