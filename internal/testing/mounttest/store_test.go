package mounttest

import (
	"errors"
	iofs "io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
	"github.com/lakefs-mount/lakefs-mount/internal/warehouse"
)

// stores are one of each kind, empty.
func stores(t *testing.T) map[string]store {
	t.Helper()
	server := s3test.Versity(t)
	return map[string]store{"folder": folder{t.TempDir()}, "bucket": bucket{server: server, name: server.Bucket(t)}}
}

func TestStoresAreAlike(t *testing.T) {
	files, err := warehouse.Files(notes()...)
	must(t, err)
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			must(t, s.seed(files))
			must(t, s.put("_data/db/notes/d/b c", "one"))
			before, err := s.info("_data/db/notes/d/b c")
			if err != nil || before.Size != 3 {
				t.Errorf("info: %+v, %v", before, err)
			}
			must(t, s.put("_data/db/notes/d/b c", "one"))
			if after, err := s.info("_data/db/notes/d/b c"); err != nil || after.ETag == before.ETag {
				t.Errorf("after a put of the same bytes: %+v, %v; was %+v", after, err, before)
			}
			if got, err := s.names("_data/db/notes"); err != nil || !slices.Equal(got, []string{"a", "d", "empty"}) {
				t.Errorf("names: %q, %v", got, err)
			}
			if got, err := s.names("_data/db/notes/empty"); err != nil || len(got) > 0 {
				t.Errorf("names of an empty directory: %q, %v", got, err)
			}
			if got, err := s.tree("_data/db"); err != nil || !maps.Equal(got, map[string]string{"notes/a": "1,one\n", "notes/d/b c": "one"}) {
				t.Errorf("tree: %q, %v", got, err)
			}
			if got, err := s.read("db/notes/_sqe/table.json"); err != nil || got != files["db/notes/_sqe/table.json"] {
				t.Errorf("manifest: %q, %v", got, err)
			}
			must(t, s.remove("_data/db/notes/d/b c"))
			_, readErr := s.read("_data/db/notes/d/b c")
			_, infoErr := s.info("_data/db/notes/d/b c")
			for what, err := range map[string]error{"read": readErr, "info": infoErr, "remove": s.remove("_data/db/notes/d/b c")} {
				if !errors.Is(err, iofs.ErrNotExist) {
					t.Errorf("%s of what is removed: %v, want ErrNotExist", what, err)
				}
			}
		})
	}
}

func TestDoorAndWindow(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			l := &Lake{t: t, store: s}
			for method, want := range map[string]int{http.MethodGet: 404, http.MethodDelete: 404, http.MethodPost: 500} {
				if code := knock(t, method, l.Door()+"/db/none"); code != want {
					t.Errorf("%s of what is not there: %d, want %d", method, code, want)
				}
			}
			if code := knock(t, http.MethodPut, l.Door()+"/db/t/a%20b"); code != 200 {
				t.Errorf("PUT: %d", code)
			}
			if raw, err := os.ReadFile(l.Window("db/t/a b")); err != nil || string(raw) != "content" {
				t.Errorf("in the window: %q, %v", raw, err)
			}
			if code := knock(t, http.MethodDelete, l.Door()+"/db/t/a%20b"); code != 200 {
				t.Errorf("DELETE: %d", code)
			}
			if _, err := l.Stored("db/t/a b"); !errors.Is(err, iofs.ErrNotExist) {
				t.Errorf("after the DELETE: %v", err)
			}
		})
	}
}

// knock does one request and returns the status.
func knock(t *testing.T, method, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("content"))
	must(t, err)
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	must(t, resp.Body.Close())
	return resp.StatusCode
}

// NoFork within NoFork goes on while a program waits to be started.
func TestNoForkWithinNoFork(t *testing.T) {
	started := make(chan error, 1)
	waits := make(chan struct{})
	err := NoFork(func() error {
		go func() {
			close(waits)
			started <- exec.CommandContext(t.Context(), "true").Run()
		}()
		<-waits
		for range 1000 { // the program comes to the lock some time
			runtime.Gosched()
			if err := NoFork(func() error { return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, <-started); err != nil {
		t.Error(err)
	}
}
