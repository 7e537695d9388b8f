package cache

import (
	"cmp"
	"encoding/hex"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// diskUnit is what a file takes of the disk, at least: its size is rounded up
	// to a multiple.
	diskUnit = 4 << 10
	// touchEvery is how old a block's time of use may be on the disk.
	touchEvery = 10 * time.Minute
)

// blockID names a block of a version, and its file.
type blockID struct {
	version [16]byte // the first half of diskFile.id
	index   uint32
}

// file is the block's file below the root: a directory of 256, and a name.
func (b blockID) file() string {
	name := hex.EncodeToString(b.version[:])
	return name[:2] + "/" + name[2:] + "-" + strconv.FormatUint(uint64(b.index), 16)
}

// parseBlockID is what file made; false: it is no block's.
func parseBlockID(dir, name string) (b blockID, ok bool) {
	head, index, _ := strings.Cut(name, "-")
	raw, err := hex.DecodeString(dir + head)
	n, indexErr := strconv.ParseUint(index, 16, 32)
	if err != nil || indexErr != nil || len(raw) != len(b.version) {
		return blockID{}, false
	}
	copy(b.version[:], raw)
	b.index = uint32(n)
	return b, b.file() == dir+"/"+name
}

// diskEntry is a block that is on the disk. Bytes are what it takes there.
type diskEntry struct {
	id         blockID
	bytes      int64
	touched    int64 // seconds of Unix time: the file's
	prev, next *diskEntry
}

// diskIndex knows the blocks by name and by use. root.next is the newest. It is a
// count of what is there, not the truth: a block is served if its file is.
type diskIndex struct {
	entries map[blockID]*diskEntry
	root    diskEntry
	bytes   int64
}

func (x *diskIndex) init() {
	x.entries = make(map[blockID]*diskEntry)
	x.root.prev, x.root.next = &x.root, &x.root
	x.bytes = 0
}

// add makes a block the newest.
func (x *diskIndex) add(id blockID, bytes int64, touched time.Time) {
	x.remove(id)
	e := &diskEntry{id: id, bytes: bytes, touched: touched.Unix()}
	x.entries[id] = e
	x.bytes += bytes
	x.link(e, &x.root)
}

// addOldest makes a block the next to go, if it is not known.
func (x *diskIndex) addOldest(id blockID, bytes int64, touched time.Time) {
	if x.entries[id] == nil {
		e := &diskEntry{id: id, bytes: bytes, touched: touched.Unix()}
		x.entries[id] = e
		x.bytes += bytes
		x.link(e, x.root.prev)
	}
}

// link puts e behind another on the way from the newest to the oldest.
func (x *diskIndex) link(e, behind *diskEntry) {
	e.prev, e.next = behind, behind.next
	e.prev.next, e.next.prev = e, e
}

func (x *diskIndex) remove(id blockID) {
	if e := x.entries[id]; e != nil {
		delete(x.entries, id)
		x.bytes -= e.bytes
		e.prev.next, e.next.prev = e.next, e.prev
	}
}

// use makes a block the newest, and tells whether its file is to say so too. A
// block that is not known is one that was written while another reader found it
// missing, or that no scan has come to.
func (x *diskIndex) use(id blockID, bytes int64, now time.Time) (touch bool) {
	e := x.entries[id]
	if e == nil {
		x.add(id, bytes, now)
		return true
	}
	e.prev.next, e.next.prev = e.next, e.prev
	x.link(e, &x.root)
	if now.Unix()-e.touched < int64(touchEvery/time.Second) {
		return false
	}
	e.touched = now.Unix()
	return true
}

// oldest is the block to go next, nil if there is none.
func (x *diskIndex) oldest() *diskEntry {
	if x.root.prev == &x.root {
		return nil
	}
	return x.root.prev
}

// onDisk is what a file of so many bytes takes.
func onDisk(size int64) int64 { return (size + diskUnit - 1) / diskUnit * diskUnit }

// found is a block's file as the directory tells of it.
type found struct {
	id   blockID
	size int64
	used time.Time
}

// scan fills the index from the directory, by names, sizes and times alone: what
// is in a file shows when it is read. What a write that was cut short has left is
// removed, and so is the rest that does not belong here.
func (d *Disk) scan() error {
	dirs, err := os.ReadDir(d.root)
	if err != nil {
		return err
	}
	var all []found
	for _, dir := range dirs {
		if raw, odd := hex.DecodeString(dir.Name()); odd != nil || len(raw) != 1 || !dir.IsDir() {
			continue
		}
		if all, err = d.scanDirectory(all, dir.Name()); err != nil {
			return err
		}
		if d.stopping() {
			return nil
		}
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(b.used.UnixNano(), a.used.UnixNano()) })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.index.init()
	for _, f := range all {
		d.mu.index.addOldest(f.id, onDisk(f.size), f.used)
	}
	return nil
}

func (d *Disk) scanDirectory(all []found, dir string) ([]found, error) {
	entries, err := os.ReadDir(filepath.Join(d.root, dir))
	if err != nil {
		return all, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, iofs.ErrNotExist) {
			continue // a reader found it damaged
		}
		if err != nil {
			return all, err
		}
		id, ok := parseBlockID(dir, e.Name())
		if !ok || !info.Mode().IsRegular() {
			_ = os.Remove(filepath.Join(d.root, dir, e.Name())) // else it stays, and harms nobody
			continue
		}
		all = append(all, found{id, info.Size(), info.ModTime()})
	}
	return all, nil
}

// shrink removes the least recently used blocks until bytes more fit.
func (d *Disk) shrink(bytes int64) error {
	for {
		d.mu.Lock()
		e := d.mu.index.oldest()
		if e == nil || d.mu.index.bytes+bytes <= d.limit {
			d.mu.Unlock()
			return nil
		}
		d.mu.Unlock()
		if err := os.Remove(d.path(e.id)); err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
		d.drop(e.id)
		d.evictions.Add(1)
	}
}

func (d *Disk) path(id blockID) string { return filepath.Join(d.root, id.file()) }

func (d *Disk) stopping() bool {
	select {
	case <-d.quit:
		return true
	default:
		return false
	}
}
