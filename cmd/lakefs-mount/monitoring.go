package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

// healthTimeout bounds how long a mount may take to say that it lives.
const healthTimeout = 5 * time.Second

// watching is what a mount serves over HTTP to those who watch it: metrics, its
// health and, on a socket of its own, profiles.
type watching struct {
	servers []*http.Server
	sockets []string // to be removed
	serving sync.WaitGroup
}

// watch begins to serve what r asks for. The caller closes it, also after an error.
func (l *lake) watch(ctx context.Context, r *request) (*watching, error) {
	w := &watching{}
	profilesAt := filepath.Join(r.settings.StateDir, "pprof.sock")
	if addr := r.settings.MetricsAddr; addr != "" {
		if path, isUnix := settings.UnixPath(addr); isUnix && r.settings.Pprof && resolved(path) == resolved(profilesAt) {
			return w, fmt.Errorf("%s %q is the socket of %s: give the metrics another path", r.settings.Where("metrics-addr"), addr, r.settings.Where("pprof"))
		}
		listener, err := w.listen(ctx, addr)
		if err != nil {
			return w, fmt.Errorf("%s %q: %w", r.settings.Where("metrics-addr"), addr, err)
		}
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", promhttp.HandlerFor(l.metrics, promhttp.HandlerOpts{
			ErrorLog: slog.NewLogLogger(l.log.Handler(), slog.LevelWarn), MaxRequestsInFlight: 8,
		}))
		mux.Handle("GET /healthz", health(r.mountpoint))
		w.serve(listener, mux)
		l.log.LogAttrs(ctx, slog.LevelInfo, "metrics are served", slog.String("address", shownAddress(listener)))
	}
	if r.settings.Pprof {
		listener, err := w.listen(ctx, settings.UnixPrefix+profilesAt)
		if err != nil {
			return w, fmt.Errorf("%s: %q: %w", r.settings.Where("pprof"), profilesAt, err)
		}
		w.serve(listener, profiles())
		l.log.LogAttrs(ctx, slog.LevelInfo, "profiles are served", slog.String("address", shownAddress(listener)))
	}
	return w, nil
}

// shownAddress is the address as --metrics-addr has it.
func shownAddress(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return settings.UnixPrefix + l.Addr().String()
	}
	return l.Addr().String()
}

func (w *watching) serve(l net.Listener, h http.Handler) {
	s := &http.Server{Handler: h, ReadHeaderTimeout: healthTimeout, IdleTimeout: time.Minute}
	w.servers = append(w.servers, s)
	w.serving.Go(func() { _ = s.Serve(l) }) // it ends with Close
}

// Close ends the servers, and what they serve just now.
func (w *watching) Close() error {
	var problems []error
	for _, s := range w.servers {
		problems = append(problems, s.Close())
	}
	w.serving.Wait()
	for _, path := range w.sockets {
		problems = append(problems, os.Remove(path))
	}
	return errors.Join(problems...)
}

func (w *watching) listen(ctx context.Context, addr string) (net.Listener, error) {
	path, isUnix := settings.UnixPath(addr)
	if isUnix {
		l, err := listenUnix(ctx, path)
		if err == nil {
			w.sockets = append(w.sockets, path)
		}
		return l, err
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", addr)
	if errors.Is(err, unix.EADDRINUSE) { //nolint:forbidigo // of a socket, not of the file system
		return nil, errors.New("the port is taken, by another mount or program: give each mount one of its own")
	}
	return l, bareNetwork(err)
}

// bareNetwork takes operation and address off an error, where the message says them.
func bareNetwork(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// listenUnix makes a socket of mode 0600 at path, in the place of one that nobody
// listens on any more. It is made in a directory that others do not enter, and moved:
// there is no moment at which they could connect.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := clearSocket(ctx, path); err != nil {
		return nil, err
	}
	private, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, bare(err)
	}
	defer func() { _ = os.RemoveAll(private) }() // empty by then, or left behind a failure that is told
	made := filepath.Join(private, "s")
	if most := len(unix.RawSockaddrUnix{}.Path) - 1; len(made) > most || len(path) > most {
		return nil, fmt.Errorf("its directory has %d bytes, too many for a socket: choose a shorter one", len(filepath.Dir(path)))
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", made)
	if err != nil {
		return nil, bareNetwork(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	err = os.Chmod(made, 0o600)
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return movedListener{l, path}, nil
}

// movedListener is a listener whose socket has another path than it was bound to.
type movedListener struct {
	net.Listener
	path string
}

// Addr is where the socket is.
func (l movedListener) Addr() net.Addr { return &net.UnixAddr{Net: "unix", Name: l.path} }

// clearSocket refuses a path at which something else is, or a socket that answers.
func clearSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return bare(err)
	case info.Mode().Type() != os.ModeSocket:
		return errors.New("something else than a socket is there: remove it, or choose another path")
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		return errors.Join(errors.New("another mount or program listens there: give each mount a path of its own"), conn.Close())
	}
	return nil // its process is gone
}

// health answers 200 while the mount is there and the process answers the kernel. It
// asks neither store nor catalog: a process does not get better by being replaced when
// these do not answer.
func health(mountpoint string) http.Handler {
	var asking singleflight.Group // one that hangs holds up one thread, however often it is asked
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		answer := asking.DoChan("", func() (any, error) {
			var st unix.Statfs_t
			if err := unix.Statfs(mountpoint, &st); err != nil {
				return nil, err
			}
			if st.Type != unix.FUSE_SUPER_MAGIC {
				return nil, errors.New("nothing is mounted")
			}
			return nil, nil
		})
		timer := time.NewTimer(healthTimeout)
		defer timer.Stop()
		var err error
		select {
		case got := <-answer:
			err = got.Err
		case <-timer.C:
			err = errors.New("the mount does not answer")
		case <-req.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprintln(w, err) // the client may be gone
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
}

// profiles are the handlers of net/http/pprof.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
