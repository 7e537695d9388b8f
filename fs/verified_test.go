package fs

import (
	"strconv"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func TestVerifiedVersionsAreThoseConfirmedWithinTheTTL(t *testing.T) {
	now := time.Now()
	v := newVerified(5 * time.Second)
	v.now = func() time.Time { return now }
	o := objectstore.Object{Location: objectstore.Location{Bucket: "b", Key: "k"}, ETag: "1", Size: 3}
	if v.has(o) {
		t.Error("known before it was confirmed")
	}
	v.note(o)
	other, longer := o, o
	other.ETag, longer.Size = "2", 4
	if !v.has(o) || v.has(other) || v.has(longer) {
		t.Error("not the version that was confirmed")
	}
	now = now.Add(5 * time.Second)
	if v.has(o) {
		t.Error("confirmed for longer than the TTL")
	}
	v.note(o)
	v.drop(o.Location)
	if v.has(o) {
		t.Error("dropped and still there")
	}
}

func TestVerifiedVersionsAreBounded(t *testing.T) {
	v := newVerified(time.Hour)
	for i := range maxVerified + 10 {
		v.note(objectstore.Object{Location: objectstore.Location{Key: strconv.Itoa(i)}})
	}
	if len(v.at) > maxVerified {
		t.Errorf("%d versions are kept, at most %d should be", len(v.at), maxVerified)
	}
	off := newVerified(-1)
	off.note(objectstore.Object{})
	if off.has(objectstore.Object{}) {
		t.Error("a TTL of nothing keeps something")
	}
}
