// Package spark_test holds the mount to Spark and Hadoop's FileOutputCommitter, which
// write tables through it by path, in a folder and in a bucket. `make test-spark` runs
// it. All is done in a plain directory too: what is asserted is what Spark does there.
package spark_test

import (
	"crypto/sha512"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/folderwatch"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// lakeTimeout bounds all of the test.
const lakeTimeout = 30 * time.Minute

// tables are those that lie in each place.
func tables() []mounttest.Table {
	var all []mounttest.Table
	for _, format := range []string{"parquet", "csv", "json"} {
		for _, algorithm := range []string{"1", "2"} {
			all = append(all, mounttest.Table{Name: format + algorithm, Format: format})
		}
		all = append(all, mounttest.Table{Name: "flat_" + format, Format: format})
	}
	for _, name := range []string{"one", "two", "replaced", "failed", "flat_large", "refused", "killed"} {
		all = append(all, mounttest.Table{Name: name})
	}
	for i := range all {
		all[i].Database = "spark"
		if all[i].Keys = []string{"k"}; strings.HasPrefix(all[i].Name, "flat") {
			all[i].Keys, all[i].Columns = nil, []string{"id:bigint", "name:string", "k:string"}
		}
	}
	return all
}

// world is what the tests run in.
type world struct {
	spark, arrow *driver
	places       []*place
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	if os.Getenv("MOUNTTEST_SPARK") == "" {
		t.Skip("make test-spark runs it: its download is several hundred megabytes")
	}
	folder := mounttest.Mount(t, mounttest.Options{Tables: tables(), Timeout: lakeTimeout})
	bucket := mounttest.Mount(t, mounttest.Options{Tables: tables(), Timeout: lakeTimeout, Faulty: true})
	server, name := bucket.Bucket()
	w.arrow = start(t, os.Environ(), mounttest.Venv(t, "python3", "pyarrow"), "read.py")
	w.places = []*place{
		{name: "directory", root: filepath.Join(t.TempDir(), "spark"), arrow: w.arrow},
		{name: "folder", root: folder.Path("spark"), lake: folder, arrow: w.arrow, data: "_data/spark", watch: folderwatch.Watch(t, folder.Source)},
		{name: "bucket", root: bucket.Path("spark"), lake: bucket, arrow: w.arrow, data: bucket.Key("spark"), watch: folderwatch.Watch(t, server.Dir(name))},
	}
	w.spark = session(t)
	return w
}

// session starts a Spark session. Those who use it later end before it.
func session(t *testing.T) *driver {
	t.Helper()
	python := filepath.Join(os.Getenv("MOUNTTEST_SPARK"), "venv", "bin", "python3") // as tools/spark.sh makes it
	env := []string{"PATH=" + os.Getenv("PATH"), "JAVA_HOME=" + os.Getenv("JAVA_HOME"), "LC_ALL=C.UTF-8", "HOME=" + t.TempDir(), "SPARK_LOCAL_IP=127.0.0.1"}
	return start(t, env, python, "session.py", t.TempDir())
}

func (w *world) table(p *place, name, format string) *tab {
	return &tab{place: p, spark: w.spark, name: name, format: format, flat: strings.HasPrefix(name, "flat")}
}

func TestSpark(t *testing.T) {
	w := newWorld(t)
	for _, p := range w.places {
		t.Run(p.name, func(t *testing.T) {
			for _, format := range []string{"parquet", "csv", "json"} {
				for _, algorithm := range []string{"1", "2"} {
					t.Run(format+algorithm, func(t *testing.T) { modes(t, w.table(p, format+algorithm, format), algorithm) })
				}
				t.Run("flat_"+format, func(t *testing.T) { flat(t, w.table(p, "flat_"+format, format)) })
			}
			t.Run("together", func(t *testing.T) { w.together(t, p) })
			t.Run("replaced", func(t *testing.T) { replaced(t, w.table(p, "replaced", "parquet")) })
			t.Run("failed", func(t *testing.T) { failed(t, w.table(p, "failed", "parquet")) })
			t.Run("large", func(t *testing.T) { large(t, w.table(p, "flat_large", "parquet")) })
			t.Run("refused", func(t *testing.T) { refused(t, w.table(p, "refused", "parquet")) })
		})
	}
	t.Run("locations", w.locations)
	t.Run("killed", w.killed)
	t.Run("unmounted", w.unmounted)
}

// modes writes a partitioned table in each mode.
func modes(t *testing.T, b *tab, algorithm string) {
	t.Helper()
	j := b.job("write")
	j.Algorithm = algorithm
	j.Mode, j.Rows = "overwrite", rows(0, "plain", "a b", "x/y", "12:30", nil, "plain", "a b", "x/y", "12:30", "gone")
	b.write(t, j)
	j.Mode, j.Rows = "append", rows(100, "plain", "a b", "x/y", "new")
	b.write(t, j)
	j.Mode, j.Rows, j.Dynamic = "overwrite", rows(200, "x/y", "12:30", "x/y", "50%"), true
	b.write(t, j)
	j.Mode, j.Rows, j.Dynamic = "overwrite", rows(300, "plain", "x/y", "plain", "späť"), false
	b.write(t, j)
}

// flat writes a table without partitions.
func flat(t *testing.T, b *tab) {
	t.Helper()
	j := b.job("write")
	j.Algorithm = "1"
	for i, mode := range []string{"overwrite", "append", "overwrite"} {
		j.Mode, j.Rows = mode, rows(100*i, "a", "b", "c", "d")
		b.write(t, j)
	}
}

// together writes two tables at once, in one session.
func (w *world) together(t *testing.T, p *place) {
	t.Helper()
	one, two := w.table(p, "one", "parquet"), w.table(p, "two", "parquet")
	for i, mode := range []string{"overwrite", "append", "overwrite"} {
		both := job{Do: "together"}
		for _, b := range []*tab{one, two} {
			j := b.job("write")
			j.Algorithm, j.Mode, j.Rows = "1", mode, rows(1000*i, b.name, "both", b.name, "both")
			both.Jobs = append(both.Jobs, j)
			b.expect(j)
		}
		p.lookAway()
		w.spark.must(t, both, nil)
		one.checkRows(t)
		two.checkRows(t)
	}
}

// replaced is a part that Spark wrote and another tool replaced: case 76. In a plain
// directory Hadoop's checksum is left beside it, and Spark refuses the new part.
func replaced(t *testing.T, b *tab) {
	t.Helper()
	j := b.job("write")
	j.Algorithm, j.Mode, j.Rows = "1", "overwrite", rows(0, "a")
	b.write(t, j)
	part := b.names(t, b.name)[1]
	replaced := func(how string, ids int, replace func(content string)) {
		replace(mounttest.Parquet(t, ids))
		var got []row
		err := b.spark.try(b.job("read"), &got)
		switch {
		case b.lake == nil:
			if err == nil || !strings.Contains(err.Error(), "ChecksumException") {
				t.Errorf("%s: Spark reads a part beside another's checksum: %v, %v", how, got, err)
			}
		case err != nil || len(got) != ids:
			t.Errorf("%s: Spark reads %d rows of the part, want %d: %v", how, len(got), ids, err)
		}
	}
	replaced("cp through the mount", 10, func(content string) { b.copyOver(t, part, content) })
	if b.lake == nil {
		return
	}
	j.Rows = rows(20, "a")
	b.want = nil
	b.write(t, j)
	part = b.names(t, b.name)[1]
	replaced("another program in the store", 11, func(content string) {
		b.lake.PutStored("spark/"+b.name+"/"+part, content)
		if r := b.lake.Run("refresh", b.lake.Path("spark/"+b.name)); r.Code != 0 {
			t.Fatalf("refresh: exit code %d\n%s", r.Code, r.Err)
		}
	})
	for _, name := range b.names(t, b.name) {
		if !final.MatchString(name) {
			t.Errorf("the store has %q", name)
		}
	}
}

// failed is a job that fails when it has written some of its files.
func failed(t *testing.T, b *tab) {
	t.Helper()
	j := b.job("write")
	j.Algorithm, j.Mode, j.Rows = "1", "overwrite", rows(0, "a", "b")
	b.write(t, j)
	before := b.names(t, b.name)
	b.lookAway()
	j.Do, j.Mode, j.Rows = "fail", "append", rows(100, "a", "b", "a", "new")
	b.spark.must(t, j, nil)
	b.checkRows(t)
	b.checkStored(t, before, b.names(t, b.name))
}

// large is a file that goes to a bucket in parts.
func large(t *testing.T, b *tab) {
	t.Helper()
	const count = 300_000
	b.lookAway()
	j := b.job("large")
	j.Algorithm, j.Mode, j.Count = "1", "overwrite", count
	b.spark.must(t, j, nil)
	var got []row
	read := b.stored(b.name)
	read.Format, read.Flat, read.Count = b.format, true, count
	b.arrow.must(t, read, &got)
	last := fmt.Sprintf("%x", sha512.Sum512([]byte(strconv.Itoa(count-1))))
	if want := (row{float64(count), last, nil}); len(got) != 1 || got[0] != want {
		t.Errorf("pyarrow reads in the store %v, want %v", got, want)
	}
	b.checkSeen(t, b.names(t, b.name))
	if b.lake == nil || b.lake.Proxy == nil {
		return
	}
	counts := b.lake.Proxy.Counts()
	if counts["CreateMultipartUpload"] != 1 || counts["CompleteMultipartUpload"] != 1 || counts["CopyObject"]+counts["UploadPartCopy"] > 0 {
		t.Errorf("requests: %v", counts)
	}
}

// refused is an overwrite of what others made, which --write does not allow: Spark
// removes first, and fails before it writes.
func refused(t *testing.T, b *tab) {
	t.Helper()
	if b.lake == nil {
		return
	}
	const name = "k=a/theirs.parquet"
	theirs := mounttest.Parquet(t, 3)
	b.lake.PutStored("spark/refused/"+name, theirs)
	j := b.job("write")
	j.Algorithm, j.Mode, j.Rows = "1", "append", rows(100, "a", "b")
	b.spark.must(t, j, nil)
	j.Mode = "overwrite"
	if err := b.spark.try(j, nil); err == nil || !strings.Contains(err.Error(), "Unable to clear") {
		t.Errorf("Spark overwrites what it may not remove: %v", err)
	}
	if left, err := b.lake.Stored("spark/refused/" + name); err != nil || left != theirs {
		t.Errorf("the file of others is no more what it was: %v", err)
	}
}

// killed ends the session's JVM in the middle of a job in each place: one task has
// committed, the other is writing. It is the last to use the session.
func (w *world) killed(t *testing.T) {
	var pid int
	w.spark.must(t, job{Do: "pid"}, &pid)
	for _, p := range w.places {
		j := w.table(p, "killed", "parquet").job("hang")
		j.Algorithm, j.Mode, j.Rows = "1", "append", rows(0, "a", "b", "a", "b")
		w.spark.must(t, j, nil)
		table := filepath.Join(p.root, "killed", "_temporary", "0")
		until(t, "a task has committed", func() bool { return there(table, "task_*_m_000000*", "k=*", "part-*") })
		until(t, "a task writes", func() bool { return there(table, "_temporary", "attempt_*_m_000001*", "k=*", "part-*") })
	}
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	w.spark.kill()
	w.spark = session(t)
	for _, p := range w.places {
		t.Run(p.name, func(t *testing.T) { afterKill(t, w.table(p, "killed", "parquet")) })
	}
}

// afterKill looks for what a killed job left, and overwrites the table.
func afterKill(t *testing.T, b *tab) {
	t.Helper()
	if names := b.names(t, b.name); b.lake != nil && len(names) > 0 {
		t.Errorf("a killed job left %q", names)
	}
	j := b.job("write")
	j.Algorithm, j.Mode, j.Rows = "1", "overwrite", rows(100, "a", "c")
	b.write(t, j)
	j.Rows = rows(200, "a", "d")
	b.write(t, j)
}

// unmounted: what is the mount's alone is not published when it ends.
func (w *world) unmounted(t *testing.T) {
	for _, p := range w.places {
		if p.lake == nil {
			continue
		}
		p.lookAway()
		p.lake.Unmount()
		if seen := p.watch.Take(); len(seen) > 0 {
			t.Errorf("%s: the unmount published %v", p.name, seen)
		}
		for _, name := range p.names(t, "") {
			if name == "refused/k=a/theirs.parquet" {
				continue
			}
			if _, below, _ := strings.Cut(name, "/"); !final.MatchString(below) {
				t.Errorf("%s: the store has %q", p.name, name)
			}
		}
	}
}

// there tells whether there is a file of the pattern.
func there(pattern ...string) bool {
	found, _ := filepath.Glob(filepath.Join(pattern...))
	return len(found) > 0
}

// until polls a condition until it holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	expired := time.After(jobTimeout)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-expired:
			t.Fatal("never: " + what)
		}
	}
}
