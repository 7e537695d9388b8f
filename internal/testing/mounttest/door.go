package mounttest

import (
	"errors"
	"io"
	iofs "io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
)

// Door is the URL at which child processes change the lake's store as other
// programs: PUT and DELETE of <door>/NAME are PutStored and RemoveStored, GET is
// Stored. Any number of them may do so at once. It is there until the test ends.
func (l *Lake) Door() string {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.door == nil {
		l.mu.door = httptest.NewServer(http.HandlerFunc(l.serveDoor))
		l.t.Cleanup(l.mu.door.Close)
	}
	return l.mu.door.URL
}

func (l *Lake) serveDoor(w http.ResponseWriter, r *http.Request) {
	name := dataName(strings.TrimPrefix(r.URL.Path, "/"))
	content, err := "", error(nil)
	switch r.Method {
	case http.MethodGet:
		content, err = l.store.read(name)
	case http.MethodPut:
		var body []byte
		if body, err = io.ReadAll(r.Body); err == nil {
			err = l.store.put(name, string(body))
		}
	case http.MethodDelete:
		err = l.store.remove(name)
	default:
		err = errors.ErrUnsupported
	}
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		_, _ = io.WriteString(w, content) // a client that is gone needs none
	}
}
