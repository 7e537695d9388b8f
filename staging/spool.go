package staging

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// startSpool makes the write's directory, spool and first record, over the
// layer of now; the holder of writing calls it. What a new file costs here is
// some five system calls, which is why the record comes without a rename and blocks
// only where there is an older object.
func (f *File) startSpool() error {
	f.disk.Lock()
	f.onDisk = true // in part, so far
	err := f.makeSpool()
	f.disk.Unlock()
	if err != nil {
		_ = f.removeFromDisk() // an empty spool: Open removes it
		return err
	}
	return nil
}

func (f *File) makeSpool() error {
	dir := f.dir()
	if !f.bare { // else uploads of an earlier version are yet to be aborted
		if err := f.area.makeDirectory(dir); err != nil {
			return err
		}
		f.tidy = true
	}
	data, err := f.area.create(filepath.Join(dir, dataName))
	if err != nil {
		return err
	}
	next := newLayer(newSource(data, nil), nil, 0)
	if old := f.cur; old != nil {
		next = newLayer(next.spool, old.base.retain(), old.baseSize)
		err = f.startOverlay(data)
	}
	if err == nil && f.bare {
		err = f.area.replace(f.Record(), false)
	} else if err == nil {
		err = f.area.writeFirst(f.Record())
	}
	if err != nil {
		next.release()
		return err
	}
	f.durable, f.bare = false, false
	f.early = early{}
	f.setLayer(next)
	return nil
}

// create makes a file that is not there.
func (a *Area) create(path string) (*os.File, error) {
	if err := a.step("create", path); err != nil {
		return nil, err
	}
	return openPrivate(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// unlink removes a file, if it is there.
func (a *Area) unlink(path string) error {
	if err := a.step("unlink", path); err != nil {
		return err
	}
	if err := unix.Unlink(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return ioError("unlink", path, err)
	}
	return nil
}

// startOverlay gives the spool its length and makes the file of blocks.
func (f *File) startOverlay(data *os.File) error {
	if err := data.Truncate(f.size); err != nil {
		return ioError("stage", data.Name(), err)
	}
	blocks, err := f.area.create(filepath.Join(f.dir(), blocksName))
	if err != nil {
		return err
	}
	f.blocks = blocks
	return nil
}

// allocated returns the bytes that the write takes up on disk; false if none of
// it is there.
func (f *File) allocated() (int64, bool) {
	l, _, err := f.acquire()
	if err != nil {
		return 0, f.Lost()
	}
	defer l.release()
	if l.spool == nil {
		return 0, false
	}
	var st unix.Stat_t
	if unix.Fstat(int(l.spool.file.Fd()), &st) != nil {
		return 0, true
	}
	return st.Blocks * 512, true
}

// Drop removes the spool and the record; reads and writes fail from then on.
// It waits for a publish that is under way, and may be called again.
func (f *File) Drop() error {
	f.writing <- struct{}{}
	defer f.unlock()
	return f.drop()
}

// FreeSpool gives the disk back what a poisoned write holds of it. As Drop, but
// the writes of those who still hold the file fail with its poison. Parts under way,
// of an upload that is given up, hold the spool open for a while: it is cut to
// nothing before.
func (f *File) FreeSpool() error {
	f.writing <- struct{}{}
	defer f.unlock()
	if l := f.cur; l != nil && l.spool != nil && !f.isDropped() {
		_ = l.spool.file.Truncate(0) // it is removed all the same
	}
	return f.drop()
}

func (f *File) isDropped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dropped
}

// idle tells whether the write only waits for somebody to decide on it.
func (f *File) idle() bool {
	_, batched := f.area.BatchOf(f.id)
	return f.Handles() == 0 && f.Record().State != Publishing && !batched
}

// dropIdle drops the write unless a handle uses it or a publish is under way.
func (f *File) dropIdle() bool {
	select {
	case f.writing <- struct{}{}:
	default:
		return false
	}
	defer f.unlock()
	return f.idle() && f.drop() == nil
}

func (f *File) drop() error {
	f.disk.Lock() // a record that is being written does not miss an upload because of it
	f.mu.Lock()
	done := f.dropped
	if !done {
		f.dropped = true
		f.abandonLocked()
	}
	f.mu.Unlock()
	f.disk.Unlock()
	if done {
		return nil
	}
	err := f.removeFromDisk()
	f.setLayer(nil)
	f.area.leave(f)
	return err
}

// detach closes the descriptors and leaves the disk as it is.
func (f *File) detach() {
	f.writing <- struct{}{}
	defer f.unlock()
	f.mu.Lock()
	f.dropped = true
	f.mu.Unlock()
	f.closeBlocks()
	f.setLayer(nil)
}

func (f *File) closeBlocks() {
	if f.blocks != nil {
		_ = f.blocks.Close() // what it holds was reported by write
		f.blocks = nil
	}
}

// removeFromDisk removes the bytes, then the record with the directory: ended
// in between, what is left says "published", never "bytes of unknown origin".
func (f *File) removeFromDisk() error { return f.removePublished(false, false) }

// removePublished is removeFromDisk; with adopted the spool has left by itself, and with
// later the directory is removed in the background.
// Uploads that are to be aborted keep the record, and the directory.
func (f *File) removePublished(adopted, later bool) error {
	f.disk.Lock()
	defer f.disk.Unlock()
	overlay := f.blocks != nil
	f.closeBlocks()
	if !f.onDisk {
		return nil
	}
	f.mu.Lock()
	later = later && !f.pendingLocked()
	f.mu.Unlock()
	if later && f.area.discard(f.dir(), f.id) == nil {
		f.onDisk, f.durable = false, false
		return nil
	}
	if !adopted {
		if err := f.area.unlink(f.dataPath()); err != nil {
			f.onDisk, f.durable = false, false
			return err
		}
	}
	f.mu.Lock()
	f.bare = f.pendingLocked()
	f.mu.Unlock()
	if f.bare {
		// Without it the old record says the same: its bytes are gone, and it names
		// the upload.
		_ = f.saveLocked(false)
	} else {
		f.onDisk, f.durable = false, false
	}
	if overlay || f.bare { // else the directory may have others: see tidy
		if err := f.area.unlink(filepath.Join(f.dir(), blocksName)); err != nil {
			return err
		}
	}
	if f.bare {
		return nil
	}
	return f.area.recycle(f.dir(), f.tidy)
}

// removeBare removes the record of a write without bytes, and its directory; the
// holder of disk calls it.
func (f *File) removeBare() error {
	f.onDisk, f.durable, f.bare = false, false, false
	return f.area.recycle(f.dir(), f.tidy)
}
