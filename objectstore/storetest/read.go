package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func testReadRanges(f fixture) {
	t := f.t
	const mib = 1 << 20
	for _, size := range []int{0, 1, 4095, 4096, 4097, mib - 1, mib, mib + 1} {
		key, want := fmt.Sprint("f", size), data(size, 1)
		o := f.put(t, key, want)
		for _, r := range []struct{ off, n int64 }{
			{0, int64(size)},
			{0, 2 * mib},
			{0, 0},
			{0, 1},
			{1, 4096},
			{4095, 2},
			{int64(size) - 1, 1},
			{int64(size) - 1, 100},
			{int64(size), 1},
			{int64(size) + 5, 7},
		} {
			if r.off < 0 {
				continue
			}
			got, err := readRange(t.Context(), f, o, r.off, r.n)
			lo := min(r.off, int64(size))
			hi := min(lo+r.n, int64(size))
			if err != nil || !bytes.Equal(got, want[lo:hi]) {
				t.Errorf("size %d: Read(%d, %d) = %d bytes, %v; want [%d, %d)", size, r.off, r.n, len(got), err, lo, hi)
			}
		}
	}
}

func testReadPinned(f fixture) {
	t := f.t
	v1 := f.put(t, "f", data(100, 1))
	got, body, err := f.Read(t.Context(), v1, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if got.ETag != v1.ETag || got.Size != 100 || got.Location != v1.Location {
		t.Errorf("Read tells %+v, want %+v", got, v1)
	}
	if err = body.Close(); err != nil {
		t.Error(err)
	}
	v2 := f.put(t, "f", data(100, 2))
	if v1.ETag == v2.ETag {
		t.Fatalf("two versions with ETag %s", v1.ETag)
	}
	_, err = readRange(t.Context(), f, v1, 0, 100)
	wantErr(t, "Read of the old version", err, objectstore.ErrChanged)
	b, err := readRange(t.Context(), f, v2, 0, 100)
	if err != nil || !bytes.Equal(b, data(100, 2)) {
		t.Errorf("Read of the new version: %v", err)
	}
}

func testReadMissing(f fixture) {
	t := f.t
	o := f.put(t, "d/f", []byte("x"))
	remove(t, f, "d/f")
	_, err := readRange(t.Context(), f, o, 0, 1)
	wantErr(t, "Read of a removed object", err, objectstore.ErrNotExist)
	o.Location = f.at("d")
	_, err = readRange(t.Context(), f, o, 0, 1)
	wantErr(t, "Read of a directory", err, objectstore.ErrNotExist)
}

// testReadAny reads whatever version is there: of a size that is not known.
func testReadAny(f fixture) {
	t := f.t
	for _, want := range [][]byte{data(100, 1), data(200, 2), nil} {
		made := f.put(t, "f", want)
		size := int64(len(want))
		for _, r := range []struct{ off, n int64 }{{0, 1000}, {0, 50}, {0, 0}, {90, 5}, {size, 1}, {size + 5, 7}} {
			got, body, err := f.Read(t.Context(), objectstore.Object{Location: f.at("f"), Size: 7}, r.off, r.n)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(body)
			if err = errors.Join(err, body.Close()); err != nil {
				t.Error(err)
			}
			lo := min(r.off, size)
			if hi := min(lo+r.n, size); !bytes.Equal(b, want[lo:hi]) {
				t.Errorf("size %d: Read(%d, %d) = %d bytes, want [%d, %d)", size, r.off, r.n, len(b), lo, hi)
			}
			if got.ETag != made.ETag || got.Size != size || got.Location != made.Location {
				t.Errorf("Read(%d, %d) tells %+v, want %+v", r.off, r.n, got, made)
			}
		}
	}
	_, err := readRange(t.Context(), f, objectstore.Object{Location: f.at("no")}, 0, 1)
	wantErr(t, "Read of nothing", err, objectstore.ErrNotExist)
	f.put(t, "d/f", nil)
	_, err = readRange(t.Context(), f, objectstore.Object{Location: f.at("d")}, 0, 1)
	wantErr(t, "Read of a directory", err, objectstore.ErrNotExist)
}

func testPin(f fixture) {
	t := f.t
	want := data(5000, 1)
	pinReads(t, f.Store, f.put(t, "f", want), want)
	o := f.put(t, "g", want)
	p, err := objectstore.Pin(t.Context(), f.Store, o)
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, p)
	f.put(t, "g", data(5000, 2))
	got := make([]byte, 5000)
	n, err := p.ReadAt(t.Context(), got, 0)
	if _, ok := f.Store.(objectstore.Opener); !ok {
		wantErr(t, "ReadAt after a replacement", err, objectstore.ErrChanged)
	} else if err != nil || !bytes.Equal(got[:n], want) {
		t.Errorf("ReadAt after a replacement: %d bytes of another version, or error %v", n, err)
	}
}

// testPinReads is Pin over Read alone.
func testPinReads(f fixture) {
	t := f.t
	plain := struct{ objectstore.Store }{f.Store}
	want := data(5000, 1)
	o := f.put(t, "f", want)
	pinReads(t, plain, o, want)
	p, err := objectstore.Pin(t.Context(), plain, o)
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, p)
	f.put(t, "f", data(5000, 2))
	_, err = p.ReadAt(t.Context(), make([]byte, 10), 0)
	wantErr(t, "ReadAt after a replacement", err, objectstore.ErrChanged)
}

func pinReads(t *testing.T, s objectstore.Store, o objectstore.Object, want []byte) {
	t.Helper()
	p, err := objectstore.Pin(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, p)
	size := len(want)
	for _, r := range []struct{ off, n, want int }{
		{0, 10, 10}, {0, size, size}, {size - 5, 10, 5}, {size, 1, 0}, {size + 10, 1, 0}, {7, 0, 0},
	} {
		b := make([]byte, r.n)
		n, err := p.ReadAt(t.Context(), b, int64(r.off))
		if n != r.want || r.want > 0 && !bytes.Equal(b[:n], want[r.off:r.off+n]) {
			t.Errorf("ReadAt(%d bytes, %d) = %d bytes, want %d", r.n, r.off, n, r.want)
		}
		if r.want < r.n != errors.Is(err, io.EOF) || err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("ReadAt(%d bytes, %d): error %v", r.n, r.off, err)
		}
	}
}

func testOpenObject(f fixture) {
	t := f.t
	opener, ok := f.Store.(objectstore.Opener)
	if !ok {
		t.Skip("the store is no Opener")
	}
	v1 := f.put(t, "f", data(100, 1))
	file, err := opener.OpenObject(t.Context(), v1)
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, file)
	f.put(t, "f", data(100, 2))
	got, err := io.ReadAll(file)
	if err != nil || !bytes.Equal(got, data(100, 1)) {
		t.Errorf("the open file is no longer version 1: %v", err)
	}
	_, err = opener.OpenObject(t.Context(), v1)
	wantErr(t, "OpenObject of the old version", err, objectstore.ErrChanged)
	v1.Location = f.at("no")
	_, err = opener.OpenObject(t.Context(), v1)
	wantErr(t, "OpenObject of nothing", err, objectstore.ErrNotExist)
}

func testCancelled(f fixture) {
	t := f.t
	o := f.put(t, "f", []byte("x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Stat(ctx, o.Location)
	wantErr(t, "Stat", err, context.Canceled)
	_, err = readRange(ctx, f, o, 0, 1)
	wantErr(t, "Read", err, context.Canceled)
	_, err = f.Put(ctx, f.at("g"), bytes.NewReader(nil), 0, objectstore.PutOptions{})
	wantErr(t, "Put", err, context.Canceled)
	_, err = f.Copy(ctx, f.at("g"), o, objectstore.PutOptions{})
	wantErr(t, "Copy", err, context.Canceled)
	err = nil
	for _, e := range f.List(ctx, f.dir, objectstore.ListOptions{}) {
		err = e
	}
	wantErr(t, "List", err, context.Canceled)
	for _, err := range f.Delete(ctx, []objectstore.Location{o.Location}) {
		wantErr(t, "Delete", err, context.Canceled)
	}
	f.want(t, "f", []byte("x"))
	f.missing(t, "g")
}
