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
	"strings"
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
	// are served, and copiedTimeout how long a copy of one that is unmounted is.
	detachedTimeout = 10 * time.Second
	copiedTimeout   = 3 * time.Second
	// sameSignal is how long after the signal that ends a mount another is the
	// same one: timeout(1) signals its child and then the group that it is in, a
	// terminal and a supervisor may both.
	sameSignal = time.Second
)

// served is a mount with its process.
type served struct {
	*lake
	p     *program
	sink  *logSink
	r     *request
	mount *fs.Mount
	ended chan struct{} // closed when nothing is mounted any more

	refresh chan struct{} // has one when cached metadata is to be dropped
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
	starting, started := interruptible(ctx, signals)
	defer started()
	if err := p.prepare(starting, r); err != nil {
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
	l, err := p.newLake(starting, r, log)
	if err == nil && starting.Err() != nil {
		err = l.Close()
	}
	if err != nil || starting.Err() != nil {
		return errors.Join(context.Cause(starting), err)
	}
	watched, err := l.watch(ctx, r) // what cannot be served is told before anything is mounted
	l.closers = append(l.closers, watched.Close)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s := &served{lake: l, p: p, sink: sink, r: r, ended: make(chan struct{}), refresh: make(chan struct{}, 1)}
	s.mount, err = l.fs.Mount(r.mountpoint, fs.MountOptions{AllowOther: r.settings.AllowOther, ReadOnly: r.settings.ReadOnly}) //nolint:contextcheck // adopting local files waits for nothing
	if err != nil {
		if _, passed := fs.PassedDescriptor(r.mountpoint); passed {
			err = fmt.Errorf("%w: it is a descriptor of /dev/fuse, but not of a mount: mount(2) with fd=N first", err)
		}
		return errors.Join(err, l.Close())
	}
	go func() {
		s.mount.Wait()
		close(s.ended)
	}()
	err = s.start(starting)
	started()
	if err != nil || starting.Err() != nil {
		err = errors.Join(err, s.leave(ctx, signals, time.Now(), s.unmount))
	} else {
		err = s.run(ctx, signals)
	}
	if err = errors.Join(err, l.Close()); err != nil && sink.stuck.Load() {
		return errReported // as far as it can be
	}
	return err
}

// start makes what is mounted ready.
func (s *served) start(ctx context.Context) error {
	err := s.alone()
	if err == nil {
		err = s.becomeReady(ctx)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// interruptible returns a context that SIGINT and SIGTERM end: what a mount waits for
// until it is ready may last as long as a store does not answer. stop gives the signals
// back.
func interruptible(ctx context.Context, signals <-chan os.Signal) (starting context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case sig := <-signals:
				if ends(sig) {
					cancel(fmt.Errorf("ended by a signal (%s) before the mount was ready", sig))
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, sync.OnceFunc(func() { close(done); <-stopped })
}

// ends tells whether a signal ends a mount.
func ends(sig os.Signal) bool { return sig == os.Interrupt || sig == syscall.SIGTERM }

// alone makes sure that no other mount began at the same place at the same moment: both
// have looked before either was there. The later one gives way.
func (s *served) alone() error {
	_, minor, known := strings.Cut(s.mount.Device(), ":")
	table, err := mountTable()
	if err != nil || !known {
		return err
	}
	for _, e := range table { // in order of mounting
		switch {
		case e.path != s.r.mountpoint:
			continue
		case e.device == minor:
			return nil
		}
		return fmt.Errorf("mount point %q: in use, %s was mounted there at the same moment", s.r.mountpoint, e.source)
	}
	return nil // a descriptor's
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
	if fd, passed := fs.PassedDescriptor(r.mountpoint); passed {
		return passedUsable(fd)
	}
	if err := fuseUsable(r.settings.AllowOther); err != nil {
		return err
	}
	return p.prepareMountPoint(ctx, r.mountpoint)
}

// run is the life of a mount that is ready, until it ends.
func (s *served) run(ctx context.Context, signals <-chan os.Signal) error {
	debug.FreeOSMemory() // what starting took
	beside, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.logProblems(beside) })
	running.Go(func() { s.expireKept(beside) })
	running.Go(func() { s.tidy(beside) })
	running.Go(func() { s.refreshAsked(beside) })
	err := s.await(ctx, signals)
	stop()
	running.Wait()
	return err
}

// refreshAsked drops cached metadata when a signal asks for it. The kernel may have it
// wait for a request that waits for the store, which keeps no other signal waiting.
func (s *served) refreshAsked(ctx context.Context) {
	for {
		select {
		case <-s.refresh:
			s.fs.Refresh("")
		case <-ctx.Done():
			return
		}
	}
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
func (s *served) becomeReady(ctx context.Context) error {
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
	s.errorf("mounted %q on %q\n", s.r.source.String(), s.r.mountpoint)
	if err := notify(s.p.getenv("NOTIFY_SOCKET"), "READY=1"); err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "systemd was not told", slog.Any("error", err))
	}
	if s.r.ready == nil {
		return nil
	}
	if err := s.sink.toFile(filepath.Join(s.r.settings.StateDir, "mount.log")); err != nil {
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
			return s.leave(ctx, signals, time.Time{}, func(ctx context.Context) error { return s.report(ctx, s.fs.Drain(ctx)) })
		case sig := <-signals:
			if ends(sig) {
				s.log.LogAttrs(ctx, slog.LevelInfo, "unmounting", slog.String("signal", sig.String()))
				return s.leave(ctx, signals, time.Now(), s.unmount)
			}
			s.heed(ctx, sig)
		}
	}
}

// heed does what a signal that ends nothing asks for.
func (s *served) heed(ctx context.Context, sig os.Signal) {
	if sig == syscall.SIGUSR1 {
		s.logState(ctx)
		return
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "dropping cached metadata, reading credentials anew")
	if s3, ok := s.store.(*objectstore.S3); ok {
		s3.RefreshCredentials()
	}
	s.catalog.refreshCredentials()
	select {
	case s.refresh <- struct{}{}:
	default: // it will be done
	}
}

// leave waits for finish, which ends the mount. A second SIGINT or SIGTERM, a second
// after asked, the time of the first (zero: there was none), or later, gives up at once:
// what is not published stays staged, and the error names it. What is being published may
// need what other signals ask for.
func (s *served) leave(ctx context.Context, signals <-chan os.Signal, asked time.Time, finish func(context.Context) error) error {
	_ = notify(s.p.getenv("NOTIFY_SOCKET"), "STOPPING=1") // the end comes anyhow
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	left := make(chan error, 1)
	go func() { left <- finish(ctx) }()
	for {
		select {
		case err := <-left:
			return err
		case sig := <-signals:
			switch {
			case !ends(sig):
				s.heed(ctx, sig)
			case asked.IsZero():
				asked = time.Now()
			case time.Since(asked) >= sameSignal:
				cancel(errAborted)
				s.abort(context.WithoutCancel(ctx))
			}
		}
	}
}

var errAborted = errors.New("ended by a second signal")

// abort ends the process's part of the mount without waiting for anything.
func (s *served) abort(ctx context.Context) {
	var detached error
	select {
	case <-s.ended:
	default:
		detached = s.mount.Detach(ctx)
	}
	if errors.Is(detached, fs.ErrPassed) {
		detached = nil
	}
	s.exit(errors.Join(errAborted, detached, unpublishedError(s.unpublished())))
}

// exit ends the process while requests are in flight, which keep what a clean end would
// close. The connection ends with it.
func (s *served) exit(err error) {
	if err == nil {
		os.Exit(exitOK)
	}
	s.errorf("lakefs-mount: %v\n", err)
	os.Exit(exitFailed)
}

// errorf is the program's, for a reader that may stand still.
func (s *served) errorf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.sink, format, args...)
}

func (s *served) unmount(ctx context.Context) error {
	left := s.fs.Drain(ctx)
	unmountCtx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	busy, err := s.mount.Unmount(unmountCtx)
	patience := copiedTimeout
	switch {
	case errors.Is(err, fs.ErrPassed):
		s.exit(s.report(ctx, left))
	case err != nil: // it stays, dead
		s.exit(errors.Join(err, s.report(ctx, s.unpublished())))
	case busy:
		patience = detachedTimeout
		s.log.LogAttrs(ctx, slog.LevelWarn, "detached: files are open", slog.String("mountpoint", s.r.mountpoint))
	}
	select {
	case <-s.ended:
		left = s.fs.Drain(ctx) // closes that came with the unmount
	case <-ctx.Done():
	case <-time.After(patience):
		s.endBeside(ctx, busy)
	}
	return s.report(ctx, left)
}

// endBeside ends the process of a mount that is gone from the table and still used: by
// who has files open, or out of sight.
func (s *served) endBeside(ctx context.Context, busy bool) {
	if !busy {
		s.log.LogAttrs(ctx, slog.LevelWarn, "another mount namespace has a copy of the mount, which ends with this process")
		s.exit(s.report(ctx, s.fs.Drain(ctx)))
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "files stayed open; the mount ends without them")
	stayed := fmt.Errorf("%q: files stayed open, what was written to them is staged: see lakefs-mount recover", s.r.mountpoint)
	s.exit(errors.Join(stayed, s.report(ctx, s.unpublished())))
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
