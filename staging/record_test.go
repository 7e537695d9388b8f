package staging

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func FuzzRecordRoundTrip(f *testing.F) {
	f.Add("/lake", "t/dt=1/f", "db/t/f", "etag", int64(5), true)
	f.Add("/la\xffke", "t/caf\xe9\n\x00", "\xed\xa0\x80", "", int64(0), false)
	f.Fuzz(func(t *testing.T, bucket, key, path, etag string, size int64, withBase bool) {
		want := Record{
			Version: 1, ID: uuid.NewString(), State: Torn, Path: path, Size: size,
			Target: objectstore.Location{Bucket: bucket, Key: key}, Prefix: objectstore.Location{Bucket: bucket},
			Created: day, Changed: day,
		}
		if withBase {
			want.Base = &objectstore.Object{Location: want.Target, Size: size, ETag: strings.ToValidUTF8(etag, "?")}
			want.Upload = &objectstore.Upload{Location: want.Target, ID: "1"}
			want.Aborts = []objectstore.Upload{{Location: want.Target, ID: "2"}, {Location: objectstore.Location{Bucket: "b", Key: "k"}, ID: "3"}}
		}
		raw, err := encodeRecord(want)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		got, err := parseRecord(want.ID, raw)
		if bucket == "" || key == "" || size < 0 || withBase && size > maxSize {
			if err == nil {
				t.Errorf("a record that is none was read: %s", raw)
			}
			return
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("round trip: %v\n got %+v\nwant %+v", err, got, want)
		}
	})
}

func FuzzParseRecord(f *testing.F) {
	id := "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	raw, err := encodeRecord(Record{
		Version: 1, ID: id, State: Staged, Target: objectstore.Location{Bucket: "/b", Key: "k\xff"},
		Base: &objectstore.Object{Size: 4}, Data: "data." + id,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"version":1,"exact_bytes":{"target_key":"//8="},"base":null}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte("null"))
	large := uploadRecord(3)
	large.ID = id
	if raw, err = encodeRecord(large); err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(batchRecord))
	f.Add([]byte(`{"version":1,"state":"moving","exact_bytes":{"members":["/w==",null]},"members":[{"id":"x"},{}]}`))
	f.Add([]byte(`{"version":1,"exact_bytes":{"abort_keys":["/w==",null,"/w=="]},"aborts":[{"Key":"k"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := parseRecord(id, raw)
		if err != nil {
			return
		}
		if r.ID != id || r.Version != 1 || r.Target.Key == "" || r.Size < 0 || r.Data != "" && !isDataName(r.Data) {
			t.Errorf("accepted: %+v", r)
		}
		if (len(r.Members) > 0) != r.isBatch() {
			t.Errorf("accepted: %d members in state %q", len(r.Members), r.State)
		}
		again, err := encodeRecord(r)
		if err != nil {
			t.Fatalf("encode of what was parsed: %v", err)
		}
		if _, err := parseRecord(id, again); err != nil {
			t.Errorf("a parsed record does not parse again: %v", err)
		}
	})
}

func TestIsDataName(t *testing.T) {
	for name, want := range map[string]bool{
		"data": true, "data.6ba7b810-9dad-11d1-80b4-00c04fd430c8": true,
		"": false, "data.": false, "data.x": false, "data/../x": false, "blocks": false, "datas": false,
	} {
		if got := isDataName(name); got != want {
			t.Errorf("isDataName(%q) = %v", name, got)
		}
	}
}

func TestEarly(t *testing.T) {
	var e early
	var got [][2]int64
	for _, w := range [][2]int64{{0, 4 << 20}, {4 << 20, 8 << 20}, {8 << 20, 9 << 20}, {0, 1 << 20}, {1 << 20, 12 << 20}} {
		if from, n, due := e.wrote(w[0], w[1]); due {
			got = append(got, [2]int64{from, n})
		}
	}
	if want := [][2]int64{{0, 8 << 20}, {0, 12 << 20}}; !reflect.DeepEqual(got, want) {
		t.Errorf("write-back of %v, want %v", got, want)
	}
}
