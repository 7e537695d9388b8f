package objectstore_test

import (
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/objectstore/storetest"
)

// newS3 is a store over a server of s3test.
func newS3(t *testing.T, server *s3test.Server, change ...func(*objectstore.S3Options)) *objectstore.S3 {
	t.Helper()
	o := objectstore.S3Options{Config: server.Config(), Endpoint: server.Endpoint, Timeout: 20 * time.Second}
	for _, f := range change {
		f(&o)
	}
	s, err := objectstore.NewS3(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openS3(server *s3test.Server, key string) storetest.Opener {
	return func(t *testing.T) (objectstore.Store, objectstore.Location) {
		t.Helper()
		return newS3(t, server), objectstore.Location{Bucket: server.Bucket(t), Key: key}
	}
}

func TestS3Versity(t *testing.T) {
	t.Run("Bucket", func(t *testing.T) { storetest.Run(t, openS3(s3test.Versity(t), "")) })
	t.Run("Prefix", func(t *testing.T) { storetest.Run(t, openS3(s3test.Versity(t), "a lake/é%/")) })
	t.Run("Flat", func(t *testing.T) {
		storetest.RunFlat(t, openS3(s3test.Versity(t), ""), map[string]string{
			"FlatKeys":        "versitygw keeps keys as paths: n//x is n/x, a beside a/b is refused",
			"FlatList":        "versitygw keeps keys as paths",
			"FlatCopy":        "versitygw keeps keys as paths",
			"FlatDelete":      "versitygw keeps keys as paths",
			"FlatPlaceholder": "versitygw keeps keys as paths: a/ takes no bytes, a beside a/ is refused",
			"ControlBytes":    "versitygw lists control bytes as U+FFFD, with encoding-type=url too",
			"KeyLength":       "versitygw keeps keys as paths: 255 bytes between slashes",
		})
	})
}

func TestS3Mini(t *testing.T) {
	t.Run("Bucket", func(t *testing.T) { storetest.Run(t, openS3(s3test.Mini(t), "")) })
	t.Run("Prefix", func(t *testing.T) { storetest.Run(t, openS3(s3test.Mini(t), "a lake/é%/")) })
	t.Run("Flat", func(t *testing.T) { storetest.RunFlat(t, openS3(s3test.Mini(t), ""), nil) })
}

func TestS3Multipart(t *testing.T) {
	t.Run("Versity", func(t *testing.T) { storetest.RunMultipart(t, openS3(s3test.Versity(t), "é%/"), nil) })
	t.Run("Mini", func(t *testing.T) { storetest.RunMultipart(t, openS3(s3test.Mini(t), ""), nil) })
	t.Run("Moto", func(t *testing.T) {
		storetest.RunMultipart(t, openS3(s3test.Moto(t), ""), map[string]string{
			"UploadKeys":            "moto takes no newline in a key",
			"CompleteWrongChecksum": "moto verifies no checksum",
			"NoUpload":              "moto answers 500, and a page of HTML, about an upload that it does not have",
		})
	})
}
