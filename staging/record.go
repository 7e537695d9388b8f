package staging

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const (
	recordVersion = 1
	recordName    = "write.json"
	recordTemp    = "write.json.tmp"
	dataName      = "data"
	blocksName    = "blocks"
	recordMax     = 64 << 20 // bytes; a larger write.json is none of ours (10,000 parts are some 2 MiB, 10,000 members some 10)
)

// diskRecord is write.json: the record, and beside it the exact bytes of those
// names that are not UTF-8, which JSON would garble.
type diskRecord struct {
	Record
	Exact *exactNames `json:"exact_bytes,omitempty"`
}

type exactNames struct {
	TargetBucket []byte `json:"target_bucket,omitempty"`
	TargetKey    []byte `json:"target_key,omitempty"`
	PrefixBucket []byte `json:"prefix_bucket,omitempty"`
	PrefixKey    []byte `json:"prefix_key,omitempty"`
	Path         []byte `json:"path,omitempty"`
	BaseBucket   []byte `json:"base_bucket,omitempty"`
	BaseKey      []byte `json:"base_key,omitempty"`
	SourceBucket []byte `json:"source_bucket,omitempty"`
	SourceKey    []byte `json:"source_key,omitempty"`
	CopiedBucket []byte `json:"copied_bucket,omitempty"`
	CopiedKey    []byte `json:"copied_key,omitempty"`
	UploadBucket []byte `json:"upload_bucket,omitempty"`
	UploadKey    []byte `json:"upload_key,omitempty"`
	// Of Record.Aborts, in its order; null where the name is UTF-8.
	AbortBuckets [][]byte `json:"abort_buckets,omitempty"`
	AbortKeys    [][]byte `json:"abort_keys,omitempty"`
	Members      [][]byte `json:"members,omitempty"` // of Record.Members, as memberPairs lists them
	Clear        [][]byte `json:"clear,omitempty"`   // of Record.Clear, as clearPairs lists them
}

// exactPair is a name of the record and its place in exactNames.
type exactPair struct {
	name  *string
	exact *[]byte
}

func (d *diskRecord) pairs() []exactPair {
	e := d.Exact
	pairs := []exactPair{
		{&d.Target.Bucket, &e.TargetBucket},
		{&d.Target.Key, &e.TargetKey},
		{&d.Prefix.Bucket, &e.PrefixBucket},
		{&d.Prefix.Key, &e.PrefixKey},
		{&d.Path, &e.Path},
	}
	if d.Base != nil {
		pairs = append(pairs, exactPair{&d.Base.Bucket, &e.BaseBucket}, exactPair{&d.Base.Key, &e.BaseKey})
	}
	if d.Source != nil {
		pairs = append(pairs, exactPair{&d.Source.Bucket, &e.SourceBucket}, exactPair{&d.Source.Key, &e.SourceKey})
	}
	if d.Copied != nil {
		pairs = append(pairs, exactPair{&d.Copied.Bucket, &e.CopiedBucket}, exactPair{&d.Copied.Key, &e.CopiedKey})
	}
	if d.Upload != nil {
		pairs = append(pairs, exactPair{&d.Upload.Bucket, &e.UploadBucket}, exactPair{&d.Upload.Key, &e.UploadKey})
	}
	e.AbortBuckets, e.AbortKeys = resized(e.AbortBuckets, len(d.Aborts)), resized(e.AbortKeys, len(d.Aborts))
	for i := range d.Aborts {
		pairs = append(pairs, exactPair{&d.Aborts[i].Bucket, &e.AbortBuckets[i]}, exactPair{&d.Aborts[i].Key, &e.AbortKeys[i]})
	}
	return append(append(pairs, d.memberPairs()...), d.clearPairs()...)
}

// resized is s with n names, whatever a record on disk says.
func resized(s [][]byte, n int) [][]byte {
	out := make([][]byte, n)
	copy(out, s)
	return out
}

func encodeRecord(r Record) ([]byte, error) {
	d := diskRecord{Record: r, Exact: new(exactNames)}
	odd := false
	for _, p := range d.pairs() {
		if !utf8.ValidString(*p.name) {
			*p.exact = []byte(*p.name)
			odd = true
		}
	}
	if !odd {
		d.Exact = nil
	}
	raw, err := marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode record %s: %w", r.ID, err)
	}
	return append(raw, '\n'), nil
}

// marshal spreads a record out for people, but for a batch's, which is long enough.
func marshal(d diskRecord) ([]byte, error) {
	if d.isBatch() {
		return json.Marshal(d)
	}
	return json.MarshalIndent(d, "", "  ")
}

// parseRecord reads the write.json of the write id. Whatever it does not
// understand is an error: the caller keeps such a write and shows it as failed.
func parseRecord(id string, raw []byte) (Record, error) {
	var d diskRecord
	if err := json.Unmarshal(raw, &d); err != nil {
		return Record{}, fmt.Errorf("parse %s: %w", recordName, err)
	}
	if d.Exact != nil {
		for _, p := range d.pairs() {
			if len(*p.exact) > 0 {
				*p.name = string(*p.exact)
			}
		}
	}
	if err := d.validate(id); err != nil {
		return Record{}, fmt.Errorf("parse %s: %w", recordName, err)
	}
	return d.Record, nil
}

func (r *Record) validate(id string) error {
	switch {
	case r.Version != recordVersion:
		return fmt.Errorf("version %d is not known to this program (it knows %d)", r.Version, recordVersion)
	case r.ID != id:
		return fmt.Errorf("it names %w: %q, its directory %q", errOtherWrite, r.ID, id)
	case r.Target.Bucket == "" || r.Target.Key == "":
		return errors.New("no target")
	case slices.Contains(strings.Split(r.Path, "/"), ".."):
		return fmt.Errorf("path %q", r.Path)
	case r.Size < 0:
		return fmt.Errorf("size %d", r.Size)
	case r.Base != nil && (r.Base.Size < 0 || r.Base.Size > maxSize):
		return fmt.Errorf("base of size %d", r.Base.Size)
	case r.Hold != Unheld && r.Hold != Temporary && r.Hold != Local:
		return fmt.Errorf("hold %q", r.Hold)
	case r.Data != "" && !isDataName(r.Data):
		return fmt.Errorf("spool named %q", r.Data)
	}
	w := NewWrite{Target: r.Target, Prefix: r.Prefix, Path: r.Path}
	if err := w.validate(); err != nil {
		return err
	}
	if err := r.validateRename(); err != nil {
		return err
	}
	if err := r.validateBatch(); err != nil {
		return err
	}
	if err := r.validateUploads(); err != nil {
		return err
	}
	switch r.State {
	case Staged, Publishing, Torn, Failed, Renaming, Aborting,
		BatchClearing, BatchMoving, BatchMoved, BatchUndoing, BatchSettling:
		return nil
	}
	return fmt.Errorf("state %q", r.State)
}

// maxSize bounds what a record may make this program allocate for a bitmap.
const maxSize = 1 << 50

// isID tells whether name is a write id as this package makes them.
func isID(name string) bool {
	id, err := uuid.Parse(name)
	return err == nil && id.String() == name
}

// isDataName tells whether a spool can be called so: "data", or "data." and the
// write id of the rebase that made it.
func isDataName(name string) bool {
	return name == dataName || len(name) > len(dataName)+1 && name[:len(dataName)+1] == dataName+"." && isID(name[len(dataName)+1:])
}

// errOtherWrite: a record is not that of its directory.
var errOtherWrite = errors.New("another write")

// writeFirst writes the first record of a write, in place: there is none yet
// that could be damaged, and an empty one beside an empty spool is nothing, nor is
// that of the write which had the directory before.
func (a *Area) writeFirst(r Record) error {
	path := filepath.Join(a.path(r.ID), recordName)
	raw, err := encodeRecord(r)
	if err == nil {
		err = a.step("create", path)
	}
	if err != nil {
		return err
	}
	return a.withRoom(func() error { return writeFile(path, os.O_TRUNC, raw, false) })
}

// replace puts a new record in the old one's place by rename; the old one's file is
// the next one's. With durable both the bytes and the name outlive a power loss.
func (a *Area) replace(r Record, durable bool) error {
	dir := a.path(r.ID)
	temp := filepath.Join(dir, recordTemp)
	raw, err := encodeRecord(r)
	if err == nil {
		err = a.step("create", temp)
	}
	if err != nil {
		return err
	}
	if err := a.withRoom(func() error { return writeFile(temp, os.O_TRUNC, raw, durable) }); err != nil {
		_ = os.Remove(temp)
		return ownTrouble(err)
	}
	if err := a.step("rename", temp); err != nil {
		return err
	}
	if err := exchange(temp, filepath.Join(dir, recordName)); err != nil {
		return ioError("write", temp, err)
	}
	if !durable {
		return nil
	}
	return syncDir(dir)
}

// exchange renames from to to, and to to from where it is there and the file system
// can: a file is neither made nor removed then (see spare.go).
func exchange(from, to string) error {
	if unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE) == nil {
		return nil
	}
	return unix.Rename(from, to)
}

func writeFile(path string, flag int, raw []byte, sync bool) error {
	w, err := openPrivate(path, os.O_WRONLY|os.O_CREATE|flag)
	if err != nil {
		return err
	}
	_, err = w.Write(raw)
	if err == nil && sync {
		err = w.Sync()
	}
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return ioError("write", path, err)
	}
	return nil
}

// openPrivate opens a file that only its owner may read, never through a
// symbolic link. Not by os.OpenFile, which offers each file to the poller: three
// more system calls.
func openPrivate(path string, flag int) (*os.File, error) {
	var fd int
	err := retryEINTR(func() (err error) {
		fd, err = unix.Open(path, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return nil, ioError("open", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return ioError("sync", dir, err)
	}
	err = d.Sync()
	_ = d.Close() // only read
	if err != nil {
		return ioError("sync", dir, err)
	}
	return nil
}

// objectCopy is o in memory of its own, so that a Record is a copy.
func objectCopy(o *objectstore.Object) *objectstore.Object {
	if o == nil {
		return nil
	}
	c := *o
	return &c
}
