package s3test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// callTimeout bounds each call of the helpers; a store that is paused fails the test.
const callTimeout = 2 * time.Minute

// call is the context of one call: that of the test, in its cleanup too.
func call(tb testing.TB) (context.Context, context.CancelFunc) {
	tb.Helper()
	return context.WithTimeout(context.WithoutCancel(tb.Context()), callTimeout)
}

// Bucket makes an empty bucket for one test, and returns its name.
func (s *Server) Bucket(tb testing.TB) string {
	tb.Helper()
	ctx, cancel := call(tb)
	defer cancel()
	name := fmt.Sprintf("bucket-%d", buckets.Add(1))
	_, err := s.client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name})
	must(tb, err)
	if dir := s.Dir(name); dir != "" {
		tb.Cleanup(func() {
			// A request that its test gave up may still be writing.
			err := os.RemoveAll(dir)
			for i := 0; errors.Is(err, syscall.ENOTEMPTY) && i < 100; i++ {
				err = os.RemoveAll(dir)
			}
			if err != nil {
				tb.Errorf("remove bucket: %v", err)
			}
		})
	}
	return name
}

// Put stores an object, whatever was there.
func (s *Server) Put(tb testing.TB, bucket, key string, content []byte) {
	tb.Helper()
	ctx, cancel := call(tb)
	defer cancel()
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(content)})
	must(tb, err)
}

// Get is the content of an object that must be there.
func (s *Server) Get(tb testing.TB, bucket, key string) []byte {
	tb.Helper()
	ctx, cancel := call(tb)
	defer cancel()
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	must(tb, err)
	raw, err := io.ReadAll(out.Body)
	must(tb, errors.Join(err, out.Body.Close()))
	return raw
}

// Head is what the store knows of an object, its ETag in quotes; nil: there is none.
func (s *Server) Head(tb testing.TB, bucket, key string) *s3.HeadObjectOutput {
	tb.Helper()
	ctx, cancel := call(tb)
	defer cancel()
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
	var none *types.NotFound
	if errors.As(err, &none) {
		return nil
	}
	must(tb, err)
	return out
}

// Exists tells whether there is an object of this key.
func (s *Server) Exists(tb testing.TB, bucket, key string) bool {
	tb.Helper()
	return s.Head(tb, bucket, key) != nil
}

// Delete removes an object, if there is one.
func (s *Server) Delete(tb testing.TB, bucket, key string) {
	tb.Helper()
	ctx, cancel := call(tb)
	defer cancel()
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	must(tb, err)
}

// Keys are the sorted keys of all objects that begin with prefix.
func (s *Server) Keys(tb testing.TB, bucket, prefix string) []string {
	tb.Helper()
	ctx, cancel := call(tb)
	defer cancel()
	var keys []string
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix, EncodingType: types.EncodingTypeUrl})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		must(tb, err)
		for _, o := range page.Contents {
			key := aws.ToString(o.Key)
			if page.EncodingType == types.EncodingTypeUrl { // else XML has no control bytes
				key, err = url.QueryUnescape(key)
				must(tb, err)
			}
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Uploads are the sorted keys of the multipart uploads that are neither completed
// nor aborted, a key once for each of its uploads.
func (s *Server) Uploads(tb testing.TB, bucket string) []string {
	tb.Helper()
	ctx, cancel := call(tb)
	defer cancel()
	var keys []string
	pages := s3.NewListMultipartUploadsPaginator(s.client, &s3.ListMultipartUploadsInput{Bucket: &bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		must(tb, err)
		for _, u := range page.Uploads {
			keys = append(keys, aws.ToString(u.Key))
		}
	}
	slices.Sort(keys)
	return keys
}

// CLI runs the AWS CLI against the server ("s3", "ls", "s3://"+bucket), which must
// succeed, and returns what it prints. It is skipped as Mini is where the CLI is
// not installed.
func CLI(tb testing.TB, s *Server, args ...string) string {
	tb.Helper()
	ctx, cancel := call(tb)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, venv(tb, "aws"), append([]string{"--endpoint-url", s.Endpoint}, args...)...)
	cmd.Env = append(s.Env(), "PATH="+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "AWS_PAGER=", "HOME="+tb.TempDir())
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		tb.Fatalf("aws %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String()
}
