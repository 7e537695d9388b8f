package spark_test

import (
	"errors"
	iofs "io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/folderwatch"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// row is a row of every table here: id, name, k. Numbers are JSON's.
type row [3]any

func rows(first int, k ...any) []row {
	var all []row
	for i, value := range k {
		all = append(all, row{float64(first + i), "näme", value})
	}
	return all
}

// place is where tables lie.
type place struct {
	name  string
	root  string               // the tables' parent, as Spark sees it
	data  string               // the tables' parent below what is watched
	lake  *mounttest.Lake      // nil: a plain directory
	watch *folderwatch.Watcher // nil: a plain directory
	arrow *driver
}

// names are the sorted names of the files of a table, where they are stored. A plain
// directory's are without Hadoop's checksums.
func (p *place) names(t *testing.T, table string) []string {
	t.Helper()
	if p.lake != nil {
		files, err := p.lake.StoredTree("spark/" + table)
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			t.Fatal(err)
		}
		return slices.Sorted(maps.Keys(files))
	}
	var names []string
	root := filepath.Join(p.root, table)
	must(t, filepath.WalkDir(root, func(at string, d iofs.DirEntry, err error) error {
		if errors.Is(err, iofs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && !strings.HasSuffix(at, ".crc") {
			names = append(names, strings.TrimPrefix(at, root+"/"))
		}
		return err
	}))
	slices.Sort(names)
	return names
}

// stored is a job for pyarrow: to read a table where it is stored.
func (p *place) stored(table string) job {
	switch {
	case p.lake == nil:
		return job{Path: filepath.Join(p.root, table)}
	case p.lake.OnS3():
		server, bucket := p.lake.Bucket()
		return job{Path: bucket + "/" + p.lake.Key("spark/"+table), Endpoint: server.Endpoint, Access: server.Access, Secret: server.Secret}
	}
	return job{Path: p.lake.Window("spark/" + table)}
}

// lookAway forgets what was seen so far.
func (p *place) lookAway() {
	if p.watch != nil {
		p.watch.Take()
	}
	if p.lake != nil && p.lake.Proxy != nil {
		p.lake.Proxy.Reset()
	}
}

// tab is a table, and what must be in it.
type tab struct {
	*place
	spark  *driver
	name   string
	format string
	flat   bool
	want   []row
}

// job is a job on the table.
func (b *tab) job(do string) job {
	return job{Do: do, Path: path.Join(b.root, b.name), Format: b.format, Flat: b.flat}
}

// write has Spark write rows, and looks at all that came of it.
func (b *tab) write(t *testing.T, j job) {
	t.Helper()
	before := b.names(t, b.name)
	b.lookAway()
	b.spark.must(t, j, nil)
	b.expect(j)
	b.checkRows(t)
	b.checkStored(t, before, b.names(t, b.name))
}

// expect is what the rows are when the job is done.
func (b *tab) expect(j job) {
	if j.Mode == "overwrite" {
		written := map[any]bool{}
		for _, r := range j.Rows {
			written[r[2]] = true
		}
		b.want = slices.DeleteFunc(slices.Clone(b.want), func(r row) bool { return !j.Dynamic || written[r[2]] })
	}
	b.want = append(slices.Clone(b.want), j.Rows...)
	ordered(b.want)
}

// checkRows holds the rows to be what they must, as Spark reads them by the mount, and
// as pyarrow reads them where they are stored.
func (b *tab) checkRows(t *testing.T) {
	t.Helper()
	var got []row
	b.spark.must(t, b.job("read"), &got)
	if !reflect.DeepEqual(ordered(got), b.want) {
		t.Errorf("%s: Spark reads\n%v\nwant\n%v", b.name, got, b.want)
	}
	j := b.stored(b.name)
	j.Format, j.Flat = b.format, b.flat
	got = nil
	b.arrow.must(t, j, &got)
	if !reflect.DeepEqual(ordered(got), b.want) {
		t.Errorf("%s: pyarrow reads in the store\n%v\nwant\n%v", b.name, got, b.want)
	}
}

// final are the names that a job may leave.
var final = regexp.MustCompile(`^(_SUCCESS|(k=[^/]+/)?part-[^/]+)$`)

// checkStored holds the names that a job left, and those that came meanwhile.
func (b *tab) checkStored(t *testing.T, before, after []string) {
	t.Helper()
	for _, name := range after {
		if !final.MatchString(name) {
			t.Errorf("%s: the store has %q", b.name, name)
		}
	}
	if !slices.Contains(after, "_SUCCESS") {
		t.Errorf("%s: the store has no _SUCCESS: %q", b.name, after)
	}
	for _, name := range []string{"_temporary", ".spark-staging"} {
		// Of the mount, and of a directory that is one: nothing is left over.
		if left, _ := filepath.Glob(filepath.Join(b.root, b.name, name+"*")); len(left) > 0 {
			t.Errorf("%s: left over: %q", b.name, left)
		}
	}
	b.checkSeen(t, slices.Concat(before, after))
	b.checkRequests(t, before, after)
}

// checkSeen holds what came into the folder to have been whole files of the names that
// the table had or has, and directories on the way to them.
func (b *tab) checkSeen(t *testing.T, names []string) {
	t.Helper()
	if b.watch == nil {
		return
	}
	known := map[string]bool{}
	for _, name := range names {
		for ; name != "."; name = path.Dir(name) {
			known[name] = true
		}
	}
	var strange, grown []string
	for seen, what := range b.watch.Take() {
		name, ofTable := strings.CutPrefix(seen, path.Join(b.data, b.name)+"/")
		if ofTable && !known[name] {
			strange = append(strange, name)
		}
		if ofTable && what.InPlace {
			grown = append(grown, name)
		}
	}
	if len(strange)+len(grown) > 0 {
		slices.Sort(strange)
		t.Errorf("%s: seen in the store: %d names that are none of its files (%q), and files that grew there: %q", b.name, len(strange), first(strange, 4), grown)
	}
}

func first(names []string, n int) []string { return names[:min(n, len(names))] }

// checkRequests holds the requests to have been one a new file, and no copies.
func (b *tab) checkRequests(t *testing.T, before, after []string) {
	t.Helper()
	if b.lake == nil || b.lake.Proxy == nil {
		return
	}
	puts := map[string]int{}
	for _, r := range b.lake.Proxy.Log() {
		switch r.Op {
		case "CopyObject", "UploadPartCopy", "CreateMultipartUpload":
			t.Errorf("%s: %s of %s", b.name, r.Op, r.Key)
		case "PutObject":
			if name, ofTable := strings.CutPrefix(r.Key, b.lake.Key("spark/"+b.name)+"/"); ofTable && r.Status == 200 {
				puts[name]++
			}
		}
	}
	want := map[string]int{}
	for _, name := range after {
		if !slices.Contains(before, name) {
			want[name] = 1
		}
	}
	// It is as empty as it was: whether it is written once more is all the same.
	if slices.Contains(before, "_SUCCESS") && puts["_SUCCESS"] <= 1 {
		delete(puts, "_SUCCESS")
	}
	if !maps.Equal(puts, want) {
		t.Errorf("%s: PUTs by name %v, want %v", b.name, puts, want)
	}
}

// copyOver replaces a file of the table by content through the mount.
func (b *tab) copyOver(t *testing.T, name, content string) {
	t.Helper()
	from := filepath.Join(t.TempDir(), "other")
	must(t, os.WriteFile(from, []byte(content), 0o600))
	to := filepath.Join(b.root, b.name, name)
	if b.lake == nil {
		must(t, os.WriteFile(to, []byte(content), 0o600))
		return
	}
	if r := b.lake.Exec("cp", from, to); r.Code != 0 {
		t.Fatalf("cp: exit code %d\n%s", r.Code, r.Err)
	}
}
