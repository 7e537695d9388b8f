package objectstore

import (
	"bytes"
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// TestPutAnswerLost: a write that took effect is told by its id, and no other's
// is taken for it.
func TestPutAnswerLost(t *testing.T) {
	t.Parallel()
	for _, cond := range []string{"create", "replace", "none"} {
		t.Run(cond, func(t *testing.T) {
			t.Parallel()
			p := faulty.New(t, s3test.Versity(t))
			s, loc := onServer(t, p.Server()), Location{Bucket: p.Server().Bucket(t), Key: "f"}
			opts := PutOptions{Meta: idOf("mine")}
			switch cond {
			case "create":
				opts.Cond.IfNoneMatch = true
			case "replace":
				old, err := putText(t.Context(), s, loc, "old", PutOptions{Meta: idOf("old")})
				if err != nil {
					t.Fatal(err)
				}
				opts.Cond.IfMatch = old.ETag
			}
			p.Add(faulty.Rule{Op: "PutObject", Times: 1, Fault: faulty.LoseAnswer{}})
			o, err := putText(t.Context(), s, loc, "new", opts)
			if err != nil {
				t.Fatal(err)
			}
			now, err := s.Stat(t.Context(), loc)
			if err != nil || now.ETag != o.ETag || now.Size != 3 || now.Meta[MetaWriteID] != "mine" {
				t.Errorf("Put tells %+v, there is %+v, %v", o, now, err)
			}
		})
	}
}

func TestPutAnswerLostToAnother(t *testing.T) {
	t.Parallel()
	server := s3test.Versity(t)
	for _, test := range []struct {
		name string
		meta map[string]string
		want error
	}{
		{"with an id", idOf("mine"), ErrExist},
		{"without", nil, ErrUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := faulty.New(t, server)
			s, loc := onServer(t, p.Server()), Location{Bucket: server.Bucket(t), Key: "f"}
			rule := p.Add(faulty.Rule{Op: "PutObject", Times: 1, Fault: faulty.Func(func(x *faulty.Exchange, next faulty.Next) (*http.Response, error) {
				_, err := server.Client().PutObject(context.Background(), putInput(loc, "theirs"))
				if err != nil {
					return nil, err
				}
				return faulty.LoseAnswerBefore{}.Apply(x, next)
			})})
			_, err := putText(t.Context(), s, loc, "mine", PutOptions{Cond: Cond{IfNoneMatch: true}, Meta: test.meta})
			wantIs(t, "Put", err, test.want)
			if rule.Hits() != 1 {
				t.Errorf("%d requests were lost, want 1", rule.Hits())
			}
			if got := server.Get(t, loc.Bucket, loc.Key); string(got) != "theirs" {
				t.Errorf("another's object became %q", got)
			}
		})
	}
}

// TestPutNeverTaken: a store that fails each PUT leaves nothing, and an error in time.
func TestPutNeverTaken(t *testing.T) {
	t.Parallel()
	p := faulty.New(t, s3test.Versity(t))
	s := onServer(t, p.Server(), func(o *S3Options) { o.Timeout = time.Second })
	loc := Location{Bucket: p.Server().Bucket(t), Key: "f"}
	p.Add(faulty.Rule{Op: "PutObject", Fault: faulty.Status{Code: 500, S3Code: "InternalError"}})
	for _, size := range []int64{0, 1 << 20, 20 << 20} {
		_, err := s.Put(t.Context(), loc, bytes.NewReader(make([]byte, size)), size, PutOptions{Cond: Cond{IfNoneMatch: true}})
		wantIs(t, "Put", err, ErrUnavailable)
	}
	_, err := s.Stat(t.Context(), loc)
	wantIs(t, "Stat", err, ErrNotExist)
}
