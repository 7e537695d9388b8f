package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// keptWrites are those in the state directory of a mount that ended.
type keptWrites struct {
	dir       string // the state directory
	store     closingStore
	view      *catalogview.View
	catalog   catalog
	area      *staging.Area
	committer *commit.Committer
}

// keptWrites opens the state directory of the mount that r describes.
func (p *program) keptWrites(r *request) (*keptWrites, error) {
	dir, err := p.stateDir(r)
	if err != nil {
		return nil, err
	}
	r.settings.StateDir = dir
	if err = stateApart(r, dir); err != nil {
		return nil, err
	}
	log := newLogger(p.stderr, r.settings.Values)
	store, roots, err := openStore(r, log, nil)
	if err != nil {
		return nil, err
	}
	area, err := staging.Open(stagingDir(r), staging.Options{Log: log, Store: store, AllowFull: true, Meta: commit.Meta, PartSize: r.settings.PartSize})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	view, src := newTree(r, parts{store: store, roots: roots, log: log})
	committer := commit.New(commit.Options{
		Store: store, Area: area, Log: log, CheckFormat: r.settings.CheckFormat, Retry: commitRetry(r),
		Registrar: registrar(r, view),
	})
	return &keptWrites{dir: dir, store: store, view: view, catalog: src, area: area, committer: committer}, nil
}

func (k *keptWrites) list(context.Context) (stagedList, error) {
	waiting, local, aborting := fs.Unpublished(k.area)
	return stagedList{Staged: waiting, Local: local, Aborting: aborting, Dir: k.dir}, nil
}

func (k *keptWrites) uploaded(_ context.Context, w stagedWrite) int64 {
	f, ok := k.area.Find(w.ID)
	if !ok {
		return 0
	}
	return f.Uploaded()
}

func (k *keptWrites) publish(ctx context.Context, w stagedWrite) error {
	err := k.committer.Publish(ctx, w.ID, func(ctx context.Context, path string) (objectstore.Location, error) {
		t, err := k.view.Resolve(ctx, path)
		return t.Location, err
	})
	if e := (*commit.RegisterError)(nil); errors.As(err, &e) { // there is no mount that tries again
		err = fmt.Errorf("%q is published, but its partition is not registered in the catalog: %w (the next publish into it tries again)", w.Path, e.Cause)
		return errors.Join(err, k.free(ctx, w, "published"))
	}
	if err != nil {
		return err
	}
	return k.free(ctx, w, "published")
}

func (k *keptWrites) abort(ctx context.Context, w stagedWrite) error {
	if err := k.committer.Abort(ctx, w.ID); err != nil {
		return err
	}
	return k.free(ctx, w, "dropped")
}

// free frees what uploads of w are left, now: this process ends. What is being freed
// behind it is waited for.
func (k *keptWrites) free(ctx context.Context, w stagedWrite, done string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	err := k.area.AbortUploads(ctx)
	for err == nil && k.area.Aborting() > 0 {
		select {
		case <-tick.C:
			err = k.area.AbortUploads(ctx)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return fmt.Errorf("%s is %s, and what the store has of its upload is not freed yet: %w (the next mount tries again)", nameOf(w), done, err)
	}
	return nil
}

func (k *keptWrites) save(ctx context.Context, w stagedWrite, dir string) (commit.Saved, error) {
	return k.committer.Save(ctx, w.ID, dir)
}

func (k *keptWrites) Close() error {
	return errors.Join(k.view.Close(), k.catalog.Close(), k.area.Close(), k.store.Close())
}
