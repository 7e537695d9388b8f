package objectstore

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// TestCopyPartUnsupported: where the store can not copy, the caller sends.
func TestCopyPartUnsupported(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status int
		code   string
		want   error
	}{
		{http.StatusNotImplemented, "NotImplemented", errors.ErrUnsupported},
		{http.StatusNotImplemented, "", errors.ErrUnsupported},
		{http.StatusMethodNotAllowed, "MethodNotAllowed", errors.ErrUnsupported},
		{http.StatusBadRequest, "InvalidRequest", errors.ErrUnsupported},
		{http.StatusForbidden, "AccessDenied", ErrPermission},
		{http.StatusNotFound, "NoSuchKey", ErrChanged},
		{http.StatusNotFound, "NoSuchUpload", ErrNoUpload},
		{http.StatusNotFound, "", ErrNoUpload},
	} {
		f := newFaked(t, S3Options{}, func(_ int, req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodHead {
				return serveObject(req, "v1", []byte("1234567"))
			}
			return replyError(test.status, test.code)
		})
		src := Object{Location: Location{Bucket: "from", Key: "k"}, ETag: "v1", Size: 7}
		_, err := f.CopyPart(t.Context(), Upload{Location: testLoc, ID: "id"}, 1, src, 1, 5)
		wantIs(t, "CopyPart answered by "+test.code, err, test.want)
	}
	f := newFaked(t, S3Options{Secrets: map[string]aws.Config{"other": static("other")}}, nil)
	src := Object{Location: Location{Bucket: "other@bucket", Key: "k"}, ETag: "v1", Size: 7}
	_, err := f.CopyPart(t.Context(), Upload{Location: testLoc, ID: "id"}, 1, src, 1, 5)
	wantIs(t, "CopyPart of other credentials", err, ErrCrossDevice)
}

// TestCopyPartRequests: what a store does with the condition is found out once.
func TestCopyPartRequests(t *testing.T) {
	t.Parallel()
	for _, ignores := range []bool{false, true} {
		bothServers(t, func(t *testing.T, server *s3test.Server) {
			t.Helper()
			r := newUploadRig(t, server)
			if ignores {
				r.proxy.Add(faulty.Rule{Fault: faulty.StripConditions{}})
			}
			src, err := r.Put(t.Context(), Location{Bucket: r.loc.Bucket, Key: "src"}, bytes.NewReader(r.data), int64(len(r.data)), PutOptions{})
			if err != nil {
				t.Fatal(err)
			}
			u, err := r.CreateUpload(t.Context(), r.loc, r.opts)
			if err != nil {
				t.Fatal(err)
			}
			r.proxy.Reset()
			if ignores {
				r.proxy.Add(faulty.Rule{Fault: faulty.StripConditions{}})
			}
			for n := 1; n <= 3; n++ {
				if _, err := r.CopyPart(t.Context(), u, n, src, 1, MinPartSize); err != nil {
					t.Fatal(err)
				}
			}
			looks := 0
			if ignores {
				looks = 3
			}
			if copies, heads := r.proxy.Count("UploadPartCopy"), r.proxy.Count("HeadObject"); copies != 4 || heads != looks {
				t.Errorf("ignores: %v: %d copies and %d looks, want 4 and %d", ignores, copies, heads, looks)
			}
		})
	}
}

// copying is an object with the rig's data, and an upload that is to have parts of it.
func (r *uploadRig) copying(t *testing.T) (Object, Upload) {
	t.Helper()
	src, err := r.Put(t.Context(), Location{Bucket: r.loc.Bucket, Key: "src"}, bytes.NewReader(r.data), int64(len(r.data)), PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	u, err := r.CreateUpload(t.Context(), r.loc, r.opts)
	if err != nil {
		t.Fatal(err)
	}
	return src, u
}

// TestCopyPartFaults: errors that pass, in an answer of 200 too; and a source that
// changes on a store that does not mind.
func TestCopyPartFaults(t *testing.T) {
	t.Parallel()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		r := newUploadRig(t, server)
		src, u := r.copying(t)
		r.proxy.Add(faulty.Rule{Op: "UploadPartCopy", Skip: 1, Times: 1, Fault: faulty.OK200Error{S3Code: "InternalError"}})
		r.proxy.Add(faulty.Rule{Op: "UploadPartCopy", Skip: 1, Times: 1, Fault: faulty.LoseAnswer{}})
		p, err := r.CopyPart(t.Context(), u, 1, src, 0, src.Size)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.CompleteUpload(t.Context(), u, []Part{p}, r.opts); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(server.Get(t, r.loc.Bucket, r.loc.Key), r.data) {
			t.Error("the object holds other bytes")
		}
	})
}

func TestCopyPartChangedIgnored(t *testing.T) {
	t.Parallel()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		r := newUploadRig(t, server)
		src, u := r.copying(t)
		r.proxy.Add(faulty.Rule{Fault: faulty.StripConditions{}})
		change := r.proxy.Add(faulty.Rule{Op: "UploadPartCopy", Skip: 2, Times: 1, Fault: faulty.Func(func(_ *faulty.Exchange, next faulty.Next) (*http.Response, error) {
			in := putInput(src.Location, "")
			in.Body = bytes.NewReader(make([]byte, len(r.data)))
			if _, failed := server.Client().PutObject(context.Background(), in); failed != nil {
				return nil, failed
			}
			return next()
		})})
		if _, err := r.CopyPart(t.Context(), u, 1, src, 0, MinPartSize); err != nil {
			t.Fatal(err)
		}
		_, err := r.CopyPart(t.Context(), u, 2, src, 0, MinPartSize)
		wantIs(t, "CopyPart", err, ErrChanged)
		if change.Hits() != 1 {
			t.Errorf("the source was changed %d times, want once", change.Hits())
		}
	})
}
