package catalogview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

func TestDiscoverListsWhatTheCatalogDoesNotKnow(t *testing.T) {
	v, c, s := catalogView(t, func(o *Options) { o.Discover = true })
	c.table("t", "s3://b/t", "dt:string")
	c.partition("t", "s3://b/t/dt=1", "1")
	s.set("t/dt=2/f", "2")
	wantLs(t, v, "db/t", "dt=1/", "dt=2/")
}

func TestCase45APartitionIsWhereTheCatalogSays(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string")
	c.partition("t", "s3://other/far/away/", "1")
	c.partition("t", "s3://other/far/away", "2")
	s.set("t/dt=1/old", "old")
	s.set("far/away/new", "new")
	wantLs(t, v, "db/t", "dt=1/", "dt=2/")
	for _, dir := range []string{"db/t/dt=1", "db/t/dt=2"} {
		wantLs(t, v, dir, "new")
		wantObject(t, v, dir+"/new", "new")
		wantAbsent(t, v, dir+"/old")
		target, err := v.Resolve(t.Context(), dir+"/sub/f")
		if want := (objectstore.Location{Bucket: "other", Key: "far/away/sub/f"}); err != nil || target.Location != want || target.Prefix.Key != "far/away/" {
			t.Errorf("Resolve below %s: %+v, %v, want %v", dir, target, err, want)
		}
	}
}

// Values are told apart byte for byte, and have one name each.
func TestCase46And47And48Values(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t", "k:string")
	names := map[string]string{
		table.HiveNull: "k=" + table.HiveNull, "null": "k=null", "NULL": "k=NULL", "default": "k=default", "": "k=",
		"1": "k=1", "01": "k=01", "2024-5-1": "k=2024-5-1", "2024-05-01": "k=2024-05-01",
		"a/b": "k=a%2Fb", "12:30:00": "k=12%3A30%3A00", "50%": "k=50%25", "a%2Fb": "k=a%252Fb", "EUR=": "k=EUR%3D", "a b": "k=a b",
		"a|b": "k=a|b", "h's": "k=h%27s", "a?b": "k=a%3Fb", "a#b": "k=a%23b", `a\b`: "k=a%5Cb", "é": "k=é", "a\nb": "k=a%0Ab", ".": "k=.", "..": "k=..",
	}
	var want []string
	for value, name := range names {
		key := fmt.Sprintf("t/%x/f", value)
		c.partition("t", strings.TrimSuffix("s3://b/"+key, "f"), value)
		s.set(key, value)
		want = append(want, name+"/")
	}
	wantLs(t, v, "db/t", want...)
	for value, name := range names {
		wantObject(t, v, "db/t/"+name+"/f", value)
	}
	wantAbsent(t, v, "db/t/k=a%2fb") // another spelling of a/b
	wantAbsent(t, v, "db/t/K=1")
}

// A directory right below the table keeps its name, in whatever spelling of the values.
func TestCase49TheSpellingOfTheLocationIsFollowed(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t", "year:string")
	for value, name := range map[string]string{"2024": "Year=2024", "a b": "year=a%20b", "é": "year=%C3%A9", "c": "year=c", "x:y": "year=x:y"} {
		c.partition("t", "s3://b/t/"+name, value)
		s.set("t/"+name+"/f", value)
	}
	c.partition("t", "s3://b/t/year=other", "value") // its own name does not stand for it
	c.partition("t", "s3://b/t/year=deep/year=deeper", "deeper")
	wantLs(t, v, "db/t", "Year=2024/", "year=a%20b/", "year=%C3%A9/", "year=c/", "year=x:y/", "year=value/", "year=deeper/")
	for name, value := range map[string]string{"Year=2024": "2024", "year=a%20b": "a b", "year=%C3%A9": "é", "year=x:y": "x:y"} {
		wantObject(t, v, "db/t/"+name+"/f", value)
		if n := lookup(t, v, "db/t/"+name); !n.Registered {
			t.Errorf("%s is not told to be registered", name)
		}
	}
	for _, name := range []string{"year=2024", "year=a b", "year=é", "year=x%3Ay", "YEAR=c", "year=other", "year=deep"} {
		wantAbsent(t, v, "db/t/"+name) // one directory, one name
	}
	if _, err := v.ResolveDirectory(t.Context(), "db/t/year=a b"); !errors.Is(err, table.ErrEqual) {
		t.Errorf("another spelling of what is there: %v, want ErrEqual", err)
	}
	if _, err := v.Resolve(t.Context(), "db/t/year=a b/f"); !errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("a file in another spelling of what is there: %v, want ErrNotExist", err)
	}
}

// Levels are told apart by their names, not by the values these stand for.
func TestSpellingsOfALevelAbove(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string", "r:string")
	c.partition("t", "s3://b/t/dt=a b/r=1", "a b", "1")
	c.partition("t", "s3://b/t/dt=a%20b/r=2", "a b", "2")
	c.partition("t", "s3://elsewhere/x", "a b", "3")
	s.set("t/dt=a b/r=1/f", "1")
	s.set("t/dt=a%20b/r=2/f", "2")
	wantLs(t, v, "db/t", "dt=a b/", "dt=a%20b/")
	wantLs(t, v, "db/t/dt=a b", "r=1/", "r=3/")
	wantLs(t, v, "db/t/dt=a%20b", "r=2/")
	v.Refresh("")
	wantObject(t, v, "db/t/dt=a%20b/r=2/f", "2")
	for _, path := range []string{"db/t/dt=a%20b/r=1", "db/t/dt=a b/r=2", "db/t/dt=a%20b/r=3", "db/t/dt=%61 b"} {
		wantAbsent(t, v, path)
	}
}

// Some writers do not escape values: the partition lies deeper than its keys.
func TestAPartitionMayLieDeeperThanItsKeys(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t/", "dt:string", "region:string")
	c.partition("t", "s3://b/t/dt=1/region=a/b:c=d%/", "1", "a/b:c=d%")
	c.partition("t", "s3://b/t/dt=1/region=eu/", "1", "eu")
	s.set("t/dt=1/region=a/b:c=d%/f", "deep")
	s.set("t/dt=1/region=eu/f", "eu")
	wantLs(t, v, "db/t", "dt=1/")
	wantLs(t, v, "db/t/dt=1", "region=a%2Fb%3Ac%3Dd%25/", "region=eu/")
	wantObject(t, v, "db/t/dt=1/region=a%2Fb%3Ac%3Dd%25/f", "deep")
	wantAbsent(t, v, "db/t/dt=1/region=a")
}

func TestRule57AFilesFormatIsItsPartitions(t *testing.T) {
	v, c, _ := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string")
	c.partition("t", "s3://b/t/dt=1", "1")
	c.partitions["t"]["2"] = table.Partition{Values: []string{"2"}, Location: "s3://b/t/dt=2", Format: "avro", FormatFrom: "serde A", InputFormat: "A"}
	for dir, want := range map[string]string{"dt=1": "parquet", "dt=2": "avro", "dt=new": "parquet"} {
		target, err := v.Resolve(t.Context(), "db/t/"+dir+"/f")
		if err != nil || target.Format != want {
			t.Errorf("%s: format %q, %v, want %q", dir, target.Format, err, want)
		}
	}
	st, err := v.Status(t.Context(), "db/t/dt=2")
	if err != nil || st.Format != "avro" || st.FormatFrom != "serde A" || st.Location != "s3://b/t/dt=2/" {
		t.Errorf("status of the partition: %+v, %v", st, err)
	}
}

func TestRule58FormatsOfPartitionsAreCounted(t *testing.T) {
	v, c, _ := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string")
	for i := range 3 {
		c.partition("t", "s3://b/t/x", fmt.Sprint(i))
	}
	status := func() Status {
		t.Helper()
		v.Refresh("")
		st, err := v.Status(t.Context(), "db/t")
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	if st := status(); string(st.MultiFormat) != "false" || st.Formats["P"] != 3 {
		t.Errorf("of one format: %s, %v", st.MultiFormat, st.Formats)
	}
	c.partitions["t"]["A"] = table.Partition{Values: []string{"A"}, Location: "s3://b/t/y", Format: "avro", InputFormat: "A"}
	if st := status(); string(st.MultiFormat) != "true" || st.Formats["P"] != 3 || st.Formats["A"] != 1 {
		t.Errorf("of two formats: %s, %v", st.MultiFormat, st.Formats)
	}
}

func TestPartitionsThatCannotBeUsedAreCounted(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string", "n:int")
	c.partition("t", "s3://b/t/dt=a/n=1", "a", "1")
	s.set("t/dt=a/n=1/f", "x")
	for _, values := range [][]string{{"a"}, {"a", "1", "2"}} {
		c.partitions["t"][valuesKey(values)] = table.Partition{Values: values, Location: "s3://b/x", Broken: fmt.Sprint(len(values), " values")}
	}
	wantLs(t, v, "db/t", "dt=a/")
	wantLs(t, v, "db/t/dt=a", "n=1/")
	v.Refresh("")
	wantObject(t, v, "db/t/dt=a/n=1/f", "x")
	st, err := v.Status(t.Context(), "db/t")
	if err != nil || st.Unusable != 2 || st.UnusableReason != "1 values" || st.Partitions != 1 {
		t.Errorf("status: %+v, %v", st, err)
	}
}

// Rule 43, for partitions: each is checked by itself, at every load.
func TestRule43LocationsOfPartitions(t *testing.T) {
	v, c, s := catalogView(t, func(o *Options) { o.Roots = []string{"s3://b/t/"} })
	c.table("t", "s3://b/t", "dt:string")
	s.set("t/dt=good/f", "x")
	for value, location := range map[string]string{
		"good": "s3a://b/t/dt=good", "outside": "s3://b/t2/x", "bucket": "s3://other/x", "dots": "s3://b/t/../x", "file": "file:///etc", "none": "", "hdfs": "hdfs://nn/x",
	} {
		c.partition("t", location, value)
	}
	wantLs(t, v, "db/t", "dt=bucket/", "dt=dots/", "dt=file/", "dt=good/", "dt=hdfs/", "dt=none/", "dt=outside/")
	for value, class := range map[string]table.Class{
		"good": "", "outside": table.ClassDenied, "bucket": table.ClassDenied, "dots": table.ClassDenied,
		"file": table.ClassUnsupported, "hdfs": table.ClassUnsupported, "none": table.ClassBroken,
	} {
		dir := "db/t/dt=" + value
		n := lookup(t, v, dir)
		if (class == "") != (n.Location().Bucket != "") {
			t.Errorf("%s: location %v", dir, n.Location())
		}
		_, err := list(t.Context(), v, dir)
		_, resolveErr := v.Resolve(t.Context(), dir+"/f")
		_, lookupErr := v.Lookup(t.Context(), dir+"/f")
		for what, err := range map[string]error{"ReadDir": err, "Resolve": resolveErr, "Lookup below": lookupErr} {
			var verdict *VerdictError
			if class == "" && err != nil || class != "" && (!errors.As(err, &verdict) || verdict.Class != class) {
				t.Errorf("%s of %s: %v, want %q", what, dir, err, class)
			}
		}
		st, err := v.Status(t.Context(), dir)
		if err != nil || st.Readable != (class == "") || st.Readable == (st.Reason != "") {
			t.Errorf("status of %s: %+v, %v", dir, st, err)
		}
	}
}

func TestRequestsForPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := catalogView(t, nil)
		c.table("t", "s3://b/t", "dt:string")
		for i := range 2501 {
			c.partition("t", fmt.Sprintf("s3://b/t/dt=%d", i), fmt.Sprint(i))
		}
		lookup(t, v, "db/t")
		wantRequests(t, "a look-up", c.requests(func() { lookup(t, v, "db/t/dt=7") }), map[string]int{"partition": 1})
		wantRequests(t, "of the store", s.requests(func() { lookup(t, v, "db/t/dt=8") }), map[string]int{})
		wantRequests(t, "again", c.requests(func() { lookup(t, v, "db/t/dt=7") }), map[string]int{})
		c.setOn(func(ctx context.Context, _ string) error { return slow(time.Second)(ctx, "", objectstore.Location{}) })
		wantRequests(t, "50 listings", c.requests(func() {
			var g sync.WaitGroup
			for range 50 {
				g.Go(func() {
					if n := len(ls(t, v, "db/t")); n != 2501 {
						t.Errorf("%d names, want 2501", n)
					}
				})
			}
			g.Wait()
		}), map[string]int{"partitions": 1})
		wantRequests(t, "look-ups after a listing", c.requests(func() {
			for i := range 2501 {
				lookup(t, v, fmt.Sprintf("db/t/dt=%d", i))
			}
		}), map[string]int{})
	})
}

func TestRequestsForTables(t *testing.T) {
	v, c, s := catalogView(t, nil)
	for i := range 300 {
		c.table(fmt.Sprintf("t%d", i), fmt.Sprintf("s3://b/t%d", i))
	}
	wantRequests(t, "ls -l of 300 tables", c.requests(func() {
		for _, name := range ls(t, v, "db") {
			lookup(t, v, "db/"+strings.TrimSuffix(name, "/"))
		}
	}), map[string]int{"tables": 1})
	wantRequests(t, "of the store", s.requests(func() { ls(t, v, "db") }), map[string]int{})
}

// The levels above partitions come from the catalog too.
func TestLevelsOfPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := catalogView(t, nil)
		c.table("t", "s3://b/t", "dt:string", "r:int")
		c.partition("t", "s3://o/1", "a", "1")
		c.partition("t", "s3://o/2", "a", table.HiveNull)
		c.partition("t", "s3://o/3", "b", "x") // no int: the catalog has it all the same
		s.set("3/f", "x")
		s.set("t/dt=a/README", "r")
		wantLs(t, v, "db/t", "dt=a/", "dt=b/")
		wantLs(t, v, "db/t/dt=a", "README", "r=1/", "r="+table.HiveNull+"/")
		wantLs(t, v, "db/t/dt=b", "r=x/")
		wantLs(t, v, "db/t/dt=b/r=x", "f")
		wantObject(t, v, "db/t/dt=a/README", "r")
		v.Refresh("")
		lookup(t, v, "db/t")
		wantRequests(t, "a path", c.requests(func() {
			lookup(t, v, "db/t/dt=b")
			lookup(t, v, "db/t/dt=b/r=x")
			lookup(t, v, "db/t/dt=b/r=x/f")
		}), map[string]int{"partitions": 1})
		pass(time.Second)
		wantAbsent(t, v, "db/t/dt=c")
		wantAbsent(t, v, "db/t/dt=a/r=2")
		if n := lookup(t, v, "db/t/dt=a"); !n.Registered {
			t.Error("dt=a is not told to be the catalog's")
		}
	})
}

func TestRule52LeadingKeysNarrowTheListing(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string", "r:string", "h:int")
	for _, dt := range []string{"a", "b"} {
		for _, r := range []string{"x", "y"} {
			c.partition("t", "s3://b/t/dt="+dt+"/r="+r+"/h=1", dt, r, "1")
			s.set("t/dt="+dt+"/r="+r+"/h=1/f", "x")
		}
	}
	lookup(t, v, "db/t")
	var listed []string
	s.setOn(func(_ context.Context, op string, loc objectstore.Location) error {
		listed = append(listed, op+" "+loc.Key)
		return nil
	})
	wantLs(t, v, "db/t/dt=a/r=y", "h=1/")
	if len(c.prefixes) != 1 || !slices.Equal(c.prefixes[0], []string{"a", "y"}) {
		t.Errorf("the catalog was asked for %q, want the partitions of a, y alone", c.prefixes)
	}
	if !slices.Equal(listed, []string{"list t/dt=a/r=y/"}) {
		t.Errorf("the store was asked %q", listed)
	}
	wantLs(t, v, "db/t/dt=a", "r=x/", "r=y/")
	if n := len(c.prefixes); n != 2 || !slices.Equal(c.prefixes[1], []string{"a"}) {
		t.Errorf("the catalog was asked for %q, want those of a last", c.prefixes)
	}
}

// What is cached is known by bucket and key: what is written through one name shows
// through every other at once.
func TestRule61PartitionsOfOneLocation(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string")
	c.table("other", "s3://b/other")
	c.partition("t", "s3://b/other", "1")
	c.partition("t", "s3://b/other/", "2")
	c.partition("t", "s3://b/t/dt=none", "none") // registered with no data
	s.set("other/f", "x")
	dirs := []string{"db/other", "db/t/dt=1", "db/t/dt=2"}
	for _, dir := range dirs {
		wantLs(t, v, dir, "f")
	}
	wantLs(t, v, "db/t/dt=none")
	target, err := v.Resolve(t.Context(), "db/t/dt=1/g")
	if err != nil {
		t.Fatal(err)
	}
	v.Wrote(s.set(target.Location.Key, "y"))
	for _, dir := range dirs {
		wantLs(t, v, dir, "f", "g")
	}
	v.Removed(s.unset("other/f"))
	for _, dir := range dirs {
		wantLs(t, v, dir, "g")
		wantAbsent(t, v, dir+"/f")
	}
}

// What a program spelt otherwise than Hive does is registered as it lies.
// No publish may follow one whose registration failed.
// registrations are what comes while a time passes.
// A store that answers does not make a silent catalog answer.
func TestTheSilenceOfACatalogIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, c, s := catalogView(t, nil)
		c.table("t", "s3://b/t", "dt:string")
		for i := range 5 {
			c.partition("t", fmt.Sprint("s3://b/t/dt=", i), fmt.Sprint(i))
			lookup(t, v, fmt.Sprint("db/t/dt=", i))
		}
		pass(6 * time.Second)
		c.setOn(func(ctx context.Context, _ string) error { return slow(time.Hour)(ctx, "", objectstore.Location{}) })
		begin := time.Now()
		for i := range 5 {
			dir := fmt.Sprint("db/t/dt=", i)
			s.set(fmt.Sprint("t/dt=", i, "/f"), "x")
			wantObject(t, v, dir+"/f", "x") // asks the store
		}
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("each waited for the catalog anew: %s", took)
		}
	})
}

func TestRule57NothingIsWrittenIntoAReadOnlyPartition(t *testing.T) {
	v, c, _ := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string")
	c.partitions["t"]["1"] = table.Partition{Values: []string{"1"}, Location: "s3://b/t/dt=1", ReadOnly: "lists of paths"}
	c.partition("t", "s3://b/t/dt=2", "2")
	var verdict *VerdictError
	if _, err := v.Resolve(t.Context(), "db/t/dt=1/f"); !errors.As(err, &verdict) || verdict.Class != table.ClassReadOnly || verdict.Reason != "lists of paths" {
		t.Errorf("Resolve: %v", err)
	}
	if _, err := v.Resolve(t.Context(), "db/t/dt=2/f"); err != nil {
		t.Errorf("its neighbour: %v", err)
	}
	wantLs(t, v, "db/t/dt=1")
	st, err := v.Status(t.Context(), "db/t/dt=1")
	if err != nil || !st.Readable || st.Writable || st.Reason != "lists of paths" {
		t.Errorf("status: %+v, %v", st, err)
	}
}

// A listing that is read slowly holds nothing up.
func TestNewDirectoriesBesidePartitionsOfTheCatalog(t *testing.T) {
	v, c, _ := catalogView(t, nil)
	c.table("s", "s3://b/s", "k:string")
	c.table("i", "s3://b/i", "k:int")
	c.partition("s", "s3://b/s/k=1", "1")
	c.partition("i", "s3://b/i/k=1", "1")
	for path, want := range map[string]error{
		"db/s/k=1": table.ErrEqual, "db/s/k=01": nil, "db/s/k=2": nil, "db/i/k=1": table.ErrEqual, "db/i/k=01": table.ErrEqual,
		"db/i/k=2": nil, "db/i/k=x": table.ErrName, "db/s/q=1": table.ErrName,
	} {
		if _, err := v.ResolveDirectory(t.Context(), path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	wantRequests(t, "of a text key", c.requests(func() { _, _ = v.ResolveDirectory(t.Context(), "db/s/k=3") }), map[string]int{"partition": 1})
	c.setOn(func(context.Context, string) error { return objectstore.ErrUnavailable })
	if _, err := v.ResolveDirectory(t.Context(), "db/s/k=4"); !errors.Is(err, objectstore.ErrUnavailable) {
		t.Errorf("the catalog does not answer: %v", err)
	}
}

func TestCase39AnErrorOfTheCatalogIsNeverAbsence(t *testing.T) {
	for _, fault := range []error{objectstore.ErrUnavailable, objectstore.ErrPermission} {
		v, c, s := catalogView(t, nil)
		c.table("t", "s3://b/t", "dt:string", "r:string")
		s.set("t/dt=1/r=1/f", "x")
		lookup(t, v, "db/t")
		c.setOn(func(context.Context, string) error { return fault })
		for _, path := range []string{"db/t/dt=1", "db/t/dt=1/r=1", "db/t/dt=1/r=1/f"} {
			if _, err := v.Lookup(t.Context(), path); !errors.Is(err, fault) || errors.Is(err, objectstore.ErrNotExist) {
				t.Errorf("Lookup(%s): %v, want %v", path, err, fault)
			}
		}
		if _, err := list(t.Context(), v, "db/t"); !errors.Is(err, fault) {
			t.Errorf("ReadDir: %v, want %v", err, fault)
		}
		c.setOn(nil)
		wantObject(t, v, "db/t/dt=1/r=1/f", "x")
	}
}

func TestEntriesOfPartitions(t *testing.T) {
	v, c, _ := catalogView(t, nil)
	c.table("t", "s3://b/t", "dt:string", "r:string")
	c.partition("t", "s3://b/x", "a", "b")
	b, n, err := v.EntryJSON(t.Context(), "db/t/dt=a/r=b")
	if err != nil || string(b) != `["a" "b"]` || n.Size != int64(len(b)) || n.Kind != KindEntry {
		t.Errorf("EntryJSON: %s, %+v, %v", b, n, err)
	}
	for _, path := range []string{"db/t/dt=a", "db/t/dt=a/r=c", "db/t/dt=a/r=b/x", "db/t/R=a/r=b"} {
		if _, _, err := v.EntryJSON(t.Context(), path); !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("EntryJSON(%s): %v, want ErrNotExist", path, err)
		}
	}
	var lines []string
	for line, err := range v.PartitionLines(t.Context(), "db/t") {
		lines = append(lines, fmt.Sprint(string(line), err))
	}
	if !slices.Equal(lines, []string{`["a" "b"]<nil>`}) {
		t.Errorf("lines: %q", lines)
	}
	for path, want := range map[string]error{"db/t": nil, "db": objectstore.ErrNotExist, "db/t/dt=a": objectstore.ErrNotExist, "db/none": objectstore.ErrNotExist} {
		if err := v.HasPartitionLines(t.Context(), path); !errors.Is(err, want) {
			t.Errorf("HasPartitionLines(%s): %v, want %v", path, err, want)
		}
	}
}

// A table's location that is a file is found by the first listing, and costs the
// listing of tables nothing.
func TestCase38ALocationThatIsAFile(t *testing.T) {
	v, c, s := catalogView(t, nil)
	c.table("t", "s3://b/file")
	c.table("empty", "s3://b/nothing")
	s.set("file", "x")
	_, err := list(t.Context(), v, "db/t")
	var verdict *VerdictError
	if !errors.As(err, &verdict) || verdict.Class != table.ClassBroken || !strings.Contains(verdict.Reason, "is a file") {
		t.Errorf("got %v", err)
	}
	wantLs(t, v, "db/empty")
}
