package catalogview

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// TestChangesOfATableAreOneAfterAnother: of two that rest on one version the second is
// refused, also by a catalog that compares no versions itself.
func TestChangesOfATableAreOneAfterAnother(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", ordersEntry(""))
	entry, etag := e.read()
	src := &heldSource{Source: e.view.src, entered: make(chan string, 10), let: make(chan struct{})}
	e.view.src = src
	f, err := table.ParseFormatChange("ORC")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	change := func(what string, f func() error) {
		all.Go(func() {
			if failed := f(); failed != nil {
				t.Errorf("%s: %v", what, failed)
			}
		})
	}
	change("write", func() error {
		_, failed := e.view.WriteEntry(ctx, "sales/orders", []byte(entry), etag, false)
		return failed
	})
	if got := <-src.entered; got != "PutTable" {
		t.Fatalf("%s came first", got)
	}
	left, leave := context.WithCancel(ctx)
	leave()
	if _, err = e.view.WriteEntry(left, "sales/orders", []byte(entry), etag, false); !errors.Is(err, context.Canceled) {
		t.Errorf("a write whose caller left: %v", err)
	}
	change("set the format", func() error { return e.view.SetFormat(ctx, "sales/orders", f) })
	change("the second write", func() error {
		_, failed := e.view.WriteEntry(ctx, "sales/orders", []byte(strings.Replace(entry, `"me"`, `"other"`, 1)), etag, true)
		if !errors.Is(failed, objectstore.ErrChanged) {
			return fmt.Errorf("%w, and no ErrChanged", failed)
		}
		return nil
	})
	e.view.entryLocks.waiters(ctx, t, "sales/orders", 3)
	if n := len(src.entered); n != 0 {
		t.Errorf("%d changes did not wait for the first", n)
	}
	other, err := e.view.entryLocks.lock(ctx, "sales/other")
	if err != nil {
		t.Fatal(err)
	}
	other()
	close(src.let)
	all.Wait()
	if err = e.view.RemoveEntry(ctx, "sales/orders", ""); err != nil {
		t.Error(err)
	}
	if n := len(e.view.entryLocks.m); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}

// waiters waits until so many hold a lock or wait for it.
func (l *entryLocks) waiters(ctx context.Context, t *testing.T, path string, want int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		l.mu.Lock()
		one := l.m[path]
		reached := one != nil && one.uses == want
		l.mu.Unlock()
		if reached {
			return
		}
	}
	t.Fatalf("there are not %d at %s", want, path)
}

// heldSource tells of changes, and lets them go on when it is told to.
type heldSource struct {
	Source

	entered chan string
	let     chan struct{}
}

func (s *heldSource) PutTable(ctx context.Context, database, name string, w EntryWrite) (*table.Table, Raw, error) {
	s.entered <- "PutTable"
	<-s.let
	return s.Source.PutTable(ctx, database, name, w)
}

func (s *heldSource) SetFormat(ctx context.Context, t *table.Table, values []string, f table.FormatChange) error {
	s.entered <- "SetFormat"
	<-s.let
	return s.Source.SetFormat(ctx, t, values, f)
}
