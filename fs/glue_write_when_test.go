package fs_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// When a partition is registered: when data of it are published, however that comes
// about, and at no other time.

func TestWhatRegisters(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		script string
		want   bool
	}{
		"an empty file":           {`: > dt=7/f`, true},
		"touch":                   {`touch dt=7/f`, true},
		"fsync":                   {`dd if=/dev/zero of=dt=7/f bs=10 count=1 conv=fsync status=none`, true},
		"a file in a directory":   {`mkdir -p dt=7/a/b; echo 1 > dt=7/a/b/f`, true},
		"a renamed hidden file":   {`echo 1 > dt=7/_f; mv dt=7/_f dt=7/f`, true},
		"out of a hidden one":     {`mkdir dt=7/_d; echo 1 > dt=7/_d/f; mv dt=7/_d/f dt=7/f`, true},
		"from the table":          {`echo 1 > loose; mv loose dt=7/f`, true},
		"a copy in the store":     {`cp dt=1/a dt=7/`, true},
		"a descriptor of a shell": {`exec 3> dt=7/f; echo 1 >&3; exec 3>&-`, true},
		"a child's end":           {`(echo 1; sleep 0.1; echo 2) > dt=7/f`, true},
		"a mapping": {`python3 -c 'import mmap,os
f=os.open("dt=7/f",os.O_RDWR|os.O_CREAT,0o644); os.ftruncate(f,4096); m=mmap.mmap(f,4096); os.close(f); m[:2]=b"hi"; m.close()'`, true},
		"hidden files":   {`echo 1 > dt=7/_f; echo 1 > dt=7/.f; mkdir dt=7/_d; echo 1 > dt=7/_d/f`, false},
		"directories":    {`mkdir dt=7/a dt=7/b; chmod 700 dt=7; touch dt=7`, false},
		"a removed file": {`exec 3> dt=7/f; echo 1 >&3; rm dt=7/f; exec 3>&-`, false},
		"a killed writer": {`timeout -s KILL 0.3 sh -c 'exec 3> dt=7/f; echo 1 >&3; exec sleep 60' || true
until jq -e '.staged[] | select(.state == "torn")' dt=7/.lakefs/status.json >/dev/null; do sleep 0.02; done`, false},
		"a file of the table":  {`echo 1 > loose; mkdir _free; echo 1 > _free/f`, false},
		"a look":               {`stat dt=7; ls dt=7; ! cat dt=7/f 2>/dev/null; find . >/dev/null; ! stat dt=8 2>/dev/null`, false},
		"status and the entry": {`cat dt=7/.lakefs/status.json .lakefs/partitions.jsonl >/dev/null`, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := mountGlue(t, mounttest.Options{Flags: []string{"--write=delete"}}, inCatalog())
			l.MustSh(`cd db/t; mkdir dt=7; ` + tt.script)
			l.Unmount() // which ends what RELEASE began
			want := map[string]string{}
			if tt.want {
				want["t: 7"] = "s3://{0}/" + l.Key("db/t") + "/dt=7"
			}
			wantLocations(t, l, want)
		})
	}
}

// TestParquetRegistersWhenItIsWhole: an empty file in a Parquet partition stays staged.
func TestParquetRegistersWhenItIsWhole(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, parquetTable())
	writeFile(t, l.State+"/whole", mounttest.Parquet(t, 3))
	l.MustSh(`mkdir db/p/dt=a; touch db/p/dt=a/f; echo no > db/p/dt=a/g || true`)
	wantRegistered(t, l, "p", "b")
	l.MustSh(`cat $HOME/whole > db/p/dt=a/f`)
	wantRegistered(t, l, "p", "a", "b")
}

// TestTablesWithoutKeysRegisterNothing whatever their directories are called.
func TestTablesWithoutKeysRegisterNothing(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, mounttest.GlueTable{Table: text("flat", nil)})
	l.MustSh(`cd db/flat; mkdir -p dt=7/k=x; echo 1 > f; echo 1 > dt=7/f; echo 1 > dt=7/k=x/f`)
	wantNothingRegistered(t, l)
}

// TestStatusOfANewDirectory: one that is the mount's alone tells what is staged in it.
func TestStatusOfANewDirectory(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, parquetTable())
	l.MustSh(`mkdir db/p/dt=a db/p/dt=b/sub; echo no > db/p/dt=a/f || true`)
	for dir, staged := range map[string]string{"db/p/dt=a": "1", "db/p/dt=b/sub": "0"} {
		if got := l.MustSh(`cd ` + dir + `/.lakefs; jq -c '[.catalog.kind, .catalog.writable, (.staged|length)]' status.json`); got != `["hive",true,`+staged+"]\n" {
			t.Errorf("%s: status %s", dir, got)
		}
	}
	wantErrno(t, "status of what is not there", statErr(l, "db/p/dt=c/.lakefs/status.json"), syscall.ENOENT)
}

// TestCase74_PublishBesideNULL: a value that keeps the catalog from filtering keeps
// nobody from writing.
func TestCase74_PublishBesideNULL(t *testing.T) {
	t.Parallel()
	table := twoKeys()
	table.Partitions = append(table.Partitions, mounttest.GluePartition{Values: []string{"__HIVE_DEFAULT_PARTITION__", "n"}, Files: map[string]string{"f": "null\n"}})
	l := mountGlue(t, mounttest.Options{}, table)
	l.MustSh(`cd db/two; mkdir -p dt=9/k=z dt=__HIVE_DEFAULT_PARTITION__/k=z; echo 9 > dt=9/k=z/f; echo n > dt=__HIVE_DEFAULT_PARTITION__/k=z/f; echo more >> dt=__HIVE_DEFAULT_PARTITION__/k=n/f`)
	wantRegistered(t, l, "two", "1/x", "1/y", "9/z", "__HIVE_DEFAULT_PARTITION__/n", "__HIVE_DEFAULT_PARTITION__/z")
	wantNames(t, l, "db/two", "dt=1", "dt=9", "dt=__HIVE_DEFAULT_PARTITION__")
	if got := l.MustSh(`cat db/two/dt=_*/*/f`); got != "null\nmore\nn\n" {
		t.Errorf("%q", got)
	}
}

// TestCase47_WritesIntoOddSpellings: a partition that is registered as 07 is written
// as such; 7 beside it is the same value.
func TestCase47_WritesIntoOddSpellings(t *testing.T) {
	t.Parallel()
	table := inCatalog()
	table.Partitions = append(table.Partitions, mounttest.GluePartition{Values: []string{"07"}, Files: map[string]string{"f": "seven\n"}})
	l := mountGlue(t, mounttest.Options{}, table)
	wantNames(t, l, "db/t", "dt=07", "dt=1", "dt=2", "dt=3")
	l.MustSh(`cd db/t; echo more >> dt=07/f; echo g > dt=07/g; ! mkdir dt=7 2>/dev/null; ! stat dt=7 2>/dev/null; ! sh -c 'echo x > dt=7/f' 2>/dev/null`)
	wantStore(t, l, "db/t/dt=07/f", "seven\nmore\n")
	wantRegistered(t, l, "t", "07", "1", "2", "3")
	if files := storedTree(t, l, "db/t/dt=7"); len(files) != 0 {
		t.Errorf("dt=7 has %d files", len(files))
	}
}

// TestRecoveryWithoutWrites: a mount that may not write finishes nothing of an earlier
// one, in the store or the catalog, and the next that may does.
func TestRecoveryWithoutWrites(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"PutObject", registration} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			l := mountGlue(t, mounttest.Options{Faulty: true, Flags: []string{"--io-timeout=30s"}}, inCatalog())
			l.MustSh(`mkdir db/t/dt=7`)
			catalog := l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: gluetest.Hang()})
			done := make(chan mounttest.Result, 1)
			hang := func() { catalog.Wait(t, 1) }
			if at == "PutObject" {
				held := l.Proxy.Add(faulty.Rule{Op: at, If: func(q *faulty.Request) bool { return strings.HasSuffix(q.Key, "dt=7/f") }, Fault: faulty.Hang{}})
				hang = func() { held.Wait(t, 1) }
			}
			go func() { done <- l.Sh(`echo 7 > db/t/dt=7/f`) }()
			hang()
			l.Kill()
			<-done
			l.Proxy.Clear()
			l.Catalog.Server.Clear()
			l.Catalog.Server.Reset()
			before := bothBuckets(t, l)
			l.Start("--read-only")
			l.MustSh(`ls -R db >/dev/null; cat db/t/dt=1/a`)
			l.Unmount()
			wantUntouched(t, l, before)
			l.Start()
			recovered(t, l)
			wantStore(t, l, "db/t/dt=7/f", "7\n")
			wantRegistered(t, l, "t", "1", "2", "3", "7")
		})
	}
}
