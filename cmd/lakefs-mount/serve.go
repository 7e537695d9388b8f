package main

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/internal/settings"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

const (
	// busyTimeout bounds how long an unmount waits for open files.
	busyTimeout = 5 * time.Second
	// detachedTimeout bounds how long files that are open on a detached mount
	// are served.
	detachedTimeout = 10 * time.Second
	// sameSignal is how long after the signal that ends a mount another is the
	// same one: timeout(1) signals its child and then the group that it is in, a
	// terminal and a supervisor may both.
	sameSignal = time.Second
)

// served is a mount with its process.
type served struct {
	*lake
	p     *program
	r     *request
	mount *fs.Mount
	ended chan struct{} // closed when nothing is mounted any more
}

// serve mounts the request and serves it until the mount ends.
func (p *program) serve(ctx context.Context, r *request) error {
	// Taken before anything is mounted: a signal never leaves a mount behind.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1)
	defer signal.Stop(signals)
	// A mount whose log nobody reads any more goes on: the runtime would end it
	// at the next line, with what is being written.
	signal.Ignore(syscall.SIGPIPE)
	if err := p.prepare(ctx, r); err != nil {
		return err
	}
	sink := newLogSink(p.stderr)
	log := newLogger(sink, r.settings.Values)
	// net/http says some things by itself, which would break a log in JSON.
	stdlog.SetFlags(0)
	stdlog.SetOutput(slog.NewLogLogger(log.Handler(), slog.LevelDebug).Writer())
	for use, names := range withoutUse(r, settings.FromEnvironment, settings.FromFile) {
		log.LogAttrs(ctx, slog.LevelInfo, "settings are without effect on this SOURCE", slog.Any("settings", names), slog.String("for", use))
	}
	l, err := p.newLake(ctx, r, log)
	if err != nil {
		return err
	}
	watched, err := l.watch(ctx, r) // what cannot be served is told before anything is mounted
	l.closers = append(l.closers, watched.Close)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s := &served{lake: l, p: p, r: r, ended: make(chan struct{})}
	s.mount, err = l.fs.Mount(r.mountpoint, fs.MountOptions{AllowOther: r.settings.AllowOther, ReadOnly: r.settings.ReadOnly}) //nolint:contextcheck // adopting local files waits for nothing
	if err != nil {
		return errors.Join(err, l.Close())
	}
	go func() {
		s.mount.Wait()
		close(s.ended)
	}()
	err = s.run(ctx, signals, sink)
	return errors.Join(err, l.Close())
}

// prepare checks what a mount needs, and detaches a dead one.
func (p *program) prepare(ctx context.Context, r *request) error {
	dir, err := p.stateDir(r)
	if err != nil {
		return err
	}
	r.settings.StateDir = dir
	for what, path := range map[string]string{"SOURCE": r.source.folder, "the state directory": dir, "the cache directory": r.settings.CacheDir} {
		if path == "" {
			continue
		}
		if at := realPath(path); within(r.mountpoint, at) || within(at, r.mountpoint) {
			return fmt.Errorf("mount point %q: it and %s (%s) lie one in the other; mount somewhere else", r.mountpoint, what, path)
		}
	}
	if err := stateApart(r, dir); err != nil {
		return err
	}
	if err := cacheApart(r, dir); err != nil {
		return err
	}
	if err := fuseUsable(r.settings.AllowOther); err != nil {
		return err
	}
	return p.prepareMountPoint(ctx, r.mountpoint)
}

// run is the life of a mount: ready, then signals until it ends.
func (s *served) run(ctx context.Context, signals <-chan os.Signal, sink *logSink) error {
	if err := s.becomeReady(ctx, sink); err != nil {
		return errors.Join(err, s.leave(ctx, signals))
	}
	debug.FreeOSMemory() // what starting took
	beside, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.logProblems(beside) })
	running.Go(func() { s.expireKept(beside) })
	running.Go(func() { s.tidy(beside) })
	err := s.await(ctx, signals)
	stop()
	running.Wait()
	return err
}

// expireKept holds what is kept to --staged-keep and --staged-max, in the life of
// a mount as at its start.
func (s *served) expireKept(ctx context.Context) {
	tick := time.NewTicker(expireEvery(s.r.settings.StagedKeep))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.area.Expire(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// tidyEvery is how often the store is asked again for what it did not do.
const tidyEvery = time.Minute

// tidy finishes renames that were left half done, and frees the uploads that could
// not be freed when their write ended. That these cannot be yet is logged once for
// all of the time that they cannot.
func (s *served) tidy(ctx context.Context) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for failing := false; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		s.committer.FinishRenames(ctx)
		err := s.area.AbortUploads(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			s.log.LogAttrs(ctx, slog.LevelWarn, "uploads that nobody needs are not freed in the store yet", slog.Any("error", err))
		}
		failing = err != nil
	}
}

// expireEvery is how often: late by a tenth of the age limit at most.
func expireEvery(keep time.Duration) time.Duration {
	if keep == 0 {
		return time.Minute
	}
	return min(max(keep/10, 100*time.Millisecond), time.Minute)
}

// becomeReady tells all who wait for it that the mount is there. A daemon has
// had one answer of the catalog by then, unless --no-wait says not to wait.
func (s *served) becomeReady(ctx context.Context, sink *logSink) error {
	if s.r.ready != nil && !s.r.settings.NoWait {
		if _, err := s.view.Lookup(ctx, ""); err != nil {
			return fmt.Errorf("source %q: no answer from the catalog: %w", s.r.source.String(), err)
		}
		for _, err := range s.view.ReadDir(ctx, "") {
			if err != nil {
				return fmt.Errorf("source %q: %w; or mount with --no-wait", s.r.source.String(), withRemedy(ctx, s.r, err))
			}
			break
		}
	}
	s.p.errorf("mounted %q on %q\n", s.r.source.String(), s.r.mountpoint)
	if err := notify(s.p.getenv("NOTIFY_SOCKET"), "READY=1"); err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "systemd was not told", slog.Any("error", err))
	}
	if s.r.ready == nil {
		return nil
	}
	if err := sink.toFile(filepath.Join(s.r.settings.StateDir, "mount.log")); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("leave the working directory: %w", err)
	}
	return tellReady(s.r.ready)
}

// await serves signals until the mount has ended.
func (s *served) await(ctx context.Context, signals <-chan os.Signal) error {
	for {
		select {
		case <-s.ended: // unmounted by someone else
			return s.report(ctx, s.fs.Drain(ctx))
		case sig := <-signals:
			switch sig {
			case syscall.SIGHUP:
				s.log.LogAttrs(ctx, slog.LevelInfo, "dropping cached metadata, reading credentials anew")
				if s3, ok := s.store.(*objectstore.S3); ok {
					s3.RefreshCredentials()
				}
				s.catalog.refreshCredentials()
				s.fs.Refresh("")
			case syscall.SIGUSR1:
				s.logState(ctx)
			default:
				s.log.LogAttrs(ctx, slog.LevelInfo, "unmounting", slog.String("signal", sig.String()))
				return s.leave(ctx, signals)
			}
		}
	}
}

// leave drains and unmounts. A second SIGINT or SIGTERM, a second after the first
// or later, gives up at once: what is not published stays staged, and the error
// names it.
func (s *served) leave(ctx context.Context, signals <-chan os.Signal) error {
	_ = notify(s.p.getenv("NOTIFY_SOCKET"), "STOPPING=1") // the end comes anyhow
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	left := make(chan error, 1)
	go func() { left <- s.unmount(ctx) }()
	for {
		select {
		case err := <-left:
			return err
		case sig := <-signals:
			if (sig == os.Interrupt || sig == syscall.SIGTERM) && time.Since(began) >= sameSignal {
				cancel(errAborted)
				return s.abort(ctx)
			}
		}
	}
}

var errAborted = errors.New("ended by a second signal")

// abort ends the process's part of the mount without waiting for anything.
func (s *served) abort(ctx context.Context) error {
	detachErr := detach(context.WithoutCancel(ctx), s.r.mountpoint)
	if _, mounted, err := mountedAt(s.r.mountpoint); err == nil && !mounted {
		detachErr = nil
	}
	s.p.errorf("lakefs-mount: %v\n", errors.Join(errAborted, detachErr, unpublishedError(s.unpublished())))
	os.Exit(exitFailed) // requests in flight keep what a clean end would close
	return nil
}

func (s *served) unmount(ctx context.Context) error {
	left := s.fs.Drain(ctx)
	unmountCtx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	busy, err := s.mount.Unmount(unmountCtx)
	if err != nil {
		return err
	}
	if busy {
		s.log.LogAttrs(ctx, slog.LevelWarn, "detached: files are open", slog.String("mountpoint", s.r.mountpoint))
	}
	select {
	case <-s.ended:
		left = s.fs.Drain(ctx) // closes that came with the unmount
	case <-ctx.Done():
	case <-time.After(detachedTimeout):
		// The connection ends with this process; what is open is staged.
		s.log.LogAttrs(ctx, slog.LevelWarn, "files stayed open; the mount ends without them")
		err := s.report(ctx, s.unpublished())
		s.p.errorf("lakefs-mount: %q: files stayed open, what was written to them is staged: see lakefs-mount recover\n", s.r.mountpoint)
		if err != nil {
			s.p.errorf("lakefs-mount: %v\n", err)
		}
		os.Exit(exitFailed)
	}
	return s.report(ctx, left)
}

func (s *served) unpublished() []staging.Record {
	var left []staging.Record
	for _, f := range s.area.Files() {
		if f.Dirty() && !f.Record().Resident() {
			left = append(left, f.Record())
		}
	}
	return left
}

// report logs what is left unpublished, and returns the error that names it.
func (s *served) report(ctx context.Context, left []staging.Record) error {
	for _, rec := range left {
		s.log.LogAttrs(ctx, slog.LevelWarn, "not published, kept: see lakefs-mount recover",
			slog.String("path", rec.Path), slog.String("id", rec.ID), slog.String("state", string(rec.State)), slog.String("error", rec.Error))
	}
	return unpublishedError(left)
}

// unpublishedError names what is left; nil: nothing is.
func unpublishedError(left []staging.Record) error {
	var problems []error
	for _, rec := range left {
		problems = append(problems, fmt.Errorf("not published: %q (%s); after the next mount see lakefs-mount recover", rec.Path, rec.ID))
	}
	return errors.Join(problems...)
}

// logProblems logs what of the catalog cannot be used, and the remedy. Of a Glue
// catalog its databases are listed and no more: it may have millions of tables, and
// a broken one is logged when it is used.
func (s *served) logProblems(ctx context.Context) {
	if s.r.source.glue {
		for _, err := range s.view.ReadDir(ctx, "") {
			s.logUnreadable(ctx, err)
			break
		}
		return
	}
	_, err := checkCatalog(ctx, s.view, func(f finding) {
		s.log.LogAttrs(ctx, slog.LevelWarn, "part of the catalog cannot be read", slog.String("table", f.table), slog.String("reason", f.problem), slog.String("remedy", f.remedy))
	})
	s.logUnreadable(ctx, err)
}

// logUnreadable logs why the catalog itself cannot be listed; nil: it can.
func (s *served) logUnreadable(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		s.log.LogAttrs(ctx, slog.LevelError, "the catalog cannot be read", slog.String("source", s.r.source.String()), slog.Any("error", withRemedy(ctx, s.r, err)))
	}
}
