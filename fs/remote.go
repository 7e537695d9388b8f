package fs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/internal/pause"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// opened is a version that is known to be there: a file of this host, or the
// answer to a first read that has begun.
type opened struct {
	file   *os.File
	handle *cache.Handle
}

func (o opened) close() {
	if o.handle != nil {
		o.handle.Close()
	}
	if o.file != nil {
		_ = o.file.Close() // read only: nothing to lose
	}
}

// openVersion opens o's version, which is found at a path of the mount: ErrChanged or
// ErrNotExist if it is no longer the one that is there. Of a store over a network that is told by the head of
// the first bytes' answer, which the reader would ask for anyhow.
func (f *FS) openVersion(ctx context.Context, at string, o objectstore.Object) (opened, error) {
	if s, ok := f.Store.(objectstore.Opener); ok {
		file, err := s.OpenObject(ctx, o)
		if err != nil {
			return opened{}, err
		}
		return opened{file: file, handle: f.openCache(o, file)}, nil
	}
	h := f.openCache(o, nil)
	if f.prefetch.partly(o) {
		h.InParts()
	}
	return f.verifiedAs(o, h, f.verify(ctx, o, h, f.columnar(ctx, at, o)))
}

// verifiedAs is the version o, opened as h, if err is nil: it is what is there. Else h is
// closed.
func (f *FS) verifiedAs(o objectstore.Object, h *cache.Handle, err error) (opened, error) {
	if err == nil {
		f.verified.note(o)
		return opened{handle: h}, nil
	}
	h.Close()
	if supersedes(err) {
		f.superseded(o.Location)
	}
	return opened{}, err
}

// verify asks the store whether o is what is there: by its first bytes, with tail
// by its last, or where those are cached by its head alone, once a TTL. The bytes are
// asked for in any case: a small file that is replaced the next moment is read to its end.
func (f *FS) verify(ctx context.Context, o objectstore.Object, h *cache.Handle, tail bool) error {
	if o.Size == 0 && f.verified.has(o) {
		return nil // there are no bytes to ask for
	}
	asked, err := h.Begin(ctx, tail)
	return f.confirm(ctx, o, asked, err)
}

// confirm is verify after the first bytes were asked for, or not.
func (f *FS) confirm(ctx context.Context, o objectstore.Object, asked bool, err error) error {
	if err != nil || asked || f.verified.has(o) {
		return err
	}
	now, err := f.Store.Stat(ctx, o.Location)
	if err == nil && (now.ETag != o.ETag || now.Size != o.Size) {
		err = fmt.Errorf("open %q: %w", o.Key, objectstore.ErrChanged)
	}
	return err
}

// columnar tells files whose readers begin at their end: by the name, or where that has
// no ending, as those of Hive and Athena, by the format of the partition. The others are
// read from their start, and of those that are not the first read asks for what it wants.
func (f *FS) columnar(ctx context.Context, at string, o objectstore.Object) bool {
	switch strings.ToLower(path.Ext(o.Key)) {
	case ".parquet", ".parq", ".pq", ".orc":
		return true
	case "":
		if o.Size <= glance {
			return false // it is fetched whole
		}
		r, err := f.View.Format(ctx, at)
		return err == nil && (r.Format == "parquet" || r.Format == "orc")
	}
	return false
}

// supersedes tells errors that say another version is there, or none.
func supersedes(err error) bool {
	return errors.Is(err, objectstore.ErrChanged) || errors.Is(err, objectstore.ErrNotExist)
}

// A store that contradicts itself (a look-up tells of one version, an open of
// another) may do so for a moment: it is asked again, not all the time, and
// believed to be broken after some two seconds.
const (
	pinPause          = time.Millisecond
	maxPinPause       = 500 * time.Millisecond
	maxContradictions = 12
)

var errContradiction = errors.New("the store has another version than it tells of")

// lookupPinned looks path up and opens the version that it answers, for a
// reader that was turned away once: a name that is replaced all the time must
// not turn it away again.
func (f *FS) lookupPinned(ctx context.Context, path string, tid uint32) (catalogview.Node, error) {
	var before objectstore.Object
	same := 0
	for wait := time.Duration(0); ; wait = min(2*wait+pinPause, maxPinPause) {
		if err := pause.For(ctx, wait); err != nil {
			return catalogview.Node{}, err
		}
		n, err := f.lookup(ctx, path)
		if err != nil || n.Kind != catalogview.KindObject {
			return n, err
		}
		v, err := f.openVersion(ctx, path, n.Object)
		if supersedes(err) {
			if n.Object.ETag != before.ETag || n.Object.Size != before.Size {
				before, same = n.Object, 0
			}
			if same++; same < maxContradictions {
				continue
			}
			return n, fmt.Errorf("%w: %s", errContradiction, err.Error()) // no redirect to look once more
		}
		if err != nil {
			return n, err
		}
		if !f.names.pin(path, tid, versionOf(n.Object), v) {
			v.close()
		}
		return n, nil
	}
}
