package attr_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/lakefs-mount/lakefs-mount/attr"
)

// filled makes a file with 2000 entries, closed.
func filled(t *testing.T) string {
	t.Helper()
	path := file(t)
	s, _ := open(t, path, 0)
	for i := range 2000 {
		s.Set(fmt.Sprint("b\x00", i), "1", some(i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// checkWorks sets and gets through a flush.
func checkWorks(t *testing.T, s *attr.Store) {
	t.Helper()
	s.Set("new\x00key", "1", some(1))
	check(t, s, "new\x00key", "1", some(1))
	if err := s.Flush(); err != nil {
		t.Errorf("Flush: %v", err)
	}
	check(t, s, "new\x00key", "1", some(1))
}

func checkWarnings(t *testing.T, log *logged, want int) {
	t.Helper()
	if got := strings.Count(log.String(), "level=WARN"); got != want {
		t.Errorf("warnings: got %d, want %d:\n%s", got, want, log)
	}
}

func TestDamagedFileIsMovedAsideAndBegunAnew(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string, content []byte) []byte{
		"text":          func(*testing.T, string, []byte) []byte { return []byte("not a database") },
		"one page":      func(_ *testing.T, _ string, c []byte) []byte { return c[:4096] },
		"cut at a page": func(_ *testing.T, _ string, c []byte) []byte { return c[:3*4096] },
		"cut in half":   func(_ *testing.T, _ string, c []byte) []byte { return c[:len(c)/2] },
		"cut by its last page": func(t *testing.T, path string, _ []byte) []byte {
			t.Helper()
			settle(t, path) // the last page is a leaf from now on: Open does not read it
			c, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return c[:used(t, path)-4096]
		},
		"zeros": func(_ *testing.T, _ string, c []byte) []byte {
			return make([]byte, len(c))
		},
		"random bytes": func(_ *testing.T, _ string, c []byte) []byte {
			_, _ = rand.NewChaCha8([32]byte{1}).Read(c)
			return c
		},
		"random bytes behind the heads": func(_ *testing.T, _ string, c []byte) []byte {
			_, _ = rand.NewChaCha8([32]byte{2}).Read(c[2*4096:])
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filled(t)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			damaged := damage(t, path, append([]byte(nil), before...))
			if err = os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			s, log := open(t, path, 0)
			checkWorks(t, s)
			checkWarnings(t, log, 1)
			aside, err := os.ReadFile(path + ".damaged")
			if err != nil || string(aside) != string(damaged) {
				t.Errorf("the damaged file is not aside as it was: %d bytes, %v", len(aside), err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s, log = open(t, path, 0) // and the new one lasts
			check(t, s, "new\x00key", "1", some(1))
			checkWarnings(t, log, 0)
		})
	}
}

// settle makes small changes, whose pages come from the free ones in the middle.
func settle(t *testing.T, path string) {
	t.Helper()
	s, _ := open(t, path, 0)
	for i := range 3 {
		s.Set("a", "1", some(i))
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// used is how much of the file bbolt has pages in.
func used(t *testing.T, path string) (n int64) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bbolt.Tx) error { n = tx.Size(); return nil })
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestDamageMetLater damages pages that Open does not read: bbolt panics, or the
// kernel signals, in the middle of a Get or a batch.
func TestDamageMetLater(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string){
		"leaf pages are random": func(t *testing.T, path string) {
			t.Helper()
			for _, page := range leaves(t, path) {
				overwrite(t, path, int64(page)*4096, 4096)
			}
		},
		"the file is cut under the store": func(t *testing.T, path string) {
			t.Helper()
			if err := os.Truncate(path, 2*4096); err != nil {
				t.Fatal(err)
			}
		},
		"a bucket is missing": nil,
	} {
		for _, first := range []string{"get", "set"} {
			t.Run(name+", "+first+" first", func(t *testing.T) {
				path := filled(t)
				if damage == nil {
					deleteBucketAfterOpen(t, path)
					return
				}
				s, log := open(t, path, 0)
				damage(t, path)
				if first == "get" {
					for i := range 2000 {
						s.Get(fmt.Sprint("b\x00", i), "1")
					}
				}
				for i := range 2000 {
					s.Set(fmt.Sprint("b\x00", i), "2", some(i))
				}
				checkWorks(t, s)
				checkWarnings(t, log, 1)
				for i := range 2000 { // what was pending is in the new file
					check(t, s, fmt.Sprint("b\x00", i), "2", some(i))
				}
			})
		}
	}
}

func TestGetAloneFindsDamageAndReplacesTheFile(t *testing.T) {
	path := filled(t)
	s, log := open(t, path, 0)
	for _, page := range leaves(t, path) {
		overwrite(t, path, int64(page)*4096, 4096)
	}
	for i := range 2000 {
		s.Get(fmt.Sprint("b\x00", i), "1")
	}
	if err := s.Flush(); err != nil {
		t.Error(err)
	}
	checkWarnings(t, log, 1)
	checkWorks(t, s)
}

func TestDamagedTwiceGoesToMemory(t *testing.T) {
	path := filled(t)
	s, log := open(t, path, 0)
	for range 3 {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		checkWorks(t, s)
	}
	checkWarnings(t, log, 2)
}

// deleteBucketAfterOpen leaves out what the package's own Open would make.
func deleteBucketAfterOpen(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("order")) })
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	s, log := open(t, path, 100) // 2000 keys, none of which has an age
	checkWorks(t, s)
	checkWarnings(t, log, 1)
}

// leaves returns the pages that hold keys, but for the root's.
func leaves(t *testing.T, path string) (pages []int) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for page := 2; page < len(content)/4096; page++ {
		if flags := content[page*4096+8]; flags&0x02 != 0 && strings.Contains(string(content[page*4096:(page+1)*4096]), "b\x00") {
			pages = append(pages, page)
		}
	}
	if len(pages) < 10 {
		t.Fatalf("found %d leaf pages", len(pages))
	}
	return pages
}

func overwrite(t *testing.T, path string, off int64, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	junk := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(off >> 12)}).Read(junk)
	if _, err := f.WriteAt(junk, off); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestUnusableFileIsReplacedByMemory(t *testing.T) {
	dir := t.TempDir()
	locked := filepath.Join(dir, "locked")
	open(t, locked, 0)
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/dev/null", link); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"in use by another":       locked,
		"a directory":             dir,
		"in no directory":         filepath.Join(dir, "no", "such"),
		"a symbolic link":         link,
		"below something no dir.": filepath.Join("/dev/null", "x"),
	} {
		t.Run(name, func(t *testing.T) {
			s, log := open(t, path, 0)
			checkWorks(t, s)
			checkWarnings(t, log, 1)
			if !strings.Contains(log.String(), "memory only") || !strings.Contains(log.String(), path) {
				t.Errorf("the warning does not say what and where: %s", log)
			}
		})
	}
}

// childFile names the file for the process that TestSurvivesKill starts.
const childFile = "ATTR_TEST_CHILD_FILE"

func TestSurvivesKill(t *testing.T) {
	if path := os.Getenv(childFile); path != "" {
		writeForever(t, path)
	}
	path := file(t)
	for round := range 3 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSurvivesKill$")
		cmd.Env = append(os.Environ(), childFile+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		flushed := 0
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if _, err := fmt.Sscanf(lines.Text(), "flushed %d", &flushed); err == nil && flushed >= 300*(round+1) {
				break
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // it was killed

		s, log := open(t, path, 0)
		for i := range flushed {
			check(t, s, fmt.Sprint("b\x00", i), "1", some(i))
		}
		checkWarnings(t, log, 0)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// writeForever flushes each hundred entries and says so, until it is killed.
func writeForever(t *testing.T, path string) {
	t.Helper()
	s, _ := open(t, path, 0)
	for i := 0; ; i++ {
		s.Set(fmt.Sprint("b\x00", i), "1", some(i))
		if i%100 == 99 {
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintf(os.Stdout, "flushed %d\n", i+1); err != nil {
				t.Fatal(err)
			}
		}
	}
}
