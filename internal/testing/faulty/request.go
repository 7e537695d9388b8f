package faulty

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Request is one request as it arrived, and what was answered. Its maps are
// shared by all copies, to be read only.
type Request struct {
	Op     string // as S3's API names it ("GetObject"); "PUT ?policy" where this package has no name
	Bucket string
	Key    string // of a listing: its prefix
	Range  string // the header, "" without
	When   time.Time
	Header http.Header // If-Match, X-Amz-Copy-Source and all the rest
	Query  url.Values

	Status   int   // of the answer; 0: none yet, or none at all
	Sent     int64 // bytes of the answer's body that were sent
	Received int64 // bytes of the request's body that were read; told when the answer begins
}

func newRequest(r *http.Request) *Request {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	q := &Request{
		Bucket: bucket, Key: key, Range: r.Header.Get("Range"), When: time.Now(),
		Header: r.Header.Clone(), Query: r.URL.Query(),
	}
	q.Op = operation(r.Method, q)
	if key == "" && strings.HasPrefix(q.Op, "List") {
		q.Key = q.Query.Get("prefix")
	}
	return q
}

// resource is what a request is about: the first of these query parameters that
// it has, in the order of the table.
type resource struct {
	query string
	ops   map[string]string // by method
}

// Marker of "no such query parameter": the object or the bucket itself.
const itself = ""

// objectOps and bucketOps are searched from the top.
func objectOps() []resource {
	return []resource{
		{"partNumber", map[string]string{http.MethodPut: "UploadPart", http.MethodGet: "GetObject", http.MethodHead: "HeadObject"}},
		{"uploadId", map[string]string{
			http.MethodGet: "ListParts", http.MethodPost: "CompleteMultipartUpload", http.MethodDelete: "AbortMultipartUpload",
		}},
		{"uploads", map[string]string{http.MethodPost: "CreateMultipartUpload"}},
		{"attributes", map[string]string{http.MethodGet: "GetObjectAttributes"}},
		{"tagging", map[string]string{
			http.MethodGet: "GetObjectTagging", http.MethodPut: "PutObjectTagging", http.MethodDelete: "DeleteObjectTagging",
		}},
		{"acl", map[string]string{http.MethodGet: "GetObjectAcl", http.MethodPut: "PutObjectAcl"}},
		{"restore", map[string]string{http.MethodPost: "RestoreObject"}},
		{itself, map[string]string{
			http.MethodGet: "GetObject", http.MethodHead: "HeadObject", http.MethodPut: "PutObject", http.MethodDelete: "DeleteObject",
		}},
	}
}

func bucketOps() []resource {
	return []resource{
		{"list-type", map[string]string{http.MethodGet: "ListObjectsV2"}},
		{"uploads", map[string]string{http.MethodGet: "ListMultipartUploads"}},
		{"versions", map[string]string{http.MethodGet: "ListObjectVersions"}},
		{"delete", map[string]string{http.MethodPost: "DeleteObjects"}},
		{"location", map[string]string{http.MethodGet: "GetBucketLocation"}},
		{"versioning", map[string]string{http.MethodGet: "GetBucketVersioning", http.MethodPut: "PutBucketVersioning"}},
		{itself, map[string]string{
			http.MethodGet: "ListObjects", http.MethodHead: "HeadBucket", http.MethodPut: "CreateBucket", http.MethodDelete: "DeleteBucket",
		}},
	}
}

// plain are the query parameters that do not make a request another one.
const plain = " x-id prefix delimiter max-keys marker encoding-type versionId response-content-type "

func operation(method string, q *Request) string {
	if q.Bucket == "" {
		return "ListBuckets"
	}
	resources := objectOps()
	if q.Key == "" {
		resources = bucketOps()
	}
	for _, res := range resources {
		if res.query == itself {
			if unknown := subresource(q.Query); unknown != "" {
				return method + " ?" + unknown
			}
		}
		if op := res.ops[method]; op != "" && (res.query == itself || q.Query.Has(res.query)) {
			return copying(op, q.Header)
		}
	}
	return method
}

// copying is the operation that op is when its content comes from another object.
func copying(op string, h http.Header) string {
	switch {
	case h.Get("X-Amz-Copy-Source") == "":
		return op
	case op == "PutObject":
		return "CopyObject"
	case op == "UploadPart":
		return "UploadPartCopy"
	}
	return op
}

// subresource is a query parameter such as ?policy that this package has no name for.
func subresource(query url.Values) string {
	for name, values := range query {
		if len(values) == 1 && values[0] == "" && !strings.Contains(plain, " "+name+" ") {
			return name
		}
	}
	return ""
}
