package objectstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestReturn: what Adopt took comes back as it was, and nothing that others made.
func TestReturn(t *testing.T) {
	root, spool := t.TempDir(), filepath.Join(t.TempDir(), "data")
	folder, err := NewFolder(root)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close() //nolint:errcheck // only read
	if err = os.WriteFile(spool, []byte("bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(spool)
	if err != nil {
		t.Fatal(err)
	}
	loc := Location{Bucket: root, Key: "t/f"}
	adopt := func() Object {
		t.Helper()
		o, failed := folder.Adopt(t.Context(), loc, spool, PutOptions{
			Cond: Cond{IfNoneMatch: true}, Meta: map[string]string{MetaMode: "440"},
		})
		if failed != nil {
			t.Fatal(failed)
		}
		return o
	}
	o := adopt()
	if err = folder.Return(t.Context(), o, spool); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(spool)
	if err != nil || !os.SameFile(before, after) || after.Mode() != 0o600 {
		t.Errorf("returned: %v, %v; want the same file, for its owner", after, err)
	}
	if err := folder.Return(t.Context(), o, spool); !errors.Is(err, ErrChanged) {
		t.Errorf("Return of what is not there: %v, want ErrChanged", err)
	}
	o = adopt()
	if err := os.WriteFile(spool, []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := folder.Return(t.Context(), o, spool); !errors.Is(err, ErrExist) {
		t.Errorf("Return onto a file: %v, want ErrExist", err)
	}
	if now, err := folder.Stat(t.Context(), loc); err != nil || now.Meta[MetaMode] != "440" {
		t.Errorf("after a refusal: %+v, %v; want it as it was published", now, err)
	}
	if err := os.WriteFile(filepath.Join(root, "t/new"), []byte("another's"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(root, "t/new"), filepath.Join(root, "t/f")); err != nil {
		t.Fatal(err)
	}
	if err := folder.Return(t.Context(), o, spool+".2"); !errors.Is(err, ErrChanged) {
		t.Errorf("Return of another's version: %v, want ErrChanged", err)
	}
}
