package tools_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// TestToolsEditWhatOthersMade runs editors at the default --write level on files
// that another program put into the folder: no backup or temporary file may stay
// beside them, where an engine would read it. Tools that remove what others made
// need --write=delete, and fail with the file as it was.
func TestToolsEditWhatOthersMade(t *testing.T) {
	refused := map[string]bool{"mv": true, "install": true}
	for _, c := range []tool{
		{name: "sed", script: `sed -i s/line/row/ f`},
		{name: "perl", needs: "perl", script: `perl -pi -e s/line/row/ f`},
		{name: "gawk", needs: "gawk", script: `gawk -i inplace '{sub("line", "row"); print}' f`},
		{name: "ed", needs: "ed", script: `printf ',s/line/row/\nw\nq\n' | ed -s f`},
		{name: "vim", needs: "vim", script: `vim -es -u NONE -i NONE --cmd 'set nocp backupskip= swapfile nobackup writebackup' -c '%s/line/row/' -c wq f`},
		{name: "vim, backupcopy=no", needs: "vim", script: `vim -es -u NONE -i NONE --cmd 'set nocp backupskip= nobackup writebackup backupcopy=no' -c '%s/line/row/' -c wq f`},
		{name: "ex", needs: "ex", script: `printf '%%s/line/row/\nwq\n' | ex -s --cmd 'set backupskip=' f`},
		{name: "patch", needs: "patch diff", script: `sed s/line/row/ f > "$OUT/g"; diff -u --label f --label f f "$OUT/g" > "$OUT/p" || true; patch -s f "$OUT/p"`},
		{name: "cp", script: `sed s/line/row/ f > "$OUT/g"; cp "$OUT/g" f`},
		{name: "mv", script: `sed s/line/row/ f > "$OUT/g"; mv "$OUT/g" f`},
		{name: "install", script: `sed s/line/row/ f > "$OUT/g"; install -m 644 "$OUT/g" f`},
		{name: "rsync", needs: "rsync", script: `sed s/line/row/ f > "$OUT/f"; rsync -a "$OUT/f" .`},
		{name: "rsync --inplace", needs: "rsync", script: `sed s/line/row/ f > "$OUT/f"; rsync -a --inplace "$OUT/f" .`},
		{name: "sort -o", script: `sed s/line/row/ f > "$OUT/g"; sort -V -o f "$OUT/g"`},
		{name: "Python fileinput", needs: "python3", script: python("import fileinput\nfor l in fileinput.input('f', inplace=True): print(l.replace('line', 'row'), end='')")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if missing := c.missing(t); missing != "" {
				t.Skipf("not on this machine: %s", missing)
			}
			var before, after string
			for i := range 50 {
				before += "line " + string(rune('A'+i%26)) + "\n"
				after += "row " + string(rune('A'+i%26)) + "\n"
			}
			if c.name == "sort -o" {
				before, after = "line A\nline B\n", "row A\nrow B\n"
			}
			lake := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{{Database: "db", Name: "t", Format: "text", Files: map[string]string{"f": before}}}})
			out := filepath.Join(t.TempDir(), "out")
			must(t, os.Mkdir(out, 0o755))
			r := script(t, place{dir: lake.Path("db/t"), out: out, folder: lake.Window("db/t")}, "set -euo pipefail\n"+c.script)
			if want := refused[c.name]; (r.code != 0) != want {
				t.Errorf("exit code %d, refused %v, want %v; stdout %q, stderr %q", r.code, r.code != 0, want, r.stdout, r.stderr)
			} else if want {
				after = before
			}
			stored, err := lake.Stored("db/t/f")
			must(t, err)
			if stored != after {
				t.Errorf("the file is %q, want %q", stored, after)
			}
			for _, name := range lake.StoredNames("db/t") {
				if name != "f" {
					t.Errorf("%s is left in the folder", name)
				}
			}
			settle(t, lake)
		})
	}
}
