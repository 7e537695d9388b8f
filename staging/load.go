package staging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Parallel <= 0 {
		o.Parallel = defaultParallel
	}
	return o
}

// load finds the writes in the directory. One that cannot be understood is kept
// and shown as failed; it never keeps the others from being found.
func (a *Area) load() error {
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		return directoryError(a.dir, err)
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), sparePrefix) {
			removeSpare(a.path(e.Name()))
		}
		if e.IsDir() && isGoneName(e.Name()) {
			a.sweepLater(a.path(e.Name()))
		}
		if !e.IsDir() || !isID(e.Name()) {
			continue
		}
		if f := a.loadWrite(e.Name()); f != nil {
			a.files[f.id] = f
		}
	}
	return nil
}

// loadWrite returns the write id, or nil if nothing of it is worth keeping, as its
// process ended while it made it, or if it is a [Rename], a [Batch] or has uploads to abort only.
func (a *Area) loadWrite(id string) *File {
	dir := a.path(id)
	raw, err := readLimited(filepath.Join(dir, recordName), recordMax)
	if len(raw) == 0 && (err == nil || errors.Is(err, os.ErrNotExist)) {
		if a.removeUnborn(dir) {
			return nil
		}
		err = fmt.Errorf("%s is missing or empty", recordName)
	}
	var rec Record
	if err == nil {
		rec, err = parseRecord(id, raw)
	}
	if errors.Is(err, errOtherWrite) && a.removeUnborn(dir) {
		return nil // a spare directory that was just taken
	}
	if err != nil {
		return a.loadDamaged(id, err)
	}
	if rec.State == Renaming {
		a.renames[id] = &Rename{area: a, rec: rec, kept: true}
		return nil
	}
	if rec.isBatch() {
		b := &Batch{area: a, rec: rec, kept: true}
		if err := a.rememberBatch(b); err != nil {
			return a.loadDamaged(id, err)
		}
		return nil
	}
	if rec.State == Aborting {
		a.loadAborting(rec)
		return nil
	}
	f := a.newFile(rec)
	f.recovery, f.onDisk, f.durable, f.promised, f.unsynced = true, true, true, true, true
	f.sum.broken = true
	if err := f.loadSpool(); err != nil {
		return a.loadDamaged(id, err)
	}
	f.loadUpload()
	return f
}

// removeUnborn removes a directory that holds no bytes.
func (a *Area) removeUnborn(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || isDataName(e.Name()) && hasBytes(filepath.Join(dir, e.Name()), info.Size()) {
			return false
		}
	}
	return os.RemoveAll(dir) == nil
}

// hasBytes tells whether a spool of that size is more than a hole, which is
// what one over an older object begins as.
func hasBytes(path string, size int64) bool {
	if size == 0 {
		return false
	}
	f, err := openPrivate(path, os.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }() // only read
	_, err = f.Seek(0, unix.SEEK_DATA)
	return !errors.Is(seekError(path, err), io.EOF)
}

// loadDamaged keeps the bytes of a write whose record, or overlay, cannot be
// understood: they can be read and saved, and nothing else.
func (a *Area) loadDamaged(id string, cause error) *File {
	rec := Record{Version: recordVersion, ID: id, State: Failed, Error: cause.Error()}
	dir := a.path(id)
	for _, name := range dataNames(dir) {
		data, size, mtime, err := openSpool(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		rec.Data, rec.Size, rec.Created, rec.Changed = name, size, mtime, mtime
		f := a.newFile(rec)
		f.cur, f.size = newLayer(newSource(data, nil), nil, 0), size
		return a.damagedFile(f, cause)
	}
	f := a.newFile(rec)
	f.lost = true
	return a.damagedFile(f, cause)
}

func (a *Area) damagedFile(f *File, cause error) *File {
	f.damaged, f.recovery, f.onDisk = cause, true, true
	a.opts.Log.LogAttrs(context.Background(), slog.LevelWarn, "a staged write is damaged; its bytes are kept",
		slog.String("id", f.id), slog.Any("error", cause))
	return f
}

// loadSpool finds the bytes. A record without its spool is a publish that took
// effect: its process ended before it removed the record.
func (f *File) loadSpool() error {
	path := f.dataPath()
	data, size, mtime, err := openSpool(path)
	if errors.Is(err, os.ErrNotExist) {
		f.lost, f.size = true, f.rec.Size
		return nil
	}
	if err != nil {
		return err
	}
	f.size = size
	if size > 0 || f.rec.Base != nil || f.rec.Copied != nil {
		f.changes = 1
	}
	if mtime.After(f.rec.Changed) {
		f.rec.Changed = mtime
	}
	f.cur = newLayer(newSource(data, nil), nil, 0)
	f.mixed = !f.rec.Append
	if (f.rec.Base != nil || f.rec.Copied != nil) && !f.rec.Whole {
		if err := f.loadOverlay(); err != nil {
			f.setLayer(nil)
			return err
		}
	}
	for _, name := range dataNames(f.dir()) {
		if stray := filepath.Join(f.dir(), name); stray != path {
			_ = unix.Unlink(stray) // of a rebase that was cut short
		}
	}
	return nil
}

// loadOverlay reads which blocks the spool has, and lays it over the older object.
// Of that no more counts than the file is long: a truncate that was cut off has
// marked no blocks yet, a copy has not made the spool longer.
func (f *File) loadOverlay() error {
	base, size := f.rec.Base, int64(0)
	if f.rec.Copied != nil {
		base, size = f.rec.Copied, f.rec.CopiedSize
	} else {
		size = base.Size
	}
	size = min(size, f.size)
	path := filepath.Join(f.dir(), blocksName)
	raw, err := readLimited(path, blocksOf(maxSize))
	if err != nil {
		return err
	}
	blocks, err := openPrivate(path, os.O_RDWR)
	if err != nil {
		return err
	}
	l := newLayer(f.cur.spool.retain(), newSource(nil, &latePin{store: f.area.opts.Store, obj: *base}), size)
	for i, b := range raw {
		if b == 1 {
			l.have.set(int64(i), int64(i)+1)
		}
	}
	f.blocks = blocks
	f.setLayer(l)
	return nil
}

func openSpool(path string) (data *os.File, size int64, mtime time.Time, err error) {
	data, err = openPrivate(path, os.O_RDWR|unix.O_NONBLOCK)
	if err != nil {
		return nil, 0, time.Time{}, err
	}
	info, err := data.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		_ = data.Close() // nothing was written
		return nil, 0, time.Time{}, err
	}
	return data, info.Size(), info.ModTime(), nil
}

// dataNames lists what in a write's directory is called as a spool is.
func dataNames(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), dataName) && isDataName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}
