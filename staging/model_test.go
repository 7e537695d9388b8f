package staging

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// model is a file as it should be: bytes in memory.
type model struct {
	t    *testing.T
	e    *env
	rnd  *rand.Rand
	f    *File
	data []byte
	log  []string
}

// TestModel does random operations on a file over an older object and on bytes
// in memory, with crashes, syncs, publishes and rebases between, and compares
// after each.
func TestModel(t *testing.T) {
	for seed := range modelSeeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &model{t: t, e: newEnv(t), rnd: rand.New(rand.NewPCG(uint64(seed), 1))}
			m.begin()
			for range 60 {
				m.step()
				m.compare()
			}
		})
	}
}

func modelSeeds() int {
	if testing.Short() {
		return 10
	}
	return 25
}

// TestModelOfParts is TestModel over a store that takes parts, of all sizes, which go
// up behind the operations: each object is the model, and in the end no upload is left.
func TestModelOfParts(t *testing.T) {
	for seed := range modelSeeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(seed), 2))
			c, e := newCloud(t, int64(rnd.IntN(3*blockSize)+10_000))
			m := &model{t: t, e: e, rnd: rnd}
			m.begin()
			for range 60 {
				m.step()
				m.compare()
			}
			if err := m.f.Drop(); err != nil {
				t.Fatal(err)
			}
			e.quiet(t)
			if err := e.area.AbortUploads(t.Context()); err != nil {
				t.Error(err)
			}
			if left := c.left(); len(left) > 0 {
				t.Errorf("%q: uploads %q are left", m.log, left)
			}
			if got := names(t, e.dir); len(got) != 1 {
				t.Errorf("%q: the staging directory has %q", m.log, got)
			}
		})
	}
}

func (m *model) begin() {
	w := NewWrite{Target: m.e.loc("f"), Append: true, Final: true, Cond: objectstore.Cond{IfNoneMatch: true}}
	if m.rnd.IntN(4) > 0 {
		m.data = m.bytes(m.rnd.IntN(5*blockSize) + 1)
		base := m.sparseObject()
		w.Base, w.Cond = &base, objectstore.Cond{IfMatch: base.Match}
	}
	m.f = m.e.create(m.t, w)
}

// sparseObject puts the data into the store, after it got up to three holes.
func (m *model) sparseObject() objectstore.Object {
	base := m.e.object(m.t, m.data)
	if m.e.cloud != nil {
		return base
	}
	file, err := os.OpenFile(filepath.Join(m.e.root, "f"), os.O_WRONLY, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for range m.rnd.IntN(4) {
		from := m.rnd.IntN(len(m.data))
		n := min(m.rnd.IntN(2*blockSize)+1, len(m.data)-from)
		clear(m.data[from : from+n])
		const mode = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
		if err = unix.Fallocate(int(file.Fd()), mode, int64(from), int64(n)); err != nil {
			_, err = file.WriteAt(make([]byte, n), int64(from))
		}
		if err != nil {
			m.t.Fatal(err)
		}
		m.log = append(m.log, fmt.Sprintf("hole %d+%d", from, n))
	}
	if base, err = m.e.store.Stat(m.t.Context(), base.Location); err != nil {
		m.t.Fatal(err)
	}
	return base
}

func (m *model) bytes(n int) []byte {
	p := make([]byte, n)
	for i := 0; i < n; i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], m.rnd.Uint64()|0x2020202020202020) // never zero
		copy(p[i:], word[:])
	}
	return p
}

// offset is near a block's edge more often than not.
func (m *model) offset() int64 {
	off := int64(m.rnd.IntN(6)) * blockSize
	switch m.rnd.IntN(3) {
	case 0:
		off += int64(m.rnd.IntN(blockSize))
	case 1:
		off += int64(m.rnd.IntN(5)) - 2
	}
	return max(off, 0)
}

func (m *model) grow(size int64) {
	if size > int64(len(m.data)) {
		m.data = append(m.data, make([]byte, size-int64(len(m.data)))...)
	}
}

func (m *model) step() {
	ctx, op := m.t.Context(), m.rnd.IntN(20)
	if m.e.cloud != nil {
		op = m.rnd.IntN(24)
	}
	var err error
	switch {
	case op < 8:
		off, p := m.offset(), m.bytes(m.rnd.IntN(2*blockSize)+1)
		m.log = append(m.log, fmt.Sprintf("write %d+%d", off, len(p)))
		_, err = m.f.WriteAt(ctx, p, off)
		m.grow(off + int64(len(p)))
		copy(m.data[off:], p)
	case op < 10:
		p := m.bytes(m.rnd.IntN(1000) + 1)
		m.log = append(m.log, fmt.Sprintf("append %d", len(p)))
		_, err = m.f.Append(ctx, p)
		m.data = append(m.data, p...)
	case op < 13:
		size := m.offset()
		m.log = append(m.log, fmt.Sprintf("truncate %d", size))
		err = m.f.Truncate(ctx, size)
		m.grow(size)
		m.data = m.data[:size:size]
	case op == 13:
		off, n, keep := m.offset(), int64(m.rnd.IntN(1000)+1), m.rnd.IntN(2) == 0
		m.log = append(m.log, fmt.Sprintf("allocate %d+%d %v", off, n, keep))
		err = m.f.Allocate(ctx, off, n, keep)
		if !keep {
			m.grow(off + n)
		}
	case op == 14:
		m.log = append(m.log, "sync")
		err = m.f.Sync(ctx)
	case op == 15:
		m.crash()
	case op == 16:
		err = m.publish()
	case op == 17:
		err = m.rebase()
	case op >= 20: // what goes up in the background
		p := m.bytes(m.rnd.IntN(4*blockSize) + 1)
		m.log = append(m.log, fmt.Sprintf("write on %d", len(p)))
		_, err = m.f.WriteAt(ctx, p, m.f.prefix)
		end := m.f.prefix
		m.grow(end)
		copy(m.data[end-int64(len(p)):], p)
	default:
		m.log = append(m.log, "attributes")
		m.f.SetAttributes(Attributes{Mode: 0o600})
	}
	if err != nil {
		m.t.Fatalf("%q: %v", m.log, err)
	}
}

// crash finds the file again as a new process would. What was never written to
// is not on disk, and begins anew.
func (m *model) crash() {
	m.log = append(m.log, "crash")
	dirty, w := m.f.Dirty(), m.f.Record()
	m.e.reopen(m.t)
	if dirty {
		m.f = only(m.t, m.e.area)
		return
	}
	if n := len(m.e.area.Files()); n != 0 {
		m.t.Fatalf("%q: %d writes found after a crash of a clean file", m.log, n)
	}
	m.f = m.e.create(m.t, NewWrite{Target: w.Target, Base: w.Base, Cond: w.Cond, Append: true, Final: true})
}

func (m *model) publish() error {
	m.log = append(m.log, "publish")
	z, err := m.f.Freeze(m.t.Context())
	if err != nil {
		return err
	}
	defer z.Release()
	if z.Clean {
		return nil
	}
	if m.e.cloud != nil {
		return m.publishToCloud(z)
	}
	if err = z.Fill(m.t.Context()); err != nil {
		return err
	}
	adopt := m.rnd.IntN(2) == 0
	path := filepath.Join(m.e.root, "f")
	if adopt {
		err = os.Rename(z.Path, path)
	} else {
		raw, readErr := os.ReadFile(z.Path)
		if readErr != nil {
			return readErr
		}
		if err = os.WriteFile(path+".new", raw, 0o600); err == nil {
			err = os.Rename(path+".new", path)
		}
	}
	if err != nil {
		return err
	}
	obj, err := m.e.store.Stat(m.t.Context(), m.e.loc("f"))
	if err != nil {
		return err
	}
	z.Published(obj, adopt)
	return nil
}

// publishToCloud publishes, after a publish that failed or not, and with a store that
// copies or not.
func (m *model) publishToCloud(z *Frozen) error {
	c, ctx := m.e.cloud, m.t.Context()
	if m.rnd.IntN(3) == 0 {
		m.log = append(m.log, "plain")
		z.Plain()
	}
	if m.rnd.IntN(3) == 0 && z.TakesParts() {
		m.log = append(m.log, "failed")
		if _, _, err := z.Upload(ctx); err != nil {
			return err
		}
		return z.SetState(Failed, "the store is down", true)
	}
	if m.rnd.IntN(4) == 0 {
		m.log = append(m.log, "forget")
		if err := z.ForgetUpload(ctx); err != nil {
			return err
		}
	}
	if err := c.publish(ctx, z); err != nil {
		return err
	}
	if got := c.content(m.e.loc("f")); !bytes.Equal(got, m.data) {
		m.t.Fatalf("%q: the object is not the file: %d bytes, want %d", m.log, len(got), len(m.data))
	}
	return nil
}

// rebase lets another append first.
func (m *model) rebase() error {
	rec := m.f.Record()
	if !rec.Append || !m.f.Dirty() || rec.Base == nil {
		return nil
	}
	m.log = append(m.log, "rebase")
	theirs := m.bytes(m.rnd.IntN(blockSize) + 1)
	old := m.data[:rec.Base.Size:rec.Base.Size]
	newer := append(append([]byte(nil), old...), theirs...)
	obj, err := m.replace(newer)
	if err != nil {
		return err
	}
	z, err := m.f.Freeze(m.t.Context())
	if err != nil {
		return err
	}
	defer z.Release()
	m.data = append(newer, m.data[rec.Base.Size:]...)
	return z.Rebase(m.t.Context(), obj)
}

// replace is what another does.
func (m *model) replace(data []byte) (objectstore.Object, error) {
	if m.e.cloud != nil {
		return m.e.object(m.t, data), nil
	}
	path := filepath.Join(m.e.root, "f")
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return objectstore.Object{}, err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return objectstore.Object{}, err
	}
	return m.e.store.Stat(m.t.Context(), m.e.loc("f"))
}

func (m *model) compare() {
	if got := m.f.Size(); got != int64(len(m.data)) {
		m.t.Fatalf("%q: size %d, want %d", m.log, got, len(m.data))
	}
	got := readAll(m.t, m.f)
	if !bytes.Equal(got, m.data) {
		at := 0
		for at < len(got) && got[at] == m.data[at] {
			at++
		}
		m.t.Fatalf("%q: bytes differ from %d (block %d) on", m.log, at, at/blockSize)
	}
	m.compareHoles()
}

// compareHoles holds Seek to what it promises: all between a hole and the next
// data is zero.
func (m *model) compareHoles() {
	off := m.offset()
	if off >= int64(len(m.data)) {
		return
	}
	data, err := m.f.Seek(off, unix.SEEK_DATA)
	if err != nil {
		data = int64(len(m.data))
	}
	if data < off || len(bytes.Trim(m.data[off:data], "\x00")) > 0 {
		m.t.Fatalf("%q: SEEK_DATA from %d says %d", m.log, off, data)
	}
	hole, err := m.f.Seek(off, unix.SEEK_HOLE)
	if err != nil || hole < off || hole > int64(len(m.data)) {
		m.t.Fatalf("%q: SEEK_HOLE from %d: %d, %v", m.log, off, hole, err)
	}
}
