package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// getPart is how much the plain program asks for at once.
const getPart = 8 << 20

// plainChild does a case's work with the SDK alone: the limit.
func plainChild(ctx context.Context, name string, args []string) (timing, error) {
	c, err := client(ctx, args[0])
	if err != nil {
		return timing{}, err
	}
	began, computed := time.Now(), usage(unix.RUSAGE_SELF)
	t, err := plainWork(ctx, c, name, args)
	if t.Work == 0 {
		t.Work = since(began)
	}
	if t.CPU == 0 {
		t.CPU, t.Peak = usage(unix.RUSAGE_SELF)-computed, peak()
	}
	if t.Values == nil {
		t.Values = []float64{t.Work}
	}
	return t, err
}

func plainWork(ctx context.Context, c *s3.Client, name string, args []string) (timing, error) {
	object := func(key string) func(p []byte, off int64) error {
		return func(p []byte, off int64) error { return getInto(ctx, c, tableKey+key, p, off) }
	}
	n, _ := strconv.Atoi(args[1]) // of those that take a number: the bench itself wrote it
	switch name {
	case "get":
		return getWhole(ctx, c, n, args[2:])
	case "get-random":
		size, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil {
			return timing{}, err
		}
		return random(size, n, object(largeData))
	case "get-first":
		return getFirst(object(largeData))
	case "get-parquet":
		return parquet(int64(n), object(tailData))
	case "get-many":
		conns, err := strconv.Atoi(args[2])
		if err != nil {
			return timing{}, err
		}
		return getMany(ctx, c, args[1], conns, args[3])
	case "list":
		return listKeys(ctx, c, args[1])
	case "put-each":
		return putEach(ctx, c, args[1], args[2])
	}
	return timing{}, fmt.Errorf("no child %q", name)
}

func ranged(off, n int64) *string { return aws.String(fmt.Sprintf("bytes=%d-%d", off, off+n-1)) }

// getInto fills p with a range of an object.
func getInto(ctx context.Context, c *s3.Client, key string, p []byte, off int64) error {
	out, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(benchBucket), Key: &key, Range: ranged(off, int64(len(p)))})
	if err != nil {
		return err
	}
	_, err = io.ReadFull(out.Body, p)
	return errors.Join(err, out.Body.Close())
}

// getWhole gets objects, KEY:SIZE, in parts, by so many connections.
func getWhole(ctx context.Context, c *s3.Client, conns int, objects []string) (timing, error) {
	buffers := make(chan []byte, conns)
	for range conns {
		buffers <- make([]byte, 256<<10)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(conns)
	for _, o := range objects {
		key, text, _ := strings.Cut(o, ":")
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return timing{}, err
		}
		for off := int64(0); off < size; off += getPart {
			group.Go(func() error {
				buf := <-buffers
				defer func() { buffers <- buf }()
				return drain(ctx, c, key, off, min(getPart, size-off), buf)
			})
		}
	}
	return timing{}, group.Wait()
}

// drain gets a range and forgets it.
func drain(ctx context.Context, c *s3.Client, key string, off, n int64, buf []byte) error {
	out, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(benchBucket), Key: &key, Range: ranged(off, n)})
	if err != nil {
		return err
	}
	got, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, out.Body, buf)
	if err == nil && got != n {
		err = io.ErrUnexpectedEOF
	}
	return errors.Join(err, out.Body.Close())
}

// getFirst gets a byte, when the connection is there: the second time.
func getFirst(read func(p []byte, off int64) error) (timing, error) {
	p := make([]byte, 1)
	if err := read(p, 8); err != nil {
		return timing{}, err
	}
	began := time.Now()
	err := read(p, 0)
	took := since(began)
	return timing{Work: took, Values: []float64{1000 * took}}, err
}

// getMany gets all objects below a prefix, into a directory unless that is "".
func getMany(ctx context.Context, c *s3.Client, prefix string, conns int, dir string) (timing, error) {
	if dir != "" {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return timing{}, err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(conns)
	err := eachKey(ctx, c, prefix, func(key string) {
		group.Go(func() error {
			out, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(benchBucket), Key: &key})
			if err != nil {
				return err
			}
			raw, err := io.ReadAll(out.Body)
			if err == nil && dir != "" {
				err = os.WriteFile(filepath.Join(dir, filepath.Base(key)), raw, 0o600)
			}
			return errors.Join(err, out.Body.Close())
		})
	})
	return timing{}, errors.Join(err, group.Wait())
}

func eachKey(ctx context.Context, c *s3.Client, prefix string, do func(key string)) error {
	pages := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: aws.String(benchBucket), Prefix: &prefix, Delimiter: aws.String("/")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, o := range page.Contents {
			do(*o.Key)
		}
	}
	return nil
}

// listKeys lists a prefix, a page after the other, and tells when the first key came.
func listKeys(ctx context.Context, c *s3.Client, prefix string) (timing, error) {
	began := time.Now()
	var first float64
	err := eachKey(ctx, c, prefix, func(string) {
		if first == 0 {
			first = since(began)
		}
	})
	took := since(began)
	return timing{Work: took, Values: []float64{took, first}}, err
}

// putEach puts the files of a directory, one after the other, as cp does.
func putEach(ctx context.Context, c *s3.Client, prefix, dir string) (timing, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return timing{}, err
	}
	contents := make([][]byte, len(names))
	for i, n := range names {
		if contents[i], err = os.ReadFile(filepath.Join(dir, n.Name())); err != nil {
			return timing{}, err
		}
	}
	began := time.Now()
	for i, n := range slices.All(names) {
		if err = putBytes(ctx, c, prefix+n.Name(), contents[i]); err != nil {
			return timing{}, err
		}
	}
	return timing{Work: since(began)}, nil
}

func putBytes(ctx context.Context, c *s3.Client, key string, content []byte) error {
	_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(benchBucket), Key: &key, Body: bytes.NewReader(content)})
	return err
}
