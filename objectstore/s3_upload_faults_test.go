package objectstore

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// uploadRig is a bucket behind a proxy, and an object of two parts to be made in it.
type uploadRig struct {
	*S3
	server *s3test.Server
	proxy  *faulty.Proxy
	loc    Location
	data   []byte
	opts   PutOptions
}

func newUploadRig(t *testing.T, server *s3test.Server, change ...func(*S3Options)) *uploadRig {
	t.Helper()
	r := &uploadRig{server: server, proxy: faulty.New(t, server), data: numbered(MinPartSize + 1000)}
	r.S3 = onServer(t, r.proxy.Server(), change...)
	r.loc = Location{Bucket: server.Bucket(t), Key: "dir/f"}
	r.opts = PutOptions{Cond: Cond{IfNoneMatch: true}, Meta: idOf("mine")}
	return r
}

// sent is an upload with both parts.
func (r *uploadRig) sent(t *testing.T) (Upload, []Part) {
	t.Helper()
	u, err := r.CreateUpload(t.Context(), r.loc, r.opts)
	if err != nil {
		t.Fatal(err)
	}
	parts := make([]Part, 2)
	for i, b := range [][]byte{r.data[:MinPartSize], r.data[MinPartSize:]} {
		if parts[i], err = r.UploadPart(t.Context(), u, i+1, bytes.NewReader(b), int64(len(b))); err != nil {
			t.Fatal(err)
		}
	}
	return u, parts
}

// wantMade makes the object, and fails the test unless it is there with its id.
func (r *uploadRig) wantMade(t *testing.T) {
	t.Helper()
	u, parts := r.sent(t)
	o, err := r.CompleteUpload(t.Context(), u, parts, r.opts)
	if err != nil {
		t.Fatal(err)
	}
	head := r.server.Head(t, r.loc.Bucket, r.loc.Key)
	if head == nil || unquoteETag(head.ETag) != o.ETag || o.Size != int64(len(r.data)) || head.Metadata[MetaWriteID] != "mine" {
		t.Errorf("CompleteUpload tells %+v, HEAD %+v", o, head)
	}
	if !bytes.Equal(r.server.Get(t, r.loc.Bucket, r.loc.Key), r.data) {
		t.Error("the object holds other bytes")
	}
}

// corruptPart changes the first byte of a request's body.
func corruptPart(x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(x.HTTP.Body, first); err != nil {
		return nil, err
	}
	first[0] ^= 0xff
	x.HTTP.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first), x.HTTP.Body), x.HTTP.Body}
	return next()
}

// TestUploadPasses: what passes by itself is not seen.
func TestUploadPasses(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faulty.Fault{
		"500":        faulty.Status{Code: 500, S3Code: "InternalError"},
		"500 HTML":   faulty.Status{Code: 500, HTML: true},
		"503":        faulty.Status{Code: 503, S3Code: "SlowDown"},
		"409":        faulty.Status{Code: 409, S3Code: "ConditionalRequestConflict"},
		"lost":       faulty.LoseAnswer{},
		"not come":   faulty.LoseAnswerBefore{},
		"refused":    faulty.Refuse{},
		"200 error":  faulty.OK200Error{S3Code: "InternalError"},
		"other page": faulty.Status{Code: 404, HTML: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothServers(t, func(t *testing.T, server *s3test.Server) {
				t.Helper()
				r := newUploadRig(t, server)
				for _, op := range []string{"CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"} {
					r.proxy.Add(faulty.Rule{Op: op, Times: 1, Fault: fault})
				}
				r.wantMade(t)
				r.proxy.Add(faulty.Rule{Op: "AbortMultipartUpload", Times: 1, Fault: fault})
				u, _ := r.sent(t)
				if err := r.AbortUpload(t.Context(), u); err != nil {
					t.Errorf("AbortUpload: %v", err)
				}
			})
		})
	}
}

// TestUploadNeverTaken: a store that fails for ever makes nothing, and an error in time.
func TestUploadNeverTaken(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faulty.Fault{
		"503": faulty.Status{Code: 503, S3Code: "SlowDown"}, "200 error": faulty.OK200Error{S3Code: "InternalError"}, "hung": faulty.Hang{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newUploadRig(t, s3test.Versity(t))
			u, parts := r.sent(t)
			r.S3 = onServer(t, r.proxy.Server(), func(o *S3Options) { o.Timeout = time.Second })
			r.proxy.Add(faulty.Rule{If: func(q *faulty.Request) bool { return q.Op != "HeadObject" }, Fault: fault})
			_, err := r.CreateUpload(t.Context(), r.loc, r.opts)
			wantIs(t, "CreateUpload", err, ErrUnavailable)
			_, err = r.UploadPart(t.Context(), u, 1, bytes.NewReader(r.data[:10]), 10)
			wantIs(t, "UploadPart", err, ErrUnavailable)
			_, err = r.CompleteUpload(t.Context(), u, parts, r.opts)
			wantIs(t, "CompleteUpload", err, ErrUnavailable)
			wantIs(t, "AbortUpload", r.AbortUpload(t.Context(), u), ErrUnavailable)
			r.proxy.Release()
		})
	}
}

// TestPartCorrupted: bytes that change on the way are noticed, by whatever the
// store verifies.
func TestPartCorrupted(t *testing.T) {
	t.Parallel()
	for _, sum := range []string{"crc32c", "crc64nvme", "sha256", "none"} {
		t.Run(sum, func(t *testing.T) {
			t.Parallel()
			bothServers(t, func(t *testing.T, server *s3test.Server) {
				t.Helper()
				if sum == "none" && server.Dir("") == "" {
					t.Skip("MiniStack verifies no signature")
				}
				r := newUploadRig(t, server, func(o *S3Options) { o.Checksum = sum })
				once := r.proxy.Add(faulty.Rule{Op: "UploadPart", Times: 1, Fault: faulty.Func(corruptPart)})
				r.wantMade(t)
				if once.Hits() != 1 {
					t.Errorf("%d parts were changed, want 1", once.Hits())
				}
				u, err := r.CreateUpload(t.Context(), r.loc, r.opts)
				if err != nil {
					t.Fatal(err)
				}
				ever := r.proxy.Add(faulty.Rule{Op: "UploadPart", Fault: faulty.Func(corruptPart)})
				_, err = r.UploadPart(t.Context(), u, 1, bytes.NewReader(r.data), int64(len(r.data)))
				wantIs(t, "UploadPart", err, ErrUnavailable)
				if ever.Hits() != 2 {
					t.Errorf("%d parts were sent, want 2", ever.Hits())
				}
			})
		})
	}
}

// TestCompleteAnswerLost: by the write id it is told whose object is there.
func TestCompleteAnswerLost(t *testing.T) {
	t.Parallel()
	for _, cond := range []string{"create", "replace", "none"} {
		t.Run(cond, func(t *testing.T) {
			t.Parallel()
			bothServers(t, func(t *testing.T, server *s3test.Server) {
				t.Helper()
				r := newUploadRig(t, server)
				if cond != "create" {
					old, err := putText(t.Context(), r.S3, r.loc, "old", PutOptions{Meta: idOf("old")})
					if err != nil {
						t.Fatal(err)
					}
					r.opts.Cond = Cond{IfMatch: old.ETag}
				}
				if cond == "none" {
					r.opts.Cond = Cond{}
				}
				r.proxy.Add(faulty.Rule{Op: "CompleteMultipartUpload", Times: 1, Fault: faulty.LoseAnswer{}})
				r.wantMade(t)
			})
		})
	}
}

// TestCompleteAnswerLostToAnother: another's object is not taken for it.
func TestCompleteAnswerLostToAnother(t *testing.T) {
	t.Parallel()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		r := newUploadRig(t, server)
		u, parts := r.sent(t)
		r.proxy.Add(faulty.Rule{Op: "CompleteMultipartUpload", Times: 1, Fault: faulty.Func(func(x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
			if _, err := server.Client().PutObject(context.Background(), putInput(r.loc, "theirs")); err != nil {
				return nil, err
			}
			return faulty.LoseAnswerBefore{}.Apply(x, next)
		})})
		_, err := r.CompleteUpload(t.Context(), u, parts, r.opts)
		wantIs(t, "CompleteUpload", err, ErrExist)
		if got := server.Get(t, r.loc.Bucket, r.loc.Key); string(got) != "theirs" {
			t.Errorf("another's object became %d bytes", len(got))
		}
	})
}

// TestCompleteRefused: what the store answers is what the call says, where nothing
// of it is there.
func TestCompleteRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status int
		code   string
		cond   Cond
		want   error
	}{
		{http.StatusPreconditionFailed, "PreconditionFailed", Cond{IfNoneMatch: true}, ErrExist},
		{http.StatusNotFound, "NoSuchUpload", Cond{IfNoneMatch: true}, ErrNoUpload},
		{http.StatusBadRequest, "InvalidPart", Cond{IfNoneMatch: true}, ErrNoUpload},
		{http.StatusBadRequest, "InvalidPartOrder", Cond{}, ErrNoUpload},
		{http.StatusForbidden, "AccessDenied", Cond{}, ErrPermission},
	} {
		r := newUploadRig(t, s3test.Versity(t))
		u, parts := r.sent(t)
		r.opts.Cond = test.cond
		r.proxy.Add(faulty.Rule{Op: "CompleteMultipartUpload", Fault: faulty.Status{Code: test.status, S3Code: test.code}})
		_, err := r.CompleteUpload(t.Context(), u, parts, r.opts)
		wantIs(t, "CompleteUpload answered by "+test.code, err, test.want)
		if n := r.proxy.Count("CompleteMultipartUpload"); n != 1 {
			t.Errorf("%s: %d requests, want 1", test.code, n)
		}
	}
}

// TestCompleteAfterConflict: AWS drops the upload after it answered 409.
func TestCompleteAfterConflict(t *testing.T) {
	t.Parallel()
	r := newUploadRig(t, s3test.Mini(t))
	u, parts := r.sent(t)
	r.proxy.Add(faulty.Rule{Op: "CompleteMultipartUpload", Times: 1, Fault: faulty.Func(func(x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
		if err := r.AbortUpload(context.Background(), u); err != nil {
			return nil, err
		}
		return faulty.Status{Code: http.StatusConflict, S3Code: "ConditionalRequestConflict"}.Apply(x, next)
	})})
	_, err := r.CompleteUpload(t.Context(), u, parts, r.opts)
	wantIs(t, "CompleteUpload", err, ErrNoUpload)
	wantIs(t, "CompleteUpload", err, ErrUnavailable)
}

// TestCompleteIgnoresConditions: a store that ignores them here is looked at before.
func TestCompleteIgnoresConditions(t *testing.T) {
	t.Parallel()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		r := newUploadRig(t, server)
		r.proxy.Add(faulty.Rule{Fault: faulty.StripConditions{}})
		server.Put(t, r.loc.Bucket, r.loc.Key, []byte("theirs"))
		u, parts := r.sent(t)
		_, err := r.CompleteUpload(t.Context(), u, parts, r.opts)
		wantIs(t, "CompleteUpload as a new name", err, ErrExist)
		r.opts.Cond = Cond{IfMatch: "0123456789abcdef0123456789abcdef"}
		_, err = r.CompleteUpload(t.Context(), u, parts, r.opts)
		wantIs(t, "CompleteUpload over another version", err, ErrChanged)
		if got := server.Get(t, r.loc.Bucket, r.loc.Key); string(got) != "theirs" {
			t.Errorf("another's object became %d bytes", len(got))
		}
	})
}

// TestCompleteToldOnly: an overwrite that the store told of and did not make.
func TestCompleteToldOnly(t *testing.T) {
	t.Parallel()
	for _, meta := range []map[string]string{nil, idOf("mine")} {
		r := newUploadRig(t, s3test.Versity(t))
		old, err := putText(t.Context(), r.S3, r.loc, "old", PutOptions{Meta: idOf("old")})
		if err != nil {
			t.Fatal(err)
		}
		told := r.proxy.Add(faulty.Rule{Op: "CompleteMultipartUpload", Fault: faulty.Func(func(x *faulty.Exchange, _ faulty.Next) (*http.Response, error) {
			return faulty.Answer(x, http.StatusOK, http.Header{"Content-Type": {"application/xml"}}, completedAnswer), nil
		})})
		for i, cond := range []Cond{{IfMatch: old.ETag}, {}} {
			r.opts = PutOptions{Meta: meta, Cond: cond}
			u, parts := r.sent(t)
			_, err = r.CompleteUpload(t.Context(), u, parts, r.opts)
			wantIs(t, "CompleteUpload", err, ErrNoUpload)
			wantIs(t, "CompleteUpload", err, ErrUnavailable)
			if told.Hits() != i+1 {
				t.Errorf("%d requests, want %d", told.Hits(), i+1)
			}
		}
	}
}
