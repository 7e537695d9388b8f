package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/lakefs-mount/lakefs-mount/internal/warehouse"
)

// writeOptions are those of the write benchmark.
type writeOptions struct {
	options
	disk     string // where the other state directory is made
	files    int    // of cp -r
	tiny     int    // writes of 4 KiB
	together int    // files of one commit
}

// writeRig is a store that is far away, and the mounts that write to it.
type writeRig struct {
	farStore
	o      writeOptions
	disk   string // on a disk
	source string // a file of the large size, random
	mounts []*lakeMount
	loop   *system
}

// runWrite measures writing, and leaves nothing behind, also when ctx ends.
func runWrite(ctx context.Context, o writeOptions) (err error) {
	r := &writeRig{farStore: farStore{far: o.options}, o: o}
	defer func() { err = errors.Join(err, r.close()) }()
	if err = r.directories(); err != nil {
		return err
	}
	if err = r.serve(ctx); err != nil {
		return err
	}
	if err = r.fill(ctx); err != nil {
		return err
	}
	if err = r.mount(ctx); err != nil {
		return err
	}
	rows, err := r.measureAll(ctx)
	if err != nil {
		return err
	}
	return r.report(rows)
}

// directories makes those of the run, and the program.
func (r *writeRig) directories() (err error) {
	if err = os.MkdirAll(r.o.disk, 0o755); err != nil {
		return err
	}
	disk, err := filepath.Abs(r.o.disk)
	if err != nil {
		return err
	}
	if r.disk, err = os.MkdirTemp(disk, "bench-"); err != nil {
		return err
	}
	return r.directory()
}

// fill makes the warehouse and the files that are copied into it.
func (r *writeRig) fill(ctx context.Context) error {
	err := r.catalog(ctx, warehouse.Table{
		Database: "db", Name: "t", Format: "csv", Keys: []string{"dt"},
		Files: map[string]string{"dt=1/seed": "x\n", "dt=2/seed": "x\n"},
	})
	if err != nil {
		return err
	}
	r.source = filepath.Join(r.work, "source")
	if err = writeRandom(r.source, r.o.large, 1); err != nil {
		return err
	}
	many := filepath.Join(r.work, "many")
	if err = os.Mkdir(many, 0o755); err != nil {
		return err
	}
	for i := range r.o.files {
		if err = writeRandom(filepath.Join(many, strconv.Itoa(i)), manySize, uint64(i)); err != nil {
			return err
		}
	}
	return nil
}

// writeRandom makes a file that neither a hole nor compression makes smaller.
func writeRandom(path string, size int64, seed uint64) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	source := rand.NewChaCha8([32]byte{0: byte(seed), 1: byte(seed >> 8)})
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, io.LimitReader(source, size), make([]byte, 1<<20))
	return errors.Join(err, f.Close())
}

// close ends and removes everything, whatever happened.
func (r *writeRig) close() error {
	var problems []error
	for _, m := range r.mounts {
		problems = append(problems, m.close())
	}
	if r.loop != nil {
		problems = append(problems, (&rig{systems: []*system{r.loop}}).close())
	}
	problems = append(problems, r.farStore.close())
	if r.disk != "" {
		problems = append(problems, os.RemoveAll(r.disk))
	}
	return errors.Join(problems...)
}
