package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
	"github.com/lakefs-mount/lakefs-mount/internal/warehouse"
)

const (
	benchBucket = "bench"
	benchPrefix = "wh/"
	tableKey    = benchPrefix + "_data/db/t/"

	writeTimeout = time.Hour // of a whole run
)

// writeOptions say how large and how far away everything is.
type writeOptions struct {
	dir       string        // memory: the store, sources, and one of the state directories
	disk      string        // where the other state directory is made
	rounds    int           // of each case
	large     int64         // bytes of the large file
	files     int           // of cp -r
	tiny      int           // writes of 4 KiB
	together  int           // files of one commit
	firstByte time.Duration // from a request's end to its answer
	rate      int64         // bytes a second of a connection
	only      string        // cases whose name contains this
	flags     string        // further flags of the mount, by spaces
	bin       string        // the program; "": built
	json      bool
}

// writeRig is a store that is far away, and the mounts that write to it.
type writeRig struct {
	o      writeOptions
	work   string // in memory
	disk   string // on a disk
	bin    string
	self   string
	source string // a file of the large size, random
	server *s3test.Server
	proxy  *faulty.Proxy
	mounts []*lakeMount
	loop   *system
	turn   int
}

// runWrite measures writing, and leaves nothing behind, also when ctx ends.
func runWrite(ctx context.Context, o writeOptions) (err error) {
	r := &writeRig{o: o}
	defer func() { err = errors.Join(err, r.close()) }()
	if err = r.directories(); err != nil {
		return err
	}
	if err = r.store(ctx); err != nil {
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
	if r.work, err = os.MkdirTemp(r.o.dir, "lakefs-mount-bench-"); err != nil {
		return err
	}
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
	if r.self, err = os.Executable(); err != nil {
		return err
	}
	if r.bin = r.o.bin; r.bin == "" {
		r.bin, err = build(r.work, "lakefs-mount", "./cmd/lakefs-mount")
	}
	return err
}

// store starts the server, with its data in memory, and the proxy.
func (r *writeRig) store(ctx context.Context) error {
	if err := os.Setenv("TMPDIR", r.work); err != nil {
		return err
	}
	var err error
	if r.server, err = s3test.Start(); err != nil { //nolint:contextcheck // it takes none
		return err
	}
	if !strings.HasPrefix(r.server.Dir(benchBucket), r.work) {
		_, _ = fmt.Fprintf(os.Stderr, "bench: the store's data are in %s: %s has no extended attributes\n", r.server.Dir(""), r.work)
	}
	if _, err = r.server.Client().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(benchBucket)}); err != nil {
		return err
	}
	r.proxy, err = faulty.Start(r.server, func(format string, args ...any) {
		_, _ = fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
	})
	if err == nil {
		r.proxy.SetLatency(faulty.Latency{FirstByte: r.o.firstByte, BytesPerSecond: r.o.rate})
	}
	return err
}

// fill makes the warehouse and the files that are copied into it.
func (r *writeRig) fill(ctx context.Context) error {
	files, err := warehouse.Files(warehouse.Table{
		Database: "db", Name: "t", Format: "csv", Keys: []string{"dt"},
		Files: map[string]string{"dt=1/seed": "x\n", "dt=2/seed": "x\n"},
	})
	if err != nil {
		return err
	}
	for name, content := range files {
		in := &s3.PutObjectInput{Bucket: aws.String(benchBucket), Key: aws.String(benchPrefix + name), Body: strings.NewReader(content)}
		if _, err = r.server.Client().PutObject(ctx, in); err != nil {
			return err
		}
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
	if r.proxy != nil {
		problems = append(problems, r.proxy.Close())
	}
	if r.server != nil {
		problems = append(problems, r.server.Close())
	}
	for _, dir := range []string{r.work, r.disk} {
		if dir != "" {
			problems = append(problems, os.RemoveAll(dir))
		}
	}
	return errors.Join(problems...)
}
