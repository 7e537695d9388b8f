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
	path, err = existingFolder("source", path, "name the folder that holds <database>/<table>/_sqe/table.json (or try: lakefs-mount demo)")
	if err != nil {
		return "", err
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return "", fmt.Errorf("source %q: this user cannot read it: %w; let its owner permit it: chmod a+rx %s", path, err, shellQuote(path))
	}
	return path, nil
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
