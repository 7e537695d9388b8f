package settings

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestTheExampleFileChangesNothing(t *testing.T) {
	plain, err := Resolve(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Resolve(Given{"config": {settingsFile(t, ExampleFile())}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Config = ""
	if !reflect.DeepEqual(r.Values, plain.Values) {
		t.Errorf("values are %+v, want %+v", r.Values, plain.Values)
	}
	for s := range All() {
		if s.Name != "config" && r.Sources[s.Name] != FromDefault {
			t.Errorf("%s comes from the %s", s.Name, r.Sources[s.Name])
		}
	}
}

// uncommented is the example file with each setting in force.
func uncommented() string {
	var b strings.Builder
	for line := range strings.Lines(ExampleFile()) {
		if strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "# ") {
			line = line[1:]
		}
		b.WriteString(line)
	}
	return b.String()
}

// TestTheExampleFileHasValuesThatAreAccepted, each the default where there is one.
func TestTheExampleFileHasValuesThatAreAccepted(t *testing.T) {
	plain, err := Resolve(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(uncommented(), "sse: AES256", "sse: aws:kms", 1)
	r, err := Resolve(Given{"config": {settingsFile(t, text)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for s := range All() {
		if s.Name == "config" {
			continue
		}
		if r.Sources[s.Name] != FromFile {
			t.Errorf("%s comes from the %s, want it in the file", s.Name, r.Sources[s.Name])
		}
		if s.Default == "" && s.Example == "" && s.Choices() == nil {
			t.Errorf("%s has neither a default nor an example", s.Name)
		}
		if s.Default != "" && !reflect.DeepEqual(s.Value(&r.Values), s.Value(&plain.Values)) {
			t.Errorf("%s: the file has %v, by default it is %v", s.Name, s.Value(&r.Values), s.Value(&plain.Values))
		}
	}
	if r.Secrets["partner"] != "partner-readonly" {
		t.Errorf("secrets are %v", r.Secrets)
	}
}

func TestTheExampleFileTellsEachSetting(t *testing.T) {
	var words []string // of all comments, without line breaks
	for line := range strings.Lines(ExampleFile()) {
		if len(line) > exampleWidth+1 && strings.HasPrefix(line, "# ") && strings.Count(line, " ") > 1 && !strings.Contains(line, "sed??????") {
			t.Errorf("a line of %d: %s", len(line), line)
		}
		words = append(words, strings.Fields(strings.TrimPrefix(line, "#"))...)
	}
	whole := strings.Join(words, " ")
	for s := range All() {
		if s.Name == "config" {
			continue
		}
		for _, want := range []string{strings.Join(strings.Fields(s.Usage[1:]), " "), s.Form(), s.Default} {
			if !strings.Contains(whole, want) {
				t.Errorf("the file has not %q of %s", want, s.Name)
			}
		}
	}
}

func TestValuesAsTheyAreTold(t *testing.T) {
	r, err := Resolve(Given{
		"write": {"none"}, "read-only": {"true"}, "uid": {"7"}, "file-mode": {"666"}, "umask": {"027"}, "io-timeout": {"90s"}, "memory-limit": {"1GiB"},
		"database": {"a", "b*"}, "log-level": {"warn"}, "rename-limit": {"9"}, "metrics-addr": {":1"}, "part-size": {"8MiB"}, "local-names": {""},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"write": "none", "read-only": true, "file-mode": "0640", "io-timeout": "1m30s", "memory-limit": int64(1 << 30), "database": []string{"a", "b*"},
		"log-level": "warn", "rename-limit": 9, "metrics-addr": "127.0.0.1:1", "part-size": int64(8 << 20), "local-names": []string{}, "staged-keep": "7d",
		"region": nil, "staged-max": nil, "state-dir": nil, "table": []string{}, "profile": nil, "sse": nil,
	}
	for s := range All() {
		if w, asked := want[s.Name]; asked && !reflect.DeepEqual(s.Value(&r.Values), w) {
			t.Errorf("%s is told as %#v, want %#v", s.Name, s.Value(&r.Values), w)
		}
	}
}

func TestDurationsAreToldAsTheyAreRead(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", time.Second: "1s", time.Minute: "1m", time.Hour: "1h", 90 * time.Minute: "1h30m", 36 * time.Hour: "1d12h", 168 * time.Hour: "7d",
		20 * time.Second: "20s", time.Hour + 10*time.Second: "1h0m10s", 1500 * time.Millisecond: "1.5s",
	} {
		got := durationText(d)
		if again, err := ParseDuration(got); got != want || err != nil || again != d {
			t.Errorf("%v is told as %q, which is read as %v (%v); want %q", d, got, again, err, want)
		}
	}
}

func TestSecretsOfURLsAreMasked(t *testing.T) {
	for text, want := range map[string]string{
		"http://user:pass@proxy:3128": "http://****@proxy:3128",
		"https://token@h/x":           "https://****@h/x",
		"http://u:p@ss@h":             "http://****@h",
		"http://h:1/x?sig=abc&t=me@h": "http://h:1/x?****",
		"http://h:3128":               "http://h:3128",
		"/srv/a@b":                    "/srv/a@b",
		"s3://bucket/x":               "s3://bucket/x",
	} {
		if got := Masked(text, false); got != want {
			t.Errorf("Masked(%q) is %q, want %q", text, got, want)
		}
	}
	if got := Masked("user:pass@proxy:3128", true); got != "****@proxy:3128" {
		t.Errorf("a proxy without a scheme is %q", got)
	}
}
