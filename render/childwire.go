package render

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// What parent and child say to each other over their socket. The child is told its job
// first, and its outcome is the last that it says; between them it asks for ranges of the
// file, any number at once, and is answered in any order. All numbers are big-endian.
const (
	frameJob     = 'J' // to the child, once: JSON of a job
	frameRange   = 'R' // from the child: id, offset, length
	frameBytes   = 'B' // to the child: id, length and the bytes
	frameFailed  = 'F' // to the child: id; the range could not be read
	frameOutcome = 'O' // from the child, once: JSON of an outcome

	// maxRange is the most bytes of one range; longer reads are several ranges.
	maxRange = 1 << 20
	// maxJob bounds the JSON of a job and of an outcome: a table of 10,000 columns of
	// long types.
	maxJob = 16 << 20
)

// job is what a child is to do.
type job struct {
	Spec Spec
	Size int64 // of the file
}

// outcome is how it went.
type outcome struct {
	Done   bool   // all text is written
	Source bool   // a range could not be read: the parent knows why
	Fault  *Error // what is wrong with the file or the ask, if the child could tell
	Text   string // any other error, or what is known of a panic
}

// header begins each frame. ID and Off are of ranges alone.
type header struct {
	Kind   byte
	ID     uint32
	Off    int64
	Length uint32
}

const headerSize = 1 + 4 + 8 + 4

func (h header) append(b []byte) []byte {
	b = append(b, h.Kind)
	b = binary.BigEndian.AppendUint32(b, h.ID)
	b = binary.BigEndian.AppendUint64(b, uint64(h.Off))
	return binary.BigEndian.AppendUint32(b, h.Length)
}

func readHeader(r io.Reader) (header, error) {
	var b [headerSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return header{}, err
	}
	return header{
		Kind: b[0], ID: binary.BigEndian.Uint32(b[1:]), Off: int64(binary.BigEndian.Uint64(b[5:])),
		Length: binary.BigEndian.Uint32(b[13:]),
	}, nil
}

// writeJSON writes a frame of v.
func writeJSON(w io.Writer, kind byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(text) > maxJob {
		return fmt.Errorf("%d bytes of JSON, over %d", len(text), maxJob)
	}
	_, err = w.Write(append(header{Kind: kind, Length: uint32(len(text))}.append(nil), text...))
	return err
}

// readJSON reads what follows the header of a frame into v.
func readJSON(r io.Reader, h header, v any) error {
	if h.Length > maxJob {
		return fmt.Errorf("%d bytes of JSON, over %d", h.Length, maxJob)
	}
	text := make([]byte, h.Length)
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}
