package cache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	iofs "io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A block's file is a header and the block's bytes. The checksum is a CRC-32C over
// the header before it and the bytes: so over version and place, too.
const (
	headerMagic = "lakefsb1"
	headerSum   = 8 + 32 + 8 + 8 // magic, version, index, length: where the checksum is
	headerSize  = headerSum + 8
	verifyPiece = 64 << 10 // bytes that a check reads at a time, where it has no place for all
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli) //nolint:gochecknoglobals // a constant table

// errCorrupt: a block's file is not what its name says.
var errCorrupt = errors.New("damaged block")

// diskFile is a version above the disk.
type diskFile struct {
	disk  *Disk
	id    [32]byte // of the version and of the store it is of
	size  int64
	fetch Fetch
}

func (f *diskFile) blockID(index int64) blockID {
	return blockID{version: [16]byte(f.id[:16]), index: uint32(index)}
}

// length is that of a block, in bytes.
func (f *diskFile) length(index int64) int64 {
	return min(f.disk.blockSize, f.size-index*f.disk.blockSize)
}

// header is a block's, with the checksum of its bytes.
func (f *diskFile) header(index int64) [headerSize]byte {
	var h [headerSize]byte
	at := copy(h[:], headerMagic)
	at += copy(h[at:], f.id[:])
	binary.BigEndian.PutUint64(h[at:], uint64(index))
	binary.BigEndian.PutUint64(h[at+8:], uint64(f.length(index)))
	return h
}

// seal makes the header of a block's file whose other bytes are there.
func (f *diskFile) seal(index int64, file []byte) {
	h := f.header(index)
	sum := crc32.Update(crc32.Checksum(h[:headerSum], castagnoli), castagnoli, file[headerSize:])
	binary.BigEndian.PutUint64(h[headerSum:], uint64(sum))
	copy(file, h[:])
}

// open is the Fetch of the version.
func (f *diskFile) open(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	if n <= 0 || !f.disk.readable() {
		return f.fetch(ctx, off, n)
	}
	rest := func(off, n int64) (io.ReadCloser, error) { return f.fill(ctx, off, n) }
	index := off / f.disk.blockSize
	if file := f.file(index); file != nil { //nolint:contextcheck // a disk waits for nothing
		return &diskBody{f: f, off: off, end: off + n, file: file, index: index, rest: rest}, nil
	}
	return rest(off, n)
}

// file opens the file of a block; nil: it is not there.
func (f *diskFile) file(index int64) *os.File {
	id := f.blockID(index)
	known := f.disk.has(id)
	file, err := os.OpenFile(f.disk.path(id), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err == nil {
		return file
	}
	if known && errors.Is(err, iofs.ErrNotExist) {
		f.disk.drop(id) // somebody emptied the directory
	}
	if !errors.Is(err, iofs.ErrNotExist) {
		f.disk.fail(err, true)
	}
	return nil
}

// forget removes a block that cannot be read. Where the disk says why, it is left
// alone.
func (f *diskFile) forget(index int64, why error) {
	d, id := f.disk, f.blockID(index)
	if !errors.Is(why, errCorrupt) && !errors.Is(why, io.EOF) {
		d.fail(why, true)
		return
	}
	d.corrupt.Add(1)
	_ = os.Remove(d.path(id)) // else it is found damaged again
	d.drop(id)
}

// drop takes a block out of the index.
func (d *Disk) drop(id blockID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.index.remove(id)
}

// used notes that a block was read.
func (f *diskFile) used(index int64, file *os.File) {
	d := f.disk
	d.hits.Add(1)
	now := time.Now()
	d.mu.Lock()
	touch := d.mu.index.use(f.blockID(index), onDisk(headerSize+f.length(index)), now)
	d.mu.Unlock()
	if touch {
		tv := unix.NsecToTimeval(now.UnixNano())
		_ = unix.Futimes(int(file.Fd()), []unix.Timeval{tv, tv}) // it goes a little early, after a restart
	}
}

// diskBody is a range whose leading blocks are on the disk, and the rest behind
// fetch. It belongs to one goroutine.
type diskBody struct {
	f        *diskFile
	off, end int64
	file     *os.File // of the block at index; nil: none is open
	index    int64
	checked  bool // the block at index is what it should be
	store    io.ReadCloser
	rest     func(off, n int64) (io.ReadCloser, error)
}

// Local tells that nothing was asked of the store to begin the body.
func (b *diskBody) Local() bool { return true }

// isLocal tells a body that asked nothing of the store to begin.
func isLocal(body io.ReadCloser) bool {
	l, ok := body.(interface{ Local() bool })
	return ok && l.Local()
}

// Read is io.Reader's.
func (b *diskBody) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if b.store == nil && b.off < b.end {
		n, err := b.readBlock(p)
		if err == nil {
			b.off += int64(n)
			return n, nil
		}
		if b.store, err = b.rest(b.off, b.end-b.off); err != nil {
			return 0, err
		}
	}
	if b.store == nil {
		return 0, io.EOF
	}
	return b.store.Read(p)
}

// Close is io.Closer's.
func (b *diskBody) Close() error {
	b.closeFile()
	if b.store != nil {
		return b.store.Close()
	}
	return nil
}

func (b *diskBody) closeFile() {
	if b.file != nil {
		closeBody(b.file)
		b.file = nil
	}
}

// readBlock reads what p has room for of the block where the body is. An error
// means that the block is not there, or not any more.
func (b *diskBody) readBlock(p []byte) (int, error) {
	size := b.f.disk.blockSize
	if index := b.off / size; b.file == nil || index != b.index {
		b.closeFile()
		b.file, b.index, b.checked = b.f.file(index), index, false
	}
	if b.file == nil {
		return 0, iofs.ErrNotExist
	}
	length := b.f.length(b.index)
	within := b.off - b.index*size
	part := p[:min(int64(len(p)), b.end-b.off, length-within)]
	var err error
	switch {
	case b.checked:
		_, err = b.file.ReadAt(part, headerSize+within)
	case int64(len(part)) == length:
		err = b.f.verify(b.file, b.index, part) // the usual case: there is place for the whole block
	default:
		if err = b.f.verify(b.file, b.index, nil); err == nil {
			_, err = b.file.ReadAt(part, headerSize+within)
		}
	}
	if err != nil {
		b.closeFile()
		b.f.forget(b.index, err)
		return 0, err
	}
	if !b.checked {
		b.checked = true
		b.f.used(b.index, b.file)
	}
	return len(part), nil
}

// verify reads a block's file and checks that it is this block; into p, which is
// the block's size, or where p is nil in pieces.
func (f *diskFile) verify(file *os.File, index int64, p []byte) error {
	var got [headerSize]byte
	if _, err := file.ReadAt(got[:], 0); err != nil {
		return err
	}
	want := f.header(index)
	if !bytes.Equal(got[:headerSum], want[:headerSum]) {
		return errCorrupt
	}
	sum := crc32.Checksum(got[:headerSum], castagnoli)
	if p == nil {
		p = make([]byte, min(verifyPiece, f.length(index)))
	}
	for at, length := int64(0), f.length(index); at < length; {
		piece := p[:min(int64(len(p)), length-at)]
		if _, err := file.ReadAt(piece, headerSize+at); err != nil {
			return err
		}
		sum = crc32.Update(sum, castagnoli, piece)
		at += int64(len(piece))
	}
	if binary.BigEndian.Uint64(got[headerSum:]) != uint64(sum) {
		return errCorrupt
	}
	return nil
}
