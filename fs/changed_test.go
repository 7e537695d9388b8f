package fs_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What others do in the folder is seen after the TTL, and never mixed.

// mountWatched mounts db.t with the file f under TTLs that a test can wait for.
func mountWatched(t *testing.T, content string) *mounttest.Lake {
	t.Helper()
	l := mounttest.New(t, mounttest.Options{Tables: []mounttest.Table{text("t", map[string]string{"f": content})}})
	l.Start(shortTTL...)
	wantContent(t, l, "db/t/f", content)
	return l
}

// seenWithin bounds how long a change may stay unseen: the TTL, and what a busy
// machine takes.
const seenWithin = 10 * time.Second

// tidiedWithin is how long an upload that nobody needs may stay in the store: where the
// request that frees it had no answer in --io-timeout (tests have a second, which a busy
// machine may need for one request), the daemon asks again after its tidyEvery, a minute.
const tidiedWithin = time.Minute + seenWithin

func TestChangedByOthersIsSeenAfterTheTTL(t *testing.T) {
	t.Parallel()
	l := mountWatched(t, "one")
	reads := func(path, want string) func() bool {
		return func() bool { got, err := l.ReadFile(path); return err == nil && got == want }
	}
	l.PutStored("db/t/f", "replaced, and longer")
	l.Eventually("replaced", seenWithin, reads("db/t/f", "replaced, and longer"))
	if info, err := l.Lstat("db/t/f"); err != nil || info.Size() != 20 {
		t.Errorf("stat of the replaced file: %v, %v", info, err)
	}
	if l.OnS3() {
		l.PutStored("db/t/f", "rep")
		l.Eventually("cut", seenWithin, reads("db/t/f", "rep"))
	} else {
		changeInPlace(t, l, reads)
	}
	l.PutStored("db/t/g", "rep")
	l.RemoveStored("db/t/f")
	l.Eventually("renamed: gone", seenWithin, func() bool { return os.IsNotExist(statErr(l, "db/t/f")) })
	l.Eventually("renamed: there", seenWithin, reads("db/t/g", "rep"))
	l.RemoveStored("db/t/g")
	l.PutStored("db/t/g/inner", "now a directory")
	l.Eventually("a file became a directory", seenWithin, reads("db/t/g/inner", "now a directory"))
	l.RemoveStored("db/t/g/inner")
	if !l.OnS3() { // a bucket has no directory to remove
		if err := os.Remove(l.Data("db/t/g")); err != nil {
			t.Fatal(err)
		}
	}
	l.PutStored("db/t/g", "and back")
	l.Eventually("a directory became a file", seenWithin, reads("db/t/g", "and back"))
}

// changeInPlace changes the file f of the folder, "replaced, and longer", as
// nothing can be changed in a bucket; it leaves "rep".
func changeInPlace(t *testing.T, l *mounttest.Lake, reads func(path, want string) func() bool) {
	t.Helper()
	f, err := os.OpenFile(l.Data("db/t/f"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(" in place")
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	l.Eventually("grown in place", seenWithin, reads("db/t/f", "replaced, and longer in place"))
	if err := os.Truncate(l.Data("db/t/f"), 3); err != nil {
		t.Fatal(err)
	}
	l.Eventually("cut in place", seenWithin, reads("db/t/f", "rep"))
	if err := os.Chmod(l.Data("db/t/f"), 0o751); err != nil {
		t.Fatal(err)
	}
	l.Eventually("chmod", seenWithin, func() bool { return stat(t, l, "db/t/f").Mode&0o777 == 0o751 })
	if err := os.Rename(l.Data("db/t/f"), l.Data("db/t/moved")); err != nil {
		t.Fatal(err)
	}
	l.Eventually("renamed: gone", seenWithin, func() bool { return os.IsNotExist(statErr(l, "db/t/f")) })
	l.Eventually("renamed: there", seenWithin, reads("db/t/moved", "rep"))
	if err := os.Rename(l.Data("db/t/moved"), l.Data("db/t/f")); err != nil {
		t.Fatal(err)
	}
}

// Case 32: a name that is polled for is seen within the negative TTL.
func TestCase32PolledNameIsSeen(t *testing.T) {
	t.Parallel()
	l := mountWatched(t, "x")
	for n := range 5 {
		path := fmt.Sprintf("db/t/late%d", n)
		wantErrno(t, "stat", statErr(l, path), syscall.ENOENT)
		l.PutStored(path, "late")
		l.Eventually(path, seenWithin, func() bool { return statErr(l, path) == nil })
	}
}

// Case 27: an old descriptor has old bytes or ESTALE, a new open the new object.
func TestCase27ReplacedWhileRead(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	one, two := strings.Repeat("a", 30*mib), strings.Repeat("b", 15*mib)
	l := mountWatched(t, one)
	var f *os.File
	head := make([]byte, mib)
	must := func(what string, op func() error) {
		if err := l.Do(what, op); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	must("open and read", func() (err error) {
		if f, err = os.Open(l.Path("db/t/f")); err == nil {
			_, err = f.ReadAt(head, 0)
		}
		return err
	})
	l.PutStored("db/t/f", two)
	l.Eventually("the new object", seenWithin, func() bool {
		got, err := l.ReadFile("db/t/f")
		if err != nil || got != one && got != two {
			t.Errorf("a read while it was replaced: %s, %v", brief(got), err)
		}
		return got == two
	})
	rest := make([]byte, 30*mib)
	must("read on", func() error { _, err := f.ReadAt(rest, 0); return err })
	if string(rest) != one {
		t.Error("the old descriptor reads other bytes than the old ones")
	}
	l.RemoveStored("db/t/f")
	l.Eventually("the removal", seenWithin, func() bool { return os.IsNotExist(openErr(l, "db/t/f", syscall.O_RDONLY)) })
	must("read the old one", func() error { _, err := f.ReadAt(rest[:mib], 29*mib); return err })
	must("close", f.Close)
}

// Many readers of a file that is replaced all the time see whole versions, and
// size and content of one.
func TestChangedAllTheTimeIsNeverMixed(t *testing.T) {
	t.Parallel()
	l := mountWatched(t, strings.Repeat("0", 1000))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			l.PutStored("db/t/f", strings.Repeat(fmt.Sprint(n%10), 1000*(n%10+1)))
		}
	}()
	defer func() { close(stop); <-done }()
	for range 300 {
		var size int64
		var got []byte
		err := l.Do("read", func() (err error) {
			f, err := os.Open(l.Path("db/t/f"))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			info, err := f.Stat()
			if err != nil {
				return err
			}
			size, got = info.Size(), make([]byte, 64<<10)
			n, err := f.ReadAt(got, 0)
			got = got[:n]
			if n == 0 {
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(got)) != size || strings.Trim(string(got), string(got[:1])) != "" || len(got) != 1000*(int(got[0]-'0')+1) && got[0] != '0' {
			t.Fatalf("size %d, read %d bytes: %s", size, len(got), brief(string(got)))
		}
	}
}
