package fs_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// What recover --publish does with files of partitions that are not what they were,
// of a running mount and of one that ended.

// keptInPartitions are torn files in partitions of db.t: dt=1, which lies where the
// table does, dt=2, which does not, and dt=7, which the catalog does not know.
func keptInPartitions(t *testing.T) *mounttest.Lake {
	t.Helper()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	l.MustSh(`mkdir db/t/dt=7`)
	for _, dir := range []string{"1", "2", "7"} {
		l.Sh(`cd db/t; bash -c 'exec 3>dt=` + dir + `/kept` + dir + `; echo bytes of ` + dir + ` >&3; kill -9 $$'`)
	}
	l.Eventually("three torn files", 0, func() bool { return len(stagedStatus(t, l)) == 3 })
	return l
}

// recovererOf is the recover command of the mount, which ends first unless it is to
// run.
func recovererOf(t *testing.T, l *mounttest.Lake, running bool) *recoverer {
	t.Helper()
	r := &recoverer{t: t, l: l, args: []string{"recover", l.Root}}
	if !running {
		l.Kill()
		r.args = []string{"recover", "--state-dir=" + l.State, l.Source, l.Root}
	}
	return r
}

// TestRecoverPublishWhereThePathLedOnce: the file would not be where the catalog looks.
// It is refused by name of both places, kept, and can be saved.
func TestRecoverPublishWhereThePathLedOnce(t *testing.T) {
	t.Parallel()
	dropTable := func(l *mounttest.Lake) { l.Catalog.Server.Remove("db", "t") }
	for what, tt := range map[string]struct {
		change  func(l *mounttest.Lake)
		refused []string // by name, in order
		places  []string // that the refusal of the first has
		then    map[string]string
	}{
		"partition moved": {
			func(l *mounttest.Lake) { movePartition(l, "2", "s3://{0}/moved") },
			[]string{"kept2"},
			[]string{"s3://{1}/else/where/kept2", "s3://{0}/moved/kept2"},
			map[string]string{"1": "bytes of 1\n", "7": "bytes of 7\n"},
		},
		"partition moved from the table's place": {
			func(l *mounttest.Lake) { movePartition(l, "1", "s3://{1}/moved") },
			[]string{"kept1"},
			[]string{"/dt=1/kept1", "s3://{1}/moved/kept1"},
			map[string]string{"2": "bytes of 2\n", "7": "bytes of 7\n"},
		},
		"partition registered elsewhere": {
			func(l *mounttest.Lake) { addPartition(l, "7", "s3://{1}/seven") },
			[]string{"kept7"},
			[]string{"/dt=7/kept7", "s3://{1}/seven/kept7"},
			map[string]string{"1": "bytes of 1\n", "2": "bytes of 2\n"},
		},
		"partition dropped": {
			func(l *mounttest.Lake) { dropPartition(l, "2") },
			[]string{"kept2"},
			[]string{"s3://{1}/else/where/kept2", "/dt=2/kept2"},
			map[string]string{"1": "bytes of 1\n", "7": "bytes of 7\n"},
		},
		"table moved": {func(l *mounttest.Lake) {
			l.Catalog.Server.SetTable("db", l.Catalog.At(csvAt("t", "s3://{1}/t2", `,"PartitionKeys":[{"Name":"dt","Type":"int"}]`)))
		}, []string{"kept7"}, []string{"/dt=7/kept7", "s3://{1}/t2/dt=7/kept7"}, map[string]string{"1": "bytes of 1\n", "2": "bytes of 2\n"}},
		"table dropped": {dropTable, []string{"kept1", "kept2", "kept7"}, []string{"/dt=1/kept1", "leads nowhere by now"}, nil},
	} {
		for _, running := range []bool{true, false} {
			name := what + ", unmounted"
			if running {
				name = what + ", running"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l := keptInPartitions(t)
				r := recovererOf(t, l, running)
				tt.change(l)
				res := r.run(1, "--publish=all")
				for _, name := range tt.refused {
					if !strings.Contains(res.Err, name+`" is not published`) || strings.Contains(res.Out, name) {
						t.Errorf("recover prints %q, %q; want a refusal of %s", res.Out, res.Err, name)
					}
				}
				for _, part := range append([]string{"recover --save DIR"}, tt.places...) {
					if !strings.Contains(res.Err, l.Catalog.At(part)) {
						t.Errorf("recover prints\n%swhich lacks %q", res.Err, l.Catalog.At(part))
					}
				}
				if n := strings.Count(res.Out, "published "); n != len(tt.then) {
					t.Errorf("%d are published, want %d: %q", n, len(tt.then), res.Out)
				}
				dir := t.TempDir()
				r.run(0, "--save", dir)
				saved := tree{}
				for _, name := range tt.refused {
					saved[name] = "bytes of " + strings.TrimPrefix(name, "kept") + "\n"
				}
				if got := readTree(t, dir); !got.equal(saved) {
					t.Errorf("saved are %q, want %q", got, saved)
				}
				if left := r.list(); len(left) != len(saved) || !strings.Contains(left[tt.refused[0]].Error, "is not published") {
					t.Errorf("kept are %+v", left)
				}
				if got := inBucket(t, l, 1, "else/where/kept2"); saved["kept2"] != "" && got != "absent" {
					t.Errorf("the old place has %q", got)
				}
				if !running {
					l.Start()
				}
				got := map[string]string{}
				for dir := range tt.then {
					got[dir], _ = l.ReadFile("db/t/dt=" + dir + "/kept" + dir)
				}
				if !maps.Equal(got, tt.then) && tt.then != nil {
					t.Errorf("in the lake are %q, want %q", got, tt.then)
				}
			})
		}
	}
}

// TestRecoverSavesLongNames: a shown name has no room for all of it.
func TestRecoverSavesLongNames(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	long := strings.Repeat("é", 125) + ".csv"
	l.Sh(`cd db/t/dt=1; bash -c 'exec 3>` + long + `; echo bytes >&3; kill -9 $$'`)
	l.Eventually("a torn file", 0, func() bool { return len(stagedStatus(t, l)) == 1 })
	dir := t.TempDir()
	recovererOf(t, l, true).run(0, "--save", dir)
	if raw, err := os.ReadFile(filepath.Join(dir, long)); err != nil || string(raw) != "bytes\n" {
		t.Errorf("saved is %q (%v)", raw, err)
	}
}

// TestRecoverPublishWithoutARegistration: the command tells that the file is published,
// and that its partition is not in the catalog.
func TestRecoverPublishWithoutARegistration(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{true, false} {
		name := "unmounted"
		if running {
			name = "running"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := keptInPartitions(t)
			r := recovererOf(t, l, running)
			l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: gluetest.Denied()})
			res := r.run(1, "--publish", r.list()["kept7"].ID)
			for _, part := range []string{`kept7" is published, but its partition is not registered in the catalog`, "the next publish into it"} {
				if !strings.Contains(res.Err, part) || res.Out != "" {
					t.Errorf("recover prints %q, %q; want %q", res.Out, res.Err, part)
				}
			}
			if got := inBucket(t, l, 0, l.Key("db/t/dt=7/kept7")); got != "bytes of 7\n" {
				t.Errorf("in the store is %q", got)
			}
			if left := r.list(); len(left) != 2 {
				t.Errorf("kept are %+v", left)
			}
			if res := r.run(1, "--publish", "01234567"); !strings.Contains(res.Err, "no unpublished file") {
				t.Errorf("of what is not there: %q", res.Err)
			}
			l.Catalog.Server.Clear()
			wantRegistered(t, l, "t", "1", "2", "3")
			if !running {
				l.Start()
			}
			l.MustSh(`echo more > db/t/dt=7/more`)
			wantRegistered(t, l, "t", "1", "2", "3", "7")
		})
	}
}

// TestRecoverWhoseRegistrationIsRefused: the log says when it is tried again.
func TestRecoverWhoseRegistrationIsRefused(t *testing.T) {
	t.Parallel()
	l := mountGlue(t, mounttest.Options{}, inCatalog())
	l.MustSh(`mkdir db/t/dt=7`)
	hung := l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: gluetest.Hang()})
	done := make(chan mounttest.Result, 1)
	go func() { done <- l.Sh(`echo 7 > db/t/dt=7/f`) }()
	hung.Wait(t, 1)
	l.Kill()
	<-done
	l.Catalog.Server.Clear()
	l.Catalog.Server.Fault(gluetest.Rule{Op: registration, Fault: gluetest.Denied()})
	l.Start()
	l.WaitLog("it is tried again while mounted, and by the next publish into it")
	recovered(t, l)
	l.Catalog.Server.Clear()
	l.MustSh(`echo more > db/t/dt=7/g`)
	wantRegistered(t, l, "t", "1", "2", "3", "7")
}
