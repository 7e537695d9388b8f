package fs_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
)

// Publishes and renames that the store refuses.

// TestCase16EveryPublishAnswers500OnS3: the writer is told, where it can be, and
// nobody sees a file.
func TestCase16EveryPublishAnswers500OnS3(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, nil, "--io-timeout=1s")
	for _, op := range []string{"PutObject", "CompleteMultipartUpload"} {
		l.Proxy.Add(onFile(l, op, "", answers(500, "InternalError")))
	}
	dir := t.TempDir()
	l.MustSh(`head -c 1M /dev/urandom >` + dir + `/small; head -c 20M /dev/urandom >` + dir + `/large`)
	for name, c := range map[string]struct {
		script string
		told   int // how many calls fail; 0: one that the program does not look at
	}{
		"cp1":   {`cp ` + dir + `/small cp1`, 1},
		"cp20":  {`cp ` + dir + `/large cp20`, 1},
		"fsync": {`dd if=` + dir + `/small of=fsync bs=64K conv=fsync status=none`, 2}, // the close tries once more
		"echo":  {`echo x >echo`, 0},
	} {
		r := l.Sh(`cd ` + csvDir + `; ` + c.script)
		if c.told > 0 && (r.Code == 0 || !strings.Contains(r.Err, "Input/output error")) {
			t.Errorf("%s: exit code %d, %q; want EIO", c.script, r.Code, r.Err)
		}
		wantAbsent(t, l, csvDir+"/"+name)
		l.Eventually("the failure is logged: "+name, seenWithin, func() bool { return len(failures(l, name)) >= max(c.told, 1) })
		lines := failures(l, name)
		if len(lines) != max(c.told, 1) {
			t.Errorf("%s is logged %d times, want a line for each call: %q", name, len(lines), lines)
		}
		for _, part := range []string{l.Key(csvDir + "/" + name), "500", requestID} {
			if !strings.Contains(lines[0], part) {
				t.Errorf("the log line lacks %q: %s", part, lines[0])
			}
		}
	}
	shown := map[string]int64{}
	for _, w := range stagedStatus(t, l) {
		shown[w.Path] = w.Size
	}
	want := map[string]int64{csvDir + "/cp1": 1 << 20, csvDir + "/cp20": 20 << 20, csvDir + "/fsync": 1 << 20, csvDir + "/echo": 2}
	if fmt.Sprint(shown) != fmt.Sprint(want) {
		t.Errorf("status shows as unpublished %v, want %v", shown, want)
	}
	wantBucket(t, l)
	l.Proxy.Clear()
	l.Remount()
	for name := range want {
		wantAbsent(t, l, name) // what failed is not published by itself
	}
}

// TestCase17CopyAnswers200WithAnErrorOnS3: once, which is tried again, and always.
func TestCase17CopyAnswers200WithAnErrorOnS3(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, map[string]string{"once": "once\n", "always": "always\n", "over": "over\n"})
	rule := onFile(l, "CopyObject", "", faulty.OK200Error{S3Code: "InternalError", Message: "We encountered an internal error."})
	rule.Times = 1
	once := l.Proxy.Add(rule)
	wantErrno(t, "rename, refused once", rename(l, csvDir+"/once", csvDir+"/moved"), 0)
	if once.Hits() != 1 {
		t.Errorf("the fault was met %d times, want once", once.Hits())
	}
	wantStore(t, l, csvDir+"/moved", "once\n")
	wantBucket(t, l, "moved", "always", "over")
	rule.Times = 0
	l.Proxy.Add(rule)
	for _, target := range []string{"new", "over"} {
		r := l.Sh(`cd ` + csvDir + `; mv always ` + target)
		if r.Code == 0 || !strings.Contains(r.Err, "Input/output error") {
			t.Errorf("mv always %s: exit code %d, %q; want EIO", target, r.Code, r.Err)
		}
		wantStore(t, l, csvDir+"/always", "always\n")
	}
	wantAbsent(t, l, csvDir+"/new")
	wantStore(t, l, csvDir+"/over", "over\n")
	wantBucket(t, l, "moved", "always", "over")
	if ids := spools(t, l); len(ids) > 0 {
		t.Errorf("notes of renames are left: %q", ids)
	}
	l.Proxy.Clear()
	l.Remount() // finishes nothing that had not begun
	wantBucket(t, l, "moved", "always", "over")
	wantErrno(t, "rename, on a store that is well", rename(l, csvDir+"/always", csvDir+"/over"), 0)
	wantStore(t, l, csvDir+"/over", "always\n")
}

// TestCase18OverwriteRefusedOnS3: the old bytes stay, in every cache too.
func TestCase18OverwriteRefusedOnS3(t *testing.T) {
	t.Parallel()
	const old = "the old content\n"
	l := faultyTwo(t, map[string]string{"cut": old, "part": old, "app": old})
	wantContent(t, l, csvDir+"/cut", old)
	l.Proxy.Add(onFile(l, "PutObject", "", answers(403, "AccessDenied")))
	for name, flags := range map[string]int{"cut": trunc, "part": syscall.O_WRONLY, "app": syscall.O_WRONLY | syscall.O_APPEND} {
		err := writeErr(l, csvDir+"/"+name, flags, "refused", nil)
		wantErrno(t, "close of "+name, err, syscall.EACCES)
		wantContent(t, l, csvDir+"/"+name, old)
		if size := stat(t, l, csvDir+"/"+name).Size; size != int64(len(old)) {
			t.Errorf("%s has %d bytes, want %d", name, size, len(old))
		}
	}
	kept := map[string]string{}
	for _, w := range stagedStatus(t, l) {
		kept[w.Path], _ = l.ReadFile(w.shown())
	}
	want := map[string]string{csvDir + "/cut": "refused", csvDir + "/part": "refused" + old[len("refused"):], csvDir + "/app": old + "refused"}
	if fmt.Sprint(kept) != fmt.Sprint(want) {
		t.Errorf("kept is %q, want %q", kept, want)
	}
	for _, line := range failures(l, "cut") {
		if !strings.Contains(line, "403") || !strings.Contains(line, requestID) {
			t.Errorf("the log line lacks status or request id: %s", line)
		}
	}
	l.Proxy.Clear()
	l.Remount()
	for _, name := range []string{"cut", "part", "app"} {
		wantContent(t, l, csvDir+"/"+name, old)
		wantStore(t, l, csvDir+"/"+name, old)
	}
	wantBucket(t, l, "cut", "part", "app")
}
