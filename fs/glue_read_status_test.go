package fs_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What status.json says of a catalog's tables and partitions, and what is allowed.

func TestRule58_StatusOfPartitions(t *testing.T) {
	t.Parallel()
	table := inCatalog()
	table.Files["dt=9/f"], table.Files["dt=x/f"], table.Files["plain/f"] = "nine", "no number", "no partition"
	table.Partitions = append(table.Partitions, mounttest.GluePartition{Values: []string{"4"}, Format: "orc", Files: map[string]string{"o": "ORC"}})
	l := mountGlue(t, mounttest.Options{}, table, twoKeys())
	s := catalogStatus(t, l, "db/t")
	text := "org.apache.hadoop.mapred.TextInputFormat"
	if string(s.MultiFormat) != "true" || len(s.Formats) != 2 || s.Formats[text] != 3 || s.Partitions != 4 {
		t.Errorf("status: hasMultiFormatPartitions %s, formats %v, %d partitions", s.MultiFormat, s.Formats, s.Partitions)
	}
	// dt=2 lies elsewhere: what is at its default path is none of the catalog's, and
	// is not seen, for the name is the partition's.
	if !slices.Equal(s.Unregistered, []string{"dt=9", "dt=x"}) || s.Unregistereds != 2 {
		t.Errorf("status: unregistered %q, %d", s.Unregistered, s.Unregistereds)
	}
	if !slices.Equal(s.WithoutObjects, []string{"dt=3"}) {
		t.Errorf("status: without objects %q, want dt=3", s.WithoutObjects)
	}
	if s.Kind != "hive" || s.PartitionsFrom != "catalog" || !s.Readable || !s.Writable || s.Format != "csv" {
		t.Errorf("status: %+v", s)
	}
	if !slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, "provider") }) {
		t.Errorf("status of a Hive table without a provider: notes %q", s.Notes)
	}
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3", "dt=4", "plain")
	if s := catalogStatus(t, l, "db/t/dt=2"); s.Location != "s3://"+l.Catalog.Buckets[1]+"/else/where/" || s.Format != "csv" {
		t.Errorf("status of a partition elsewhere: %+v", s)
	}
	if s := catalogStatus(t, l, "db/two"); string(s.MultiFormat) != "false" || s.Partitions != 1 || len(s.Formats) != 1 {
		t.Errorf("status of two keys: %+v", s)
	}
	if s := catalogStatus(t, l, "db/two/dt=1"); s.Partitions != 2 || s.MultiFormat != nil {
		t.Errorf("status of a directory above partitions: %+v", s)
	}
}

func TestRule58_NoPartitionsNoFormats(t *testing.T) {
	t.Parallel()
	l := mountManyPartitions(t, 0)
	if s := catalogStatus(t, l, "db/many"); string(s.MultiFormat) != "false" || len(s.Formats) != 0 || s.Partitions != 0 {
		t.Errorf("status without partitions: %+v", s)
	}
}

// TestStatusOfLinksAndKinds: why something is read-only, and where a link leads.
func TestStatusOfLinksAndKinds(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: []string{"--write=delete"}})
	other := l.Catalog.Server.In("111122223333")
	other.AddTable("theirs", l.Catalog.At(csvAt("orders", "s3://{1}/orders", `,"PartitionKeys":[{"Name":"k","Type":"string"}]`)))
	other.AddPartition("theirs", "orders", l.Catalog.At(`{"Values":["v"],"StorageDescriptor":{"Location":"s3://{1}/orders/k=v"}}`))
	other.AddTable("theirs", `{"Name":"again","TargetTable":{"CatalogId":"111122223333","DatabaseName":"theirs","Name":"orders"}}`)
	addEntries(l,
		`{"Name":"link","TargetTable":{"CatalogId":"111122223333","DatabaseName":"theirs","Name":"orders"}}`,
		`{"Name":"loop","TargetTable":{"CatalogId":"111122223333","DatabaseName":"theirs","Name":"again"}}`,
		csvAt("delta", "s3://{0}/delta", `,"Parameters":{"spark.sql.sources.provider":"DELTA"}`),
		`{"Name":"iceberg","TableType":"EXTERNAL_TABLE","Parameters":{"table_type":"ICEBERG","metadata_location":"s3://x/m"},"StorageDescriptor":{"Location":"`+l.Catalog.At("s3://{0}/iceberg")+`"}}`,
		csvAt("lf", "s3://{0}/lf", `,"IsRegisteredWithLakeFormation":true`),
		strings.Replace(csvAt("serde", "s3://{0}/serde", ""), "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", "com.example.OwnSerDe", 1),
	)
	putInBucket(t, l, 1, "orders/k=v/f", "theirs")
	for _, n := range []string{"delta", "iceberg", "lf", "serde"} {
		putInBucket(t, l, 0, n+"/f", "f of "+n)
	}
	l.Start()
	wantContent(t, l, "db/link/k=v/f", "theirs")
	wantNames(t, l, "db/link", "k=v")
	if s := catalogStatus(t, l, "db/link"); s.ResourceLink != "111122223333:theirs.orders" || !s.Readable || !s.Writable {
		t.Errorf("status of a link: %+v", s)
	}
	write(t, l, "db/link/k=v/new", "new")
	if got := inBucket(t, l, 1, "orders/k=v/new"); got != "new" {
		t.Errorf("written through a link: %q", got)
	}
	wantErrno(t, "a loop", listErr(l, "db/loop"), syscall.ELOOP)
	l.MustSh(`jq -e .Table.TargetTable db/loop.json db/link.json`)
	for name, c := range map[string]struct{ kind, reason string }{"delta": {"delta", "Delta"}, "iceberg": {"iceberg", "Iceberg"}} {
		wantContent(t, l, "db/"+name+"/f", "f of "+name)
		wantErrno(t, name+": create", openErr(l, "db/"+name+"/new", creat), syscall.EROFS)
		if s := catalogStatus(t, l, "db/"+name); !s.Readable || s.Writable || s.Kind != c.kind || !strings.Contains(s.Reason, c.reason) {
			t.Errorf("status of %s: %+v", name, s)
		}
	}
	wantContent(t, l, "db/serde/f", "f of serde")
	if s := catalogStatus(t, l, "db/serde"); !s.Readable || !slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, "com.example.OwnSerDe") }) {
		t.Errorf("status with a SerDe that is not known: %+v", s)
	}
	if s := catalogStatus(t, l, "db/lf"); s.LakeFormation == nil || !*s.LakeFormation {
		t.Errorf("status with Lake Formation: %+v", s)
	}
}

// TestRule43_AllowedLocationsOfACatalog: a table and a partition outside are refused,
// each alone.
func TestRule43_AllowedLocationsOfACatalog(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, csvAt("in", "s3://{0}/wh/in", `,"PartitionKeys":[{"Name":"k","Type":"string"}]`), csvAt("out", "s3://{0}/wh2/out", ""), csvAt("up", "s3://{0}/wh/../wh2/out", ""))
	for k, at := range map[string]string{"1": "s3://{0}/wh/in/k=1", "2": "s3://{1}/secret", "3": "s3://{0}/wh2/out", "4": "s3a://{0}/wh/in/../../wh2/out"} {
		l.Catalog.Server.AddPartition("db", "in", partitionAt(l, k, at))
	}
	putInBucket(t, l, 0, "wh/in/k=1/f", "allowed")
	putInBucket(t, l, 0, "wh2/out/f", "secret")
	putInBucket(t, l, 1, "secret/f", "secret")
	l.Start("--allow-location=" + l.Catalog.At("s3://{0}/wh"))
	wantNames(t, l, "db", "in", "in.json", "out", "out.json", "up", "up.json")
	wantNames(t, l, "db/in", "k=1", "k=2", "k=3", "k=4")
	wantContent(t, l, "db/in/k=1/f", "allowed")
	for _, dir := range []string{"db/out", "db/up", "db/in/k=2", "db/in/k=3", "db/in/k=4"} {
		wantErrno(t, dir+": list", listErr(l, dir), syscall.EACCES)
		wantErrno(t, dir+": look-up", statErr(l, dir+"/f"), syscall.EACCES)
		wantErrno(t, dir+": create", openErr(l, dir+"/new", creat), syscall.EACCES)
		want := "--allow-location"
		if dir == "db/up" || dir == "db/in/k=4" {
			want = `component ".."`
		}
		if s := catalogStatus(t, l, dir); s.Readable || s.Writable || !strings.Contains(s.Reason, want) {
			t.Errorf("%s: status %+v, want a reason with %s", dir, s, want)
		}
	}
	l.MustSh(`jq -e .Table.Name db/out.json; jq -e .Partition.Values db/in/k=2/.lakefs/entry.json; rm -f x; ls -l db db/in >/dev/null`)
	l.Remount("--allow-location="+l.Catalog.At("s3://{0}/wh"), "--allow-location="+l.Catalog.At("s3://{1}/"))
	wantContent(t, l, "db/in/k=2/f", "secret")
	wantErrno(t, "still outside", listErr(l, "db/out"), syscall.EACCES)
}

// TestRule43_APartitionMovedOutside is refused from the next load on.
func TestRule43_APartitionMovedOutside(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, csvAt("t", "s3://{0}/wh/t", `,"PartitionKeys":[{"Name":"k","Type":"string"}]`))
	l.Catalog.Server.AddPartition("db", "t", partitionAt(l, "1", "s3://{0}/wh/t/k=1"))
	putInBucket(t, l, 0, "wh/t/k=1/f", "allowed")
	putInBucket(t, l, 1, "secret/f", "secret")
	l.Start(append([]string{"--allow-location=" + l.Catalog.At("s3://{0}/wh/")}, shortTTL...)...)
	wantContent(t, l, "db/t/k=1/f", "allowed")
	moveOne(l, "s3://{1}/secret")
	l.Eventually("the refusal", seenWithin, func() bool { return errnoOf(listErr(l, "db/t/k=1")) == syscall.EACCES })
	l.Eventually("the file's refusal", seenWithin, func() bool { return errnoOf(openErr(l, "db/t/k=1/f", syscall.O_RDONLY)) == syscall.EACCES })
	moveOne(l, "s3://{0}/wh/t/k=1")
	l.Eventually("the file again", seenWithin, func() bool { got, err := l.ReadFile("db/t/k=1/f"); return err == nil && got == "allowed" })
}

func TestNarrowedCatalog(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	for _, db := range []string{"sales", "sales_eu", "hr"} {
		for _, n := range []string{"orders", "orders_old", "people"} {
			l.Catalog.Server.AddTable(db, l.Catalog.At(csvAt(n, "s3://{0}/"+db+"/"+n, "")))
			putInBucket(t, l, 0, db+"/"+n+"/f", db+"."+n)
		}
	}
	l.Start("--database=sales*", "--table=orders", "--table=p?ople")
	wantNames(t, l, "", "sales", "sales.json", "sales_eu", "sales_eu.json")
	wantNames(t, l, "sales", "orders", "orders.json", "people", "people.json")
	wantContent(t, l, "sales_eu/orders/f", "sales_eu.orders")
	for _, path := range []string{"hr", "hr.json", "hr/orders/f", "sales/orders_old", "sales/orders_old.json", "sales/orders_old/f"} {
		wantErrno(t, path, statErr(l, path), syscall.ENOENT)
	}
	for _, c := range l.Catalog.Server.Calls("GetTable", "GetTables", "GetDatabase") {
		if c.Database == "hr" || c.Table == "orders_old" {
			t.Errorf("%s asks for %s.%s, which is not served", c.Op, c.Database, c.Table)
		}
	}
}

func TestDiscoveredPartitions(t *testing.T) {
	t.Parallel()
	table := inCatalog()
	table.Files["dt=9/f"] = "nine\n"
	l := mountGlue(t, mounttest.Options{Flags: []string{"--discover"}}, table)
	wantNames(t, l, "db/t", "dt=1", "dt=2", "dt=3", "dt=9")
	wantContent(t, l, "db/t/dt=9/f", "nine\n")
	wantContent(t, l, "db/t/dt=2/b", "2,two\n")
	wantErrno(t, "the object at the default path of a partition elsewhere", statErr(l, "db/t/dt=2/old"), syscall.ENOENT)
	if s := catalogStatus(t, l, "db/t"); s.Unregistereds != 0 && !slices.Equal(s.Unregistered, []string{"dt=9"}) {
		t.Errorf("status: unregistered %q", s.Unregistered)
	}
	wantErrno(t, "the entry of what is not registered", statErr(l, "db/t/dt=9/.lakefs/entry.json"), syscall.ENOENT)
}

// TestCase45_BucketOfTheTableIsGone: its partitions lie elsewhere, and are there.
func TestCase45_BucketOfTheTableIsGone(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: []string{"--write=delete"}})
	addEntries(l, csvAt("t", "s3://no-such-bucket-of-ours/t", `,"PartitionKeys":[{"Name":"k","Type":"string"}]`))
	for k, at := range map[string]string{"1": "s3://{0}/one", "2": "s3://{1}/two/", "3": "s3://no-such-bucket-of-ours/t/k=3"} {
		l.Catalog.Server.AddPartition("db", "t", partitionAt(l, k, at))
	}
	putInBucket(t, l, 0, "one/f", "one")
	putInBucket(t, l, 1, "two/f", "two")
	l.Start()
	wantNames(t, l, "db/t", "k=1", "k=2", "k=3")
	for k, want := range map[string]string{"1": "one", "2": "two"} {
		wantNames(t, l, "db/t/k="+k, "f")
		wantContent(t, l, "db/t/k="+k+"/f", want)
		write(t, l, "db/t/k="+k+"/new", want)
	}
	if err := listErr(l, "db/t/k=3"); err == nil {
		t.Error("a partition in a bucket that is not there lists as empty")
	}
	if got := l.MustSh(`cat db/t/k=[12]/f; ls -l db/t | wc -l`); got != "onetwo4\n" {
		t.Errorf("cat and ls: %q", got)
	}
	if s := catalogStatus(t, l, "db/t"); s.Partitions != 3 {
		t.Errorf("status: %+v", s)
	}
}

// TestCase45_TwoPartitionsOnOneLocation show the same files, whoever writes.
func TestCase45_TwoPartitionsOnOneLocation(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: append([]string{"--write=delete"}, longTTL...)})
	addEntries(l, csvAt("t", "s3://{0}/t", `,"PartitionKeys":[{"Name":"k","Type":"string"}]`), csvAt("u", "s3://{0}/t/k=1", ""))
	for k, at := range map[string]string{"1": "s3://{0}/t/k=1", "2": "s3://{0}/t/k=1/"} {
		l.Catalog.Server.AddPartition("db", "t", partitionAt(l, k, at))
	}
	putInBucket(t, l, 0, "t/k=1/f", "one")
	putInBucket(t, l, 0, "t/k=2/old", "at a default path")
	l.Start()
	dirs := []string{"db/t/k=1", "db/t/k=2", "db/u"}
	for _, dir := range dirs {
		wantNames(t, l, dir, "f")
		wantContent(t, l, dir+"/f", "one")
	}
	for i, dir := range dirs { // the mount's own changes show at once, wherever the location is seen
		name := fmt.Sprint("by", i)
		write(t, l, dir+"/"+name, dir)
		write(t, l, dir+"/f", "over "+dir)
		for _, other := range dirs {
			wantContent(t, l, other+"/"+name, dir)
			wantContent(t, l, other+"/f", "over "+dir)
		}
	}
	wantErrno(t, "unlink", unlink(l, "db/t/k=2/by0"), 0)
	for _, dir := range dirs {
		wantNames(t, l, dir, "by1", "by2", "f")
	}
	if got := inBucket(t, l, 0, "t/k=2/old"); got != "at a default path" {
		t.Errorf("at the default path of a partition elsewhere: %q", got)
	}
}
