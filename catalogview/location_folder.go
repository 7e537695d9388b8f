package catalogview

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"path"
	"slices"
	"strings"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// folderResolver resolves the locations of a local folder's manifests.
type folderResolver struct {
	roots []string
	eval  func(string) (string, error)
}

// resolve takes an absolute path, a file: URI, or a path relative to the first
// root. Nothing in it is decoded. Symbolic links are resolved as far as the
// path exists; what is compared is their target, on a "/" boundary.
func (r folderResolver) resolve(location, _ string) (place, *refusal) {
	p, ref := r.localPath(location)
	if ref != nil {
		return place{}, ref
	}
	location = maskUserinfo(location) // what is left to do with it is to show it
	target, err := r.realPath(p)
	if err != nil {
		class := table.ClassBroken // a loop of links, a file on the way
		if errors.Is(err, objectstore.ErrPermission) {
			class = table.ClassDenied
		}
		return place{}, &refusal{class: class, reason: fmt.Sprintf("location %.300q: %v", location, bare(err))}
	}
	best := place{}
	bestRoot := ""
	for _, root := range r.roots {
		realRoot, err := r.realPath(path.Clean(root))
		if err != nil {
			continue
		}
		rest, ok := under(target, realRoot)
		if !ok || best.Bucket != "" && len(realRoot) <= len(bestRoot) {
			continue
		}
		if rest != "" {
			rest += "/"
		}
		best, bestRoot = place{objectstore.Location{Bucket: root, Key: rest}, target}, realRoot
	}
	if best.Bucket == "" {
		return place{}, outside(location, p)
	}
	return best, nil
}

// outside refuses a location that none of the roots holds. Another root is the
// remedy only where the entry names it by itself: a relative location leaves
// the folder by a symbolic link.
func outside(location, p string) *refusal {
	ref := denied("location %.300q lies outside the folder and the allowed directories", location)
	scheme, rest := splitScheme(location)
	if scheme == "" && !strings.HasPrefix(rest, "/") {
		ref.reason += ", by a symbolic link on its way"
		return ref
	}
	ref.reason += "; --allow-location adds one"
	ref.outside = p
	return ref
}

// bare takes operation and path off an error: the path may hold what drives a
// terminal, and the message has it quoted.
func bare(err error) error {
	var pathErr *iofs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// localPath returns a location as a clean absolute path.
func (r folderResolver) localPath(location string) (string, *refusal) {
	scheme, rest := splitScheme(location)
	location = maskUserinfo(location) // what is left to do with it is to show it
	switch scheme {
	case "":
	case "file":
		var ok bool
		if rest, ok = filePath(rest); !ok {
			return "", denied("location %.300q names another host or no absolute path", location)
		}
	case "s3", "s3a", "s3n":
		return "", denied("location %.300q: the catalog is a local folder, its tables lie in local directories", location)
	default:
		return "", &refusal{class: table.ClassUnsupported, reason: fmt.Sprintf("location %.300q: scheme %.40s is not supported", location, scheme)}
	}
	if slices.Contains(strings.Split(rest, "/"), "..") {
		return "", denied("location %.300q has a component \"..\"", location)
	}
	if strings.Contains(rest, "\x00") {
		return "", denied("location %.300q has a NUL byte", location)
	}
	if !strings.HasPrefix(rest, "/") {
		if len(r.roots) == 0 {
			return "", denied("location %.300q is relative to no folder", location)
		}
		rest = r.roots[0] + "/" + rest
	}
	return path.Clean(rest), nil
}

// filePath takes the authority off what follows "file:"; only this host's.
func filePath(rest string) (string, bool) {
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		host, p, _ := strings.Cut(after, "/")
		if host != "" && !strings.EqualFold(host, "localhost") {
			return "", false
		}
		return "/" + p, true
	}
	return rest, strings.HasPrefix(rest, "/")
}

// realPath resolves the symbolic links of a clean absolute path; what does not
// exist yet stays as it is.
func (r folderResolver) realPath(p string) (string, error) {
	rest := ""
	for {
		target, err := r.eval(p)
		if err == nil {
			return path.Join(target, rest), nil
		}
		if !errors.Is(err, objectstore.ErrNotExist) || p == "/" {
			return "", err
		}
		rest = path.Join(path.Base(p), rest)
		p = path.Dir(p)
	}
}

// under returns what is left of p below dir; "" for dir itself.
func under(p, dir string) (rest string, ok bool) {
	if p == dir {
		return "", true
	}
	if dir != "/" {
		dir += "/"
	}
	return strings.CutPrefix(p, dir)
}

func (r folderResolver) show(p place, below []string) string {
	return path.Join(append([]string{p.real}, below...)...)
}

func (r folderResolver) inSQE(at place, below []string) bool {
	p := r.show(at, below)
	if len(r.roots) == 0 || !slices.Contains(strings.Split(p, "/"), sqeDirectory) {
		return false // the root's links are resolved where it matters only: each write asks
	}
	root, err := r.realPath(path.Clean(r.roots[0]))
	if err != nil {
		return true // not known: the safe answer
	}
	rest, ok := under(p, root)
	return ok && slices.Contains(strings.Split(rest, "/"), sqeDirectory)
}

func (r folderResolver) oddity(p place, database, name string) string {
	if len(r.roots) == 0 {
		return ""
	}
	root, err := r.realPath(path.Clean(r.roots[0]))
	if err != nil {
		return ""
	}
	if r.inSQE(p, nil) {
		return "the location lies in a manifest's own directory"
	}
	if p.real == root {
		return "the location is the catalog's root"
	}
	if _, ok := under(path.Join(root, database, name, sqeDirectory), p.real); ok {
		return "the location holds the table's own manifest directory"
	}
	return ""
}
