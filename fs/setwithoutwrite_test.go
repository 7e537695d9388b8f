package fs_test

import (
	"testing"
)

// What programs set through a descriptor that they opened for writing, and
// never wrote to, is the published file's, and costs no new version.
func TestAttributesSetThroughAnUnwrittenDescriptorAreKept(t *testing.T) {
	lake := mountTwo(t, map[string]string{"others": "theirs\n"}, "--write=overwrite")
	for _, base := range []string{"others", "own"} {
		name := csvDir + "/" + base
		lake.MustSh("test -e " + name + " || echo own > " + name)
		before := lake.MustSh("stat -c %i " + name + "; getfattr --only-values -n user.lakefs.etag " + name + " 2>/dev/null || true")
		lake.MustSh("touch -d 2001-02-03T04:05:06.789 " + name)
		got := lake.MustSh("date -u -r " + name + " +%FT%T.%N; ls -l --time-style=+%Y " + name + " | cut -d' ' -f6")
		if want := "2001-02-03T04:05:06.789000000\n2001\n"; got != want {
			t.Errorf("%s after touch -d: %q, want %q", name, got, want)
		}
		mustPython(t, lake, "import os; f = open('"+name+"', 'r+'); os.fchmod(f.fileno(), 0o604); f.close()")
		if got := lake.MustSh("stat -c %a " + name); got != "604\n" {
			t.Errorf("mode of %s after fchmod: %q, want 604", name, got)
		}
		after := lake.MustSh("stat -c %i " + name + "; getfattr --only-values -n user.lakefs.etag " + name + " 2>/dev/null || true")
		if after != before {
			t.Errorf("%s has another version: %q, was %q", name, after, before)
		}
		lake.Remount()
		if got := lake.MustSh("stat -c %a " + name + "; date -u -r " + name + " +%Y"); got != "604\n2001\n" {
			t.Errorf("%s after a remount: %q, want 604 and 2001", name, got)
		}
	}
	wantClean(t, lake, csvDir, "others", "own")
}

// A time that was set holds until the next write, as on a local disk.
func TestWritingAfterSettingATimeMakesItNow(t *testing.T) {
	lake := mountTwo(t, nil)
	name := csvDir + "/f"
	mustPython(t, lake, `
import os, time
begin = time.time() - 3  # a store tells whole seconds, some of them late
f = open("`+name+`", "w")
f.write("a"); f.flush(); os.utime(f.fileno(), (1, 1))
assert os.fstat(f.fileno()).st_mtime == 1, os.fstat(f.fileno())
f.write("b"); f.flush()
assert os.fstat(f.fileno()).st_mtime >= begin, os.fstat(f.fileno())
f.close()
assert os.stat("`+name+`").st_mtime >= begin, os.stat("`+name+`")
f = open("`+name+`", "a"); os.utime(f.fileno(), (1, 1)); f.close()
f = open("`+name+`", "a")
assert os.fstat(f.fileno()).st_mtime == 1, os.fstat(f.fileno())
f.write("c"); f.close()
assert os.stat("`+name+`").st_mtime >= begin, os.stat("`+name+`")
`)
	wantStore(t, lake, name, "abc")
}

// flock(1) makes its lock file by opening it for reading.
func TestFileCreatedForReadingIsPublishedEmpty(t *testing.T) {
	lake := mountTwo(t, nil)
	mustPython(t, lake, `
import os
os.close(os.open("`+csvDir+`/lock", os.O_RDONLY | os.O_CREAT, 0o644))
assert os.listdir("`+csvDir+`") == ["lock"], os.listdir("`+csvDir+`")
`)
	lake.MustSh("flock " + csvDir + "/lock2 true")
	wantStore(t, lake, csvDir+"/lock2", "")
	wantClean(t, lake, csvDir, "lock", "lock2")
}
