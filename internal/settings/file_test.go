package settings

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// settingsFile writes a settings file.
func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lake.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFileIsBetweenEnvironmentAndDefault(t *testing.T) {
	path := settingsFile(t, `# a lake
write: create
metadata-ttl: 30s
io-timeout: 5s
file-mode: 0640
read-only: true
allow-location: ["s3://b/x", /d]
endpoint-url: http://127.0.0.1:9000/
`)
	r, err := Resolve(Given{"config": {path}, "write": {"delete"}}, []string{"LAKEFS_MOUNT_METADATA_TTL=1m"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Source{
		"write": FromFlag, "metadata-ttl": FromEnvironment, "io-timeout": FromFile, "read-only": FromFile, "umask": FromDefault, "config": FromFlag,
	} {
		if got := r.Sources[name]; got != want {
			t.Errorf("source of %s is %q, want %q", name, got, want)
		}
	}
	if r.Write != "delete" || r.MetadataTTL != time.Minute || r.IOTimeout != 5*time.Second || r.FileMode != 0o640 || !r.ReadOnly ||
		!slices.Equal(r.AllowLocation, []string{"s3://b/x", "/d"}) || r.EndpointURL != "http://127.0.0.1:9000" || r.Config != path {
		t.Errorf("values are %+v", r.Values)
	}
	again, err := Resolve(parse(t, r.Flags()), []string{"LAKEFS_MOUNT_METADATA_TTL=1m"})
	if err != nil || again.Write != r.Write || again.IOTimeout != r.IOTimeout || again.Config != path {
		t.Errorf("a second run by its flags has %+v (%v)", again.Values, err)
	}
}

// parse reads --NAME=VALUE flags.
func parse(t *testing.T, flags []string) Given {
	t.Helper()
	given := Given{}
	for _, f := range flags {
		name, value, found := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		if !found {
			t.Fatalf("flag %q has no value", f)
		}
		given[name] = append(given[name], value)
	}
	return given
}

func TestFileByEnvironment(t *testing.T) {
	path := settingsFile(t, "write: none\n")
	r, err := Resolve(nil, []string{"LAKEFS_MOUNT_CONFIG=" + path})
	if err != nil || r.Write != WriteNone || r.Sources["config"] != FromEnvironment {
		t.Errorf("write is %q (%v), config from %q", r.Write, err, r.Sources["config"])
	}
}

func TestSecretsOfTheFile(t *testing.T) {
	path := settingsFile(t, "secrets:\n  partner: partner-profile\n  \"other one\": {profile: p2}\n  third:\n    profile: p3\n")
	r, err := Resolve(Given{"config": {path}}, nil)
	want := map[string]string{"partner": "partner-profile", "other one": "p2", "third": "p3"}
	if err != nil || !maps.Equal(r.Secrets, want) {
		t.Errorf("secrets are %v (%v), want %v", r.Secrets, err, want)
	}
}

func TestFilesThatSayNothing(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "{}\n", "secrets:\n"} {
		r, err := Resolve(Given{"config": {settingsFile(t, text)}}, nil)
		if err != nil || r.Write != WriteOverwrite || len(r.Secrets) != 0 {
			t.Errorf("%q: %v, write %q, secrets %v", text, err, r.Write, r.Secrets)
		}
	}
}

func TestMistakesInAFileAreNamedWithTheirLine(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"unknown key", "write: none\nreadonly: true\n", []string{"lake.yaml:2:", `"readonly"`, "the nearest is read-only"}},
		{"two unknown keys", "writ: none\numsk: 0\n", []string{"lake.yaml:1:", "nearest is write", "lake.yaml:2:", "nearest is umask"}},
		{"the file itself", "config: other.yaml\n", []string{"lake.yaml:1:", `"config"`}},
		{"bad value", "\n\nwrite: all\n", []string{"lake.yaml:3: write:", `"all"`, "none, create, overwrite, delete"}},
		{"yes is no switch", "read-only: yes\n", []string{"lake.yaml:1: read-only:", `"yes"`, "true or false"}},
		{"bad one of a list", "allow-location:\n  - /a\n  - b\n", []string{"lake.yaml:1: allow-location:", `"b"`, "absolute"}},
		{"list for one value", "write: [none, create]\n", []string{"lake.yaml:1:", "write", "not a list"}},
		{"mapping for a value", "write: {none: create}\n", []string{"lake.yaml:1:", "write: want a value"}},
		{"no value", "write:\n", []string{"lake.yaml:1:", "write: want a value"}},
		{"twice", "write: none\nwrite: create\n", []string{"lake.yaml:2:", "write is given twice, first on line 1"}},
		{"secrets twice", "secrets: {a: b}\nsecrets: {a: c}\n", []string{"lake.yaml:2:", "twice"}},
		{"a list", "- write\n", []string{"lake.yaml:1:", "NAME: VALUE"}},
		{"text", "write\n", []string{"lake.yaml:1:", "NAME: VALUE"}},
		{"no YAML", "write: none\n\tx: [\n", []string{"--config", "lake.yaml", "line 2"}},
		{"two documents", "write: none\n---\nwrite: create\n", []string{"second document"}},
		{"too long", strings.Repeat("# comment\n", 200_000), []string{"over 1048576 bytes"}},
		{"secrets a list", "secrets: [a]\n", []string{"lake.yaml:1:", "secrets: want NAME"}},
		{"secret without a profile", "secrets:\n  a: {}\n", []string{"lake.yaml:2:", `"a"`, "profile: PROFILE"}},
		{"secret of no name", "secrets:\n  a@b: p\n", []string{"lake.yaml:2:", `"a@b"`}},
		{"one secret twice", "secrets:\n  a: p\n  a: q\n", []string{"lake.yaml:3:", `"a"`, "twice"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Resolve(Given{"config": {settingsFile(t, tt.text)}}, nil)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

// TestAKeyInTheFileIsNotRepeated: who writes keys into the settings file is told
// so, without them.
func TestAKeyInTheFileIsNotRepeated(t *testing.T) {
	text := "secrets:\n  a: {access_key: AKIAEXAMPLE, secret_key: wJalrXUtnFEMI}\nsecret_key: wJalrXUtnFEMI\n"
	_, err := Resolve(Given{"config": {settingsFile(t, text)}}, nil)
	if err == nil || strings.Contains(err.Error(), "wJal") || strings.Contains(err.Error(), "AKIA") || !strings.Contains(err.Error(), "lake.yaml:2:") {
		t.Errorf("error is %v", err)
	}
}

func TestAMissingFileIsNamed(t *testing.T) {
	for _, env := range []string{"", "LAKEFS_MOUNT_CONFIG=/none/lake.yaml"} {
		given := Given{"config": {"/none/lake.yaml"}}
		if env != "" {
			given = nil
		}
		_, err := Resolve(given, []string{env})
		if err == nil || !strings.Contains(err.Error(), `"/none/lake.yaml": no such file`) {
			t.Errorf("%q: error is %v", env, err)
		}
	}
}
