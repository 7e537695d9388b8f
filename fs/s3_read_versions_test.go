package fs_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Which version a reader has, and that its bytes are all of it.

// wantFstat asserts what an open descriptor is told of its file's size.
func wantFstat(t *testing.T, l *mounttest.Lake, fd int, size int64) {
	t.Helper()
	var st syscall.Stat_t
	if err := l.Do("fstat", func() error { return syscall.Fstat(fd, &st) }); err != nil || st.Size != size {
		t.Errorf("fstat: %d bytes, %v; want %d", st.Size, err, size)
	}
}

func closeFD(t *testing.T, l *mounttest.Lake, fd int) {
	t.Helper()
	if err := l.Do("close", func() error { return syscall.Close(fd) }); err != nil {
		t.Error(err)
	}
}

// Case 27: 100 MiB read in part, replaced by 50 MiB.
func TestCase27ReplacedByAnotherSizeOnS3(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	one, two := numbered('a', 100*mib), numbered('b', 50*mib)
	l := mounttest.Mount(t, mounttest.Options{
		S3: true, Tables: []mounttest.Table{text("t", map[string]string{"f": one})}, Flags: shortTTL, Timeout: 3 * time.Minute,
	})
	fd := openAndReplace(t, l, one[:mib], two)
	for _, off := range []int64{99 * mib, 60 * mib, 49 * mib, 0, 2 * mib} {
		readsOrStale(t, l, fd, one, off)
	}
	wantFstat(t, l, fd, 100*mib)
	l.Eventually("a new open has the new version", seenWithin, func() bool {
		return l.Sh(`cmp db/t/f `+l.Window("db/t/f")).Code == 0
	})
	if st := stat(t, l, "db/t/f"); st.Size != 50*mib {
		t.Errorf("stat after the new open: %d bytes", st.Size)
	}
	readsOrStale(t, l, fd, one, 80*mib)
	wantFstat(t, l, fd, 100*mib)
	closeFD(t, l, fd)
}

// The same with a delete: the descriptor reads on what it has, or gets ESTALE.
func TestCase27DeletedWhileReadOnS3(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	one := numbered('a', 40*mib)
	l := mounttest.Mount(t, mounttest.Options{
		S3: true, Tables: []mounttest.Table{text("t", map[string]string{"f": one})}, Flags: shortTTL, Timeout: 2 * time.Minute,
	})
	fd := openAndReplace(t, l, one[:mib], "short")
	l.RemoveStored("db/t/f")
	l.Eventually("a new open finds nothing", seenWithin, func() bool { return os.IsNotExist(openErr(l, "db/t/f", syscall.O_RDONLY)) })
	for _, off := range []int64{39 * mib, 0, 20 * mib} {
		readsOrStale(t, l, fd, one, off)
	}
	wantFstat(t, l, fd, 40*mib)
	closeFD(t, l, fd)
	l.PutStored("db/t/f", "made again")
	l.Eventually("the name made again", seenWithin, func() bool { got, err := l.ReadFile("db/t/f"); return err == nil && got == "made again" })
}

// Size, time and bytes are of one version at each open, whatever the store is
// replaced by meanwhile.
func TestCase27SizeAndTimeAreOfTheVersionOnS3(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{
		S3: true, Tables: []mounttest.Table{text("t", map[string]string{"f": "v0\n"})}, Flags: shortTTL, Timeout: 2 * time.Minute,
	})
	version := func(n int) string { return strings.Repeat(fmt.Sprintf("v%d\n", n), 1+n*n*300) }
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n = (n + 1) % 10 {
			select {
			case <-stop:
				return
			default:
				l.PutStored("db/t/f", version(n))
			}
		}
	}()
	for range 200 {
		var got []byte
		var size int64
		err := l.Do("open, fstat, read", func() error {
			f, err := os.Open(l.Path("db/t/f"))
			if err != nil {
				return err
			}
			info, err := f.Stat()
			if err == nil {
				size = info.Size()
				got, err = io.ReadAll(f)
			}
			return errors.Join(err, f.Close())
		})
		if errors.Is(err, syscall.ESTALE) {
			continue // replaced between two reads of it
		}
		var n int
		_, bad := fmt.Sscanf(string(got), "v%d\n", &n)
		if err != nil || bad != nil || string(got) != version(n) || size != int64(len(got)) {
			t.Fatalf("an open of %d bytes reads %d: %s, %v", size, len(got), brief(string(got)), err)
		}
	}
	close(stop)
	<-done
}

// putGzip uploads content as tools do that say how it is encoded.
func putGzip(t *testing.T, l *mounttest.Lake, name string, stored []byte) {
	t.Helper()
	server, bucket := l.Bucket()
	key, encoding, typ := l.Key(name), "gzip", "text/csv"
	_, err := server.Client().PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: &bucket, Key: &key, Body: bytes.NewReader(stored), ContentEncoding: &encoding, ContentType: &typ,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func gzipped(t *testing.T, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, content)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Case 28: what is stored is what is read, and its size is that of what is stored.
func TestCase28GzipOnS3(t *testing.T) {
	t.Parallel()
	small, large := numbered('g', 10_000), numbered('g', 60<<20)
	l := mounttest.New(t, mounttest.Options{S3: true, Tables: []mounttest.Table{text("t", nil)}, Timeout: 2 * time.Minute})
	for name, content := range map[string]string{"small": small, "large": large} {
		stored := gzipped(t, content)
		putGzip(t, l, "db/t/"+name+".encoded", stored)
		l.PutStored("db/t/"+name+".gz", string(stored))
	}
	l.Start()
	for _, name := range []string{"small.encoded", "small.gz", "large.encoded", "large.gz"} {
		file, window := "db/t/"+name, l.Window("db/t/"+name)
		l.MustSh(fmt.Sprintf(`set -e; n=$(stat -c %%s %[1]s); test $n = $(stat -c %%s %[2]s); test $n = $(wc -c <%[1]s); cmp %[1]s %[2]s`, file, window))
		for _, part := range []string{`tail -c 1000 %s`, `dd if=%s bs=1k skip=5 count=3 status=none`, `head -c 3 %s`} {
			l.MustSh(fmt.Sprintf("cmp <(%s) <(%s)", fmt.Sprintf(part, file), fmt.Sprintf(part, window)))
		}
		want, _, _ := strings.Cut(name, ".")
		if got := l.MustSh(`zcat <` + file + ` | md5sum`); got != l.MustSh(fmt.Sprintf(`zcat <db/t/%s.gz | md5sum`, want)) {
			t.Errorf("%s unpacks to another sum", name)
		}
	}
	if got := l.MustSh(`zcat <db/t/small.encoded`); got != small {
		t.Errorf("small.encoded unpacks to %s", brief(got))
	}
}

// Case 30: sizes at the edges of all that reads are cut into, and no request for
// what is not there.
func TestCase30SizesAtTheEdgesOnS3(t *testing.T) {
	t.Parallel()
	const block, part, whole, window = 1 << 20, 4 << 20, 8 << 20, 32 << 20
	files := make(map[string]string)
	for _, size := range []int{
		0, 1, 4095, 4096, 4097, block - 1, block, block + 1, part - 1, part, part + 1, 2*part - 1, whole, whole + 1, 2*part + block,
		window - 1, window, window + 1,
	} {
		files[fmt.Sprint("n", size)] = numbered('n', size)
	}
	l := behindFaults(t, files)
	l.MustSh(`ls db/t`)
	for name, content := range files {
		l.Proxy.Reset()
		file, mirror := "db/t/"+name, l.Window("db/t/"+name)
		l.MustSh(fmt.Sprintf(`set -e; test $(stat -c %%s %[1]s) = %[3]d; cmp %[1]s %[2]s; cmp <(tail -c 5000 %[1]s) <(tail -c 5000 %[2]s)`, file, mirror, len(content)))
		for _, q := range l.Proxy.Log() {
			var first, last int
			if _, err := fmt.Sscanf(q.Range, "bytes=%d-%d", &first, &last); q.Range != "" && (err != nil || first > last || last >= len(content)) {
				t.Errorf("of %d bytes %s asks for %s", len(content), q.Op, q.Range)
			}
			if q.Status >= 400 {
				t.Errorf("%s of %d bytes, %s: status %d", q.Op, len(content), q.Range, q.Status)
			}
		}
	}
}

// Case 32: what a look-up did not find is asked for again after the negative TTL;
// what a listing did not have, after the listing's.
func TestCase32PolledNameIsSeenOnS3(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		list  string
		flags []string
	}{
		"a look-up": {"true", []string{"--metadata-ttl=5m", "--negative-ttl=1s"}},
		"a listing": {"ls -l db/t db/t/d", []string{"--metadata-ttl=2s", "--negative-ttl=1s"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mounttest.Mount(t, mounttest.Options{S3: true, Tables: []mounttest.Table{text("t", map[string]string{"f": "x", "d/f": "x"})}, Flags: c.flags})
			l.MustSh(c.list)
			for _, path := range []string{"db/t/late", "db/t/d/late", "db/t/new/a/b"} {
				wantErrno(t, "stat", statErr(l, path), syscall.ENOENT)
				l.PutStored(path, "late")
				l.Eventually(path, seenWithin, func() bool { return statErr(l, path) == nil })
				wantContent(t, l, path, "late")
			}
		})
	}
}

// A listing may be older than the store: an open finds the version that is there,
// and size, time and bytes are that version's.
func TestS3StaleListingIsFoundAtOpen(t *testing.T) {
	t.Parallel()
	l := behindFaults(t, map[string]string{"grown": "old", "shrunk": numbered('o', 100_000), "same": "old", "gone": "old"}, "--metadata-ttl=5s") // for which what an open found is believed
	l.Proxy.Add(faulty.Rule{Op: "ListObjectsV2", Fault: &faulty.StaleList{}})
	l.MustSh(`ls -l db/t`)
	now := map[string]string{"grown": numbered('n', 300_000), "shrunk": "new", "same": "new"}
	for name, content := range now {
		l.PutStored("db/t/"+name, content)
	}
	l.RemoveStored("db/t/gone")
	for name, content := range now {
		// The first open tells that the name's version is another one; from then on
		// it is known.
		for range 3 {
			r := l.Sh(fmt.Sprintf(`cat db/t/%[1]s && exec 3<db/t/%[1]s && stat -Lc %%s /dev/fd/3 >&2`, name))
			if r.Code != 0 || r.Out != content || strings.TrimSpace(r.Err) != fmt.Sprint(len(content)) {
				t.Errorf("%s, which the listing has as it was: exit %d, %s, %s", name, r.Code, brief(r.Out), r.Err)
			}
		}
		info, err := l.StoredInfo("db/t/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if st := stat(t, l, "db/t/"+name); st.Size != int64(len(content)) || st.Mtim.Sec != info.ModTime.Unix() {
			t.Errorf("stat of %s after it: %d bytes of %d, want %d of %d", name, st.Size, st.Mtim.Sec, len(content), info.ModTime.Unix())
		}
	}
	wantErrno(t, "open of what is listed and gone", openErr(l, "db/t/gone", syscall.O_RDONLY), syscall.ENOENT)
}
