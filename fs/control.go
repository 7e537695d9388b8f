package fs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"unicode/utf8"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// configName is the control file of the settings in force.
const configName = "config.json"

// controlDir is the .lakefs of a directory. It is found by name only.
type controlDir struct {
	fixed
	fs  *FS
	of  *dirNode
	ino uint64
}

var (
	_ gofs.NodeLookuper       = (*controlDir)(nil)
	_ gofs.NodeOpendirHandler = (*controlDir)(nil)
	_ gofs.NodeGetattrer      = (*controlDir)(nil)
)

func (d *dirNode) control(ctx context.Context, dir string, out *fuse.EntryOut) *gofs.Inode {
	c := &controlDir{fs: d.fs, of: d, ino: d.fs.names.inode(child(dir, controlName))}
	d.fs.controlAttributes(&out.Attr, c.ino)
	out.SetEntryTimeout(d.fs.MetadataTTL)
	return d.NewInode(ctx, c, gofs.StableAttr{Mode: syscall.S_IFDIR, Ino: c.ino, Gen: 1})
}

func (f *FS) controlAttributes(a *fuse.Attr, ino uint64) {
	f.fill(a, ino, 0, f.started)
	a.Mode, a.Uid, a.Gid = syscall.S_IFDIR|uint32(0o555&f.DirMode), f.UID, f.GID
}

// Getattr describes a directory that cannot be written.
func (c *controlDir) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	c.fs.controlAttributes(&out.Attr, c.ino)
	return 0
}

// content makes the control files of dir by name. ErrNotExist: no such file here.
func (c *controlDir) content(ctx context.Context, dir, base string) ([]byte, error) {
	switch base {
	case "entry.json":
		data, _, err := c.fs.View.EntryJSON(ctx, dir)
		return data, err
	case "status.json":
		return c.fs.statusJSON(ctx, dir)
	case schemaName:
		return c.fs.schemaSQL(ctx, dir)
	}
	if dir != "" {
		return nil, objectstore.ErrNotExist
	}
	switch base {
	case "version":
		return []byte(c.fs.Version + "\n"), nil
	case configName:
		if c.fs.Settings == nil {
			return nil, objectstore.ErrNotExist
		}
		return c.fs.Settings, nil
	case "jobs.json":
		return c.fs.jobs.json()
	case "stats":
		var b bytes.Buffer
		err := c.fs.writeStats(&b)
		return b.Bytes(), err
	}
	return nil, objectstore.ErrNotExist
}

// Lookup makes a control file's content, of exact size.
func (c *controlDir) Lookup(ctx context.Context, base string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	dir, err := c.of.path()
	if err != nil {
		return nil, toErrno(err)
	}
	path := child(child(dir, controlName), base)
	switch {
	case base == "staged":
		s := &stagedDir{fs: c.fs, of: c.of, ino: c.fs.names.inode(path)}
		c.fs.controlAttributes(&out.Attr, s.ino)
		return c.NewInode(ctx, s, gofs.StableAttr{Mode: syscall.S_IFDIR, Ino: s.ino, Gen: 1}), 0
	case base == transactionsName:
		work, cancel := c.fs.work(ctx)
		defer cancel()
		var n catalogview.Node
		if n, err = c.fs.View.Lookup(work, dir); err == nil && n.Kind != catalogview.KindTable {
			err = objectstore.ErrNotExist
		}
		if err != nil {
			return nil, c.fs.fail("control", path, err)
		}
		return c.transactionsOf(ctx, dir, out), 0
	case (base == rowsName || base == footerName) && c.fs.hasText(dir):
		return c.text(ctx, dir, base, out), 0
	case base == "ctl" && dir == "":
		n := &ctlNode{fs: c.fs, ino: c.fs.names.inode(path), owner: fuse.Owner{Uid: c.fs.UID, Gid: c.fs.GID}, command: c.fs.command}
		n.attributes(&out.Attr)
		return c.NewInode(ctx, n, gofs.StableAttr{Mode: syscall.S_IFREG, Ino: n.ino, Gen: c.fs.ctls.Add(1)}), 0
	}
	work, cancel := c.fs.work(ctx)
	defer cancel()
	if base == partitionsName {
		if err = c.fs.View.HasPartitionLines(work, dir); err != nil {
			return nil, c.fs.fail("control", path, err)
		}
		n := &partitionsNode{unsized: unsized{fs: c.fs, ino: c.fs.names.inode(path)}, of: c.of}
		n.attributes(&out.Attr)
		return c.NewInode(ctx, n, gofs.StableAttr{Mode: syscall.S_IFREG, Ino: n.ino, Gen: 1}), 0
	}
	data, err := c.content(work, dir, base)
	if err != nil {
		return nil, c.fs.fail("control", path, err)
	}
	return c.fs.contentInode(ctx, c.EmbeddedInode(), path, data, out), 0
}

// OpendirHandle lists what Lookup finds.
func (c *controlDir) OpendirHandle(ctx context.Context, _ uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	dir, err := c.of.path()
	if err != nil {
		return nil, 0, toErrno(err)
	}
	names := []string{"status.json"}
	work, cancel := c.fs.work(ctx)
	defer cancel()
	if c.fs.hasEntry(work, dir) {
		names = append(names, "entry.json")
	}
	if c.fs.View.HasPartitionLines(work, dir) == nil {
		names = append(names, partitionsName)
	}
	if c.fs.hasSchema(dir) {
		names = append(names, schemaName)
	}
	if dir == "" {
		names = append(names, "ctl", "jobs.json", "stats", "version")
		if c.fs.Settings != nil {
			names = append(names, configName)
		}
	}
	list := []fuse.DirEntry{{Name: "staged", Mode: syscall.S_IFDIR, Ino: c.fs.names.inode(child(child(dir, controlName), "staged"))}}
	if strings.Count(dir, "/") == 1 {
		list = append(list, fuse.DirEntry{Name: transactionsName, Mode: syscall.S_IFDIR, Ino: c.fs.names.inode(child(child(dir, controlName), transactionsName))})
	}
	if c.fs.hasText(dir) {
		for _, n := range []string{rowsName, footerName} {
			list = append(list, fuse.DirEntry{Name: n, Mode: syscall.S_IFDIR, Ino: c.fs.names.inode(child(child(dir, controlName), n))})
		}
	}
	for _, n := range names {
		list = append(list, fuse.DirEntry{Name: n, Mode: syscall.S_IFREG, Ino: c.fs.names.inode(child(child(dir, controlName), n))})
	}
	return &controlHandle{list: list}, 0, 0
}

// controlHandle is an open control directory.
type controlHandle struct {
	list []fuse.DirEntry
	pos  uint64 // names given out; the offset of the last of them
}

var (
	_ gofs.FileReaddirenter = (*controlHandle)(nil)
	_ gofs.FileSeekdirer    = (*controlHandle)(nil)
	_ gofs.FileLookuper     = (*controlHandle)(nil)
)

// Readdirent returns the next name.
func (h *controlHandle) Readdirent(context.Context) (*fuse.DirEntry, syscall.Errno) {
	if h.pos >= uint64(len(h.list)) {
		return nil, 0
	}
	e := h.list[h.pos]
	h.pos++
	e.Off = h.pos
	return &e, 0
}

// Seekdir goes on behind entry off.
func (h *controlHandle) Seekdir(_ context.Context, off uint64) syscall.Errno {
	h.pos = off
	return 0
}

// Lookup gives READDIRPLUS nothing: the files' contents are made at their look-up,
// by requests, and who lists names need not want them. The kernel looks up by itself
// what it is asked for.
func (h *controlHandle) Lookup(context.Context, string, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, toErrno(objectstore.ErrNotExist)
}

// hasEntry reports whether the catalog has an entry of the directory dir. It does
// not fetch it.
func (f *FS) hasEntry(ctx context.Context, dir string) bool {
	level := strings.Count(dir, "/") - 1 // below the table
	if level <= 0 {
		n, err := f.View.Lookup(ctx, dir)
		return err == nil && (n.Kind == catalogview.KindDatabase || n.Kind == catalogview.KindTable)
	}
	parts := strings.SplitN(dir, "/", 3)
	n, err := f.View.Lookup(ctx, child(parts[0], parts[1]))
	if err != nil || n.Table == nil || n.Table.Partitions != table.PartitionsInCatalog || level != len(n.Table.Keys) {
		return false
	}
	n, err = f.View.Lookup(ctx, dir)
	return err == nil && n.Registered
}

// stagedDir is .lakefs/staged: the unpublished files of one directory.
type stagedDir struct {
	fixed
	fs  *FS
	of  *dirNode
	ino uint64
}

var (
	_ gofs.NodeLookuper  = (*stagedDir)(nil)
	_ gofs.NodeReaddirer = (*stagedDir)(nil)
	_ gofs.NodeGetattrer = (*stagedDir)(nil)
	_ gofs.NodeUnlinker  = (*stagedDir)(nil)
)

// stagedName is how an unpublished file is shown: its name, cut where the whole
// would be too long for one, and eight digits of its write id.
func stagedName(r staging.Record) string {
	_, base := parent(r.Path)
	id := "~" + r.ID[:min(8, len(r.ID))]
	cut := min(len(base), 255-len(id))
	for cut < len(base) && cut > 0 && !utf8.RuneStart(base[cut]) {
		cut--
	}
	return base[:cut] + id
}

// find returns the unpublished file of the directory with a shown name. At the root
// "~" and eight digits of its id lead to any, also to one whose directory is gone.
func (s *stagedDir) find(base string) *staging.File {
	dir, err := s.of.path()
	if err != nil {
		return nil
	}
	for _, w := range s.fs.Area.Files() {
		r := w.Record()
		switch {
		case !w.Dirty():
		case inDirectory(r.Path, dir) && stagedName(r) == base, dir == "" && base == "~"+r.ID[:min(8, len(r.ID))]:
			return w
		}
	}
	return nil
}

// Getattr describes a directory that cannot be written.
func (s *stagedDir) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	s.fs.controlAttributes(&out.Attr, s.ino)
	return 0
}

// Lookup finds an unpublished file by its shown name. With partialSuffix behind that
// it is the file without the version that it changed; such a name is not listed.
func (s *stagedDir) Lookup(ctx context.Context, base string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	w := s.find(base)
	shown, partial := strings.CutSuffix(base, partialSuffix)
	if partial = partial && w == nil; partial {
		w = s.find(shown)
	}
	if w == nil {
		return nil, toErrno(objectstore.ErrNotExist)
	}
	dir, _ := s.of.path()
	path := child(child(dir, controlName+"/staged"), base)
	if partial {
		return s.of.partialView(ctx, path, w, out), 0
	}
	return s.of.stagedView(ctx, path, w, out), 0
}

// Readdir lists the unpublished files.
func (s *stagedDir) Readdir(context.Context) (gofs.DirStream, syscall.Errno) {
	dir, err := s.of.path()
	if err != nil {
		return nil, toErrno(err)
	}
	var list []fuse.DirEntry
	for _, w := range s.fs.Area.Files() {
		r := w.Record()
		if !w.Dirty() || !inDirectory(r.Path, dir) {
			continue
		}
		name := stagedName(r)
		list = append(list, fuse.DirEntry{Name: name, Mode: syscall.S_IFREG, Ino: s.fs.names.inode(child(child(dir, controlName+"/staged"), name))})
	}
	return gofs.NewListDirStream(list), 0
}

// Unlink discards a kept file whose writer is gone.
func (s *stagedDir) Unlink(_ context.Context, base string) syscall.Errno {
	w := s.find(base)
	if w == nil {
		return toErrno(objectstore.ErrNotExist)
	}
	if s.fs.ReadOnly {
		return toErrno(errReadOnly)
	}
	ctx, cancel := s.fs.background()
	defer cancel()
	return s.fs.fail("unlink", s.fs.shown(w), s.fs.discard(ctx, w))
}

// stagedViewNode shows an unpublished file's bytes under another name.
type stagedViewNode struct {
	fixed
	fs   *FS
	ino  uint64
	file *staging.File
}

var (
	_ gofs.NodeGetattrer   = (*stagedViewNode)(nil)
	_ gofs.NodeOpener      = (*stagedViewNode)(nil)
	_ gofs.NodeReader      = (*stagedViewNode)(nil)
	_ gofs.NodeGetxattrer  = (*stagedViewNode)(nil)
	_ gofs.NodeListxattrer = (*stagedViewNode)(nil)
)

func (d *dirNode) stagedView(ctx context.Context, path string, w *staging.File, out *fuse.EntryOut) *gofs.Inode {
	v := &stagedViewNode{fs: d.fs, ino: d.fs.names.inode(path), file: w}
	return v.enter(ctx, d, v, out)
}

// enter makes the inode below d of node, which is v or has it.
func (v *stagedViewNode) enter(ctx context.Context, d *dirNode, node gofs.InodeEmbedder, out *fuse.EntryOut) *gofs.Inode {
	out.SetEntryTimeout(0)
	out.SetAttrTimeout(0)
	v.attributes(&out.Attr)
	return d.NewInode(ctx, node, gofs.StableAttr{Mode: syscall.S_IFREG, Ino: v.ino, Gen: generation(v.file.ID())})
}

func (v *stagedViewNode) attributes(a *fuse.Attr) {
	r := v.file.Record()
	v.fs.fill(a, v.ino, v.file.Size(), r.Changed)
	a.Mode, a.Uid, a.Gid = syscall.S_IFREG|r.Mode&0o444, r.UID, r.GID
}

// Getattr shows the size so far.
func (v *stagedViewNode) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	v.attributes(&out.Attr)
	return 0
}

// Open reads past the page cache: the bytes may still grow.
func (v *stagedViewNode) Open(_ context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		return nil, 0, toErrno(errControl)
	}
	return &contentHandle{}, fuse.FOPEN_DIRECT_IO, 0
}

// Read reads the spool.
func (v *stagedViewNode) Read(_ context.Context, _ gofs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, err := v.file.ReadAt(v.fs.operations.New(context.Background()), dest, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, v.fs.fail("read", v.fs.shown(v.file), err)
	}
	return fuse.ReadResultData(dest[:n]), 0
}
