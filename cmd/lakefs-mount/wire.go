package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lakefs-mount/lakefs-mount/attr"
	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/internal/budget"
	lakemetrics "github.com/lakefs-mount/lakefs-mount/internal/metrics"
	"github.com/lakefs-mount/lakefs-mount/internal/operation"
	"github.com/lakefs-mount/lakefs-mount/internal/settings"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/render"
	"github.com/lakefs-mount/lakefs-mount/staging"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// lockTimeout bounds how long a mount waits for the state directory of one that
// is ending.
const lockTimeout = 2 * time.Second

// lake is every part of one mount but the mount itself.
type lake struct {
	log       *slog.Logger
	store     objectstore.Store
	view      *catalogview.View
	catalog   catalog
	area      *staging.Area
	committer *commit.Committer
	attr      *attr.Store
	cache     *cache.Cache
	disk      *cache.Disk // nil: none
	children  *render.Children
	metrics   *lakemetrics.Set
	fs        *fs.FS
	settings  []byte // those in force, as .lakefs/config.json tells them
	stagedMax int64  // in force, in bytes

	closers []func() error // in order of opening
}

// parts are what a tree is made of.
type parts struct {
	store   objectstore.Store
	roots   []string
	log     *slog.Logger
	metrics *lakemetrics.Set // counts the requests to a catalog service; nil: nobody
}

// newTree makes the tree of r's source over its store, and the source. It asks
// neither anything. The caller closes the View, then the catalog.
func newTree(r *request, p parts) (*catalogview.View, catalog) {
	o := viewOptions(r, p)
	src := newCatalog(r, p, o)
	return catalogview.NewView(src, p.store, o), src
}

func viewOptions(r *request, p parts) catalogview.Options {
	v := r.settings
	o := catalogview.Options{
		Log: p.log, TTL: orOff(v.MetadataTTL), NegativeTTL: orOff(v.NegativeTTL), Roots: p.roots,
		WriteEntries: writesEntries(r),
		Limits:       table.Limits{MaxBytes: v.ManifestMaxBytes, MaxColumns: v.ManifestMaxColumns, MaxKeys: v.ManifestMaxKeys},
		LoadTimeout:  v.IOTimeout + loadSlack, Secrets: secretNames(r),
	}
	if r.source.onS3() {
		o.MaxKey = maxKey
	}
	if r.source.glue {
		o.Rootless, o.Discover, o.Register = true, v.Discover, registers(r)
	}
	return o
}

// catalog is what a source says, as far as --database and --table let it.
type catalog struct {
	catalogview.Source

	glue *catalogview.Glue // nil: manifests
}

func newCatalog(r *request, p parts, o catalogview.Options) catalog {
	var c catalog
	if r.source.glue {
		c.glue = catalogview.NewGlue(glueOptions(r, p.log, p.metrics))
		c.Source = c.glue
	} else {
		c.Source = catalogview.NewManifests(p.store, r.source.location(), o)
	}
	if v := r.settings; len(v.Databases)+len(v.Tables) > 0 {
		narrow, err := catalogview.Narrow(c.Source, v.Databases, v.Tables)
		if err != nil {
			panic(err) // settings took the patterns
		}
		c.Source = narrow
	}
	return c
}

// refreshCredentials has the next request to a catalog service read them anew.
func (c catalog) refreshCredentials() {
	if c.glue != nil {
		c.glue.RefreshCredentials()
	}
}

// Close lets go of the connections to a catalog service.
func (c catalog) Close() error {
	if c.glue == nil {
		return nil
	}
	return c.glue.Close()
}

// orOff turns the setting 0, "not at all", into what Options have for it.
func orOff[T ~int64](ttl T) T {
	if ttl == 0 {
		return -1
	}
	return ttl
}

// newLake opens all parts and settles what an earlier mount left. The caller
// closes it.
func (p *program) newLake(ctx context.Context, r *request, log *slog.Logger) (*lake, error) {
	l := &lake{log: log, metrics: newMetrics()}
	err := l.open(ctx, r)
	if err == nil && !r.settings.ReadOnly && r.settings.Write != settings.WriteNone { // else the next mount that may write settles it
		err = l.settle(ctx, r)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.area.Expire(ctx)
	l.fs = fs.New(l.config(r))
	return l, nil
}

// settle finishes what an earlier mount was publishing. A store that does not
// answer keeps no mount from starting: what is left stays staged.
func (l *lake) settle(ctx context.Context, r *request) error {
	bounded, cancel := context.WithTimeout(ctx, r.settings.IOTimeout)
	defer cancel()
	_, err := l.committer.Recover(bounded)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		l.log.LogAttrs(ctx, slog.LevelError, "not all publishes of an earlier mount are finished: see lakefs-mount recover", slog.Any("error", err))
		return nil
	}
	return err
}

func (l *lake) open(ctx context.Context, r *request) error {
	store, roots, err := openStore(r, l.log, l.metrics)
	if err != nil {
		return err
	}
	l.store = store
	l.closers = append(l.closers, store.Close)
	if err = makeStateDir(r.settings.StateDir); err != nil {
		return err
	}
	memory := budget.New(memoryLimit(r.settings.MemoryLimit))
	l.stagedMax = stagedMax(r.settings.StagedMax, r.settings.StateDir)
	l.area, err = openArea(ctx, stagingDir(r), staging.Options{
		Log: l.log, Store: l.store, Keep: r.settings.StagedKeep, Max: l.stagedMax,
		Spare: fs.InTransaction, Meta: commit.Meta, PartSize: r.settings.PartSize, Memory: memory,
	})
	if err != nil {
		return err
	}
	l.closers = append(l.closers, l.area.Close)
	l.attr, err = attr.Open(filepath.Join(r.settings.StateDir, "attributes.db"), attr.Options{Log: l.log})
	if err != nil {
		return err
	}
	l.closers = append(l.closers, l.attr.Close)
	if err = l.openDisk(ctx, r, memory); err != nil {
		return err
	}
	l.cache = cache.New(cache.Options{Budget: memory, Rested: debug.FreeOSMemory})
	l.closers = append(l.closers, func() error { l.cache.Close(); return nil })
	l.children = render.NewChildren(render.Options{Deadline: r.settings.IOTimeout + requestSlack})
	l.closers = append(l.closers, l.children.Close)
	l.view, l.catalog = newTree(r, parts{l.store, roots, l.log, l.metrics})
	l.closers = append(l.closers, l.catalog.Close, l.view.Close)
	l.committer = commit.New(commit.Options{
		Store: l.store, Area: l.area, Log: l.log, CheckFormat: r.settings.CheckFormat, Retry: commitRetry(r),
		Registrar: registrar(r, l.view),
	})
	l.bindMetrics(memory)
	l.settings, err = configJSON(r, l, memory.Max())
	return err
}

// openArea opens the staging directory. A mount that was just unmounted may hold
// it for a moment yet.
func openArea(ctx context.Context, dir string, o staging.Options) (*staging.Area, error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		area, err := staging.Open(dir, o) //nolint:contextcheck // it waits for nothing
		if !errors.Is(err, staging.ErrInUse) {
			return area, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Close closes the parts in reverse order. The mount must have ended.
func (l *lake) Close() error {
	var problems []error
	for i := len(l.closers) - 1; i >= 0; i-- {
		problems = append(problems, l.closers[i]())
	}
	l.closers = nil
	return errors.Join(problems...)
}

func (l *lake) config(r *request) fs.Config {
	v := r.settings
	return fs.Config{
		View: l.view, Store: l.store, Area: l.area, Committer: l.committer, Attr: l.attr, Cache: l.cache, Disk: l.disk,
		Metrics: l.metrics, Log: l.log,
		Version: buildData().String(), Source: r.source.String(), Settings: l.settings,
		Write: writeLevel(v.Write), ReadOnly: v.ReadOnly, PublishKilled: v.OnKilled == "publish",
		UID: orUint(v.UID, os.Geteuid()), GID: orUint(v.GID, os.Getegid()),
		FileMode: os.FileMode(v.FileMode), DirMode: os.FileMode(v.DirMode), Umask: os.FileMode(v.Umask),
		MetadataTTL: v.MetadataTTL, NegativeTTL: v.NegativeTTL, RequestTimeout: v.IOTimeout + requestSlack,
		PrefetchFiles: v.PrefetchFiles,
		RenameLimit:   v.RenameLimit, LocalDirectories: filepath.Join(v.StateDir, "directories"), StoreStatus: statusOfStore(r, l.store),
		Passthrough: os.Geteuid() == 0 && !v.NoPassthrough, TemporaryLinger: v.TemporaryLinger,
		TemporaryNames: r.names.temporary, LocalNames: r.names.local, BackupNames: r.names.backup,
		WriteEntries: writesEntries(r), SchemaSQL: render.SchemaSQL, Renderer: renderer{l.children},
		Deregistrar: deregistrar(r, l.view), DeregisterAfter: v.DeregisterAfter,
	}
}

func writeLevel(name string) fs.WriteLevel {
	switch name {
	case settings.WriteNone:
		return fs.WriteNone
	case settings.WriteCreate:
		return fs.WriteCreate
	case settings.WriteDelete:
		return fs.WriteDelete
	}
	return fs.WriteOverwrite
}

func orUint(set *uint32, otherwise int) uint32 {
	if set != nil {
		return *set
	}
	return uint32(otherwise)
}

func (l *lake) bindMetrics(memory *budget.Budget) {
	m := l.metrics
	m.CacheHits.Bind(func() int64 { return l.cache.Stats().Hits })
	m.CacheMisses.Bind(func() int64 { return l.cache.Stats().Misses })
	m.CacheFetches.Bind(func() int64 { return l.cache.Stats().Fetches })
	m.CacheFetchedBytes.Bind(func() int64 { return l.cache.Stats().FetchedBytes })
	m.CacheUncached.Bind(func() int64 { return l.cache.Stats().Uncached })
	l.bindDisk()
	m.StagedWrites.Bind(func() int64 { n, _ := l.area.Usage(); return int64(n) })
	m.StagedBytes.Bind(func() int64 { _, n := l.area.Usage(); return n })
	m.LocalFiles.Bind(func() int64 { n, _ := l.area.Residents(); return int64(n) })
	m.LocalBytes.Bind(func() int64 { _, n := l.area.Residents(); return n })
	m.Memory.With(lakemetrics.HolderBudget).Bind(memory.Used)
	m.Memory.With(lakemetrics.HolderCache).Bind(func() int64 { return l.cache.Stats().Bytes })
	m.Memory.With(lakemetrics.HolderHeap).Bind(heapBytes)
	m.MemoryLimit.Bind(memory.Max)
}

func newMetrics() *lakemetrics.Set {
	b := buildData()
	return lakemetrics.NewSet(lakemetrics.Build{Version: b.Version, Revision: b.Revision, Go: b.Go})
}

func heapBytes() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

func stagingDir(r *request) string { return filepath.Join(r.settings.StateDir, "staging") }

// makeStateDir makes the state directory, private to this user.
func makeStateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("state directory %q: %w; choose another with --state-dir", dir, bare(err))
	}
	return nil
}

// stagedMax is --staged-max, or half of what is free now.
func stagedMax(chosen int64, dir string) int64 {
	var st syscall.Statfs_t
	if chosen > 0 || syscall.Statfs(dir, &st) != nil {
		return chosen
	}
	return int64(st.Bavail) * st.Bsize / 2
}

// memoryLimit is --memory-limit, or a quarter of the memory that this process
// may use, at most 2 GiB. The runtime is told, so that it collects in time.
func memoryLimit(chosen int64) int64 {
	if chosen == 0 {
		chosen = min(availableMemory()/4, 2<<30)
	}
	debug.SetMemoryLimit(chosen + 128<<20)
	return chosen
}

// availableMemory is the machine's memory, or the cgroup's limit if that is less.
func availableMemory() int64 {
	total := int64(8 << 30)
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) == nil {
		total = int64(info.Totalram) * int64(info.Unit) //nolint:unconvert // 32 bits on some machines
	}
	for _, name := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		raw, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && limit > 0 {
			total = min(total, limit)
		}
	}
	return total
}

// newLogger logs to w as the settings say.
func newLogger(w io.Writer, v settings.Values) *slog.Logger {
	o := &slog.HandlerOptions{Level: v.LogLevel}
	var h slog.Handler = slog.NewTextHandler(w, o)
	if v.LogFormat == "json" {
		h = slog.NewJSONHandler(w, o)
	}
	return slog.New(operation.Handler(h))
}

// logState writes what an operator asks for with SIGUSR1.
func (l *lake) logState(ctx context.Context) {
	writes, bytes := l.area.Usage()
	locals, localBytes := l.area.Residents()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	l.log.LogAttrs(ctx, slog.LevelInfo, "state", slog.Int("staged_writes", writes), slog.Int64("staged_bytes", bytes),
		slog.Int("local_files", locals), slog.Int64("local_bytes", localBytes),
		slog.Any("cache", l.cache.Stats()), slog.Any("disk_cache", l.diskStats()), slog.Int("goroutines", runtime.NumGoroutine()), slog.Uint64("heap_bytes", memory.HeapAlloc))
	for _, f := range l.area.Files() {
		rec := f.Record()
		l.log.LogAttrs(ctx, slog.LevelInfo, "staged write", slog.String("id", rec.ID), slog.String("path", rec.Path),
			slog.String("state", string(rec.State)), slog.String("hold", string(rec.Hold)), slog.Int64("bytes", f.Size()), slog.String("error", rec.Error))
	}
}
