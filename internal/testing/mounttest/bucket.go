package mounttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

const (
	prefix         = "wh/" // of the warehouse in its bucket
	bucketTimeout  = 60 * time.Second
	uploadsAtOnce  = 16
	readsAtOnce    = 8
	markerOfFolder = "/" // what the key of an empty directory ends in
)

// bucket is a warehouse in a bucket, as a program that uses the SDK sees it.
type bucket struct {
	server *s3test.Server
	name   string
}

func (b bucket) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), bucketTimeout)
}

func (b bucket) read(name string) (string, error) {
	ctx, cancel := b.call()
	defer cancel()
	out, err := b.server.Client().GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: aws.String(prefix + name)})
	if err != nil {
		return "", notExist(err)
	}
	raw, err := io.ReadAll(out.Body)
	return string(raw), errors.Join(err, out.Body.Close())
}

// notExist makes the SDK's "no such object" io/fs's.
func notExist(err error) error {
	var noKey *types.NoSuchKey
	var notFound *types.NotFound
	if errors.As(err, &noKey) || errors.As(err, &notFound) {
		return fmt.Errorf("%w: %w", iofs.ErrNotExist, err)
	}
	return err
}

func (b bucket) names(dir string) ([]string, error) {
	var names []string
	below := prefix + strings.TrimSuffix(dir, "/") + "/"
	err := b.pages(&s3.ListObjectsV2Input{Prefix: &below, Delimiter: aws.String("/")}, func(page *s3.ListObjectsV2Output) {
		for _, o := range page.Contents {
			if name := strings.TrimPrefix(aws.ToString(o.Key), below); name != "" {
				names = append(names, name)
			}
		}
		for _, p := range page.CommonPrefixes {
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(aws.ToString(p.Prefix), below), "/"))
		}
	})
	slices.Sort(names)
	return names, err
}

func (b bucket) pages(in *s3.ListObjectsV2Input, each func(*s3.ListObjectsV2Output)) error {
	ctx, cancel := b.call()
	defer cancel()
	in.Bucket = &b.name
	pages := s3.NewListObjectsV2Paginator(b.server.Client(), in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		each(page)
	}
	return nil
}

func (b bucket) tree(dir string) (map[string]string, error) {
	below := prefix + strings.TrimSuffix(dir, "/") + "/"
	var keys []string
	err := b.pages(&s3.ListObjectsV2Input{Prefix: &below}, func(page *s3.ListObjectsV2Output) {
		for _, o := range page.Contents {
			if !strings.HasSuffix(aws.ToString(o.Key), markerOfFolder) {
				keys = append(keys, aws.ToString(o.Key))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	contents := make([]string, len(keys))
	var readers errgroup.Group
	readers.SetLimit(readsAtOnce)
	for i, key := range keys {
		readers.Go(func() (err error) {
			contents[i], err = b.read(strings.TrimPrefix(key, prefix))
			return err
		})
	}
	err = readers.Wait()
	files := make(map[string]string, len(keys))
	for i, key := range keys {
		files[strings.TrimPrefix(key, below)] = contents[i]
	}
	return files, err
}

func (b bucket) info(name string) (StoredFile, error) {
	ctx, cancel := b.call()
	defer cancel()
	out, err := b.server.Client().HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: aws.String(prefix + name)})
	if err != nil {
		return StoredFile{}, notExist(err)
	}
	// The same bytes have the same ETag, within a second the same time: the file
	// behind the object tells such versions apart.
	tag := aws.ToString(out.ETag) + " of " + aws.ToTime(out.LastModified).Format(time.RFC3339)
	if behind, err := os.Stat(b.window(name)); err == nil {
		tag += fmt.Sprintf(" in inode %d", inode(behind))
	}
	return StoredFile{Size: aws.ToInt64(out.ContentLength), ModTime: aws.ToTime(out.LastModified), ETag: tag}, nil
}

func (b bucket) put(name, content string) error { return b.putKey(prefix+name, content) }

func (b bucket) putKey(key, content string) error {
	ctx, cancel := b.call()
	defer cancel()
	_, err := b.server.Client().PutObject(ctx, &s3.PutObjectInput{
		Bucket: &b.name, Key: &key, Body: bytes.NewReader([]byte(content)),
	})
	return err
}

func (b bucket) remove(name string) error {
	if _, err := b.info(name); err != nil {
		return err
	}
	ctx, cancel := b.call()
	defer cancel()
	_, err := b.server.Client().DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: aws.String(prefix + name)})
	return err
}

// seed uploads files, and a marker for each empty directory, as consoles make it.
func (b bucket) seed(files map[string]string) error {
	var writers errgroup.Group
	writers.SetLimit(uploadsAtOnce)
	for name, content := range files {
		writers.Go(func() error {
			if strings.HasSuffix(name, markerOfFolder) {
				content = ""
			}
			if err := b.put(name, content); err != nil {
				return fmt.Errorf("upload %q: %w", name, err)
			}
			return nil
		})
	}
	return writers.Wait()
}

// window is where the server keeps the file of a name; "": nowhere.
func (b bucket) window(name string) string {
	dir := b.server.Dir(b.name)
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, prefix, filepath.FromSlash(name))
}
