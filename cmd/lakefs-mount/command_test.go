package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// call runs the program in this process, for what mounts nothing.
func call(t *testing.T, name string, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	p := &program{name: name, args: args, environ: environ, stdout: &out, stderr: &errs}
	code = p.run(context.Background())
	return out.String(), errs.String(), code
}

func TestHelpListsExactlyTheSettings(t *testing.T) {
	help, _, code := call(t, "lakefs-mount", nil, "mount", "--help")
	if code != exitOK {
		t.Fatalf("exit code %d, want 0", code)
	}
	var listed []string
	for line := range strings.Lines(help) {
		if name, found := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "-h,")), "--"); found {
			listed = append(listed, strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '[' || r == '=' })[0])
		}
	}
	want := []string{"help"}
	for s := range settings.All() {
		want = append(want, s.Name)
		if s.Default != "" && s.Default != "false" && !strings.Contains(help, "(default "+s.Default+")") {
			t.Errorf("help does not show the default %s of --%s", s.Default, s.Name)
		}
		if !strings.Contains(help, s.Usage) {
			t.Errorf("help does not show the meaning of --%s", s.Name)
		}
	}
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("help lists %q, want %q", listed, want)
	}
}

func TestUsageErrorsNameTheNearest(t *testing.T) {
	tests := []struct {
		name string
		args []string
		env  []string
		want string
	}{
		{name: "command", args: []string{"stats"}, want: `unknown command "stats"; the nearest is status`},
		{name: "command with arguments", args: []string{"unmout", "/mnt"}, want: "the nearest is unmount"},
		{name: "flag", args: []string{"mount", "--readonly", "/a", "/b"}, want: "unknown flag --readonly; the nearest is --read-only"},
		{name: "value", args: []string{"mount", "--write=all", "/a", "/b"}, want: "none, create, overwrite, delete"},
		{name: "environment", args: []string{"mount", "/", "/mnt"}, env: []string{"LAKEFS_MOUNT_WRIET=none"}, want: "the nearest is LAKEFS_MOUNT_WRITE"},
		{name: "option", args: []string{"/", "/mnt", "-o", "read_olny"}, want: `unknown mount option "read_olny"; the nearest is read-only`},
		{name: "arguments", args: []string{"mount", "/a"}, want: "SOURCE MOUNTPOINT, was given 1 argument\n"},
		{name: "no arguments", args: []string{"mount"}, want: "SOURCE MOUNTPOINT, was given no arguments\n"},
		{name: "three arguments", args: []string{"mount", "/a", "/b", "/c"}, want: "SOURCE MOUNTPOINT, was given 3 arguments\n"},
		{name: "user with allow-other", args: []string{"mount", "--allow-location=/home/{user}", "--allow-other", "/", "/mnt"}, want: "--allow-other"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, code := call(t, "lakefs-mount", tt.env, tt.args...)
			if code != exitUsage || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit code %d, stderr %q; want %d and %q", code, stderr, exitUsage, tt.want)
			}
		})
	}
}

// TestUsageHasFlagsFirst, where commands that take arguments are shown.
func TestUsageHasFlagsFirst(t *testing.T) {
	for _, name := range commandNames((&program{}).rootCommand()) {
		help, _, code := call(t, "lakefs-mount", nil, name, "--help")
		if code != exitOK || !strings.Contains(help, "\n  lakefs-mount "+name+" [flags]") {
			t.Errorf("exit code %d, the usage of %s is not with flags first: %s", code, name, help)
		}
	}
}

func TestFlagsThatDoNotParse(t *testing.T) {
	for flag, want := range map[string]string{
		"--depth=x": `--depth "x": it is a whole number`, "--depth=99999999999999999999": "not so large a one", "--depth=-2": "--depth -2: it is 0 for",
		"--json=x": `--json "x": it is true or false`,
	} {
		if _, stderr, code := call(t, "lakefs-mount", nil, "du", flag, "x"); code != exitUsage || !strings.Contains(stderr, want) || strings.Contains(stderr, "strconv") {
			t.Errorf("%s: exit code %d, %q, want %q", flag, code, stderr, want)
		}
	}
	if help, _, _ := call(t, "lakefs-mount", nil, "du", "--help"); !strings.Contains(help, "(default all)\n") {
		t.Errorf("the default of --depth is not all alone: %s", help)
	}
}

func TestNothingIsSaidToBeNearThatIsNot(t *testing.T) {
	for _, tt := range []struct{ args, env []string }{
		{args: []string{"frobnicate"}},
		{args: []string{"mount", "--frobnicate", "/a", "/b"}},
		{args: []string{"/", "/mnt", "-o", "frobnicate"}},
		{args: []string{"mount", "/", "/mnt"}, env: []string{"LAKEFS_MOUNT_FROBNICATE=1"}},
	} {
		_, stderr, code := call(t, "lakefs-mount", tt.env, tt.args...)
		if code != exitUsage || strings.Contains(stderr, "nearest") || !strings.Contains(strings.ToLower(stderr), "frobnicate") {
			t.Errorf("%q: exit code %d, %q", tt.args, code, stderr)
		}
	}
}

func TestHelperTakesWhatMountGives(t *testing.T) {
	dir := t.TempDir()
	_, stderr, code := call(t, "mount.lakefs-mount", nil, dir, filepath.Join(dir, "mnt"), "-n", "-s", "-v", "-f", "-o", "rw,noauto,nofail,_netdev,x-systemd.automount,uid=1000,allow-other")
	if code != exitOK {
		t.Errorf("exit code %d, want 0: %s", code, stderr)
	}
	for _, source := range []string{"glue:", "lakefs-mount#glue:123456789012"} {
		_, stderr, code = call(t, "mount.lakefs-mount", nil, source, filepath.Join(dir, "mnt"), "-f", "-o",
			"ro,glue_endpoint_url=http://h:5000,database=sales*,database=b,table=[a-c]?,discover,catalog_writes=none")
		if code != exitOK {
			t.Errorf("%s: exit code %d, want 0: %s", source, code, stderr)
		}
	}
	_, stderr, code = call(t, "mount.lakefs-mount", nil, dir, filepath.Join(dir, "mnt"), "-f", "-o", "uidd=1000")
	if code != exitUsage || !strings.Contains(stderr, "nearest is uid") {
		t.Errorf("exit code %d, %q; want %d and the nearest option", code, stderr, exitUsage)
	}
}

func TestVersionAsJSON(t *testing.T) {
	stdout, _, code := call(t, "lakefs-mount", nil, "version", "--json")
	var b build
	if err := json.Unmarshal([]byte(stdout), &b); err != nil || code != exitOK || !strings.HasPrefix(b.Go, "go1.") ||
		b.Platform != runtime.GOOS+"/"+runtime.GOARCH || !strings.HasPrefix(b.Modules["github.com/spf13/cobra"], "v") {
		t.Errorf("version --json is %q (%v), exit code %d", stdout, err, code)
	}
}

func TestStateDirBySourceAndMountPoint(t *testing.T) {
	p := &program{environ: []string{"HOME=/home/u"}}
	seen := map[string]string{}
	for name, r := range map[string]*request{
		"folder":       {source: source{folder: "/w"}, mountpoint: "/m"},
		"mount point":  {source: source{folder: "/w"}, mountpoint: "/m2"},
		"bucket":       {source: source{root: objectstore.Location{Bucket: "lake", Key: "wh/"}}, mountpoint: "/m"},
		"prefix":       {source: source{root: objectstore.Location{Bucket: "lake"}}, mountpoint: "/m"},
		"another host": {source: source{root: objectstore.Location{Bucket: "lake", Key: "wh/"}}, mountpoint: "/m", endpoint: "http://h"},
	} {
		dir, err := p.stateDir(r)
		if other, twice := seen[dir]; err != nil || twice || filepath.Dir(dir) != "/home/u/.local/state/lakefs-mount" {
			t.Errorf("%s: state directory is %q (%v), that of %q", name, dir, err, other)
		}
		seen[dir] = name
	}
	r := &request{source: source{folder: "/w"}, mountpoint: "/m"}
	p.environ = []string{"HOME=/home/u", "XDG_STATE_HOME=/state"}
	if a, err := p.stateDir(r); err != nil || filepath.Dir(a) != "/state/lakefs-mount" {
		t.Errorf("state directory is %q (%v), want one in /state/lakefs-mount", a, err)
	}
	p.environ = []string{"HOME=/home/u", "XDG_STATE_HOME=state"}
	if a, err := p.stateDir(r); err != nil || filepath.Dir(a) != "/home/u/.local/state/lakefs-mount" {
		t.Errorf("state directory is %q (%v): a relative XDG_STATE_HOME is to be ignored", a, err)
	}
}

func TestParseMountTable(t *testing.T) {
	raw := `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
42 27 0:39 / /tmp/a\040b\134c rw,nosuid - fuse.lakefs-mount /w\011h rw,user_id=0
nonsense
`
	got := parseMountTable(raw)
	want := []tableEntry{
		{device: "0", path: "/mnt2", fsType: "ext3", source: "/dev/root"},
		{device: "39", path: `/tmp/a b\c`, fsType: fsType, source: "/w\th"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("mount table is %+v, want %+v", got, want)
	}
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		path, dir string
		want      bool
	}{
		{"/a", "/a", true},
		{"/a/b", "/a", true},
		{"/ab", "/a", false},
		{"/a", "/a/b", false},
		{"/a", "/", true},
	} {
		if got := within(tt.path, tt.dir); got != tt.want {
			t.Errorf("within(%q, %q) is %v, want %v", tt.path, tt.dir, got, tt.want)
		}
	}
}

func TestShellQuoteIsOneWord(t *testing.T) {
	for _, s := range []string{"/plain/dt=1", "/a b", "/it's", "/$HOME", "/tab\tnew\nline", "/esc\x1b[31m", `/back\slash`, "", "/é"} {
		stdout, _, _ := shell(t, "printf %s "+shellQuote(s))
		if stdout != s {
			t.Errorf("shellQuote(%q) is %s, which a shell reads as %q", s, shellQuote(s), stdout)
		}
	}
}

func TestQuotedCannotDriveATerminal(t *testing.T) {
	for s, want := range map[string]string{"/mnt/lake": "/mnt/lake", "/a\x1b[2J": `"/a\x1b[2J"`, "/a b": `"/a b"`, "/\u202e": `"/\u202e"`} {
		if got := quoted(s); got != want {
			t.Errorf("quoted(%q) is %s, want %s", s, got, want)
		}
	}
}

func TestParseMetrics(t *testing.T) {
	s := mountStatus{Metrics: parseMetrics(`# HELP lakefs_mount_x A thing.
lakefs_mount_x_total{outcome="ok"} 3
lakefs_mount_x_total{outcome="error"} 2
lakefs_mount_y_bucket{le="1"} 9
lakefs_mount_xx 1e3
`)}
	if got := s.sum("x_total", ""); got != 5 {
		t.Errorf("sum of x_total is %v, want 5", got)
	}
	if got := s.sum("x_total", `outcome="error"`); got != 2 {
		t.Errorf("errors of x_total are %v, want 2", got)
	}
	if got := s.sum("xx", ""); got != 1000 {
		t.Errorf("xx is %v, want 1000", got)
	}
}

func TestChooseTakesIDsTheirBeginningAndAll(t *testing.T) {
	list := stagedList{Staged: []stagedWrite{{ID: "11111111-aaaa"}, {ID: "22222222-bbbb"}}, Local: []stagedWrite{{ID: "33333333-cccc"}}}
	for _, tt := range []struct {
		ids       []string
		withLocal bool
		want      int
	}{
		{nil, false, 0},
		{[]string{"all"}, false, 2},
		{[]string{"all"}, true, 3},
		{[]string{"22222222"}, false, 1},
		{[]string{"33333333"}, false, 1},
		{[]string{"11111111-aaaa", "22222222-bbbb"}, false, 2},
	} {
		if got, err := choose(list, tt.ids, tt.withLocal); err != nil || len(got) != tt.want {
			t.Errorf("choose(%q, %v) is %v, %v; want %d", tt.ids, tt.withLocal, got, err, tt.want)
		}
	}
	if _, err := choose(list, []string{"1"}, false); err == nil {
		t.Error("one digit of an id names a write, want an error")
	}
}

func TestDemoIsTheSameEachTimeAndSparesWhatIsNotItsOwn(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "demo"), filepath.Join(t.TempDir(), "demo")
	for _, dir := range []string{first, second} {
		if err := makeDemo(dir); err != nil {
			t.Fatal(err)
		}
	}
	if out, _, code := shell(t, "diff -r "+first+" "+second); code != 0 {
		t.Errorf("two demos differ: %s", out)
	}
	changed := filepath.Join(first, "warehouse", "_data", "sales", "countries", "countries.csv")
	if err := os.WriteFile(changed, []byte("XX\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := makeDemo(first); err != nil {
		t.Errorf("demo on its own directory: %v", err)
	}
	if raw, err := os.ReadFile(changed); err != nil || string(raw) != "XX\n" {
		t.Errorf("a changed file is %q (%v) after another demo, want it left alone", raw, err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := makeDemo(foreign); err == nil || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("demo in a foreign directory: %v, want an error that names what is there", err)
	}
}
