package fs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

func TestInodeIsStableAndUnique(t *testing.T) {
	a, b := newNames(), newNames()
	if got, want := b.acquire("s/t/f").ino, a.acquire("s/t/f").ino; got != want {
		t.Errorf("another mount gives the path %d, want %d", got, want)
	}
	// A living name that has the hash of another path: the other one steps aside.
	n := a.acquire("s/t/f")
	a.move("s/t/f", "s/t/g", objectstore.Location{Key: "g"})
	again := a.acquire("s/t/f")
	if n.ino == again.ino {
		t.Error("a new file under a renamed one's old name has its inode number")
	}
	if got := a.inode("s/t/g"); got != n.ino {
		t.Errorf("renamed file has inode %d, want its own %d", got, n.ino)
	}
}

func TestRenamedInodeOutlivesItsNodes(t *testing.T) {
	names := newNames()
	n := names.acquire("a")
	names.move("a", "b", objectstore.Location{})
	names.release(n)
	if got := names.inode("b"); got != n.ino {
		t.Errorf("inode %d after the node was forgotten, want %d", got, n.ino)
	}
}

func TestUnlinkedNameIsAnotherFile(t *testing.T) {
	names := newNames()
	old := names.acquire("a")
	names.remove("a")
	if _, ok := names.pathOf(old); ok {
		t.Error("the unlinked name still has its path")
	}
	if n := names.acquire("a"); n == old || n.ino == old.ino {
		t.Error("a new file is the unlinked one")
	}
	names.release(old)
	if len(names.inos) != 1 {
		t.Errorf("%d inode numbers held, want 1", len(names.inos))
	}
}

func TestMoveDirectoryMovesWhatIsBelow(t *testing.T) {
	names := newNames()
	dir, file, other := names.acquire("d"), names.acquire("d/x/f"), names.acquire("dd/f")
	names.move("d", "e", objectstore.Location{Bucket: "b", Key: "data/e/"})
	for n, want := range map[*name]string{dir: "e", file: "e/x/f", other: "dd/f"} {
		if got, ok := names.pathOf(n); got != want || !ok {
			t.Errorf("path %q (%v), want %q", got, ok, want)
		}
	}
	if got, want := names.location(file), (objectstore.Location{Bucket: "b", Key: "data/e/x/f"}); got != want {
		t.Errorf("location %v, want %v", got, want)
	}
}

// Whatever happens, every living path has one inode number, and no number two paths.
func TestNamesRandomOperations(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		names := newNames()
		var nodes []*held
		path := func() string { return fmt.Sprintf("d%d/f%d", r.IntN(3), r.IntN(4)) }
		for range 300 {
			switch r.IntN(5) {
			case 0:
				n := names.acquire(path())
				h := &held{name: n}
				names.hold(h)
				names.release(n)
				nodes = append(nodes, h)
			case 1:
				if len(nodes) > 0 {
					names.forget(nodes[r.IntN(len(nodes))])
				}
			case 2:
				if len(nodes) > 0 {
					names.hold(nodes[r.IntN(len(nodes))])
				}
			case 3:
				names.move(path(), path(), objectstore.Location{})
			case 4:
				names.remove(path())
			}
			checkNames(t, names)
		}
	}
}

func checkNames(t *testing.T, names *names) {
	t.Helper()
	for ino, n := range names.inos {
		if n.ino != ino {
			t.Fatalf("number %d leads to a name of %d", ino, n.ino)
		}
	}
	for p, n := range names.byPath {
		if n.path != p || n.gone {
			t.Fatalf("path %q leads to %q, gone %v", p, n.path, n.gone)
		}
		if names.inos[n.ino] != n {
			t.Fatalf("number %d of %q is another's", n.ino, p)
		}
	}
}

func TestTurnedAwayReaderKeepsItsVersion(t *testing.T) {
	names := newNames()
	n := names.acquire("f")
	const tid = 7
	if !names.turnAway(n, tid) {
		t.Fatal("first turn refused")
	}
	if names.turnAway(n, tid) {
		t.Error("turned away twice")
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	if !names.pin("f", tid, "v2", opened{file: file}) {
		t.Fatal("version not kept")
	}
	// The path means another file by now: the turn is the path's.
	names.move("g", "f", objectstore.Location{})
	if _, turned, _ := names.stagedAt("f", tid); !turned {
		t.Error("a rename over the path ended the turn")
	}
	if got, ok := names.unpin(n, tid, "v2"); !ok || got.file != file {
		t.Errorf("got %v %v, want the pinned file", got, ok)
	}
	if names.pin("f", tid, "v3", opened{file: file}) {
		t.Error("a version was kept for a thread that does not wait")
	}
	if err := file.Close(); err != nil {
		t.Errorf("the file was closed with the turn: %v", err)
	}
}
