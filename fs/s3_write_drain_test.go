package fs_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Unmounts and signals while a large file is on its way to a slow store.

const (
	bigSize  = 200 << 20
	writeBig = `dd if=/dev/zero of=big.csv bs=1M count=200 status=none; echo "dd $?" >&2`
)

// onePut is the flag by which a file below a GiB is published by one PUT.
const onePut = "--part-size=512MiB"

// sending is a way in which big.csv goes to the store.
type sending struct{ name, flag, begins, publishes string }

func sendings() []sending {
	return []sending{
		{"one PUT", onePut, "PutObject", "PutObject"},
		{"parts", "--part-size=0", "UploadPart", "CompleteMultipartUpload"},
	}
}

// bySendings runs a test for each way.
func bySendings(t *testing.T, test func(t *testing.T, by sending)) {
	t.Helper()
	for _, by := range sendings() {
		t.Run(by.name, func(t *testing.T) {
			t.Parallel()
			test(t, by)
		})
	}
}

// slowTwo mounts twoTables on a store that takes some seconds for 200 MiB.
func slowTwo(t *testing.T, by sending) *mounttest.Lake {
	t.Helper()
	l := faultyTwo(t, nil, "--io-timeout=20s", by.flag)
	warm(t, l)
	l.Proxy.SetLatency(faulty.Latency{BytesPerSecond: 60 << 20})
	return l
}

// TestCase19TermInTheMiddleOfAnUploadOnS3: drained, exit 0, and the writer's
// close succeeds.
func TestCase19TermInTheMiddleOfAnUploadOnS3(t *testing.T) {
	bySendings(t, case19TermInTheMiddleOfAnUploadOnS3)
}

func case19TermInTheMiddleOfAnUploadOnS3(t *testing.T, by sending) {
	t.Helper()
	l := slowTwo(t, by)
	begun := l.Proxy.Add(onFile(l, by.begins, "big.csv", passing{}))
	p := begin(t, l, `: >$READY; `+writeBig+`; cd /`)
	begun.Wait(t, 1)
	l.Signal(syscall.SIGTERM)
	l.WaitLog("unmounting")
	if code := l.Wait(); code != 0 {
		t.Errorf("the daemon ended with %d, want 0", code)
	}
	if _, out := p.wait(t); out != "dd 0\n" {
		t.Errorf("the writer says %q, want a success", out)
	}
	if !wantWholeOrAbsent(t, l, csvDir+"/big.csv", bigSize) {
		t.Error("what the writer was told to be written is not published")
	}
	l.Start()
	wantClean(t, l, csvDir, "big.csv")
	wantBucket(t, l, "big.csv")
}

// passing does nothing to a request, which is counted all the same.
type passing struct{ faulty.Fault }

func (passing) Apply(_ *faulty.Exchange, next faulty.Next) (*http.Response, error) { return next() }

// TestCase19UnmountInTheMiddleOfAnUploadOnS3: the command names who is
// there, who goes on undisturbed.
func TestCase19UnmountInTheMiddleOfAnUploadOnS3(t *testing.T) {
	bySendings(t, case19UnmountInTheMiddleOfAnUploadOnS3)
}

func case19UnmountInTheMiddleOfAnUploadOnS3(t *testing.T, by sending) {
	t.Helper()
	l := slowTwo(t, by)
	begun := l.Proxy.Add(onFile(l, by.begins, "big.csv", passing{}))
	p := begin(t, l, `: >$READY; `+writeBig+`; until [ -e $READY.go ]; do sleep .02; done; cd /`)
	begun.Wait(t, 1)
	r := l.Run("unmount", l.Root)
	if r.Code != 1 || !strings.Contains(r.Err, "bash (pid "+fmt.Sprint(p.cmd.Process.Pid)+")") || !l.Mounted() {
		t.Errorf("unmount: exit code %d, %q, mounted %v; want 1 and the process", r.Code, r.Err, l.Mounted())
	}
	wantWholeOrAbsent(t, l, csvDir+"/big.csv", bigSize)
	writeFile(t, strings.TrimPrefix(p.cmd.Env[len(p.cmd.Env)-1], "READY=")+".go", "")
	if _, out := p.wait(t); out != "dd 0\n" {
		t.Errorf("the writer says %q, want a success", out)
	}
	if r := l.Run("unmount", l.Root); r.Code != 0 || l.Mounted() {
		t.Errorf("unmount: exit code %d, %q, mounted %v", r.Code, r.Err, l.Mounted())
	}
	if code := l.Wait(); code != 0 {
		t.Errorf("the daemon ended with %d, want 0", code)
	}
	if !wantWholeOrAbsent(t, l, csvDir+"/big.csv", bigSize) {
		t.Error("what was written is not published")
	}
	wantBucket(t, l, "big.csv")
}

// TestCase19TermWhileTheStoreHangsOnS3: the exit code is not zero, what is
// unpublished is named, and the next mount publishes it.
func TestCase19TermWhileTheStoreHangsOnS3(t *testing.T) {
	bySendings(t, func(t *testing.T, by sending) {
		t.Helper()
		for what, answered := range map[string]bool{"before it took effect": false, "after it took effect": true} {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				l := faultyTwo(t, nil, "--io-timeout=60s", by.flag)
				warm(t, l)
				held := l.Proxy.Add(onFile(l, by.publishes, "big.csv", faulty.Hang{Answer: answered}))
				p := begin(t, l, `: >$READY; `+writeBig+`; cd /`)
				held.Wait(t, 1)
				if answered {
					l.Eventually("it took effect", 0, func() bool { return slices.Contains(l.StoredNames(csvDir), "big.csv") })
				}
				terminate(l, 2)
				began := time.Now()
				if code := l.Wait(); code != 1 {
					t.Errorf("the daemon ended with %d, want 1", code)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("after the second signal it took %v", took)
				}
				if !strings.Contains(l.Log(), "big.csv") {
					t.Error("the log does not name what is unpublished")
				}
				if _, out := p.wait(t); strings.HasSuffix(out, "dd 0\n") {
					t.Errorf("the writer says %q, want a failure", out)
				}
				wantWholeOrAbsent(t, l, csvDir+"/big.csv", bigSize)
				l.Proxy.Clear()
				l.Start()
				l.Eventually("recovered", 0, func() bool { return len(spools(t, l)) == 0 })
				if !wantWholeOrAbsent(t, l, csvDir+"/big.csv", bigSize) {
					t.Error("a publish that had begun is not finished by the next mount")
				}
				wantClean(t, l, csvDir, "big.csv")
				wantBucket(t, l, "big.csv")
			})
		}
	})
}
