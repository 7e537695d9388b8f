package faulty

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// RefuseConditions answers 501 to writes that have a condition, as stores do that
// know none, and do not ignore them.
type RefuseConditions struct{}

// Apply refuses, or passes on.
func (RefuseConditions) Apply(x *Exchange, next Next) (*http.Response, error) {
	h := x.Request.Header
	if x.HTTP.Method != http.MethodGet && x.HTTP.Method != http.MethodHead && (h.Get("If-Match") != "" || h.Get("If-None-Match") != "") {
		return notImplemented().Apply(x, next)
	}
	return next()
}

func notImplemented() Status {
	return Status{Code: http.StatusNotImplemented, S3Code: "NotImplemented", Message: "A header you provided implies functionality that is not implemented."}
}

// RefuseChecksums answers 501 to requests that name a checksum of an object, as
// stores do that know none.
type RefuseChecksums struct{}

// Apply refuses, or passes on.
func (RefuseChecksums) Apply(x *Exchange, next Next) (*http.Response, error) {
	for name := range x.Request.Header {
		if strings.HasPrefix(name, "X-Amz-Checksum") || strings.HasPrefix(name, "X-Amz-Sdk-Checksum") {
			return notImplemented().Apply(x, next)
		}
	}
	return next()
}

// EqualParts refuses to make an object of parts that are not all of the same size,
// but for the last, as R2 does.
type EqualParts struct {
	mu    sync.Mutex
	sizes map[string]map[int]int64 // by upload, by part
}

// Apply notes a part, refuses, or passes on.
func (f *EqualParts) Apply(x *Exchange, next Next) (*http.Response, error) {
	id := x.Request.Query.Get("uploadId")
	switch x.Request.Op {
	case "UploadPart":
		f.note(id, x.Request.Query.Get("partNumber"), x.HTTP.ContentLength)
	case "UploadPartCopy":
		var from, to int64
		if _, err := fmt.Sscanf(x.Request.Header.Get("X-Amz-Copy-Source-Range"), "bytes=%d-%d", &from, &to); err == nil {
			f.note(id, x.Request.Query.Get("partNumber"), to-from+1)
		}
	case "CompleteMultipartUpload":
		if !f.equal(id) {
			return Status{Code: http.StatusBadRequest, S3Code: "InvalidPart", Message: "All non-trailing parts must have the same length."}.Apply(x, next)
		}
	}
	return next()
}

func (f *EqualParts) note(id, part string, size int64) {
	n, err := strconv.Atoi(part)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sizes == nil {
		f.sizes = map[string]map[int]int64{}
	}
	if f.sizes[id] == nil {
		f.sizes[id] = map[int]int64{}
	}
	f.sizes[id][n] = size
}

func (f *EqualParts) equal(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := 0
	for n := range f.sizes[id] {
		last = max(last, n)
	}
	for n, size := range f.sizes[id] {
		if n != last && size != f.sizes[id][1] {
			return false
		}
	}
	return true
}

// PlainLists has listings leave out what is not in the first version of S3's
// protocol: KeyCount, EncodingType, StartAfter, StorageClass, Owner and the names
// of checksums. LastModified has whole seconds.
type PlainLists struct{}

// Apply changes what a listing answers.
func (PlainLists) Apply(x *Exchange, next Next) (*http.Response, error) {
	if x.Request.Op != "ListObjectsV2" {
		return next()
	}
	return rewritten(x, next, func(raw []byte) []byte {
		for _, name := range []string{"KeyCount", "StartAfter", "StorageClass", "Owner", "ChecksumAlgorithm", "ChecksumType"} {
			raw = regexp.MustCompile(`(?s)<`+name+`>.*?</`+name+`>|<`+name+`/>`).ReplaceAll(raw, nil)
		}
		return regexp.MustCompile(`\.\d+Z</LastModified>`).ReplaceAll(raw, []byte(`Z</LastModified>`))
	})
}

// ShortAnswers has HEAD answer a missing object with a page of HTML, and no answer
// name a request or a region, as programs do that stand before a store.
type ShortAnswers struct{}

// Apply changes answers.
func (ShortAnswers) Apply(_ *Exchange, next Next) (*http.Response, error) {
	resp, err := next()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"X-Amz-Request-Id", "X-Amz-Id-2", "X-Amz-Bucket-Region"} {
		resp.Header.Del(name)
	}
	if resp.Request != nil && resp.Request.Method == http.MethodHead && resp.StatusCode == http.StatusNotFound {
		resp.Header.Set("Content-Type", "text/html")
	}
	return resp, nil
}
