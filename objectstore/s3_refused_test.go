package objectstore

import (
	"bytes"
	"errors"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// TestConditionsRefused: a store that answers 501 to conditions is written without
// them, after a look; one that refuses the write itself is not taken for such.
func TestConditionsRefused(t *testing.T) {
	proxy := faulty.New(t, s3test.Versity(t))
	bucket := proxy.Server().Bucket(t)
	open := func() *S3 {
		s, err := NewS3(S3Options{Config: proxy.Server().Config(), Endpoint: proxy.URL})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	put := func(s *S3, key, text string, cond Cond) (Object, error) {
		return s.Put(t.Context(), Location{Bucket: bucket, Key: key}, bytes.NewReader([]byte(text)), int64(len(text)), PutOptions{Cond: cond})
	}
	rule := proxy.Add(faulty.Rule{Fault: faulty.RefuseConditions{}})
	s := open()
	first, err := put(s, "a", "one", Cond{IfNoneMatch: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Conditions(); got != (Conditions{Known: true}) {
		t.Errorf("the store is known as %+v", got)
	}
	if _, err = put(s, "a", "two", Cond{IfNoneMatch: true}); !errors.Is(err, ErrExist) {
		t.Errorf("put where something is: %v, want ErrExist", err)
	}
	second, err := put(s, "a", "two", Cond{IfMatch: first.ETag})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = put(s, "a", "three", Cond{IfMatch: first.ETag}); !errors.Is(err, ErrChanged) {
		t.Errorf("put over another version: %v, want ErrChanged", err)
	}
	if err = s.DeleteVersion(t.Context(), first); !errors.Is(err, ErrChanged) {
		t.Errorf("delete of another version: %v, want ErrChanged", err)
	}
	if err = s.DeleteVersion(t.Context(), second); err != nil {
		t.Error(err)
	}
	if hits := rule.Hits(); hits == 0 || proxy.Count("PutObject") != 3 {
		t.Errorf("%d PutObject, of which the first was refused once: want 3", proxy.Count("PutObject"))
	}
	proxy.Add(faulty.Rule{Op: "PutObject", Fault: faulty.Status{Code: 501, S3Code: "NotImplemented"}})
	s = open()
	if _, err = put(s, "b", "one", Cond{IfNoneMatch: true}); !errors.Is(err, errors.ErrUnsupported) || s.Conditions().Known {
		t.Errorf("put: %v; known: %+v", err, s.Conditions())
	}
}

// TestRegionOfABody: that of an error's body is learned, where no header tells it.
func TestRegionOfABody(t *testing.T) {
	server := s3test.Versity(t)
	config := server.Config()
	config.Region = "eu-west-1"
	for _, fixed := range []bool{false, true} {
		s, err := NewS3(S3Options{Config: config, Endpoint: server.Endpoint, FixedRegion: fixed})
		if err != nil {
			t.Fatal(err)
		}
		bucket := server.Bucket(t)
		server.Put(t, bucket, "a", []byte("one"))
		n := 0
		for _, err = range s.List(t.Context(), Location{Bucket: bucket}, ListOptions{}) {
			if err == nil {
				n++
			}
		}
		if found := err == nil && n == 1; found == fixed {
			t.Errorf("fixed %v: %d objects, %v", fixed, n, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
