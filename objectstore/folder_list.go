package objectstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// direntBuffer is how much of a directory is in memory at a time, in bytes:
// some 800 names.
const direntBuffer = 32 << 10

// errStop ends a listing whose consumer has enough.
var errStop = errors.New("stop")

// List is [Store]'s. Names come in the directory's order; a name that goes
// while it is listed is left out. Of Meta an entry has the mode alone (one map
// for all entries of a mode); a Prefix entry has its ModTime.
func (f *Folder) List(ctx context.Context, prefix Location, opts ListOptions) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		p, err := f.place(prefix)
		if err == nil && !p.directory {
			err = ErrName
		}
		if err == nil {
			l := &lister{ctx: ctx, root: p.root, opts: opts, yield: yield, modes: map[uint32]map[string]string{}}
			err = l.directory(prefix.Key)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Entry{}, fail("list", prefix, err))
		}
	}
}

// lister is one run of List.
type lister struct {
	ctx   context.Context //nolint:containedctx // lives within the one call of List
	root  *root
	opts  ListOptions
	yield func(Entry, error) bool
	count int
	above []dirID // the directories that are being listed, against loops of links
	modes map[uint32]map[string]string
	st    unix.Stat_t // of the entry at hand
}

// directory tells the directory itself and then what is in it. One that is not
// there, or is being listed further up, tells nothing.
func (l *lister) directory(key string) error {
	fd, err := l.root.open(strings.TrimSuffix(key, "/"), unix.O_RDONLY|unix.O_DIRECTORY)
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeFD(fd)
	if err = fstat(fd, &l.st); err != nil {
		return err
	}
	id := dirID{l.st.Dev, l.st.Ino}
	if slices.Contains(l.above, id) {
		return nil
	}
	if err = l.emit(key, false); err != nil {
		return err
	}
	l.above = append(l.above, id)
	err = l.children(fd, key)
	l.above = l.above[:len(l.above)-1]
	return err
}

func (l *lister) children(fd int, prefix string) error {
	buf := make([]byte, direntBuffer)
	for {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		var n int
		err := retry(func() (err error) {
			n, err = unix.Getdents(fd, buf)
			return err
		})
		if is(err, unix.ENOENT) || err == nil && n == 0 { // ENOENT: removed meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		for rest := buf[:n]; len(rest) > 0; {
			var name []byte
			var kind byte
			name, kind, rest = nextDirent(rest)
			if err := l.child(fd, prefix, name, kind); err != nil {
				return err
			}
		}
	}
}

// nextDirent takes one struct linux_dirent64 apart: inode 8, offset 8,
// length 2, type 1, name with a final NUL.
func nextDirent(b []byte) (name []byte, kind byte, rest []byte) {
	size := binary.NativeEndian.Uint16(b[16:18])
	name, _, _ = bytes.Cut(b[19:size], []byte{0})
	return name, b[18], b[size:]
}

func (l *lister) child(dir int, prefix string, name []byte, kind byte) error {
	switch kind {
	case unix.DT_FIFO, unix.DT_SOCK, unix.DT_CHR, unix.DT_BLK:
		return nil
	}
	if string(name) == "." || string(name) == ".." {
		return nil
	}
	key := prefix + string(name)
	err := lstat(dir, key[len(prefix):], &l.st)
	if err == nil && isLink(&l.st) {
		err = l.root.stat(key, &l.st)
	}
	switch {
	case absent(err):
		return nil
	case err != nil:
		return err
	case isRegular(&l.st):
		return l.emit(key, false)
	case !isDirectory(&l.st):
		return nil
	case l.opts.Delimiter:
		return l.emit(key+"/", true)
	}
	return l.directory(key + "/")
}

// emit yields the entry that l.st tells of.
func (l *lister) emit(key string, prefix bool) error {
	if l.opts.StartAfter != "" && key <= l.opts.StartAfter {
		return nil
	}
	if err := l.ctx.Err(); err != nil {
		return err
	}
	e := Entry{Prefix: prefix}
	e.Location = Location{Bucket: l.root.bucket, Key: key}
	e.ModTime = time.Unix(l.st.Mtim.Unix())
	e.Meta = l.mode()
	if !prefix {
		e.ETag = etagOf(&l.st)
	}
	if isRegular(&l.st) {
		e.Size = l.st.Size
	}
	l.count++
	if !l.yield(e, nil) || l.count == l.opts.Limit {
		return errStop
	}
	return nil
}

func (l *lister) mode() map[string]string {
	mode := l.st.Mode & modeBits
	m, ok := l.modes[mode]
	if !ok {
		m = map[string]string{MetaMode: formatMode(mode)}
		l.modes[mode] = m
	}
	return m
}
