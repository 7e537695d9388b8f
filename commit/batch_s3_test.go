package commit

import (
	"errors"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// countBelow counts the objects of a real store that are not hidden in a staging tree.
func (w *world) countBelow() int {
	w.t.Helper()
	n := 0
	for e, err := range w.real.List(w.t.Context(), w.loc("t/"), objectstore.ListOptions{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if !strings.HasSuffix(e.Key, "/") {
			n++
		}
	}
	return n
}

// TestGoldenBatchRequests holds which requests a publish of three files together makes
// of a real server, with a failure and a lost answer, and what a recovery asks.
func TestGoldenBatchRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	server := s3test.Versity(t)
	proxy := faulty.New(t, server)
	first := newS3World(t, proxy.Server(), server.Bucket(t))
	first.known()
	for _, tt := range []struct {
		name   string
		theirs bool
		fault  faulty.Rule
		run    func(w *world, all []Member) error
		there  int
	}{
		{"batch", false, faulty.Rule{}, (*world).publishAll, 3},
		{"batch-lost", false, faulty.Rule{Op: "PutObject", Times: 1, Fault: faulty.LoseAnswer{}}, (*world).publishAll, 3},
		{"batch-failed", true, faulty.Rule{}, func(w *world, all []Member) error {
			if err := w.publishAll(all); !errors.Is(err, objectstore.ErrExist) || errors.Is(err, errHalf) {
				t.Errorf("over another's object: %v, want ErrExist", err)
			}
			return nil
		}, 1},
		{"recover-batch", false, faulty.Rule{}, (*world).redoBatch, 3},
		{"recover-batch-failed", true, faulty.Rule{}, (*world).redoBatch, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := server.Bucket(t)
			w := newWorldOn(t, first.real, name)
			w.c.atOnce = 1
			if tt.theirs {
				server.Put(t, name, batchKey(2), []byte(theirFile))
			}
			all := w.stageBatch(3)
			proxy.Reset()
			if tt.fault.Fault != nil {
				defer proxy.Clear()
				proxy.Add(tt.fault)
			}
			if err := tt.run(w, all); err != nil {
				t.Fatal(err)
			}
			goldenText(t, requests(proxy), "s3-"+tt.name)
			if n := w.countBelow(); n != tt.there || len(w.area.Batches()) != 0 {
				t.Errorf("%d objects are there, want %d; %d batches are left", n, tt.there, len(w.area.Batches()))
			}
		})
	}
}

func (w *world) publishAll(all []Member) error {
	_, err := w.c.PublishAll(w.t.Context(), all, Together{})
	return err
}

// redoBatch is a batch whose process ends after the first of its requests, and the
// recovery.
func (w *world) redoBatch(all []Member) error {
	b := &batch{c: w.c}
	for _, m := range all {
		b.files = append(b.files, &batchFile{Member: m, to: placeOf(m.To)})
	}
	err := b.hold(w.t.Context())
	for _, f := range b.files {
		if err == nil {
			err = b.secure(w.t.Context(), f)
		}
	}
	if err != nil {
		return err
	}
	if b.note, err = w.area.NewBatch(b.plan()); err == nil {
		err = b.note.Begin()
	}
	b.files[0].z.MoveTo(b.files[0].to)
	if err == nil {
		err = b.publishOne(w.t.Context(), b.files[0])
	}
	b.release()
	w.close()
	if err == nil {
		err = w.openS3()
	}
	if err == nil {
		w.c.atOnce = 1
		_, err = w.c.Recover(w.t.Context())
	}
	return err
}

// TestS3BatchOfMany publishes many files side by side, and then none of as many.
func TestS3BatchOfMany(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	const n = 200
	server := s3test.Versity(t)
	name := server.Bucket(t)
	w := newS3World(t, server, name)
	server.Put(t, name, batchKey(n/2), []byte(theirFile))
	all := w.stageBatch(n)
	if err := w.publishAll(all); !errors.Is(err, objectstore.ErrExist) || errors.Is(err, errHalf) {
		t.Errorf("over another's object: %v, want ErrExist", err)
	}
	if there := w.countBelow(); there != 1 || string(server.Get(t, name, batchKey(n/2))) != theirFile {
		t.Errorf("%d objects are there after a failure, want another's alone", there)
	}
	w.checkStaged(n, "after a failure")
	if err := first(w.real.Delete(t.Context(), []objectstore.Location{w.loc(batchKey(n / 2))})); err != nil {
		t.Fatal(err)
	}
	if err := w.publishAll(all); err != nil || w.countBelow() != n {
		t.Errorf("PublishAll: %v; %d objects are there", err, w.countBelow())
	}
	if left := w.leftovers(); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// first is the first outcome of a Delete.
func first(outcomes func(func(objectstore.Location, error) bool)) (err error) {
	for _, err = range outcomes {
		break
	}
	return err
}
