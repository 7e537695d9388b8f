package staging

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkSmallFile is what cp -r costs here for each small file: create, one
// write, what a publish leaves to do, drop.
func BenchmarkSmallFile(b *testing.B) {
	e := newEnv(b)
	p := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		f, err := e.area.Create(b.Context(), NewWrite{Target: e.loc("t/f"), Path: "t/f"})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.WriteAt(b.Context(), p, 0); err != nil {
			b.Fatal(err)
		}
		if err := f.Drop(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteAt(b *testing.B) {
	for _, size := range []int{4 << 10, 128 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			e := newEnv(b)
			f := e.create(b, NewWrite{})
			p := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			var off int64
			for b.Loop() {
				if _, err := f.WriteAt(b.Context(), p, off); err != nil {
					b.Fatal(err)
				}
				off = (off + int64(size)) % (256 << 20)
			}
		})
	}
}

// BenchmarkClose writes 256 MiB and times the fsync that a close waits for.
func BenchmarkClose(b *testing.B) {
	for _, early := range []bool{true, false} {
		b.Run(fmt.Sprintf("early=%v", early), func(b *testing.B) {
			e := newEnv(b)
			p := make([]byte, 128<<10)
			for b.Loop() {
				b.StopTimer()
				f := e.create(b, NewWrite{})
				for off := int64(0); off < 256<<20; off += int64(len(p)) {
					if !early {
						f.early.end = -1
					}
					if _, err := f.WriteAt(b.Context(), p, off); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				if err := f.cur.spool.file.Sync(); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				_ = f.Drop()
				unix.Sync()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkSumWhileWriting is what a checksum adds to a write that a store of parts is
// to get: BenchmarkWriteAt is without.
func BenchmarkSumWhileWriting(b *testing.B) {
	_, e := newCloud(b, 0)
	f := e.create(b, NewWrite{Target: e.loc("f")})
	p := make([]byte, 128<<10)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	var off int64
	for b.Loop() {
		if _, err := f.WriteAt(b.Context(), p, off); err != nil {
			b.Fatal(err)
		}
		if off += int64(len(p)); off == 256<<20 {
			off, f.sum = 0, runningSum{}
		}
	}
}

// BenchmarkWriteBehindManyParts is a write of a file that has thousands of parts in the
// store: what it costs must not grow with their number.
func BenchmarkWriteBehindManyParts(b *testing.B) {
	for _, parts := range []int{0, 9000} {
		b.Run(fmt.Sprint(parts), func(b *testing.B) {
			_, e := newCloud(b, 100)
			f := e.create(b, NewWrite{Target: e.loc("f"), Final: true})
			if _, err := f.WriteAt(b.Context(), make([]byte, parts*100+1), 0); err != nil {
				b.Fatal(err)
			}
			e.quiet(b)
			p := make([]byte, 1)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.WriteAt(b.Context(), p, int64(parts*100)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
