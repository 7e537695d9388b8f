package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// togetherSize is of each of the files that are published together.
const togetherSize = 16 << 10

// togetherCase is the commit of many small files that are staged, without a mount and
// through one, beside the same requests of a plain program. All send what lies in files.
func (r *writeRig) togetherCase() writeCase {
	n := strconv.Itoa(r.o.together)
	c := writeCase{
		name: fmt.Sprintf("commit of %d x 16 KiB", r.o.together), goal: 1.2, atMost: true,
		base: contender{name: "SDK, 16 PUTs at once", before: r.emptied, timing: func(ctx context.Context) (timing, error) {
			return r.childTiming(ctx, "puts", r.endpoint(), tableKey+"dt=1/"+r.name(), n, r.work)
		}},
	}
	for _, at := range []struct{ name, dir string }{{"disk", r.disk}, {"tmpfs", r.work}} {
		o := contender{name: "staged on " + at.name, before: r.emptied}
		o.timing = func(ctx context.Context) (timing, error) {
			return r.childTiming(ctx, "together", r.endpoint(), tableKey+"dt=1/"+r.name(), n, at.dir)
		}
		c.ours = append(c.ours, o)
	}
	for _, m := range r.mounts {
		c.ours = append(c.ours, r.transaction(m))
	}
	return c
}

// transaction commits files that were written into one through a mount, which is not
// measured.
func (r *writeRig) transaction(m *lakeMount) contender {
	var dir string
	return contender{
		name: "mount, " + m.name, daemon: &m.system,
		before: func(ctx context.Context) error {
			if err := r.emptied(ctx); err != nil {
				return err
			}
			name := r.name()
			dir = filepath.Join(m.root, ".lakefs", "txn", name)
			if err := os.MkdirAll(filepath.Join(dir, "dt=1"), 0o755); err != nil {
				return err
			}
			var group errgroup.Group
			group.SetLimit(limitFlight)
			for i := range r.o.together {
				group.Go(func() error {
					return os.WriteFile(filepath.Join(dir, "dt=1", name+"-"+strconv.Itoa(i)), smallFile(i), 0o600)
				})
			}
			return group.Wait()
		},
		seconds: func(context.Context) (float64, error) {
			began := time.Now()
			err := os.WriteFile(filepath.Join(dir, "ctl"), []byte("commit\n"), 0o600)
			return since(began), err
		},
	}
}

// smallFile is the content of a file.
func smallFile(i int) []byte {
	raw := bytes.Repeat([]byte{byte(i), byte(i >> 8), 1, 2, 3, 4, 5, 6}, togetherSize/8)
	return raw
}

// limitPuts puts n files, 16 at a time.
func limitPuts(ctx context.Context, endpoint, key string, n int, dir string) (t timing, err error) {
	c, err := client(ctx, endpoint)
	if err != nil {
		return t, err
	}
	dir, err = os.MkdirTemp(dir, "puts-")
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := func(i int) string { return filepath.Join(dir, strconv.Itoa(i)) }
	for i := range n {
		if err = os.WriteFile(name(i), smallFile(i), 0o600); err != nil {
			return t, err
		}
	}
	began, computed := time.Now(), usage(unix.RUSAGE_SELF)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limitFlight)
	for i := range n {
		group.Go(func() error { return limitPut(ctx, c, key+"-"+strconv.Itoa(i), name(i)) })
	}
	err = group.Wait()
	return timing{Work: since(began), Peak: peak(), CPU: usage(unix.RUSAGE_SELF) - computed}, err
}

func limitPut(ctx context.Context, c *s3.Client, key, path string) error {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return err
	}
	_, err = c.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(benchBucket), Key: &key, Body: f, IfNoneMatch: aws.String("*")})
	return errors.Join(err, f.Close())
}

// together stages n files as a mount does, durably, and times their publish.
func together(ctx context.Context, endpoint, key string, n int, dir string) (t timing, err error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return t, err
	}
	store, err := objectstore.NewS3(objectstore.S3Options{Config: cfg, Endpoint: endpoint, PathStyle: true})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	dir, err = os.MkdirTemp(dir, "together-")
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	area, err := staging.Open(filepath.Join(dir, "staging"), staging.Options{Store: store, Meta: commit.Meta}) //nolint:contextcheck // it waits for nothing
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, area.Close()) }()
	members, err := stageSmall(ctx, area, key, n)
	if err != nil {
		return t, err
	}
	c := commit.New(commit.Options{Store: store, Area: area})
	began, computed := time.Now(), usage(unix.RUSAGE_SELF)
	_, err = c.PublishAll(ctx, members, commit.Together{RegisterLast: true})
	return timing{Work: since(began), Peak: peak(), CPU: usage(unix.RUSAGE_SELF) - computed}, err
}

// stageSmall stages small files, below a key that no other run has.
func stageSmall(ctx context.Context, area *staging.Area, key string, n int) ([]commit.Member, error) {
	members := make([]commit.Member, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limitFlight)
	for i := range n {
		group.Go(func() error {
			at := objectstore.Location{Bucket: benchBucket, Key: key + "-" + strconv.Itoa(i)}
			from := staging.NewWrite{
				Target: objectstore.Location{Bucket: benchBucket, Key: strings.Replace(at.Key, "dt=1/", ".lakefs/txn/x/dt=1/", 1)},
				Path:   "db/t/.lakefs/txn/x/dt=1/" + strconv.Itoa(i), Hold: staging.Local,
				Cond: objectstore.Cond{IfNoneMatch: true}, Attributes: staging.Attributes{Mode: 0o644},
			}
			f, err := area.Create(ctx, from)
			if err == nil {
				_, err = f.WriteAt(ctx, smallFile(i), 0)
			}
			if err == nil {
				err = f.Sync(ctx)
			}
			to := from
			to.Target, to.Path, to.Hold = at, "db/t/dt=1/"+strconv.Itoa(i), staging.Unheld
			members[i] = commit.Member{File: f, To: to, Data: true}
			return err
		})
	}
	return members, group.Wait()
}

// peak is the most resident memory that this process ever had, in MiB.
func peak() float64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	return statusLine(raw, "VmHWM:")
}
