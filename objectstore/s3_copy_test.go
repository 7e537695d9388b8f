package objectstore

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// copyRig is a bucket with the object "src", behind a proxy.
type copyRig struct {
	*S3
	server *s3test.Server
	proxy  *faulty.Proxy
	bucket string
	src    Object
	data   []byte
}

const mib = 1 << 20

// newCopyRig has parts of 5 MiB copied from objects over that.
func newCopyRig(t *testing.T, server *s3test.Server, size int) *copyRig {
	t.Helper()
	r := &copyRig{server: server, proxy: faulty.New(t, server), bucket: server.Bucket(t), data: numbered(size)}
	r.S3 = onServer(t, r.proxy.Server())
	r.copyLimit = 5 * mib
	in := putInput(r.at("src"), "")
	in.Body, in.Metadata, in.ContentType = bytes.NewReader(r.data), map[string]string{"mode": "600", MetaWriteID: "of-src"}, aws.String("text/csv")
	in.ContentEncoding = aws.String("identity")
	if _, err := server.Client().PutObject(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.src, err = r.Stat(t.Context(), r.at("src")); err != nil {
		t.Fatal(err)
	}
	r.proxy.Reset()
	return r
}

func (r *copyRig) at(key string) Location { return Location{Bucket: r.bucket, Key: key} }

// want fails the test unless key holds the source's bytes and these attributes.
func (r *copyRig) want(t *testing.T, key string, made Object, meta map[string]string) {
	t.Helper()
	head := r.server.Head(t, r.bucket, key)
	if head == nil {
		t.Fatalf("%s is not there", key)
	}
	if !bytes.Equal(r.server.Get(t, r.bucket, key), r.data) {
		t.Errorf("%s holds other bytes", key)
	}
	if got := aws.ToString(head.ContentType); got != "text/csv" {
		t.Errorf("content type %q, want the source's", got)
	}
	if !maps.Equal(head.Metadata, meta) {
		t.Errorf("metadata %v, want %v", head.Metadata, meta)
	}
	if made.ETag != unquoteETag(head.ETag) || made.Size != int64(len(r.data)) || made.Location != r.at(key) || made.Match != made.ETag {
		t.Errorf("Copy tells %+v, HEAD %s", made, aws.ToString(head.ETag))
	}
}

// sizes of objects that are copied by one request, and in three parts.
func eachSize(t *testing.T, test func(*testing.T, *copyRig)) {
	t.Helper()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		t.Run("Whole", func(t *testing.T) { test(t, newCopyRig(t, server, 1000)) })
		t.Run("Parts", func(t *testing.T) { test(t, newCopyRig(t, server, 12*mib)) })
	})
}

func TestCopyKeepsAttributes(t *testing.T) {
	t.Parallel()
	eachSize(t, func(t *testing.T, r *copyRig) {
		t.Helper()
		o, err := r.Copy(t.Context(), r.at("new/dst"), r.src, PutOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r.want(t, "new/dst", o, map[string]string{"mode": "600", MetaWriteID: "of-src"})
		meta := map[string]string{"mode": "644"}
		if o, err = r.Copy(t.Context(), r.at("own"), r.src, PutOptions{Meta: meta}); err != nil {
			t.Fatal(err)
		}
		r.want(t, "own", o, meta)
		if !maps.Equal(o.Meta, meta) {
			t.Errorf("Copy tells metadata %v, want %v", o.Meta, meta)
		}
		if len(r.data) > 5*mib {
			if n := r.proxy.Count("UploadPartCopy"); n != 7 {
				t.Errorf("%d parts were copied, want 2 times 3, and one to see whether another version is refused", n)
			}
		} else if n := r.proxy.Count("CopyObject"); n != 2 {
			t.Errorf("%d requests copied, want 2", n)
		}
	})
}

// TestCopyUnderConditions: of the destination, which the servers ignore.
func TestCopyUnderConditions(t *testing.T) {
	t.Parallel()
	eachSize(t, func(t *testing.T, r *copyRig) {
		t.Helper()
		r.server.Put(t, r.bucket, "dst", []byte("theirs"))
		dst, err := r.Stat(t.Context(), r.at("dst"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Copy(t.Context(), r.at("dst"), r.src, PutOptions{Cond: Cond{IfNoneMatch: true}})
		wantIs(t, "Copy to a name that is there", err, ErrExist)
		_, err = r.Copy(t.Context(), r.at("dst"), r.src, PutOptions{Cond: Cond{IfMatch: r.src.ETag}})
		wantIs(t, "Copy over another version", err, ErrChanged)
		_, err = r.Copy(t.Context(), r.at("no"), r.src, PutOptions{Cond: Cond{IfMatch: r.src.ETag}})
		wantIs(t, "Copy over nothing", err, ErrChanged)
		if got := r.server.Get(t, r.bucket, "dst"); string(got) != "theirs" {
			t.Errorf("another's object became %d bytes", len(got))
		}
		if _, err := r.Copy(t.Context(), r.at("dst"), r.src, PutOptions{Cond: Cond{IfMatch: dst.ETag}}); err != nil {
			t.Error(err)
		}
		if _, err := r.Copy(t.Context(), r.at("new"), r.src, PutOptions{Cond: Cond{IfNoneMatch: true}}); err != nil {
			t.Error(err)
		}
		if left := r.server.Uploads(t, r.bucket); len(left) != 0 {
			t.Errorf("uploads left: %q", left)
		}
	})
}

// TestCopyOfChangedSource: it changes after the look at it, as the copy begins.
func TestCopyOfChangedSource(t *testing.T) {
	t.Parallel()
	eachSize(t, func(t *testing.T, r *copyRig) {
		t.Helper()
		change := func(_ *faulty.Exchange, next faulty.Next) (*http.Response, error) {
			if _, err := r.server.Client().PutObject(context.Background(), putInput(r.at("src"), "changed")); err != nil {
				return nil, err
			}
			return next()
		}
		op := "CopyObject"
		if len(r.data) > 5*mib {
			op = "UploadPartCopy"
		}
		r.proxy.Add(faulty.Rule{Op: op, Times: 1, Fault: faulty.Func(change)})
		_, err := r.Copy(t.Context(), r.at("dst"), r.src, PutOptions{Cond: Cond{IfNoneMatch: true}})
		wantIs(t, "Copy", err, ErrChanged)
		if r.server.Exists(t, r.bucket, "dst") {
			t.Error("another version was copied")
		}
		if left := r.server.Uploads(t, r.bucket); len(left) != 0 {
			t.Errorf("uploads left: %q", left)
		}
		// And before.
		_, err = r.Copy(t.Context(), r.at("dst"), r.src, PutOptions{})
		wantIs(t, "Copy of an old version", err, ErrChanged)
		r.server.Delete(t, r.bucket, "src")
		_, err = r.Copy(t.Context(), r.at("dst"), r.src, PutOptions{})
		wantIs(t, "Copy of nothing", err, ErrChanged)
	})
}

// TestCopyOfChangedSourceIgnored: parts of two versions are never one object.
func TestCopyOfChangedSourceIgnored(t *testing.T) {
	t.Parallel()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		r := newCopyRig(t, server, 12*mib)
		r.proxy.Add(faulty.Rule{Fault: faulty.StripConditions{}})
		r.proxy.Add(faulty.Rule{Op: "UploadPartCopy", Skip: 2, Times: 1, Fault: faulty.Func(func(_ *faulty.Exchange, next faulty.Next) (*http.Response, error) {
			in := putInput(r.at("src"), "")
			in.Body = bytes.NewReader(make([]byte, len(r.data)))
			if _, err := server.Client().PutObject(context.Background(), in); err != nil {
				return nil, err
			}
			return next()
		})})
		_, err := r.Copy(t.Context(), r.at("dst"), r.src, PutOptions{})
		wantIs(t, "Copy", err, ErrChanged)
		if r.server.Exists(t, r.bucket, "dst") {
			t.Error("a mix was made")
		}
		if left := r.server.Uploads(t, r.bucket); len(left) != 0 {
			t.Errorf("uploads left: %q", left)
		}
	})
}

// TestCopyAnswersError: a 200 may have an error for a body.
func TestCopyAnswersError(t *testing.T) {
	t.Parallel()
	eachSize(t, func(t *testing.T, r *copyRig) {
		t.Helper()
		for _, op := range []string{"CopyObject", "UploadPartCopy", "CompleteMultipartUpload"} {
			r.proxy.Add(faulty.Rule{Op: op, Times: 1, Fault: faulty.OK200Error{S3Code: "InternalError", Message: "try again"}})
		}
		o, err := r.Copy(t.Context(), r.at("dst"), r.src, PutOptions{Cond: Cond{IfNoneMatch: true}})
		if err != nil {
			t.Fatal(err)
		}
		r.want(t, "dst", o, map[string]string{"mode": "600", MetaWriteID: "of-src"})
	})
}

func TestCopyAnswersErrorForEver(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"CopyObject", "UploadPartCopy", "CompleteMultipartUpload"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			size := 12 * mib
			if op == "CopyObject" {
				size = 10
			}
			r := newCopyRig(t, s3test.Versity(t), size)
			limit := r.copyLimit
			r.S3 = onServer(t, r.proxy.Server(), func(o *S3Options) { o.Timeout = time.Second })
			r.copyLimit = limit
			r.proxy.Add(faulty.Rule{Op: op, Fault: faulty.OK200Error{S3Code: "InternalError"}})
			_, err := r.Copy(t.Context(), r.at("dst"), r.src, PutOptions{})
			wantIs(t, "Copy", err, ErrUnavailable)
			if r.server.Exists(t, r.bucket, "dst") || !r.server.Exists(t, r.bucket, "src") {
				t.Error("the target is there, or the source is not")
			}
			if left := r.server.Uploads(t, r.bucket); len(left) != 0 {
				t.Errorf("uploads left: %q", left)
			}
		})
	}
}

// TestCopyAnswerLost: the copy that took effect is recognised.
func TestCopyAnswerLost(t *testing.T) {
	t.Parallel()
	for _, meta := range []map[string]string{nil, idOf("mine")} {
		eachSize(t, func(t *testing.T, r *copyRig) {
			t.Helper()
			if len(r.data) > 5*mib && meta == nil {
				t.Skip("nothing tells an upload of parts without an id of its own")
			}
			for _, op := range []string{"CopyObject", "CompleteMultipartUpload"} {
				r.proxy.Add(faulty.Rule{Op: op, Times: 1, Fault: faulty.LoseAnswer{}})
			}
			o, err := r.Copy(t.Context(), r.at("dst"), r.src, PutOptions{Cond: Cond{IfNoneMatch: true}, Meta: meta})
			if err != nil {
				t.Fatal(err)
			}
			if meta == nil {
				meta = r.src.Meta
			}
			r.want(t, "dst", o, meta)
		})
	}
}

func TestCopyOntoItself(t *testing.T) {
	t.Parallel()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		r := newCopyRig(t, server, 1000)
		o, err := r.Copy(t.Context(), r.at("src"), r.src, PutOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r.want(t, "src", o, map[string]string{"mode": "600", MetaWriteID: "of-src"})
		_, err = r.Copy(t.Context(), r.at("src"), r.src, PutOptions{Cond: Cond{IfNoneMatch: true}})
		wantIs(t, "Copy onto itself as a new name", err, ErrExist)
		meta := map[string]string{"mode": "644"}
		if o, err = r.Copy(t.Context(), r.at("src"), r.src, PutOptions{Meta: meta}); err != nil {
			t.Fatal(err)
		}
		r.want(t, "src", o, meta)
	})
}

func TestCopyOfOtherCredentials(t *testing.T) {
	t.Parallel()
	f := newFaked(t, S3Options{Secrets: map[string]aws.Config{"other": static("other")}}, nil)
	_, err := f.Copy(t.Context(), testLoc, Object{Location: Location{Bucket: "other@bucket", Key: "k"}, ETag: "v1"}, PutOptions{})
	wantIs(t, "Copy", err, ErrCrossDevice)
}

// TestCopyOnAWS is one request, for AWS keeps conditions.
func TestCopyOnAWS(t *testing.T) {
	t.Parallel()
	const result = `<CopyObjectResult><ETag>"v2"</ETag><LastModified>2026-01-02T03:04:05.000Z</LastModified></CopyObjectResult>`
	f := newFaked(t, S3Options{SSE: "AES256", StorageClass: "STANDARD_IA"}, func(int, *http.Request) (*http.Response, error) {
		return reply(http.StatusOK, result)
	})
	src := Object{Location: Location{Bucket: "from", Key: "a b/100%/é+?"}, ETag: "v1", Match: "v1", Size: 7}
	o, err := f.Copy(t.Context(), testLoc, src, PutOptions{Cond: Cond{IfNoneMatch: true}})
	if err != nil {
		t.Fatal(err)
	}
	want := Object{Location: testLoc, ETag: "v2", Match: "v2", Size: 7, ModTime: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if o.Location != want.Location || o.ETag != want.ETag || o.Match != want.Match || o.Size != want.Size || !o.ModTime.Equal(want.ModTime) {
		t.Errorf("Copy tells %+v, want %+v", o, want)
	}
	if len(f.requests) != 1 {
		t.Fatalf("%d requests, want 1", len(f.requests))
	}
	for name, want := range map[string]string{
		"X-Amz-Copy-Source": "from/a%20b/100%25/%C3%A9%2B%3F", "X-Amz-Copy-Source-If-Match": `"v1"`, "If-None-Match": "*",
		"X-Amz-Server-Side-Encryption": "AES256", "X-Amz-Storage-Class": "STANDARD_IA", "X-Amz-Metadata-Directive": "",
	} {
		if got := f.requests[0].Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestCopyRefusedOnAWS: one status tells of the source and of the destination.
func TestCopyRefusedOnAWS(t *testing.T) {
	t.Parallel()
	for now, want := range map[string]error{"v1": ErrExist, "v2": ErrChanged} {
		f := newFaked(t, S3Options{}, func(_ int, req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodHead {
				return serveObject(req, now, []byte("1234567"))
			}
			return replyError(http.StatusPreconditionFailed, "PreconditionFailed")
		})
		src := Object{Location: Location{Bucket: "from", Key: "k"}, ETag: "v1", Size: 7}
		_, err := f.Copy(t.Context(), testLoc, src, PutOptions{Cond: Cond{IfNoneMatch: true}})
		wantIs(t, "Copy with "+now+" at the source", err, want)
	}
}

func TestPartSize(t *testing.T) {
	t.Parallel()
	s := &S3{}
	for size, want := range map[int64]int64{5<<30 + 1: copyPart, 5 << 40: 549755814} {
		if got := s.partSize(size); got != want {
			t.Errorf("parts of %d bytes are of %d, want %d", size, got, want)
		}
	}
}
