package fs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mutated"
)

// opened is a program that opens the files that are named on its standard input, as
// their readers do before they read any data, and prints of those that fail by which
// reader, and why.
const opened = `import json, sys
import duckdb, fastavro, pyarrow.orc, pyarrow.parquet
def parquet(path):
    pyarrow.parquet.ParquetFile(path).metadata
def by_duckdb(path):
    duckdb.execute("select * from parquet_schema(?)", [path]).fetchall()
def orc(path):
    f = pyarrow.orc.ORCFile(path)
    f.schema, f.nstripes
def avro(path):
    with open(path, "rb") as f:
        fastavro.reader(f).writer_schema
readers = {"parquet": {"pyarrow": parquet, "duckdb": by_duckdb}, "orc": {"pyarrow": orc}, "avro": {"fastavro": avro}}
failed = {}
for path in sys.stdin.read().splitlines():
    for name, reader in readers[path.rsplit(".", 1)[1]].items():
        try:
            reader(path)
        except Exception as e:
            failed.setdefault(path, {})[name] = str(e)
print(json.dumps(failed))
`

// refusals opens files in the mount, and returns of those that readers fail to open the
// reasons, by reader.
func refusals(t *testing.T, l *mounttest.Lake, python string, paths []string) map[string]map[string]string {
	t.Helper()
	list := filepath.Join(t.TempDir(), "list")
	var all strings.Builder
	for _, p := range paths {
		fmt.Fprintln(&all, l.Path(p))
	}
	program := filepath.Join(t.TempDir(), "open.py")
	if err := os.WriteFile(program, []byte(opened), 0o600); err != nil {
		t.Fatal(err)
	}
	writeFile(t, list, all.String())
	out := l.MustSh(python + ` ` + program + ` < ` + list)
	failed, of := map[string]map[string]string{}, map[string]map[string]string{}
	if err := json.Unmarshal([]byte(out), &failed); err != nil {
		t.Fatalf("%v: %.500q", err, out)
	}
	for p, why := range failed {
		of[strings.TrimPrefix(p, l.Root+"/")] = why
	}
	return of
}

// mutatedFiles are how many damaged files are written: all are at length.
func mutatedFiles() int {
	if os.Getenv(largeVariable) != "" {
		return 5000
	}
	return 400
}

// TestLargeFormatCheckOfMutatedFiles writes damaged files of real writers: the daemon lives
// in bounded memory, each is refused or published whole, and of the published ones there
// is none whose container readers refuse. What they refuse beyond that in few of
// thousands is what a footer tells that the check does not look at: another reader opens
// the file then, or it names a kind of thing that this reader does not know.
func TestLargeFormatCheckOfMutatedFiles(t *testing.T) {
	t.Parallel()
	python := mounttest.Venv(t, "python3", "pyarrow", "duckdb", "fastavro")
	l := mounttest.Mount(t, mounttest.Options{Timeout: 10 * time.Minute, Tables: []mounttest.Table{
		{Database: "db", Name: "parquet"}, {Database: "db", Name: "orc", Format: "orc"}, {Database: "db", Name: "avro", Format: "avro"},
	}})
	files := mutated.Whole(t, filepath.Join(mounttest.ModuleRoot(t), "format", "testdata"))
	var whole []string
	for _, f := range files {
		path := "db/" + f.Format + "/" + f.Name
		wantErrno(t, "write "+f.Name, writeErr(l, path, creat, string(f.Data), nil), 0)
		whole = append(whole, path)
	}
	// What no reader opens without more (a key, a column) is none to ask it about.
	before := refusals(t, l, python, whole)
	was := peak(t, l)
	published, of := []string{}, map[string]mutated.File{}
	for i, f := range mutated.Of(files, 2, mutatedFiles()) {
		path := fmt.Sprintf("db/%s/%05d.%s", f.Format, i, f.Format)
		err := writeErr(l, path, creat, string(f.Data), nil)
		if err == nil && len(f.Data) > 0 {
			published, of[path] = append(published, path), f
			continue
		}
		if len(f.Data) > 0 {
			wantErrno(t, f.Name+" with "+f.How, err, syscall.EBADMSG)
		}
	}
	if grown := peak(t, l) - was; grown > 256 {
		t.Errorf("the daemon took %d MiB more", grown)
	}
	doubtful := 0
	for path, why := range refusals(t, l, python, published) {
		f := of[path]
		for reader := range before["db/"+f.Format+"/"+f.Name] {
			delete(why, reader)
		}
		if len(why) > 0 {
			doubtful++
			t.Logf("%s with %s: %v", f.Name, f.How, why)
		}
		if f.Format == "parquet" && len(why) == 2 {
			t.Errorf("%s with %s is published, and no reader opens it: %v", f.Name, f.How, why)
		}
	}
	if doubtful > max(2, mutatedFiles()/250) {
		t.Errorf("of %d damaged files %d are published of which a reader does not open the container", mutatedFiles(), doubtful)
	}
	if len(published) > mutatedFiles()*2/5 {
		t.Errorf("%d of %d damaged files are published", len(published), mutatedFiles())
	}
	for _, path := range published[:20] {
		wantStore(t, l, path, string(of[path].Data))
	}
	wantErrno(t, "a whole file afterwards", writeErr(l, "db/parquet/last", creat, mounttest.Parquet(t, 3), nil), 0)
}
