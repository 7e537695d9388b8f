package objectstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// A name may go between its getdents and its stat.
func TestFolderListWhileNamesGo(t *testing.T) {
	dir := t.TempDir()
	const n = 3000
	for i := range n {
		write(t, fmt.Sprintf("%s/%05d", dir, i), "")
	}
	f := newFolder(t, dir)
	seen := 0
	for e, err := range f.List(t.Context(), at(dir, ""), objectstore.ListOptions{Delimiter: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; e.Key == "" { // before the first name: all that getdents told now goes
			continue
		}
		for i := range n {
			if err := os.Remove(fmt.Sprintf("%s/%05d", dir, i)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	if seen >= n {
		t.Errorf("%d entries of names that were gone", seen)
	}
}

func TestFolderListCancelledHalfWay(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		write(t, fmt.Sprint(dir, "/", i), "")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var last error
	for _, err := range newFolder(t, dir).List(ctx, at(dir, ""), objectstore.ListOptions{}) {
		if n++; n == 3 {
			cancel()
		}
		last = err
	}
	wantErr(t, "List", last, context.Canceled)
	if n != 4 {
		t.Errorf("%d entries, want 3 and the error", n)
	}
}

func BenchmarkFolderList10000(b *testing.B) {
	dir := b.TempDir()
	for i := range 10_000 {
		if err := os.WriteFile(fmt.Sprintf("%s/part-%05d.parquet", dir, i), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	f := newFolder(b, dir)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range f.List(b.Context(), at(dir, ""), objectstore.ListOptions{Delimiter: true}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 10_001 {
			b.Fatalf("%d entries", n)
		}
	}
}

func BenchmarkFolderStat(b *testing.B) {
	dir := b.TempDir()
	if err := os.MkdirAll(dir+"/db/table/dt=1", 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(dir+"/db/table/dt=1/f", nil, 0o600); err != nil {
		b.Fatal(err)
	}
	f := newFolder(b, dir)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Stat(b.Context(), at(dir, "db/table/dt=1/f")); err != nil {
			b.Fatal(err)
		}
	}
}
