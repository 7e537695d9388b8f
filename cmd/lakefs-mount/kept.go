package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// keptWrites are those in the state directory of a mount that ended.
type keptWrites struct {
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
	return &keptWrites{store: store, view: view, catalog: src, area: area, committer: committer}, nil
}

func (k *keptWrites) list(context.Context) (stagedList, error) {
	all, aborting := fs.Unpublished(k.area)
	return stagedList{Staged: all, Aborting: aborting}, nil
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
		return fmt.Errorf("%q is published, but its partition is not registered in the catalog: %w (the next publish into it tries again)", w.Path, e.Cause)
	}
	return err
}

func (k *keptWrites) abort(ctx context.Context, w stagedWrite) error {
	if err := k.committer.Abort(ctx, w.ID); err != nil {
		return err
	}
	if err := k.area.AbortUploads(ctx); err != nil {
		return fmt.Errorf("%s is dropped, and what the store has of it is not freed yet: %w (the next mount tries again)", nameOf(w), err)
	}
	return nil
}

func (k *keptWrites) save(ctx context.Context, w stagedWrite, dir string) (string, error) {
	return k.committer.Save(ctx, w.ID, dir)
}

func (k *keptWrites) Close() error {
	return errors.Join(k.view.Close(), k.catalog.Close(), k.area.Close(), k.store.Close())
}
