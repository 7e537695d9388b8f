package fs

import (
	"context"
	"errors"
	"strings"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// Extended attributes are read only, and few: user.lakefs.etag and
// user.lakefs.uri of a file, user.lakefs.target of a staged one,
// user.lakefs.location of a directory.
const (
	xattrETag     = "user.lakefs.etag"
	xattrURI      = "user.lakefs.uri"
	xattrTarget   = "user.lakefs.target"
	xattrLocation = "user.lakefs.location"
)

// xattrs is a node's list of attributes.
type xattrs []struct{ name, value string }

func (x xattrs) get(name string, dest []byte) (uint32, syscall.Errno) {
	for _, a := range x {
		if a.name == name {
			return answer(dest, a.value)
		}
	}
	return 0, noAttribute(name)
}

// noAttribute is the answer for an attribute that is not there. Other namespaces than
// user are not supported at all: ls -l asks every file for security.selinux and
// system.posix_acl_access until it is told so once.
func noAttribute(name string) syscall.Errno {
	if !strings.HasPrefix(name, "user.") {
		return toErrno(errUnsupported)
	}
	return toErrno(errNoAttribute)
}

func (x xattrs) list(dest []byte) (uint32, syscall.Errno) {
	var all string
	for _, a := range x {
		all += a.name + "\x00"
	}
	return answer(dest, all)
}

func answer(dest []byte, value string) (uint32, syscall.Errno) {
	if len(value) > len(dest) {
		return uint32(len(value)), toErrno(errRange)
	}
	return uint32(copy(dest, value)), 0
}

// uri is how an object is called outside the mount.
func uri(l objectstore.Location) string {
	if l.Bucket == "" {
		return ""
	}
	if strings.HasPrefix(l.Bucket, "/") { // a folder's path
		return "file://" + l.Bucket + "/" + l.Key
	}
	_, bucket, secret := strings.Cut(l.Bucket, "@")
	if !secret {
		bucket = l.Bucket
	}
	return "s3://" + bucket + "/" + l.Key
}

func (o *objectNode) xattrs() xattrs {
	v := o.object()
	return xattrs{{xattrETag, v.ETag}, {xattrURI, uri(v.Location)}}
}

// Getxattr reads one attribute.
func (o *objectNode) Getxattr(_ context.Context, name string, dest []byte) (uint32, syscall.Errno) {
	return o.xattrs().get(name, dest)
}

// Listxattr lists the attributes.
func (o *objectNode) Listxattr(_ context.Context, dest []byte) (uint32, syscall.Errno) {
	return o.xattrs().list(dest)
}

func (s *stagedNode) xattrs() xattrs {
	return xattrs{{xattrTarget, uri(s.file.Record().Target)}}
}

// Getxattr reads one attribute.
func (s *stagedNode) Getxattr(_ context.Context, name string, dest []byte) (uint32, syscall.Errno) {
	return s.xattrs().get(name, dest)
}

// Listxattr lists the attributes.
func (s *stagedNode) Listxattr(_ context.Context, dest []byte) (uint32, syscall.Errno) {
	return s.xattrs().list(dest)
}

func (v *stagedViewNode) xattrs() xattrs {
	return xattrs{{xattrTarget, uri(v.file.Record().Target)}}
}

// Getxattr reads one attribute.
func (v *stagedViewNode) Getxattr(_ context.Context, name string, dest []byte) (uint32, syscall.Errno) {
	return v.xattrs().get(name, dest)
}

// Listxattr lists the attributes.
func (v *stagedViewNode) Listxattr(_ context.Context, dest []byte) (uint32, syscall.Errno) {
	return v.xattrs().list(dest)
}

// xattrs asks where the directory is. That there is none is no error.
func (d *dirNode) xattrs(ctx context.Context) (xattrs, syscall.Errno) {
	path, err := d.path()
	if err != nil {
		return nil, 0
	}
	work, cancel := d.fs.work(ctx)
	defer cancel()
	n, err := d.fs.lookup(work, path)
	switch {
	case errors.Is(err, objectstore.ErrNotExist):
		return nil, 0
	case err != nil:
		return nil, d.fs.fail("getxattr", path, err)
	case n.Location() == (objectstore.Location{}):
		return nil, 0
	}
	return xattrs{{xattrLocation, uri(n.Location())}}, 0
}

// Getxattr reads one attribute. What the kernel and tools ask all the time
// (security.*, system.*) is answered without a look-up.
func (d *dirNode) Getxattr(ctx context.Context, name string, dest []byte) (uint32, syscall.Errno) {
	if name != xattrLocation {
		return 0, noAttribute(name)
	}
	x, e := d.xattrs(ctx)
	if e != 0 {
		return 0, e
	}
	return x.get(name, dest)
}

// Listxattr lists the attributes.
func (d *dirNode) Listxattr(ctx context.Context, dest []byte) (uint32, syscall.Errno) {
	x, e := d.xattrs(ctx)
	if e != 0 {
		return 0, e
	}
	return x.list(dest)
}

// Setxattr and Removexattr are not supported: tools fall back.
func (o *objectNode) Setxattr(context.Context, string, []byte, uint32) syscall.Errno {
	return toErrno(errUnsupported)
}

// Removexattr is not supported.
func (o *objectNode) Removexattr(context.Context, string) syscall.Errno {
	return toErrno(errUnsupported)
}

// Setxattr is not supported.
func (s *stagedNode) Setxattr(context.Context, string, []byte, uint32) syscall.Errno {
	return toErrno(errUnsupported)
}

// Removexattr is not supported.
func (s *stagedNode) Removexattr(context.Context, string) syscall.Errno {
	return toErrno(errUnsupported)
}

// Setxattr is not supported.
func (d *dirNode) Setxattr(context.Context, string, []byte, uint32) syscall.Errno {
	return toErrno(errUnsupported)
}

// Removexattr is not supported.
func (d *dirNode) Removexattr(context.Context, string) syscall.Errno {
	return toErrno(errUnsupported)
}

var _ gofs.NodeSetxattrer = (*stagedNode)(nil)
