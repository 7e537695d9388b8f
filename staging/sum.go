package staging

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
)

// sumPrefix names the algorithm in Record.Sum: CRC32C, which processors have an
// instruction for.
const sumPrefix = "crc32c:"

// sumBuffer bytes are read at a time.
const sumBuffer = 256 << 10

// runningSum sums a file up while it is written from its start to its end, as most
// are: its bytes are in the processor's cache then, and the spool is not read again.
// It is for the holder of writing. The zero value is that of an empty file.
type runningSum struct {
	crc    uint32
	end    int64
	broken bool // written in another order, or cut
}

func (r *runningSum) wrote(p []byte, off int64) {
	if r.broken || off != r.end {
		r.broken = true
		return
	}
	r.crc = crc32.Update(r.crc, crc32.MakeTable(crc32.Castagnoli), p)
	r.end += int64(len(p))
}

func encodeSum(crc uint32) string {
	return sumPrefix + base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc))
}

func isSum(s string) bool {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, sumPrefix))
	return strings.HasPrefix(s, sumPrefix) && err == nil && len(raw) == crc32.Size
}

// sumOf reads size bytes of r.
func sumOf(ctx context.Context, r io.ReaderAt, size int64) (string, error) {
	table, crc := crc32.MakeTable(crc32.Castagnoli), uint32(0)
	buf := make([]byte, min(size, sumBuffer))
	for off := int64(0); off < size; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		part := buf[:min(size-off, int64(len(buf)))]
		n, err := r.ReadAt(part, off)
		if n < len(part) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return "", err
		}
		crc = crc32.Update(crc, table, part)
		off += int64(n)
	}
	return encodeSum(crc), nil
}

// Secure makes it possible to publish the bytes anew after a crash: a whole spool
// gets its checksum into the record (Record.Sum), which costs no fsync, for nothing
// is acknowledged before the store has the bytes; one over an older object is made
// durable as it is. The record reaches the disk with the next SetState.
func (z *Frozen) Secure(ctx context.Context) error {
	f := z.file
	sum := ""
	var err error
	switch {
	case !f.cur.whole():
		err = f.syncBytes(ctx)
	case !f.unsynced:
	case !f.sum.broken && f.sum.end == f.size:
		sum = encodeSum(f.sum.crc)
	default:
		if sum, err = sumOf(ctx, f.cur.spool.file, f.size); err != nil {
			err = ioError("sum up", f.id, err)
		}
	}
	if err != nil {
		return err
	}
	z.setSum(sum)
	return nil
}

func (z *Frozen) setSum(sum string) {
	f := z.file
	f.mu.Lock()
	f.stale = f.stale || f.rec.Sum != sum
	f.rec.Sum = sum
	f.mu.Unlock()
	z.Record.Sum = sum
}

// Sound reads a recovered write's spool, where the record has its checksum, and
// returns ErrDamaged if the bytes are others: the machine stopped before they were
// on the disk. Nothing of it may be published then.
func (z *Frozen) Sound(ctx context.Context) error {
	f := z.file
	want := f.Record().Sum
	if want == "" {
		return nil
	}
	got, err := sumOf(ctx, f.cur.spool.file, f.size)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ioError("sum up", f.id, err)
	}
	if got != want {
		return fmt.Errorf("write %s: its bytes are not those that were to be published: %w", f.id, ErrDamaged)
	}
	return nil
}

// syncBytes makes durable what the spool has; the rest is the older object's.
func (f *File) syncBytes(ctx context.Context) error {
	if f.blocks != nil {
		if err := f.blocks.Sync(); err != nil {
			return f.fail(ctx, "sync", err)
		}
	}
	return f.syncSpool(ctx)
}

// keepBytes makes what stays here after a publish that failed outlive a power loss,
// as far as the disk will.
func (f *File) keepBytes() {
	if f.cur == nil || f.cur.spool == nil || f.poisoned() {
		return
	}
	if f.syncBytes(f.area.work.ctx) != nil {
		return // poisoned
	}
	f.mu.Lock()
	f.rec.Sum = ""
	f.rec.Whole = f.cur.whole()
	f.mu.Unlock()
}

func (f *File) poisoned() bool { return f.Poisoned() != nil }
