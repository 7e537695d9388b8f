package staging

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// TestOpenKeepsACompleteUpload of a publish that was under way, and no other.
func TestOpenKeepsACompleteUpload(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(f *File, z *Frozen) error
		kept bool
	}{
		{"publishing", func(_ *File, z *Frozen) error {
			_, _, err := z.Upload(t.Context())
			return errors.Join(err, z.Secure(t.Context()), z.SetState(Publishing, "", true))
		}, true},
		{"staged", func(*File, *Frozen) error { return nil }, false},
		{"failed", func(_ *File, z *Frozen) error {
			_, _, err := z.Upload(t.Context())
			return errors.Join(err, z.SetState(Failed, "down", true))
		}, false},
		{"publishing, not complete", func(_ *File, z *Frozen) error { return z.SetState(Publishing, "", true) }, false},
		{"written to after it", func(f *File, z *Frozen) error {
			_, _, err := z.Upload(t.Context())
			err = errors.Join(err, z.Secure(t.Context()), z.SetState(Publishing, "", true))
			z.Release()
			put(t, f, 0, []byte("x"))
			return err
		}, false},
		{"forgotten", func(_ *File, z *Frozen) error {
			_, _, err := z.Upload(t.Context())
			return errors.Join(err, z.SetState(Publishing, "", true), z.ForgetUpload(t.Context()))
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, e := newCloud(t, testPart)
			f := e.final(t)
			put(t, f, 0, pattern(1, 3*testPart+5))
			e.quiet(t)
			z := freeze(t, f)
			if err := tt.do(f, z); err != nil {
				t.Fatal(err)
			}
			z.Release()
			e.quiet(t)
			e.opts.PartSize = 7 * testPart // as another mount may have it
			e.reopen(t)
			f = only(t, e.area)
			rec := f.Record()
			if kept := rec.Upload != nil; kept != tt.kept || kept != (len(rec.Parts) == 4) {
				t.Fatalf("record %+v", rec)
			}
			if err := e.area.AbortUploads(t.Context()); err != nil || (len(c.left()) == 1) != tt.kept {
				t.Errorf("AbortUploads: %v, left %q", err, c.left())
			}
			c.take()
			want := readAll(t, f)
			c.publishFile(t, f)
			if tt.kept {
				c.wantLog(t, "recovery", "complete")
			}
			c.wantObject(t, e, want)
		})
	}
}

// TestACompleteUploadNeedsItsSize: a change of it says that other bytes came after.
func TestACompleteUploadNeedsItsSize(t *testing.T) {
	_, e := newCloud(t, testPart)
	f := e.final(t)
	put(t, f, 0, pattern(1, 3*testPart))
	z := freeze(t, f)
	_, _, err := z.Upload(t.Context())
	if err = errors.Join(err, z.SetState(Publishing, "", true)); err != nil {
		t.Fatal(err)
	}
	z.Release()
	if err := os.Truncate(filepath.Join(e.area.path(f.ID()), dataName), 3*testPart-1); err != nil {
		t.Fatal(err)
	}
	e.reopen(t)
	if rec := only(t, e.area).Record(); rec.Upload != nil || len(rec.Aborts) != 1 {
		t.Errorf("record %+v", rec)
	}
}

// TestOpenOfALostWriteWithAnUpload: its publish took effect, or Drop was cut short.
func TestOpenOfALostWriteWithAnUpload(t *testing.T) {
	c, e := newCloud(t, testPart)
	f := begun(t, c, e)
	if err := os.Remove(filepath.Join(e.area.path(f.ID()), dataName)); err != nil {
		t.Fatal(err)
	}
	e.reopen(t)
	f = only(t, e.area)
	if !f.Lost() || len(f.Record().Aborts) != 1 {
		t.Errorf("lost %v, %+v", f.Lost(), f.Record())
	}
	if err := f.Drop(); err != nil {
		t.Fatal(err)
	}
	e.quiet(t)
	c.wantLog(t, "Drop", "abort")
	if got := names(t, e.dir); len(got) != 1 {
		t.Errorf("staging directory has %q", got)
	}
}

func uploadRecord(parts int) Record {
	rec := Record{
		Version: 1, ID: "6ba7b810-9dad-11d1-80b4-00c04fd430c8", State: Publishing, Created: day, Changed: day,
		Target: objectstore.Location{Bucket: "lake", Key: "t/caf\xe9"}, Sum: encodeSum(7),
		Copied:     &objectstore.Object{Location: objectstore.Location{Bucket: "lake", Key: "s/caf\xe9"}, Size: 9, ETag: "e"},
		CopiedSize: 8,
	}
	rec.Upload = &objectstore.Upload{Location: rec.Target, ID: strings.Repeat("i", 200), Checksum: "crc32c", FullObject: true}
	for i := range parts {
		rec.Parts = append(rec.Parts, objectstore.Part{
			Number: i + 1, Size: objectstore.MaxPartSize, ETag: `"` + strings.Repeat("f", 64) + `"`, Checksum: strings.Repeat("c", 44),
		})
	}
	for _, key := range []string{"a", "b\xff", "c"} {
		rec.Aborts = append(rec.Aborts, objectstore.Upload{Location: objectstore.Location{Bucket: "lake", Key: key}, ID: "id" + fmt.Sprint(len(key))})
	}
	return rec
}

func TestRecordOfTheLargestUpload(t *testing.T) {
	want := uploadRecord(objectstore.MaxParts)
	raw, err := encodeRecord(want)
	if err != nil || len(raw) > recordMax {
		t.Fatalf("%v, %d bytes", err, len(raw))
	}
	got, err := parseRecord(want.ID, raw)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: other than before", err)
	}
}

func TestRecordsOfNoUploadAreRefused(t *testing.T) {
	for name, damage := range map[string]func(r *Record){
		"parts of no upload":  func(r *Record) { r.Upload = nil },
		"no id":               func(r *Record) { r.Upload.ID = "" },
		"no key":              func(r *Record) { r.Upload.Key = "" },
		"abort of nothing":    func(r *Record) { r.Aborts[1].ID = "" },
		"part 0":              func(r *Record) { r.Parts[0].Number = 0 },
		"a part twice":        func(r *Record) { r.Parts[1].Number = 1 },
		"part 10001":          func(r *Record) { r.Parts[2].Number = objectstore.MaxParts + 1 },
		"an empty part":       func(r *Record) { r.Parts[0].Size = 0 },
		"a huge part":         func(r *Record) { r.Parts[0].Size++ },
		"a part without ETag": func(r *Record) { r.Parts[0].ETag = "" },
		"more parts than can be": func(r *Record) {
			for range objectstore.MaxParts {
				r.Parts = append(r.Parts, r.Parts[0])
			}
		},
		"a checksum of others": func(r *Record) { r.Sum = "md5:AAAA" },
		"half a checksum":      func(r *Record) { r.Sum = "crc32c:AA==" },
		"more copied than is":  func(r *Record) { r.CopiedSize = 10 },
		"copied of nothing":    func(r *Record) { r.Copied = nil },
	} {
		rec := uploadRecord(3)
		damage(&rec)
		raw, err := encodeRecord(rec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseRecord(rec.ID, raw); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
