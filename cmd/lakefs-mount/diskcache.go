package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"syscall"
	"time"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/internal/budget"
)

// diskShare is the part of its disk that a cache takes unless it is told: one in so
// many.
const diskShare = 10

// openDisk opens the disk cache that r asks for. A mount that was just unmounted may
// hold it for a moment yet.
func (l *lake) openDisk(ctx context.Context, r *request, memory *budget.Budget) error {
	v := r.settings
	if v.CacheDir == "" || !r.source.onS3() {
		return nil
	}
	size := v.CacheSize
	if size == 0 {
		size = diskBytes(v.CacheDir) / diskShare
	} else if whole := diskBytes(v.CacheDir); whole > 0 && size > whole { // 0: it does not say
		l.log.LogAttrs(ctx, slog.LevelWarn, "--cache-size is more than the file system of --cache-dir has; the cache ends where that is full",
			slog.String("dir", v.CacheDir), slog.Int64("cache_size_bytes", size), slog.Int64("file_system_bytes", whole))
	}
	o := cache.DiskOptions{Budget: memory, Store: storeEndpoint(r), Owner: r.mountpoint, Log: l.log}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		disk, err := cache.OpenDisk(v.CacheDir, size, o) //nolint:contextcheck // it waits for nothing
		if err == nil {
			l.disk = disk
			l.closers = append(l.closers, disk.Close)
			return nil
		}
		if !errors.Is(err, cache.ErrDiskInUse) {
			return fmt.Errorf("--cache-dir: %w", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("--cache-dir: %w", err)
		}
	}
}

// diskBytes is the size of the file system that a directory is on, or will be.
func diskBytes(dir string) int64 {
	var st syscall.Statfs_t
	for syscall.Statfs(dir, &st) != nil && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	return int64(st.Blocks) * st.Bsize
}

// cacheApart refuses a cache directory that lies one in the other with the state
// directory, or in a mount of ours: there blocks would be published, as a table's data.
func cacheApart(r *request, state string) error {
	dir := r.settings.CacheDir
	if dir == "" || !r.source.onS3() {
		return nil
	}
	cached, state := realPath(dir), realPath(state)
	if within(cached, state) || within(state, cached) {
		return fmt.Errorf("--cache-dir %q: it and the state directory (%q) lie one in the other; give each a directory of its own", dir, state)
	}
	return outsideMounts("--cache-dir", dir)
}

// outsideMounts refuses a directory, which need not be there yet, in a mount of this
// program: what is kept there would be published. what names it.
func outsideMounts(what, dir string) error {
	table, err := mountTable()
	if err != nil {
		return err
	}
	if m := mountHolding(table, realPath(dir)); m.ours() {
		return fmt.Errorf("%s %q lies in the mount of lakefs-mount at %q, where what is kept there would become data of a table; choose one on a local disk", what, dir, m.path)
	}
	return nil
}

// diskStats are the disk cache's; zero without one.
func (l *lake) diskStats() cache.DiskStats {
	if l.disk == nil {
		return cache.DiskStats{}
	}
	return l.disk.Stats()
}

func (l *lake) bindDisk() {
	m := l.metrics
	m.DiskHits.Bind(func() int64 { return l.diskStats().Hits })
	m.DiskMisses.Bind(func() int64 { return l.diskStats().Misses })
	m.DiskCorrupt.Bind(func() int64 { return l.diskStats().Corrupt })
	m.DiskWritten.Bind(func() int64 { return l.diskStats().Written })
	m.DiskDropped.Bind(func() int64 { return l.diskStats().Dropped })
	m.DiskEvicted.Bind(func() int64 { return l.diskStats().Evicted })
	m.DiskBytes.Bind(func() int64 { return l.diskStats().Bytes })
	m.DiskLimit.Bind(func() int64 { return l.diskStats().Limit })
}

// diskCache is what the mount tells of its disk cache; nil: it has none.
func (s mountStatus) diskCache() *cache.DiskStats { return diskCacheOf(s.Status) }

// diskCacheOf reads status.json of a mount.
func diskCacheOf(raw []byte) *cache.DiskStats {
	var status struct {
		Mount struct {
			DiskCache *cache.DiskStats `json:"disk_cache"`
		} `json:"mount"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &status) != nil {
		return nil
	}
	return status.Mount.DiskCache
}

// diskLine tells of a mount's disk cache.
func diskLine(mountpoint string, d cache.DiskStats) string {
	line := fmt.Sprintf("%s: disk cache in %s: %s of %s, %s hits", quoted(mountpoint), quoted(d.Dir), sizeText(d.Bytes), sizeText(d.Limit),
		percent(float64(d.Hits), float64(d.Misses)))
	if d.Corrupt > 0 {
		line += fmt.Sprintf(", %s found damaged and removed", countOf(int(d.Corrupt), "block"))
	}
	if d.Failed != "" {
		line += ", which does not work: " + printable(d.Failed)
	}
	return line
}
