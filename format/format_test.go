package format

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// smallFile is what parquet-go writes for a few rows.
func smallFile(tb testing.TB) []byte {
	tb.Helper()
	type row struct {
		ID   int64  `parquet:"id"`
		Name string `parquet:"name"`
	}
	var buf bytes.Buffer
	if err := parquet.Write(&buf, []row{{1, "a"}, {2, "b"}, {3, "c"}}); err != nil {
		tb.Fatal(err)
	}
	return buf.Bytes()
}

func TestCheckAcceptsARealFileAndNoPrefixOfIt(t *testing.T) {
	file := smallFile(t)
	if err := Check("parquet", "f", bytes.NewReader(file), int64(len(file))); err != nil {
		t.Errorf("the whole file: %v", err)
	}
	for n := range file {
		var bad *Error
		err := Check("parquet", "f", bytes.NewReader(file[:n]), int64(n))
		if !errors.As(err, &bad) || bad.Reason == "" || bad.Format != "parquet" {
			t.Errorf("cut at %d of %d: %v, want an *Error", n, len(file), err)
		}
	}
}

func TestCheck(t *testing.T) {
	body := "\x15\x04\x00\x00"
	for _, tt := range []struct {
		name, format, data string
		ok                 bool
	}{
		{"shortest", "parquet", "PAR1" + "x" + "\x01\x00\x00\x00PAR1", true},
		{"encrypted footer", "parquet", "PARE" + body + "\x04\x00\x00\x00PARE", true},
		{"ends differ", "parquet", "PAR1" + body + "\x04\x00\x00\x00PARE", false},
		{"no room for the footer", "parquet", "PAR1" + body + "\x05\x00\x00\x00PAR1", false},
		{"length of 4 GiB", "parquet", "PAR1" + body + "\xff\xff\xff\xffPAR1", false},
		{"no footer", "parquet", "PAR1" + "\x00\x00\x00\x00PAR1", false},
		{"magics overlap", "parquet", "PAR1PAR1", false},
		{"text", "parquet", "id,name\n1,a\n2,b\n", false},
		{"empty", "parquet", "", false},
		{"hole at the start", "parquet", "\x00\x00\x00\x00" + body + "\x04\x00\x00\x00PAR1", false},
		{"any, no format", "", "x", true},
		{"any, a format of later", "orc", "x", true},
	} {
		err := Check(tt.format, "f", bytes.NewReader([]byte(tt.data)), int64(len(tt.data)))
		var bad *Error
		if (err == nil) != tt.ok || err != nil && !errors.As(err, &bad) {
			t.Errorf("%s: %v, want ok %v", tt.name, err, tt.ok)
		}
	}
}

// counting counts the bytes read of a file of any size.
type counting struct{ read int64 }

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	c.read += int64(len(p))
	copy(p, "PAR1")
	if off > 0 {
		copy(p, "\x10\x00\x00\x00PAR1")
	}
	return len(p), nil
}

func TestCheckReadsTwelveBytes(t *testing.T) {
	c := new(counting)
	if err := Check("parquet", "f", c, 1<<40); err != nil || c.read != 12 {
		t.Errorf("%v after %d bytes; want 12", err, c.read)
	}
}

func TestCheckPassesReadErrorsOn(t *testing.T) {
	file := smallFile(t)
	err := Check("parquet", "f", bytes.NewReader(file[:20]), int64(len(file)))
	var bad *Error
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &bad) {
		t.Errorf("a file shorter than told: %v, want io.ErrUnexpectedEOF and no *Error", err)
	}
}

func TestErrorQuotesTheName(t *testing.T) {
	err := &Error{Format: "parquet", Name: "a\x1b[2J", Reason: "cut"}
	if got, want := err.Error(), `"a\x1b[2J" is not a complete parquet file: cut`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestDetect(t *testing.T) {
	for head, want := range map[string]string{
		"PAR1...": "parquet", "PARE": "parquet", "ORC\n": "orc", "Obj\x01": "avro", "Obj\x02": "", "{}": "", "": "", "PAR": "",
	} {
		if got := Detect([]byte(head)); got != want {
			t.Errorf("Detect(%q) = %q, want %q", head, got, want)
		}
	}
}

// FuzzCheck holds that no damage makes the check panic or accept a file whose
// ends are not there.
func FuzzCheck(f *testing.F) {
	file := smallFile(f)
	f.Add(file)
	f.Add(file[:len(file)-1])
	f.Add([]byte("PAR1PAR1PAR1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := Check("parquet", "f", bytes.NewReader(data), int64(len(data)))
		whole := len(data) >= 12 && (bytes.HasPrefix(data, []byte("PAR1")) && bytes.HasSuffix(data, []byte("PAR1")) ||
			bytes.HasPrefix(data, []byte("PARE")) && bytes.HasSuffix(data, []byte("PARE")))
		if err == nil && !whole {
			t.Errorf("accepted %q", data)
		}
	})
}
