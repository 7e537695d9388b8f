package objectstore

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestStatTellsHeaders(t *testing.T) {
	f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(_ int, req *http.Request) (*http.Response, error) {
		resp, err := serveObject(req, "v1", make([]byte, 7))
		resp.Header.Set("X-Amz-Meta-Lakefs-Write-Id", "W")
		return resp, err
	})
	o, err := f.Stat(t.Context(), testLoc)
	if err != nil {
		t.Fatal(err)
	}
	if o.Location != testLoc || o.Size != 7 || o.ETag != "v1" || o.Match != "v1" || o.ModTime.Year() != 2000 ||
		o.Meta[MetaMode] != "644" || o.Meta[MetaWriteID] != "W" {
		t.Errorf("Stat = %+v", o)
	}
	if len(f.requests) != 1 || f.requests[0].Method != http.MethodHead {
		t.Errorf("%d requests", len(f.requests))
	}
	if got := f.observed[0]; got.Operation != "stat" || got.Status != 200 || got.ID != "REQ1" || got.Err != nil || got.Retry {
		t.Errorf("observed %+v", got)
	}
}

func TestStatFails(t *testing.T) {
	for _, c := range []struct {
		status int
		want   error
	}{{404, ErrNotExist}, {403, ErrPermission}, {401, ErrPermission}} {
		f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(int, *http.Request) (*http.Response, error) { return reply(c.status, "") })
		_, err := f.Stat(t.Context(), testLoc)
		wantIs(t, fmt.Sprint(c.status), err, c.want)
		if errors.Is(err, ErrDirectory) || errors.Is(err, ErrHidden) {
			t.Errorf("%v tells what was not looked for", err)
		}
		if len(f.requests) != 1 {
			t.Errorf("%d: %d requests", c.status, len(f.requests))
		}
	}
}

func TestStatOfNoKey(t *testing.T) {
	f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(_ int, req *http.Request) (*http.Response, error) { return serve(req) })
	for key, want := range map[string]error{
		"": ErrNotExist, "a\x00b": ErrName, strings.Repeat("é", 512) + "x": ErrName, strings.Repeat("é", 512): nil,
	} {
		_, err := f.Stat(t.Context(), Location{Bucket: "bucket", Key: key})
		wantIs(t, fmt.Sprintf("Stat of %.10q", key), err, want)
	}
	if len(f.requests) != 1 {
		t.Errorf("%d requests, want one for the key of 1024 bytes", len(f.requests))
	}
}
