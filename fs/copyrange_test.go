package fs_test

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// rangeCopy is a program that copies $1 to $2 in pieces of $3 bytes, as the kernel
// takes them, and then does $4 with the file d.
const rangeCopy = `import os, sys
s = os.open(sys.argv[1], os.O_RDONLY)
d = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT | os.O_TRUNC)
total = 0
while n := os.copy_file_range(s, d, int(sys.argv[3])):
    total += n
assert total == os.fstat(s).st_size, total
exec(sys.argv[4])
os.close(d)
`

func pythonCopy(piece int, then string) string {
	return fmt.Sprintf("python3 -c '%s' $D/src $D/dst %d '%s'", rangeCopy, piece, then)
}

func TestCopyRange(t *testing.T) {
	t.Parallel()
	src := numbered('s', 3<<20+77)
	sparse := "head" + strings.Repeat("\x00", 2<<20) + "tail"
	files := map[string]string{"src": src, "other": numbered('o', 300<<10), "sparse": sparse, "empty": "", "old": "the older bytes"}
	patched := "PATCH" + src[5:]
	l := mounttest.Mount(t, mounttest.Options{Tables: twoTables(files), Timeout: 3 * time.Minute})
	l.MustSh(`mkdir ` + "db/text/dt=2026-01-02")
	for _, tt := range []struct{ name, script, want string }{
		{"cp", `cp $D/src $D/dst`, src},
		{"cp --reflink", `cp --reflink=auto $D/src $D/dst`, src},
		{"cp --sparse", `cp --sparse=always $D/sparse $D/dst`, sparse},
		{"cp of holes", `cp $D/sparse $D/dst`, sparse},
		{"cp of nothing", `cp $D/empty $D/dst`, ""},
		{"cp over a file", `echo longer >$D/dst; cp $D/old $D/dst; cp $D/src $D/dst`, src},
		{"cp -p", `cp -p $D/src $D/dst`, src},
		{"cat", `cat $D/src >$D/dst`, src},
		{"two in one", `{ cat $D/old; cat $D/src; } >$D/dst`, files["old"] + src},
		{"one and text", `{ cat $D/src; echo more; } >$D/dst`, src + "more\n"},
		{"text and one", `{ echo more; cat $D/src; } >$D/dst`, "more\n" + src},
		{"appended", `cp $D/src $D/dst; cat $D/old >>$D/dst`, src + files["old"]},
		{"a kept descriptor", `exec 3>$D/dst; cat $D/src >&3; cat $D/old >&3; exec 3>&-`, src + files["old"]},
		{"pieces", pythonCopy(100_000, "0"), src},
		{"blocks", pythonCopy(128<<10, "0"), src},
		{"patched", pythonCopy(1<<20, `os.pwrite(d, b"PATCH", 0)`), patched},
		{"patched and read", pythonCopy(1<<20, `os.pwrite(d, b"PATCH", 0); assert os.pread(d, 9, 3) == b"CH" + os.pread(s, 7, 5)`), patched},
		{"extended", pythonCopy(1<<20, `os.write(d, b"more")`), src + "more"},
		{"cut", pythonCopy(1<<20, `os.ftruncate(d, 1000001)`), src[:1000001]},
		{"cut and grown", pythonCopy(1<<20, `os.ftruncate(d, 5); os.ftruncate(d, 9)`), src[:5] + "\x00\x00\x00\x00"},
		{"begun anew", pythonCopy(1<<20, `os.ftruncate(d, 0); os.copy_file_range(s, d, 10, 0, 0)`), src[:10]},
		{"from the middle", pythonCopy(1<<20, `os.copy_file_range(s, d, 10, 1000, 3)`), src[:3] + src[1000:1010] + src[13:]},
		{"synced", pythonCopy(1<<20, `os.fsync(d); os.pwrite(d, b"PATCH", 0)`), patched},
		{"within the file", pythonCopy(1<<20, `os.copy_file_range(d, d, 10, 1000, 3)`), src[:3] + src[1000:1010] + src[13:]},
		{"to another partition", `cp $D/src db/text/dt=2026-01-02/; cp db/text/dt=2026-01-02/src $D/dst`, src},
	} {
		l.MustSh("set -e; D=" + csvDir + "; " + tt.script)
		if got, there := inStore(t, l, csvDir+"/dst"); !there || got != tt.want {
			t.Errorf("%s: %s is there: %v; want %s", tt.name, brief(got), there, brief(tt.want))
		}
		wantContent(t, l, csvDir+"/dst", tt.want)
		if err := unlink(l, csvDir+"/dst"); err != nil {
			t.Fatal(err)
		}
	}
	wantContent(t, l, csvDir+"/src", src)
	wantContent(t, l, "db/text/dt=2026-01-02/src", src)
	if names := staged(t, l, csvDir); len(names) != 0 {
		t.Errorf("staged: %q", names)
	}
}

// TestCopyRangeIsChecked holds that the check of a partition's format sees the bytes.
func TestCopyRangeIsChecked(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"a.csv": "a,b\n1,2\n", "p": mounttest.Parquet(t, 100)})
	if r := l.Sh(`cp ` + csvDir + `/a.csv ` + parquetDir + `/a.parquet`); r.Code == 0 || !strings.Contains(r.Err, "Bad message") {
		t.Errorf("cp of a CSV file to Parquet ones: %+v", r)
	}
	if _, there := inStore(t, l, parquetDir+"/a.parquet"); there {
		t.Error("it is published")
	}
	l.MustSh(`cp ` + csvDir + `/p ` + parquetDir + `/p.parquet`)
	wantStore(t, l, parquetDir+"/p.parquet", mounttest.Parquet(t, 100))
}

// TestCopyRangeAppending: the kernel takes no O_APPEND descriptor for a copy.
func TestCopyRangeAppending(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"src": "source", "dst": "older"})
	l.MustSh(`cd ` + csvDir + ` && python3 -c '
import os, errno
s = os.open("src", os.O_RDONLY)
d = os.open("dst", os.O_WRONLY | os.O_APPEND)
try:
    os.copy_file_range(s, d, 6)
    raise SystemExit("copied")
except OSError as e:
    assert e.errno == errno.EBADF, e
os.write(d, b"+")
'`)
	wantStore(t, l, csvDir+"/dst", "older+")
}

// TestCopyRangeOfASourceThatIsReplaced: the copy has the older bytes, or the program
// is told; what is published is never of both.
func TestCopyRangeOfASourceThatIsReplaced(t *testing.T) {
	t.Parallel()
	older, newer := numbered('o', 1<<20), numbered('n', 1<<20)
	l := mountTwo(t, map[string]string{"src": older, "dst": "before"})
	l.MustSh(`mkfifo ` + l.State + `/go`)
	done := make(chan mounttest.Result, 1)
	go func() {
		done <- l.Sh(`cd ` + csvDir + ` && python3 -c '
import os
s = os.open("src", os.O_RDONLY)
d = os.open("dst", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
assert os.copy_file_range(s, d, 500000) == 500000
open("` + l.State + `/half", "w").close()
open("` + l.State + `/go").read()
while os.copy_file_range(s, d, 500000): pass
os.close(d)
'`)
	}()
	l.Eventually("half is copied", time.Minute, func() bool {
		_, err := os.Stat(l.State + "/half")
		return err == nil
	})
	l.PutStored(csvDir+"/src", newer)
	l.MustSh(`echo >` + l.State + `/go`)
	r := <-done
	got, _ := inStore(t, l, csvDir+"/dst")
	switch {
	case r.Code == 0 && got == older:
	case r.Code != 0 && strings.Contains(r.Err, "Stale file handle") && (got == "before" || strings.HasPrefix(older, got)):
	default:
		t.Errorf("%+v; published: %s", r, brief(got))
	}
}

// TestCopyRangeSyncedNeedsNoSource: what fsync made durable, of a file that is not
// to be published yet, is there when the source is gone.
func TestCopyRangeSyncedNeedsNoSource(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"src": numbered('s', 1<<20)}, "--write=delete")
	then := `os.fsync(d); old = os.pread(s, 1<<20, 0); os.unlink(sys.argv[1]); assert os.pread(d, 1<<20, 0) == old; print(len(old))`
	r := l.Sh(`D=` + csvDir + `; ` + strings.ReplaceAll(pythonCopy(300_000, then), "$D/dst", parquetDir+"/dst"))
	if r.Out != "1048576\n" || !strings.Contains(r.Err, "Bad message") {
		t.Errorf("%+v", r)
	}
	r = l.Sh(`cmp ` + csvDir + `/src ` + wantStaged(t, l, parquetDir, "dst"))
	if !strings.Contains(r.Err, "No such file") {
		t.Errorf("the source is there: %+v", r)
	}
}

// TestS3CopyRangeReadsNothing counts what a cp asks of the store: the open of the
// source asks for its first bytes, nobody for the others.
func TestS3CopyRangeReadsNothing(t *testing.T) {
	t.Parallel()
	src := numbered('s', 24<<20)
	l := faultyTwo(t, map[string]string{"src": src})
	warm(t, l)
	l.MustSh(`cp ` + csvDir + `/src ` + csvDir + `/dst`)
	wantCopied(t, l, "cp", map[string]int{"CopyObject": 1})
	l.MustSh(`D=` + csvDir + `; ` + pythonCopy(1<<20, `os.pwrite(d, b"PATCH", 20 << 20)`))
	wantCopied(t, l, "cp and a patch", map[string]int{
		"CreateMultipartUpload": 1, "UploadPartCopy": 1, "UploadPart": 1, "CompleteMultipartUpload": 1,
	})
	wantStore(t, l, csvDir+"/dst", src[:20<<20]+"PATCH"+src[20<<20+5:])
}

// wantCopied asserts which requests changed the store, and that less than a third of
// 24 MiB was read.
func wantCopied(t *testing.T, l *mounttest.Lake, what string, want map[string]int) {
	t.Helper()
	changed, read := map[string]int{}, 0
	for _, q := range l.Proxy.Log() {
		switch q.Op {
		case "HeadObject", "ListObjectsV2":
		case "GetObject":
			var from, to int
			if _, err := fmt.Sscanf(q.Range, "bytes=%d-%d", &from, &to); err != nil {
				t.Errorf("%s: a GET of %q", what, q.Range)
			}
			read += to - from + 1
		default:
			if q.Status < 300 { // another is how a mount finds out that conditions count
				changed[q.Op]++
			}
		}
	}
	if !maps.Equal(changed, want) || read >= 8<<20 {
		t.Errorf("%s: %v, want %v; %d bytes read\n%s", what, changed, want, read, asked(l))
	}
	l.Proxy.Reset()
}
