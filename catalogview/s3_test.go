package catalogview_test

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/catalogview/sourcetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// requests counts those that a store makes.
type requests struct {
	mu sync.Mutex
	n  map[string]int
}

func (r *requests) observe(q objectstore.S3Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n[q.Operation]++
}

// during runs f and returns the requests that came meanwhile.
func (r *requests) during(f func()) map[string]int {
	r.mu.Lock()
	r.n = map[string]int{}
	r.mu.Unlock()
	f()
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.n)
}

func openStore(t *testing.T, server *s3test.Server) (*objectstore.S3, *requests) {
	t.Helper()
	r := &requests{n: map[string]int{}}
	s, err := objectstore.NewS3(objectstore.S3Options{
		Config: server.Config(), Endpoint: server.Endpoint, Timeout: 30 * time.Second, Observe: r.observe,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, r
}

func manifest(db, name, location string) string {
	return fmt.Sprintf(`{"manifest_version":1,"database_name":%q,"name":%q,
"partition_keys":[{"name":"day","type":"int"}],"storage_descriptor":{"location":%q,"serde_info":{
"serialization_library":"org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"}}}`, db, name, location)
}

func TestManifestsInABucketAreASource(t *testing.T) {
	server := s3test.Versity(t)
	sourcetest.Run(t, func(t *testing.T) sourcetest.Harness {
		t.Helper()
		store, _ := openStore(t, server)
		bucket := server.Bucket(t)
		put := func(t *testing.T, key, content string) {
			t.Helper()
			server.Put(t, bucket, "wh/"+key, []byte(content))
		}
		// What is no database and no table, whatever a test puts in.
		put(t, "_sqe/x", "")
		put(t, ".git/x/_sqe/table.json", "")
		put(t, "file", "")
		return sourcetest.Harness{
			Source: catalogview.NewManifests(store, objectstore.Location{Bucket: bucket, Key: "wh/"}, catalogview.Options{}),
			Create: func(t *testing.T, db string) {
				t.Helper()
				put(t, db+"/no_table/x", "")
			},
			Put: func(t *testing.T, tab sourcetest.Table) {
				t.Helper()
				content := manifest(tab.Database, tab.Name, tab.Location)
				if tab.Broken {
					content = content[:20]
				}
				put(t, tab.Database+"/"+tab.Name+"/_sqe/table.json", content)
			},
			Drop: func(t *testing.T, db, name string) {
				t.Helper()
				server.Delete(t, bucket, "wh/"+db+"/"+name+"/_sqe/table.json")
			},
		}
	})
}

func TestAViewOfABucket(t *testing.T) {
	for name, server := range map[string]func(testing.TB) *s3test.Server{"Versity": s3test.Versity, "Mini": s3test.Mini} {
		t.Run(name, func(t *testing.T) { viewOf(t, server(t)) })
	}
}

func viewOf(t *testing.T, server *s3test.Server) {
	t.Helper()
	store, sent := openStore(t, server)
	bucket := server.Bucket(t)
	server.Put(t, bucket, "wh/db/t/_sqe/table.json", []byte(manifest("db", "t", "s3a://"+bucket+"/data/t")))
	// Case 59.
	names := []string{"a b", "a+b", "100%", "a%20b", "~", "q?", "h#", `"quoted'`, "é", "🦆", "star*", "day=1"}
	for _, n := range names {
		server.Put(t, bucket, "data/t/"+n+"/"+n, []byte(n))
	}
	o := catalogview.Options{
		Roots: []string{"s3://" + bucket + "/wh/", "s3://" + bucket + "/data/"}, TTL: time.Hour, NegativeTTL: time.Hour,
	}
	v := catalogview.NewView(catalogview.NewManifests(store, objectstore.Location{Bucket: bucket, Key: "wh/"}, o), store, o)
	defer func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}()
	wantNames(t, v, "db/t", names...)
	quiet(t, sent, "names of a listing", map[string]int{}, func() {
		for _, n := range names {
			if got, err := v.Lookup(t.Context(), "db/t/"+n); err != nil || got.Kind != catalogview.KindDirectory {
				t.Errorf("Lookup(%s): %s, %v", n, got.Kind, err)
			}
		}
	})
	for _, n := range names {
		file := "db/t/" + n + "/" + n
		found, err := v.Lookup(t.Context(), file)
		if err != nil || found.Kind != catalogview.KindObject || found.Size != int64(len(n)) {
			t.Errorf("Lookup(%s): %+v, %v", n, found, err)
		}
		wantNames(t, v, "db/t/"+n, n)
		// HEAD and LIST agree on the version.
		for listed, err := range v.ReadDir(t.Context(), "db/t/"+n) {
			if err != nil || listed.ETag != found.ETag || !listed.ModTime.Equal(found.ModTime) || listed.Object.Match != found.Object.Match {
				t.Errorf("%s: listed %+v, found %+v, %v", n, listed, found, err)
			}
		}
	}
	quiet(t, sent, "a name below one that the listing does not have", map[string]int{}, func() {
		_, err := v.Lookup(t.Context(), "db/t/day=9/none")
		if !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
	server.Put(t, bucket, "data/t/day=2/f", []byte("1"))
	o2, err := store.Stat(t.Context(), objectstore.Location{Bucket: bucket, Key: "data/t/day=2/f"})
	if err != nil {
		t.Fatal(err)
	}
	v.Wrote(o2)
	wantNames(t, v, "db/t", append(names, "day=2")...)
}

func quiet(t *testing.T, sent *requests, what string, want map[string]int, f func()) {
	t.Helper()
	if got := sent.during(f); !maps.Equal(got, want) {
		t.Errorf("%s: requests %v, want %v", what, got, want)
	}
}

func wantNames(t *testing.T, v *catalogview.View, dir string, want ...string) {
	t.Helper()
	var got []string
	for n, err := range v.ReadDir(t.Context(), dir) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, path.Base(n.Path))
	}
	slices.Sort(got)
	want = slices.Clone(want)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("ReadDir(%s): got %q, want %q", dir, got, want)
	}
}
