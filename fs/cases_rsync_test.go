package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Case 3: rsync that puts its files in place at its end, from a directory of its own:
// only their final names are ever in the store.
func TestCase3RsyncDelayUpdates(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string]string{
		"delay-updates": "--delay-updates",
		"partial-dir":   "--delay-updates --partial-dir=.rsync-partial",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := mountText(t, map[string]string{"one": "old\n", "d/inner": "old\n"}, "--write=delete", neverLingers)
			src := t.TempDir()
			old := time.Now().Add(-time.Hour)
			for name, size := range map[string]int{"zero": 0, "one": 1, "big": 9 << 20, "d/inner": 1000, "d/new": 10} {
				path := filepath.Join(src, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(strings.Repeat("r", size)), 0o640); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(path, old, old); err != nil {
					t.Fatal(err)
				}
			}
			for _, dir := range []string{"d", "."} {
				if err := os.Chtimes(filepath.Join(src, dir), old, old); err != nil {
					t.Fatal(err)
				}
			}
			watches := []func() (map[string]bool, int){watchNames(l.Window("db/t"), "one"), watchNames(l.Window("db/t/d"), "inner")}
			rsync := `rsync -a --itemize-changes ` + flags + ` '` + src + `/' db/t/`
			if out := l.MustSh(rsync); strings.Count(out, ">f") != 5 {
				t.Errorf("the first run: %s", out)
			}
			for _, watch := range watches {
				seen, _ := watch()
				for name := range seen {
					if strings.Contains(name, "tmp~") || strings.Contains(name, "partial") || strings.HasPrefix(name, ".") {
						t.Errorf("the store had %q", name)
					}
				}
			}
			for _, when := range []string{"second", "third, after a remount"} {
				if out := l.MustSh(rsync); out != "" {
					t.Errorf("the %s run changes:\n%s", when, out)
				}
				l.Remount()
			}
			l.MustSh(`cd db/t; for n in .~tmp~ .rsync-partial d/.~tmp~ d/.rsync-partial; do test ! -e $n || exit 1; done`)
			if r := l.Exec("diff", "-r", src, l.Path("db/t")); r.Code != 0 {
				t.Errorf("diff: %s", r.Out)
			}
			wantClean(t, l, "db/t", "zero", "one", "big", "d")
			wantClean(t, l, "db/t/d", "inner", "new")
		})
	}
}
