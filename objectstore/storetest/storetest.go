// Package storetest is the conformance suite of [objectstore.Store]: what every
// implementation promises, and the optional interfaces where it has them.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// Opener returns a store and an empty directory in it (Key "" or ending in
// "/") for one test, which cleans up after itself by t.Cleanup.
type Opener func(t *testing.T) (objectstore.Store, objectstore.Location)

// A test of one promise.
type test struct {
	name string
	run  func(fixture)
}

// Run holds the stores that open returns to the contract.
func Run(t *testing.T, open Opener) {
	t.Helper()
	run(t, open, nil, []test{
		{"Stat", testStat},
		{"StatMissing", testStatMissing},
		{"ListMissing", testListMissing},
		{"ListDelimiter", testListDelimiter},
		{"ListRecursive", testListRecursive},
		{"ListLimit", testListLimit},
		{"ListStartAfter", testListStartAfter},
		{"ListStops", testListStops},
		{"ListMany", testListMany},
		{"ReadRanges", testReadRanges},
		{"ReadPinned", testReadPinned},
		{"ReadMissing", testReadMissing},
		{"ReadAny", testReadAny},
		{"Pin", testPin},
		{"PinReads", testPinReads},
		{"PutReplaces", testPutReplaces},
		{"PutMeta", testPutMeta},
		{"PutShortSource", testPutShortSource},
		{"PutIfNoneMatch", testPutIfNoneMatch},
		{"PutIfMatch", testPutIfMatch},
		{"PutWhole", testPutWhole},
		{"Create20", testCreate20},
		{"ReadModifyWrite", testReadModifyWrite},
		{"Copy", testCopy},
		{"CopyConditions", testCopyConditions},
		{"Delete", testDelete},
		{"OddNames", testOddNames},
		{"Cancelled", testCancelled},
		{"OpenObject", testOpenObject},
		{"Adopt", testAdopt},
		{"AdoptConditions", testAdoptConditions},
		{"Rename", testRename},
		{"RenameConditions", testRenameConditions},
		{"RenameWhole", testRenameWhole},
		{"MakeDirectory", testMakeDirectory},
		{"RenameDirectory", testRenameDirectory},
		{"DeleteDirectory", testDeleteDirectory},
		{"DeleteVersion", testDeleteVersion},
	})
}

// run runs the tests that are not known to fail.
func run(t *testing.T, open Opener, known map[string]string, tests []test) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if why, ok := known[test.name]; ok {
				t.Skip(why)
			}
			s, dir := open(t)
			test.run(fixture{Store: s, t: t, dir: dir})
		})
	}
}

// fixture is a store under test with its empty directory, for one test.
type fixture struct {
	objectstore.Store
	t   *testing.T
	dir objectstore.Location
}

// at is the location of a key below the directory.
func (f fixture) at(key string) objectstore.Location {
	return objectstore.Location{Bucket: f.dir.Bucket, Key: f.dir.Key + key}
}

// put makes an object and fails the test where that does.
func (f fixture) put(t *testing.T, key string, data []byte) objectstore.Object {
	t.Helper()
	o, err := f.putCond(t, key, data, objectstore.Cond{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (f fixture) putCond(t *testing.T, key string, data []byte, cond objectstore.Cond) (objectstore.Object, error) {
	t.Helper()
	return f.Put(t.Context(), f.at(key), bytes.NewReader(data), int64(len(data)), objectstore.PutOptions{Cond: cond})
}

func (f fixture) stat(t *testing.T, key string) objectstore.Object {
	t.Helper()
	o, err := f.Stat(t.Context(), f.at(key))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// missing fails the test unless nothing is at key.
func (f fixture) missing(t *testing.T, key string) {
	t.Helper()
	_, err := f.Stat(t.Context(), f.at(key))
	wantErr(t, "Stat "+key, err, objectstore.ErrNotExist)
}

// read returns the whole of what is at key now.
func (f fixture) read(t *testing.T, key string) []byte {
	t.Helper()
	o := f.stat(t, key)
	b, err := readRange(t.Context(), f, o, 0, o.Size)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// want fails the test unless the object at key is of these bytes.
func (f fixture) want(t *testing.T, key string, data []byte) {
	t.Helper()
	if got := f.read(t, key); !bytes.Equal(got, data) {
		t.Errorf("%s holds %d bytes %.20q, want %d bytes %.20q", key, len(got), got, len(data), data)
	}
}

func readRange(ctx context.Context, s objectstore.Store, o objectstore.Object, off, n int64) (b []byte, err error) {
	_, body, err := s.Read(ctx, o, off, n)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	return io.ReadAll(body)
}

// closing closes what a test has open, at its end.
func closing(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: error %v, want %v", what, got, want)
	}
}

// data returns n bytes that tell their place and their version.
func data(n int, version byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8) ^ byte(i>>16) ^ version
	}
	return b
}
