package commit

import (
	"fmt"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// BenchmarkSmallFile is a small file's whole way into a folder: create, write,
// publish durably, drop.
func BenchmarkSmallFile(b *testing.B) {
	w := newWorld(b, adopt)
	w.close()
	area, err := staging.Open(w.dir, staging.Options{Store: w.folder})
	if err != nil {
		b.Fatal(err)
	}
	w.area = area
	c := New(Options{Store: w.folder, Area: area})
	p := make([]byte, 4096)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := staging.NewWrite{
			Target: w.loc(fmt.Sprintf("t/%d", i)), Path: "t", Cond: objectstore.Cond{IfNoneMatch: true},
			Attributes: staging.Attributes{Mode: 0o644},
		}
		f, err := area.Create(b.Context(), n)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.WriteAt(b.Context(), p, 0); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Commit(b.Context(), f); err != nil {
			b.Fatal(err)
		}
		if err := f.Drop(); err != nil {
			b.Fatal(err)
		}
	}
}
