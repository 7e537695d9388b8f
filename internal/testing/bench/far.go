package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
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

	farTimeout = 2 * time.Hour // of a whole run
)

// options say how large and how far away everything is.
type options struct {
	dir       string        // memory: the store and all that is made for the run
	rounds    int           // of each case
	large     int64         // bytes of the large file
	firstByte time.Duration // from a request's end to its answer
	list      time.Duration // the same of a listing
	rate      int64         // bytes a second of a connection
	only      string        // cases whose name contains this
	flags     string        // further flags of the mount, by spaces
	bin       string        // the program; "": built
	json      bool
}

// farStore is a store with its data in memory, and the proxy that makes it far away.
type farStore struct {
	far    options
	work   string // in memory
	bin    string // the program that is measured
	self   string // this one
	server *s3test.Server
	proxy  *faulty.Proxy
	turn   int
}

// directory makes that of the run, and the program.
func (r *farStore) directory() (err error) {
	if r.work, err = os.MkdirTemp(r.far.dir, "lakefs-mount-bench-"); err != nil {
		return err
	}
	if r.self, err = os.Executable(); err != nil {
		return err
	}
	if r.bin = r.far.bin; r.bin == "" {
		r.bin, err = build(r.work, "lakefs-mount", "./cmd/lakefs-mount")
	}
	return err
}

// serve starts the server and the proxy.
func (r *farStore) serve(ctx context.Context) error {
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
		r.proxy.SetLatency(faulty.Latency{FirstByte: r.far.firstByte, List: r.far.list, BytesPerSecond: r.far.rate})
	}
	return err
}

// catalog uploads a table's manifest and small files, past the proxy.
func (r *farStore) catalog(ctx context.Context, t warehouse.Table) error {
	files, err := warehouse.Files(t)
	if err != nil {
		return err
	}
	for name, content := range files {
		in := &s3.PutObjectInput{Bucket: aws.String(benchBucket), Key: aws.String(benchPrefix + name), Body: strings.NewReader(content)}
		if _, err = r.server.Client().PutObject(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// close ends and removes everything, whatever happened.
func (r *farStore) close() error {
	var problems []error
	if r.proxy != nil {
		problems = append(problems, r.proxy.Close())
	}
	if r.server != nil {
		problems = append(problems, r.server.Close())
	}
	if r.work != "" {
		problems = append(problems, os.RemoveAll(r.work))
	}
	return errors.Join(problems...)
}

// endpoint is where the store is asked: itself, if it is to be as near as it can.
func (r *farStore) endpoint() string {
	if r.far.firstByte == 0 && r.far.rate == 0 {
		return r.server.Endpoint
	}
	return r.proxy.URL
}

// lakeCommand mounts the lake, with the store at an endpoint.
func (r *farStore) lakeCommand(endpoint, state, mnt string) *exec.Cmd {
	args := append([]string{
		"mount", "--log-level=error", "--state-dir", state, "--endpoint-url=" + endpoint, "--path-style",
	}, strings.Fields(r.far.flags)...)
	cmd := exec.Command(r.bin, append(args, "s3://"+benchBucket+"/"+benchPrefix, mnt)...) //nolint:noctx // ends with the bench
	cmd.Env = slices.Concat(environ(), r.server.Env())
	return cmd
}

// name is one that nobody has seen.
func (r *farStore) name() string {
	r.turn++
	return "w" + strconv.Itoa(r.turn)
}

// timed runs a program and tells how long it took.
func (r *farStore) timed(ctx context.Context, name string, args ...string) (float64, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return since(began), nil
}

func (r *farStore) child(ctx context.Context, args ...string) (float64, error) {
	t, err := r.childTiming(ctx, args...)
	return t.Work, err
}

func (r *farStore) childTiming(ctx context.Context, args ...string) (t timing, err error) {
	cmd := exec.CommandContext(ctx, r.self, append([]string{"-child"}, args...)...)
	cmd.Env = slices.Concat(environ(), r.server.Env())
	if t, err = timingOf(cmd); err != nil {
		return t, fmt.Errorf("%v: %w", args, err)
	}
	return t, nil
}
