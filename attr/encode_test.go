package attr

import (
	"bytes"
	"reflect"
	"testing"
	"time"
)

func FuzzDecode(f *testing.F) {
	mode, id, then := uint32(0o640), uint32(1<<32-1), time.Unix(-1, 999_999_999).UTC()
	f.Add(encode(entry{}))
	f.Add(encode(entry{etag: "e", Attributes: Attributes{Made: true}}))
	f.Add(encode(entry{etag: "etag", Attributes: Attributes{Mode: &mode, UID: &id, GID: &id, MTime: &then}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decode(b)
		if err != nil {
			return
		}
		again, err := decode(encode(e))
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Errorf("%x: decoded %+v, encoded and decoded again %+v, %v", b, e, again, err)
		}
	})
}

func FuzzEncode(f *testing.F) {
	f.Add("etag", uint32(1), uint32(2), uint32(3), int64(-4), uint32(5), byte(31))
	f.Fuzz(func(t *testing.T, etag string, mode, uid, gid uint32, sec int64, nsec uint32, set byte) {
		mtime := time.Unix(sec%(1<<40), int64(nsec%1_000_000_000)).UTC()
		want := entry{etag: etag, Attributes: Attributes{Made: set&16 != 0}}
		for bit, field := range []func(){
			func() { want.Mode = &mode }, func() { want.UID = &uid },
			func() { want.GID = &gid }, func() { want.MTime = &mtime },
		} {
			if set&(1<<bit) != 0 {
				field()
			}
		}
		b := encode(want)
		got, err := decode(b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
		for n := range b {
			if _, err := decode(b[:n]); err == nil {
				t.Errorf("the first %d bytes of %x decode", n, b)
			}
		}
		if _, err := decode(append(bytes.Clone(b), 0)); err == nil {
			t.Errorf("%x and one more byte decodes", b)
		}
	})
}
