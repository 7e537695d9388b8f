package catalogview

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// components that random trees are made of.
func components() []string {
	return []string{
		"a", "a.json", "b", "b.json", "day=1", "day=x", "day=01", "_SUCCESS", "_temporary", ".hive-staging_1", "_sqe", "a_$folder$",
		"x_$folder$", "é", "out", "out-", ".git", "__HIVE_DEFAULT_PARTITION__", "day=__HIVE_DEFAULT_PARTITION__", "a%2Fb", "schema",
	}
}

// walk checks that each listed name is found as what it was listed as, and that
// each other component is not found, but for those that are hidden by rule.
func walk(t *testing.T, v *View, dir string, depth int) int {
	t.Helper()
	listed := map[string]Node{}
	for n, err := range v.ReadDir(t.Context(), dir) {
		var verdict *VerdictError
		if errors.As(err, &verdict) {
			return 0
		}
		if err != nil {
			t.Fatalf("ReadDir(%s): %v", dir, err)
		}
		name := n.Path[strings.LastIndexByte(n.Path, '/')+1:]
		if _, twice := listed[name]; twice || n.Path != join(dir, name) {
			t.Errorf("ReadDir(%s): %q twice, or not in it", dir, n.Path)
		}
		listed[name] = n
	}
	seen := len(listed)
	for name, n := range listed {
		got, err := v.Lookup(t.Context(), n.Path)
		if err != nil || got.Kind != n.Kind || got.Size != n.Size || got.ETag != n.ETag || got.Location() != n.Location() || got.Level != n.Level {
			t.Errorf("%s: listed %+v, found %+v, %v", n.Path, n, got, err)
		}
		if n.Kind.Directory() && depth > 0 {
			seen += walk(t, v, join(dir, name), depth-1)
		}
	}
	for _, name := range components() {
		if _, ok := listed[name]; ok {
			continue
		}
		_, err := v.Lookup(t.Context(), join(dir, name))
		if err == nil && (table.StagingTree(name) || name == sqeDirectory) {
			continue
		}
		if !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("%s: not listed, but Lookup: %v", join(dir, name), err)
		}
	}
	return seen
}

func TestListingsAndLookupsAgreeInAFolder(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			l := newLake(t, nil)
			pick := func() string { c := components(); return c[r.IntN(len(c))] }
			for range 4 {
				db := pick()
				l.mkdir(db)
				for range 4 {
					name := pick()
					location := []string{"data/" + pick(), db + "/" + name, "/etc", "hdfs://x", l.extra}[r.IntN(5)]
					l.table(db+"/"+name, location, []string{"day:int"}, func(m obj) {
						switch r.IntN(6) {
						case 0:
							m["table_type"] = "VIRTUAL_VIEW"
						case 1:
							m["manifest_version"] = 9
						case 2:
							formatParameters()(m)
						}
					})
				}
			}
			total := 0
			for range 5 {
				for range 10 {
					randomStep(r, []string{l.root + "/data", l.extra}[r.IntN(2)], pick)
				}
				total += walk(t, l.view, "", 4)
			}
			if total < 50 {
				t.Errorf("only %d names were compared", total)
			}
		})
	}
}

// randomStep makes or removes a file or directory. Failures (a file where a
// directory should be) are part of the game.
func randomStep(r *rand.Rand, dir string, pick func() string) {
	for range 1 + r.IntN(3) {
		dir = filepath.Join(dir, pick())
	}
	switch r.IntN(5) {
	case 0:
		_ = os.RemoveAll(dir)
	case 1:
		_ = os.MkdirAll(dir, 0o755)
	case 2:
		_ = os.MkdirAll(filepath.Dir(dir), 0o755)
		_ = os.WriteFile(dir, nil, 0o600)
	default:
		_ = os.MkdirAll(filepath.Dir(dir), 0o755)
		_ = os.WriteFile(dir, []byte(dir), 0o600)
	}
}

func TestListingsAndLookupsAgreeInAFlatStore(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := components()
		var keys []string
		for range 40 {
			key := c[r.IntN(len(c))]
			for range r.IntN(3) {
				key += "/" + c[r.IntN(len(c))]
			}
			keys = append(keys, key+[]string{"|", "/|", "|x", "|y", "//z|x"}[r.IntN(5)])
		}
		v, _ := flatView(t, keys...)
		if n := walk(t, v, "", 5); n < 20 {
			t.Errorf("seed %d: only %d names were compared", seed, n)
		}
	}
}

func FuzzPaths(f *testing.F) {
	for _, s := range []string{"", "db", "db.json", "db/t/day=1/f", "db/t//x", "../x", "db/t/\x00", "db/t/_sqe/table.json"} {
		f.Add(s)
	}
	keys := &flatStore{keys: map[string]string{
		"db/t/_sqe/table.json": manifestOf("db/t", "data", []string{"day:int"}, nil),
		"data/day=1/f":         "x",
		"secret/f":             "s",
	}}
	o := Options{Roots: []string{"/wh"}, EvalSymlinks: func(p string) (string, error) { return p, nil }}
	v := NewView(NewManifests(keys, objectstore.Location{Bucket: "/wh"}, o), keys, o)
	f.Fuzz(func(t *testing.T, path string) {
		n, err := v.Lookup(context.Background(), path)
		if err == nil && n.Path != path {
			t.Errorf("Lookup(%q) found %q", path, n.Path)
		}
		target, err := v.Resolve(context.Background(), path)
		if err == nil && (!strings.HasPrefix(target.Location.Key, "data/") || strings.Contains(target.Location.Key+"/", "/../")) {
			t.Errorf("Resolve(%q) leads to %q", path, target.Location.Key)
		}
	})
}
