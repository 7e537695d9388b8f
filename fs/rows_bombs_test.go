package fs_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/renderfiles"
)

// childMiB is the most memory of a process that makes text of a file.
const childMiB = 256

// childPeak is the peak of memory in MiB of a child that stands.
func childPeak(t *testing.T, pid string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(text), "VmHWM:")
	var kib int
	if _, err := fmt.Sscan(line, &kib); err != nil {
		t.Fatalf("VmHWM: %v in %s", err, text)
	}
	return kib >> 10
}

// TestFirstRowsOfALargeFileOnS3: the first rows of a cold file of 1 GiB take three round
// trips after the open, no more than 16 MiB, and a child of bounded memory.
func TestFirstRowsOfALargeFileOnS3(t *testing.T) {
	t.Parallel()
	var columns []string
	for c := range 8 {
		columns = append(columns, fmt.Sprintf("c%d:bigint", c))
	}
	l := mounttest.New(t, mounttest.Options{
		Faulty: true, Flags: longTTL, Timeout: 3 * time.Minute, Tables: []mounttest.Table{{Database: "db", Name: "t", Columns: columns}},
	})
	pieces, size := renderfiles.Large(t)
	putSparse(t, l, "db/t/f", size, pieces)
	l.Start()
	l.MustSh(`ls -l db/t`)
	w := watch(l)
	l.Proxy.Add(faulty.Rule{Fault: faulty.Delay{FirstByte: tripTime}})
	var f *os.File
	var text []byte
	opened, read := time.Time{}, time.Time{}
	err := l.Do("the first rows", func() (err error) {
		if f, err = os.Open(l.Path("db/t/.lakefs/rows/f.jsonl")); err != nil {
			return err
		}
		opened = time.Now()
		text = make([]byte, 1024)
		n, err := f.Read(text)
		read, text = time.Now(), text[:n]
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitN(string(text), "\n", 4)
	want := `{"c0":0,"c1":2,"c2":4,"c3":6,"c4":8,"c5":10,"c6":12,"c7":14}`
	if len(lines) != 4 || lines[2] != want {
		t.Errorf("got %.300q, want %s as the third line", text, want)
	}
	all, after := w.trips(read), w.trips(read)-w.trips(opened)
	pids := children(t, l)
	if len(pids) != 1 {
		t.Fatalf("children %v, want one", pids)
	}
	peaked := childPeak(t, pids[0])
	if err := l.Do("close", f.Close); err != nil {
		t.Error(err)
	}
	wantNoChildren(t, l)
	w.quiet(l)
	fetched := w.fetched(l, "db/t/f")
	t.Logf("%d round trips, %d of them after the open, %d KiB of %d MiB, a child of %d MiB", all, after, fetched>>10, size>>20, peaked)
	if after > 3 || fetched > 16<<20 || peaked > childMiB {
		t.Errorf("%d round trips after the open, %d KiB, a child of %d MiB; want at most 3, 16 MiB and %d MiB\n%s", after, fetched>>10, peaked, childMiB, w)
	}
}

// TestBombsInTheMount: of files that claim much, or are, reads end with rows or EIO and a
// line in the log; the daemon takes no more memory, a reader of another file sees nothing
// of it, and no child is left.
func TestBombsInTheMount(t *testing.T) {
	t.Parallel()
	l := mountRows(t, 3, map[string]string{"beside": mounttest.Parquet(t, manyRows)})
	l.AddTables(
		mounttest.Table{Database: "db", Name: "p", Columns: []string{"n:bigint", "s:string"}},
		mounttest.Table{Database: "db", Name: "a", Columns: []string{"f:binary"}, Format: "avro"},
	)
	bombs := renderfiles.Bombs(t)
	for _, b := range bombs {
		table := "db/p/"
		if strings.HasSuffix(b.Name, ".avro") {
			table = "db/a/"
		}
		l.PutStored(table+b.Name, string(b.Data))
	}
	was := peak(t, l)
	beside := openRows(t, l, inRows+"/beside.jsonl")
	out := l.MustSh(`for f in db/[ap]/.lakefs/rows/*.jsonl; do head -c 1000000 "$f" >/dev/null; echo .; done 2>&1
		for f in db/[ap]/.lakefs/footer/*.json; do cat "$f" >/dev/null; echo .; done 2>&1`)
	texts, failed := 0, 0
	for line := range strings.Lines(out) {
		switch {
		case line == ".\n":
			texts++
		case strings.Contains(line, "Input/output error"):
			failed++
		default:
			t.Errorf("got %q, want EIO", line)
		}
	}
	t.Logf("%d of %d texts of %d bombs fail", failed, texts, len(bombs))
	if texts != 2*len(bombs) || failed < len(bombs)/2 {
		t.Errorf("%d of %d texts of %d bombs fail", failed, texts, len(bombs))
	}
	if grown := peak(t, l) - was; grown > 128 {
		t.Errorf("the daemon took %d MiB more", grown)
	}
	for _, name := range []string{"db/p/.lakefs/rows/zstd-gib.parquet.jsonl", "db/a/.lakefs/rows/deflate.avro.jsonl"} {
		wantLogged(t, l, name)
	}
	var rest []byte
	err := l.Do("a reader beside them reads on", func() (err error) {
		rest, err = io.ReadAll(beside)
		return errors.Join(err, beside.Close())
	})
	if got := strings.Count(string(rest), "\n"); err != nil || got != manyRows {
		t.Errorf("a reader beside them got %d rows and %v, want %d", got, err, manyRows)
	}
	wantNoChildren(t, l)
}
