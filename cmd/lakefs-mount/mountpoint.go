package main

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/fs"
)

// mountPoint makes MOUNTPOINT absolute and resolves the symbolic links on the
// way to it; the last component may be a dead mount, which cannot be looked at.
// /dev/fd/N stays: it is a descriptor of this process.
func mountPoint(path string) (string, error) {
	if _, passed := fs.PassedDescriptor(path); passed {
		return path, nil
	}
	abs, err := absolute("mount point", path)
	if err != nil {
		return "", err
	}
	if resolved, statErr := filepath.EvalSymlinks(abs); statErr == nil {
		return resolved, nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", fmt.Errorf("mount point %q: %w; make it: mkdir -p %s", abs, bare(err), shellQuote(abs))
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}

// prepareMountPoint makes sure that a mount at path would hide nothing and be
// found: path is an empty directory where nothing is mounted. A dead mount of
// our own there is detached.
func (p *program) prepareMountPoint(ctx context.Context, path string) error {
	for {
		e, found, err := mountedAt(path)
		if err != nil || !found {
			return errors.Join(err, emptyDirectory(path))
		}
		if !e.ours() {
			return fmt.Errorf("mount point %q: in use by %s (type %s); clear it: %s", path, e.source, e.fsType, clearCommand(ctx, e))
		}
		if answers(ctx, path) {
			return fmt.Errorf("mount point %q: in use, it shows %s already; clear it: lakefs-mount unmount %s", path, e.source, shellQuote(path))
		}
		if err := detach(ctx, path); err != nil {
			return fmt.Errorf("mount point %q: a dead mount of ours is there and cannot be detached: %w; clear it: %s", path, err, detachCommand(path))
		}
		p.errorf("detached the dead mount at %q\n", path)
	}
}

func emptyDirectory(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return fmt.Errorf("mount point %q: no such directory; make it: mkdir -p %s", path, shellQuote(path))
	case err != nil:
		return fmt.Errorf("mount point %q: %w", path, bare(err))
	case !info.IsDir():
		return fmt.Errorf("mount point %q: not a directory; name an empty directory", path)
	case os.Geteuid() != 0 && unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS) != nil: // what fusermount3 asks for
		return fmt.Errorf("mount point %q: this user may not write there; name a directory of your own, or let root: chown %d %s", path, os.Geteuid(), shellQuote(path))
	}
	names, err := firstNames(path)
	if err != nil {
		return fmt.Errorf("mount point %q: %w", path, bare(err))
	}
	if len(names) > 0 {
		return fmt.Errorf("mount point %q: not empty (it has %q), and the mount would hide that; name an empty directory", path, names[0])
	}
	return nil
}

func firstNames(path string) ([]string, error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	names, _ := d.Readdirnames(1) // an empty directory answers io.EOF
	return names, d.Close()
}

// detach takes the mount at path out of the tree, whatever uses it.
func detach(ctx context.Context, path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err == nil || os.Geteuid() == 0 {
		return err
	}
	return fusermount(ctx, "-u", "-z", "--", path)
}

// unmountNow unmounts path, which fails while something uses it.
func unmountNow(ctx context.Context, path string) error {
	if os.Geteuid() == 0 {
		return unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	}
	return fusermount(ctx, "-u", "--", path)
}

func fusermount(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "fusermount3", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("fusermount3: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func detachCommand(path string) string {
	if os.Geteuid() == 0 {
		return "umount -l " + shellQuote(path)
	}
	return "fusermount3 -u -z " + shellQuote(path)
}

// clearCommand is what takes another program's mount away.
func clearCommand(ctx context.Context, e tableEntry) string {
	switch {
	case !strings.HasPrefix(e.fsType, "fuse"):
		return "umount " + shellQuote(e.path)
	case !answers(ctx, e.path): // a dead one may have files open that nobody can close
		return detachCommand(e.path)
	case os.Geteuid() == 0:
		return "umount " + shellQuote(e.path)
	}
	return "fusermount3 -u " + shellQuote(e.path)
}

// bare takes operation and path off an error, where the message says them.
func bare(err error) error {
	var pathErr *iofs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// shellQuote makes s one word for a shell.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:=@%", r))
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return "$'" + strings.NewReplacer(`'`, `\'`, "\n", `\n`, "\t", `\t`, "\x1b", `\e`, `\`, `\\`).Replace(strings.ToValidUTF8(s, "?")) + "'"
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
