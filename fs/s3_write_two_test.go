package fs_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Cases that are of writers, and not of the store, with a look into the bucket.

// TestCase24WhoSeesAnUnpublishedFileOnS3: this mount by its name, another and the
// bucket not.
func TestCase24WhoSeesAnUnpublishedFileOnS3(t *testing.T) {
	t.Parallel()
	l, m := twoMounts(t, nil)
	other := `{ cat ` + m.Path(csvDir+"/n") + ` 2>&1; ls ` + m.Path(csvDir) + `; }`
	out := l.MustSh(`cd ` + csvDir + `; exec 3>n; echo a >&3
		echo "this: $(cat n) $(stat -c %s n) [$(ls)] [$(ls -a | grep -c '^n')] $(set -C; { echo b >n; } 2>/dev/null || echo taken)"
		ls .lakefs/staged | sed 's/~.*//'
		echo "other: [$(` + other + ` | grep -o 'No such file')]"
		curl -s -o /dev/null -w 'bucket: %{http_code}\n' ` + l.Door() + `/` + csvDir + `/n
		exec 3>&-
		echo "after: [$(ls)] $(cat n)"; curl -s ` + l.Door() + `/` + csvDir + `/n`)
	want := "this: a 2 [] [0] taken\nn\nother: [No such file]\nbucket: 404\nafter: [n] a\na\n"
	if out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
	m.Eventually("the other mount sees it", seenWithin, func() bool { got, err := m.ReadFile(csvDir + "/n"); return err == nil && got == "a\n" })
	wantBucket(t, l, "n")
}

// TestCase25AnAppenderAndARewriterOfTwoMountsOnS3: the one goes behind, the other
// is told.
func TestCase25AnAppenderAndARewriterOfTwoMountsOnS3(t *testing.T) {
	t.Parallel()
	l, m := twoMounts(t, map[string]string{"f": "old\n"})
	const f = csvDir + "/f"
	err := writeErr(l, f, syscall.O_WRONLY|syscall.O_APPEND, "appended\n", func() {
		wantErrno(t, "close of the rewriter", writeErr(m, f, trunc, "rewritten\n", nil), 0)
	})
	wantErrno(t, "close of the appender", err, 0)
	wantStore(t, l, f, "rewritten\nappended\n")
	err = writeErr(l, f, trunc, "lost\n", func() {
		wantErrno(t, "close of the appender", writeErr(m, f, syscall.O_WRONLY|syscall.O_APPEND, "more\n", nil), 0)
	})
	wantErrno(t, "close of the rewriter", err, syscall.ESTALE)
	wantStore(t, m, f, "rewritten\nappended\nmore\n")
	wantKeptBytes(t, l, csvDir, "f", "lost\n")
	wantClean(t, m, csvDir, "f")
	wantBucket(t, l, "f")
}

// TestCase26KilledWriterOnS3: nothing is published of a file that its writer did
// not end, whatever its format; it is kept over a remount.
func TestCase26KilledWriterOnS3(t *testing.T) {
	t.Parallel()
	l := faultyTwo(t, nil)
	whole := mounttest.Parquet(t, 1000)
	file := t.TempDir() + "/whole.parquet"
	writeFile(t, file, whole)
	for dir, name := range map[string]string{csvDir: "torn.csv", parquetDir: "torn.parquet"} {
		l.Proxy.Reset()
		l.Sh(`cd ` + dir + `; bash -c 'exec 3>` + name + `; head -c 4000 ` + file + ` >&3; kill -TERM $$; sleep 60'`)
		l.Eventually(name+" is torn", 0, func() bool {
			for _, w := range stagedStatus(t, l) {
				if w.Path == dir+"/"+name && w.State == "torn" {
					return true
				}
			}
			return false
		})
		wantAbsent(t, l, dir+"/"+name)
		wantKeptBytes(t, l, dir, name, whole[:4000])
		for _, q := range l.Proxy.Log() {
			if !strings.HasPrefix(q.Op, "List") && !strings.HasPrefix(q.Op, "Head") && !strings.HasPrefix(q.Op, "Get") {
				t.Errorf("the store was asked for %s %s", q.Op, q.Key)
			}
		}
	}
	l.Remount()
	wantKeptBytes(t, l, csvDir, "torn.csv", whole[:4000])
	wantKeptBytes(t, l, parquetDir, "torn.parquet", whole[:4000])
	wantBucket(t, l)
	// The name is free for who writes it whole.
	l.MustSh(`cp ` + file + ` ` + parquetDir + `/torn.parquet`)
	wantStore(t, l, parquetDir+"/torn.parquet", whole)
}
