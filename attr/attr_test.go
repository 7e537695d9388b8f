package attr_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lakefs-mount/lakefs-mount/attr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a store, closes it at the end, and returns what it logs.
func open(tb testing.TB, path string, maxEntries int) (*attr.Store, *logged) {
	tb.Helper()
	log := new(logged)
	s, err := attr.Open(path, attr.Options{MaxEntries: maxEntries, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return s, log
}

type logged struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

func file(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(tb.TempDir(), "attributes.db")
}

func some(n int) attr.Attributes {
	mode, uid, gid := uint32(n)&0o777, uint32(n), uint32(1<<32-1)-uint32(n)
	mtime := time.Unix(int64(n)-50, int64(n)).UTC()
	return attr.Attributes{Mode: &mode, UID: &uid, GID: &gid, MTime: &mtime, Made: n%2 == 0}
}

func check(t *testing.T, s *attr.Store, key, etag string, want attr.Attributes) {
	t.Helper()
	got, ok := s.Get(key, etag)
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("Get(%q, %q): got %+v, %v, want %+v", key, etag, got, ok, want)
	}
}

func checkMiss(t *testing.T, s *attr.Store, key, etag string) {
	t.Helper()
	if got, ok := s.Get(key, etag); ok {
		t.Errorf("Get(%q, %q): got %+v, want a miss", key, etag, got)
	}
}

func TestGetSeesChangesAtOnceAndAfterReopen(t *testing.T) {
	path := file(t)
	s, _ := open(t, path, 0)
	verify := func(s *attr.Store) {
		t.Helper()
		check(t, s, "b\x00full", "1", some(7))
		check(t, s, "b\x00none", "1", attr.Attributes{})
		check(t, s, "b\x00made", "1", attr.Attributes{Made: true})
		check(t, s, "b\x00directory/", "", some(8))
		check(t, s, "b\x00twice", "2", some(10))
		checkMiss(t, s, "b\x00twice", "1")
		checkMiss(t, s, "b\x00deleted", "1")
		checkMiss(t, s, "b\x00never", "")
	}
	s.Set("b\x00full", "1", some(7))
	s.Set("b\x00none", "1", attr.Attributes{})
	s.Set("b\x00made", "1", attr.Attributes{Made: true})
	s.Set("b\x00directory/", "", some(8))
	s.Set("b\x00twice", "1", some(9))
	s.Set("b\x00twice", "2", some(10))
	s.Set("b\x00deleted", "1", some(11))
	s.Delete("b\x00deleted")
	verify(s)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	verify(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, log := open(t, path, 0)
	verify(s)
	s.Delete("b\x00full")
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	checkMiss(t, s, "b\x00full", "1")
	if got := log.String(); got != "" {
		t.Errorf("log: got %q, want nothing", got)
	}
}

func TestSetCopiesWhatPointersPointTo(t *testing.T) {
	s, _ := open(t, file(t), 0)
	mode := uint32(0o600)
	s.Set("b\x00k", "1", attr.Attributes{Mode: &mode})
	mode = 0
	got, _ := s.Get("b\x00k", "1")
	if got.Mode == nil || *got.Mode != 0o600 {
		t.Errorf("mode: got %v, want 0600", got.Mode)
	}
}

func TestMove(t *testing.T) {
	for _, flush := range []bool{false, true} {
		t.Run(fmt.Sprint("flushed ", flush), func(t *testing.T) {
			s, _ := open(t, file(t), 0)
			s.Set("b\x00a", "1", some(1))
			s.Set("b\x00same", "1", some(2))
			s.Set("b\x00target", "1", some(3))
			s.Set("b\x00empty/", "", some(4))
			if flush {
				if err := s.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			s.Move("b\x00a", "1", "b\x00target", "9")
			check(t, s, "b\x00target", "9", some(1))
			checkMiss(t, s, "b\x00a", "1")

			s.Move("b\x00same", "1", "b\x00same", "2")
			check(t, s, "b\x00same", "2", some(2))

			s.Move("b\x00same", "1", "b\x00target", "9") // not that version: nothing to move
			checkMiss(t, s, "b\x00target", "9")
			checkMiss(t, s, "b\x00same", "2")

			s.Move("b\x00nothing/", "", "b\x00empty/", "")
			checkMiss(t, s, "b\x00empty/", "")
		})
	}
}

func TestMoveAllMovesWhatIsBelowADirectory(t *testing.T) {
	for name, path := range map[string]string{"file": file(t), "memory": filepath.Join(t.TempDir(), "no", "such", "directory")} {
		t.Run(name, func(t *testing.T) {
			s, _ := open(t, path, 0)
			s.Set("b\x00x/", "", some(1))
			s.Set("b\x00x/f", "1", some(2))
			s.Set("b\x00x/y/g", "2", some(3))
			s.Set("b\x00xx", "3", some(4))
			if err := s.MoveAll("b\x00x/", "b\x00new/"); err != nil {
				t.Fatal(err)
			}
			check(t, s, "b\x00new/", "", some(1))
			check(t, s, "b\x00new/f", "1", some(2))
			check(t, s, "b\x00new/y/g", "2", some(3))
			check(t, s, "b\x00xx", "3", some(4))
			checkMiss(t, s, "b\x00x/", "")
			checkMiss(t, s, "b\x00x/f", "1")
		})
	}
}

func TestOldestEntriesGoBeyondMaxEntries(t *testing.T) {
	for name, path := range map[string]string{"file": file(t), "memory": filepath.Join(t.TempDir(), "no", "such", "directory")} {
		t.Run(name, func(t *testing.T) {
			s, _ := open(t, path, 100)
			for i := range 1000 {
				s.Set(fmt.Sprintf("b\x00%d", i%500), fmt.Sprint(i), some(i))
				if i%50 == 49 {
					if err := s.Flush(); err != nil {
						t.Fatal(err)
					}
				}
			}
			for i := 500; i < 900; i++ {
				checkMiss(t, s, fmt.Sprintf("b\x00%d", i%500), fmt.Sprint(i))
			}
			for i := 900; i < 1000; i++ {
				check(t, s, fmt.Sprintf("b\x00%d", i%500), fmt.Sprint(i), some(i))
			}
			for i := 900; i < 1000; i++ { // deleting makes room: nothing else goes
				s.Delete(fmt.Sprintf("b\x00%d", i%500))
			}
			for i := range 100 {
				s.Set(fmt.Sprintf("c\x00%d", i), "", some(i))
			}
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			for i := range 100 {
				check(t, s, fmt.Sprintf("c\x00%d", i), "", some(i))
			}
		})
	}
}

func TestKeysThatCannotBeKeptAreIgnored(t *testing.T) {
	s, _ := open(t, file(t), 0)
	long := strings.Repeat("k", 40_000)
	s.Set("", "1", some(1))
	s.Set(long, "1", some(1))
	s.Set(long[:32_768], strings.Repeat("e", 70_000), some(2))
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	checkMiss(t, s, "", "1")
	checkMiss(t, s, long, "1")
	check(t, s, long[:32_768], strings.Repeat("e", 70_000), some(2))
}

func TestBatchesReachTheFileByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := file(t)
		s, _ := open(t, path, 0)
		before := content(t, path)
		s.Set("b\x00k", "1", some(1))
		synctest.Wait()
		if content(t, path) != before {
			t.Error("a single change was written at once")
		}
		<-time.After(time.Second) // of the bubble's clock
		synctest.Wait()
		after := content(t, path)
		if after == before {
			t.Error("the change was not written after a second")
		}
		for i := range 1500 {
			s.Set(fmt.Sprint("b\x00", i), "1", some(1))
		}
		synctest.Wait() // no time passes
		if content(t, path) == after {
			t.Error("a full batch was not written at once")
		}
	})
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestClosedStore(t *testing.T) {
	s, _ := open(t, file(t), 0)
	s.Set("b\x00k", "1", some(1))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := s.Flush(); !errors.Is(err, attr.ErrClosed) {
		t.Errorf("Flush: got %v, want ErrClosed", err)
	}
	s.Set("b\x00k", "2", some(1))
	checkMiss(t, s, "b\x00k", "2")
	if err := s.MoveAll("b", "c"); !errors.Is(err, attr.ErrClosed) {
		t.Errorf("MoveAll: got %v, want ErrClosed", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	s, _ := open(t, file(t), 200)
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			for i := range 300 {
				key, etag := fmt.Sprintf("%d\x00%d", worker, i%20), fmt.Sprint(i)
				s.Set(key, etag, some(i))
				if got, ok := s.Get(key, etag); !ok || !reflect.DeepEqual(got, some(i)) {
					t.Errorf("Get(%q, %q): got %+v, %v", key, etag, got, ok)
				}
				switch i % 30 {
				case 7:
					s.Delete(key)
				case 13:
					s.Move(key, etag, key+"x", etag)
				case 19:
					if err := s.Flush(); err != nil {
						t.Errorf("Flush: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestNegativeMaxEntriesIsRefused(t *testing.T) {
	if _, err := attr.Open(file(t), attr.Options{MaxEntries: -1}); err == nil {
		t.Error("Open with MaxEntries -1: got no error")
	}
}

func BenchmarkSet(b *testing.B) {
	s, _ := open(b, file(b), 0)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		s.Set(fmt.Sprintf("b\x00key/%d", i%5000), "etag", some(i))
		i++
	}
}

func BenchmarkGet(b *testing.B) {
	s, _ := open(b, file(b), 0)
	for i := range 5000 {
		s.Set(fmt.Sprintf("b\x00key/%d", i), "etag", some(i))
	}
	if err := s.Flush(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, ok := s.Get(fmt.Sprintf("b\x00key/%d", i%5000), "etag"); !ok {
			b.Fatal("miss")
		}
		i++
	}
}
