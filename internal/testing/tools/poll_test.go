package tools_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/folderwatch"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// pollEvery is how often a poller looks, as far as the machine is able to.
const pollEvery = time.Millisecond

// poller looks at a table in the store while a script runs, by its files (those of a
// bucket too, which the S3 server puts there by rename) and in a bucket by LIST and
// GET as well: every version that it sees must be a whole one that the tool made in a
// plain directory.
type poller struct {
	dir   string
	known versions
	end   context.CancelFunc
	work  sync.WaitGroup

	mu struct {
		sync.Mutex
		looks int
		names map[string]struct{} // all that it saw
		wrong map[string]struct{}
	}
}

// poll begins to look at the tool's table.
func (c tool) poll(t *testing.T, lake *mounttest.Lake, known versions) *poller {
	t.Helper()
	ctx, p := newPoller(t, lake.Window("tools/"+c.table()), known)
	if lake.OnS3() {
		server, bucket := lake.Bucket()
		l := lister{client: server.Client(), bucket: bucket, prefix: lake.Key("tools/"+c.table()) + "/", seen: map[string]string{}}
		p.loop(ctx, func() error { return p.objects(ctx, l) })
	}
	return p
}

// newPoller begins to look at the files below dir; ctx ends with it.
func newPoller(t *testing.T, dir string, known versions) (ctx context.Context, p *poller) {
	t.Helper()
	p = &poller{dir: dir, known: known}
	ctx, p.end = context.WithCancel(context.WithoutCancel(t.Context()))
	p.mu.names, p.mu.wrong = map[string]struct{}{}, map[string]struct{}{}
	files := map[string]string{}
	p.loop(ctx, func() error { return p.files(files) })
	return ctx, p
}

// loop looks again and again until the end, and once after it.
func (p *poller) loop(ctx context.Context, look func() error) {
	p.work.Go(func() {
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			last := ctx.Err() != nil
			if err := look(); err != nil && ctx.Err() == nil {
				p.note("it cannot be looked at: %v", err)
			}
			p.mu.Lock()
			p.mu.looks++
			p.mu.Unlock()
			if last {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
}

// stop ends the poller, and returns how often it looked, the names that it saw, and
// what it should not have seen.
func (p *poller) stop() (looks int, names map[string]struct{}, wrong []string) {
	p.end()
	p.work.Wait()
	return p.mu.looks, p.mu.names, slices.Sorted(maps.Keys(p.mu.wrong))
}

func (p *poller) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.wrong[fmt.Sprintf("whoever looks at the store: "+format, args...)] = struct{}{}
}

// hold judges one version, by its bytes if its name is final.
func (p *poller) hold(path string, raw []byte) {
	p.mu.Lock()
	p.mu.names[path] = struct{}{}
	p.mu.Unlock()
	if p.known.final(path) && !p.known.has(path, content(raw)) {
		p.note("%s has %d bytes that are no version of it: it begins with %.60q", path, len(raw), raw)
	}
}

// content is what [node] has of a file's bytes.
func content(raw []byte) string { return fmt.Sprintf("%d bytes %x", len(raw), sha256.Sum256(raw)) }

// files looks at the files below the directory. One that is replaced while it is read
// is read to its end through its descriptor; one that goes meanwhile is gone.
func (p *poller) files(seen map[string]string) error {
	return filepath.WalkDir(p.dir, func(path string, d iofs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return ifThere(err)
		}
		below, err := filepath.Rel(p.dir, path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(below, folderwatch.MarkName) {
			return nil
		}
		info, err := os.Lstat(path)
		if err != nil || seen[below] == version(info) {
			return ifThere(err)
		}
		raw, tag, err := readVersion(path)
		if err != nil {
			return ifThere(err)
		}
		seen[below] = tag
		p.hold(below, raw)
		return nil
	})
}

// readVersion is the content of one file, by one descriptor, and its version.
func readVersion(path string) (raw []byte, tag string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close() //nolint:errcheck // of a file that was read
	info, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	raw, err = io.ReadAll(f)
	return raw, version(info), err
}

// version tells a file from the one that was there before.
func version(info os.FileInfo) string {
	return fmt.Sprint(inode(info), info.Size(), info.ModTime().UnixNano())
}

// ifThere is nil for what is no more.
func ifThere(err error) error {
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	return err
}

// lister looks at a bucket as a program that uses the SDK does.
type lister struct {
	client *s3.Client
	bucket string
	prefix string
	seen   map[string]string // by key: ETag and time of what was read
}

// objects looks at the objects of the table.
func (p *poller) objects(ctx context.Context, l lister) error {
	pages := s3.NewListObjectsV2Paginator(l.client, &s3.ListObjectsV2Input{Bucket: &l.bucket, Prefix: &l.prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, o := range page.Contents {
			below := strings.TrimPrefix(aws.ToString(o.Key), l.prefix)
			tag := aws.ToString(o.ETag) + aws.ToTime(o.LastModified).String()
			if below == "" || strings.HasSuffix(below, "/") || strings.HasPrefix(below, folderwatch.MarkName) || l.seen[below] == tag {
				continue
			}
			raw, err := l.get(ctx, aws.ToString(o.Key))
			switch {
			case err != nil:
				return err
			case raw == nil:
				continue
			}
			l.seen[below] = tag
			p.hold(below, raw)
		}
	}
	return nil
}

// get is the content of an object; nil: it is no more.
func (l lister) get(ctx context.Context, key string) ([]byte, error) {
	out, err := l.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &l.bucket, Key: &key})
	var none *types.NoSuchKey
	if errors.As(err, &none) {
		return nil, nil //nolint:nilnil // told in the contract
	}
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(out.Body)
	if err = errors.Join(err, out.Body.Close()); err != nil {
		return nil, err
	}
	return append(make([]byte, 0, 1), raw...), nil
}

func TestAPollerSeesWhatIsNoVersion(t *testing.T) {
	dir := t.TempDir()
	known := versions{any: func(string) bool { return false }, trees: []map[string]node{
		{"f": {kind: regular, bytes: content([]byte("one\n"))}},
		{"f": {kind: regular, bytes: content([]byte("two\n"))}},
	}}
	for _, c := range []struct {
		name, text string
		wrong      int
	}{{"f", "one\n", 0}, {"f", "two\n", 0}, {"f", "tw", 1}, {"f", "", 1}, {"g", "whatever\n", 0}} {
		_, p := newPoller(t, dir, known)
		must(t, os.WriteFile(filepath.Join(dir, "part"), []byte(c.text), 0o600))
		must(t, os.Rename(filepath.Join(dir, "part"), filepath.Join(dir, c.name)))
		_, names, wrong := p.stop() // which looks once more
		if _, seen := names[c.name]; !seen || len(wrong) != c.wrong {
			t.Errorf("%s of %q: saw %v, and took offence at %q; want %d", c.name, c.text, names, wrong, c.wrong)
		}
		must(t, os.Remove(filepath.Join(dir, c.name)))
	}
}
