package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/cache"
	"github.com/lakefs-mount/lakefs-mount/internal/pause"
)

const warmLong = `Reads files of a mount, and all files below directories of one, so that they are in
the mount's cache: on the disk of --cache-dir, where they stay, or without one in
memory, where what is read next takes their place.

The files are read past the kernel's page cache, each once. Entries (NAME.json) and
.lakefs/ are left out. A file that cannot be read is named, the others are read, and the exit
status is 1. Ctrl-C ends it: what was read stays in the cache.`

// settleTimeout bounds how long what was read may take to the disk.
const settleTimeout = 30 * time.Second

// warmed is what came of a warm. Sizes are in bytes.
type warmed struct {
	Files       int           `json:"files"`
	Bytes       int64         `json:"bytes"`
	Seconds     float64       `json:"seconds"`
	Interrupted bool          `json:"interrupted"`
	Failed      []warmFailure `json:"failed"`
	Mounts      []warmMount   `json:"mounts"`
}

// warmFailure is a path that could not be read, or not listed.
type warmFailure struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// warmMount is a mount that files were read through.
type warmMount struct {
	MountPoint string           `json:"mountpoint"`
	DiskCache  *cache.DiskStats `json:"disk_cache"` // at the end; nil: none
	NotKept    int64            `json:"not_kept"`   // blocks that did not come to the disk meanwhile
	before     *cache.DiskStats // at the begin
	memory     int64            // budget of the cache in memory
}

func (p *program) warmCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "warm [flags] PATH…",
		Short: "Bring files, and all below directories, into the cache of their mount",
		Long:  warmLong,
		Args:  arguments(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, unix.SIGTERM)
			defer stop()
			places, mounts, err := warmPlaces(ctx, args)
			if err != nil {
				return err
			}
			places = p.toWarm(places)
			began := time.Now()
			w := &warmer{p: p, result: warmed{Failed: []warmFailure{}, Mounts: mounts}}
			w.run(ctx, places)
			r := w.outcome()
			r.Seconds, r.Interrupted = time.Since(began).Seconds(), ctx.Err() != nil
			r.settle(context.WithoutCancel(ctx))
			return p.tellWarmed(r, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "the outcome as JSON")
	return cmd
}

// toWarm leaves out what holds no data, with a note, and what lies below another.
func (p *program) toWarm(places []place) (kept []place) {
	for _, at := range places {
		if slices.Contains(strings.Split(at.below, "/"), ".lakefs") || isEntry(at.mount.path, at.path) {
			p.errorf("lakefs-mount: %q is left out: it tells of data, and holds none\n", at.path)
			continue
		}
		kept = append(kept, at)
	}
	slices.SortStableFunc(kept, func(a, b place) int { return len(a.path) - len(b.path) })
	var apart []place
	for _, at := range kept {
		if !slices.ContainsFunc(apart, func(above place) bool { return within(at.path, above.path) }) {
			apart = append(apart, at)
		}
	}
	return apart
}

// warmPlaces are the places of args, and the mounts that they are in. A
// path in no mount that has a cache refuses all.
func warmPlaces(ctx context.Context, args []string) (places []place, mounts []warmMount, err error) {
	var problems []error
	for _, arg := range args {
		at, err := placeOf(ctx, arg)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		places = append(places, at)
		if slices.ContainsFunc(mounts, func(m warmMount) bool { return m.MountPoint == at.mount.path }) {
			continue
		}
		m, err := warmMountOf(ctx, at.mount.path)
		if err != nil {
			problems = append(problems, err)
		}
		mounts = append(mounts, m)
	}
	return places, mounts, errors.Join(problems...)
}

// warmMountOf asks a mount for its caches.
func warmMountOf(ctx context.Context, mountpoint string) (warmMount, error) {
	m := warmMount{MountPoint: mountpoint}
	raw, err := readControl(ctx, mountpoint, "status.json")
	if err != nil {
		return m, fmt.Errorf("ask the mount at %q: %w", mountpoint, bare(err))
	}
	if (mountStatus{Status: raw}).store().Kind == "folder" {
		return m, fmt.Errorf("%q is the mount of a local folder, whose files are read where they are: there is nothing to warm", mountpoint)
	}
	m.before = diskCacheOf(raw)
	if stats, err := readControl(ctx, mountpoint, "stats"); err == nil {
		m.memory = int64(mountStatus{Metrics: parseMetrics(string(stats))}.sum("memory_limit_bytes", ""))
	}
	return m, nil
}

// warnOfCache says what of total bytes will not stay in the mounts' caches.
func (w *warmer) warnOfCache(total int64) {
	for _, m := range w.result.Mounts {
		limit, setting := m.memory, "--memory-limit"
		switch {
		case m.before == nil:
			w.p.errorf("lakefs-mount: the mount at %q has no --cache-dir: what is read stays in its memory alone, until that is needed or the mount ends\n", m.MountPoint)
		case m.before.Failed != "":
			w.p.errorf("lakefs-mount: the disk cache of the mount at %q does not work: %s\n", m.MountPoint, printable(m.before.Failed))
			fallthrough
		default:
			limit, setting = m.before.Limit, "--cache-size"
		}
		if total > limit && len(w.result.Mounts) == 1 {
			w.p.errorf("lakefs-mount: not all fits into the cache of the mount at %q: it is %s, and %s is %s; what is read first goes for what is read last\n", m.MountPoint, sizeText(total), setting, sizeText(limit))
		}
	}
}

// settle waits until what was read is on the disk, and counts what is not.
func (r *warmed) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for i := range r.Mounts {
		m := &r.Mounts[i]
		for m.before != nil {
			raw, err := readControl(ctx, m.MountPoint, "status.json")
			if err != nil {
				break
			}
			m.DiskCache = diskCacheOf(raw)
			if m.DiskCache == nil || m.DiskCache.Pending == 0 || pause.For(ctx, jobsEvery) != nil {
				break
			}
		}
		if m.DiskCache != nil {
			m.NotKept = max(m.DiskCache.Dropped-m.before.Dropped, 0)
		}
	}
}

// tellWarmed prints what came of it; an error if not all was read.
func (p *program) tellWarmed(r warmed, asJSON bool) error {
	if asJSON {
		if err := p.printJSON(r); err != nil {
			return err
		}
	} else {
		rate := float64(r.Bytes) / max(r.Seconds, 1e-3)
		p.printf("%s, %s read in %.1f s (%s/s)\n", countOf(r.Files, "file"), sizeText(r.Bytes), r.Seconds, sizeText(int64(rate)))
	}
	for _, m := range r.Mounts {
		if m.NotKept > 0 {
			p.errorf("lakefs-mount: %s did not come to the disk of the cache at %q: run it again\n", countOf(int(m.NotKept), "block"), m.DiskCache.Dir)
		}
	}
	switch {
	case r.Interrupted:
		return fmt.Errorf("%w: what was read until then is in the cache", errInterrupted)
	case len(r.Failed) > 0:
		return errReported
	}
	return nil
}
