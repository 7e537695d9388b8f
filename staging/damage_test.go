package staging

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func TestDamagedWritesAreKeptAndShown(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		says   string
	}{
		{"missing record", func(_ *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, recordName)) }, "missing"},
		{"empty record", func(_ *testing.T, dir string) { _ = os.Truncate(filepath.Join(dir, recordName), 0) }, "empty"},
		{"cut record", func(_ *testing.T, dir string) { _ = os.Truncate(filepath.Join(dir, recordName), 40) }, "parse"},
		{"huge record", func(_ *testing.T, dir string) { _ = os.Truncate(filepath.Join(dir, recordName), recordMax+1) }, "over"},
		{"version of the future", edit("version", 2), "version 2"},
		{"another's id", edit("id", "x"), "names another write"},
		{"unknown state", edit("state", "half"), "half"},
		{"spool elsewhere", edit("data", "../../lock"), "spool named"},
		{"record is a link", func(_ *testing.T, dir string) {
			_ = os.Remove(filepath.Join(dir, recordName))
			_ = os.Symlink("/etc/passwd", filepath.Join(dir, recordName))
		}, "symbolic link"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newEnv(t)
			f := e.create(t, NewWrite{})
			mustWrite(t, f, 0, "precious")
			g := e.create(t, NewWrite{})
			mustWrite(t, g, 0, "well")
			tt.damage(t, e.area.path(f.ID()))
			before, _ := os.ReadFile(filepath.Join(e.area.path(f.ID()), recordName))
			e.reopen(t)
			d, ok := e.area.Find(f.ID())
			if !ok {
				t.Fatal("not found")
			}
			if rec := d.Record(); rec.State != Failed || !strings.Contains(rec.Error, tt.says) || rec.Size != 8 || rec.Changed.IsZero() {
				t.Errorf("record %+v; want failed, with %q", rec, tt.says)
			}
			if got := string(readAll(t, d)); got != "precious" {
				t.Errorf("bytes %q", got)
			}
			if _, err := d.Freeze(t.Context()); !errors.Is(err, ErrDamaged) {
				t.Errorf("Freeze: %v, want ErrDamaged", err)
			}
			if err := d.SetState(Staged, ""); err != nil {
				t.Errorf("SetState: %v", err)
			}
			if after, _ := os.ReadFile(filepath.Join(e.area.path(f.ID()), recordName)); !bytes.Equal(after, before) {
				t.Error("the damaged record was replaced")
			}
			if _, ok := e.area.Find(g.ID()); !ok {
				t.Error("the other write is not found")
			}
			if err := d.Drop(); err != nil {
				t.Errorf("Drop: %v", err)
			}
		})
	}
}

// edit returns a damage that sets a field of the record.
func edit(key string, value any) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, recordName)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fields := map[string]any{}
		if err = json.Unmarshal(raw, &fields); err != nil {
			t.Fatal(err)
		}
		fields[key] = value
		raw, _ = json.Marshal(fields)
		if err = os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenRemovesOnlyWhatHoldsNothing(t *testing.T) {
	e := newEnv(t)
	f := e.create(t, NewWrite{}) // as killed before its record had bytes
	_ = os.Truncate(filepath.Join(e.area.path(f.ID()), recordName), 0)
	g := e.create(t, NewWrite{}) // its publish took effect
	_ = os.Remove(filepath.Join(e.area.path(g.ID()), dataName))
	if err := os.Mkdir(filepath.Join(e.dir, "foreign"), 0o700); err != nil {
		t.Fatal(err)
	}
	e.reopen(t)
	if _, ok := e.area.Find(f.ID()); ok {
		t.Error("an unborn write is shown")
	}
	h, ok := e.area.Find(g.ID())
	if !ok || !h.Lost() {
		t.Errorf("a write without its bytes: found %v", ok)
	}
	if got := names(t, e.dir); !slices.Equal(got, sorted(g.ID(), "foreign", "lock")) {
		t.Errorf("staging directory has %q", got)
	}
}

func sorted(s ...string) []string { slices.Sort(s); return s }

func TestMissingBlocksAreDamage(t *testing.T) {
	e := newEnv(t)
	base := e.object(t, make([]byte, 3*blockSize))
	f := e.create(t, NewWrite{Base: &base})
	mustWrite(t, f, 0, "x")
	_ = os.Remove(filepath.Join(e.area.path(f.ID()), blocksName))
	e.reopen(t)
	if rec := only(t, e.area).Record(); rec.State != Failed || !strings.Contains(rec.Error, blocksName) {
		t.Errorf("record %+v", rec)
	}
}

func TestBaseGoneIsToldWhenRead(t *testing.T) {
	e := newEnv(t)
	base := e.object(t, bytes.Repeat([]byte("b"), 2*blockSize))
	f := e.create(t, NewWrite{Base: &base})
	mustWrite(t, f, 0, "x")
	g := e.create(t, NewWrite{Base: &base})
	mustWrite(t, g, 0, "y")
	if err := g.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.object(t, []byte("other"))
	e.reopen(t)
	f, _ = e.area.Find(f.ID())
	if _, err := f.ReadAt(t.Context(), make([]byte, 10), blockSize); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("read of a replaced base: %v, want ErrChanged", err)
	}
	g, _ = e.area.Find(g.ID())
	if got := readAll(t, g); len(got) != 2*blockSize || got[blockSize] != 'b' {
		t.Error("Sync did not make the write independent of its base")
	}
}
