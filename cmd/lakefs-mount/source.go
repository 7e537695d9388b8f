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
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/fs"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// maxKey is the longest key of an object in S3, in bytes.
const maxKey = 1024

// source is a SOURCE: a Glue catalog, or manifests in a local folder or in a
// prefix of a bucket.
type source struct {
	folder  string               // absolute, symbolic links resolved; "": another kind
	root    objectstore.Location // of a bucket; Key "" or ending in "/"
	glue    bool
	account string // of a Glue catalog; "": the caller's own
}

// String is the source as the mount table shows it: a path, s3://BUCKET/PREFIX/,
// glue: or glue:ACCOUNT.
func (s source) String() string {
	switch {
	case s.glue:
		return glueScheme + ":" + s.account
	case s.onS3():
		return "s3://" + s.root.Bucket + "/" + s.root.Key
	}
	return s.folder
}

// kind is what the source is, for people.
func (s source) kind() string {
	switch {
	case s.glue:
		return "a Glue catalog"
	case s.onS3():
		return "a bucket of manifests"
	}
	return "a local folder"
}

// onS3 tells whether its tables lie in buckets.
func (s source) onS3() bool { return s.glue || s.root.Bucket != "" }

// location is where the root of the manifests lies in their store.
func (s source) location() objectstore.Location {
	if !s.onS3() {
		return objectstore.Location{Bucket: s.folder}
	}
	return s.root
}

// parseSource takes SOURCE: glue:, glue:ACCOUNT, s3://BUCKET/PREFIX, or a folder
// that is there.
func parseSource(text string) (source, error) {
	scheme, rest, found := strings.Cut(text, ":")
	switch {
	case found && slices.Contains([]string{"s3", "s3a"}, strings.ToLower(scheme)) && strings.HasPrefix(rest, "//"):
		root, err := bucketLocation(strings.TrimPrefix(rest, "//"))
		if err != nil {
			return source{}, fmt.Errorf("source %q: %w", text, err)
		}
		return source{root: root}, nil
	case found && strings.EqualFold(scheme, glueScheme):
		return glueSource(text, rest)
	case found && !strings.Contains(scheme, "/") && !exists(text):
		return source{}, fmt.Errorf("source %q: catalogs of kind %q are not served by this version; name glue:, s3://BUCKET/PREFIX/ or a local folder", text, scheme)
	}
	folder, err := sourceFolder(text)
	return source{folder: folder}, err
}

// bucketLocation takes BUCKET/PREFIX, the last "/" added where it is missing.
func bucketLocation(text string) (objectstore.Location, error) {
	bucket, key, _ := strings.Cut(text, "/")
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
	}
	if len(bucket) < 3 || len(bucket) > 255 || strings.ContainsFunc(bucket, func(r rune) bool { return !plain(r) }) {
		return objectstore.Location{}, fmt.Errorf("%q is no name of a bucket; want s3://BUCKET/PREFIX/", bucket)
	}
	if key != "" && !strings.HasSuffix(key, "/") {
		key += "/"
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(key, "/"), "/") {
		if key != "" && (part == "" || part == "." || part == ".." || len(part) > 255 || strings.Contains(part, "\x00")) {
			return objectstore.Location{}, fmt.Errorf("the prefix has a part %.300q, which no path can have; name another prefix", part)
		}
	}
	if len(key) > maxKey/2 {
		return objectstore.Location{}, fmt.Errorf("the prefix has %d bytes, and a whole key at most %d; name a shorter prefix", len(key), maxKey)
	}
	return objectstore.Location{Bucket: bucket, Key: key}, nil
}

// sourceFolder checks that SOURCE is a folder and makes it absolute, symbolic
// links resolved: what it names at the start is what is served.
func sourceFolder(source string) (string, error) {
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
// user's state directory, by source and mount point. Of a bucket the store counts
// too, and of a Glue catalog its service: what was written to the one is never
// published to another.
func (p *program) stateDir(r *request) (string, error) {
	if r.settings.StateDir != "" {
		return absolute("--state-dir", r.settings.StateDir)
	}
	if _, passed := fs.PassedDescriptor(r.mountpoint); passed {
		return "", fmt.Errorf("mount point %q: it may be another mount's the next time, which would not find what this one kept; give --state-dir DIR", r.mountpoint)
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
	identity := r.source.String() + "\x00" + r.mountpoint
	if r.source.onS3() {
		identity += "\x00" + r.endpoint
	}
	if r.source.glue { // its account is in the source
		identity += "\x00" + r.glueEndpoint + "\x00" + r.aws.main.Region
	}
	sum := sha256.Sum256([]byte(identity))
	return filepath.Join(base, "lakefs-mount", hex.EncodeToString(sum[:8])), nil
}

// stateApart refuses a state directory that lies in a folder which is served, or
// that holds one, or that lies in a mount of this program: bytes that are not
// published would lie among the data.
func stateApart(r *request, dir string) error {
	if err := outsideMounts("state directory (--state-dir)", dir); err != nil || r.source.onS3() {
		return err
	}
	extra, err := allowed(r)
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
	if err := check("SOURCE", r.source.folder); err != nil {
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

// allowed are the locations of --allow-location: directories, which must exist, for
// a local folder; s3://BUCKET/PREFIX/ for a bucket and a Glue catalog.
func allowed(r *request) ([]string, error) {
	var out []string
	for _, l := range r.settings.AllowLocation {
		rest, remote := strings.CutPrefix(l, "s3://")
		switch {
		case remote && !r.source.onS3():
			return nil, fmt.Errorf("--allow-location %q: SOURCE is a local folder, and its tables lie in local directories; name a directory, or leave the flag out", l)
		case !remote && r.source.onS3():
			return nil, fmt.Errorf("--allow-location %q: SOURCE is %s, and its tables never lie in this host's directories; name s3://BUCKET/PREFIX/, or leave the flag out", l, r.source.kind())
		}
		if remote {
			loc, err := bucketLocation(strings.ReplaceAll(rest, "{user}", userName()))
			if err != nil {
				return nil, fmt.Errorf("--allow-location %q: %w", l, err)
			}
			out = append(out, source{root: loc}.String())
			continue
		}
		dir, err := existingFolder("--allow-location", strings.ReplaceAll(l, "{user}", userName()), "make it, or leave the flag out")
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
