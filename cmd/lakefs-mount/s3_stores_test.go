package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// oneOfEach is what programs do in a lake: each kind of request, with and without a body.
const oneOfEach = `set -e; cd ` + notes + `; cat a.csv >/dev/null; echo one >small; head -c 9M /dev/zero >big; echo two >>small; : >empty
	mkdir -p d/e; echo x >d/x; echo y >d/e/y; mv small moved; mv d f; cat moved; ls; rm -r f; rm big; ls`

// wantOneOfEach runs it, and looks at the mount and the store.
func wantOneOfEach(t *testing.T, lake *mounttest.Lake) {
	t.Helper()
	if got, want := lake.MustSh(oneOfEach), "one\ntwo\na.csv\nbig\nempty\nf\nmoved\na.csv\nempty\nmoved\n"; got != want {
		t.Errorf("the mount shows %q, want %q", got, want)
	}
	if got := wantStored(t, lake, notes+"/moved"); got != "one\ntwo\n" {
		t.Errorf("the store has %q", got)
	}
	server, bucket := lake.Bucket()
	var names []string
	for _, key := range server.Keys(t, bucket, lake.Key(notes)+"/") {
		names = append(names, strings.TrimPrefix(key, lake.Key(notes)+"/"))
	}
	if !slices.Equal(names, []string{"a.csv", "empty", "moved"}) {
		t.Errorf("the store has %q", names)
	}
	if uploads := server.Uploads(t, bucket); len(uploads) > 0 {
		t.Errorf("uploads are left: %q", uploads)
	}
	if log := lake.Log(); strings.Contains(log, "level=ERROR") {
		t.Errorf("errors were logged: %s", log)
	}
}

// TestCase64StoresOfOlderKindsOnS3: by default, or with a setting that is documented.
func TestCase64StoresOfOlderKindsOnS3(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rules []faulty.Fault
		flags []string
		env   []string
	}{
		{name: "refuses trailers", rules: []faulty.Fault{faulty.RejectTrailer{}}},
		{name: "wants Content-MD5", rules: []faulty.Fault{faulty.NeedMD5{}}},
		{name: "both, and ignores conditions", rules: []faulty.Fault{faulty.RejectTrailer{}, faulty.NeedMD5{}, faulty.StripConditions{}}},
		{name: "knows no checksums", rules: []faulty.Fault{faulty.RejectTrailer{}, faulty.RefuseChecksums{}}, flags: []string{"--checksum=none"}},
		{name: "is in another region", rules: []faulty.Fault{faulty.Redirect{Region: "us-east-1"}}, env: []string{"AWS_REGION=eu-west-1"}},
		{name: "tells its region in a body", env: []string{"AWS_REGION=eu-west-1", "AWS_DEFAULT_REGION="}}, // versitygw itself does
		{name: "tells of no encoding", rules: []faulty.Fault{faulty.DropEncoding{}}},
		{name: "refuses conditions", rules: []faulty.Fault{faulty.RefuseConditions{}}},
		{name: "refuses conditions and checksums", rules: []faulty.Fault{faulty.RefuseConditions{}, faulty.RefuseChecksums{}}, flags: []string{"--checksum=none"}},
		// What a few stores are known for, one with another. They are imitations.
		{name: "like MinIO", rules: []faulty.Fault{faulty.NeedMD5{}, faulty.ShortAnswers{}}},
		{
			name: "like an older Ceph", rules: []faulty.Fault{faulty.RejectTrailer{}, faulty.NeedMD5{}, faulty.StripConditions{}, faulty.PlainLists{}, faulty.DropEncoding{}},
		},
		{name: "like R2", rules: []faulty.Fault{&faulty.EqualParts{}, faulty.RejectTrailer{}, faulty.PlainLists{}}, flags: []string{"--part-size=5MiB"}},
		{name: "like B2", rules: []faulty.Fault{faulty.RefuseConditions{}, faulty.RejectTrailer{}, faulty.NeedMD5{}, faulty.ShortAnswers{}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			lake, proxy := bucketLakeOf(t, func(o *mounttest.Options) { o.Env = tt.env })
			for _, f := range tt.rules {
				proxy.Add(faulty.Rule{Fault: f})
			}
			lake.Start(append(tt.flags, "--write=delete")...)
			wantOneOfEach(t, lake)
		})
	}
}

// TestCase64EqualPartsOnS3: a store that wants them gets them with --part-size, of new
// files and of old ones that are changed here and there; another file than that is
// refused by it, and --part-size is named.
func TestCase64EqualPartsOnS3(t *testing.T) {
	lake, proxy := bucketLakeOf(t, func(*mounttest.Options) {})
	proxy.Add(faulty.Rule{Fault: &faulty.EqualParts{}})
	dir := t.TempDir()
	lake.MustSh(`head -c 23M /dev/urandom >` + dir + `/big; head -c 3M /dev/urandom >` + dir + `/more`)
	lake.Start("--part-size=5MiB", "--write=overwrite")
	change := `
		cat ` + dir + `/more >>FILE
		printf x | dd of=FILE bs=1 seek=12000000 conv=notrunc status=none
		truncate -s 17000000 FILE; cat ` + dir + `/more >>FILE; `
	lake.MustSh(`set -e; cp ` + dir + `/big ` + notes + `/big;` + strings.ReplaceAll(change, "FILE", notes+"/big") +
		`cp ` + dir + `/big ` + dir + `/want;` + strings.ReplaceAll(change, "FILE", dir+"/want"))
	if wantStored(t, lake, notes+"/big") != readAll(t, dir+"/want") {
		t.Error("what was changed differs")
	}
	if copied := proxy.Count("UploadPartCopy"); copied == 0 {
		t.Error("nothing was copied from the old versions")
	}
	lake.Remount("--write=overwrite")
	r := lake.Sh(`cp ` + dir + `/big ` + notes + `/second; printf x | dd of=` + notes + `/second bs=1 seek=12000000 conv=notrunc,fsync status=none`)
	if log := lake.Log(); r.Code == 0 || !strings.Contains(log, "--part-size") {
		t.Errorf("exit code %d, %q; the log does not name the setting: %s", r.Code, r.Err, log)
	}
}

// bucketLakeOf is bucketLake with other options.
func bucketLakeOf(t *testing.T, change func(*mounttest.Options)) (*mounttest.Lake, *faulty.Proxy) {
	t.Helper()
	proxy := faulty.New(t, s3test.Versity(t))
	o := sales(t)
	o.Server = proxy.Server()
	change(&o)
	return mounttest.New(t, o), proxy
}

// TestCase64RegionThatIsGivenOnS3: a wrong one is not corrected, and the right one
// is named.
func TestCase64RegionThatIsGivenOnS3(t *testing.T) {
	lake, proxy := bucketLake(t)
	proxy.Add(faulty.Rule{Fault: faulty.Redirect{Region: "us-east-1"}})
	if r := daemonOf(lake, "--region=eu-west-1", "--io-timeout=5s"); r.Code != exitFailed || !strings.Contains(r.Err, "us-east-1") || lake.Mounted() {
		t.Errorf("exit code %d, %q, mounted %v; want %d and the region", r.Code, r.Err, lake.Mounted(), exitFailed)
	}
}

// TestCase64BucketWithDotsOnS3: with and without --path-style.
func TestCase64BucketWithDotsOnS3(t *testing.T) {
	server := s3test.Versity(t)
	const bucket = "a.lake.with.dots"
	name := bucket
	if _, err := server.Client().CreateBucket(context.Background(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatal(err)
	}
	lake, _ := bucketLakeOf(t, func(o *mounttest.Options) { o.Bucket = bucket })
	for _, flag := range []string{"--path-style=true", "--path-style=false"} {
		lake.Start("--write=delete", flag)
		wantOneOfEach(t, lake)
		lake.Unmount()
		lake.RemoveStored(notes + "/moved")
		lake.RemoveStored(notes + "/empty")
	}
}
