// Package mutated makes damaged files out of whole ones: those of format/testdata,
// which writers of many kinds made.
//
// The same seed makes the same files. What a file is damaged by is what happens to
// files: bits that flip, an end that is missing, blocks of zeros, bytes that are lost or
// there twice, an end of another file; and lengths that are not so, at those places
// where each format has them.
package mutated

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// OtherEnd is how File.How begins of a file with the end of another.
const OtherEnd = "the last"

// File is a file, or a damaged copy of it.
type File struct {
	Name   string // of the file that it is of: "duckdb.parquet"
	Format string // "parquet", "orc" or "avro"
	Data   []byte
	How    string // it is damaged, for people; "": it is whole
}

// Whole are the files of the folder dir (format/testdata) in the formats that
// File.Format may be, by name.
func Whole(tb testing.TB, dir string) []File {
	tb.Helper()
	var files []File
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		format := strings.TrimPrefix(filepath.Ext(e.Name()), ".")
		if !slices.Contains([]string{"parquet", "orc", "avro"}, format) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		files = append(files, File{Name: e.Name(), Format: format, Data: data})
	}
	if len(files) < 20 {
		tb.Fatalf("%d files in %s, want those that make.py writes", len(files), dir)
	}
	return files
}

// Of makes n damaged copies, of each of the files in turn. None is equal to the file
// that it is of.
func Of(files []File, seed uint64, n int) []File {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the same each time, by intention
	damaged := make([]File, 0, n)
	for i := 0; len(damaged) < n; i++ {
		m := mutation{Rand: random, File: files[i%len(files)]}
		m.Data = bytes.Clone(m.Data)
		m.damage(files)
		if !bytes.Equal(m.Data, files[i%len(files)].Data) {
			damaged = append(damaged, m.File)
		}
	}
	return damaged
}

// mutation is a file that is being damaged.
type mutation struct {
	*rand.Rand
	File
}

func (m *mutation) damage(files []File) {
	switch m.IntN(8) {
	case 0:
		m.flip(m.IntN(len(m.Data)), 1+m.IntN(3))
	case 1: // where readers begin
		m.flip(max(0, len(m.Data)-1-m.IntN(32)), 1)
	case 2:
		m.flip(min(len(m.Data)-1, m.IntN(32)), 1)
	case 3:
		n := m.IntN(len(m.Data))
		m.note("cut to %d bytes", n)
		m.Data = m.Data[:n]
	case 4:
		at, n := m.part()
		m.note("zeros in %d bytes at %d", n, at)
		clear(m.Data[at : at+n])
	case 5:
		at, n := m.part()
		if m.IntN(2) == 0 {
			m.note("without %d bytes at %d", n, at)
			m.Data = slices.Delete(m.Data, at, at+n)
			return
		}
		m.note("%d bytes at %d twice", n, at)
		m.Data = slices.Insert(m.Data, at, bytes.Clone(m.Data[at:at+n])...)
	case 6:
		m.length()
	case 7:
		m.otherEnd(files)
	}
}

func (m *mutation) note(format string, args ...any) {
	if m.How != "" {
		m.How += ", "
	}
	m.How += fmt.Sprintf(format, args...)
}

// flip flips bits of one byte.
func (m *mutation) flip(at, bits int) {
	for range bits {
		bit := m.IntN(8)
		m.note("bit %d of byte %d", bit, at)
		m.Data[at] ^= 1 << bit
	}
}

// part is a part of the file, of any size.
func (m *mutation) part() (at, n int) {
	at = m.IntN(len(m.Data))
	n = 1 + m.IntN(len(m.Data)-at)
	if m.IntN(2) == 0 {
		n = min(n, 1+m.IntN(16))
	}
	return at, n
}

// length changes a length that a reader goes by: of the footer, of the postscript, of
// what the header has.
func (m *mutation) length() {
	n := m.Uint32() >> m.IntN(32)
	switch m.Format {
	case "parquet":
		m.note("a footer of %d bytes", n)
		binary.LittleEndian.PutUint32(m.Data[len(m.Data)-8:], n)
	case "orc":
		if m.IntN(2) == 0 {
			m.note("a postscript of %d bytes", byte(n))
			m.Data[len(m.Data)-1] = byte(n)
			return
		}
		at := len(m.Data) - 1 - int(m.Data[len(m.Data)-1]) + 1 // of the postscript, behind the first field's name
		m.note("%d as byte %d", byte(n), at)
		m.Data[at] = byte(n)
	case "avro":
		at := 4 + m.IntN(2)
		m.note("%d as byte %d", byte(n), at)
		m.Data[at] = byte(n)
	}
}

// otherEnd puts the end of another file in the place of this one's.
func (m *mutation) otherEnd(files []File) {
	other := files[m.IntN(len(files))]
	n := 1 + m.IntN(min(len(other.Data), len(m.Data)))
	if m.IntN(2) == 0 {
		n = min(n, 1+m.IntN(64))
	}
	m.note(OtherEnd+" %d bytes of %s", n, other.Name)
	copy(m.Data[len(m.Data)-n:], other.Data[len(other.Data)-n:])
}
