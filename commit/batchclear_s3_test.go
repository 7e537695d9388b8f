package commit

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// listedOn is listed, on a server, by its listing.
func (w *world) listedOn(server *s3test.Server, name string) (old []objectstore.Object) {
	w.t.Helper()
	for _, key := range []string{oldKey, replacedKey, batchKey(0)} {
		server.Put(w.t, name, key, []byte(theirFile))
	}
	for e, err := range w.real.List(w.t.Context(), w.loc("t/"), objectstore.ListOptions{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		old = append(old, e.Object)
	}
	server.Put(w.t, name, replacedKey, []byte(laterFile))
	server.Put(w.t, name, laterKey, []byte(laterFile))
	return old
}

// TestRule30OnAServer overwrites three objects of a real server by three files, with
// faults: what others wrote since the listing stays, and each file is in one place.
func TestRule30OnAServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	server := s3test.Versity(t)
	proxy := faulty.New(t, server)
	first := newS3World(t, proxy.Server(), server.Bucket(t))
	first.known()
	slow := faulty.Status{Code: http.StatusServiceUnavailable, S3Code: "SlowDown"}
	denied := faulty.Status{Code: http.StatusForbidden, S3Code: "AccessDenied"}
	changed := faulty.Status{Code: http.StatusPreconditionFailed, S3Code: "PreconditionFailed"}
	last := func(q *faulty.Request) bool { return q.Key == batchKey(2) }
	for _, tt := range []struct {
		name  string
		rule  faulty.Rule
		want  error
		there []int // of the files
		gone  bool  // the old ones
	}{
		{"undisturbed", faulty.Rule{}, nil, []int{0, 1, 2}, true},
		{"removals that are not answered once", faulty.Rule{Op: "DeleteObject", Times: 2, Fault: faulty.LoseAnswer{}}, nil, []int{0, 1, 2}, true},
		{"removals that are slowed down", faulty.Rule{Op: "DeleteObject", Times: 3, Fault: slow}, nil, []int{0, 1, 2}, true},
		{"puts that are not answered once", faulty.Rule{Op: "PutObject", Times: 2, Fault: faulty.LoseAnswer{}}, nil, []int{0, 1, 2}, true},
		{"looks that are slowed down", faulty.Rule{Op: "HeadObject", Times: 3, Fault: slow}, nil, []int{0, 1, 2}, true},
		{"removals that are refused", faulty.Rule{Op: "DeleteObject", Fault: denied}, objectstore.ErrPermission, nil, false},
		{"removals of another version", faulty.Rule{Op: "DeleteObject", Times: 1, Fault: changed}, objectstore.ErrExist, nil, false},
		{"a put that is refused", faulty.Rule{Op: "PutObject", If: last, Fault: denied}, objectstore.ErrPermission, []int{0, 1}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := server.Bucket(t)
			w := newWorldOn(t, first.real, name)
			w.c.atOnce = 1
			old, members := w.listedOn(server, name), w.stageBatch(3)
			defer proxy.Clear()
			if tt.rule.Fault != nil {
				proxy.Add(tt.rule)
			}
			objects, err := w.c.PublishAll(t.Context(), members, Together{Clear: old, RegisterLast: true})
			proxy.Clear()
			if !errors.Is(err, tt.want) || len(objects) != 3*min(1, len(tt.there)) {
				t.Fatalf("PublishAll: %v, %v; want %v", objects, err, tt.want)
			}
			for i := range 3 {
				published := slices.Contains(tt.there, i)
				if published && string(server.Get(t, name, batchKey(i))) != batchData(i) {
					t.Errorf("file %d is not published", i)
				}
				if published == members[i].File.Dirty() || published != (len(objects) > 0 && objects[i].ETag != "") {
					t.Errorf("file %d: dirty %v, told %v", i, members[i].File.Dirty(), objects)
				}
			}
			if !tt.gone && string(server.Get(t, name, batchKey(0))) != theirFile {
				t.Error("an old file is gone, and no new one is there")
			}
			if tt.gone && server.Exists(t, name, oldKey) {
				t.Error("an old file is there")
			}
			for _, key := range []string{replacedKey, laterKey} {
				if string(server.Get(t, name, key)) != laterFile {
					t.Errorf("%s: what others wrote is gone", key)
				}
			}
			if n := len(w.area.Batches()); n != 0 {
				t.Errorf("%d batches are left", n)
			}
		})
	}
}
