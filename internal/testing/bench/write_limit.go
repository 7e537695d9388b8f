package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// What a plain program does with the SDK, in a process of its own: the limit.
const (
	limitPart   = 8 << 20
	limitFlight = 16
)

// child runs one of the bench's own processes, that prints how long it took.
func child(name string, args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("child %s: want three arguments", name)
	}
	ctx := context.Background()
	var t timing
	var err error
	switch name {
	case "upload":
		t, err = limitUpload(ctx, args[0], args[1], args[2])
	case "copy":
		t, err = limitCopy(ctx, args[0], args[1], args[2])
	case "append":
		t, err = limitAppend(ctx, args[0], args[1], args[2])
	case "puts", "together":
		t, err = many(ctx, name, args)
	case "steps":
		t, err = steps(args[0], args[1], args[2])
	default:
		t, err = readChild(ctx, name, args)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(t)
}

// timing is what a child tells.
type timing struct {
	Work  float64 `json:"work"`  // seconds, without what is a program's start
	Open  float64 `json:"open"`  // of these, open(2)
	Close float64 `json:"close"` // and close(2)
	Peak  float64 `json:"peak"`  // MiB of resident memory, where that was asked
	CPU   float64 `json:"cpu"`   // processor seconds of the work alone, likewise

	Values []float64 `json:"values,omitempty"` // what the case measures, where that is not Work
}

// many runs a child that publishes many files.
func many(ctx context.Context, name string, args []string) (timing, error) {
	if len(args) < 4 {
		return timing{}, fmt.Errorf("child %s: want four arguments", name)
	}
	n, err := strconv.Atoi(args[2])
	switch {
	case err != nil:
		return timing{}, err
	case name == "puts":
		return limitPuts(ctx, args[0], args[1], n, args[3])
	}
	return together(ctx, args[0], args[1], n, args[3])
}

func since(began time.Time) float64 { return time.Since(began).Seconds() }

func client(ctx context.Context, endpoint string) (*s3.Client, error) {
	h := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost, t.WriteBufferSize, t.ReadBufferSize = 2*limitFlight, 64<<10, 64<<10
	})
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(h))
	if err != nil {
		return nil, err
	}
	return s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle, o.BaseEndpoint, o.DisableLogOutputChecksumValidationSkipped = true, &endpoint, true
	}), nil
}

// clientAnd is a client and the file that it is to send, which the caller closes.
func clientAnd(ctx context.Context, endpoint, path string) (*s3.Client, *os.File, error) {
	c, err := client(ctx, endpoint)
	if err != nil {
		return nil, nil, err
	}
	f, err := os.Open(path)
	return c, f, err
}

// limitUpload uploads a file in parts, many at once.
func limitUpload(ctx context.Context, endpoint, key, path string) (t timing, err error) {
	c, f, err := clientAnd(ctx, endpoint, path)
	if err != nil {
		return t, err
	}
	defer f.Close() //nolint:errcheck // only read
	st, err := f.Stat()
	if err != nil {
		return t, err
	}
	began, computed := time.Now(), usage(unix.RUSAGE_SELF)
	u, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: aws.String(benchBucket), Key: &key})
	if err != nil {
		return t, err
	}
	parts := make([]types.CompletedPart, (st.Size()+limitPart-1)/limitPart)
	group, ctx2 := errgroup.WithContext(ctx)
	group.SetLimit(limitFlight)
	for i := range parts {
		group.Go(func() (err error) {
			off := int64(i) * limitPart
			parts[i], err = sendPart(ctx2, c, u, i+1, io.NewSectionReader(f, off, min(limitPart, st.Size()-off)))
			return err
		})
	}
	if err = group.Wait(); err == nil {
		err = complete(ctx, c, u, parts)
	}
	return timing{Work: since(began), Peak: peak(), CPU: usage(unix.RUSAGE_SELF) - computed}, err
}

func sendPart(ctx context.Context, c *s3.Client, u *s3.CreateMultipartUploadOutput, number int, body *io.SectionReader) (types.CompletedPart, error) {
	n := aws.Int32(int32(number))
	out, err := c.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: u.Bucket, Key: u.Key, UploadId: u.UploadId, PartNumber: n, Body: body, ContentLength: aws.Int64(body.Size()),
	})
	if err != nil {
		return types.CompletedPart{}, err
	}
	return types.CompletedPart{ETag: out.ETag, PartNumber: n}, nil
}

func complete(ctx context.Context, c *s3.Client, u *s3.CreateMultipartUploadOutput, parts []types.CompletedPart) error {
	_, err := c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: u.Bucket, Key: u.Key, UploadId: u.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	return err
}

// limitCopy copies an object in the store.
func limitCopy(ctx context.Context, endpoint, key, from string) (t timing, err error) {
	c, err := client(ctx, endpoint)
	if err != nil {
		return t, err
	}
	began := time.Now()
	_, err = c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: aws.String(benchBucket), Key: &key, CopySource: aws.String(benchBucket + "/" + from)})
	return timing{Work: since(began)}, err
}

// limitAppend puts an object's bytes and a file behind them in its place.
func limitAppend(ctx context.Context, endpoint, key, path string) (t timing, err error) {
	c, f, err := clientAnd(ctx, endpoint, path)
	if err != nil {
		return t, err
	}
	defer f.Close() //nolint:errcheck // only read
	began := time.Now()
	u, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: aws.String(benchBucket), Key: &key})
	if err != nil {
		return t, err
	}
	old, err := c.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
		Bucket: u.Bucket, Key: u.Key, UploadId: u.UploadId, PartNumber: aws.Int32(1), CopySource: aws.String(benchBucket + "/" + key),
	})
	if err != nil {
		return t, err
	}
	added, err := sendPart(ctx, c, u, 2, io.NewSectionReader(f, 0, appended))
	if err != nil {
		return t, err
	}
	err = complete(ctx, c, u, []types.CompletedPart{{ETag: old.CopyPartResult.ETag, PartNumber: aws.Int32(1)}, added})
	return timing{Work: since(began)}, err
}

// steps writes a new file by steps of a size, and times the writes and the close.
func steps(path, step, count string) (t timing, err error) {
	size, err1 := strconv.Atoi(step)
	n, err2 := strconv.Atoi(count)
	if err = errors.Join(err1, err2); err != nil {
		return t, err
	}
	buf := make([]byte, size)
	for i := range buf {
		buf[i] = byte(i*7 + 1) // no hole
	}
	began := time.Now()
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return t, &os.PathError{Op: "open", Path: path, Err: err}
	}
	opened := time.Now()
	for range n {
		if _, err = unix.Write(fd, buf); err != nil {
			break
		}
	}
	written := time.Now()
	err = errors.Join(err, unix.Close(fd))
	return timing{Work: since(began), Open: opened.Sub(began).Seconds(), Close: since(written)}, err
}
