package objectstore

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

func TestIsAWS(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]bool{
		"": true, "https://s3.eu-west-1.amazonaws.com": true, "https://S3.CN-north-1.amazonaws.com.CN": true,
		"https://bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com:443": true,
		"http://127.0.0.1:9000": false, "https://amazonaws.com.example.org": false, "https://notamazonaws.com": false,
	} {
		if got := isAWS(endpoint); got != want {
			t.Errorf("isAWS(%q) = %v", endpoint, got)
		}
	}
}

func TestConditionsOfAWSAreKnown(t *testing.T) {
	t.Parallel()
	f := newFaked(t, S3Options{}, nil)
	if got, want := f.Conditions(), (Conditions{Known: true, IfNoneMatch: true, IfMatch: true}); got != want {
		t.Errorf("Conditions = %+v, want %+v", got, want)
	}
}

// TestConditionsHonoured: they are tried once, and then relied on.
func TestConditionsHonoured(t *testing.T) {
	t.Parallel()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		p := faulty.New(t, server)
		s, bucket := onServer(t, p.Server()), server.Bucket(t)
		at := func(key string) Location { return Location{Bucket: bucket, Key: key} }
		if got := s.Conditions(); got != (Conditions{}) {
			t.Errorf("before the first write Conditions = %+v", got)
		}
		if _, err := putText(t.Context(), s, at("plain"), "x", PutOptions{}); err != nil {
			t.Fatal(err)
		}
		if n := p.Count("PutObject"); n != 1 || s.Conditions().Known {
			t.Errorf("a write without a condition took %d PUTs", n)
		}
		o, err := putText(t.Context(), s, at("first"), "first", PutOptions{Cond: Cond{IfNoneMatch: true}, Meta: idOf("a")})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := s.Conditions(), (Conditions{Known: true, IfNoneMatch: true, IfMatch: true}); got != want {
			t.Errorf("Conditions = %+v, want %+v", got, want)
		}
		if now, err := s.Stat(t.Context(), at("first")); err != nil || now.ETag != o.ETag || now.Meta[MetaWriteID] != "a" {
			t.Errorf("after the probe: %+v, %v", now, err)
		}
		p.Reset()
		if _, err := putText(t.Context(), s, at("second"), "2", PutOptions{Cond: Cond{IfNoneMatch: true}}); err != nil {
			t.Error(err)
		}
		if _, err := putText(t.Context(), s, at("first"), "3", PutOptions{Cond: Cond{IfMatch: o.ETag}}); err != nil {
			t.Error(err)
		}
		if puts, heads := p.Count("PutObject"), p.Count("HeadObject"); puts != 2 || heads != 0 {
			t.Errorf("two writes took %d PUTs and %d HEADs, want 2 and 0", puts, heads)
		}
	})
}

// TestConditionsIgnored: a store that answers 200 to everything is found out,
// told of once, and looked at before each write.
func TestConditionsIgnored(t *testing.T) {
	t.Parallel()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		p := faulty.New(t, server)
		p.Add(faulty.Rule{Fault: faulty.StripConditions{}})
		var log bytes.Buffer
		s := onServer(t, p.Server(), func(o *S3Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		bucket := server.Bucket(t)
		at := func(key string) Location { return Location{Bucket: bucket, Key: key} }
		server.Put(t, bucket, "taken", []byte("theirs"))
		// Before anything is known.
		_, err := putText(t.Context(), s, at("taken"), "mine", PutOptions{Cond: Cond{IfNoneMatch: true}})
		wantIs(t, "create what is there", err, ErrExist)
		o, err := putText(t.Context(), s, at("first"), "first", PutOptions{Cond: Cond{IfNoneMatch: true}, Meta: idOf("a")})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := s.Conditions(), (Conditions{Known: true}); got != want {
			t.Errorf("Conditions = %+v, want %+v", got, want)
		}
		now, err := s.Stat(t.Context(), at("first"))
		if err != nil || now.ETag != o.ETag || now.Size != 5 || now.Meta[MetaWriteID] != "a" {
			t.Errorf("the probe left %+v, %v; Put told %+v", now, err, o)
		}
		if got := server.Get(t, bucket, "first"); string(got) != "first" {
			t.Errorf("the probe left %q", got)
		}
		// And after.
		_, err = putText(t.Context(), s, at("taken"), "mine", PutOptions{Cond: Cond{IfNoneMatch: true}})
		wantIs(t, "create what is there", err, ErrExist)
		for _, key := range []string{"taken", "missing"} {
			_, err = putText(t.Context(), s, at(key), "mine", PutOptions{Cond: Cond{IfMatch: o.ETag}})
			wantIs(t, "replace another version of "+key, err, ErrChanged)
		}
		if _, err = putText(t.Context(), s, at("first"), "new", PutOptions{Cond: Cond{IfMatch: o.ETag}}); err != nil {
			t.Error(err)
		}
		if got := server.Get(t, bucket, "taken"); string(got) != "theirs" {
			t.Errorf("another's object became %q", got)
		}
		if n := strings.Count(log.String(), "ignores conditions"); n != 1 {
			t.Errorf("told of %d times, want once:\n%s", n, log.String())
		}
	})
}

// TestConditionsProbeFails: a probe that is not answered says nothing, and does
// not fail the write.
func TestConditionsProbeFails(t *testing.T) {
	t.Parallel()
	p := faulty.New(t, s3test.Versity(t))
	s, loc := onServer(t, p.Server()), Location{Bucket: p.Server().Bucket(t), Key: "f"}
	denied := p.Add(faulty.Rule{Op: "PutObject", Skip: 1, Times: 1, Fault: faulty.Status{Code: 403, S3Code: "AccessDenied"}})
	o, err := putText(t.Context(), s, loc, "1", PutOptions{Cond: Cond{IfNoneMatch: true}})
	if err != nil {
		t.Fatal(err)
	}
	if denied.Hits() != 1 || s.Conditions().Known {
		t.Errorf("after a probe that was refused %d times Conditions = %+v", denied.Hits(), s.Conditions())
	}
	if _, err := putText(t.Context(), s, loc, "2", PutOptions{Cond: Cond{IfMatch: o.ETag}}); err != nil {
		t.Error(err)
	}
	if !s.Conditions().Known {
		t.Error("the next write did not find out")
	}
}

func TestConditionsOfLargeWrites(t *testing.T) {
	t.Parallel()
	p := faulty.New(t, s3test.Versity(t))
	s, loc := onServer(t, p.Server()), Location{Bucket: p.Server().Bucket(t), Key: "f"}
	text := strings.Repeat("x", maxProbe+1)
	if _, err := putText(t.Context(), s, loc, text, PutOptions{Cond: Cond{IfNoneMatch: true}}); err != nil {
		t.Fatal(err)
	}
	if puts, heads := p.Count("PutObject"), p.Count("HeadObject"); puts != 1 || heads != 1 || s.Conditions().Known {
		t.Errorf("a large write took %d PUTs and %d HEADs, want 1 and 1: %+v", puts, heads, s.Conditions())
	}
}

func TestProbeConditions(t *testing.T) {
	t.Parallel()
	bothServers(t, func(t *testing.T, server *s3test.Server) {
		t.Helper()
		bucket := server.Bucket(t)
		loc := Location{Bucket: bucket, Key: "probe"}
		got, err := onServer(t, server).ProbeConditions(t.Context(), loc)
		if want := (Conditions{Known: true, IfNoneMatch: true, IfMatch: true}); err != nil || got != want {
			t.Errorf("ProbeConditions = %+v, %v, want %+v", got, err, want)
		}
		p := faulty.New(t, server)
		p.Add(faulty.Rule{Fault: faulty.StripConditions{}})
		got, err = onServer(t, p.Server()).ProbeConditions(t.Context(), loc)
		if want := (Conditions{Known: true}); err != nil || got != want {
			t.Errorf("ProbeConditions = %+v, %v, want %+v", got, err, want)
		}
		if keys := server.Keys(t, bucket, ""); len(keys) != 0 {
			t.Errorf("the probe left %q", keys)
		}
		server.Put(t, bucket, "probe", []byte("theirs"))
		_, err = onServer(t, server).ProbeConditions(t.Context(), loc)
		wantIs(t, "ProbeConditions over another's object", err, ErrExist)
		if got := server.Get(t, bucket, "probe"); string(got) != "theirs" {
			t.Errorf("another's object became %q", got)
		}
	})
}
