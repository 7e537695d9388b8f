package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

// manual writes all pages, and returns their files by name.
func manual(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if _, stderr, code := call(t, "lakefs-mount", nil, "man", "--dir", dir); code != exitOK {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	files, err := filepath.Glob(filepath.Join(dir, "man[158]", "*.[158]"))
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, f := range files {
		name, section, _ := strings.Cut(strings.TrimSuffix(filepath.Base(f), filepath.Ext(f))+"/"+filepath.Ext(f), "/.")
		if filepath.Base(filepath.Dir(f)) != "man"+section {
			t.Errorf("page %s is in %s", name, filepath.Dir(f))
		}
		pages[name] = f
	}
	return pages
}

// shownByMan is a page as man(1) shows it, its lines wide enough for every paragraph.
func shownByMan(t *testing.T, file, width string) string {
	t.Helper()
	if _, err := exec.LookPath("man"); err != nil {
		t.Skip("no man here (make deps installs it)")
	}
	cmd := exec.CommandContext(t.Context(), "man", "--warnings", "-l", file)
	cmd.Env = append(os.Environ(), "MANWIDTH="+width, "LC_ALL=C.UTF-8", "MAN_KEEP_FORMATTING=", "MANPAGER=cat", "MANOPT=")
	var out, warnings strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &warnings
	if err := cmd.Run(); err != nil || warnings.Len() > 0 {
		t.Errorf("man -l %s: %v, %s", filepath.Base(file), err, warnings.String())
	}
	return out.String()
}

func TestEachCommandHasAPage(t *testing.T) {
	pages := manual(t)
	p := &program{}
	want := []string{"lakefs-mount", settingsPage, helperPage}
	for _, name := range commandNames(p.rootCommand()) {
		if name != "help" {
			want = append(want, "lakefs-mount-"+name)
		}
	}
	for _, name := range want {
		if pages[name] == "" {
			t.Errorf("there is no page %s", name)
		}
	}
	if len(pages) != len(want) {
		t.Errorf("%d pages, want %d: %v", len(pages), len(want), pages)
	}
	kinds := regexp.MustCompile(`(?m)^\\fB\\-.*=[a-z]+([A-Z]\w*|)\\fR$`) // Go's types: =string, =stringArray
	for name, file := range pages {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if kind := kinds.Find(raw); kind != nil {
			t.Errorf("page %s: name what a value is, in backquotes in the flag's usage: %s", name, kind)
		}
		out, _, code := call(t, "lakefs-mount", nil, "man", strings.TrimPrefix(name, "lakefs-mount-"))
		if code != exitOK || out != string(raw) {
			t.Errorf("man %s prints another page than --dir writes (exit code %d)", name, code)
		}
		for _, width := range []string{"60", "80", "200"} {
			if text := shownByMan(t, file, width); !strings.Contains(text, "NAME") || !strings.Contains(text, name+" - ") && !strings.Contains(text, name+", ") {
				t.Errorf("page %s at %s columns: %.300s", name, width, text)
			}
		}
	}
}

// oneLine is text with each run of spaces and line breaks as one space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestPagesTellEachSetting as help does: its form, meaning and default.
func TestPagesTellEachSetting(t *testing.T) {
	pages := manual(t)
	flags := oneLine(shownByMan(t, pages["lakefs-mount-mount"], "20000"))
	file := oneLine(shownByMan(t, pages[settingsPage], "20000"))
	for s := range settings.All() {
		head := "--" + s.Name
		if s.Type != "" {
			head += "=" + s.Type
		}
		want := head + " " + oneLine(s.Usage)
		if s.Default != "" && s.Default != "false" {
			want += " (default " + oneLine(s.Default) + ")"
		}
		if !strings.Contains(flags, want) {
			t.Errorf("lakefs-mount-mount(1) has not %q", want)
		}
		if want = s.Name + ": VALUE " + oneLine(settings.Sentence(s.Usage)) + " " + oneLine(s.Allowed()); s.Name != "config" && !strings.Contains(file, want) {
			t.Errorf("lakefs-mount.yaml(5) has not %q", want)
		}
	}
	if n := strings.Count(flags, " --"); n < len(slices.Collect(settings.All())) {
		t.Errorf("lakefs-mount-mount(1) has %d flags", n)
	}
}

func TestPagesThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"man", "mout"}, exitUsage, "the nearest is mount"},
		{[]string{"man", "render"}, exitUsage, `"render"`},
		{[]string{"man", "--dir", "/x", "mount"}, exitUsage, "leave out"},
		{[]string{"man", "--dir", file}, exitFailed, file},
		{[]string{"man", "a", "b"}, exitUsage, "2 arguments"},
	} {
		if _, stderr, code := call(t, "lakefs-mount", nil, tt.args...); code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: exit code %d, %q", tt.args, code, stderr)
		}
	}
}

func TestRoffHasParagraphsAndLines(t *testing.T) {
	var r roff
	r.text("\nOne\nparagraph.\n\nTwo:\n\n    as it is\n\n      so too\nbehind\n    last\n")
	if got := r.String(); got != `One paragraph.
.PP
Two:
.PP
.RS 4
.EX
as it is

  so too
.EE
.RE
.PP
behind
.PP
.RS 4
.EX
last
.EE
.RE
` {
		t.Errorf("text is %s", got)
	}
}

func TestRoffShowsWhatIsWritten(t *testing.T) {
	var r roff
	r.title("x", "1", "", "")
	for _, line := range []string{`.SH no request`, `'quoted' "twice" \fBplain\fR \n(`, "a - b -- c ~ ^ ` … é", "*~,*.bak,.*.sw?"} {
		r.paragraph()
		r.line(line)
	}
	file := filepath.Join(t.TempDir(), "x.1")
	if err := os.WriteFile(file, []byte(r.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	text := shownByMan(t, file, "80")
	for _, want := range []string{`.SH no request`, `'quoted' "twice" \fBplain\fR \n(`, "a - b -- c ~ ^ ` … é", "*~,*.bak,.*.sw?"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has not %q: %s", want, text)
		}
	}
}
