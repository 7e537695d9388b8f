package objectstore

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// zeroes is a source of any length.
type zeroes struct{}

func (zeroes) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

// TestS3Large puts the largest object that one request takes, and copies it, as a
// whole and in parts.
func TestS3Large(t *testing.T) {
	if os.Getenv("MOUNTTEST_LARGE") == "" {
		t.Skip("MOUNTTEST_LARGE is not set")
	}
	server := s3test.Fresh(t)
	s := onServer(t, server, func(o *S3Options) { o.Timeout = 5 * time.Minute })
	bucket := server.Bucket(t)
	at := func(key string) Location { return Location{Bucket: bucket, Key: key} }
	src, err := s.Put(t.Context(), at("src"), zeroes{}, MaxPutSize, PutOptions{Cond: Cond{IfNoneMatch: true}})
	if err != nil {
		t.Fatal(err)
	}
	for key, limit := range map[string]int64{"whole": 0, "parts": MaxPutSize - 1} {
		s.copyLimit = limit
		if _, err := s.Copy(t.Context(), at(key), src, PutOptions{}); err != nil {
			t.Fatal(err)
		}
		o, err := s.Stat(t.Context(), at(key))
		if err != nil || o.Size != MaxPutSize {
			t.Errorf("%s: %d bytes, %v", key, o.Size, err)
		}
		_, body, err := s.Read(t.Context(), o, MaxPutSize-3, 10)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(body); err != nil || string(b) != "\x00\x00\x00" {
			t.Errorf("%s ends in %q, %v", key, b, err)
		}
		closing(t, body)
	}
}
