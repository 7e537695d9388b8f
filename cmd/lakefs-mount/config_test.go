package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// inMount is .lakefs/config.json of a mount, of one that has no secret in it.
func inMount(t *testing.T, lake *mounttest.Lake) (mountConfig, string) {
	t.Helper()
	raw, err := lake.ReadFile(".lakefs/config.json")
	if err != nil {
		t.Fatal(err)
	}
	var c mountConfig
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	for s := range settings.All() {
		if _, found := c.Settings[s.Name]; !found {
			t.Errorf("config.json has no %s", s.Name)
		}
	}
	return c, raw
}

func TestConfigJSONTellsEachValueAndItsSource(t *testing.T) {
	mounttest.FolderOnly(t, "its variables would lead requests astray")
	o := sales(t)
	o.Env = []string{
		"LAKEFS_MOUNT_METADATA_TTL=2m", "HTTPS_PROXY=http://me:hidden-1@proxy:3128", "http_proxy=me:hidden-2@proxy:3128", "NO_PROXY=localhost",
		"AWS_SECRET_ACCESS_KEY=hidden-3", "AWS_SESSION_TOKEN=hidden-4", "AWS_CONTAINER_AUTHORIZATION_TOKEN=hidden-5", "AWS_ENDPOINT_URL_X=https://hidden-6@h/?hidden-7",
		"AWS_PROFILE=analytics", "AWS_NEW_THING=hidden-8",
	}
	lake := mounttest.New(t, o)
	file := filepath.Join(t.TempDir(), "lake.yaml")
	if err := os.WriteFile(file, []byte("negative-ttl: 3s\nsecrets: {partner: p1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lake.Start("--config="+file, "--write=create")
	c, raw := inMount(t, lake)
	for name, want := range map[string]configValue{
		"write":        {Value: "create", Source: settings.FromFlag},
		"metadata-ttl": {Value: "2m", Source: settings.FromEnvironment},
		"negative-ttl": {Value: "3s", Source: settings.FromFile},
		"io-timeout":   {Value: "1m", Source: settings.FromDefault},
		"config":       {Value: file, Source: settings.FromFlag},
		"read-only":    {Value: false, Source: settings.FromDefault},
		"uid":          {Value: float64(os.Geteuid()), Source: settings.FromDefault},
		"profile":      {Source: settings.FromDefault},
	} {
		if got := c.Settings[name]; got != want {
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
	}
	if bytes, ok := c.Settings["memory-limit"].Value.(float64); !ok || bytes < 16<<20 {
		t.Errorf("memory-limit is %+v, want what was chosen", c.Settings["memory-limit"])
	}
	if c.Source != lake.Source || c.MountPoint != lake.Root || c.Secrets["partner"] != "p1" {
		t.Errorf("config.json is of %q on %q, secrets %v", c.Source, c.MountPoint, c.Secrets)
	}
	for name, want := range map[string]string{
		"HTTPS_PROXY": "http://****@proxy:3128", "http_proxy": "****@proxy:3128", "NO_PROXY": "localhost", "AWS_PROFILE": "analytics",
		"AWS_SECRET_ACCESS_KEY": "****", "AWS_NEW_THING": "****", "AWS_ENDPOINT_URL_X": "https://****@h/?****",
	} {
		if got := c.Environment[name]; got != want {
			t.Errorf("variable %s is %q, want %q", name, got, want)
		}
	}
	if strings.Contains(raw, "hidden") {
		t.Errorf("a secret is in config.json: %s", raw)
	}
	if names := lake.MustSh("ls .lakefs"); !strings.Contains(names, "config.json\n") {
		t.Errorf(".lakefs lists %q", names)
	}
	if got := strings.TrimSpace(lake.MustSh("stat -c %a:%u:%s .lakefs/config.json")); got != "400:"+strconv.Itoa(os.Geteuid())+":"+strconv.Itoa(len(raw)) {
		t.Errorf("config.json is %s", got)
	}
	if r := lake.Sh("stat sales/.lakefs/config.json"); r.Code == 0 {
		t.Error("a database has a config.json")
	}
	if err := os.WriteFile(file, []byte("negative-ttl: 9s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lake.Signal(syscall.SIGHUP)
	lake.WaitLog("reading credentials anew")
	if _, again := inMount(t, lake); again != raw {
		t.Errorf("after SIGHUP config.json is %s, before %s", again, raw)
	}
}

// TestConfigJSONOfAWS: what its configuration says is in force, and said to be from there.
func TestConfigJSONOfAWS(t *testing.T) {
	resolved, err := settings.Resolve(settings.Given{"endpoint-url": {"http://h:9000"}, "cache-dir": {"/c"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &request{source: source{glue: true}, settings: resolved, endpoint: "http://h:9000", glueEndpoint: "http://me:hidden@glue"}
	r.aws = &awsConfigs{main: aws.Config{Region: "eu-west-3"}}
	raw, err := configJSON(r, &lake{stagedMax: 5}, 7)
	var c mountConfig
	if err = errors.Join(err, json.Unmarshal(raw, &c)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]configValue{
		"endpoint-url":      {Value: "http://h:9000", Source: settings.FromFlag},
		"glue-endpoint-url": {Value: "http://****@glue", Source: settings.FromAWS},
		"region":            {Value: "eu-west-3", Source: settings.FromAWS},
		"staged-max":        {Value: 5.0, Source: settings.FromDefault},
		"memory-limit":      {Value: 7.0, Source: settings.FromDefault},
		"cache-dir":         {Value: "/c", Source: settings.FromFlag},
		"cache-size":        {Source: settings.FromDefault},
	} {
		if got := c.Settings[name]; got != want {
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
	}
}

func TestConfigJSONIsForItsOwnerAlone(t *testing.T) {
	mounttest.FolderOnly(t, "who may read it is no matter of the store")
	if os.Geteuid() != 0 {
		t.Skip("other users need root")
	}
	lake := mounttest.New(t, sales(t))
	lake.Start("--allow-other", "--uid=12", "--file-mode=0666", "--dir-mode=0777")
	if _, stderr, code := shell(t, "chmod 755 "+filepath.Dir(lake.Root)+" "+filepath.Dir(filepath.Dir(lake.Root))); code != 0 {
		t.Fatal(stderr)
	}
	for user, want := range map[string]bool{"12": true, "13": false} {
		_, stderr, code := shell(t, "setpriv --reuid="+user+" --regid="+user+" --clear-groups cat "+lake.Root+"/.lakefs/config.json")
		if (code == 0) != want {
			t.Errorf("user %s reads it: %d, %s", user, code, stderr)
		}
	}
}

// TestConfigJSONOfMountOptions: of a daemon, which has them as flags.
func TestConfigJSONOfMountOptions(t *testing.T) {
	mounttest.FolderOnly(t, "a shell without the store's credentials")
	lake := mounttest.New(t, sales(t))
	_, stderr, code := shell(t, lake.Binary()+" "+lake.Source+" "+lake.Root+" -o write=none,state-dir="+lake.State)
	if code != 0 {
		t.Fatal(stderr)
	}
	c, _ := inMount(t, lake)
	if got := c.Settings["write"]; got != (configValue{Value: "none", Source: settings.FromOption}) {
		t.Errorf("write is %+v", got)
	}
	if got := c.Settings["umask"].Source; got != settings.FromDefault {
		t.Errorf("umask comes from the %s", got)
	}
	if _, stderr, code := shell(t, lake.Binary()+" unmount "+lake.Root); code != 0 {
		t.Error(stderr)
	}
}

func TestConfigPrintsAFileThatChangesNothing(t *testing.T) {
	out, _, code := call(t, "lakefs-mount", nil, "config")
	if code != exitOK || out != settings.ExampleFile() {
		t.Errorf("exit code %d, %q", code, out)
	}
	lake := mounttest.New(t, sales(t))
	file := filepath.Join(t.TempDir(), "lake.yaml")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	lake.Start()
	before, _ := inMount(t, lake)
	lake.Remount("--config=" + file)
	after, _ := inMount(t, lake)
	for name, b := range before.Settings {
		if a := after.Settings[name]; name != "config" && name != "staged-max" && asJSON(t, a) != asJSON(t, b) { // of a disk that others fill
			t.Errorf("%s was %s, is %s", name, asJSON(t, b), asJSON(t, a))
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
