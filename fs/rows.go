package fs

import (
	"context"
	"fmt"
	"io"
	"strings"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// The control directories of files as text.
const (
	rowsName   = "rows"
	footerName = "footer"
)

// maxName is the most bytes of a name.
const maxName = 255

// Text is what is to be made of a file.
type Text struct {
	Path   string // of the file, in the mount
	Footer bool   // else its rows
	Output string // of rows: "jsonl", "csv", or "spec": how a Renderer would be asked, as JSON
	catalogview.Rows
}

// Renderer makes text of files.
type Renderer interface {
	// Render begins to make the text of a file of size bytes, which src reads; src is nil
	// for the output "spec". It may read src until the text is closed, which waits for it.
	// ctx is that of the whole text. Errors of a Read: what wraps src's, ErrGaveWay where
	// the text should be asked for again, others are EIO.
	Render(ctx context.Context, t Text, src *cache.Handle, size int64) (io.ReadCloser, error)
}

// texts are the files of a control directory of text, by what their names end in.
var texts = map[string][]struct{ suffix, output string }{ //nolint:gochecknoglobals // a constant table
	rowsName:   {{".jsonl", "jsonl"}, {".csv", "csv"}, {".spec", "spec"}},
	footerName: {{".json", ""}},
}

// textDir is .lakefs/rows or .lakefs/footer: files of its directory as text.
type textDir struct {
	fixed
	fs   *FS
	of   *dirNode
	name string
	ino  uint64
}

var (
	_ gofs.NodeLookuper       = (*textDir)(nil)
	_ gofs.NodeOpendirHandler = (*textDir)(nil)
	_ gofs.NodeGetattrer      = (*textDir)(nil)
)

// text returns the directory of that name, if there is one in a control directory of dir.
func (c *controlDir) text(ctx context.Context, dir, name string, out *fuse.EntryOut) *gofs.Inode {
	d := &textDir{fs: c.fs, of: c.of, name: name, ino: c.fs.names.inode(child(child(dir, controlName), name))}
	c.fs.controlAttributes(&out.Attr, d.ino)
	return c.NewInode(ctx, d, gofs.StableAttr{Mode: syscall.S_IFDIR, Ino: d.ino, Gen: 1})
}

// hasText says that a control directory of dir has texts: below a table there may be files.
func (f *FS) hasText(dir string) bool {
	return f.Renderer != nil && strings.Count(dir, "/") > 0 && !inTransaction(dir)
}

// Getattr describes a directory that cannot be written.
func (d *textDir) Getattr(_ context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	d.fs.controlAttributes(&out.Attr, d.ino)
	return 0
}

// Lookup finds a file's text, if there is such a file.
func (d *textDir) Lookup(ctx context.Context, base string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	dir, err := d.of.path()
	if err != nil {
		return nil, toErrno(err)
	}
	path := child(child(child(dir, controlName), d.name), base)
	for _, t := range texts[d.name] {
		file, is := strings.CutSuffix(base, t.suffix)
		if !is || file == "" {
			continue
		}
		n := &textNode{unsized: unsized{fs: d.fs, ino: d.fs.names.inode(path)}, of: d.of, path: path, file: file, output: t.output, footer: d.name == footerName}
		return n.enter(ctx, d, out)
	}
	return nil, toErrno(objectstore.ErrNotExist)
}

// OpendirHandle lists the texts of the files whose rows can be shown, or may be.
func (d *textDir) OpendirHandle(ctx context.Context, _ uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	dir, err := d.of.path()
	if err != nil {
		return nil, 0, toErrno(err)
	}
	work, cancel := d.fs.work(ctx)
	defer cancel()
	var list []fuse.DirEntry
	for n, err := range d.fs.View.ReadDir(work, dir) {
		if err != nil {
			return nil, 0, d.fs.fail("readdir", child(child(dir, controlName), d.name), err)
		}
		if n.Kind != catalogview.KindObject {
			continue
		}
		rows, err := d.fs.rowsOf(work, n.Path, d.name == footerName)
		if err != nil || !rows.HasRows() {
			continue // an open tells why, if there is something to tell
		}
		_, base := parent(n.Path)
		for _, t := range texts[d.name] {
			if name := base + t.suffix; t.output != "spec" && len(name) <= maxName {
				list = append(list, fuse.DirEntry{Name: name, Mode: syscall.S_IFREG, Ino: d.fs.names.inode(child(child(child(dir, controlName), d.name), name))})
			}
		}
	}
	return &controlHandle{list: list}, 0, 0
}

// textNode is one file's text.
type textNode struct {
	unsized
	of     *dirNode
	path   string // when it was looked up
	file   string // its name in of
	output string
	footer bool
}

var (
	_ gofs.NodeGetattrer = (*textNode)(nil)
	_ gofs.NodeOpener    = (*textNode)(nil)
)

// enter makes the node's inode below d; of a spec, which is small and known, that of its
// content.
func (n *textNode) enter(ctx context.Context, d *textDir, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	work, cancel := n.fs.work(ctx)
	defer cancel()
	t, _, err := n.find(work)
	if err == nil && n.output == "spec" {
		var data []byte
		if data, err = n.spec(work, t); err == nil {
			return n.fs.contentInode(ctx, d.EmbeddedInode(), n.path, data, out), 0
		}
	}
	if err != nil {
		return nil, n.fs.fail("control", n.path, err)
	}
	n.attributes(&out.Attr)
	return d.NewInode(ctx, n, gofs.StableAttr{Mode: syscall.S_IFREG, Ino: n.ino, Gen: 1}), 0
}

// find returns what is to be made of the file, and the version of it that is there.
func (n *textNode) find(ctx context.Context) (t Text, o objectstore.Object, err error) {
	dir, err := n.of.path()
	if err != nil {
		return t, o, err
	}
	t = Text{Path: child(dir, n.file), Footer: n.footer, Output: n.output}
	at, err := n.fs.lookup(ctx, t.Path)
	if err == nil && at.Kind != catalogview.KindObject {
		err = objectstore.ErrNotExist
	}
	if err == nil {
		t.Rows, err = n.fs.rowsOf(ctx, t.Path, n.footer)
	}
	if err == nil && !t.HasRows() {
		err = objectstore.ErrNotExist
	}
	return t, at.Object, err
}

// rowsOf is what is known of a file for its text. A footer is the file's own: what the
// table says of rows, or refuses, is nothing to it.
func (f *FS) rowsOf(ctx context.Context, path string, footer bool) (catalogview.Rows, error) {
	if footer {
		return f.View.Format(ctx, path)
	}
	return f.View.Rows(ctx, path)
}

func (n *textNode) spec(ctx context.Context, t Text) ([]byte, error) {
	text, err := n.fs.Renderer.Render(ctx, t, nil, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = text.Close() }()
	return io.ReadAll(text)
}

// Open opens the version that is there: its text is what all reads of the descriptor
// give. The first read begins to make it.
func (n *textNode) Open(ctx context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		return nil, 0, toErrno(errControl)
	}
	work, cancel := n.fs.work(ctx)
	defer cancel()
	t, o, v, err := n.version(work)
	if err != nil {
		return nil, 0, n.fs.fail("open", n.path, err)
	}
	h := &streamHandle{fs: n.fs, path: n.path, release: v.close, turn: make(chan struct{}, 1)}
	h.open = func(ctx context.Context) (io.ReadCloser, error) {
		text, err := n.fs.Renderer.Render(ctx, t, v.handle, o.Size)
		if err != nil {
			return nil, err
		}
		return &textStream{ReadCloser: text, fs: n.fs, of: o}, nil
	}
	return h, fuse.FOPEN_DIRECT_IO, 0
}

// version finds the file and opens it. What is replaced meanwhile is looked up again.
func (n *textNode) version(ctx context.Context) (t Text, o objectstore.Object, v opened, err error) {
	for range maxContradictions {
		if t, o, err = n.find(ctx); err != nil {
			return t, o, v, err
		}
		if v, err = n.fs.openParts(ctx, o, t.Format != "avro"); !supersedes(err) {
			return t, o, v, err
		}
	}
	return t, o, v, fmt.Errorf("%w: %s", errContradiction, err.Error())
}

// openParts is openVersion for a Renderer, which knows what it will read, and begins at
// the end of what is columnar.
func (f *FS) openParts(ctx context.Context, o objectstore.Object, columnar bool) (opened, error) {
	if _, local := f.Store.(objectstore.Opener); local {
		v, err := f.openVersion(ctx, "", o)
		if err == nil {
			v.handle.Exactly()
		}
		return v, err
	}
	h := f.openCache(o, nil)
	h.Exactly()
	asked, err := h.Begin(ctx, columnar)
	return f.verifiedAs(o, h, f.confirm(ctx, o, asked, err))
}

// textStream is the text of one version.
type textStream struct {
	io.ReadCloser
	fs *FS
	of objectstore.Object
}

// Read reads text. That the version is gone is told to all who would look it up again.
func (s *textStream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && supersedes(err) {
		s.fs.superseded(s.of.Location)
		err = fmt.Errorf("%w: %w", objectstore.ErrChanged, err)
	}
	return n, err
}
