package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestCheckNamesARemedyThatHelps: the flag only where it is one.
func TestCheckNamesARemedyThatHelps(t *testing.T) {
	mounttest.FolderOnly(t, "its locations are paths")
	outside := filepath.Join(t.TempDir(), "it's outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(outside, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	const mend = "mend its _sqe/table.json"
	flag := "--allow-location " + shellQuote(outside)
	for _, tt := range []struct{ name, location, remedy string }{
		{"absolute", outside, flag},
		{"uri", "file://" + outside + "/", flag},
		{"missing", outside + "/new", "make it and mount with --allow-location " + shellQuote(outside+"/new")},
		{"a file", file, mend},
		{"user", outside + "/{user}", mend},
		{"dots", outside + "/../x", mend},
		{"relative", "../outside", mend},
		{"host", "file://host/x", mend},
		{"s3", "s3://bucket/x", mend},
		{"nul", "/x\x00y", mend},
		{"terminal", "/\x1b[2J/../x", mend},
		{"long", strings.Repeat("a/", 3000), mend},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lake := mounttest.New(t, mounttest.Options{Tables: []mounttest.Table{{Database: "db", Name: "t", Location: tt.location}}})
			r := lake.Run("check", "--state-dir="+lake.State, lake.Source)
			if r.Code != exitFailed || !strings.Contains(r.Out, `table "db/t"`) || !strings.Contains(r.Out, tt.remedy) {
				t.Errorf("exit code %d, %q lacks %q", r.Code, r.Out, tt.remedy)
			}
			if flagged := strings.Contains(r.Out, "--allow-location"); flagged != (tt.remedy != mend) {
				t.Errorf("the flag is named: %v: %q", flagged, r.Out)
			}
			if strings.ContainsAny(r.Out+r.Err, "\x00\x1b") {
				t.Errorf("raw control characters: %q", r.Out+r.Err)
			}
			if tt.remedy != flag {
				return
			}
			if r = lake.Run("check", "--state-dir="+lake.State, "--allow-location", outside, lake.Source); r.Code != 0 {
				t.Errorf("with the flag: exit code %d, %q", r.Code, r.Out)
			}
		})
	}
}

// TestOddEntriesAreBrokenTables in a mount: they are there, fail with EIO below,
// and say why.
func TestOddEntriesAreBrokenTables(t *testing.T) {
	mounttest.FolderOnly(t, "pipes and symbolic links")
	lake := mounttest.New(t, mounttest.Options{
		Tables: []mounttest.Table{
			{Database: "db", Name: "good", Format: "csv", Files: map[string]string{"f": "x"}},
			{Database: "db", Name: "long", Location: strings.Repeat("a/", 3000)},
			{Database: "db", Name: "pipe", Location: "fifo"},
			{Database: "db", Name: ".lakefs"},
			{Database: ".lakefs", Name: "t"},
		},
		Files: map[string]string{"db/manifest/_sqe/table.json/": "", "db/fifo/_sqe/": "", "db/link/_sqe/": ""},
	})
	for _, err := range []error{
		syscall.Mkfifo(filepath.Join(lake.Source, "fifo"), 0o600),
		syscall.Mkfifo(filepath.Join(lake.Source, "db/fifo/_sqe/table.json"), 0o600),
		os.Symlink("/etc/passwd", filepath.Join(lake.Source, "db/link/_sqe/table.json")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	lake.Start()
	want := "db\ndb.json\nfifo\nfifo.json\ngood\ngood.json\nlink\nlink.json\nlong\nlong.json\nmanifest\nmanifest.json\npipe\npipe.json\n"
	if got := lake.MustSh("ls -A; ls -A db"); got != want {
		t.Errorf("ls is %q, want %q", got, want)
	}
	lake.MustSh("cat .lakefs/status.json db/.lakefs/status.json | grep -q readable")
	check := lake.Run("check", "--state-dir="+t.TempDir(), lake.Source).Out
	for name, reason := range map[string]string{
		"long": "too long", "pipe": "is a FIFO", "manifest": "is a directory", "fifo": "is a FIFO", "link": "is a symbolic link",
	} {
		r := lake.Sh("ls db/" + name + "; echo x > db/" + name + "/f")
		if strings.Count(r.Err, "Input/output error") != 2 {
			t.Errorf("%s: ls and a write say %q, want EIO", name, r.Err)
		}
		if status := lake.MustSh("cat db/" + name + "/.lakefs/status.json"); !strings.Contains(status, reason) {
			t.Errorf("%s: status.json lacks %q: %s", name, reason, status)
		}
		if !strings.Contains(check, `table "db/`+name+`"`) {
			t.Errorf("check does not list %s: %s", name, check)
		}
	}
}
