package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What becomes of a file whose parts go up while it is written, when the store, other
// programs or its own writer do not do what they should.

// Sizes of the files of these tests, in parts of 5 MiB: what is written before the
// test does something, and in all.
const (
	headSize = 12 << 20
	bigFile  = 20 << 20
)

// partsTwo mounts twoTables behind a proxy, with small parts.
func partsTwo(t *testing.T, files map[string]string, flags ...string) *mounttest.Lake {
	t.Helper()
	l := faultyTwo(t, files, append([]string{"--part-size=5MiB"}, flags...)...)
	warm(t, l)
	return l
}

// pausedWriter writes the head of a content into a file of csvDir, waits, writes the
// rest and closes.
type pausedWriter struct {
	*program

	l      *mounttest.Lake
	name   string
	onward string // the file that lets it go on
}

const pausedScript = `
import errno, os, sys, time
name, source, head, flags, ready = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), os.environ["READY"]
content = open(source, "rb").read()
def rest(fd, b):
    while b:
        b = b[os.write(fd, b[:1 << 20]):]
def told(what, call, *args):
    try:
        call(*args)
    except OSError as e:
        print(what, errno.errorcode[e.errno], flush=True)
fd = os.open(name, flags, 0o644)
rest(fd, content[:head])
open(ready, "w").close()
while not os.path.exists(ready + ".go"):
    time.sleep(0.02)
told("write", rest, fd, content[head:])
told("close", os.close, fd)
print("end")
`

// pause begins a paused writer, and waits until parts of the file are in the store.
func pause(t *testing.T, l *mounttest.Lake, name string, flags int, content string) *pausedWriter {
	t.Helper()
	w := pauseUnsent(t, l, name, flags, content)
	l.Eventually("parts of "+name+" are in the store", seenWithin, func() bool { return uploadedOf(t, l, name) >= 5<<20 })
	return w
}

func pauseUnsent(t *testing.T, l *mounttest.Lake, name string, flags int, content string) *pausedWriter {
	t.Helper()
	dir := t.TempDir()
	source, script := filepath.Join(dir, "source"), filepath.Join(dir, "writer.py")
	writeFile(t, source, content)
	writeFile(t, script, pausedScript)
	p := begin(t, l, fmt.Sprintf("exec %s %s %s %s %d %d", python(t), script, name, source, min(headSize, len(content)), flags))
	ready := strings.TrimPrefix(p.cmd.Env[len(p.cmd.Env)-1], "READY=")
	return &pausedWriter{program: p, l: l, name: name, onward: ready + ".go"}
}

// uploadedOf is what status.json says that the store has of a file, in bytes.
func uploadedOf(t *testing.T, l *mounttest.Lake, name string) int64 {
	t.Helper()
	for _, w := range stagedStatus(t, l) {
		if w.Path == csvDir+"/"+name {
			return w.Uploaded
		}
	}
	return 0
}

// ends lets the writer go on, and asserts what it was told: "" is success, else a
// line for each call that failed.
func (w *pausedWriter) ends(t *testing.T, told ...string) {
	t.Helper()
	writeFile(t, w.onward, "")
	want := strings.Join(append(told, "end"), "\n") + "\n"
	if code, out := w.wait(t); code != 0 || out != want {
		t.Errorf("the writer of %s ends with %d and was told %q, want %q", w.name, code, out, want)
	}
}

// wantKeptWhole asserts that a file is kept, with this content, and named once in the
// log, with its key.
func wantKeptWhole(t *testing.T, l *mounttest.Lake, name, content string) {
	t.Helper()
	wantContent(t, l, wantStaged(t, l, csvDir, name), content)
	wantLogged(t, l, csvDir+"/"+name)
	if !strings.Contains(strings.Join(failures(l, name), ""), l.Key(csvDir+"/"+name)) {
		t.Errorf("the log does not name the key: %q", failures(l, name))
	}
}

// wantPublishedLater has recover publish what is kept of a file, the only one.
func wantPublishedLater(t *testing.T, l *mounttest.Lake, name, content string) {
	t.Helper()
	if r := l.Run("recover", "--publish=all", l.Root); r.Code != 0 {
		t.Errorf("recover --publish: exit code %d: %s", r.Code, r.Err)
	}
	wantStore(t, l, csvDir+"/"+name, content)
	wantNothingLeft(t, l, name)
}

// wantNothingLeft asserts that the partition has these names, and that no write and
// no upload is left.
func wantNothingLeft(t *testing.T, l *mounttest.Lake, names ...string) {
	t.Helper()
	server, bucket := l.Bucket()
	l.Eventually("no upload is left", tidiedWithin, func() bool { return len(server.Uploads(t, bucket)) == 0 })
	wantSettled(t, l)
	wantBucket(t, l, names...)
}

// TestS3PartsAreRefused: by each request of an upload; the close tells, the bytes are
// kept, and go up as they are when the store is well again.
func TestS3PartsAreRefused(t *testing.T) {
	t.Parallel()
	const invalid = "InvalidPart"
	skewed := faulty.Status{Code: 403, S3Code: "RequestTimeTooSkewed", Message: "The difference between the request time and the current time is too large."}
	ops := []string{"CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"}
	for what, c := range map[string]struct {
		ops   []string
		fault faulty.Fault
		want  string
		log   string // a part of the line
	}{
		"denied":         {ops, answers(403, "AccessDenied"), "EACCES", "AccessDenied"},
		"internal error": {ops, answers(500, "InternalError"), "EIO", "InternalError"},
		"slow down":      {ops, answers(503, "SlowDown"), "EIO", "SlowDown"},
		"a page":         {ops, faulty.Status{Code: 502, HTML: true}, "EIO", "502"},
		"lost before":    {ops, faulty.LoseAnswerBefore{}, "EIO", ""},
		"reset":          {ops, faulty.Refuse{}, "EIO", ""},
		"no answer":      {ops[1:2], faulty.LoseAnswer{}, "EIO", ""},
		"200 and error":  {ops[2:], faulty.OK200Error{S3Code: "InternalError"}, "EIO", "InternalError"},
		"invalid part":   {ops[2:], answers(400, invalid), "EIO", ""},
		"quota":          {ops, answers(403, "QuotaExceeded"), "ENOSPC", ""},
		"clock":          {ops, skewed, "EACCES", "RequestTimeTooSkewed"},
	} {
		for _, op := range c.ops {
			t.Run(what+" "+op, func(t *testing.T) {
				t.Parallel()
				l := partsTwo(t, nil, "--io-timeout=1s")
				met := l.Proxy.Add(onFile(l, op, "", c.fault))
				content := numbered('r', bigFile)
				pauseUnsent(t, l, "f", creat, content).ends(t, "close "+c.want)
				if met.Hits() == 0 {
					t.Error("no request met the fault")
				}
				wantAbsent(t, l, csvDir+"/f")
				wantKeptWhole(t, l, "f", content)
				if log := strings.Join(failures(l, "f"), ""); !strings.Contains(log, c.log) {
					t.Errorf("the log lacks %q: %s", c.log, log)
				}
				l.Proxy.Clear()
				wantPublishedLater(t, l, "f", content)
			})
		}
	}
}

// TestS3PartsMeetFailuresOfAMoment: they are nobody's error.
func TestS3PartsMeetFailuresOfAMoment(t *testing.T) {
	t.Parallel()
	for what, fault := range map[string]faulty.Fault{
		"internal error": answers(500, "InternalError"), "lost before": faulty.LoseAnswerBefore{}, "lost": faulty.LoseAnswer{}, "reset": faulty.Refuse{},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := partsTwo(t, nil, "--io-timeout=20s")
			for _, op := range []string{"UploadPart", "CompleteMultipartUpload"} {
				rule := onFile(l, op, "", fault)
				rule.Times = 2
				l.Proxy.Add(rule)
			}
			content := numbered('m', bigFile)
			pauseUnsent(t, l, "f", creat, content).ends(t)
			wantStore(t, l, csvDir+"/f", content)
			wantNothingLeft(t, l, "f")
			if lines := failures(l, "f"); len(lines) > 0 {
				t.Errorf("errors were logged: %q", lines)
			}
		})
	}
}

// TestS3StoreGoesDownWhilePartsGoUp: for a moment, and for good.
func TestS3StoreGoesDownWhilePartsGoUp(t *testing.T) {
	t.Parallel()
	content := numbered('d', bigFile)
	t.Run("for good", func(t *testing.T) {
		t.Parallel()
		l := partsTwo(t, nil, "--io-timeout=2s")
		w := pause(t, l, "f", creat, content)
		l.Proxy.Down()
		w.ends(t, "close EIO")
		wantKeptWhole(t, l, "f", content)
		l.Proxy.Up()
		wantAbsent(t, l, csvDir+"/f")
		wantPublishedLater(t, l, "f", content)
	})
	t.Run("for a moment", func(t *testing.T) {
		t.Parallel()
		l := partsTwo(t, nil, "--io-timeout=20s")
		w := pause(t, l, "f", creat, content)
		l.Proxy.Down()
		time.AfterFunc(2*time.Second, l.Proxy.Up)
		w.ends(t)
		wantStore(t, l, csvDir+"/f", content)
		wantNothingLeft(t, l, "f")
	})
}

// TestS3UploadIsAbortedByAnother program, or by a lifecycle rule: the close publishes
// all the same, from the spool.
func TestS3UploadIsAbortedByAnother(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string]int{"new": creat, "old": trunc} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := partsTwo(t, map[string]string{"old": "old\n"})
			content := numbered('a', bigFile)
			w := pause(t, l, name, flags, content)
			if n := abortAll(t, l); n != 1 {
				t.Errorf("there were %d uploads, want 1", n)
			}
			w.ends(t)
			wantStore(t, l, csvDir+"/"+name, content)
			names := map[string][]string{"new": {"new", "old"}, "old": {"old"}}[name]
			wantNothingLeft(t, l, names...)
		})
	}
}

// abortAll aborts every upload of the lake's bucket, as another program does.
func abortAll(t *testing.T, l *mounttest.Lake) (n int) {
	t.Helper()
	server, bucket := l.Bucket()
	out, err := server.Client().ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: aws.String(bucket)})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range out.Uploads {
		_, err := server.Client().AbortMultipartUpload(t.Context(), &s3.AbortMultipartUploadInput{
			Bucket: aws.String(bucket), Key: u.Key, UploadId: u.UploadId,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return len(out.Uploads)
}

// TestS3TargetChangesWhilePartsGoUp: what another program does to the name is never
// undone; the bytes are kept.
func TestS3TargetChangesWhilePartsGoUp(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		name   string
		flags  int
		change func(l *mounttest.Lake)
		want   string
		left   map[string]string
	}{
		"made": {
			"new", creat, func(l *mounttest.Lake) { l.PutStored(csvDir+"/new", "another's\n") }, "EEXIST",
			map[string]string{"new": "another's\n", "old": "old\n"},
		},
		"replaced": {
			"old", trunc, func(l *mounttest.Lake) { l.PutStored(csvDir+"/old", "another's\n") }, "ESTALE",
			map[string]string{"old": "another's\n"},
		},
		"removed": {
			"old", trunc, func(l *mounttest.Lake) { l.RemoveStored(csvDir + "/old") }, "ESTALE",
			map[string]string{},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := partsTwo(t, map[string]string{"old": "old\n"})
			content := numbered('t', bigFile)
			w := pause(t, l, c.name, c.flags, content)
			c.change(l)
			w.ends(t, "close "+c.want)
			wantContent(t, l, wantStaged(t, l, csvDir, c.name), content)
			if r := l.Run("recover", l.Root); !strings.Contains(r.Out, csvDir+"/"+c.name) {
				t.Errorf("recover lists %q", r.Out)
			}
			if r := l.Run("recover", "--abort=all", l.Root); r.Code != 0 {
				t.Errorf("recover --abort: exit code %d: %s", r.Code, r.Err)
			}
			var names []string
			for name, content := range c.left {
				names = append(names, name)
				if got, _ := inStore(t, l, csvDir+"/"+name); got != content {
					t.Errorf("the store has %s of %s, want %q", brief(got), name, content)
				}
			}
			wantNothingLeft(t, l, names...)
		})
	}
}

// TestS3UnlinkedWhilePartsGoUp: nothing is published, the upload is aborted and the
// spool is free, once the writer has closed.
func TestS3UnlinkedWhilePartsGoUp(t *testing.T) {
	t.Parallel()
	l := partsTwo(t, nil)
	w := pause(t, l, "f", creat, numbered('u', bigFile))
	wantErrno(t, "unlink", unlink(l, csvDir+"/f"), 0)
	wantNames(t, l, csvDir)
	w.ends(t)
	wantAbsent(t, l, csvDir+"/f")
	wantNothingLeft(t, l)
	if n := l.Proxy.Count("CompleteMultipartUpload"); n > 0 {
		t.Errorf("an upload was completed %d times", n)
	}
}

// TestS3TwoWritersOfOneLargeName: of one mount and of two; one is published whole, the
// other is told, and kept.
func TestS3TwoWritersOfOneLargeName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags int
		want  string
	}{"new": {syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC, "EEXIST"}, "old": {trunc, "ESTALE"}} {
		t.Run(name+", two mounts", func(t *testing.T) {
			t.Parallel()
			l := partsTwo(t, map[string]string{"old": "old\n"})
			twoLarge(t, l, l.Second("--part-size=5MiB"), name, c.flags, c.want)
		})
	}
	t.Run("old, one mount", func(t *testing.T) {
		t.Parallel()
		l := partsTwo(t, map[string]string{"old": "old\n"})
		twoLarge(t, l, l, "old", trunc, "ESTALE")
	})
}

func twoLarge(t *testing.T, l, m *mounttest.Lake, name string, flags int, want string) {
	t.Helper()
	mine, theirs := numbered('1', bigFile), numbered('2', bigFile)
	first, second := pause(t, l, name, flags, mine), pause(t, m, name, flags, theirs)
	first.ends(t)
	second.ends(t, "close "+want)
	wantStore(t, l, csvDir+"/"+name, mine)
	wantContent(t, m, wantStaged(t, m, csvDir, name), theirs)
	if r := m.Run("recover", "--abort=all", m.Root); r.Code != 0 {
		t.Errorf("recover --abort: exit code %d: %s", r.Code, r.Err)
	}
	names := []string{"old"}
	if name != "old" {
		names = append(names, name)
	}
	wantNothingLeft(t, l, names...)
}

// TestS3MoreThanTenThousandParts: EFBIG at the call that goes beyond; a truncate
// leaves the file as it was, a write poisons it.
func TestS3MoreThanTenThousandParts(t *testing.T) {
	t.Parallel()
	const end = 10_000 * 5 << 20
	l := partsTwo(t, nil)
	for what, c := range map[string]struct {
		call        func(fd int) error
		close, want syscall.Errno
	}{
		"write":    {func(fd int) error { _, err := syscall.Pwrite(fd, []byte("x"), end); return err }, syscall.EFBIG, syscall.EFBIG},
		"truncate": {func(fd int) error { return syscall.Ftruncate(fd, end+1) }, 0, syscall.EFBIG},
		"allocate": {func(fd int) error { return syscall.Fallocate(fd, 0, end, 1) }, 0, syscall.EFBIG},
	} {
		var called, closed error
		err := l.Do(what, func() error {
			return mounttest.NoFork(func() error {
				fd, err := syscall.Open(l.Path(csvDir+"/"+what), creat|syscall.O_CLOEXEC, 0o644)
				if err != nil {
					return err
				}
				_, err = syscall.Write(fd, []byte("small\n"))
				called, closed = c.call(fd), syscall.Close(fd)
				return err
			})
		})
		wantErrno(t, what+": open and write", err, 0)
		wantErrno(t, what, called, c.want)
		wantErrno(t, what+": close", closed, c.close)
		if c.close == 0 {
			wantStore(t, l, csvDir+"/"+what, "small\n")
		} else {
			wantAbsent(t, l, csvDir+"/"+what)
		}
	}
	wantBucket(t, l, "allocate", "truncate")
}

// TestS3StagingDiskFillsWhilePartsGoUp: ENOSPC, nothing is published, the upload is
// gone and so is what the file took.
func TestS3StagingDiskFillsWhilePartsGoUp(t *testing.T) {
	t.Parallel()
	l := mountOnDisk(t, "size=16m", mounttest.Options{
		Faulty: true, Tables: twoTables(map[string]string{"old": "old\n"}), Timeout: 3 * time.Minute,
		Flags: []string{"--io-timeout=3s", "--write=delete", "--part-size=5MiB"},
	})
	warm(t, l)
	for name, flags := range map[string]int{"new": creat, "old": trunc} {
		w := pause(t, l, name, flags, numbered('f', bigFile))
		w.ends(t, "write ENOSPC", "close ENOSPC")
		wantSettled(t, l)
		if used := spaceUsed(t, l); used > 1 {
			t.Errorf("%d MiB are used when %s has failed, want none", used, name)
		}
	}
	wantAbsent(t, l, csvDir+"/new")
	wantStore(t, l, csvDir+"/old", "old\n")
	wantNothingLeft(t, l, "old")
	small := numbered('s', headSize)
	write(t, l, csvDir+"/new", small)
	wantStore(t, l, csvDir+"/new", small)
	wantNothingLeft(t, l, "new", "old")
}

// TestS3StagingIsReadOnlyWhilePartsGoUp: the close says so, and what is on the disk is
// kept.
func TestS3StagingIsReadOnlyWhilePartsGoUp(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	l := partsTwo(t, nil)
	content := numbered('o', bigFile)
	w := pause(t, l, "f", creat, content)
	back := readOnly(t, l)
	w.ends(t, "close EIO")
	wantAbsent(t, l, csvDir+"/f")
	wantLogged(t, l, csvDir+"/f")
	back()
	wantContent(t, l, wantStaged(t, l, csvDir, "f"), content)
	l.Kill() // what is on the disk counts
	l.Start()
	wantContent(t, l, wantStaged(t, l, csvDir, "f"), content)
	wantPublishedLater(t, l, "f", content)
}
