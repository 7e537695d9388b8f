package objectstore

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// asked is the body of a DeleteObjects.
type asked struct {
	Quiet   bool
	Objects []struct{ Key string } `xml:"Object"`
}

// deletes answers DeleteObjects key by key ("": it is gone; else the code of its
// error; "-": nothing is told of it), and DeleteObject with 204.
func deletes(t *testing.T, outcome func(key string) string) answers {
	t.Helper()
	return func(_ int, req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodDelete {
			return reply(http.StatusNoContent, "")
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		var a asked
		if err := xml.Unmarshal(body, &a); err != nil || a.Quiet || len(a.Objects) > 1000 {
			t.Errorf("asked of %d objects, quiet %v: %v", len(a.Objects), a.Quiet, err)
		}
		var b strings.Builder
		for _, o := range a.Objects {
			var key strings.Builder
			if err := xml.EscapeText(&key, []byte(o.Key)); err != nil {
				return nil, err
			}
			switch code := outcome(o.Key); code {
			case "":
				fmt.Fprintf(&b, "<Deleted><Key>%s</Key></Deleted>", key.String())
			case "-":
			default:
				fmt.Fprintf(&b, "<Error><Key>%s</Key><Code>%s</Code><Message>said so</Message></Error>", key.String(), code)
			}
		}
		return reply(http.StatusOK, "<DeleteResult>"+b.String()+"</DeleteResult>")
	}
}

// outcomes deletes keys of testLoc's bucket; they are told of in their order.
func (f *faked) outcomes(t *testing.T, keys ...string) []error {
	t.Helper()
	return outcomesOf(t, f.S3, testLoc.Bucket, keys...)
}

func outcomesOf(t *testing.T, s *S3, bucket string, keys ...string) []error {
	t.Helper()
	locs := make([]Location, len(keys))
	for i, key := range keys {
		locs[i] = Location{Bucket: bucket, Key: key}
	}
	var told []Location
	var errs []error
	for loc, err := range s.Delete(t.Context(), locs) {
		told, errs = append(told, loc), append(errs, err)
	}
	if !slices.Equal(told, locs) {
		t.Errorf("outcomes of %d locations, want %d in their order", len(told), len(locs))
	}
	return errs
}

// made is what was asked, as METHOD PATH, without order.
func (f *faked) made() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var made []string
	for _, req := range f.requests {
		made = append(made, req.Method+" "+req.URL.EscapedPath())
	}
	slices.Sort(made)
	return made
}

func TestDeleteInBatches(t *testing.T) {
	t.Parallel()
	f := newFaked(t, S3Options{}, deletes(t, func(string) string { return "" }))
	keys := make([]string, 2500)
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
	}
	for i, err := range f.outcomes(t, keys...) {
		if err != nil {
			t.Fatalf("%s: %v", keys[i], err)
		}
	}
	if got := f.made(); len(got) != 3 {
		t.Errorf("%d requests for 2500 keys, want 3", len(got))
	}
}

// TestDeleteOutcomes: an answer of 200 has errors of its own.
func TestDeleteOutcomes(t *testing.T) {
	t.Parallel()
	f := newFaked(t, S3Options{PathStyle: true}, deletes(t, func(key string) string {
		return map[string]string{"denied": "AccessDenied", "broken": "InternalError", "missing": "NoSuchKey", "odd": "SomethingNew", "untold": "-"}[key]
	}))
	keys := []string{"fine", "denied", "broken", "missing", "odd", "untold", "", strings.Repeat("x", 1025), "fine"}
	for i, err := range f.outcomes(t, keys...) {
		want := map[string]error{"denied": ErrPermission, "": ErrName, keys[7]: ErrName}[keys[i]]
		if want == nil && err != nil {
			t.Errorf("%q: %v", keys[i], err)
		}
		wantIs(t, keys[i], err, want)
	}
	want := []string{"DELETE /bucket/broken", "DELETE /bucket/odd", "DELETE /bucket/untold", "POST /bucket"}
	if got := f.made(); !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

// TestDeleteOfKeysNotInXML: what would stand for them is another key.
func TestDeleteOfKeysNotInXML(t *testing.T) {
	t.Parallel()
	f := newFaked(t, S3Options{PathStyle: true}, deletes(t, func(string) string { return "" }))
	for i, err := range f.outcomes(t, "a", "\x01", "b", "\ufffd", "\xff") {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	want := []string{"DELETE /bucket/%01", "DELETE /bucket/%EF%BF%BD", "DELETE /bucket/%FF", "POST /bucket"}
	if got := f.made(); !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

func TestDeleteWhereThereAreNoBatches(t *testing.T) {
	t.Parallel()
	f := newFaked(t, S3Options{PathStyle: true}, func(_ int, req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPost {
			return replyError(http.StatusNotImplemented, "NotImplemented")
		}
		return reply(http.StatusNoContent, "")
	})
	for _, err := range f.outcomes(t, "a", "b") {
		if err != nil {
			t.Error(err)
		}
	}
	if got, want := f.made(), []string{"DELETE /bucket/a", "DELETE /bucket/b", "POST /bucket"}; !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

func TestDeleteRefused(t *testing.T) {
	t.Parallel()
	f := newFaked(t, S3Options{}, func(int, *http.Request) (*http.Response, error) {
		return replyError(http.StatusForbidden, "AccessDenied")
	})
	for _, keys := range [][]string{{"a"}, {"a", "b"}} {
		for i, err := range f.outcomes(t, keys...) {
			wantIs(t, keys[i], err, ErrPermission)
			if !strings.Contains(err.Error(), `"s3://bucket/`+keys[i]+`"`) {
				t.Errorf("%v does not name the object", err)
			}
		}
	}
}

// TestDeleteStops: who wants no more outcomes does not wait for them.
func TestDeleteStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaked(t, S3Options{PathStyle: true}, func(_ int, req *http.Request) (*http.Response, error) {
			if strings.HasPrefix(req.URL.Path, "/two/") {
				return hang(req)
			}
			return reply(http.StatusNoContent, "")
		})
		locs := []Location{{Bucket: "one", Key: "a"}, {Bucket: "two", Key: "a"}}
		start := time.Now()
		for loc, err := range f.Delete(t.Context(), locs) {
			if err != nil || loc != locs[0] {
				t.Errorf("outcome of %v: %v", loc, err)
			}
			break
		}
		if waited := time.Since(start); waited != 0 { // of the bubble's time
			t.Errorf("it waited for %v", waited)
		}
		for _, err := range f.Delete(canceled(t), locs) {
			wantIs(t, "Delete", err, context.Canceled)
		}
	})
}

func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// TestDeleteWithMD5: some stores take no DeleteObjects without Content-MD5.
func TestDeleteWithMD5(t *testing.T) {
	t.Parallel()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		p := faulty.New(t, server)
		s, bucket := onServer(t, p.Server()), server.Bucket(t)
		p.Add(faulty.Rule{Op: "DeleteObjects", Fault: faulty.NeedMD5{}})
		server.Put(t, bucket, "a", nil)
		server.Put(t, bucket, "b", nil)
		for _, err := range outcomesOf(t, s, bucket, "a", "b") {
			if err != nil {
				t.Error(err)
			}
		}
		if keys := server.Keys(t, bucket, ""); len(keys) != 0 || p.Count("DeleteObjects") != 1 {
			t.Errorf("%q are left after %d requests", keys, p.Count("DeleteObjects"))
		}
	})
}

func TestDeleteVersion(t *testing.T) {
	t.Parallel()
	for _, ignores := range []bool{false, true} {
		bothServers(t, func(t *testing.T, server *s3test.Server) {
			t.Helper()
			p := faulty.New(t, server)
			if ignores {
				p.Add(faulty.Rule{Fault: faulty.StripConditions{}})
			}
			s, loc := onServer(t, p.Server()), Location{Bucket: server.Bucket(t), Key: "f"}
			old, err := putText(t.Context(), s, loc, "1", PutOptions{})
			if err != nil {
				t.Fatal(err)
			}
			now, err := putText(t.Context(), s, loc, "2", PutOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wantIs(t, "DeleteVersion of an old one", s.DeleteVersion(t.Context(), old), ErrChanged)
			if !server.Exists(t, loc.Bucket, loc.Key) {
				t.Error("another version was deleted")
			}
			for range 2 {
				if err := s.DeleteVersion(t.Context(), now); err != nil {
					t.Error(err)
				}
			}
			if server.Exists(t, loc.Bucket, loc.Key) {
				t.Error("the version is still there")
			}
		})
	}
}

// TestDeleteVersionOvertaken: it is replaced after the look at it.
func TestDeleteVersionOvertaken(t *testing.T) {
	t.Parallel()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		p := faulty.New(t, server)
		s, loc := onServer(t, p.Server()), Location{Bucket: server.Bucket(t), Key: "f"}
		o, err := putText(t.Context(), s, loc, "1", PutOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p.Add(faulty.Rule{Op: "DeleteObject", Fault: faulty.Func(func(_ *faulty.Exchange, next faulty.Next) (*http.Response, error) {
			if _, err := server.Client().PutObject(context.Background(), putInput(loc, "theirs")); err != nil {
				return nil, err
			}
			return next()
		})})
		wantIs(t, "DeleteVersion", s.DeleteVersion(t.Context(), o), ErrChanged)
		if got := server.Get(t, loc.Bucket, loc.Key); string(got) != "theirs" {
			t.Errorf("there is %q", got)
		}
	})
}

// TestDeleteAnswerLost: deleting again is a success.
func TestDeleteAnswerLost(t *testing.T) {
	t.Parallel()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		p := faulty.New(t, server)
		s, loc := onServer(t, p.Server(), func(o *S3Options) { o.Timeout = 10 * time.Second }), Location{Bucket: server.Bucket(t), Key: "f"}
		o, err := putText(t.Context(), s, loc, "1", PutOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lost := p.Add(faulty.Rule{Op: "DeleteObject", Times: 1, Fault: faulty.LoseAnswer{}})
		if err := s.DeleteVersion(t.Context(), o); err != nil {
			t.Error(err)
		}
		if lost.Hits() != 1 || server.Exists(t, loc.Bucket, loc.Key) {
			t.Errorf("%d answers lost; it is there: %v", lost.Hits(), server.Exists(t, loc.Bucket, loc.Key))
		}
	})
}
