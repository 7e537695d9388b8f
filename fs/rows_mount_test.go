package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// The texts of .lakefs/rows, as programs read them.

const (
	// manyRows give more text than a pipe and a child's buffer hold.
	manyRows = 60_000
)

// rowLine is the i-th line of a file of mounttest.Parquet.
func rowLine(i int) string {
	return fmt.Sprintf(`{"id":%d,"name":"name","dt":"2026-01-31","n":7}`, i)
}

// ofRows is db.t, whose one partition has a file f of n rows, and what else is in files.
func ofRows(t *testing.T, n int, files map[string]string) mounttest.Table {
	t.Helper()
	table := mounttest.Table{Database: "db", Name: "t", Keys: []string{"dt:date", "n:int"}, Files: map[string]string{"dt=2026-01-31/n=07/f": mounttest.Parquet(t, n)}}
	for name, content := range files {
		table.Files["dt=2026-01-31/n=07/"+name] = content
	}
	return table
}

// inRows is where the rows of its files are.
const inRows = "db/t/dt=2026-01-31/n=07/.lakefs/rows"

func mountRows(t *testing.T, n int, files map[string]string) *mounttest.Lake {
	t.Helper()
	return mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{ofRows(t, n, files)}, Timeout: 3 * time.Minute})
}

// children are the processes that render for the mount.
func children(t *testing.T, l *mounttest.Lake) (pids []string) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", l.Pid()))
	if err != nil || len(lists) == 0 {
		t.Fatalf("the daemon's threads: %v", err)
	}
	for _, name := range lists {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		pids = append(pids, strings.Fields(string(text))...)
	}
	return pids
}

func wantNoChildren(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	l.Eventually("no child is left", seenWithin, func() bool { return len(children(t, l)) == 0 })
}

func TestRowsAreThoseOfTheFile(t *testing.T) {
	t.Parallel()
	l := mountRows(t, 3, map[string]string{"_SUCCESS": "", "empty": mounttest.Parquet(t, 0)})
	got := l.MustSh(`cd ` + inRows + `; cat f.jsonl; cat f.csv; wc -c <empty.jsonl; stat -c '%s %A' f.csv; jq -r .Keys[0].Value f.spec; ls; cat f.jsonl | tail -c 5`)
	want := strings.Join([]string{
		rowLine(0), rowLine(1), rowLine(2), "id,name,dt,n", "0,name,2026-01-31,7", "1,name,2026-01-31,7", "2,name,2026-01-31,7",
		"0", "0 -r--r--r--", "2026-01-31", "empty.csv", "empty.jsonl", "f.csv", "f.jsonl", "\":7}\n",
	}, "\n")
	if got = strings.ReplaceAll(got, "-r--------", "-r--r--r--"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for name, want := range map[string]syscall.Errno{
		"g.jsonl": syscall.ENOENT, "f": syscall.ENOENT, "f.txt": syscall.ENOENT, ".jsonl": syscall.ENOENT, "_SUCCESS.jsonl": syscall.ENOENT,
	} {
		wantErrno(t, name, statErr(l, inRows+"/"+name), want)
	}
	for _, flags := range []int{syscall.O_WRONLY, syscall.O_RDWR} {
		if err := openErr(l, inRows+"/f.csv", flags); err == nil {
			t.Errorf("an open with %#x", flags)
		}
	}
	wantErrno(t, "create", openErr(l, inRows+"/new.csv", syscall.O_CREAT|syscall.O_WRONLY), syscall.EPERM)
	wantErrno(t, "of a database", statErr(l, "db/.lakefs/rows"), syscall.ENOENT)
	wantErrno(t, "of the root", statErr(l, ".lakefs/rows"), syscall.ENOENT)
	wantNames(t, l, "db/t/.lakefs/rows")
	wantNoChildren(t, l)
}

func TestRowsAtOffsets(t *testing.T) {
	t.Parallel()
	l := mountRows(t, manyRows, nil)
	got := mustPython(t, l, `import os
name = "`+inRows+`/f.jsonl"
f = os.open(name, os.O_RDONLY)
whole = b""
while b := os.read(f, 100000): whole += b
for off in (70000, 10, 2000000, len(whole)-7, 0):
    assert os.pread(f, 50, off) == whole[off:off+50], off
assert os.pread(f, 50, len(whole)) == b"" and os.pread(f, 50, len(whole)+1000000) == b""
g = os.open(name, os.O_RDONLY)
for i in range(20):
    assert os.pread(f, 1000, i*1000) == whole[i*1000:][:1000]
    assert os.pread(g, 1000, i*1100) == whole[i*1100:][:1000]
lines = whole.splitlines()
print(len(lines), lines[0].decode(), lines[-1].decode())`)
	if want := fmt.Sprintln(manyRows, rowLine(0), rowLine(manyRows-1)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	wantNoChildren(t, l)
}

func TestReaderOfRowsWhoStopsLeavesNoChild(t *testing.T) {
	t.Parallel()
	l := mountRows(t, manyRows, nil)
	if got := l.MustSh(`head -1 ` + inRows + `/f.jsonl`); got != rowLine(0)+"\n" {
		t.Errorf("head: %q", got)
	}
	wantNoChildren(t, l)
	l.MustSh(`(exec 3<` + inRows + `/f.jsonl; read line <&3; kill -9 $BASHPID) & wait $! || true`)
	wantNoChildren(t, l)
}

func TestKilledDaemonLeavesNoChild(t *testing.T) {
	t.Parallel()
	l := mountRows(t, manyRows, nil)
	f := openRows(t, l, inRows+"/f.jsonl")
	pids := children(t, l)
	if len(pids) != 1 {
		t.Errorf("children %v, want one", pids)
	}
	l.Kill()
	for _, pid := range pids {
		l.Eventually("the child has ended with its parent", seenWithin, func() bool {
			_, err := os.Stat("/proc/" + pid)
			return os.IsNotExist(err)
		})
	}
	_ = f.Close() // its mount is gone
	l.Remount()
}

// openRows opens a text and reads its first line.
func openRows(t *testing.T, l *mounttest.Lake, name string) (f *os.File) {
	t.Helper()
	err := l.Do("open "+name, func() (err error) {
		if f, err = os.Open(l.Path(name)); err != nil {
			return err
		}
		b := make([]byte, len(rowLine(0)))
		if _, err = f.Read(b); err == nil && string(b) != rowLine(0) {
			err = fmt.Errorf("it begins %q", b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestUnmountEndsChildren(t *testing.T) {
	t.Parallel()
	l := mountRows(t, manyRows, nil)
	f := openRows(t, l, inRows+"/f.jsonl")
	pids := children(t, l)
	_ = f.Close()
	l.Unmount()
	for _, pid := range pids {
		if _, err := os.Stat("/proc/" + pid); err == nil {
			t.Errorf("child %s is left", pid)
		}
	}
	l.Remount()
}

// TestRowsOfOneVersion: a descriptor's text is that of the version it opened, or fails.
func TestRowsOfOneVersion(t *testing.T) {
	t.Parallel()
	l := mountRows(t, manyRows, nil)
	f := openRows(t, l, inRows+"/f.jsonl")
	defer func() { _ = f.Close() }()
	l.PutStored("db/t/dt=2026-01-31/n=07/f", mounttest.Parquet(t, 2))
	text := make([]byte, 1<<20)
	n, off, stale := 0, int64(0), false
	err := l.Do("read on", func() (err error) {
		for {
			k, err := f.ReadAt(text, off)
			off += int64(k)
			n += strings.Count(string(text[:k]), "\n")
			switch {
			case k > 0 && err == nil:
				continue
			case isErrno(err, syscall.ESTALE):
				stale = true
			case err != nil && err.Error() != "EOF":
				return err
			}
			return nil
		}
	})
	if err != nil || !stale && n != manyRows {
		t.Errorf("%d rows and %v, want %d or ESTALE", n, err, manyRows)
	}
	l.Eventually("a new open reads the new version", seenWithin, func() bool {
		return l.Sh(`wc -l <`+inRows+`/f.jsonl`).Out == "2\n"
	})
}

func isErrno(err error, want syscall.Errno) bool {
	var got syscall.Errno
	if p, ok := err.(*os.PathError); ok { //nolint:errorlint // of os.File alone
		got, _ = p.Err.(syscall.Errno) //nolint:errorlint // likewise
	}
	return got == want
}

// TestTwoHundredOpens at once are served, by few processes at a time.
func TestTwoHundredOpens(t *testing.T) {
	t.Parallel()
	l := mountRows(t, 1000, nil)
	got := l.MustSh(`seq 200 | xargs -P 200 -I{} sh -c 'md5sum <` + inRows + `/f.jsonl' | sort | uniq -c; md5sum <` + inRows + `/f.jsonl`)
	lines := strings.Split(got, "\n")
	if words := strings.Fields(lines[0]); len(lines) != 3 || words[0] != "200" || words[1] != strings.Fields(lines[1])[0] {
		t.Errorf("got %s", got)
	}
	wantNoChildren(t, l)
}

func TestRowsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	whole := mounttest.Parquet(t, 100)
	damaged := whole[:len(whole)/3] + strings.Repeat("\xff", len(whole)/3) + whole[len(whole)/3*2:]
	l := mountRows(t, 3, map[string]string{"damaged": damaged, "cut": whole[:len(whole)-3], "text": "a,b\n"})
	for _, name := range []string{"cut", "text"} {
		path := inRows + "/" + name + ".jsonl"
		if r := l.Sh(`cat ` + path); r.Code == 0 || !strings.Contains(r.Err, "Input/output error") {
			t.Errorf("%s: %+v", name, r)
		}
		wantLogged(t, l, path)
	}
	_ = l.Sh(`cat ` + inRows + `/damaged.jsonl`) // may show what it has
	if got := l.MustSh(`wc -l <` + inRows + `/f.jsonl`); got != "3\n" {
		t.Errorf("another file: %q", got)
	}
	wantNoChildren(t, l)
}

// TestKilledReaderOfRows does not wait for its answer, and its child ends.
func TestKilledReaderOfRows(t *testing.T) {
	t.Parallel()
	l := mountRows(t, manyRows, nil)
	l.MustSh(`cat ` + inRows + `/f.jsonl | (read line; sleep 0.2) & wait $!
		for i in $(seq 20); do (cat ` + inRows + `/f.jsonl >/dev/null) & p=$!; read -t 0.0$((i % 5)) x <> <(:); kill -9 $p; wait $p; done 2>/dev/null; true`)
	wantNoChildren(t, l)
	if got := l.MustSh(`wc -l <` + inRows + `/f.jsonl`); got != fmt.Sprintln(manyRows) {
		t.Errorf("then: %q", got)
	}
}

// TestRowsByThePartitionsFormat: what a partition of another format holds is shown as that.
func TestRowsByThePartitionsFormat(t *testing.T) {
	t.Parallel()
	file := mounttest.Parquet(t, 2)
	table := mounttest.GlueTable{
		Table: mounttest.Table{Database: "db", Name: "t", Format: "csv", Keys: []string{"n:int", "s:string"}},
		Partitions: []mounttest.GluePartition{
			{Values: []string{"1", "a b"}, Format: "parquet", Location: "s3://{1}/else/where", Files: map[string]string{"000000_0": file}},
			{Values: []string{"2", "__HIVE_DEFAULT_PARTITION__"}, Format: "parquet", Files: map[string]string{"p": file}},
			{Values: []string{"3", "x"}, Files: map[string]string{"t.csv": "1,one\n", "p.parquet": file}},
		},
	}
	l := mountGlue(t, mounttest.Options{Flags: longTTL}, table)
	wantNames(t, l, "db/t/n=1/s=a b/.lakefs/rows", "000000_0.csv", "000000_0.jsonl")
	wantNames(t, l, "db/t/n=1/s=a b/.lakefs/footer", "000000_0.json")
	wantNames(t, l, "db/t/n=3/s=x/.lakefs/rows")
	wantErrno(t, "a Parquet file in a partition of CSV", statErr(l, "db/t/n=3/s=x/.lakefs/rows/p.parquet.jsonl"), syscall.ENOENT)
	l.Catalog.Server.Reset()
	got := l.MustSh(`cd db/t; head -1 'n=1/s=a b/.lakefs/rows/000000_0.jsonl'; tail -1 n=2/s=__HIVE_DEFAULT_PARTITION__/.lakefs/rows/p.jsonl; tail -1 n=2/s=__HIVE_DEFAULT_PARTITION__/.lakefs/rows/p.csv`)
	if want := `{"id":0,"name":"name","n":1,"s":"a b"}` + "\n" + `{"id":1,"name":"name","n":2,"s":null}` + "\n1,name,2,\n"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if asked := l.Catalog.Server.Calls("GetTable"); len(asked) > 0 {
		t.Errorf("rows of known partitions ask the catalog: %v", asked)
	}
}

// TestRowsOfWhatIsRefused: a manifest that asks for what is not known, and a value that is
// none of its key's type, are named.
func TestRowsOfWhatIsRefused(t *testing.T) {
	t.Parallel()
	file := mounttest.Parquet(t, 2)
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{
		{Database: "db", Name: "serde", Serde: "com.example.Odd", Files: map[string]string{"f": file}},
		{Database: "db", Name: "nested", Columns: []string{"id:bigint", "s:struct<a:int>"}, Files: map[string]string{"f": file}},
		{Database: "db", Name: "values", Keys: []string{"n:int"}, Files: map[string]string{"n=1/f": file, "n=one/f": file}},
	}})
	for path, word := range map[string]string{"db/serde/.lakefs/rows/f.jsonl": "com.example.Odd", "db/nested/.lakefs/rows/f.jsonl": "struct<a:int>"} {
		wantErrno(t, path, statErr(l, path), syscall.EIO)
		wantLogHas(t, l, path, word)
	}
	for _, dir := range []string{"db/serde", "db/nested"} { // a footer asks for no columns
		if got := l.MustSh(`ls ` + dir + `/.lakefs/footer; jq .num_rows ` + dir + `/.lakefs/footer/f.json`); got != "f.json\n2\n" {
			t.Errorf("footer in %s: %q", dir, got)
		}
	}
	if got := l.MustSh(`cat db/serde/f | wc -c`); got != fmt.Sprintln(len(file)) {
		t.Errorf("the file itself: %q", got)
	}
	wantErrno(t, "a value of another type", statErr(l, "db/values/n=one/.lakefs/rows/f.jsonl"), syscall.EIO)
	if got := l.MustSh(`wc -l <db/values/n=1/.lakefs/rows/f.csv`); got != "3\n" {
		t.Errorf("its neighbour: %q", got)
	}
}

// TestRowsOfAListedTable: what a listing of a database tells of a table is not all that
// rows ask for. The rest is asked for once, and not again while the listings of the very
// version go on; a footer needs none of it, nor does an open.
func TestRowsOfAListedTable(t *testing.T) {
	t.Parallel()
	file := mounttest.Parquet(t, 2)
	tables := []mounttest.GlueTable{
		{Table: mounttest.Table{Database: "db", Name: "t", Format: "parquet", Columns: []string{"name:string", "more:int", "id:bigint"}, Files: map[string]string{"f": file, "g": file}}},
		{Table: mounttest.Table{Database: "db", Name: "other", Format: "parquet", Columns: []string{"id:string"}, Files: map[string]string{"f": file}}},
	}
	const ttl = time.Second
	l := mountGlue(t, mounttest.Options{Flags: []string{"--metadata-ttl=" + ttl.String(), "--negative-ttl=1h"}}, tables...)
	listed := func() { // anew: the listing before is older than the TTL
		t.Helper()
		l.Catalog.Server.Reset()
		l.Eventually("a listing is asked for", seenWithin, func() bool {
			l.MustSh(`ls -l db >/dev/null`)
			return l.Catalog.Server.Requests()["GetTables"] > 0
		})
	}
	listed()
	l.MustSh(`cat db/t/.lakefs/footer/f.json db/t/f | wc -c`)
	want := `{"name":"name","more":null,"id":0}` + "\n" + `{"name":"name","more":null,"id":1}` + "\n"
	for i := range 3 {
		listed()
		if got := l.MustSh(`cat db/t/.lakefs/rows/f.jsonl`); got != want {
			t.Fatalf("listing %d: got %s\nwant %s", i, got, want)
		}
	}
	if r := l.Sh(`cat db/other/.lakefs/rows/f.jsonl`); r.Out != "" || !strings.Contains(r.Err, "Input/output error") {
		t.Errorf("a column of another type: %+v", r)
	}
}

// TestRequestsOfRowsOfAListedTable are one, of the whole entry.
func TestRequestsOfRowsOfAListedTable(t *testing.T) {
	t.Parallel()
	file := mounttest.Parquet(t, 2)
	table := mounttest.GlueTable{Table: mounttest.Table{Database: "db", Name: "t", Format: "parquet", Columns: []string{"id:bigint"}, Files: map[string]string{"f": file, "g": file}}}
	l := mountGlue(t, mounttest.Options{Flags: longTTL}, table)
	l.MustSh(`ls -l db >/dev/null; ls -l db/t`)
	l.Catalog.Server.Reset()
	l.MustSh(`ls -l db/t/.lakefs/footer; cat db/t/.lakefs/footer/f.json db/t/f`)
	wantCalls(t, l, "footer and file", map[string]int{})
	l.MustSh(`ls -l db/t/.lakefs/rows; for i in 1 2 3; do cat db/t/.lakefs/rows/*.jsonl & done; wait; jq .Columns db/t/.lakefs/rows/f.spec`)
	wantCalls(t, l, "rows", map[string]int{"GetTable": 1})
	l.MustSh(`cat db/t/.lakefs/rows/g.csv`)
	wantCalls(t, l, "more rows", map[string]int{})
}

// wantLogHas asserts that a line of the log has both.
func wantLogHas(t *testing.T, l *mounttest.Lake, path, word string) {
	t.Helper()
	l.Eventually("logged: "+path+", and "+word, seenWithin, func() bool {
		for line := range strings.Lines(l.Log()) {
			if strings.Contains(line, path) && strings.Contains(line, word) {
				return true
			}
		}
		return false
	})
}
