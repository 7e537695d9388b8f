package catalogview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

type obj = map[string]any

// lake is a folder of manifests in a temporary directory, and its view.
type lake struct {
	t     *testing.T
	root  string // the catalog's; real, so that tests compare paths
	extra string // an allowed directory beside it
	store *probe
	view  *View
	log   *bytes.Buffer
}

func newLake(t *testing.T, change func(*Options)) *lake {
	t.Helper()
	tmp, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &lake{t: t, root: filepath.Join(tmp, "wh"), extra: filepath.Join(tmp, "extra"), log: new(bytes.Buffer)}
	for _, d := range []string{l.root, l.extra, filepath.Join(tmp, "wh2")} {
		if err = os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := objectstore.NewFolder(l.root, l.extra)
	if err != nil {
		t.Fatal(err)
	}
	l.store = &probe{Folder: folder}
	o := Options{
		TTL: -1, NegativeTTL: -1, Roots: []string{l.root, l.extra},
		Log: slog.New(slog.NewTextHandler(&lockedWriter{w: l.log}, nil)),
	}
	if change != nil {
		change(&o)
	}
	src := NewManifests(l.store, objectstore.Location{Bucket: l.root}, o)
	l.view = NewView(src, l.store, o)
	t.Cleanup(func() {
		if err := errors.Join(l.view.Close(), folder.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

type lockedWriter struct {
	sync.Mutex
	w io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.w.Write(p)
}

// write makes a file below the catalog's root, or at an absolute path.
func (l *lake) write(path, content string) {
	l.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.root, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lake) mkdir(path string) {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Join(l.root, path), 0o755); err != nil {
		l.t.Fatal(err)
	}
}

// table makes a manifest; id is "db/name", keys are "name:type".
func (l *lake) table(id, location string, keys []string, change func(m obj)) {
	l.t.Helper()
	l.write(id+"/_sqe/table.json", manifestOf(id, location, keys, change))
}

func manifestOf(id, location string, keys []string, change func(m obj)) string {
	db, name, _ := strings.Cut(id, "/")
	cols := []obj{}
	for _, k := range keys {
		n, typ, _ := strings.Cut(k, ":")
		cols = append(cols, obj{"name": n, "type": typ})
	}
	m := obj{
		"manifest_version": 1, "table_type": "EXTERNAL_TABLE", "database_name": db, "name": name,
		"partition_keys": cols, "parameters": obj{},
		"storage_descriptor": obj{
			"location":     location,
			"input_format": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
			"serde_info":   obj{"serialization_library": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"},
			"columns":      []obj{{"name": "a", "type": "bigint"}},
		},
	}
	if change != nil {
		change(m)
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func formatParameters(kv ...string) func(m obj) {
	return func(m obj) {
		p := obj{"type": "format-table", "file.format": "parquet"}
		for i := 0; i < len(kv); i += 2 {
			p[kv[i]] = kv[i+1]
		}
		m["parameters"] = p
	}
}

// ls returns the base names of a directory, directories with a "/", sorted.
func ls(t *testing.T, v *View, path string) []string {
	t.Helper()
	names, err := list(t.Context(), v, path)
	if err != nil {
		t.Fatalf("ReadDir(%s): %v", path, err)
	}
	return names
}

func list(ctx context.Context, v *View, path string) ([]string, error) {
	names := []string{}
	for n, err := range v.ReadDir(ctx, path) {
		if err != nil {
			return nil, err
		}
		name := n.Path[strings.LastIndexByte(n.Path, '/')+1:]
		if n.Kind.Directory() {
			name += "/"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func wantLs(t *testing.T, v *View, path string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := ls(t, v, path); !slices.Equal(got, want) {
		t.Errorf("ReadDir(%s): got %q, want %q", path, got, want)
	}
}

func lookup(t *testing.T, v *View, path string) Node {
	t.Helper()
	n, err := v.Lookup(t.Context(), path)
	if err != nil {
		t.Fatalf("Lookup(%s): %v", path, err)
	}
	return n
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// probe is a folder that counts requests and fails some.
type probe struct {
	*objectstore.Folder
	mu     sync.Mutex
	counts map[string]int
	// fail is asked before each request; a non-nil error is its answer.
	fail func(op string, loc objectstore.Location) error
}

func (p *probe) ask(op string, loc objectstore.Location) error {
	p.mu.Lock()
	if p.counts == nil {
		p.counts = make(map[string]int)
	}
	p.counts[op]++
	fail := p.fail
	p.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail(op, loc)
}

func (p *probe) setFail(f func(op string, loc objectstore.Location) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail = f
}

// requests runs f and returns how many requests of each kind it made.
func (p *probe) requests(f func()) map[string]int {
	p.mu.Lock()
	p.counts = make(map[string]int)
	p.mu.Unlock()
	f()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

func (p *probe) Stat(ctx context.Context, loc objectstore.Location) (objectstore.Object, error) {
	if err := p.ask("stat", loc); err != nil {
		return objectstore.Object{}, err
	}
	return p.Folder.Stat(ctx, loc)
}

func (p *probe) Read(ctx context.Context, o objectstore.Object, off, n int64) (objectstore.Object, io.ReadCloser, error) {
	if err := p.ask("read", o.Location); err != nil {
		return objectstore.Object{}, nil, err
	}
	return p.Folder.Read(ctx, o, off, n)
}

func (p *probe) List(ctx context.Context, prefix objectstore.Location, o objectstore.ListOptions) iter.Seq2[objectstore.Entry, error] {
	return func(yield func(objectstore.Entry, error) bool) {
		if err := p.ask("list", prefix); err != nil {
			yield(objectstore.Entry{}, err)
			return
		}
		for e, err := range p.Folder.List(ctx, prefix, o) {
			if !yield(e, err) {
				return
			}
		}
	}
}
