package objectstore

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// page is a page of a listing; keys that end in "/" are common prefixes.
func page(next string, keys ...string) string {
	var b strings.Builder
	b.WriteString("<ListBucketResult><Name>bucket</Name><EncodingType>url</EncodingType>")
	for _, key := range keys {
		if strings.HasSuffix(key, "/") {
			fmt.Fprintf(&b, "<CommonPrefixes><Prefix>%s</Prefix></CommonPrefixes>", url.QueryEscape(key))
			continue
		}
		fmt.Fprintf(&b, `<Contents><Key>%s</Key><LastModified>2000-01-01T00:00:01.987Z</LastModified>`+
			`<ETag>&quot;of %s&quot;</ETag><Size>%d</Size><StorageClass>GLACIER</StorageClass></Contents>`,
			url.QueryEscape(key), url.QueryEscape(key), len(key))
	}
	fmt.Fprintf(&b, "<IsTruncated>%v</IsTruncated>", next != "")
	if next != "" {
		fmt.Fprintf(&b, "<NextContinuationToken>%s</NextContinuationToken>", next)
	}
	return b.String() + "</ListBucketResult>"
}

// listed runs a listing to its end.
func (f *faked) listed(t *testing.T, prefix string, opts ListOptions) ([]string, error) {
	t.Helper()
	var keys []string
	for e, err := range f.List(t.Context(), Location{Bucket: "bucket", Key: prefix}, opts) {
		if err != nil {
			return keys, err
		}
		if e.Bucket != "bucket" || e.Prefix != strings.HasSuffix(e.Key, "/") {
			t.Errorf("entry %+v", e)
		}
		if !e.Prefix && (e.Size != int64(len(e.Key)) || e.ETag != "of "+url.QueryEscape(e.Key) ||
			!e.ModTime.Equal(time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC))) {
			t.Errorf("entry %+v", e)
		}
		keys = append(keys, e.Key)
	}
	return keys, nil
}

func TestListPages(t *testing.T) {
	for name, c := range map[string]struct {
		prefix string
		opts   ListOptions
		pages  []string // page n has token "n"
		want   []string
		asked  int // 0: all pages
	}{
		"none":              {pages: []string{page("")}},
		"one":               {pages: []string{page("", "a", "b")}, want: []string{"a", "b"}},
		"three":             {pages: []string{page("2", "a", "b"), page("3", "c"), page("", "d")}, want: []string{"a", "b", "c", "d"}},
		"an empty one":      {pages: []string{page("2", "a"), page("3"), page("4"), page("", "d")}, want: []string{"a", "d"}},
		"directories":       {opts: ListOptions{Delimiter: true}, pages: []string{page("", "a", "c", "e", "b/", "d/")}, want: []string{"a", "b/", "c", "d/", "e"}},
		"a directory twice": {opts: ListOptions{Delimiter: true}, pages: []string{page("2", "a/"), page("", "a/", "b/")}, want: []string{"a/", "b/"}},
		"odd names": {
			pages: []string{page("", "a b", "a%20b", "a+b", "é", "new\nline", "%zz", "a\x01b")},
			want:  []string{"a b", "a%20b", "a+b", "é", "new\nline", "%zz", "a\x01b"},
		},
		"encoded no further": {
			pages: []string{strings.ReplaceAll(page("", "a b"), "<Key>a+b", "<Key>a%20b"), ""}, want: []string{"a b"}, asked: 1,
		},
		"not encoded": {
			prefix: "100%/", pages: []string{`<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>100%/a+b</Key>` +
				`<ETag>"of 100%25%2Fa%2Bb"</ETag><Size>8</Size><LastModified>2000-01-01T00:00:01Z</LastModified></Contents></ListBucketResult>`},
			want: []string{"100%/a+b"},
		},
		"outside the prefix": {prefix: "d/", pages: []string{page("", "c", "d", "d/a", "dd/")}, want: []string{"d/a"}},
		"start after": {
			opts: ListOptions{StartAfter: "b/x", Delimiter: true}, pages: []string{page("", "a", "b/", "b/y/", "c")}, want: []string{"b/y/", "c"},
		},
		"limit":              {opts: ListOptions{Limit: 2}, pages: []string{page("2", "a", "b"), page("", "c")}, want: []string{"a", "b"}, asked: 1},
		"limit, short page":  {opts: ListOptions{Limit: 2}, pages: []string{page("2", "a"), page("3", "b", "c"), page("")}, want: []string{"a", "b"}, asked: 2},
		"limit, longer page": {opts: ListOptions{Limit: 2}, pages: []string{page("2", "a", "b", "c"), ""}, want: []string{"a", "b"}, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(n int, req *http.Request) (*http.Response, error) {
				q := req.URL.Query()
				if token := q.Get("continuation-token"); n > 1 && token != fmt.Sprint(n) || n == 1 && q.Has("continuation-token") {
					t.Errorf("page %d was asked for with token %q", n, token)
				}
				if q.Get("prefix") != c.prefix || q.Get("encoding-type") != "url" || q.Has("delimiter") != c.opts.Delimiter ||
					n == 1 && q.Get("start-after") != c.opts.StartAfter || c.opts.Limit > 0 && q.Get("max-keys") != fmt.Sprint(c.opts.Limit) {
					t.Errorf("asked for %s", req.URL.RawQuery)
				}
				return reply(200, c.pages[n-1])
			})
			got, err := f.listed(t, c.prefix, c.opts)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("listed %q, %v; want %q", got, err, c.want)
			}
			if c.asked == 0 {
				c.asked = len(c.pages)
			}
			if len(f.requests) != c.asked {
				t.Errorf("%d requests, want %d", len(f.requests), c.asked)
			}
		})
	}
}

// A listing that ends without an error is whole.
func TestListFails(t *testing.T) {
	for name, c := range map[string]struct {
		second func() (*http.Response, error)
		want   error
	}{
		"denied":       {func() (*http.Response, error) { return replyError(403, "AccessDenied") }, ErrPermission},
		"unavailable":  {func() (*http.Response, error) { return replyError(503, "SlowDown") }, ErrUnavailable},
		"a 404":        {func() (*http.Response, error) { return reply(404, "404 page not found") }, ErrUnavailable},
		"no such key":  {func() (*http.Response, error) { return replyError(404, "NoSuchKey") }, ErrUnavailable},
		"no bucket":    {func() (*http.Response, error) { return replyError(404, "NoSuchBucket") }, ErrNoBucket},
		"cut XML":      {func() (*http.Response, error) { return reply(200, page("", "c", "d")[:150]) }, ErrUnavailable},
		"nothing":      {func() (*http.Response, error) { return reply(200, "") }, ErrUnavailable},
		"HTML":         {func() (*http.Response, error) { return reply(200, "<html></html>") }, ErrUnavailable},
		"its own page": {func() (*http.Response, error) { return reply(200, page("2", "c")) }, ErrUnavailable},
		"no token": {func() (*http.Response, error) {
			return reply(200, "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>")
		}, ErrUnavailable},
		"bad encoding": {func() (*http.Response, error) {
			return reply(200, strings.ReplaceAll(page("", "ccc"), "<Key>ccc", "<Key>%zz"))
		}, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(n int, _ *http.Request) (*http.Response, error) {
					if n == 1 {
						return reply(200, page("2", "a", "b"))
					}
					return c.second()
				})
				got, err := f.listed(t, "", ListOptions{})
				wantIs(t, "List", err, c.want)
				if got = got[:min(2, len(got))]; !slices.Equal(got, []string{"a", "b"}) {
					t.Errorf("listed %q before", got)
				}
			})
		})
	}
}

// Who stops early waits for no page.
func TestListStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(n int, req *http.Request) (*http.Response, error) {
			if n == 1 {
				return reply(200, page("2", "a", "b"))
			}
			return hang(req)
		})
		start := time.Now()
		for e, err := range f.List(t.Context(), Location{Bucket: "bucket"}, ListOptions{}) {
			if e.Key != "a" || err != nil {
				t.Errorf("%q, %v", e.Key, err)
			}
			break // going on would panic
		}
		if got := time.Since(start); got != 0 {
			t.Errorf("stopped after %s", got)
		}
	})
}

// The next page is on its way while one is consumed.
func TestListReadsAhead(t *testing.T) {
	second := make(chan struct{})
	f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(n int, _ *http.Request) (*http.Response, error) {
		if n == 1 {
			return reply(200, page("2", "a"))
		}
		close(second)
		return reply(200, page("", "b"))
	})
	for e, err := range f.List(t.Context(), Location{Bucket: "bucket"}, ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Key == "a" {
			select {
			case <-second:
			case <-time.After(time.Minute):
				t.Error("the second page waits for the first")
			}
		}
	}
}

// A page whose body stalls is asked for again.
func TestListStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(n int, req *http.Request) (*http.Response, error) {
			resp, err := reply(200, page("", "a", "b"))
			if n == 1 {
				resp.Body = io.NopCloser(stuck{strings.NewReader("<ListBucketResult>"), req.Context()})
			}
			return resp, err
		})
		start := time.Now()
		got, err := f.listed(t, "", ListOptions{})
		if err != nil || !slices.Equal(got, []string{"a", "b"}) || len(f.requests) != 2 {
			t.Errorf("listed %q, %v after %d requests", got, err, len(f.requests))
		}
		if got := time.Since(start); got < stallLimit || got > stallLimit+time.Second {
			t.Errorf("asked again after %s, want %s", got, stallLimit)
		}
	})
}

func TestListRefusesOddPrefixes(t *testing.T) {
	f := newFaked(t, S3Options{Endpoint: "http://store.test"}, func(int, *http.Request) (*http.Response, error) { return reply(200, emptyListing) })
	for _, key := range []string{"a", "a\x00/", strings.Repeat("x", 1024) + "/"} {
		_, err := f.listed(t, key, ListOptions{})
		wantIs(t, fmt.Sprintf("List of %.10q", key), err, ErrName)
	}
	if len(f.requests) != 0 {
		t.Errorf("%d requests", len(f.requests))
	}
}
