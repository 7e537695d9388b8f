package staging

import "context"

// Separate makes a file that began as an older object a new one, with all of its
// bytes in the spool: it does not need the object any more, has something to publish
// from now on though nobody wrote to it, and survives a power loss. That is no change
// of the bytes. On an error the file is as it was, and not poisoned.
func (f *File) Separate(ctx context.Context) error {
	if err := f.lockWriting(ctx); err != nil {
		return err
	}
	defer f.unlock()
	if err := f.writable(); err != nil {
		return err
	}
	if f.under() == nil {
		return nil // it is one
	}
	if err := f.needSpool(); err != nil {
		return ioError("stage", f.id, err)
	}
	if err := f.fill(ctx); err != nil {
		return err
	}
	err := f.area.step("sync", dataName)
	if err == nil {
		err = f.cur.spool.file.Sync()
	}
	if err == nil {
		err = f.saveSeparate()
	}
	if err != nil {
		f.unsynced = true
		return ioError("sync", f.id, err)
	}
	f.sum = runningSum{broken: true} // what was fetched is not in it
	f.setLayer(newLayer(f.cur.spool.retain(), nil, 0))
	f.unsynced, f.promised = false, true
	return nil
}

// saveSeparate takes the older object out of the record.
func (f *File) saveSeparate() error {
	f.mu.Lock()
	before := f.rec
	f.rec.Base, f.rec.Copied, f.rec.CopiedSize = nil, nil, 0
	f.rec.Append, f.rec.Whole, f.rec.Sum = false, true, ""
	f.mu.Unlock()
	err := f.saveRecord(true)
	if err != nil {
		f.mu.Lock()
		f.rec.Base, f.rec.Copied, f.rec.CopiedSize = before.Base, before.Copied, before.CopiedSize
		f.rec.Append, f.rec.Whole = before.Append, before.Whole
		f.mu.Unlock()
	}
	return err
}
