package staging

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const realPart = objectstore.MinPartSize

// realCloud is a staging area over a bucket of a real server.
type realCloud struct {
	*env
	server *s3test.Server
	s3     *objectstore.S3
	bucket string
}

func newRealCloud(t *testing.T) *realCloud {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a server")
	}
	r := &realCloud{server: s3test.Fresh(t)}
	r.bucket = r.server.Bucket(t)
	s3, err := objectstore.NewS3(objectstore.S3Options{Config: r.server.Config(), Endpoint: r.server.Endpoint, PathStyle: true, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s3.Close() })
	r.s3 = s3
	r.env = &env{root: r.bucket, dir: filepath.Join(t.TempDir(), "staging"), opts: Options{Store: s3, PartSize: realPart}}
	r.open(t)
	t.Cleanup(func() { _ = r.area.Close() })
	return r
}

func (r *realCloud) publish(t *testing.T, f *File) {
	t.Helper()
	z := freeze(t, f)
	defer z.Release()
	err := publishTo(t.Context(), r.s3, z)
	for range 3 {
		if !errors.Is(err, objectstore.ErrNoUpload) {
			break
		}
		if err = z.ForgetUpload(t.Context()); err == nil {
			err = publishTo(t.Context(), r.s3, z)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (r *realCloud) want(t *testing.T, want []byte) {
	t.Helper()
	if got := r.server.Get(t, r.bucket, "f"); !bytes.Equal(got, want) {
		t.Errorf("the object has %d bytes, want %d, or others", len(got), len(want))
	}
	r.quiet(t)
	if left := r.server.Uploads(t, r.bucket); len(left) > 0 {
		t.Errorf("uploads of %q are left", left)
	}
}

func TestRealServer(t *testing.T) {
	r := newRealCloud(t)
	f := r.final(t)
	want := pattern(1, 3*realPart+7)
	put(t, f, 0, want[:2*realPart])
	put(t, f, 2*realPart, want[2*realPart:])
	r.quiet(t)
	if got := f.Uploaded(); got != 3*realPart {
		t.Errorf("Uploaded: %d", got)
	}
	copy(want, "patched")
	put(t, f, 0, []byte("patched"))
	r.publish(t, f)
	r.want(t, want)

	// The next version has most of it copied, and is read through the store.
	copy(want[2*realPart+5:], "again")
	put(t, f, 2*realPart+5, []byte("again"))
	if z := freeze(t, f); !z.Copies() {
		t.Error("nothing is copied")
	} else {
		z.Release()
	}
	r.publish(t, f)
	r.want(t, want)
	if got := readAll(t, f); !bytes.Equal(got, want) {
		t.Error("the file reads otherwise after its publish")
	}
}

// TestRealServerAborts what a write leaves, and gets over what others abort.
func TestRealServerAborts(t *testing.T) {
	r := newRealCloud(t)
	f := r.final(t)
	put(t, f, 0, pattern(1, 2*realPart))
	r.quiet(t)
	if got := r.server.Uploads(t, r.bucket); len(got) != 1 {
		t.Fatalf("uploads of %q", got)
	}
	if err := f.Drop(); err != nil {
		t.Fatal(err)
	}
	r.quiet(t)
	if left := r.server.Uploads(t, r.bucket); len(left) > 0 {
		t.Errorf("uploads of %q are left of a dropped write", left)
	}
	f = r.final(t)
	want := pattern(2, 2*realPart+1)
	put(t, f, 0, want)
	r.quiet(t)
	if err := r.s3.AbortUpload(t.Context(), *f.Record().Upload); err != nil {
		t.Fatal(err)
	}
	r.publish(t, f)
	r.want(t, want)
}

// TestRealServerAfterACrash: what had all parts is completed, and no other is left.
func TestRealServerAfterACrash(t *testing.T) {
	r := newRealCloud(t)
	f := r.final(t)
	want := pattern(1, 2*realPart+1)
	put(t, f, 0, want)
	z := freeze(t, f)
	_, _, err := z.Upload(t.Context())
	if err = errors.Join(err, z.Secure(t.Context()), z.SetState(Publishing, "", true)); err != nil {
		t.Fatal(err)
	}
	z.Release()
	g := r.create(t, NewWrite{Target: r.loc("g"), Final: true})
	put(t, g, 0, want)
	r.quiet(t)
	r.reopen(t)
	if err := r.area.AbortUploads(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, _ = r.area.Find(f.ID())
	r.publish(t, f)
	r.want(t, want)
}
