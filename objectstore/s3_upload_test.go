package objectstore

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

const (
	beganAnswer     = `<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>`
	completedAnswer = `<CompleteMultipartUploadResult><ETag>"made-2"</ETag></CompleteMultipartUploadResult>`
)

// takesUpload answers as AWS does, and keeps the bodies that came.
func takesUpload(bodies *[]string) answers {
	return func(_ int, req *http.Request) (*http.Response, error) {
		var body []byte
		if req.Body != nil {
			var err error
			if body, err = io.ReadAll(req.Body); err != nil {
				return nil, err
			}
		}
		*bodies = append(*bodies, string(body))
		switch {
		case req.URL.Query().Has("uploads"):
			headers := []string{}
			if kind := req.Header.Get("X-Amz-Checksum-Type"); kind != "" {
				headers = append(headers, "X-Amz-Checksum-Type: "+kind)
			}
			return reply(http.StatusOK, beganAnswer, headers...)
		case req.Method == http.MethodPost:
			return reply(http.StatusOK, completedAnswer)
		case req.Method == http.MethodDelete:
			return reply(http.StatusNoContent, "")
		}
		return reply(http.StatusOK, "", `ETag: "part"`)
	}
}

// sendTwo makes an object of "12345" and "6789".
func sendTwo(t *testing.T, s *S3, opts PutOptions) (Upload, Object) {
	t.Helper()
	u, err := s.CreateUpload(t.Context(), testLoc, opts)
	if err != nil {
		t.Fatal(err)
	}
	parts := make([]Part, 2)
	for i, text := range []string{"12345", "6789"} {
		if parts[i], err = s.UploadPart(t.Context(), u, i+1, strings.NewReader(text), int64(len(text))); err != nil {
			t.Fatal(err)
		}
	}
	o, err := s.CompleteUpload(t.Context(), u, parts, opts)
	if err != nil {
		t.Fatal(err)
	}
	return u, o
}

// TestUploadHeaders: on AWS, over TLS, an object takes no request but its own.
func TestUploadHeaders(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                   string
		options                S3Options
		begin, part, completed http.Header
		xml                    string
	}{
		{
			"default",
			S3Options{},
			http.Header{"X-Amz-Checksum-Algorithm": {"CRC32C"}, "X-Amz-Checksum-Type": {"FULL_OBJECT"}, "Content-Type": {contentType}, "X-Amz-Meta-Mode": {"644"}, "If-None-Match": nil},
			http.Header{"X-Amz-Checksum-Crc32c": {sumText(sumCRC32C, []byte("12345"))}, "X-Amz-Content-Sha256": {"UNSIGNED-PAYLOAD"}, "X-Amz-Trailer": nil, "Content-Encoding": nil},
			http.Header{"X-Amz-Checksum-Crc32c": {"4waSgw=="}, "X-Amz-Checksum-Type": {"FULL_OBJECT"}, "X-Amz-Mp-Object-Size": {"9"}, "If-None-Match": {"*"}},
			"<ChecksumCRC32C>",
		},
		{
			"crc64nvme",
			S3Options{Checksum: "crc64nvme"},
			http.Header{"X-Amz-Checksum-Algorithm": {"CRC64NVME"}, "X-Amz-Checksum-Type": {"FULL_OBJECT"}},
			http.Header{"X-Amz-Checksum-Crc64nvme": {sumText(sumCRC64NVME, []byte("12345"))}, "X-Amz-Checksum-Crc32c": nil},
			http.Header{"X-Amz-Checksum-Crc64nvme": {"rosUhgp5mIg="}, "X-Amz-Checksum-Crc32c": nil},
			"<ChecksumCRC64NVME>",
		},
		{
			"sha256",
			S3Options{Checksum: "sha256"},
			http.Header{"X-Amz-Checksum-Algorithm": {"SHA256"}, "X-Amz-Checksum-Type": nil},
			http.Header{"X-Amz-Checksum-Sha256": {sumText(sumSHA256, []byte("12345"))}, "X-Amz-Content-Sha256": {"UNSIGNED-PAYLOAD"}},
			http.Header{"X-Amz-Checksum-Sha256": nil, "X-Amz-Checksum-Type": nil, "X-Amz-Mp-Object-Size": nil},
			"<ChecksumSHA256>",
		},
		{
			"none",
			S3Options{Checksum: "none", SSE: "aws:kms", SSEKMSKeyID: "key", StorageClass: "STANDARD_IA", RequesterPays: true, ExpectedBucketOwner: "123456789012"},
			http.Header{
				"X-Amz-Checksum-Algorithm": nil, "X-Amz-Checksum-Type": nil, "X-Amz-Server-Side-Encryption": {"aws:kms"},
				"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": {"key"}, "X-Amz-Storage-Class": {"STANDARD_IA"},
				"X-Amz-Request-Payer": {"requester"}, "X-Amz-Expected-Bucket-Owner": {"123456789012"},
			},
			http.Header{"X-Amz-Checksum-Crc32c": nil, "X-Amz-Request-Payer": {"requester"}, "X-Amz-Expected-Bucket-Owner": {"123456789012"}},
			http.Header{"X-Amz-Checksum-Crc32c": nil, "X-Amz-Request-Payer": {"requester"}, "X-Amz-Expected-Bucket-Owner": {"123456789012"}},
			"<ETag>",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var bodies []string
			f := newFaked(t, test.options, takesUpload(&bodies))
			_, o := sendTwo(t, f.S3, PutOptions{Cond: Cond{IfNoneMatch: true}, Meta: map[string]string{MetaMode: "644"}})
			if o.ETag != "made-2" || o.Size != 9 || o.Meta[MetaMode] != "644" {
				t.Errorf("CompleteUpload tells %+v", o)
			}
			if len(f.requests) != 4 {
				t.Fatalf("%d requests, want 4", len(f.requests))
			}
			for i, want := range map[int]http.Header{0: test.begin, 1: test.part, 3: test.completed} {
				for name, values := range want {
					if got := f.requests[i].Header.Values(name); !equalStrings(got, values) {
						t.Errorf("request %d: %s: %q, want %q", i, name, got, values)
					}
				}
			}
			if bodies[1] != "12345" || !strings.Contains(bodies[3], test.xml) {
				t.Errorf("sent %q", bodies)
			}
		})
	}
}

// TestUploadObserved: each request is told with its operation, and the bytes of parts.
func TestUploadObserved(t *testing.T) {
	t.Parallel()
	var bodies []string
	f := newFaked(t, S3Options{}, takesUpload(&bodies))
	u, _ := sendTwo(t, f.S3, PutOptions{})
	if err := f.AbortUpload(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range f.observed {
		got = append(got, r.Operation)
	}
	if want := "upload part part complete abort"; strings.Join(got, " ") != want {
		t.Errorf("operations %q, want %s", got, want)
	}
	if n := f.observed[1].Bytes; n != 5 {
		t.Errorf("%d bytes of a part of 5", n)
	}
}

// TestUploadChecksumRefused: a store that hears of no checksums is asked without,
// once a mount; what is sent goes with its SHA-256 then.
func TestUploadChecksumRefused(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]string{http.StatusNotImplemented: "NotImplemented", http.StatusBadRequest: "InvalidArgument"} {
		var bodies []string
		var log strings.Builder
		f := newFaked(t, S3Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, func(n int, req *http.Request) (*http.Response, error) {
			if req.Header.Get("X-Amz-Checksum-Algorithm") != "" {
				return replyError(status, code)
			}
			return takesUpload(&bodies)(n, req)
		})
		for range 2 {
			if u, _ := sendTwo(t, f.S3, PutOptions{}); u.Checksum != "" || u.FullObject {
				t.Errorf("%s: the upload has checksums: %+v", code, u)
			}
		}
		if len(f.requests) != 9 {
			t.Errorf("%s: %d requests, want 1 and 2 times 4", code, len(f.requests))
		}
		if got, want := f.requests[2].Header.Get("X-Amz-Content-Sha256"), "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5"; got != want {
			t.Errorf("%s: a part went with the SHA-256 %q, want %q", code, got, want)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("%s: %d lines were logged, want 1: %s", code, n, log.String())
		}
	}
}

// TestUploadRefused: what is not about checksums is told, and nothing remembered.
func TestUploadRefused(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]error{"AccessDenied": ErrPermission, "NoSuchBucket": ErrNoBucket, "InvalidRequest": nil} {
		f := newFaked(t, S3Options{}, func(int, *http.Request) (*http.Response, error) {
			return replyError(http.StatusBadRequest, code)
		})
		_, err := f.CreateUpload(t.Context(), testLoc, PutOptions{})
		if err == nil || want != nil && !errors.Is(err, want) || f.uploads.plain {
			t.Errorf("%s: %v, remembered %v", code, err, f.uploads.plain)
		}
		if want == nil && !strings.Contains(err.Error(), "upload \"s3://bucket/") {
			t.Errorf("the error does not tell what was asked: %v", err)
		}
	}
}

// TestUploadWrongObject: the store finds another checksum of the object. It is
// believed at any time; that it is right in that, not before it once agreed.
func TestUploadWrongObject(t *testing.T) {
	t.Parallel()
	for _, agreed := range []bool{false, true} {
		var bodies []string
		wrong := false
		f := newFaked(t, S3Options{}, func(n int, req *http.Request) (*http.Response, error) {
			if wrong && req.Method == http.MethodPost && !req.URL.Query().Has("uploads") {
				return replyError(http.StatusBadRequest, "BadDigest")
			}
			return takesUpload(&bodies)(n, req)
		})
		if agreed {
			sendTwo(t, f.S3, PutOptions{})
		}
		wrong = true
		u, err := f.CreateUpload(t.Context(), testLoc, PutOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := f.UploadPart(t.Context(), u, 1, strings.NewReader("x"), 1)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.CompleteUpload(t.Context(), u, []Part{p}, PutOptions{})
		wantIs(t, "CompleteUpload", err, ErrNoUpload)
		wantIs(t, "CompleteUpload", err, ErrUnavailable)
		wrong = false
		if u, _ = sendTwo(t, f.S3, PutOptions{}); u.FullObject != agreed {
			t.Errorf("agreed before: %v, asked for checksums after: %v", agreed, u.FullObject)
		}
	}
}

// TestPartOfOtherBytes: the store tells another checksum than what was sent has.
func TestPartOfOtherBytes(t *testing.T) {
	t.Parallel()
	sum := sumText(sumCRC32C, []byte("other"))
	f := newFaked(t, S3Options{}, func(_ int, req *http.Request) (*http.Response, error) {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return nil, err
		}
		return reply(http.StatusOK, "", `ETag: "part"`, "X-Amz-Checksum-Crc32c: "+sum)
	})
	u := Upload{Location: testLoc, ID: "id", Checksum: sumCRC32C}
	_, err := f.UploadPart(t.Context(), u, 1, strings.NewReader("x"), 1)
	wantIs(t, "UploadPart", err, ErrUnavailable)
	if len(f.requests) != 2 {
		t.Errorf("%d requests, want 2", len(f.requests))
	}
}

// TestPartNotFound: a 404 of a part is about the upload, in whatever form.
func TestPartNotFound(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"NoSuchUpload", "NoSuchKey", "NotFound", ""} {
		f := newFaked(t, S3Options{}, func(_ int, req *http.Request) (*http.Response, error) {
			if code == "" || req.Method == http.MethodHead {
				return reply(http.StatusNotFound, "")
			}
			return replyError(http.StatusNotFound, code)
		})
		u := Upload{Location: testLoc, ID: "id"}
		_, err := f.UploadPart(t.Context(), u, 1, strings.NewReader("x"), 1)
		wantIs(t, "UploadPart, code "+code, err, ErrNoUpload)
		if errors.Is(err, ErrNotExist) {
			t.Errorf("code %q tells of an object: %v", code, err)
		}
		_, err = f.CompleteUpload(t.Context(), u, []Part{{Number: 1}}, PutOptions{})
		wantIs(t, "CompleteUpload, code "+code, err, ErrNoUpload)
		if err := f.AbortUpload(t.Context(), u); err != nil {
			t.Errorf("AbortUpload, code %q: %v", code, err)
		}
	}
}
