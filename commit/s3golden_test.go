package commit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

const mib = 1 << 20

// requests is what the server was asked, a line each. Parts, and what is read for
// them, are under way side by side: of neighbours the order is that of their numbers.
func requests(p *faulty.Proxy) string {
	log := p.Log()
	for i := 0; i < len(log); {
		j := i
		for j < len(log) && (log[j].Query.Has("partNumber") || log[j].Op == "GetObject") {
			j++
		}
		slices.SortStableFunc(log[i:j], func(a, b faulty.Request) int {
			return cmp.Compare(a.Query.Get("partNumber"), b.Query.Get("partNumber"))
		})
		i = max(i+1, j)
	}
	var b strings.Builder
	for _, q := range log {
		fmt.Fprint(&b, q.Op, " ", q.Key)
		if n := q.Query.Get("partNumber"); n != "" {
			fmt.Fprint(&b, " part ", n)
		}
		for _, h := range []string{"Range", "X-Amz-Copy-Source-Range", "If-None-Match"} {
			if v := q.Header.Get(h); v != "" {
				fmt.Fprintf(&b, " %s: %s", h, v)
			}
		}
		for _, h := range []string{"If-Match", "X-Amz-Copy-Source-If-Match"} { // a version's ETag
			if q.Header.Get(h) != "" {
				fmt.Fprint(&b, " ", h)
			}
		}
		fmt.Fprintln(&b, "", cmp.Or(fmt.Sprint(q.Status), "no answer"))
	}
	p.Reset()
	return strings.ReplaceAll(b.String(), " 0\n", " no answer\n")
}

// TestGoldenRequests holds which requests a publish, an overwrite, an append, a
// rename and a recovery make of a real server, and their order.
func TestGoldenRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	server := s3test.Versity(t)
	small, big := []byte("small\n"), make([]byte, 20*mib+1)
	proxy := faulty.New(t, server)
	first := newS3World(t, proxy.Server(), server.Bucket(t))
	first.small()
	first.known()
	patch := func(w *world, over []byte, off int64) error {
		base := w.stat()
		f, err := w.area.Create(t.Context(), w.newWrite(&base))
		if err == nil {
			_, err = f.WriteAt(t.Context(), over, off)
		}
		if err == nil {
			_, err = w.c.Commit(t.Context(), f)
		}
		return err
	}
	publish := func(w *world, data []byte) error {
		_, err := w.c.Commit(t.Context(), w.create(nil, string(data)))
		return err
	}
	for _, tt := range []struct {
		name   string
		before []byte // nil: nothing is there
		fault  faulty.Rule
		run    func(w *world) error
	}{
		{"publish", nil, faulty.Rule{}, func(w *world) error { return publish(w, small) }},
		{"publish-large", nil, faulty.Rule{}, func(w *world) error { return publish(w, big) }},
		{"publish-lost", nil, faulty.Rule{Op: "PutObject", Times: 1, Fault: faulty.LoseAnswer{}}, func(w *world) error { return publish(w, small) }},
		{"publish-large-lost", nil, faulty.Rule{Op: "CompleteMultipartUpload", Times: 1, Fault: faulty.LoseAnswer{}}, func(w *world) error { return publish(w, big) }},
		{"overwrite", small, faulty.Rule{}, func(w *world) error {
			base := w.stat()
			_, err := w.c.Commit(t.Context(), w.create(&base, "new\n"))
			return err
		}},
		{"append", small, faulty.Rule{}, func(w *world) error { return w.echo("line\n") }},
		{"append-large", big, faulty.Rule{}, func(w *world) error { return w.echo("line\n") }},
		{"patch-front", big, faulty.Rule{}, func(w *world) error { return patch(w, small, 0) }},
		{"patch-middle", big, faulty.Rule{}, func(w *world) error { return patch(w, small, 10*mib) }},
		{"rename", small, faulty.Rule{}, func(w *world) error {
			_, err := w.mv(w.stat(), objectstore.Cond{IfNoneMatch: true})
			return err
		}},
		{"rename-lost", small, faulty.Rule{Op: "CopyObject", Times: 1, Fault: faulty.LoseAnswer{}}, func(w *world) error {
			_, err := w.mv(w.stat(), objectstore.Cond{IfNoneMatch: true})
			return err
		}},
		{"cp", big, faulty.Rule{}, func(w *world) error {
			src := w.stat()
			n := w.newWrite(nil)
			n.Target = w.loc(newName)
			f, err := w.area.Create(t.Context(), n)
			if err == nil {
				_, err = f.CopyFrom(t.Context(), src, 0, 0, src.Size)
			}
			if err == nil {
				_, err = w.c.Commit(t.Context(), f)
			}
			return err
		}},
		{"recover-not-begun", nil, faulty.Rule{}, func(w *world) error { return w.killed(small, false) }},
		{"recover-done", nil, faulty.Rule{}, func(w *world) error { return w.killed(small, true) }},
		{"recover-large", nil, faulty.Rule{}, func(w *world) error { return w.killed(big, false) }},
		{"recover-large-done", nil, faulty.Rule{}, func(w *world) error { return w.killed(big, true) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := server.Bucket(t)
			if tt.before != nil {
				server.Put(t, name, target, tt.before)
			}
			w := newWorldOn(t, first.real, name)
			w.small()
			proxy.Reset()
			if tt.fault.Fault != nil {
				defer proxy.Clear()
				proxy.Add(tt.fault)
			}
			if err := tt.run(w); err != nil {
				t.Fatal(err)
			}
			goldenText(t, requests(proxy), "s3-"+tt.name)
		})
	}
}

// small has the world begin anew with the smallest parts.
func (w *world) small() {
	w.t.Helper()
	w.close()
	w.partSize = objectstore.MinPartSize
	if err := w.openS3(); err != nil {
		w.t.Fatal(err)
	}
}

// known has the store find out what the server makes of conditions on writes and on
// copies, which it asks once.
func (w *world) known() {
	w.t.Helper()
	store, _ := w.real.(*objectstore.S3)
	_, err := store.ProbeConditions(w.t.Context(), w.loc("probe"))
	if err == nil {
		_, err = w.c.Commit(w.t.Context(), w.create(nil, strings.Repeat("x", objectstore.MinPartSize)))
	}
	if err == nil {
		err = w.echo("line\n")
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// killed is a publish of data whose process ends right before the request that
// makes the object, or right after it, and the recovery.
func (w *world) killed(data []byte, made bool) error {
	ctx := w.t.Context()
	f := w.create(nil, string(data))
	z, err := f.Freeze(ctx)
	if err != nil {
		return err
	}
	var u objectstore.Upload
	var parts []objectstore.Part
	large := z.TakesParts()
	if large {
		u, parts, err = z.Upload(ctx)
	}
	if err == nil {
		err = z.Secure(ctx)
	}
	if err == nil {
		err = z.SetState(staging.Publishing, "", true)
	}
	opts := objectstore.PutOptions{Cond: z.Record.Cond, Meta: Meta(z.Record)}
	store, _ := w.real.(*objectstore.S3)
	switch {
	case err != nil || !made:
	case large:
		_, err = store.CompleteUpload(ctx, u, parts, opts)
	default:
		_, err = store.Put(ctx, z.Record.Target, z.ReaderAt(), z.Size, opts)
	}
	z.Release()
	w.close()
	if err == nil {
		err = w.openS3()
	}
	if err == nil {
		_, err = w.c.Recover(ctx)
	}
	if left := w.leftovers(); err == nil && len(left) > 0 {
		err = fmt.Errorf("left in the staging directory: %q", left)
	}
	return err
}
