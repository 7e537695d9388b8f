package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sourceFolder checks that SOURCE is a folder and makes it absolute, symbolic
// links resolved: what it names at the start is what is served.
func sourceFolder(source string) (string, error) {
	if scheme, _, found := strings.Cut(source, ":"); found && !strings.Contains(scheme, "/") && !exists(source) {
		return "", fmt.Errorf("source %q: catalogs of kind %q are not served by this version; name a local folder", source, scheme)
	}
	path, err := absolute("source", source)
	if err != nil {
		return "", err
	}
	if err = notInALake(path); err != nil { // first: a dead mount cannot be looked at
		return "", err
	}
	path, err = existingFolder("source", path, "name the folder that holds <database>/<table>/_sqe/table.json (or try: lakefs-mount demo)")
	if err != nil {
		return "", err
	}
	if err := notInALake(path); err != nil { // by a symbolic link
		return "", err
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return "", fmt.Errorf("source %q: this user cannot read it: %w; let its owner permit it: chmod a+rx %s", path, err, shellQuote(path))
	}
	return path, nil
}

// notInALake refuses a SOURCE in a mount of this program: what is published there
// would be published again below, under other conditions, and a lake of its own
// mount waits for itself.
func notInALake(path string) error {
	table, err := mountTable()
	if err != nil {
		return err
	}
	if e := mountHolding(table, path); e.ours() {
		return fmt.Errorf("source %q: it lies in the mount %q of lakefs-mount itself, which shows %q; name the folder that holds the data", path, e.path, e.source)
	}
	return nil
}

// existingFolder resolves the symbolic links of a directory that must be there.
func existingFolder(what, path, remedy string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return "", fmt.Errorf("%s %q: no such folder; %s", what, path, remedy)
	case err != nil:
		return "", fmt.Errorf("%s %q: %w", what, path, err)
	case !info.IsDir():
		return "", fmt.Errorf("%s %q: not a folder; %s", what, path, remedy)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("%s %q: %w", what, path, err)
	}
	return resolved, nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// within tells whether path is dir or lies below it. Both are absolute and clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// stateDir is where a mount keeps what must survive it, by default below the
// user's state directory, by source and mount point.
func (p *program) stateDir(chosen, source, mountpoint string) (string, error) {
	if chosen != "" {
		return absolute("--state-dir", chosen)
	}
	base := p.getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) { // the XDG specification: a relative one is ignored
		home := p.getenv("HOME")
		if home == "" {
			if u, err := user.Current(); err == nil {
				home = u.HomeDir
			}
		}
		if !filepath.IsAbs(home) {
			return "", errors.New("no place for the state of the mount: HOME is not set; give --state-dir DIR")
		}
		base = filepath.Join(home, ".local", "state")
	}
	sum := sha256.Sum256([]byte(source + "\x00" + mountpoint))
	return filepath.Join(base, "lakefs-mount", hex.EncodeToString(sum[:8])), nil
}

// stateApart refuses a state directory that lies in a folder which is served, or
// that holds one: bytes that are not published would lie among the data.
func stateApart(r *request, dir string) error {
	extra, err := allowed(r.settings.AllowLocation)
	if err != nil {
		return err
	}
	state := realPath(dir)
	check := func(what, folder string) error {
		if folder == "" || !within(state, folder) && !within(folder, state) {
			return nil
		}
		return fmt.Errorf("state directory %q: it and %s (%q) lie one in the other, and what is not published would lie among the data; choose another with --state-dir", dir, what, folder)
	}
	if err := check("SOURCE", r.source); err != nil {
		return err
	}
	for _, folder := range extra {
		if err := check("--allow-location", folder); err != nil {
			return err
		}
	}
	return nil
}

// realPath resolves the symbolic links of an absolute path as far as it exists.
func realPath(path string) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if resolved, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(resolved, rest)
		}
		if dir == "/" {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// allowed are the directories of --allow-location, which must exist.
func allowed(locations []string) ([]string, error) {
	var out []string
	for _, l := range locations {
		if strings.Contains(l, "{user}") {
			l = strings.ReplaceAll(l, "{user}", userName())
		}
		dir, err := existingFolder("--allow-location", l, "make it, or leave the flag out")
		if err != nil {
			return nil, err
		}
		out = append(out, dir)
	}
	return out, nil
}

// userName is the name of the user that runs the mount, or the number of one
// without a name.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" && !strings.ContainsAny(u.Username, "/") && !strings.HasPrefix(u.Username, ".") {
		return u.Username
	}
	return strconv.Itoa(os.Geteuid())
}
