package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
)

// What is read. Any range of a file can be told from its seed and offset, so that
// whoever reads a piece compares it without the original at hand.
const (
	largeData = "large"
	tailData  = "tail.parquet" // as large, under a name of which a reader expects a footer
	wideData  = "wide.parquet" // a real one
	fourData  = "four"         // a directory of files of half the large size
	openData  = "open"         // a directory of files of a 64th
	smallData = "small"        // files of 64 KiB
	manyData  = "many"         // small names
	hugeData  = "huge"         // so many that all is slow

	sourceData = "source" // what is written, on this machine
	intoData   = "into"

	readers   = 4
	openFiles = 50
	hugeFiles = 100_000
	needle    = "lakefs-mount-needle" // at the end of each tenth small file

	written   = "in-" // names of what a run writes begin so
	intoFiles = 100   // of 64 KiB that are copied in
)

// seeds of the files: what they are known by.
const (
	largeSeed = 1
	fourSeed  = 10
	openSeed  = 100
	smallSeed = 1000
)

// pattern fills p with what lies at an offset of a file, which is a multiple of 8.
func pattern(p []byte, seed uint64, off int64) {
	x := seed<<40 + uint64(off)/8
	var word [8]byte
	for len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, mix(x))
		p, x = p[8:], x+1
	}
	binary.LittleEndian.PutUint64(word[:], mix(x))
	copy(p, word[:])
}

// mix is SplitMix64's.
func mix(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// same is an error unless p is what lies at an offset of a file.
func same(p []byte, seed uint64, off int64) error {
	want := make([]byte, len(p))
	pattern(want, seed, off)
	if string(want) != string(p) {
		return fmt.Errorf("%w at %d", errDiffers, off)
	}
	return nil
}

var errDiffers = errors.New("other bytes than were stored")

// patternReader reads a file of the pattern.
type patternReader struct {
	seed      uint64
	off, size int64
}

// Read reads multiples of 8, but at the end.
func (r *patternReader) Read(p []byte) (int, error) {
	if r.off == r.size {
		return 0, io.EOF
	}
	n := min(int64(len(p)), r.size-r.off)
	if n > 8 {
		n -= n % 8
	}
	pattern(p[:n], r.seed, r.off)
	r.off += n
	return int(n), nil
}

// writePattern makes a file of the pattern.
func writePattern(path string, seed uint64, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, &patternReader{seed: seed, size: size}, make([]byte, 1<<20))
	return errors.Join(err, f.Close())
}

// small is the content of a small file.
func small(i int) []byte {
	p := make([]byte, manySize)
	pattern(p, smallSeed+uint64(i), 0)
	if i%10 == 0 {
		copy(p[len(p)-len(needle):], needle)
	}
	return p
}

func smallName(i int) string { return fmt.Sprintf("part-%05d.csv", i) }

// need puts data into the store that is not there yet, past the proxy.
func (r *readRig) need(ctx context.Context, names []string) error {
	for _, name := range names {
		if r.made[name] {
			continue
		}
		say("storing %s", name)
		if err := r.put(ctx, name); err != nil {
			return fmt.Errorf("store %s: %w", name, err)
		}
		r.made[name] = true
	}
	return nil
}

func (r *readRig) put(ctx context.Context, name string) error {
	large := r.far.large
	switch name {
	case largeData, tailData:
		return r.putPattern(ctx, name, largeSeed, large)
	case wideData:
		return r.putWide(ctx)
	case fourData:
		for i := range readers {
			if err := r.putPattern(ctx, name+"/"+strconv.Itoa(i), fourSeed+uint64(i), large/2); err != nil {
				return err
			}
		}
		return nil
	case openData:
		for i := range openFiles {
			if err := r.putPattern(ctx, name+"/"+smallName(i), openSeed+uint64(i), large/64); err != nil {
				return err
			}
		}
		return nil
	case smallData:
		return r.putMany(ctx, name, smallFiles, small)
	case manyData:
		return r.putMany(ctx, name, manyFiles, func(int) []byte { return []byte("1\n") })
	case sourceData, intoData:
		return r.putLocal(name)
	case hugeData:
		r.proxy.Add(faulty.Rule{Key: tableKey + name + "/", Fault: &primed{answers: map[string]primedAnswer{}}})
		return r.putMany(ctx, name, hugeFiles, func(int) []byte { return []byte("1\n") })
	}
	return fmt.Errorf("no data %q", name)
}

func (r *readRig) putPattern(ctx context.Context, name string, seed uint64, size int64) error {
	path := filepath.Join(r.work, "upload")
	if err := writePattern(path, seed, size); err != nil {
		return err
	}
	return errors.Join(r.putFile(ctx, name, path), os.Remove(path))
}

func (r *readRig) putFile(ctx context.Context, name, path string) error {
	_, err := r.child(ctx, "upload", r.server.Endpoint, tableKey+name, path)
	return err
}

// putMany stores a directory, and lists it once: the server's first listing of a
// large one is slow.
func (r *readRig) putMany(ctx context.Context, dir string, n int, content func(i int) []byte) error {
	c := r.server.Client()
	group, ctx2 := errgroup.WithContext(ctx)
	group.SetLimit(limitFlight)
	for i := range n {
		group.Go(func() error { return putBytes(ctx2, c, tableKey+dir+"/"+smallName(i), content(i)) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	pages := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: aws.String(benchBucket), Prefix: aws.String(tableKey + dir + "/")})
	for pages.HasMorePages() {
		if _, err := pages.NextPage(ctx); err != nil {
			return err
		}
	}
	return nil
}
