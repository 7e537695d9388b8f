package fs_test

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/folderwatch"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What readers see of a commit while it is under way.

// setPoller reads all files of a table again and again: each is one that is to be there,
// whole, and one that was seen stays.
type setPoller struct {
	t     *testing.T
	name  string
	look  func() (tree, error)
	want  tree
	seen  map[string]bool
	sizes map[int]bool // of the sets that were seen
}

func (p *setPoller) round() {
	got, err := p.look()
	if err != nil {
		p.t.Errorf("%s: %v", p.name, err)
		return
	}
	p.sizes[len(got)] = true
	for name, content := range got {
		if want, known := p.want[name]; !known || content != want {
			p.t.Errorf("%s: %s is seen, known %v, as %s; want %s", p.name, name, known, brief(content), brief(want))
		}
	}
	for name := range p.seen {
		if _, there := got[name]; !there {
			p.t.Errorf("%s: %s was seen, and is gone", p.name, name)
		}
	}
	for name := range got {
		p.seen[name] = true
	}
}

// pollWhile has the pollers work while work does, and for a round after.
func pollWhile(t *testing.T, pollers []*setPoller, work func()) {
	t.Helper()
	stop := make(chan struct{})
	var ended, began sync.WaitGroup
	for _, p := range pollers {
		p.t, p.seen, p.sizes = t, map[string]bool{}, map[int]bool{}
		began.Add(1)
		ended.Go(func() {
			p.round()
			began.Done()
			for {
				p.round()
				select {
				case <-stop:
					p.round()
					return
				default:
				}
			}
		})
	}
	began.Wait()
	work()
	close(stop)
	ended.Wait()
	for _, p := range pollers {
		t.Logf("%s: sets of %d sizes", p.name, len(p.sizes))
		if len(p.seen) != len(p.want) || !p.sizes[len(p.want)] {
			t.Errorf("%s: %d of %d files were seen", p.name, len(p.seen), len(p.want))
		}
	}
}

// twoHundred are the files of a commit: 10 each of 20 partitions, half of which are new.
func twoHundred() (seeds, files tree) {
	seeds, files = tree{}, tree{}
	for k := range 20 {
		if k < 10 {
			seeds[fmt.Sprintf("k=%d/old", k)] = fmt.Sprintf("old %d\n", k)
		}
		for i := range 10 {
			name := fmt.Sprintf("k=%d/f%d", k, i)
			files[name] = strings.Repeat(name+"\n", 1+(k*10+i)*(k*10+i)/4) // up to 80 kB
		}
	}
	files["k=19/f9"] = numbered('x', 11<<20) // several parts, in a bucket
	return seeds, files
}

// TestReadersOfACommit poll the store itself, another mount and the same mount while 200
// files are committed into 20 partitions.
func TestReadersOfACommit(t *testing.T) {
	t.Parallel()
	seeds, files := twoHundred()
	for _, store := range []string{"folder", "bucket"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			if store == "folder" {
				mounttest.FolderOnly(t, "is done on S3 beside it")
			}
			l := mounttest.Mount(t, mounttest.Options{
				Faulty: store == "bucket", Timeout: 3 * time.Minute, Flags: noWait,
				Tables: []mounttest.Table{byKeys([]string{"k:int"}, seeds)},
			})
			second := l.Second(noWait...)
			l.MustSh(`mkdir ` + txn)
			files.write(t, l.Path(txn))
			wantTreeInStore(t, l, seeds)

			l.PutStored("db/t/k=11/f7", "theirs\n")
			wantErrno(t, "commit over another's file", l.WriteFile(txn+"/ctl", "commit\n"), syscall.EEXIST)
			wantTreeInStore(t, l, seeds, tree{"k=11/f7": "theirs\n"})
			l.RemoveStored("db/t/k=11/f7")

			if l.Proxy != nil { // so that there is something to see
				l.Proxy.Add(faulty.Rule{Op: "PutObject", Fault: faulty.Delay{FirstByte: 30 * time.Millisecond}})
			}
			var watch *folderwatch.Watcher
			if store == "folder" {
				watch = folderwatch.Watch(t, l.Data("db/t"))
				watch.Take()
			}
			after := joined(seeds, files)
			direct := func() (tree, error) { return l.StoredTree("db/t") }
			pollWhile(t, []*setPoller{
				{name: "the store", look: direct, want: after},
				{name: "the same mount", look: func() (tree, error) { return walkTree(l.Path("db/t")) }, want: after},
				{name: "another mount", look: func() (tree, error) { return walkTree(second.Path("db/t")) }, want: after},
			}, func() {
				if r := l.Sh(`echo commit >` + txn + `/ctl`); r.Code != 0 {
					t.Errorf("commit: %s", r.Err)
				}
				wantTreeInStore(t, l, after) // complete when it returns
			})
			if watch == nil {
				return
			}
			for name, seen := range watch.Take() {
				_, known := files[name]
				if !known && !seen.Directory || seen.InPlace {
					t.Errorf("the folder had %s: %+v", name, seen)
				}
			}
		})
	}
}

func joined(trees ...tree) tree {
	all := tree{}
	for _, t := range trees {
		for name, content := range t {
			all[name] = content
		}
	}
	return all
}

// wantTreeInStore asserts all that the store has of db, under whatever name.
func wantTreeInStore(t *testing.T, l *mounttest.Lake, trees ...tree) {
	t.Helper()
	got, want := storedTree(t, l, "db"), tree{}
	for name, content := range joined(trees...) {
		want["t/"+name] = content
	}
	for name := range got {
		if got[name] != want[name] {
			t.Errorf("the store has %s: %s, want %s", name, brief(got[name]), brief(want[name]))
		}
	}
	for name := range want {
		if _, there := got[name]; !there {
			t.Errorf("the store lacks %s", name)
		}
	}
}
