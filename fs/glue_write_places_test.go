package fs_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// Where what is written goes: other buckets, other accounts' tables, templates, and
// places that two directories share.

// TestCase45_LargeFilesBetweenBuckets: files of several parts that are copied, moved,
// appended to and changed across buckets.
func TestCase45_LargeFilesBetweenBuckets(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete"}}, inCatalog())
	const size = 40 << 20
	big := numbered('b', size)
	writeFile(t, l.State+"/big", big)
	for _, step := range []struct {
		script, want string
		bucket       int
		key          string
	}{
		{`cp $HOME/big dt=2/big`, big, 1, "else/where/big"},
		{`cp dt=2/big dt=1/copy`, big, 0, "dt=1/copy"},
		{`mv dt=1/copy dt=2/moved`, big, 1, "else/where/moved"},
		{`printf more >> dt=2/moved`, big + "more", 1, "else/where/moved"},
		{`printf X | dd of=dt=2/moved bs=1 seek=20000000 conv=notrunc status=none`, big[:20000000] + "X" + big[20000001:] + "more", 1, "else/where/moved"},
		{`truncate -s 30000000 dt=2/moved`, big[:20000000] + "X" + big[20000001:30000000], 1, "else/where/moved"},
		{`mkdir dt=7; cp dt=2/big dt=7/big`, big, 0, "dt=7/big"},
		{`mkdir dt=2/sub; cp dt=2/big dt=2/sub/; mv dt=2/sub dt=7/sub`, big, 0, "dt=7/sub/big"},
	} {
		l.MustSh(`cd db/t; ` + step.script)
		key := step.key
		if step.bucket == 0 {
			key = l.Key("db/t/" + key)
		}
		if got := inBucket(t, l, step.bucket, key); got != step.want {
			t.Errorf("%s: %s has %d bytes, %s; want %d", step.script, key, len(got), brief(got), len(step.want))
		}
	}
	if got := l.MustSh(`cd db/t; cmp dt=2/big dt=7/big && cmp dt=7/sub/big $HOME/big && ls dt=1 dt=2`); got != "dt=1:\na\n\ndt=2:\nb\nbig\nmoved\n" {
		t.Errorf("the mount has %q", got)
	}
	wantRegistered(t, l, "t", "1", "2", "3", "7")
}

// TestCreateLevelInOtherBuckets: what this mount made it may change, across buckets and
// after a remount; what others made it may not.
func TestCreateLevelInOtherBuckets(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{Flags: []string{"--write=create"}}, inCatalog())
	l.MustSh(`cd db/t; echo 1 > dt=2/mine; mkdir dt=7; echo 7 > dt=7/mine`)
	l.Remount()
	l.MustSh(`cd db/t; echo 2 >> dt=2/mine; mv dt=7/mine dt=2/seven; rm dt=2/mine; mv dt=2/seven dt=1/seven`)
	for path, flags := range map[string]int{"dt=1/a": syscall.O_WRONLY | syscall.O_TRUNC, "dt=2/b": syscall.O_WRONLY | syscall.O_APPEND} {
		wantErrno(t, "open "+path, openErr(l, "db/t/"+path, flags), syscall.EPERM)
		wantErrno(t, "unlink "+path, unlink(l, "db/t/"+path), syscall.EPERM)
		wantErrno(t, "rename "+path, rename(l, "db/t/"+path, "db/t/dt=7/x"), syscall.EPERM)
		wantErrno(t, "rename over "+path, rename(l, "db/t/dt=1/seven", "db/t/"+path), syscall.EPERM)
	}
	wantStore(t, l, "db/t/dt=1/seven", "7\n")
	if got := inBucket(t, l, 1, "else/where/b"); got != "2,two\n" {
		t.Errorf("another's object is %q", got)
	}
}

// TestPublishThroughALink: a partition of another account's table is registered there,
// under the target's name.
func TestPublishThroughALink(t *testing.T) {
	t.Parallel()
	const other = "111122223333"
	l := newGlueLake(t, mounttest.Options{})
	theirs := l.Catalog.Server.In(other)
	theirs.AddTable("lake", l.Catalog.At(keyed("orders", "s3://{1}/orders", "k")))
	addEntries(l, `{"Name":"link","TargetTable":{"CatalogId":"`+other+`","DatabaseName":"lake","Name":"orders"}}`)
	l.Catalog.Server.AddDatabase(`{"Name":"shared","TargetDatabase":{"CatalogId":"` + other + `","DatabaseName":"lake"}}`)
	l.Start()
	l.MustSh(`mkdir db/link/k=a; echo a > db/link/k=a/f; mkdir shared/orders/k=b; echo b > shared/orders/k=b/f`)
	for _, c := range l.Catalog.Server.Calls(registration) {
		if c.Catalog != other || c.Database != "lake" || c.Table != "orders" {
			t.Errorf("registered in %s, %s.%s", c.Catalog, c.Database, c.Table)
		}
	}
	wantLocations(t, l, map[string]string{"orders: a": "s3://{1}/orders/k=a", "orders: b": "s3://{1}/orders/k=b"})
	if a, b := inBucket(t, l, 1, "orders/k=a/f"), inBucket(t, l, 1, "orders/k=b/f"); a != "a\n" || b != "b\n" {
		t.Errorf("the objects are %q and %q", a, b)
	}
	l.Remount()
	if got := l.MustSh(`cat db/link/*/f shared/orders/*/f`); got != "a\nb\na\nb\n" {
		t.Errorf("after a remount: %q", got)
	}
}

// TestCase50_WritesByATemplate: a projection's template says where a value's files go,
// and nothing is registered.
func TestCase50_WritesByATemplate(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: []string{"--write=delete"}})
	addEntries(l, csvAt("p", "s3://{0}/unused", `,"PartitionKeys":[{"Name":"dt","Type":"date"},{"Name":"id","Type":"string"}],"Parameters":{"projection.enabled":"true",
"projection.dt.type":"date","projection.dt.format":"yyyy-MM-dd","projection.dt.range":"2026-01-01,2026-01-31","projection.id.type":"injected",
"storage.location.template":"s3://{1}/by/${id}/on/${dt}/"}`))
	l.Start()
	l.MustSh(`cd db/p; echo 1 > dt=2026-01-02/id=x/f; mkdir dt=2026-01-02/id=x/sub; echo 2 > dt=2026-01-02/id=x/sub/g; cp -r dt=2026-01-02/id=x/. dt=2026-01-03/id=y/; mv dt=2026-01-03/id=y/f dt=2026-01-31/id=x/`)
	for key, want := range map[string]string{
		"by/x/on/2026-01-02/f": "1\n", "by/x/on/2026-01-02/sub/g": "2\n", "by/y/on/2026-01-03/sub/g": "2\n", "by/x/on/2026-01-31/f": "1\n", "by/y/on/2026-01-03/f": "absent",
	} {
		if got := inBucket(t, l, 1, key); got != want {
			t.Errorf("%s has %q, want %q", key, got, want)
		}
	}
	wantErrno(t, "out of range", openErr(l, "db/p/dt=2026-02-01/id=x/f", creat), syscall.ENOENT)
	wantErrno(t, "mkdir out of range", mkdir(l, "db/p/dt=2026-02-01"), syscall.EINVAL)
	server, bucket := l.Bucket()
	if keys := server.Keys(t, bucket, ""); len(keys) != 0 {
		t.Errorf("the table's own location has %q", keys)
	}
	wantNothingRegistered(t, l)
}

// TestRule61_OneLocationOfTwoTables: what is written by one shows in the other at once,
// and a file that both change at once is whole.
func TestRule61_OneLocationOfTwoTables(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{Flags: []string{"--write=delete", "--metadata-ttl=5m", "--negative-ttl=5m"}})
	addEntries(l, keyed("a", "s3://{0}/a", "k"), csvAt("b", "s3://{0}/b", ""))
	l.Catalog.Server.AddPartition("db", "a", l.Catalog.At(`{"Values":["b"],"StorageDescriptor":{"Location":"s3://{0}/b"}}`))
	putInBucket(t, l, 0, "b/f", "1\n")
	l.Start()
	l.MustSh(`cd db; cat a/k=b/f b/f; ls a/k=b b; test ! -e b/new; test ! -e a/k=b/new`)
	l.MustSh(`cd db; echo new > a/k=b/new`)
	wantNames(t, l, "db/b", "f", "new")
	wantContent(t, l, "db/b/new", "new\n")
	l.MustSh(`cd db; echo 2 > b/f; mv b/new b/newer`)
	wantContent(t, l, "db/a/k=b/f", "2\n")
	wantNames(t, l, "db/a/k=b", "f", "newer")
	l.MustSh(`cd db; rm a/k=b/newer; (for i in $(seq 20); do echo a$i >> a/k=b/f; done) & for i in $(seq 20); do echo b$i >> b/f; done; wait`)
	if got := inBucket(t, l, 0, "b/f"); strings.Count(got, "\n") != 41 {
		t.Errorf("the object is %q, want 41 lines", got)
	}
	wantNames(t, l, "db/b", "f")
	// The same key by two names: nothing is lost by a move onto itself.
	err := rename(l, "db/b/f", "db/a/k=b/f")
	if got := inBucket(t, l, 0, "b/f"); strings.Count(got, "\n") != 41 {
		t.Errorf("a move onto itself (%v) left %q", err, got)
	}
}

// TestDeepLocations: a partition that lies deeper than its keys, as writers that do
// not escape values leave it, is written where it lies.
func TestDeepLocations(t *testing.T) {
	t.Parallel()
	l := newGlueLake(t, mounttest.Options{})
	addEntries(l, keyed("t", "s3://{0}/t/", "k"))
	l.Catalog.Server.AddPartition("db", "t", l.Catalog.At(`{"Values":["a/b:c=d%"],"StorageDescriptor":{"Location":"s3://{0}/t/k=a/b:c=d%/"}}`))
	putInBucket(t, l, 0, "t/k=a/b:c=d%/old", "old\n")
	l.Start()
	wantNames(t, l, "db/t", "k=a%2Fb%3Ac%3Dd%25")
	l.MustSh(`echo new > db/t/k=a%2Fb%3Ac%3Dd%25/new; mkdir db/t/k=a; echo a > db/t/k=a/f`)
	for key, want := range map[string]string{"t/k=a/b:c=d%/new": "new\n", "t/k=a/f": "a\n"} {
		if got := inBucket(t, l, 0, key); got != want {
			t.Errorf("%s has %q, want %q", key, got, want)
		}
	}
	wantLocations(t, l, map[string]string{"t: a": "s3://{0}/t/k=a"})
	wantNames(t, l, "db/t", "k=a", "k=a%2Fb%3Ac%3Dd%25")
}

// TestManyNewPartitionsAtOnce: each of a hundred is registered once, while the catalog
// throttles.
func TestManyNewPartitionsAtOnce(t *testing.T) {
	t.Parallel()
	const n = 100
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	throttled := l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Times: 4, Fault: gluetest.Throttle()})
	l.MustSh(fmt.Sprintf(`cd db/t; seq 10 %d | xargs -P 16 -I{} sh -c 'mkdir dt={} && echo {} > dt={}/f'`, 9+n))
	if all := l.Catalog.Server.Requests()[registration]; all > n+4 || throttled.Hits() != 4 {
		t.Errorf("%d registrations, want %d at most and 4 that were throttled, of which there are %d", all, n, throttled.Hits())
	}
	if got := l.MustSh(`cd db/t; ls | wc -l; cat dt=??/f dt=???/f | wc -l`); got != fmt.Sprintf("%d\n%d\n", n+3, n) {
		t.Errorf("the mount has %q", got)
	}
	registered := make(map[string]int)
	for _, c := range l.Catalog.Server.Calls(registration)[4:] { // behind those that were throttled: one goes at a time
		list, _ := c.Input["PartitionInputList"].([]any)
		for _, p := range list {
			registered[fmt.Sprint(p.(map[string]any)["Values"])]++
		}
	}
	for values, times := range registered {
		if times != 1 {
			t.Errorf("%s was registered %d times", values, times)
		}
	}
	if len(registered) != n {
		t.Errorf("%d were registered, want %d", len(registered), n)
	}
}
