// Package objectstore holds exact, versioned bytes at a location.
//
// A [Store] is flat, as S3 is: an object is a key in a bucket, a directory is
// a prefix that ends in "/", or an empty object whose key does. Each version of
// an object has an ETag; reads are pinned to one and writes may be conditional
// on one. Guarantees that every implementation gives, held by the suite in
// objectstore/storetest:
//
//   - an object is visible whole or not at all, to every reader;
//   - a Read returns bytes of the version that was asked for, or [ErrChanged];
//   - a condition is checked and acted upon as one step, as far as the store can
//     (a local folder: among processes that use this package on one host);
//   - errors are told apart by the sentinels below, with errors.Is;
//   - all methods may be called concurrently, and end early when ctx is done.
package objectstore

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"iter"
	"os"
	"time"
)

// Sentinels. Stores wrap them with the operation and the location.
var (
	ErrNotExist   = iofs.ErrNotExist   // no such object
	ErrExist      = iofs.ErrExist      // Cond.IfNoneMatch: the object is there
	ErrPermission = iofs.ErrPermission // the store refused access
	// ErrChanged: the object is no longer the version that the call named.
	ErrChanged = errors.New("object changed")
	// ErrUnavailable: the store did not answer, or answered with a failure that
	// says nothing of the object; whether a write took effect is not known.
	ErrUnavailable = errors.New("object store unavailable")
	// ErrName: no object of this store can have the key (a component over 255
	// bytes, "." or ".." in a folder, a key over 1024 bytes in S3, NUL).
	ErrName = errors.New("key cannot be stored")
	// ErrNotEmpty: a directory that should go holds objects.
	ErrNotEmpty = errors.New("directory not empty")
	// ErrCrossDevice: the store can not do in one step what was asked, because
	// source and target lie on different file systems.
	ErrCrossDevice = errors.New("different file system")
	// ErrNoSpace: the store is full.
	ErrNoSpace = errors.New("no space left")
	// ErrTooLarge: the store, or the disk, takes no file of that size.
	ErrTooLarge = errors.New("file too large")
	// ErrHidden: the name is taken by something that is no object and is not
	// shown. It comes with [ErrNotExist]: see Stat.
	ErrHidden = errors.New("the name is taken by something that is no object")
	// ErrNoBucket: the bucket does not exist, which says nothing of objects: a
	// listing of it is no empty one. (The answer to a Stat cannot tell it.)
	ErrNoBucket = errors.New("no such bucket")
	// ErrDirectory: the key names a directory of the store where an object was expected.
	ErrDirectory = errors.New("is a directory")
)

// MetaWriteID is the user metadata key that names the write (a UUID) which made
// an object; it settles whether a publish whose answer was lost took effect.
const MetaWriteID = "lakefs-write-id"

// User metadata keys of attributes: MetaMode in octal, MetaUID and MetaGID in
// decimal, MetaMTime in seconds since 1970 with up to nine decimals.
const (
	MetaMode  = "mode"
	MetaUID   = "uid"
	MetaGID   = "gid"
	MetaMTime = "mtime"
)

// Location names an object, or as Key "a/b/" a directory, "" the bucket itself.
// In a local folder Bucket is the absolute path of the folder. In S3 it is the
// bucket's name, or SECRET@NAME for a bucket that is reached with credentials of
// its own: S3Options.Secrets. Nothing that is cached or staged under the one is
// ever used for the other.
type Location struct{ Bucket, Key string }

// Object is one version of an object.
type Object struct {
	Location
	Size int64  // bytes
	ETag string // of this version; opaque
	// Match is the strictest value for Cond.IfMatch that this answer allows: in
	// a folder it also covers the inode's change time, which a chmod by others
	// moves; elsewhere it is the ETag. Only Stat, Put, Copy and the optional
	// interfaces fill it.
	Match   string
	ModTime time.Time
	Meta    map[string]string // user metadata, where the answer carried it; not to be changed
}

// Entry is one line of a listing: an object, or with ListOptions.Delimiter a
// directory (Prefix true, Key ending in "/", Size 0).
type Entry struct {
	Object
	Prefix bool
}

// ListOptions narrow a listing; the zero value lists every key under the prefix.
type ListOptions struct {
	Delimiter  bool   // one level only: deeper keys are folded into Prefix entries
	StartAfter string // full key; only greater keys. A store whose listing has no order reads on to the end for it
	Limit      int    // at most so many entries; 0: no limit
}

// Cond is a condition on a write: on nothing, on the version that is there
// (IfMatch: an Object's Match or ETag; else [ErrChanged], also where no object
// is), or on nothing being there (IfNoneMatch; else [ErrExist]).
type Cond struct {
	IfMatch     string
	IfNoneMatch bool
}

// PutOptions go with a new object. Meta is kept with it as far as the store
// can; a folder turns MetaMode and MetaMTime into the file's own and keeps
// MetaWriteID in an extended attribute where the file system has them.
type PutOptions struct {
	Cond Cond
	Meta map[string]string
	// Begun is told of a multipart upload that a Copy makes, before its first part; an
	// error of it ends the Copy. nil: nobody is.
	Begun func(Upload) error
}

// Store is implemented by [Folder] and [S3].
type Store interface {
	// Stat returns the object at loc with its metadata; ErrNotExist, also for
	// the name of a directory without the final "/" (a store with Directories
	// then wraps ErrDirectory too, so that a miss costs one request). Stat of "a/" answers only
	// where an object (in a folder: a directory) of that very key is. A name that
	// the store holds but does not show (in a folder: a symbolic link that leaves
	// it or goes in a circle, a pipe, a socket, a device) is ErrNotExist and
	// ErrHidden. A link that leads nowhere is ErrNotExist alone: to tell it from a
	// free name would cost every miss a second look.
	Stat(ctx context.Context, loc Location) (Object, error)

	// List streams what lies under a prefix (Key "" or ending in "/"). An
	// object whose key is the prefix itself comes too (in a folder: the
	// directory itself, so that an empty one lists one entry and a missing one
	// none). The order is the store's own. After an error nothing follows; a
	// listing that ends without one is complete. A prefix where nothing is: no
	// entries, no error.
	List(ctx context.Context, prefix Location, opts ListOptions) iter.Seq2[Entry, error]

	// Read returns n bytes of o's version from off on, fewer only where the
	// object ends (off at or past the end: an empty body), and the Object as the
	// answer tells it. The caller closes the body; a body that is cut short
	// reads as io.ErrUnexpectedEOF. ErrChanged if o.ETag is no longer there, or is
	// not of o.Size bytes. With an empty ETag whatever version is there is read,
	// and o.Size counts for nothing.
	Read(ctx context.Context, o Object, off, n int64) (Object, io.ReadCloser, error)

	// Put makes an object of size bytes of r, whole or not at all; durable when
	// it returns. ErrUnavailable: it may have happened; Stat and MetaWriteID tell.
	Put(ctx context.Context, loc Location, r io.ReaderAt, size int64, opts PutOptions) (Object, error)

	// Copy makes dst from src's version within the store, as Put does; Meta nil
	// keeps the source's. ErrChanged if src is no longer there, or opts.Cond says so.
	Copy(ctx context.Context, dst Location, src Object, opts PutOptions) (Object, error)

	// Delete removes objects and yields each location with its outcome; one
	// that is not there is a success. A folder removes an empty directory "a/"
	// (ErrNotEmpty else).
	Delete(ctx context.Context, locs []Location) iter.Seq2[Location, error]
}

// Opener is a Store whose objects are files of this host.
type Opener interface {
	// OpenObject opens o's version for reading; the descriptor keeps that
	// version when the name is replaced by rename. ErrChanged, ErrNotExist.
	OpenObject(ctx context.Context, o Object) (*os.File, error)
}

// Adopter is a Store that can take a finished local file as it is, and give it back.
type Adopter interface {
	// Adopt makes the file at path the object loc by rename, durably, with
	// opts' metadata; missing directories on the way are made. On any error the
	// file is still at path. ErrCrossDevice: use Put.
	Adopt(ctx context.Context, loc Location, path string, opts PutOptions) (Object, error)
	// Return is Adopt undone: the version o becomes the file at path again, which must
	// not be there, by rename and durably. ErrChanged if o is not what its location
	// holds. ErrUnavailable: it may have happened.
	Return(ctx context.Context, o Object, path string) error
}

// Renamer is a Store with an atomic rename of one object.
type Renamer interface {
	// Rename moves src's version to dst under cond, in one step: no observer
	// sees neither or both. ErrChanged if src is not there; ErrCrossDevice.
	Rename(ctx context.Context, dst Location, src Object, cond Cond) (Object, error)
}

// Directories is a Store whose directories exist by themselves.
type Directories interface {
	// MakeDirectory makes the directory loc ("a/b/"); its parent must be there
	// (ErrNotExist), it must not (ErrExist).
	MakeDirectory(ctx context.Context, loc Location) error
	// RenameDirectory moves a directory and all below it in one step. dst must
	// not exist, or be an empty directory (ErrNotEmpty).
	RenameDirectory(ctx context.Context, dst, src Location) error
}

// Pinned is one version of an object, open for reading. ReadAt is io.ReaderAt's
// with a context, and may be called concurrently. Close once, by the owner.
type Pinned interface {
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	Close() error
}

// DataSeeker is a Pinned that knows the holes of its version.
type DataSeeker interface {
	// NextData returns the offset of the next byte at or past off that is not in
	// a hole, the object's size (or off, past it) if there is none: all between
	// is zero. Errors are those of ReadAt.
	NextData(ctx context.Context, off int64) (int64, error)
}
