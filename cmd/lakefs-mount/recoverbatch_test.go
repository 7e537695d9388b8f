package main

import (
	"path"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/staging"
)

// plantBatch leaves what a kill leaves of files that were about to be published
// together, beside the torn file of a lake that is not mounted.
func plantBatch(t *testing.T, lake *mounttest.Lake, names ...string) string {
	t.Helper()
	return plantOverwrite(t, lake, nil, names...)
}

// plantOverwrite is plantBatch over versions that are to go first.
func plantOverwrite(t *testing.T, lake *mounttest.Lake, old []staging.Cleared, names ...string) string {
	t.Helper()
	area, err := staging.Open(lake.Staged(), staging.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer area.Close() //nolint:errcheck // a test's
	beside := area.Files()[0].Record()
	var members []staging.BatchMember
	for _, name := range names {
		var f *staging.File
		to := staging.Place{
			Target: objectstore.Location{Bucket: beside.Target.Bucket, Key: path.Dir(beside.Target.Key) + "/" + name},
			Prefix: beside.Prefix, Path: path.Dir(beside.Path) + "/" + name, Cond: objectstore.Cond{IfNoneMatch: true},
		}
		from := to
		from.Target.Key, from.Path, from.Hold = path.Dir(to.Target.Key)+"/_temporary/"+name, path.Dir(to.Path)+"/_temporary/"+name, staging.Local
		f, err = area.Create(t.Context(), staging.NewWrite{
			Target: from.Target, Prefix: from.Prefix, Path: from.Path, Cond: from.Cond, Hold: from.Hold,
			Attributes: staging.Attributes{Mode: 0o644},
		})
		if err == nil {
			_, err = f.WriteAt(t.Context(), []byte(name), 0)
		}
		if err == nil {
			err = f.Sync(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, staging.BatchMember{ID: f.ID(), From: from, To: to, Data: true, Size: int64(len(name))})
	}
	b, err := area.NewBatch(staging.BatchPlan{Members: members, Clear: old})
	if err == nil {
		err = b.Begin()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Record().ID
}

// TestRecoverOfABatch: it is shown with the number of its files, published or taken
// back as asked, and finished by the next mount.
func TestRecoverOfABatch(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	torn(t, lake)
	lake.Unmount()
	run := func(flags ...string) mounttest.Result {
		return lake.Run(append(append([]string{"recover", "--state-dir=" + lake.State}, flags...), lake.Source, lake.Root)...)
	}
	dir := "sales/notes/dt=2026-01-01/"
	id := plantBatch(t, lake, "one.csv", "two.csv")
	if r := run(); r.Code != 0 || !strings.Contains(r.Out, id) || !strings.Contains(r.Out, "moving") || !strings.Contains(r.Out, `dt=2026-01-01" (2 files)`) {
		t.Errorf("recover: %d, %s%s", r.Code, r.Out, r.Err)
	}
	if r := run("--save=" + t.TempDir()); r.Code != 0 || strings.Contains(r.Out, id) {
		t.Errorf("recover --save: %d, %s%s", r.Code, r.Out, r.Err)
	}
	if r := run("--abort=" + id[:8]); r.Code != 0 || !strings.Contains(r.Out, "taken back 2 files together") {
		t.Errorf("recover --abort: %d, %s%s", r.Code, r.Out, r.Err)
	}
	if r := run(); r.Code != 0 || strings.Contains(r.Out, id) || !strings.Contains(r.Out, "Local: 2 files") {
		t.Errorf("recover after --abort: %d, %s%s", r.Code, r.Out, r.Err)
	}
	id = plantBatch(t, lake, "three.csv", "four.csv")
	if r := run("--publish=" + id); r.Code != 0 || !strings.Contains(r.Out, "published 2 files together") {
		t.Errorf("recover --publish: %d, %s%s", r.Code, r.Out, r.Err)
	}
	plantBatch(t, lake, "five.csv", "six.csv")
	lake.Start()
	for name, want := range map[string]string{"one": "", "three": "three.csv", "four": "four.csv", "five": "five.csv", "six": "six.csv"} {
		if got, _ := lake.ReadFile(dir + name + ".csv"); got != want {
			t.Errorf("%s.csv has %q, want %q", name, got, want)
		}
	}
	if r := lake.Run("recover", lake.Root); r.Code != 0 || strings.Contains(r.Out, "moving") || strings.Contains(r.Out, "six") {
		t.Errorf("recover of the mount: %d, %s%s", r.Code, r.Out, r.Err)
	}
}

// TestRecoverOfAnOverwrite: one whose mount ended before it removed anything is shown
// with what it is to remove, and given up as asked.
func TestRecoverOfAnOverwrite(t *testing.T) {
	lake := mounttest.Mount(t, sales(t))
	torn(t, lake)
	lake.Unmount()
	run := func(flags ...string) mounttest.Result {
		return lake.Run(append(append([]string{"recover", "--state-dir=" + lake.State}, flags...), lake.Source, lake.Root)...)
	}
	old := []staging.Cleared{{Target: objectstore.Location{Bucket: "/nowhere", Key: "old"}, ETag: "x"}}
	id := plantOverwrite(t, lake, old, "one.csv", "two.csv")
	if r := run(); r.Code != 0 || !strings.Contains(r.Out, id) || !strings.Contains(r.Out, "clearing") || !strings.Contains(r.Out, `dt=2026-01-01" (2 files over 1)`) {
		t.Errorf("recover: %d, %s%s", r.Code, r.Out, r.Err)
	}
	if r := run("--abort=" + id); r.Code != 0 || !strings.Contains(r.Out, "given up 2 files over 1 together") {
		t.Errorf("recover --abort: %d, %s%s", r.Code, r.Out, r.Err)
	}
	if r := run(); r.Code != 0 || strings.Contains(r.Out, id) || !strings.Contains(r.Out, "Local: 2 files") {
		t.Errorf("recover after --abort: %d, %s%s", r.Code, r.Out, r.Err)
	}
}
