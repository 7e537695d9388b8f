package fs_test

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Cases of writing, by their numbers in cases.md, with files that go to the bucket
// in parts.

const (
	ofParts  = "--part-size=5MiB" // the least that S3 takes
	partSize = 5 << 20
)

// fourParts is a file of four parts, no two of which are alike.
var fourParts = sync.OnceValue(func() string {
	raw := make([]byte, 4*partSize)
	_, _ = rand.NewChaCha8([32]byte{16}).Read(raw) // never fails
	return string(raw)
})

// largeIn writes content, or fourParts if it is "", to a file that scripts read.
func largeIn(t *testing.T, content string) (path string) {
	t.Helper()
	path = t.TempDir() + "/large"
	if content == "" {
		content = fourParts()
	}
	writeFile(t, path, content)
	return path
}

// taken counts the requests of an operation on files of a name that the store
// answered with 200.
func taken(l *mounttest.Lake, op, name string) (n int) {
	for _, q := range l.Proxy.Log() {
		if q.Op == op && strings.HasSuffix(q.Key, "/"+name) && q.Status == http.StatusOK {
			n++
		}
	}
	return n
}

// wantByParts asserts that a name in csvDir was published by one multipart upload,
// and never by a PUT.
func wantByParts(t *testing.T, l *mounttest.Lake, name string) {
	t.Helper()
	puts := 0
	for _, q := range l.Proxy.Log() {
		if q.Op == "PutObject" && q.Key == l.Key(csvDir+"/"+name) {
			puts++
		}
	}
	if n := taken(l, "CompleteMultipartUpload", name); n != 1 || puts > 0 {
		t.Errorf("%s was completed %d times and put %d times, want one upload\n%s", name, n, puts, asked(l))
	}
}

// partsUp waits until the store has n parts of a file.
func partsUp(l *mounttest.Lake, name string, n int) {
	l.Eventually("parts are up", 0, func() bool { return taken(l, "UploadPart", name) >= n })
}

// uploadsOf are the keys of the uploads in the lake's bucket.
func uploadsOf(t *testing.T, l *mounttest.Lake) []string {
	t.Helper()
	server, bucket := l.Bucket()
	return server.Uploads(t, bucket)
}

// wantNoUpload asserts that the bucket has these names in csvDir alone, and
// soon no upload; what is staged may stay.
func wantNoUpload(t *testing.T, l *mounttest.Lake, names ...string) {
	t.Helper()
	l.Eventually("no upload is left", tidiedWithin, func() bool { return len(uploadsOf(t, l)) == 0 })
	wantBucket(t, l, names...)
}

// TestCase16NoUploadTakesEffectOnS3: whichever request of an upload answers 500.
func TestCase16NoUploadTakesEffectOnS3(t *testing.T) {
	scripts := map[string]string{"cp": `cp $L cp`, "fsync": `dd if=$L of=fsync bs=64K conv=fsync status=none`, "shell": `exec 3>shell; cat $L >&3; exec 3>&-`}
	for op, names := range map[string][]string{
		"CreateMultipartUpload": {"cp"}, "UploadPart": {"cp"}, "CompleteMultipartUpload": {"cp", "fsync", "shell"},
	} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			l := partsTwo(t, nil, "--io-timeout=1s")
			met := l.Proxy.Add(onFile(l, op, "", answers(500, "InternalError")))
			file, sizes := largeIn(t, ""), map[string]int64{}
			for _, name := range names {
				r := l.Sh(`L=` + file + `; cd ` + csvDir + `; ` + scripts[name])
				told := name != "shell" // its own redirection cannot fail
				if told != (r.Code != 0) || told && !strings.Contains(r.Err, "Input/output error") {
					t.Errorf("%s: exit code %d, %q; want EIO", scripts[name], r.Code, r.Err)
				}
				wantAbsent(t, l, csvDir+"/"+name)
				calls := 1
				if name == "fsync" {
					calls = 2 // the close tries once more
				}
				wantFailuresLogged(t, l, name, calls, l.Key(csvDir+"/"+name), "500", requestID)
				sizes[name] = int64(len(fourParts()))
			}
			if met.Hits() == 0 {
				t.Errorf("no %s: this test shows nothing\n%s", op, asked(l))
			}
			wantShown(t, l, sizes)
			wantNoUpload(t, l)
			l.Proxy.Clear()
			l.Remount()
			wantNames(t, l, csvDir) // what failed is not published by itself
			wantShown(t, l, sizes)
			l.Proxy.Reset()
			if r := l.Run("recover", "--publish=all", l.Root); r.Code != 0 {
				t.Errorf("recover: exit code %d, %s%s", r.Code, r.Out, r.Err)
			}
			for _, name := range names {
				wantStore(t, l, csvDir+"/"+name, fourParts())
				wantByParts(t, l, name)
			}
			wantClean(t, l, csvDir, names...)
			wantNoUpload(t, l, names...)
		})
	}
}

// TestCase17UploadAnswers200WithAnErrorOnS3: once, which is tried again, and
// always. A part that is copied in the store is one of an append.
func TestCase17UploadAnswers200WithAnErrorOnS3(t *testing.T) {
	for op, c := range map[string]struct {
		script, before, after string
	}{
		"CreateMultipartUpload":   {`cp $L $N`, "", fourParts()},
		"CompleteMultipartUpload": {`cp $L $N`, "", fourParts()},
		"UploadPartCopy":          {`printf more | dd of=$N oflag=append conv=notrunc status=none`, fourParts(), fourParts() + "more"},
	} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			if c.before != "" {
				files = map[string]string{"once": c.before, "always": c.before}
			}
			l := partsTwo(t, files, "--io-timeout=1s")
			script := `L=` + largeIn(t, "") + `; cd ` + csvDir + `; ` + c.script
			rule := onFile(l, op, "", faulty.OK200Error{S3Code: "InternalError", Message: "We encountered an internal error."})
			rule.Times = 1
			once := l.Proxy.Add(rule)
			l.MustSh(`N=once; ` + script)
			if once.Hits() != 1 {
				t.Errorf("the fault was met %d times, want once\n%s", once.Hits(), asked(l))
			}
			wantStore(t, l, csvDir+"/once", c.after)
			rule.Times = 0
			l.Proxy.Add(rule)
			r := l.Sh(`N=always; ` + script)
			if r.Code == 0 || !strings.Contains(r.Err, "Input/output error") {
				t.Errorf("%s: exit code %d, %q; want EIO", c.script, r.Code, r.Err)
			}
			l.Proxy.Clear()
			for range 2 {
				names := []string{"once"}
				if c.before == "" {
					wantAbsent(t, l, csvDir+"/always")
				} else {
					names = append(names, "always")
					wantStore(t, l, csvDir+"/always", c.before)
				}
				wantKeptBytes(t, l, csvDir, "always", c.after)
				wantNoUpload(t, l, names...)
				l.Remount()
			}
		})
	}
}

// TestCase18OverwriteByPartsRefusedOnS3: whichever request is refused, the old
// bytes stay, in every cache too.
func TestCase18OverwriteByPartsRefusedOnS3(t *testing.T) {
	old := strings.Repeat("the old content\n", 700_000) // of three parts
	patched := old[:6<<20] + "PATCH" + old[6<<20+5:]
	scripts := map[string]string{
		"cut": `cp $L cut`, "app": `dd if=$L of=app bs=1M oflag=append conv=notrunc status=none`,
		"part": `printf PATCH | dd of=part bs=1M seek=6 conv=notrunc status=none`,
	}
	kept := map[string]string{"cut": fourParts(), "app": old + fourParts(), "part": patched}
	for op, names := range map[string][]string{
		"CreateMultipartUpload": {"cut"}, "UploadPart": {"part"}, "CompleteMultipartUpload": {"cut", "app", "part"},
	} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			l := partsTwo(t, map[string]string{"cut": old, "app": old, "part": old})
			file := largeIn(t, "")
			wantContent(t, l, csvDir+"/cut", old)
			met := l.Proxy.Add(onFile(l, op, "", answers(403, "AccessDenied")))
			for _, name := range names {
				r := l.Sh(`L=` + file + `; cd ` + csvDir + `; ` + scripts[name])
				if r.Code == 0 || !strings.Contains(r.Err, "Permission denied") {
					t.Errorf("%s: exit code %d, %q; want EACCES", scripts[name], r.Code, r.Err)
				}
				wantFailuresLogged(t, l, name, 1, l.Key(csvDir+"/"+name), "403", requestID)
			}
			if met.Hits() == 0 {
				t.Errorf("no %s: this test shows nothing\n%s", op, asked(l))
			}
			for range 2 {
				for _, name := range []string{"cut", "app", "part"} {
					wantContent(t, l, csvDir+"/"+name, old)
					wantStore(t, l, csvDir+"/"+name, old)
				}
				wantNoUpload(t, l, "cut", "app", "part")
				all := stagedStatus(t, l)
				if len(all) != len(names) {
					t.Errorf("kept are %+v, want %q", all, names)
				}
				for _, w := range all {
					wantContent(t, l, w.shown(), kept[strings.TrimPrefix(w.Path, csvDir+"/")])
				}
				l.Proxy.Clear()
				l.Remount()
			}
		})
	}
}

// TestCase18CopiesRefusedAreSentOnS3: who may not have the store copy publishes all
// the same.
func TestCase18CopiesRefusedAreSentOnS3(t *testing.T) {
	t.Parallel()
	l := partsTwo(t, map[string]string{"f": fourParts()})
	met := l.Proxy.Add(onFile(l, "UploadPartCopy", "f", answers(403, "AccessDenied")))
	l.MustSh(`printf more | dd of=` + csvDir + `/f oflag=append conv=notrunc status=none`)
	if met.Hits() == 0 {
		t.Errorf("nothing was to be copied\n%s", asked(l))
	}
	wantStore(t, l, csvDir+"/f", fourParts()+"more")
	wantByParts(t, l, "f")
	wantClean(t, l, csvDir, "f")
	wantNoUpload(t, l, "f")
}
