package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

// The schema has the defaults as text, since it is below everything.
func TestDefaultNamesAreThoseOfFS(t *testing.T) {
	r, err := settings.Resolve(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []struct {
		name      string
		got, want []string
	}{
		{"temporary-names", r.TemporaryNames, fs.DefaultTemporaryNames},
		{"local-names", r.LocalNames, fs.DefaultLocalNames},
		{"backup-names", r.BackupNames, fs.DefaultBackupNames},
	} {
		if !slices.Equal(list.got, list.want) {
			t.Errorf("--%s is %q by default, and fs has %q", list.name, list.got, list.want)
		}
	}
	if _, err := parseNames(r); err != nil {
		t.Error(err)
	}
}

// TestOperationsListTheDefaultNames: who wants one more name gives all of them.
func TestOperationsListTheDefaultNames(t *testing.T) {
	raw, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for s := range settings.All() {
		if s.Type == "LIST" && (!strings.Contains(string(raw), "`--"+s.Name) || !strings.Contains(string(raw), s.Default)) {
			t.Errorf("docs/operations.md has no --%s with its default %s", s.Name, s.Default)
		}
	}
}

func TestBadNamesAreNamed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "lake.yaml")
	if err := os.WriteFile(file, []byte("backup-names: [\"*~\", a/b]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mnt := filepath.Join(dir, "mnt")
	if err := os.Mkdir(mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		flags, env []string
		want       []string
	}{
		{flags: []string{"--temporary-names=*.tmp,=x"}, want: []string{"--temporary-names", `"=x"`}},
		{flags: []string{"--local-names=a", "--local-names=a=*"}, want: []string{"--local-names", `"a=*"`}},
		{env: []string{"LAKEFS_MOUNT_LOCAL_NAMES=a:b/c"}, want: []string{"LAKEFS_MOUNT_LOCAL_NAMES", `"b/c"`}},
		{flags: []string{"--config=" + file}, want: []string{file + ": backup-names", `"a/b"`}},
		{flags: []string{"--temporary-names=/", "--backup-names=/"}, want: []string{"--temporary-names", "--backup-names"}},
	} {
		_, stderr, code := call(t, "lakefs-mount", tt.env, append(append([]string{"mount"}, tt.flags...), dir, mnt)...)
		if code != exitUsage {
			t.Errorf("%q %q: exit code %d, want %d", tt.flags, tt.env, code, exitUsage)
		}
		for _, part := range tt.want {
			if !strings.Contains(stderr, part) {
				t.Errorf("%q %q: %q lacks %q", tt.flags, tt.env, stderr, part)
			}
		}
	}
}
