package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// writeCases are writing, beside the peers; the write benchmark tells more of it.
func (r *readRig) writeCases() []readCase {
	large := r.far.large
	return []readCase{
		{
			name: "write " + mib(large) + " + fsync", bytes: large, peak: 200, data: []string{sourceData},
			measures: []measure{rate(measure{peers: 1})},
			mount: func(ctx context.Context, m *coldMount) ([]float64, error) {
				return speed(large)(r.timed(ctx, "dd", "if="+r.source(), "of="+filepath.Join(m.data, m.wrote), "bs=1M", "conv=fsync", "status=none"))
			},
			stored: func(ctx context.Context, m *coldMount) bool {
				out, err := r.server.Client().HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String(benchBucket), Key: aws.String(tableKey + m.wrote)})
				return err == nil && aws.ToInt64(out.ContentLength) == large
			},
			after: func(ctx context.Context, m *coldMount) error {
				_, err := r.timed(ctx, "cmp", r.source(), filepath.Join(r.server.Dir(benchBucket), filepath.FromSlash(tableKey), m.wrote))
				return err
			},
			plain: func(ctx context.Context, endpoint string, _ int) (timing, error) {
				t, err := r.childTiming(ctx, "upload", endpoint, tableKey+written+r.name(), r.source())
				t.Values, _ = speed(large)(t.Work, err) // the same error
				return t, err
			},
		},
		{
			name: "cp -r in, 100 x 64 KiB", bytes: intoFiles * manySize, slow: true, data: []string{intoData},
			measures: []measure{seconds(measure{most: 2.6})},
			mount: func(ctx context.Context, m *coldMount) ([]float64, error) {
				took, err := r.timed(ctx, "cp", "-r", r.into(), filepath.Join(m.data, m.wrote))
				return []float64{took}, err
			},
			stored: r.allStored,
			after: func(_ context.Context, m *coldMount) error {
				for i := range intoFiles {
					got, err := os.ReadFile(filepath.Join(r.server.Dir(benchBucket), filepath.FromSlash(tableKey), m.wrote, smallName(i)))
					if err == nil && string(got) != string(small(i)) {
						err = fmt.Errorf("%w: %s", errDiffers, smallName(i))
					}
					if err != nil {
						return err
					}
				}
				return nil
			},
			plain: func(ctx context.Context, endpoint string, _ int) (timing, error) {
				return r.childTiming(ctx, "put-each", endpoint, tableKey+written+r.name()+"/", r.into())
			},
		},
	}
}

// source is a file of the large size, into a directory of small ones.
func (r *readRig) source() string { return filepath.Join(r.work, sourceData) }
func (r *readRig) into() string   { return filepath.Join(r.work, intoData) }

// putLocal makes what is written.
func (r *readRig) putLocal(name string) error {
	if name == sourceData {
		return writePattern(r.source(), largeSeed, r.far.large)
	}
	err := os.Mkdir(r.into(), 0o755)
	for i := range intoFiles {
		err = errors.Join(err, os.WriteFile(filepath.Join(r.into(), smallName(i)), small(i), 0o600))
	}
	return err
}

// allStored tells whether all files that were copied in are there.
func (r *readRig) allStored(ctx context.Context, m *coldMount) bool {
	page, err := r.list(ctx, tableKey+m.wrote+"/")
	if err != nil {
		return false
	}
	n := 0
	for _, o := range page.Contents {
		if aws.ToInt64(o.Size) == manySize {
			n++
		}
	}
	return n == intoFiles
}

func (r *readRig) list(ctx context.Context, prefix string) (*s3.ListObjectsV2Output, error) {
	return r.server.Client().ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String(benchBucket), Prefix: &prefix})
}

// forget removes what a run wrote, past the proxy.
func (r *readRig) forget(ctx context.Context) error {
	page, err := r.list(ctx, tableKey+written)
	if err != nil || len(page.Contents) == 0 {
		return err
	}
	var gone types.Delete
	for _, o := range page.Contents {
		gone.Objects = append(gone.Objects, types.ObjectIdentifier{Key: o.Key})
	}
	out, err := r.server.Client().DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: aws.String(benchBucket), Delete: &gone})
	if err == nil && len(out.Errors) > 0 {
		err = errors.New("remove " + strconv.Itoa(len(out.Errors)) + " objects: " + aws.ToString(out.Errors[0].Message))
	}
	return err
}
