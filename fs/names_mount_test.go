package fs_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// partitioned is the CSV table db.t by keys, of files.
func partitioned(files map[string]string, keys ...string) mounttest.Table {
	return mounttest.Table{Database: "db", Name: "t", Format: "csv", Keys: keys, Files: files}
}

func TestNamesOfNewPartitions(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{
		partitioned(map[string]string{"n=7/k=a/f": "x", "n=8/": "", "_hidden/f": "x"}, "n:int", "k"),
	}})
	for name, want := range map[string]syscall.Errno{
		"n=9": 0, "n=-1": 0, "n=07": syscall.EEXIST, "n=7": syscall.EEXIST, "n=x": syscall.EINVAL, "n=1.5": syscall.EINVAL,
		"n=a=b": syscall.EINVAL, "n=1=2": syscall.EINVAL, "n=": syscall.EINVAL, "=1": syscall.EINVAL, "m=1": syscall.EINVAL, "plain": syscall.EINVAL,
		"N=5": syscall.EINVAL, "n=__HIVE_DEFAULT_PARTITION__": 0, "n=99999999999": syscall.EINVAL,
		"_meta": 0, ".hidden": 0, "_hidden/any thing=": 0, "_temporary": 0,
		"n=7/k=a%2Fb%3Ac%3Dd%25": 0, "n=7/k=%zz": 0, "n=7/k=%": 0, "n=7/k=São": 0, "n=7/k=a=b": syscall.EINVAL, "n=7/k=__HIVE_DEFAULT_PARTITION__": 0,
		"n=7/k=NULL": 0, "n=7/k=null": 0, "n=7/k=default": 0, "n=7/x": syscall.EINVAL,
		"n=7/k=a/any thing": 0, "n=7/k=a/x=1=2": 0,
	} {
		wantErrno(t, "mkdir "+name, mkdir(l, "db/t/"+name), want)
		if want == syscall.EINVAL || name == "n=07" {
			wantErrno(t, "stat "+name, statErr(l, "db/t/"+name), syscall.ENOENT)
		}
		if want == 0 {
			write(t, l, "db/t/"+name+"/f", name)
		}
	}
	for _, name := range []string{"n=7/k=a%2Fb%3Ac%3Dd%25", "n=7/k=%zz", "n=7/k=São", "n=__HIVE_DEFAULT_PARTITION__", "n=7/k=NULL"} {
		if got := stored(t, l, "db/t/"+name+"/f"); got != name {
			t.Errorf("%s/f in the folder: %q", name, got)
		}
	}
	wantErrno(t, "create of a file at a partition level", openErr(l, "db/t/f", creat), 0)
}

func TestNamesThatExistAreShownAndUsedVerbatim(t *testing.T) {
	t.Parallel()
	names := []string{
		"k=S%C3%A3o", "k=São", "k=a=b", "k=", "k=%2", "k=a%20b", "k=a b", "K=upper", "k=12:30:00", `k=a\b`, "k=a?b#c", "k=h's", "k=new\nline", "plain",
		"k=\xff\xfe", "k=e\u0301", "k=\u00e9", "k=..", "k=__HIVE_DEFAULT_PARTITION__",
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !mounttest.Storable(t, n) })
	files := make(map[string]string)
	for _, n := range names {
		files[n+"/f"] = n
	}
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{partitioned(files, "k")}})
	wantNames(t, l, "db/t", slices.Clone(names)...)
	for _, n := range names {
		wantContent(t, l, "db/t/"+n+"/f", n)
		write(t, l, "db/t/"+n+"/g", "to "+n)
		if got := stored(t, l, "db/t/"+n+"/g"); got != "to "+n {
			t.Errorf("%q/g in the folder: %q", n, got)
		}
	}
	if stored := l.StoredNames("db/t"); len(stored) != len(names) {
		t.Errorf("the store has %d names, want %d", len(stored), len(names))
	}
}

func TestNamesUnparsablePartitionFailsAlone(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{
		partitioned(map[string]string{"n=1/f": "one", "n=foo/f": "x", "plain/f": "p"}, "n:int"),
	}})
	wantNames(t, l, "db/t", "n=1", "n=foo", "plain")
	wantContent(t, l, "db/t/n=1/f", "one")
	wantContent(t, l, "db/t/plain/f", "p")
	_, err := l.Names("db/t/n=foo")
	wantErrno(t, "readdir of n=foo", err, syscall.EIO)
	wantErrno(t, "stat below n=foo", statErr(l, "db/t/n=foo/f"), syscall.EIO)
	wantErrno(t, "create below n=foo", openErr(l, "db/t/n=foo/g", creat), syscall.EIO)
	s := status(t, l, "db/t").Catalog
	if !slices.Equal(s.Unparsable, []string{"n=foo"}) || s.Partitions != 2 {
		t.Errorf("status.json: %+v", s)
	}
	if s := status(t, l, "db/t/n=foo").Catalog; s.Readable || !strings.Contains(s.Reason, "n=foo") {
		t.Errorf("status.json of n=foo: %+v", s)
	}
}

// Case 46: values that look like NULL are distinct directories.
func TestCase46NullAndItsLikesAreDistinct(t *testing.T) {
	t.Parallel()
	files := make(map[string]string)
	for _, v := range []string{"__HIVE_DEFAULT_PARTITION__", "null", "NULL", "default", ""} {
		files["k="+v+"/f"] = "value " + v
	}
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{partitioned(files, "k")}})
	for path, want := range files {
		wantContent(t, l, "db/t/"+path, want)
		wantErrno(t, "mkdir of what is there", mkdir(l, "db/t/"+strings.TrimSuffix(path, "/f")), syscall.EEXIST)
	}
}

// Case 47: existing spellings of one value are distinct, verbatim.
func TestCase47SpellingsThatExistAreDistinct(t *testing.T) {
	t.Parallel()
	files := map[string]string{"month=1/day=2024-5-1/f": "a", "month=01/day=2024-05-01/f": "b", "month=1/day=2024-05-01/f": "c"}
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{partitioned(files, "month:int", "day")}})
	for path, want := range files {
		wantContent(t, l, "db/t/"+path, want)
	}
	wantErrno(t, "mkdir month=001", mkdir(l, "db/t/month=001"), syscall.EEXIST)
	wantErrno(t, "stat month=001", statErr(l, "db/t/month=001"), syscall.ENOENT)
}

// Case 48: values that need escaping.
func TestCase48ValuesThatNeedEscaping(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{partitioned(nil, "k")}})
	spelt := []string{
		"a%2Fb", "12%3A30%3A00", "50%25", "a%252Fb", "EUR%3D", "a b", "a|b", "h%27s", "a%3Fb", "a%23b", "a%5Cb", "é", "a%0Ab", ".", "..",
	}
	for i, v := range spelt {
		path := "db/t/k=" + v
		wantErrno(t, "mkdir k="+v, mkdir(l, path), 0)
		write(t, l, path+"/f", fmt.Sprint(i))
		if got := stored(t, l, path+"/f"); got != fmt.Sprint(i) {
			t.Errorf("k=%s/f: %q", v, got)
		}
	}
	want := make([]string, len(spelt))
	for i, v := range spelt {
		want[i] = "k=" + v
	}
	wantNames(t, l, "db/t", want...)
	// The same values under other spellings are the same directories.
	for _, v := range []string{"12:30:00", "h's", "a?b", "a#b", `a\b`, "a%3fb", "a\nb"} {
		wantErrno(t, "mkdir k="+v, mkdir(l, "db/t/k="+v), syscall.EEXIST)
		wantErrno(t, "stat k="+v, statErr(l, "db/t/k="+v), syscall.ENOENT)
	}
}

// Case 49: the location's case is followed, and names of tables are exact.
func TestCase49CaseIsFollowed(t *testing.T) {
	t.Parallel()
	upper, lower := text("Orders", map[string]string{"f": "upper"}), text("orders", map[string]string{"f": "lower"})
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{
		partitioned(map[string]string{"Year=2024/f": "x"}, "year:int"), upper, lower,
	}})
	wantContent(t, l, "db/Orders/f", "upper")
	wantContent(t, l, "db/orders/f", "lower")
	write(t, l, "db/t/Year=2024/g", "g")
	if got := stored(t, l, "db/t/Year=2024/g"); got != "g" {
		t.Errorf("Year=2024/g: %q", got)
	}
	wantErrno(t, "mkdir year=2024", mkdir(l, "db/t/year=2024"), syscall.EEXIST)
	wantErrno(t, "mkdir Year=2025", mkdir(l, "db/t/Year=2025"), syscall.EINVAL)
	wantErrno(t, "mkdir year=2025", mkdir(l, "db/t/year=2025"), 0)
}

// Case 51: what is shown and hidden of engines' own names.
func TestCase51StagingIsNeverCounted(t *testing.T) {
	t.Parallel()
	raw := text("t", map[string]string{"f": "x"})
	raw.Database = "_raw"
	hidden := mounttest.Table{Database: "db", Name: "_x", Format: "csv", Files: map[string]string{"f": "x"}}
	staging := []string{"_temporary/0/x", "_temporary-1/x", "__magic_job-1/x", ".hive-staging_1/x", ".spark-staging-1/x"}
	files := map[string]string{"_SUCCESS": "", "_delta_log/0.json": "{}", "_metadata": "m", ".hidden": "h", "_year=1/f": "y", "sub/_temporary/x": "s", "a": "a"}
	for _, s := range staging {
		files[s] = "staging"
	}
	byYear := mounttest.Table{Database: "db", Name: "y", Format: "csv", Keys: []string{"_year:int"}, Files: map[string]string{"_year=1/f": "y", "_other=1/f": "o"}}
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{text("t", files), hidden, byYear, raw}})
	wantNames(t, l, "db/t", "_SUCCESS", "_delta_log", "_metadata", ".hidden", "_year=1", "sub", "a")
	wantNames(t, l, "db/t/sub")
	wantNames(t, l, "db", "t", "t.json", "_x", "_x.json", "y", "y.json")
	wantErrno(t, "a database of manifests whose name begins with _", statErr(l, "_raw"), syscall.ENOENT)
	for _, s := range append(staging, "sub/_temporary/x") {
		if r := l.Sh(`cat 'db/t/` + s + `'`); r.Out != files[s] {
			t.Errorf("%s does not open by name: %q %s", s, r.Out, r.Err)
		}
	}
	if n := l.MustSh(`find db/t -type f | wc -l; du --apparent-size -b db/t/sub db/t | wc -l`); n != "6\n4\n" {
		t.Errorf("find and du count %q", n)
	}
	if s := status(t, l, "db/y").Catalog; s.Partitions != 1 {
		t.Errorf("partitions of a table by _year: %d, want 1", s.Partitions)
	}
	wantNames(t, l, "db/t/_temporary", "0")
}

// Cases 56 and 58, as far as a folder can hold such names: markers, and what no
// path reaches.
func TestCase58MarkersAreDirectories(t *testing.T) {
	t.Parallel()
	l := mountText(t, map[string]string{
		"only_$folder$": "", "both_$folder$": "", "both/f": "x", "file_$folder$": "bytes", "name_$folder$": "", "name": "a file", "_$folder$": "",
	}, "--write=delete")
	wantNames(t, l, "db/t", "only", "both", "file_$folder$", "name", "_$folder$")
	wantNames(t, l, "db/t/only")
	wantContent(t, l, "db/t/name", "a file")
	wantErrno(t, "stat of a marker", statErr(l, "db/t/only_$folder$"), syscall.ENOENT)
	wantContent(t, l, "db/t/file_$folder$", "bytes")
	wantErrno(t, "mkdir of a marked directory", mkdir(l, "db/t/only"), syscall.EEXIST)
	write(t, l, "db/t/only/new", "n")
	wantContent(t, l, "db/t/only/new", "n")
	l.MustSh(`cd db/t; mv both moved; cat moved/f; mv moved both; rm -r only both`)
	wantNames(t, l, "db/t", "file_$folder$", "name", "_$folder$")
	wantErrno(t, "stat of a removed directory", statErr(l, "db/t/only"), syscall.ENOENT)
}

func TestCase56WhatIsNotSeenIsLeft(t *testing.T) {
	t.Parallel()
	mounttest.FolderOnly(t, "links and pipes")
	l := mountText(t, map[string]string{"A/ok": "x", "B/ok": "x", "C/f": "x"}, "--write=delete")
	if err := syscall.Mkfifo(l.Data("db/t/A/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", l.Data("db/t/B/out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("f", l.Data("db/t/C/in")); err != nil {
		t.Fatal(err)
	}
	wantNames(t, l, "db/t/A", "ok")
	wantNames(t, l, "db/t/B", "ok")
	wantNames(t, l, "db/t/C", "f", "in")
	wantContent(t, l, "db/t/C/in", "x")
	wantErrno(t, "stat of a link that leaves the folder", statErr(l, "db/t/B/out"), syscall.ENOENT)
	for _, dir := range []string{"A", "B"} {
		if r := l.Sh(`rm -r db/t/` + dir); r.Code == 0 || !strings.Contains(r.Err, "not empty") {
			t.Errorf("rm -r %s: code %d, %q", dir, r.Code, r.Err)
		}
		wantNames(t, l, "db/t/"+dir)
	}
	if _, err := os.Lstat(l.Data("db/t/A/pipe")); err != nil {
		t.Error(err)
	}
}

// Case 59: names with odd characters, in and out again.
func TestCase59OddNames(t *testing.T) {
	t.Parallel()
	names := []string{"a b", "a+b", "100%", "a%20b", "~", "a?", "a#b", `q"u'o`, "é", "🦆", "*", "-n", "a\nb", `back\slash`, "\xff", "trailing ", "a:b", "CON", "$(x)"}
	names = slices.DeleteFunc(names, func(n string) bool { return !mounttest.Storable(t, n) })
	files := make(map[string]string)
	for _, n := range names {
		files["in "+n] = n
	}
	l := mountText(t, files, "--write=delete")
	for _, n := range names {
		wantContent(t, l, "db/t/in "+n, n)
		write(t, l, "db/t/"+n, "new "+n)
		wantErrno(t, "rename of "+n, rename(l, "db/t/"+n, "db/t/moved "+n), 0)
		if got := stored(t, l, "db/t/moved "+n); got != "new "+n {
			t.Errorf("%q in the folder: %q", n, got)
		}
		wantErrno(t, "unlink of "+n, unlink(l, "db/t/in "+n), 0)
	}
	got, err := l.Names("db/t")
	if err != nil || len(got) != len(names) {
		t.Errorf("left: %q, %v", got, err)
	}
}

// Case 60: names of 255 and 256 bytes, and of two normal forms.
func TestCase60LongNamesAndNormalForms(t *testing.T) {
	t.Parallel()
	l := mountText(t, nil, "--write=delete")
	longest := strings.Repeat("x", 254)
	write(t, l, "db/t/"+longest+"1", "file")
	wantErrno(t, "mkdir of 255 bytes", mkdir(l, "db/t/"+longest+"2"), 0)
	write(t, l, "db/t/"+longest+"2/"+longest+"3", "inner")
	wantErrno(t, "rename to 255 bytes", rename(l, "db/t/"+longest+"1", "db/t/"+longest+"4"), 0)
	wantContent(t, l, "db/t/"+longest+"4", "file")
	wantNames(t, l, "db/t", longest+"2", longest+"4")
	r := l.Sh(`cd db/t; exec 3>` + longest + `5; echo x >&3; ls .lakefs/staged; cat .lakefs/staged/*`)
	if base, content, _ := strings.Cut(r.Out, "\n"); len(base) != 255 || !strings.HasPrefix(base, "xxxx") || content != "x\n" || r.Code != 0 {
		t.Errorf("staged name of %d bytes: %q, %s", len(base), r.Out, r.Err)
	}
	if out := l.MustSh(`cd db/t; exec 3>x` + strings.Repeat("é", 127) + `; ls .lakefs/staged`); len(out) != len("\n")+254 || !utf8.ValidString(out) {
		t.Errorf("staged name of a long name of é: %q", out)
	}
	over := "db/t/" + longest + "12"
	for what, err := range map[string]error{
		"stat": statErr(l, over), "create": openErr(l, over, creat), "mkdir": mkdir(l, over), "unlink": unlink(l, over), "rmdir": rmdir(l, over),
		"rename to": rename(l, "db/t/"+longest+"4", over), "rename from": rename(l, over, "db/t/x"),
	} {
		wantErrno(t, what+" of 256 bytes", err, syscall.ENAMETOOLONG)
	}
	write(t, l, "db/t/\u00e9", "NFC")
	write(t, l, "db/t/e\u0301", "NFD")
	wantContent(t, l, "db/t/\u00e9", "NFC")
	wantContent(t, l, "db/t/e\u0301", "NFD")
}
