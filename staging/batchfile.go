package staging

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// This is what a [Batch] does to one of its files.

// MoveTo makes the write one of another place, in memory alone: on disk its batch says
// so, unless the record has to change for another reason.
func (z *Frozen) MoveTo(p Place) {
	f := z.file
	f.disk.Lock()
	z.saves = f.saves
	f.disk.Unlock()
	f.mu.Lock()
	z.stale = f.stale
	if f.rec.Target != p.Target {
		f.abandonLocked()
	}
	f.rec = f.rec.At(p)
	f.stale = true
	f.mu.Unlock()
	f.queueAbort()
	z.Record = f.Record()
}

// PutBack makes the write again what was before MoveTo, on disk too, durably, if it
// was changed there. Its upload is over; completed tells whether the store made an
// object of it.
func (z *Frozen) PutBack(was Record, completed bool) error {
	f := z.file
	f.endUpload(z.sent && completed)
	z.sent = false
	f.disk.Lock()
	changed := f.saves != z.saves
	f.disk.Unlock()
	f.mu.Lock()
	f.rec = f.rec.At(was.Place())
	f.rec.State, f.rec.Error, f.rec.Sum, f.rec.Unsettled = was.State, was.Error, was.Sum, was.Unsettled
	f.stale = z.stale
	f.mu.Unlock()
	f.queueAbort()
	var err error
	if changed {
		err = f.saveRecord(true)
	}
	z.Record = f.Record()
	return err
}

// Expect has [Frozen.Sound] hold the bytes against a batch's member, and is
// ErrDamaged if there are more or fewer.
func (z *Frozen) Expect(m BatchMember) error {
	if z.Size != m.Size {
		return fmt.Errorf("write %s: it has %d bytes, %d were to be published: %w", m.ID, z.Size, m.Size, ErrDamaged)
	}
	z.setSum(m.Sum)
	return nil
}

// Fail poisons the write: its bytes cannot be published any more.
func (z *Frozen) Fail(ctx context.Context, err error) error {
	return z.file.fail(ctx, "take back", err)
}

// Adopted tells whether the spool is not where it was: the store has taken it.
func (f *File) Adopted() bool {
	_, err := os.Lstat(f.dataPath())
	return errors.Is(err, os.ErrNotExist)
}

// SpoolPath is where the spool is, or where the store is to give it back.
func (f *File) SpoolPath() string { return f.dataPath() }

// GivenBack finds the spool of a lost write, which the store has given back.
func (f *File) GivenBack() error {
	f.writing <- struct{}{}
	defer f.unlock()
	if !f.Lost() {
		return nil
	}
	data, size, _, err := openSpool(f.dataPath())
	if err != nil {
		return err
	}
	f.unsynced, f.promised, f.sum.broken = true, true, true
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost, f.size, f.changes = false, size, 1
	f.rec.Whole, f.stale = true, true // what a store takes has every byte
	f.cur = newLayer(newSource(data, nil), nil, 0)
	f.mixed = !f.rec.Append
	return nil
}
