package staging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

var errDead = errors.New("the process is dead")

// dying is a process that ends at a change of the disk: nothing of it reaches disk or
// store from then on.
type dying struct {
	mu    sync.Mutex
	steps int
	at    int
}

func (d *dying) step(string, string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.steps++; d.at > 0 && d.steps >= d.at {
		return errDead
	}
	return nil
}

func (d *dying) dead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at > 0 && d.steps >= d.at
}

// TestCrashAtEachStep of writes that are published by parts: what is found holds a
// version whole, no upload with a part in it is left when AbortUploads is done, and
// nothing else is on disk when the writes are dropped.
func TestCrashAtEachStep(t *testing.T) {
	for name, run := range map[string]func(e *env) ([]string, error){
		"publish": crashPublish, "shrink": crashShrink, "drop": crashDrop, "move": crashMove, "patch": crashPatch,
	} {
		t.Run(name, func(t *testing.T) {
			steps := 0
			for crashAt(t, steps+1, run) {
				steps++
			}
			if steps < 5 {
				t.Errorf("%d steps", steps)
			}
		})
	}
}

// crashAt is false if run has fewer steps.
func crashAt(t *testing.T, at int, run func(e *env) ([]string, error)) bool {
	t.Helper()
	c, e := newCloud(t, testPart)
	d := &dying{at: at}
	e.opts.Step = d.step
	c.hook(func(context.Context, string, int) error {
		if d.dead() {
			return errDead
		}
		return nil
	})
	e.reopen(t)
	versions, err := run(e)
	e.quiet(t)
	died := d.dead()
	if err != nil && !died {
		t.Fatalf("step %d: %v", at, err)
	}
	e.opts.Step = nil
	c.hook(nil)
	c.crashed = true
	e.reopen(t)
	for _, f := range e.area.Files() {
		if !f.Lost() && !slices.Contains(versions, string(readAll(t, f))) {
			t.Errorf("step %d: a write of %d bytes was found, which is no version", at, f.Size())
		}
		if rec := f.Record(); rec.State == Publishing && rec.Upload != nil {
			f = recovered(t, c, f, at)
		}
		if err := f.Drop(); err != nil {
			t.Errorf("step %d: Drop: %v", at, err)
		}
	}
	e.quiet(t)
	if err := e.area.AbortUploads(t.Context()); err != nil {
		t.Errorf("step %d: AbortUploads: %v", at, err)
	}
	for id, up := range c.uploads {
		if len(up.parts) > 0 {
			t.Errorf("step %d: upload %s is left", at, id)
		}
	}
	if got := names(t, e.dir); !slices.Equal(got, []string{"lock"}) {
		t.Errorf("step %d: the staging directory has %q", at, got)
	}
	return died
}

// recovered completes what a publish had all parts of, without sending anything.
func recovered(t *testing.T, c *cloud, f *File, at int) *File {
	t.Helper()
	want := readAll(t, f)
	if up := c.uploads[f.Record().Upload.ID]; up == nil { // completed before the end
		return f
	}
	c.take()
	z := freeze(t, f)
	defer z.Release()
	if err := c.publish(t.Context(), z); err != nil {
		t.Errorf("step %d: publish: %v", at, err)
	}
	if log := c.take(); !slices.Equal(log, []string{"complete"}) || !bytes.Equal(c.content(z.Record.Target), want) {
		t.Errorf("step %d: recovery made %q", at, log)
	}
	return f
}

// beginCrash is a file of three parts that are in the store, and its versions so far.
func beginCrash(e *env) (*File, []string, error) {
	f, err := e.area.Create(context.Background(), NewWrite{Target: e.loc("f"), Path: "f", Final: true})
	if err != nil {
		return nil, []string{""}, err
	}
	data := pattern(1, 3*testPart)
	_, err = f.WriteAt(context.Background(), data, 0)
	e.area.work.wait.Wait()
	return f, []string{"", string(data)}, err
}

func publishCrash(e *env, f *File) error {
	z, err := f.Freeze(context.Background())
	if err != nil {
		return err
	}
	defer z.Release()
	return e.cloud.publish(context.Background(), z)
}

func crashPublish(e *env) ([]string, error) {
	f, versions, err := beginCrash(e)
	if err == nil {
		err = publishCrash(e, f)
	}
	if err == nil {
		err = f.Sync(context.Background())
	}
	return versions, err
}

func crashShrink(e *env) ([]string, error) {
	f, versions, err := beginCrash(e)
	if err != nil {
		return versions, err
	}
	err = f.Truncate(context.Background(), 5)
	versions = append(versions, string(pattern(1, 5)))
	if err == nil {
		err = publishCrash(e, f)
	}
	if err == nil {
		next := append([]byte("12"), pattern(1, 5)[2:]...)
		versions = append(versions, string(next))
		_, err = f.WriteAt(context.Background(), []byte("12"), 0)
	}
	return versions, err
}

func crashDrop(e *env) ([]string, error) {
	f, versions, err := beginCrash(e)
	if err != nil {
		return versions, err
	}
	return versions, f.Drop()
}

func crashMove(e *env) ([]string, error) {
	f, versions, err := beginCrash(e)
	if err == nil {
		err = f.SetTarget(NewWrite{Target: e.loc("g"), Path: "g", Final: true})
	}
	if err == nil {
		err = publishCrash(e, f)
	}
	return versions, err
}

// crashPatch is a publish that fails, a write and another publish.
func crashPatch(e *env) ([]string, error) {
	f, versions, err := beginCrash(e)
	if err != nil {
		return versions, err
	}
	z, err := f.Freeze(context.Background())
	if err != nil {
		return versions, err
	}
	_, _, err = z.Upload(context.Background())
	err = errors.Join(err, z.Secure(context.Background()), z.SetState(Publishing, "", true), z.SetState(Failed, "down", true))
	z.Release()
	if err != nil {
		return versions, err
	}
	data := pattern(1, 3*testPart)
	copy(data[testPart:], "patch")
	versions = append(versions, string(data))
	if _, err = f.WriteAt(context.Background(), []byte("patch"), testPart); err != nil {
		return versions, err
	}
	if err = publishCrash(e, f); err != nil {
		return versions, err
	}
	if got := e.cloud.content(objectstore.Location{Bucket: "lake", Key: "f"}); !bytes.Equal(got, data) {
		return versions, fmt.Errorf("the object is not the file: %d bytes", len(got))
	}
	return versions, nil
}
