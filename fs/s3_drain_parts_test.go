package fs_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// The end of a mount while parts of large files go up.

// slowParts mounts twoTables on a store whose connections carry 2 MiB a second.
func slowParts(t *testing.T) *mounttest.Lake {
	t.Helper()
	l := partsTwo(t, nil, "--io-timeout=20s")
	l.Proxy.SetLatency(faulty.Latency{BytesPerSecond: 2 << 20})
	return l
}

// closing begins a writer whose close is under way when parts meet rule.
func closing(t *testing.T, l *mounttest.Lake, rule faulty.Rule) *pausedWriter {
	t.Helper()
	met := l.Proxy.Add(rule)
	w := pauseUnsent(t, l, "big.csv", creat, numbered('d', bigFile))
	writeFile(t, w.onward, "")
	met.Wait(t, 1)
	l.Eventually("the close is under way", seenWithin, func() bool {
		return slices.ContainsFunc(stagedStatus(t, l), func(w stagedWrite) bool { return w.Size == bigFile })
	})
	return w
}

// TestCase19TermWhilePartsGoUpSlowly: they go on, the close succeeds, exit 0.
func TestCase19TermWhilePartsGoUpSlowly(t *testing.T) {
	t.Parallel()
	l := slowParts(t)
	w := closing(t, l, onFile(l, "UploadPart", "big.csv", passing{}))
	l.Signal(syscall.SIGTERM)
	w.ends(t)
	l.WaitLog("unmounting")
	if code := l.Wait(); code != 0 {
		t.Errorf("the daemon ended with %d, want 0\n%s", code, l.Log())
	}
	l.Start()
	wantStore(t, l, csvDir+"/big.csv", numbered('d', bigFile))
	wantNothingLeft(t, l, "big.csv")
}

// TestCase19SecondSignalWhilePartsHang ends the mount at once, names the file, and the
// next one finishes what had begun or keeps it, and frees the upload in the end.
func TestCase19SecondSignalWhilePartsHang(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"UploadPart", "CompleteMultipartUpload"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			l := partsTwo(t, nil, "--io-timeout=60s")
			w := closing(t, l, onFile(l, op, "big.csv", faulty.Hang{}))
			terminate(l, 2)
			if code := l.Wait(); code != 1 {
				t.Errorf("the daemon ended with %d, want 1", code)
			}
			if log := l.Log(); !strings.Contains(log, `not published: "`+csvDir+`/big.csv"`) || !strings.Contains(log, "lakefs-mount recover") {
				t.Errorf("what it says does not name the file and the remedy: %s", log)
			}
			if _, out := w.wait(t); !strings.HasPrefix(out, "close ") {
				t.Errorf("the writer was told %q, want a close that fails", out)
			}
			if _, there := inStore(t, l, csvDir+"/big.csv"); there {
				t.Error("it is in the store, though no upload was completed")
			}
			l.Proxy.Clear()
			l.Start()
			content := numbered('d', bigFile)
			if kept := stagedStatus(t, l); len(kept) > 0 {
				wantContent(t, l, wantStaged(t, l, csvDir, "big.csv"), content)
				wantPublishedLater(t, l, "big.csv", content)
				return
			}
			wantStore(t, l, csvDir+"/big.csv", content)
			wantNothingLeft(t, l, "big.csv")
		})
	}
}
