package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
)

// primed remembers the store's answers to listings: versitygw reads a directory whole
// for each page, 0.1 s of a processor where there are 100,000 names, and a real store
// does not. What is asked for once is answered from memory.
type primed struct {
	mu      sync.Mutex
	answers map[string]primedAnswer // by query
}

type primedAnswer struct {
	header http.Header
	body   []byte
}

// Apply answers, or asks the store.
func (f *primed) Apply(x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
	if x.Request.Op != "ListObjectsV2" && x.Request.Op != "ListObjects" {
		return next()
	}
	query := url.Values{}
	for name, values := range x.Request.Query {
		query[name] = values
	}
	query.Del("X-Amz-Date")
	query.Del("X-Amz-Signature")
	key := query.Encode()
	f.mu.Lock()
	a, found := f.answers[key]
	f.mu.Unlock()
	if found {
		return faulty.Answer(x, http.StatusOK, a.header, string(a.body)), nil
	}
	resp, err := next()
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	header := resp.Header.Clone()
	header.Del("Content-Length")
	f.mu.Lock()
	f.answers[key] = primedAnswer{header: header, body: bytes.Clone(body)}
	f.mu.Unlock()
	return faulty.Answer(x, http.StatusOK, header, string(body)), nil
}
