package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/format"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mutated"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/renderfiles"
)

// largeVariable is set for tests that take minutes (make test-large).
const largeVariable = "MOUNTTEST_LARGE"

const (
	// damagedMemory is what the rows of a damaged file of 64 KiB may take all in all,
	// what was given back included, and damagedTime how long: of an hour that means a
	// loop without an end.
	damagedMemory = 200 << 20
	damagedTime   = 30 * time.Second
	damagedText   = 8 << 20 // more is not read of one
)

// wholes are made once.
var wholes struct {
	sync.Mutex
	files []mutated.File
}

// wholeFiles are small files of all kinds, to be damaged.
func wholeFiles(tb testing.TB) []mutated.File {
	tb.Helper()
	wholes.Lock()
	defer wholes.Unlock()
	if wholes.files == nil {
		wholes.files = makeWholeFiles(tb)
	}
	return wholes.files
}

func makeWholeFiles(tb testing.TB) []mutated.File {
	tb.Helper()
	dir, made := renderfiles.Make(tb)
	var files []mutated.File
	for _, f := range made {
		data, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil {
			tb.Fatal(err)
		}
		if len(data) <= 64<<10 {
			files = append(files, mutated.File{Name: f.Name, Format: strings.TrimPrefix(filepath.Ext(f.Name), "."), Data: data})
		}
	}
	for _, f := range mutated.Whole(tb, filepath.Join(mounttest.ModuleRoot(tb), "format", "testdata")) {
		if f.Format != "orc" {
			files = append(files, f)
		}
	}
	return files
}

// damaged makes n damaged files: half of the Parquet files say something else in one field of
// their footer or of a page.
func damaged(files []mutated.File, seed uint64, n int) []mutated.File {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same each time, by intention
	all := mutated.Of(files, seed, n)
	for i := range all {
		f := files[i%len(files)]
		if f.Format != "parquet" || random.IntN(2) == 0 {
			continue
		}
		if data, how := renderfiles.Misled(random, f.Data); how != "" {
			all[i] = mutated.File{Name: f.Name, Format: f.Format, Data: data, How: how}
		}
	}
	return all
}

var errEnough = errors.New("enough")

// some takes so many bytes and then fails, as a pipe that is closed.
type some struct {
	left  int
	lines int64
}

func (w *some) Write(p []byte) (int, error) {
	if w.left < len(p) {
		return 0, errEnough
	}
	w.left -= len(p)
	w.lines += int64(bytes.Count(p, []byte("\n")))
	return len(p), nil
}

// TestRowsOfDamagedFiles and its longer sister read damaged files in this process: a
// panic of a goroutine would end it.
func TestRowsOfDamagedFiles(t *testing.T) { rowsOfDamaged(t, 1, 600) }

func TestLargeRowsOfDamagedFiles(t *testing.T) {
	if os.Getenv(largeVariable) == "" {
		t.Skipf("set %s (make test-large): it takes a minute", largeVariable)
	}
	rowsOfDamaged(t, 2, 5000)
}

func rowsOfDamaged(t *testing.T, seed uint64, n int) {
	t.Helper()
	files := wholeFiles(t)
	failed, most, worst := 0, uint64(0), ""
	var before, after runtime.MemStats
	for i, f := range damaged(files, seed, n) {
		what := fmt.Sprintf("%d, %s with %s", i, f.Name, f.How)
		runtime.ReadMemStats(&before)
		err := errors.Join(rowsOf(t, f), footerOfFile(t, f))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			most, worst = took, what
		}
		bad := (*Error)(nil)
		switch {
		case err == nil || errors.Is(err, errEnough):
			continue
		case !errors.As(err, &bad):
			t.Errorf("%s: %v, want an *Error", what, err)
		case strings.Contains(bad.Reason, "panic"):
			t.Errorf("%s: %v", what, err)
		case bad.File != f.Name || bad.Reason == "":
			t.Errorf("%s: %+v names no file or no reason", what, bad)
		}
		failed++
	}
	if most > damagedMemory {
		t.Errorf("%s took %d MiB of memory", worst, most>>20)
	}
	t.Logf("%d of %d fail; the most memory is %d MiB: %s", failed, n, most>>20, worst)
	if failed < n/3 {
		t.Errorf("%d of %d damaged files fail, want a third at least", failed, n)
	}
	for _, f := range files { // nothing of it stays
		if err := rowsOf(t, f); (err != nil) != (refused[f.Name] != "") || err != nil && !strings.Contains(err.Error(), refused[f.Name]) {
			t.Errorf("%s afterwards: %v", f.Name, err)
		}
	}
}

// refused are the whole files of which no rows are shown, and a word of the reason.
var refused = map[string]string{
	"arrow-encrypted.parquet":         "encrypted",
	"arrow-encrypted-columns.parquet": "encrypted",
	"arrow-nocolumns.parquet":         "no column",
	"flat-xz.avro":                    `codec is "xz"`,
}

func footerOfFile(t *testing.T, f mutated.File) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), damagedTime)
	defer cancel()
	src := bytes.NewReader(f.Data)
	return Footer(ctx, &some{left: damagedText}, src, src.Size(), Spec{Name: f.Name, Kind: KindFooter, Format: f.Format})
}

// rowsOf reads a file's rows. What has no error has all rows that the footer tells of: a
// damaged page is not taken for the end.
func rowsOf(t *testing.T, f mutated.File) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), damagedTime)
	defer cancel()
	src, w := bytes.NewReader(f.Data), some{left: damagedText}
	err := Rows(ctx, &w, src, src.Size(), Spec{Name: f.Name, Kind: KindRows, Format: f.Format, Output: OutputJSONL})
	if rows, known, told := format.Rows(f.Format, src, src.Size()); err == nil && (told != nil || known && rows != w.lines) {
		t.Errorf("%s with %s: %d rows without an error, its footer says %d, %v", f.Name, f.How, w.lines, rows, told)
	}
	return err
}

// TestRowsOfPlainColumnsBesideEncryptedOnes: a file whose footer is plain shows the
// columns that are.
func TestRowsOfPlainColumnsBesideEncryptedOnes(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "format", "testdata", "arrow-encrypted-columns.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"id": `{"id":0}`, "name": `column "name": `} {
		var text strings.Builder
		err := Rows(t.Context(), &text, strings.NewReader(string(data)), int64(len(data)), Spec{
			Name: "f", Kind: KindRows, Output: OutputJSONL, Project: []string{name}, Limit: 1,
		})
		if got := fmt.Sprint(strings.TrimSpace(text.String()), err); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestChecksumsOfPages: of a file whose pages have checksums, no page with a changed bit
// is shown.
func TestChecksumsOfPages(t *testing.T) {
	files := wholeFiles(t)
	f := files[slices.IndexFunc(files, func(f mutated.File) bool { return f.Name == "index.parquet" })]
	var first bytes.Buffer
	whole := Spec{Name: f.Name, Kind: KindRows, Output: OutputJSONL}
	if err := Rows(t.Context(), &first, bytes.NewReader(f.Data), int64(len(f.Data)), whole); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // the same each time, by intention
	failed := 0
	for range 50 {
		data := bytes.Clone(f.Data)
		at := 4 + random.IntN(len(data)/2) // pages are in the first half of it
		data[at] ^= 1 << random.IntN(8)
		var text bytes.Buffer
		err := Rows(t.Context(), &text, bytes.NewReader(data), int64(len(data)), whole)
		if err == nil && !bytes.Equal(text.Bytes(), first.Bytes()) {
			t.Errorf("byte %d is changed, and other rows are shown without an error", at)
		}
		if err != nil && strings.Contains(err.Error(), "checksum") {
			failed++
		}
	}
	if failed < 10 {
		t.Errorf("%d of 50 files fail by a checksum", failed)
	}
}

func TestChecksumOfAPageThatIsReadInParts(t *testing.T) {
	data := []byte(strings.Repeat("0123456789", 100))
	for want, fails := range map[uint32]bool{0: false, crc32.ChecksumIEEE(data): false, 5: true} {
		b := &pageBody{read: iotest.OneByteReader(bytes.NewReader(data)).Read, left: int64(len(data)), sum: checksum{want: want}}
		_, err := io.ReadFull(b, make([]byte, len(data)))
		if errors.Is(err, errChecksum) != fails {
			t.Errorf("%x: %v", want, err)
		}
	}
}
