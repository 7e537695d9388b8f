package fs_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// wantDirectoriesChecked moves directories into the Parquet partition there of a
// mount that checks: csv is a partition of CSV files.
func wantDirectoriesChecked(t *testing.T, l *mounttest.Lake, csv, there string) {
	t.Helper()
	l.MustSh(`mkdir ` + csv + `/s ` + csv + `/good ` + csv + `/full; echo 1,x > ` + csv + `/s/b.csv; echo 1,x > ` + csv + `/full/b.csv`)
	write(t, l, csv+"/good/g", mounttest.Parquet(t, 3))
	wantErrno(t, "of text into a Parquet partition", rename(l, csv+"/s", there+"/s"), syscall.EXDEV)
	wantErrno(t, "of Parquet files among text into a Parquet partition", rename(l, csv+"/good", there+"/good"), syscall.EXDEV)
	if r := l.Sh(`mv ` + csv + `/s ` + there + `/`); r.Code == 0 || !strings.Contains(r.Err, "Bad message") {
		t.Errorf("mv of text into a Parquet partition: code %d, %s", r.Code, r.Err)
	}
	wantContent(t, l, csv+"/s/b.csv", "1,x\n")
	wantErrno(t, "the copy of text", statErr(l, there+"/s/b.csv"), syscall.ENOENT)
	l.MustSh(`mv ` + csv + `/good ` + there + `/`)
	wantContent(t, l, there+"/good/g", mounttest.Parquet(t, 3))
	wantErrno(t, "the moved directory", statErr(l, csv+"/good"), syscall.ENOENT)

	wantErrno(t, "to a hidden name", rename(l, csv+"/s", there+"/_s"), 0)
	wantErrno(t, "from a hidden name to another", rename(l, there+"/_s", there+"/.s"), 0)
	wantErrno(t, "from a hidden name to a counted one", rename(l, there+"/.s", there+"/t"), syscall.EXDEV)
	l.MustSh(`mkdir ` + there + `/empty`)
	wantErrno(t, "from a hidden name to an empty directory", rename(l, there+"/.s", there+"/empty"), syscall.EXDEV)
	wantErrno(t, "of a file from a hidden directory", rename(l, there+"/.s/b.csv", there+"/b"), syscall.EBADMSG)
	wantErrno(t, "of Parquet files to where all is a file", rename(l, there+"/good", csv+"/good"), 0)
	wantErrno(t, "of text to another name", rename(l, csv+"/full", csv+"/full2"), 0)
	wantContent(t, l, csv+"/full2/b.csv", "1,x\n")
}

func TestRenameOfADirectoryChecksTheFormatOfTheTarget(t *testing.T) {
	t.Parallel()
	wantDirectoriesChecked(t, mountTwo(t, nil, "--write=delete"), csvDir, parquetDir)
}

func TestRenameOfADirectoryWhereNothingIsChecked(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"s/b.csv": "1,x\n"}, "--write=delete", "--check-format=off")
	wantErrno(t, "of text into a Parquet partition", rename(l, csvDir+"/s", parquetDir+"/s"), 0)
	wantContent(t, l, parquetDir+"/s/b.csv", "1,x\n")
	l.Remount("--write=delete", "--check-format=warn")
	wantErrno(t, "back", rename(l, parquetDir+"/s", csvDir+"/s"), 0)
	wantErrno(t, "of text into a Parquet partition, which is warned of", rename(l, csvDir+"/s", parquetDir+"/s"), syscall.EXDEV)
	l.MustSh(`mv ` + csvDir + `/s ` + parquetDir + `/`)
	wantContent(t, l, parquetDir+"/s/b.csv", "1,x\n")
}

// mv would copy, and could not remove what it copied.
func TestRenameOfAnothersDirectoryToAnotherFormatIsRefused(t *testing.T) {
	t.Parallel()
	l := mountTwo(t, map[string]string{"s/b.csv": "1,x\n"})
	wantErrno(t, "of another's text into a Parquet partition", rename(l, csvDir+"/s", parquetDir+"/s"), syscall.EPERM)
}

// Each partition of a catalog has a format of its own.
func TestRenameOfDirectoriesBetweenTablesOfACatalog(t *testing.T) {
	t.Parallel()
	columnar := inCatalog()
	columnar.Name, columnar.Format, columnar.Files, columnar.Partitions = "parquet", "", nil, columnar.Partitions[2:]
	for what, there := range map[string]string{
		"a registered partition": "db/parquet/dt=3", "a new partition": "db/parquet/dt=9", "a format table": "db/f/n=5", "a whole format table": "db/whole",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete"}}, inCatalog(), columnar, formatTable("f", []string{"n:int"}), formatTable("whole", nil))
			l.MustSh(`mkdir -p ` + there)
			if strings.HasPrefix(there, "db/parquet") {
				wantDirectoriesChecked(t, l, "db/t/dt=2", there)
				return
			}
			l.MustSh(`mkdir db/t/dt=2/s; echo 1,x > db/t/dt=2/s/b.csv`)
			wantErrno(t, "of text", rename(l, "db/t/dt=2/s", there+"/s"), syscall.EXDEV)
			if r := l.Sh(`mv db/t/dt=2/s ` + there + `/`); r.Code == 0 || !strings.Contains(r.Err, "Bad message") {
				t.Errorf("mv of text: code %d, %s", r.Code, r.Err)
			}
		})
	}
}

// A name that stands for NULL is a partition's, though it would be hidden elsewhere.
func TestRule19_RenameOfANullPartitionIsLeftToMv(t *testing.T) {
	t.Parallel()
	values := formatTable("v", []string{"k"}, "format-table.partition-path-only-value", "true").Table
	values.Files = map[string]string{"__DEFAULT_PARTITION__/f": mounttest.Parquet(t, 1), "__DEFAULT_PARTITION__/_d/f": mounttest.Parquet(t, 1)}
	l := mounttest.Mount(t, mounttest.Options{Flags: []string{"--write=delete"}, Tables: []mounttest.Table{values}})
	wantErrno(t, "of the partition of NULL", rename(l, "db/v/__DEFAULT_PARTITION__", "db/v/x"), syscall.EXDEV)
	l.MustSh(`mv db/v/__DEFAULT_PARTITION__ db/v/x`)
	wantErrno(t, "of a directory to the partition of NULL", rename(l, "db/v/x/_d", "db/v/__DEFAULT_PARTITION__"), syscall.EXDEV)
	l.MustSh(`mv db/v/x db/v/__DEFAULT_PARTITION__`)
	wantNames(t, l, "db/v", "__DEFAULT_PARTITION__")
}

// wantInsertOnly asserts rule 22 of renames in the directory dir of a format table.
func wantInsertOnly(t *testing.T, l *mounttest.Lake, dir string) {
	t.Helper()
	one, two := mounttest.Parquet(t, 1), mounttest.Parquet(t, 2)
	l.MustSh(`mkdir -p ` + dir)
	write(t, l, dir+"/.one", one)
	write(t, l, dir+"/.text", "text")
	write(t, l, dir+"/_two", two)
	wantErrno(t, "of a hidden file to a free name", rename(l, dir+"/.one", dir+"/one"), 0)
	wantErrno(t, "of a hidden file onto a published one", rename(l, dir+"/_two", dir+"/one"), syscall.EROFS)
	wantErrno(t, "of hidden text", rename(l, dir+"/.text", dir+"/text"), syscall.EBADMSG)
	wantErrno(t, "NOREPLACE of a hidden file", noReplace(l, dir+"/_two", dir+"/one"), syscall.EEXIST)
	wantErrno(t, "of a hidden file onto a hidden one", rename(l, dir+"/_two", dir+"/.text"), 0)
	wantErrno(t, "of a published file", rename(l, dir+"/one", dir+"/three"), syscall.EROFS)
	wantErrno(t, "of a published file to a hidden name", rename(l, dir+"/one", dir+"/_one"), syscall.EROFS)
	l.MustSh(`mkdir ` + dir + `/d ` + dir + `/e ` + dir + `/_h`)
	wantErrno(t, "of an empty directory", rename(l, dir+"/e", dir+"/e2"), 0)
	l.MustSh(`cp ` + dir + `/one ` + dir + `/d/f; cp ` + dir + `/one ` + dir + `/_h/g`)
	wantErrno(t, "of a directory of published files", rename(l, dir+"/d", dir+"/d2"), syscall.EROFS)
	wantErrno(t, "of one to a hidden name", rename(l, dir+"/d", dir+"/_d"), syscall.EROFS)
	wantErrno(t, "of a hidden directory", rename(l, dir+"/_h", dir+"/h"), syscall.EXDEV)
	wantErrno(t, "of a file in a hidden directory", rename(l, dir+"/_h/g", dir+"/g"), 0)
	wantErrno(t, "of a file in a hidden directory onto a published one", rename(l, dir+"/.text", dir+"/g"), syscall.EROFS)
	wantNames(t, l, dir, ".text", "_h", "d", "e2", "g", "one")
	for name, want := range map[string]string{"one": one, ".text": two, "d/f": one, "g": one} {
		wantContent(t, l, dir+"/"+name, want)
	}
	if r := l.Sh(`cp ` + dir + `/one ` + dir + `/x.new && mv ` + dir + `/x.new ` + dir + `/x`); r.Code == 0 || !strings.Contains(r.Err, "Read-only") {
		t.Errorf("mv of a published file: code %d, %s", r.Code, r.Err)
	}
}

// rsyncInto copies a tree of Parquet files into the format table db.f of the key n,
// with rsync, which publishes under a hidden name.
func rsyncInto(t *testing.T, l *mounttest.Lake) {
	t.Helper()
	tree := t.TempDir()
	if err := errors.Join(os.Mkdir(tree+"/n=6", 0o755), os.Mkdir(tree+"/n=7", 0o755)); err != nil {
		t.Fatal(err)
	}
	parquet := mounttest.Parquet(t, 3)
	for _, name := range []string{"r.parquet", "n=6/a", "n=6/b", "n=7/c"} {
		writeFile(t, tree+"/"+name, parquet)
	}
	l.MustSh(`mkdir db/f/n=5; rsync -a ` + tree + `/r.parquet db/f/n=5/; rsync -a ` + tree + `/n=6 ` + tree + `/n=7 db/f/`)
	for _, name := range []string{"n=5/r.parquet", "n=6/a", "n=6/b", "n=7/c"} {
		wantContent(t, l, "db/f/"+name, parquet)
		wantStore(t, l, "db/f/"+name, parquet)
	}
	if out := l.MustSh(`rsync -ai ` + tree + `/r.parquet db/f/n=5/; rsync -ai ` + tree + `/n=6 ` + tree + `/n=7 db/f/`); out != "" {
		t.Errorf("rsync a second time: %q", out)
	}
	writeFile(t, tree+"/r.parquet", mounttest.Parquet(t, 4))
	if r := l.Sh(`rsync -a ` + tree + `/r.parquet db/f/n=5/`); r.Code == 0 || !strings.Contains(r.Err, "Read-only") {
		t.Errorf("rsync of a changed file: code %d, %s", r.Code, r.Err)
	}
	wantNames(t, l, "db/f/n=5", "r.parquet")
	wantContent(t, l, "db/f/n=5/r.parquet", parquet)
}

func TestRule22_HiddenFilesTakeNewNames(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, formatTable("f", []string{"n:int"}), formatTable("whole", nil))
	wantInsertOnly(t, l, "db/f/n=7")
	wantInsertOnly(t, l, "db/whole")
}

func TestRule22_Rsync(t *testing.T) {
	t.Parallel()
	rsyncInto(t, mountGlue(t, mounttest.Options{}, formatTable("f", []string{"n:int"})))
}

// TestRule22_RenamesInManifests: the same in a lake of manifests.
func TestRule22_RenamesInManifests(t *testing.T) {
	t.Parallel()
	l := mounttest.Mount(t, mounttest.Options{Tables: []mounttest.Table{formatTable("f", []string{"n:int"}).Table, formatTable("whole", nil).Table}})
	rsyncInto(t, l)
	wantInsertOnly(t, l, "db/f/n=8")
	wantInsertOnly(t, l, "db/whole")
}
