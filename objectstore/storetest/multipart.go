package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// RunMultipart holds stores to the contract of [objectstore.Multipart]. Known names
// the tests that the server behind the store is known to fail, with the reason;
// nil: none.
func RunMultipart(t *testing.T, open Opener, known map[string]string) {
	t.Helper()
	run(t, open, known, []test{
		{"Parts", testParts},
		{"PartNumbers", testPartNumbers},
		{"PartReplaced", testPartReplaced},
		{"PartShortSource", testPartShortSource},
		{"PartRefused", testPartRefused},
		{"OnePart", testOnePart},
		{"UploadKept", testUploadKept},
		{"UploadMeta", testUploadMeta},
		{"UploadKeys", testUploadKeys},
		{"UploadCancelled", testUploadCancelled},
		{"CopyPart", testCopyPart},
		{"CopyPartChanged", testCopyPartChanged},
		{"CopyPartRefused", testCopyPartRefused},
		{"CompleteConditions", testCompleteConditions},
		{"CompleteRace", testCompleteRace},
		{"CompleteTwice", testCompleteTwice},
		{"CompleteOverTaken", testCompleteOverTaken},
		{"CompleteWrongPart", testCompleteWrongPart},
		{"CompleteWrongChecksum", testCompleteWrongChecksum},
		{"NoUpload", testNoUpload},
		{"Abort", testAbort},
	})
}

// testUpload is an upload of one test.
type testUpload struct {
	fixture
	multipart objectstore.Multipart
	up        objectstore.Upload
	opts      objectstore.PutOptions
}

// upload begins an upload of key, with a write id.
func (f fixture) upload(t *testing.T, key, id string) testUpload {
	t.Helper()
	m, ok := f.Store.(objectstore.Multipart)
	if !ok {
		t.Skip("the store is no Multipart")
	}
	u := testUpload{fixture: f, multipart: m, opts: objectstore.PutOptions{Meta: map[string]string{objectstore.MetaWriteID: id}}}
	var err error
	if u.up, err = m.CreateUpload(t.Context(), f.at(key), u.opts); err != nil {
		t.Fatal(err)
	}
	if u.up.Location != f.at(key) || u.up.ID == "" {
		t.Fatalf("CreateUpload tells %+v", u.up)
	}
	return u
}

// part sends a part.
func (u testUpload) part(t *testing.T, number int, b []byte) objectstore.Part {
	t.Helper()
	p, err := u.send(t, number, b)
	if err != nil {
		t.Fatal(err)
	}
	if p.Number != number || p.Size != int64(len(b)) || p.ETag == "" {
		t.Errorf("UploadPart of %d bytes as %d tells %+v", len(b), number, p)
	}
	return p
}

func (u testUpload) send(t *testing.T, number int, b []byte) (objectstore.Part, error) {
	t.Helper()
	return u.multipart.UploadPart(t.Context(), u.up, number, bytes.NewReader(b), int64(len(b)))
}

func (u testUpload) copy(t *testing.T, number int, src objectstore.Object, off, n int64) (objectstore.Part, error) {
	t.Helper()
	return u.multipart.CopyPart(t.Context(), u.up, number, src, off, n)
}

func (u testUpload) complete(t *testing.T, cond objectstore.Cond, parts ...objectstore.Part) (objectstore.Object, error) {
	t.Helper()
	u.opts.Cond = cond
	return u.multipart.CompleteUpload(t.Context(), u.up, parts, u.opts)
}

// finish completes the upload, and fails the test unless the object is b then.
func (u testUpload) finish(t *testing.T, b []byte, parts ...objectstore.Part) {
	t.Helper()
	made, err := u.complete(t, objectstore.Cond{IfNoneMatch: true}, parts...)
	if err != nil {
		t.Fatal(err)
	}
	key := strings.TrimPrefix(u.up.Key, u.dir.Key)
	now := u.stat(t, key)
	if made.ETag != now.ETag || made.Match != now.Match || made.Size != int64(len(b)) || made.Location != now.Location || made.ModTime.IsZero() {
		t.Errorf("CompleteUpload tells %+v, Stat %+v", made, now)
	}
	for _, o := range []objectstore.Object{made, now} {
		if got := o.Meta[objectstore.MetaWriteID]; got != u.opts.Meta[objectstore.MetaWriteID] {
			t.Errorf("write id %q", got)
		}
	}
	u.want(t, key, b)
}

// gone fails the test unless err says that there is no such upload.
func gone(t *testing.T, what string, err error) {
	t.Helper()
	wantErr(t, what, err, objectstore.ErrNoUpload)
	wantErr(t, what, err, objectstore.ErrUnavailable)
}

// testParts sends parts in any order. Nobody sees the object before it is whole.
func testParts(f fixture) {
	t := f.t
	u := f.upload(t, "dir/f", writeID)
	b := data(2*objectstore.MinPartSize+7, 1)
	var parts []objectstore.Part
	for _, n := range []int{3, 1, 2} {
		from := (n - 1) * objectstore.MinPartSize
		parts = append(parts, u.part(t, n, b[from:min(from+objectstore.MinPartSize, len(b))]))
	}
	f.missing(t, "dir/f")
	if listed := f.list(t, "", objectstore.ListOptions{}); len(listed) != 0 {
		t.Errorf("before it is completed, the upload is listed: %v", listed)
	}
	order := slices.Clone(parts)
	u.finish(t, b, parts...)
	if !slices.Equal(parts, order) {
		t.Errorf("CompleteUpload changed the parts to %v", parts)
	}
}

// testPartNumbers leaves numbers out.
func testPartNumbers(f fixture) {
	t := f.t
	u := f.upload(t, "f", writeID)
	b := data(2*objectstore.MinPartSize+1, 1)
	last := u.part(t, objectstore.MaxParts, b[2*objectstore.MinPartSize:])
	first := u.part(t, 2, b[:objectstore.MinPartSize])
	u.part(t, 5, []byte("a part that is not named"))
	u.finish(t, b, first, u.part(t, 700, b[objectstore.MinPartSize:2*objectstore.MinPartSize]), last)
}

func testPartReplaced(f fixture) {
	t := f.t
	u := f.upload(t, "f", writeID)
	b := data(objectstore.MinPartSize+9, 2)
	u.part(t, 1, data(objectstore.MinPartSize+5, 1))
	last := u.part(t, 2, b[objectstore.MinPartSize:])
	u.finish(t, b, u.part(t, 1, b[:objectstore.MinPartSize]), last)
}

func testPartShortSource(f fixture) {
	t := f.t
	u := f.upload(t, "f", writeID)
	_, err := u.multipart.UploadPart(t.Context(), u.up, 1, bytes.NewReader(data(100, 1)), 101)
	wantErr(t, "a source that is too short", err, io.ErrUnexpectedEOF)
	u.finish(t, data(100, 1), u.part(t, 1, data(100, 1)))
}

// testPartRefused asks for what is no part.
func testPartRefused(f fixture) {
	t := f.t
	u := f.upload(t, "f", writeID)
	for _, n := range []int{0, -1, objectstore.MaxParts + 1} {
		_, err := u.send(t, n, []byte("x"))
		wantErr(t, fmt.Sprintf("part %d", n), err, objectstore.ErrTooLarge)
	}
	_, err := u.multipart.UploadPart(t.Context(), u.up, 1, bytes.NewReader(nil), objectstore.MaxPartSize+1)
	wantErr(t, "a part that is too large", err, objectstore.ErrTooLarge)
	if _, err := u.complete(t, objectstore.Cond{}); err == nil {
		t.Error("an upload without parts was completed")
	}
	p := u.part(t, 1, []byte("x"))
	if _, err := u.complete(t, objectstore.Cond{}, p, p); err == nil {
		t.Error("a part was taken twice")
	}
	f.missing(t, "f")
	u.finish(t, []byte("x"), p)
}

func testOnePart(f fixture) {
	for _, size := range []int{0, 1, 100_000} {
		u := f.upload(f.t, fmt.Sprint("of ", size), writeID)
		b := data(size, 1)
		u.finish(f.t, b, u.part(f.t, 1, b))
	}
}

// testUploadKept: upload and parts outlive the process that made them.
func testUploadKept(f fixture) {
	t := f.t
	u := f.upload(t, "f", writeID)
	parts := []objectstore.Part{u.part(t, 1, data(9, 1))}
	up := u.up
	u.up = objectstore.Upload{}
	for from, to := range map[any]any{&up: &u.up, &parts: &parts} {
		raw, err := json.Marshal(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, to); err != nil {
			t.Fatal(err)
		}
	}
	if u.up != up {
		t.Errorf("kept as %+v, was %+v", u.up, up)
	}
	u.finish(t, data(9, 1), parts...)
}

func testUploadMeta(f fixture) {
	t := f.t
	u := f.upload(t, "unused", writeID)
	u.opts.Meta = map[string]string{
		objectstore.MetaWriteID: writeID, objectstore.MetaMode: "640", objectstore.MetaMTime: "99.5",
		"utf8": "São Tomé 🦆", "latin": "\xff\x00", "edges": " x ", "newline": "a\r\nX-Evil: 1", "word": "=?utf-8?b?eA==?=",
	}
	var err error
	if u.up, err = u.multipart.CreateUpload(t.Context(), f.at("f"), u.opts); err != nil {
		t.Fatal(err)
	}
	u.finish(t, []byte("x"), u.part(t, 1, []byte("x")))
	now := f.stat(t, "f")
	for k, want := range u.opts.Meta {
		if got := now.Meta[k]; got != want {
			t.Errorf("%s = %q, want %q", k, got, want)
		}
	}
}

func testUploadKeys(f fixture) {
	for i, name := range oddNames() {
		u := f.upload(f.t, "d/"+name+"/"+name, writeID)
		u.finish(f.t, []byte{byte(i)}, u.part(f.t, 1, []byte{byte(i)}))
	}
}

func testUploadCancelled(f fixture) {
	t := f.t
	u := f.upload(t, "f", writeID)
	p := u.part(t, 1, []byte("x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := u.multipart.CreateUpload(ctx, f.at("f"), u.opts)
	wantErr(t, "CreateUpload", err, context.Canceled)
	_, err = u.multipart.UploadPart(ctx, u.up, 1, bytes.NewReader([]byte("y")), 1)
	wantErr(t, "UploadPart", err, context.Canceled)
	_, err = u.multipart.CompleteUpload(ctx, u.up, []objectstore.Part{p}, u.opts)
	wantErr(t, "CompleteUpload", err, context.Canceled)
	wantErr(t, "AbortUpload", u.multipart.AbortUpload(ctx, u.up), context.Canceled)
	f.missing(t, "f")
	u.finish(t, []byte("x"), p)
}

// testCopyPart makes an object of ranges of others, and of what is sent.
func testCopyPart(f fixture) {
	t := f.t
	b := data(objectstore.MinPartSize+(1<<20), 1)
	large, small := f.put(t, "large%20&?", b), f.put(t, "small", data(30, 2))
	u := f.upload(t, "f", writeID)
	var parts []objectstore.Part
	for n, r := range []struct {
		src    objectstore.Object
		off, n int64
	}{{large, 1000, objectstore.MinPartSize}, {large, 0, large.Size}, {large, 0, objectstore.MinPartSize}, {small, 0, small.Size}} {
		p, err := u.copy(t, n+1, r.src, r.off, r.n)
		if err != nil {
			t.Fatal(err)
		}
		if p.Number != n+1 || p.Size != r.n || p.ETag == "" {
			t.Errorf("CopyPart tells %+v", p)
		}
		parts = append(parts, p)
	}
	parts[2] = u.part(t, 3, data(objectstore.MinPartSize, 3)) // in place of the copied one
	want := slices.Concat(b[1000:1000+objectstore.MinPartSize], b, data(objectstore.MinPartSize, 3), data(30, 2))
	u.finish(t, want, parts...)
	f.want(t, "large%20&?", b)
}

func testCopyPartChanged(f fixture) {
	t := f.t
	u := f.upload(t, "f", writeID)
	src := f.put(t, "src", data(objectstore.MinPartSize, 1))
	if _, err := u.copy(t, 1, src, 0, src.Size); err != nil {
		t.Fatal(err)
	}
	f.put(t, "src", data(objectstore.MinPartSize, 2))
	_, err := u.copy(t, 2, src, 0, src.Size)
	wantErr(t, "CopyPart of another version", err, objectstore.ErrChanged)
	f.put(t, "src", data(3, 2))
	_, err = u.copy(t, 2, src, src.Size-10, 10)
	wantErr(t, "CopyPart of a shorter version", err, objectstore.ErrChanged)
	remove(t, f, "src")
	_, err = u.copy(t, 2, src, 0, src.Size)
	wantErr(t, "CopyPart of nothing", err, objectstore.ErrChanged)
}

func testCopyPartRefused(f fixture) {
	t := f.t
	u := f.upload(t, "f", writeID)
	src := f.put(t, "src", data(10, 1))
	for _, r := range [][2]int64{{0, 0}, {-1, 3}, {5, 6}, {11, 1}} {
		_, err := u.copy(t, 1, src, r[0], r[1])
		wantErr(t, fmt.Sprintf("%d bytes at %d", r[1], r[0]), err, errors.ErrUnsupported)
	}
	_, err := u.copy(t, 0, src, 0, 10)
	wantErr(t, "part 0", err, objectstore.ErrTooLarge)
}

// testCompleteConditions: one that does not hold leaves the upload as it is.
func testCompleteConditions(f fixture) {
	t := f.t
	u := f.upload(t, "f", writeID)
	p := u.part(t, 1, []byte("mine"))
	_, err := u.complete(t, objectstore.Cond{IfMatch: "0123456789abcdef0123456789abcdef"}, p)
	wantErr(t, "over a version where nothing is", err, objectstore.ErrChanged)
	f.missing(t, "f")
	v1 := f.put(t, "f", []byte("1"))
	v2 := f.put(t, "f", []byte("2"))
	_, err = u.complete(t, objectstore.Cond{IfNoneMatch: true}, p)
	wantErr(t, "over another's object", err, objectstore.ErrExist)
	_, err = u.complete(t, objectstore.Cond{IfMatch: v1.Match}, p)
	wantErr(t, "over another version", err, objectstore.ErrChanged)
	f.want(t, "f", []byte("2"))
	if _, err := u.complete(t, objectstore.Cond{IfMatch: v2.Match}, p); err != nil {
		t.Error(err)
	}
	f.want(t, "f", []byte("mine"))
	u = f.upload(t, "f", "another")
	if _, err := u.complete(t, objectstore.Cond{}, u.part(t, 1, []byte("last"))); err != nil {
		t.Error(err)
	}
	f.want(t, "f", []byte("last"))
}

// testCompleteRace: one of several wins, and the others know.
func testCompleteRace(f fixture) {
	t := f.t
	const writers = 8
	var won atomic.Int32
	var g errgroup.Group
	for i := range writers {
		u := f.upload(t, "f", fmt.Sprint(i))
		p := u.part(t, 1, data(1000, byte(i)))
		g.Go(func() error {
			_, err := u.complete(t, objectstore.Cond{IfNoneMatch: true}, p)
			switch {
			case err == nil && won.Swap(int32(i)+1) != 0:
				return errors.New("two have won")
			case err != nil && !errors.Is(err, objectstore.ErrExist):
				return err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	f.want(t, "f", data(1000, byte(won.Load()-1)))
}

// testCompleteTwice: whoever does not know whether it was completed asks again.
func testCompleteTwice(f fixture) {
	t := f.t
	for _, cond := range []objectstore.Cond{{}, {IfNoneMatch: true}} {
		u := f.upload(t, fmt.Sprint(cond.IfNoneMatch), writeID)
		p := u.part(t, 1, []byte("x"))
		first, err := u.complete(t, cond, p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := u.complete(t, cond, p)
		if err != nil || again.ETag != first.ETag || again.Size != 1 {
			t.Errorf("completed as %+v, then %+v, %v", first, again, err)
		}
	}
	v1 := f.put(t, "over", []byte("1"))
	u := f.upload(t, "over", writeID)
	p := u.part(t, 1, []byte("x"))
	for range 2 {
		if _, err := u.complete(t, objectstore.Cond{IfMatch: v1.Match}, p); err != nil {
			t.Error(err)
		}
	}
}

// testCompleteOverTaken: another's object in the place of one that was completed
// is not taken for it.
func testCompleteOverTaken(f fixture) {
	t := f.t
	u := f.upload(t, "f", writeID)
	p := u.part(t, 1, []byte("x"))
	if _, err := u.complete(t, objectstore.Cond{IfNoneMatch: true}, p); err != nil {
		t.Fatal(err)
	}
	f.put(t, "f", []byte("theirs"))
	_, err := u.complete(t, objectstore.Cond{IfNoneMatch: true}, p)
	wantErr(t, "CompleteUpload", err, objectstore.ErrExist)
	f.want(t, "f", []byte("theirs"))
}

func testCompleteWrongPart(f fixture) {
	t := f.t
	u := f.upload(t, "f", writeID)
	p := u.part(t, 1, []byte("x"))
	missing, other := p, p
	missing.Number, other.ETag = 2, `"0123456789abcdef0123456789abcdef"`
	for what, part := range map[string]objectstore.Part{"a part that is not there": missing, "a part that was replaced": other} {
		_, err := u.complete(t, objectstore.Cond{IfNoneMatch: true}, part)
		gone(t, what, err)
	}
	f.missing(t, "f")
}

// testCompleteWrongChecksum: the store has other bytes than the caller believes.
func testCompleteWrongChecksum(f fixture) {
	t := f.t
	u := f.upload(t, "f", writeID)
	p := u.part(t, 1, []byte("x"))
	if p.Checksum == "" {
		t.Skip("the store takes no checksums")
	}
	p.Checksum = u.part(t, 2, []byte("y")).Checksum
	_, err := u.complete(t, objectstore.Cond{IfNoneMatch: true}, p)
	gone(t, "CompleteUpload", err)
	f.missing(t, "f")
}

func testNoUpload(f fixture) {
	t := f.t
	u := f.upload(t, "f", writeID)
	p := u.part(t, 1, []byte("x"))
	src := f.put(t, "src", []byte("x"))
	if err := u.multipart.AbortUpload(t.Context(), u.up); err != nil {
		t.Fatal(err)
	}
	_, err := u.send(t, 1, []byte("x"))
	gone(t, "UploadPart", err)
	_, err = u.copy(t, 1, src, 0, 1)
	gone(t, "CopyPart", err)
	for _, cond := range []objectstore.Cond{{}, {IfNoneMatch: true}} {
		_, err = u.complete(t, cond, p)
		gone(t, "CompleteUpload", err)
	}
	f.missing(t, "f")
	f.put(t, "f", []byte("theirs"))
	_, err = u.complete(t, objectstore.Cond{}, p)
	gone(t, "CompleteUpload over another's object", err)
	f.want(t, "f", []byte("theirs"))
}

func testAbort(f fixture) {
	t := f.t
	u, other := f.upload(t, "f", writeID), f.upload(t, "f", "another")
	u.part(t, 1, []byte("x"))
	p := other.part(t, 1, []byte("y"))
	for range 2 {
		if err := u.multipart.AbortUpload(t.Context(), u.up); err != nil {
			t.Error(err)
		}
	}
	f.missing(t, "f")
	other.finish(t, []byte("y"), p)
	if err := other.multipart.AbortUpload(t.Context(), other.up); err != nil {
		t.Errorf("AbortUpload of what was completed: %v", err)
	}
	f.want(t, "f", []byte("y"))
}
