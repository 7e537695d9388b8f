package catalogview

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// pageStore is a store of plain keys that lists in pages of a thousand, counts
// its requests and can be slow, dead or strict.
type pageStore struct {
	objectstore.Store
	mu     sync.Mutex
	keys   map[string]string
	sorted []string // nil: not made
	counts map[string]int
	// behind is what listings say of its key, whatever is there.
	behind *objectstore.Entry
	// early answers with what was there when the request came, however long the
	// answer takes.
	early bool
	// on is called before each request (op is stat, read or list, once a page),
	// without the lock; an error is the answer.
	on func(ctx context.Context, op string, loc objectstore.Location) error
}

func newPageStore() *pageStore {
	return &pageStore{keys: map[string]string{}, counts: map[string]int{}}
}

func (s *pageStore) set(key, content string) objectstore.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[key], s.sorted = content, nil
	return pageObject(objectstore.Location{Bucket: "b", Key: key}, content)
}

func (s *pageStore) unset(key string) objectstore.Location {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, key)
	s.sorted = nil
	return objectstore.Location{Bucket: "b", Key: key}
}

func (s *pageStore) get(key string) (content string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok = s.keys[key]
	return content, ok
}

func (s *pageStore) setOn(on func(ctx context.Context, op string, loc objectstore.Location) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
}

func (s *pageStore) ask(ctx context.Context, op string, loc objectstore.Location) error {
	s.mu.Lock()
	s.counts[op]++
	on := s.on
	s.mu.Unlock()
	if on != nil {
		if err := on(ctx, op, loc); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// requests runs f and returns how many requests of each kind came meanwhile.
func (s *pageStore) requests(f func()) map[string]int {
	s.mu.Lock()
	s.counts = map[string]int{}
	s.mu.Unlock()
	f()
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

func pageObject(loc objectstore.Location, content string) objectstore.Object {
	return objectstore.Object{Location: loc, Size: int64(len(content)), ETag: fmt.Sprintf("%q", content)}
}

func (s *pageStore) Stat(ctx context.Context, loc objectstore.Location) (objectstore.Object, error) {
	content, ok := s.get(loc.Key)
	if err := s.ask(ctx, "stat", loc); err != nil {
		return objectstore.Object{}, err
	}
	if !s.early {
		content, ok = s.get(loc.Key)
	}
	if !ok {
		return objectstore.Object{}, objectstore.ErrNotExist
	}
	o := pageObject(loc, content)
	o.Match, o.Meta = o.ETag, map[string]string{"mode": "600"}
	return o, nil
}

func (s *pageStore) Read(ctx context.Context, o objectstore.Object, off, n int64) (objectstore.Object, io.ReadCloser, error) {
	if err := s.ask(ctx, "read", o.Location); err != nil {
		return o, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.keys[o.Key]
	if !ok {
		return o, nil, objectstore.ErrNotExist
	}
	end := min(off+n, int64(len(content)))
	return pageObject(o.Location, content), io.NopCloser(bytes.NewReader([]byte(content[min(off, end):end]))), nil
}

func (s *pageStore) List(ctx context.Context, prefix objectstore.Location, o objectstore.ListOptions) iter.Seq2[objectstore.Entry, error] {
	return func(yield func(objectstore.Entry, error) bool) {
		after, n := "", 0
		for {
			page, more := s.page(prefix, after, o.Delimiter)
			if err := s.ask(ctx, "list", prefix); err != nil {
				yield(objectstore.Entry{}, err)
				return
			}
			if !s.early {
				page, more = s.page(prefix, after, o.Delimiter)
			}
			for _, e := range page {
				if n++; !yield(e, nil) || n == o.Limit {
					return
				}
				after = e.Key
			}
			if !more {
				return
			}
		}
	}
}

// page returns the entries behind a key.
func (s *pageStore) page(prefix objectstore.Location, after string, fold bool) (page []objectstore.Entry, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sorted == nil {
		s.sorted = slices.Sorted(maps.Keys(s.keys))
	}
	last := ""
	begin, _ := slices.BinarySearch(s.sorted, max(after, prefix.Key))
	for _, key := range s.sorted[begin:] {
		if !strings.HasPrefix(key, prefix.Key) {
			break
		}
		rest, ok := strings.CutPrefix(key, prefix.Key)
		e := objectstore.Entry{Object: pageObject(objectstore.Location{Bucket: prefix.Bucket, Key: key}, s.keys[key])}
		if i := strings.IndexByte(rest, '/'); fold && i >= 0 {
			e = objectstore.Entry{Prefix: true}
			e.Location = objectstore.Location{Bucket: prefix.Bucket, Key: prefix.Key + rest[:i+1]}
		}
		if !ok || e.Key <= after || e.Prefix && e.Key == last {
			continue
		}
		if len(page) == 1000 {
			return page, true
		}
		last = e.Key
		if s.behind != nil && s.behind.Key == e.Key {
			e = *s.behind
		}
		page = append(page, e)
	}
	return page, false
}

// bucketView is the view of a catalog in s3://b/wh/ with the table db/t at
// s3://b/data; keys are below that, as "key|content". Its TTLs are the usual.
func bucketView(t *testing.T, change func(*Options), keys ...string) (*View, *pageStore) {
	t.Helper()
	s := newPageStore()
	s.set("wh/db/t/_sqe/table.json", manifestOf("db/t", "s3://b/data", []string{"day:int"}, nil))
	for _, k := range keys {
		key, content, _ := strings.Cut(k, "|")
		s.set("data/"+key, content)
	}
	o := Options{Roots: []string{"s3://b/wh/", "s3://b/data/"}, Probe: 1} // nothing is known but what a test asks for
	if change != nil {
		change(&o)
	}
	v := NewView(NewManifests(s, objectstore.Location{Bucket: "b", Key: "wh/"}, o), s, o)
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	lookup(t, v, "db/t") // the table itself is known
	return v, s
}

// keepTable looks the table up, so that what is counted next is of what is below.
func keepTable(t *testing.T, v *View) {
	t.Helper()
	lookup(t, v, "db/t")
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("f%06d|x", i)
	}
	return all
}

// slow makes each request take a time.
func slow(d time.Duration) func(context.Context, string, objectstore.Location) error {
	return func(ctx context.Context, _ string, _ objectstore.Location) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func dead(context.Context, string, objectstore.Location) error { return objectstore.ErrUnavailable }

func wantObject(t *testing.T, v *View, path, content string) {
	t.Helper()
	n, err := v.Lookup(t.Context(), path)
	if want := fmt.Sprintf("%q", content); err != nil || n.Kind != KindObject || n.ETag != want || n.Object.Match != want {
		t.Errorf("Lookup(%s): got %s with ETag %s, %v, want an object with %s", path, n.Kind, n.ETag, err, want)
	}
}

func wantDirectory(t *testing.T, v *View, path string) {
	t.Helper()
	if n, err := v.Lookup(t.Context(), path); err != nil || n.Kind != KindDirectory {
		t.Errorf("Lookup(%s): got %s, %v, want a directory", path, n.Kind, err)
	}
}

func wantAbsent(t *testing.T, v *View, path string) {
	t.Helper()
	n, err := v.Lookup(t.Context(), path)
	if err == nil {
		t.Errorf("Lookup(%s): got %s with ETag %s, want nothing", path, n.Kind, n.ETag)
		return
	}
	wantErr(t, "Lookup("+path+")", err, objectstore.ErrNotExist)
}
