package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// fetch asks for a path at an address as --metrics-addr has it.
func fetch(t *testing.T, addr, path string) (status int, body string) {
	t.Helper()
	network, at := "tcp", addr
	if socket, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, at = "unix", socket
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, at)
		},
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://mount"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	raw, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(raw)
}

// servedAt is the address in the log line that says what is served there.
func servedAt(t *testing.T, l *mounttest.Lake, what string) string {
	t.Helper()
	l.WaitLog(what + " are served")
	all := regexp.MustCompile(what+` are served" address=(\S+)`).FindAllStringSubmatch(l.Log(), -1)
	if len(all) == 0 {
		t.Fatalf("the log names no address: %s", l.Log())
	}
	return all[len(all)-1][1]
}

// seriesOf are the names and labels of a mount's own samples.
func seriesOf(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "lakefs_mount_") {
			all = append(all, line[:strings.LastIndexByte(line, ' ')])
		}
	}
	return all
}

func TestMetricsHealthAndProfilesAreServed(t *testing.T) {
	lake := mounttest.New(t, sales(t))
	lake.Start("--metrics-addr=:0", "--pprof")
	addr, profiles := servedAt(t, lake, "metrics"), servedAt(t, lake, "profiles")
	if !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Errorf("metrics are served at %q, want this machine alone", addr)
	}
	lake.MustSh("cat sales/notes/dt=2026-01-01/a.csv")
	status, body := fetch(t, addr, "/metrics")
	if want := seriesOf(lake.MustSh("cat .lakefs/stats")); status != http.StatusOK || !slices.Equal(seriesOf(body), want) || len(want) == 0 {
		t.Errorf("status %d; the series are not those of .lakefs/stats: %s", status, body)
	}
	if strings.Contains(body, "notes") || strings.Contains(body, "sales") || strings.Contains(body, lake.Root) {
		t.Error("the metrics name a path or a table")
	}
	if status, body = fetch(t, addr, "/healthz"); status != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz: %d %q", status, body)
	}
	for _, path := range []string{"/", "/debug/pprof/", "/debug/pprof/goroutine"} {
		if status, _ = fetch(t, addr, path); status != http.StatusNotFound {
			t.Errorf("%s is answered with %d where the metrics are", path, status)
		}
	}
	socket := strings.TrimPrefix(profiles, "unix:")
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(socket) != lake.State {
		t.Errorf("the socket of profiles is %q: %v (%v), want mode 0600 in %q", socket, info, err, lake.State)
	}
	if status, body = fetch(t, profiles, "/debug/pprof/goroutine?debug=1"); status != http.StatusOK || !strings.Contains(body, "goroutine profile: total ") {
		t.Errorf("profile: %d %q", status, body)
	}
	lake.Unmount()
	for _, at := range []string{addr, profiles} {
		if status, body = fetch(t, at, "/healthz"); status != 0 {
			t.Errorf("after the unmount %s answers %d %q", at, status, body)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(lake.State, "*.sock")); len(left) > 0 {
		t.Errorf("sockets are left: %q", left)
	}
}

func TestNothingIsServedUnlessAsked(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	lake.MustSh("ls")
	if strings.Contains(lake.Log(), "are served") {
		t.Errorf("the log is %s", lake.Log())
	}
	if sockets, _ := filepath.Glob(filepath.Join(lake.State, "*.sock")); len(sockets) > 0 {
		t.Errorf("sockets: %q", sockets)
	}
}

func TestAnAddressThatIsTakenMountsNothing(t *testing.T) {
	lake := mounttest.New(t, sales(t))
	dir := t.TempDir()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "taken"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = taken.Close(), socket.Close() })
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]string{
		taken.Addr().String():                      "the port is taken",
		"unix:" + filepath.Join(dir, "taken"):      "listens there",
		"unix:" + filepath.Join(dir, "file"):       "something else than a socket",
		"unix:" + filepath.Join(dir, "none", "x"):  "no such file or directory",
		"unix:" + dir + strings.Repeat("/0", 60):   "no such file or directory",
		"192.0.2.1:9105":                           "cannot assign requested address",
		"unix:" + longDirectory(t, dir) + "/pprof": "too many for a socket",
	} {
		for _, flags := range [][]string{nil, {"--daemon"}} {
			r := lake.Run(append([]string{"mount", "--metrics-addr=" + addr, "--state-dir=" + lake.State}, append(flags, lake.Source, lake.Root)...)...)
			if r.Code != exitFailed || !strings.Contains(r.Err, "--metrics-addr") || !strings.Contains(r.Err, want) || strings.Count(r.Err, "lakefs-mount: ") != 1 {
				t.Errorf("%s %q: exit code %d, %q, want %q", addr, flags, r.Code, r.Err, want)
			}
		}
	}
	same := "unix:" + filepath.Join(lake.State, ".", "pprof.sock")
	r := lake.Run("mount", "--metrics-addr="+same, "--pprof", "--state-dir="+lake.State, lake.Source, lake.Root)
	if r.Code != exitFailed || !strings.Contains(r.Err, "--metrics-addr") || !strings.Contains(r.Err, "the socket of --pprof: ") {
		t.Errorf("the path of --pprof: exit code %d, %q", r.Code, r.Err)
	}
	if lake.Mounted() {
		t.Error("something is mounted")
	}
	if _, err := os.Lstat(filepath.Join(dir, "file")); err != nil {
		t.Error(err)
	}
}

// longDirectory is one whose sockets the kernel has no address for.
func longDirectory(t *testing.T, dir string) string {
	t.Helper()
	dir = filepath.Join(dir, strings.Repeat("d", 120))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestASocketOfADeadMountIsReplaced, and is of no use to others.
func TestASocketOfADeadMountIsReplaced(t *testing.T) {
	lake := mounttest.New(t, sales(t))
	path := filepath.Join(t.TempDir(), "metrics")
	flags := []string{"--metrics-addr=unix:" + path, "--pprof"}
	lake.Start(flags...)
	before, err := os.Lstat(path)
	if err != nil || before.Mode().Perm() != 0o600 {
		t.Fatalf("the socket is %v (%v)", before, err)
	}
	lake.Kill()
	if _, err = os.Lstat(path); err != nil {
		t.Fatal(err)
	}
	lake.Start(flags...)
	after, err := os.Lstat(path)
	if err != nil || after.Sys().(*syscall.Stat_t).Ino == before.Sys().(*syscall.Stat_t).Ino {
		t.Errorf("the socket is %v (%v), as before", after, err)
	}
	if status, body := fetch(t, "unix:"+path, "/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: %d %q", status, body)
	}
	lake.Unmount()
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

func TestHealthWithoutAMount(t *testing.T) {
	for path, want := range map[string]string{t.TempDir(): "nothing is mounted\n", "/none": "no such file or directory\n"} {
		got := httptest.NewRecorder()
		health(path).ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil))
		if got.Code != http.StatusServiceUnavailable || got.Body.String() != want {
			t.Errorf("%s: %d %q, want 503 %q", path, got.Code, got.Body, want)
		}
	}
}
