package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
)

// place is a path in a mount of ours.
type place struct {
	mount tableEntry
	path  string // absolute, without symbolic links
	below string // the mount point, with slashes; "": it is the mount point
}

// placeOf finds the mount of a path; what does not exist has one too.
func placeOf(ctx context.Context, arg string) (place, error) {
	path, err := absolute("PATH", arg)
	if err != nil {
		return place{}, err
	}
	path = resolved(path)
	m, err := mountOf(path)
	if err != nil {
		return place{}, err
	}
	if err := askMount(ctx, m.path); err != nil && !errors.Is(err, errNoAnswer) {
		return place{}, fmt.Errorf("the mount at %q does not answer (%w): mount it again", m.path, err)
	}
	below := strings.TrimPrefix(strings.TrimPrefix(path, m.path), "/")
	return place{mount: m, path: path, below: filepath.ToSlash(below)}, nil
}

// resolved is path without symbolic links, as far as it exists.
func resolved(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil || filepath.Dir(path) == path {
		return cmp.Or(to, path)
	}
	return filepath.Join(resolved(filepath.Dir(path)), filepath.Base(path))
}

// writable refuses a mount through which nothing is changed.
func (at place) writable() error {
	if at.mount.ro {
		return fmt.Errorf("%q is mounted read-only, and changes nothing: mount the lake without --read-only (or the option ro)", at.mount.path)
	}
	return nil
}

// directory makes sure that there is a directory; what is what it should be.
func (at place) directory(ctx context.Context, what string) error {
	info, err := bounded(ctx, answerTimeout, func() (os.FileInfo, error) { return os.Stat(at.path) })
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return fmt.Errorf("%q: no such %s here; what there is shows: ls %s", at.path, what, shellQuote(filepath.Dir(at.path)))
	case err != nil:
		return fmt.Errorf("%q: %w; the reason is in .lakefs/status.json of the directory above it", at.path, bare(err))
	case !info.IsDir():
		return fmt.Errorf("%q is a file: name the directory of the %s", at.path, what)
	}
	return nil
}

// table makes sure that it is the directory of a table, which command takes.
func (at place) table(ctx context.Context, command string) error {
	names := strings.Split(at.below, "/")
	switch {
	case at.below == "":
		return fmt.Errorf("%q is the mount point: name a table: lakefs-mount %s %s", at.path, command, shellQuote(filepath.Join(at.path, "DATABASE/TABLE")))
	case len(names) == 1:
		return fmt.Errorf("%q is no table, but at the level of databases: name a table: lakefs-mount %s %s", at.path, command, shellQuote(filepath.Join(at.path, "TABLE")))
	case len(names) > 2:
		table := filepath.Join(at.mount.path, names[0], names[1])
		return fmt.Errorf("%q is no table, but lies in one: lakefs-mount %s %s", at.path, command, shellQuote(table))
	}
	return at.directory(ctx, "table")
}
