package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// checkBytes checks a file that is data.
func checkBytes(format, name string, data []byte) error {
	return Check(format, name, bytes.NewReader(data), int64(len(data)))
}

// realFiles are the files of testdata, which writers of many kinds made (make.py), by
// name.
func realFiles(tb testing.TB) map[string][]byte {
	tb.Helper()
	files := map[string][]byte{}
	entries, err := os.ReadDir("testdata")
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() || formatOf(e.Name()) == "" {
			continue
		}
		data, err := os.ReadFile(filepath.Join("testdata", e.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		files[e.Name()] = data
	}
	if len(files) < 30 {
		tb.Fatalf("%d files in testdata, want those that make.py writes", len(files))
	}
	return files
}

// formatOf is the format of a file of testdata.
func formatOf(name string) string {
	switch _, rest, _ := strings.Cut(name, ".json"); {
	case strings.HasSuffix(name, ".json"), strings.HasPrefix(rest, "."):
		return "json"
	case strings.HasSuffix(name, ".parquet"), strings.HasSuffix(name, ".orc"), strings.HasSuffix(name, ".avro"):
		return strings.TrimPrefix(filepath.Ext(name), ".")
	}
	return ""
}

func TestFormatAcceptsFilesOfWriters(t *testing.T) {
	for name, data := range realFiles(t) {
		format := formatOf(name)
		if err := checkBytes(format, name, data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := Detect(data); format != "json" && got != format {
			t.Errorf("Detect(%s) = %q, want %q", name, got, format)
		}
	}
}

// TestFormatAcceptsNoPrefix: not one byte may be missing; but an Avro file that ends
// after a block is one of fewer rows.
func TestFormatAcceptsNoPrefix(t *testing.T) {
	for name, data := range realFiles(t) {
		format := formatOf(name)
		if format == "json" {
			continue
		}
		for n := range data {
			var bad *Error
			err := checkBytes(format, name, data[:n])
			if format == "avro" && err == nil && n > avroSync && bytes.HasSuffix(data, data[n-avroSync:n]) {
				continue
			}
			if !errors.As(err, &bad) || bad.Reason == "" || bad.Format != format || strings.Contains(bad.Reason, "panic") {
				t.Errorf("%s, %d bytes of %d: %v, want an *Error", name, n, len(data), err)
			}
		}
	}
}

// TestFormatSurvivesFlippedBytes: whatever a damaged file is taken for, the check
// ends, does not panic, and takes no memory that the file asks for.
func TestFormatSurvivesFlippedBytes(t *testing.T) {
	for name, data := range realFiles(t) {
		flipped := bytes.Clone(data)
		for i := range data {
			for _, mask := range []byte{0x01, 0x80, 0xff} {
				flipped[i] = data[i] ^ mask
				ask := mask == 0xff && i%8 == 0
				before := allocated(ask)
				err := checkBytes(formatOf(name), name, flipped)
				if took := allocated(ask) - before; took > window+16<<10 {
					t.Errorf("%s, byte %d ^ %#x: %d bytes allocated", name, i, mask, took)
				}
				if bad := (*Error)(nil); err != nil && !errors.As(err, &bad) || err != nil && strings.Contains(err.Error(), "panic") {
					t.Errorf("%s, byte %d ^ %#x: %v", name, i, mask, err)
				}
			}
			flipped[i] = data[i]
		}
	}
}

// allocated is what was allocated so far, if it is asked for: asking takes time.
func allocated(ask bool) uint64 {
	if !ask {
		return 0
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestFormatIsTotal(t *testing.T) {
	for format, want := range map[string]struct{ checked, empty, noise bool }{
		"parquet":  {checked: true},
		"orc":      {checked: true},
		"avro":     {checked: true},
		"json":     {checked: true, empty: true},
		"csv":      {empty: true, noise: true},
		"text":     {empty: true, noise: true},
		"sequence": {empty: true, noise: true},
		"rc":       {empty: true, noise: true},
		"":         {empty: true, noise: true},
		"PARQUET":  {empty: true, noise: true},
		"lance":    {empty: true, noise: true},
	} {
		if got := Checked(format); got != want.checked {
			t.Errorf("Checked(%q) = %v, want %v", format, got, want.checked)
		}
		if err := checkBytes(format, "f", nil); (err == nil) != want.empty {
			t.Errorf("%q, an empty file: %v, want accepted %v", format, err, want.empty)
		}
		if err := checkBytes(format, "f", []byte("noise, noise, noise, noise\n")); (err == nil) != want.noise {
			t.Errorf("%q, noise: %v, want accepted %v", format, err, want.noise)
		}
	}
}

// flaws holds that checks say what is wanted: "" for a file that is accepted.
func flaws(t *testing.T, format string, files []struct{ name, data, want string }) {
	t.Helper()
	for _, f := range files {
		err := checkBytes(format, f.name, []byte(f.data))
		switch bad := (*Error)(nil); {
		case f.want == "" && err == nil:
		case f.want != "" && errors.As(err, &bad) && strings.Contains(bad.Reason, f.want):
		default:
			t.Errorf("%s %q, %.60q: %v, want %q", format, f.name, f.data, err, f.want)
		}
	}
}

// huge is a file of which only the ends are told.
type huge struct {
	size       int64
	head, tail string
	read       int64
}

func (h *huge) ReadAt(p []byte, off int64) (int, error) {
	h.read += int64(len(p))
	clear(p)
	for i := range p {
		if at := off + int64(i); at < int64(len(h.head)) {
			p[i] = h.head[at]
		} else if at -= h.size - int64(len(h.tail)); at >= 0 {
			p[i] = h.tail[at]
		}
	}
	return len(p), nil
}

// TestFormatReadsLittle: of a file of 1 TiB that claims to be longer still, or whose
// footer is, as little is read and kept as of any other.
func TestFormatReadsLittle(t *testing.T) {
	long := "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
	for _, f := range []struct{ format, name, head, tail string }{
		{"parquet", "4 GiB of footer", "PAR1", "\xff\xff\xff\xffPAR1"},
		{"parquet", "a list that has no end", "PAR1", "\x15\x02\x19\xfc" + long + "\x0d\x00\x00\x00PAR1"},
		{"parquet", "encrypted", "PARE", "\xff\xff\xff\xffPARE"},
		{"orc", "a footer that has no end", "ORC", "\x08" + long + "\x82\xf4\x03\x03ORC\x10"},
		{"avro", "metadata that has no end", "Obj\x01" + long + "\x16avro.schema" + long, ""},
		{"avro", "nothing but metadata", "Obj\x01\x04\x16avro.schema\x04{}\x80\x80\x80\x0a", "x"},
		{"json", "a string that has no end", `{"a":"`, ""},
		{"csv", "f.gz", "\x1f\x8b\x08", ""},
	} {
		h := &huge{size: 1 << 40, head: f.head, tail: f.tail}
		before := allocated(true)
		err := Check(f.format, f.name, h, h.size)
		if took := allocated(true) - before; took > window+16<<10 || h.read > 3*window {
			t.Errorf("%s, %s: %d bytes read, %d allocated (%v)", f.format, f.name, h.read, took, err)
		}
		if h.head[0] != '{' && h.head[0] != 0x1f && err == nil {
			t.Errorf("%s, %s: accepted", f.format, f.name)
		}
	}
}

func TestFormatPassesReadErrorsOn(t *testing.T) {
	for name, data := range realFiles(t) {
		if len(data) < 64 {
			continue
		}
		err := Check(formatOf(name), name, bytes.NewReader(data[:2]), int64(len(data)))
		var bad *Error
		if !errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &bad) {
			t.Errorf("%s, shorter than told: %v, want io.ErrUnexpectedEOF and no *Error", name, err)
		}
	}
}

func TestFormatPanicIsAFailedCheck(t *testing.T) {
	err := Check("parquet", "f", nil, 100)
	if bad := (*Error)(nil); !errors.As(err, &bad) || !strings.Contains(bad.Reason, "panicked") {
		t.Errorf("%v, want an *Error of a panic", err)
	}
}

func TestFormatErrorQuotesTheName(t *testing.T) {
	err := &Error{Format: "parquet", Name: "a\x1b[2J", Reason: "cut"}
	if got, want := err.Error(), `"a\x1b[2J" is not a complete parquet file: cut`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestFormatDetect(t *testing.T) {
	for head, want := range map[string]string{
		"PAR1...": "parquet", "PARE": "parquet", "ORC\n": "orc", "Obj\x01": "avro", "Obj\x02": "", "{}": "", "": "", "PAR": "",
	} {
		if got := Detect([]byte(head)); got != want {
			t.Errorf("Detect(%q) = %q, want %q", head, got, want)
		}
	}
	for end, want := range map[string]string{"\x10PAR1": "parquet", "PARE": "parquet", "ORC\x14": "orc", "ORC": "", "PAR1\n": "", "": ""} {
		if got := DetectEnd([]byte(end)); got != want {
			t.Errorf("DetectEnd(%q) = %q, want %q", end, got, want)
		}
	}
}

// le32 is n as the last bytes of a Parquet file have it.
func le32(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }

// fuzz runs a target over the real files of a format.
func fuzz(f *testing.F, format string, hold func(t *testing.T, data []byte, err error)) {
	f.Helper()
	for name, data := range realFiles(f) {
		if formatOf(name) == format {
			f.Add(data)
			f.Add(data[:len(data)-1])
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := checkBytes(format, "f", data)
		if bad := (*Error)(nil); err != nil && !errors.As(err, &bad) || err != nil && strings.Contains(err.Error(), "panic") {
			t.Error(err)
		}
		hold(t, data, err)
	})
}

// endsIn holds that an accepted file has the magics at its ends.
func endsIn(ends ...string) func(t *testing.T, data []byte, err error) {
	return func(t *testing.T, data []byte, err error) {
		t.Helper()
		for i := 0; i < len(ends); i += 2 {
			if bytes.HasPrefix(data, []byte(ends[i])) && bytes.HasSuffix(data, []byte(ends[i+1])) {
				return
			}
		}
		if err == nil {
			t.Error(fmt.Errorf("accepted %q", data))
		}
	}
}

func FuzzCheckParquet(f *testing.F) { fuzz(f, "parquet", endsIn("PAR1", "PAR1", "PARE", "PARE")) }
func FuzzCheckORC(f *testing.F)     { fuzz(f, "orc", endsIn("ORC", "")) }
func FuzzCheckAvro(f *testing.F)    { fuzz(f, "avro", endsIn("Obj\x01", "")) }
