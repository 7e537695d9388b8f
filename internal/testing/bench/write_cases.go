package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

const (
	manySize = 64 << 10 // of each of the many files
	appended = 1 << 20
	tinyStep = 4 << 10
)

// writeCase is one thing that a user does, beside what is compared with it.
type writeCase struct {
	name   string
	base   contender
	ours   []contender
	goal   float64 // of the ratio; 0: none
	atMost bool    // the ratio is our time over the other's, and the goal its most
}

// contender does a case's work one way.
type contender struct {
	name    string
	daemon  *system                         // that serves the files; nil: none
	fixed   float64                         // seconds that are given, and not measured; 0: none
	before  func(ctx context.Context) error // not measured
	seconds func(ctx context.Context) (float64, error)
	timing  func(ctx context.Context) (timing, error) // in the place of seconds, of what tells its memory
}

func (r *writeRig) cases() []writeCase {
	all := []writeCase{
		r.largeCase(), r.manyCase(),
		r.tinyCase("4 KiB writes", false), r.tinyCase("4 KiB writes, open to close", true),
		r.copyCase(), r.appendCase(), r.togetherCase(),
	}
	return slices.DeleteFunc(all, func(c writeCase) bool { return !strings.Contains(c.name, r.o.only) })
}

// lakes are contenders for some of the mounts.
func (r *writeRig) lakes(mounts []*lakeMount, do func(ctx context.Context, m *lakeMount) (float64, error)) []contender {
	var all []contender
	for _, m := range mounts {
		all = append(all, contender{name: m.name, daemon: &m.system, seconds: func(ctx context.Context) (float64, error) { return do(ctx, m) }})
	}
	return all
}

func (r *writeRig) largeCase() writeCase {
	step := int64(1 << 20)
	return writeCase{
		name: "dd " + mib(r.o.large), goal: 0.9,
		base: contender{name: "SDK, 16 parts at once", before: r.emptied, seconds: func(ctx context.Context) (float64, error) {
			return r.child(ctx, "upload", r.proxy.URL, tableKey+"dt=1/"+r.name(), r.source)
		}},
		ours: r.lakes(r.mounts, func(ctx context.Context, m *lakeMount) (float64, error) {
			return r.timed(ctx, "dd", "if="+r.source, "of="+filepath.Join(m.root, "dt=1", r.name()),
				"bs="+strconv.FormatInt(step, 10), "count="+strconv.FormatInt(r.o.large/step, 10), "conv=fsync", "status=none")
		}),
	}
}

func (r *writeRig) manyCase() writeCase {
	each := r.o.firstByte.Seconds()
	return writeCase{
		name: fmt.Sprintf("cp -r %d x 64 KiB", r.o.files), goal: 1.25, atMost: true,
		base: contender{name: "files x " + r.o.firstByte.String(), fixed: float64(r.o.files) * each},
		ours: r.lakes(r.mounts[:1], func(ctx context.Context, m *lakeMount) (float64, error) {
			return r.timed(ctx, "cp", "-r", filepath.Join(r.work, "many"), filepath.Join(m.root, "dt=1", r.name()))
		}),
	}
}

func (r *writeRig) tinyCase(name string, whole bool) writeCase {
	do := func(ctx context.Context, dir string) (float64, error) {
		t, err := r.childTiming(ctx, "steps", filepath.Join(dir, r.name()), strconv.Itoa(tinyStep), strconv.Itoa(r.o.tiny))
		if !whole {
			t.Work -= t.Open + t.Close
		}
		return t.Work, err
	}
	c := writeCase{
		name: name, goal: 0.8,
		base: contender{name: loopback, daemon: r.loop, before: r.emptied, seconds: func(ctx context.Context) (float64, error) { return do(ctx, r.loop.root) }},
		ours: r.lakes(r.mounts, func(ctx context.Context, m *lakeMount) (float64, error) {
			return do(ctx, filepath.Join(m.root, "dt=1"))
		}),
	}
	if whole {
		c.goal = 0 // the loopback's close does not send anything
	}
	return c
}

func (r *writeRig) copyCase() writeCase {
	const from = tableKey + "dt=1/large"
	return writeCase{
		name: "cp " + mib(r.o.large) + " within the lake",
		base: contender{name: "SDK, CopyObject", before: r.seeded(from), seconds: func(ctx context.Context) (float64, error) {
			return r.child(ctx, "copy", r.proxy.URL, tableKey+"dt=2/"+r.name(), from)
		}},
		ours: r.lakes(r.mounts[:1], func(ctx context.Context, m *lakeMount) (float64, error) {
			return r.timed(ctx, "cp", filepath.Join(m.root, "dt=1", "large"), filepath.Join(m.root, "dt=2", r.name()))
		}),
	}
}

func (r *writeRig) appendCase() writeCase {
	const limit, ours = tableKey + "dt=1/append-sdk", tableKey + "dt=1/append"
	c := writeCase{
		name: "append 1 MiB to " + mib(r.o.large),
		base: contender{name: "SDK, UploadPartCopy", before: r.seeded(limit), seconds: func(ctx context.Context) (float64, error) {
			return r.child(ctx, "append", r.proxy.URL, limit, r.source)
		}},
		ours: r.lakes(r.mounts[:1], func(ctx context.Context, m *lakeMount) (float64, error) {
			return r.timed(ctx, "dd", "if="+r.source, "of="+filepath.Join(m.root, "dt=1", "append"),
				"bs=1M", "count=1", "oflag=append", "conv=notrunc", "status=none")
		}),
	}
	c.ours[0].before = r.seeded(ours)
	return c
}

// emptied removes what earlier turns wrote, behind the mounts' backs: their
// names do not come again.
func (r *writeRig) emptied(ctx context.Context) error {
	behind := filepath.Join(r.work, "behind")
	if err := os.RemoveAll(filepath.Join(behind, "w"+strconv.Itoa(r.turn))); err != nil {
		return err
	}
	pages := s3.NewListObjectsV2Paginator(r.server.Client(), &s3.ListObjectsV2Input{Bucket: aws.String(benchBucket), Prefix: aws.String(tableKey)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		var gone types.Delete
		for _, o := range page.Contents {
			if strings.HasPrefix(strings.SplitN(strings.TrimPrefix(*o.Key, tableKey), "/", 2)[1], "w") {
				gone.Objects = append(gone.Objects, types.ObjectIdentifier{Key: o.Key})
			}
		}
		if len(gone.Objects) == 0 {
			continue
		}
		if _, err := r.server.Client().DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: aws.String(benchBucket), Delete: &gone}); err != nil {
			return err
		}
	}
	return nil
}

// seeded uploads the large file to a key where it is not there, past the proxy.
func (r *writeRig) seeded(key string) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := r.emptied(ctx); err != nil {
			return err
		}
		if _, err := r.server.Client().HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String(benchBucket), Key: &key}); err == nil {
			return nil
		}
		_, err := r.child(ctx, "upload", r.server.Endpoint, key, r.source)
		return err
	}
}

// mib is a size as the table shows it.
func mib(n int64) string {
	if n >= 1<<30 && n%(1<<30) == 0 {
		return strconv.FormatInt(n>>30, 10) + " GiB"
	}
	return strconv.FormatInt(n>>20, 10) + " MiB"
}
