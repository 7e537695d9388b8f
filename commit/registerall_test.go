package commit

import (
	"errors"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// TestRegisterAllTellsOfTheFirst of those that could not be registered, and how many
// there are; what could be is.
func TestRegisterAllTellsOfTheFirst(t *testing.T) {
	w := newWorld(t, flat)
	at := map[string]objectstore.Location{"db/t/a/f": w.loc("a"), "db/t/b/f": w.loc("b"), "db/t/c/f": w.loc("c")}
	calls := 0
	w.before = func(op string) error {
		if calls++; op == "register" && calls > 1 {
			return objectstore.ErrPermission
		}
		return nil
	}
	var failed *RegisterError
	err := w.c.registerAll(t.Context(), at)
	if !errors.As(err, &failed) || failed.Path != "db/t/b/f" || failed.More != 1 || !errors.Is(err, objectstore.ErrPermission) {
		t.Errorf("got %v, want a RegisterError of db/t/b/f and another", err)
	}
	if !w.knows("db/t/a/f", "a") || w.knows("db/t/b/f", "b") {
		t.Error("the first alone is to be registered")
	}
	w.before = nil
	if err := w.c.registerAll(t.Context(), at); err != nil || !w.knows("db/t/c/f", "c") {
		t.Errorf("again: %v", err)
	}
}
