package faulty_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// list is what a listing by the proxy says: "key size".
func (r *rig) list(encoding string) []string {
	r.Helper()
	in := &s3.ListObjectsV2Input{Bucket: &r.bucket}
	if encoding != "" {
		in.EncodingType = "url"
	}
	out, err := r.client.ListObjectsV2(r.Context(), in)
	r.must(err)
	var entries []string
	for _, o := range out.Contents {
		entries = append(entries, fmt.Sprintf("%s %d", aws.ToString(o.Key), *o.Size))
	}
	return entries
}

func TestStaleList(t *testing.T) {
	r := newRig(t)
	r.store.Put(t, r.bucket, "a&b", nil)
	r.store.Put(t, r.bucket, "gone", nil)
	stale := r.p.Add(faulty.Rule{Fault: &faulty.StaleList{}})
	if got, want := r.list(""), []string{"a&b 0", key + " 10", "gone 0"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	r.store.Put(t, r.bucket, key, []byte("another size"))
	r.store.Put(t, r.bucket, "new", nil)
	r.store.Delete(t, r.bucket, "gone")
	if got, want := r.list(""), []string{"a&b 0", key + " 10", "new 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	stale.Remove()
	if got, want := r.list(""), []string{"a&b 0", key + " 12", "new 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q without the rule, want %q", got, want)
	}
}

func TestDropEncoding(t *testing.T) {
	r := newRigOn(t, s3test.Mini(t)) // versitygw encodes nothing
	r.store.Put(t, r.bucket, "a&b%20+", nil)
	if got, want := r.list("url"), []string{"a%26b%2520%2B 0", "dt%3D1/a%20b%2Bc/%C3%A9.csv 10"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q: the store itself does not encode", got, want)
	}
	r.p.Add(faulty.Rule{Fault: faulty.DropEncoding{}})
	if got, want := r.list("url"), []string{"a&b%20+ 0", key + " 10"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
