package fs

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/staging"
)

// patterns compiles a list that must be right.
func patterns(t *testing.T, list ...string) Patterns {
	t.Helper()
	p, err := ParsePatterns(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func nothingThere(string) bool { return false }

// toolNames are names as tools make them, and the hold of a new file of each. What
// stands before "|" is beside it in its directory.
var toolNames = []struct {
	names string
	hold  staging.Hold
}{
	// sed -i, perl -i, zip, tempfile.mkstemp, rsync, patch, gawk, git, the AWS CLI.
	{"sedIqE4nW sedabc012 XXv2Kp9a zi0aB9_x ziq1YvXX", staging.Temporary},
	{"tmp_k2j3h4d tmpabcd1234 tmp________", staging.Temporary},
	{".in.txt.Ab3dE9 .f.XyZ012 ..f.XyZ012 .a b.q1w2e3 .é.q1w2e3", staging.Temporary},
	{"f.oAbC123 f.gawk.a1B2c3 tmp_obj_x1Y2z3", staging.Temporary},
	{"a.tmp b.csv.tmp 0.parquet.tmp .hidden.tmp", staging.Temporary},
	{"data.csv.6D1fA2b0 x.deadbeef x.0000000F", staging.Temporary},
	// emacs' file-precious-flag, patch's rejects, git stash.
	{"tmpAb3dE9 tmp8f_k2j f|f.rXyZ012 a.csv|a.csv.rq1w2e3 index.stash.4711 .tmp-4711-pack-0a1b2c.pack", staging.Temporary},
	{"x.results x.records x|x.resul x|y.results tmpdata tmp_a-b.c tmpAb3d-9 index.stash. index.stash .tmp-pack tmp-1-pack-2", staging.Unheld},
	// DuckDB over an old file.
	{"a.parquet|tmp_a.parquet é.parquet|tmp_é.parquet", staging.Temporary},
	// Hadoop's checksums, vim, emacs, git.
	{".part-00000.parquet.crc ._SUCCESS.crc .a.crc", staging.Local},
	{".f.swp .f.swo .f.swx .f.swpx .new file.swp 4913 .#f .#f.csv index.lock HEAD.lock", staging.Local},
	// Names of data, and of what is seen as it is.
	{"sedan.csv zinc.csv tmpdata.csv tmp_orders.parquet .env .hidden _SUCCESS", staging.Unheld},
	{"orders.parquet|tmp_other.parquet", staging.Unheld},
	{"part-00000-6a0f9a55-5b2c-4d1e-8f6e-0d3b8f2c7a11-c000.snappy.parquet part-00000-uuid.c000.snappy.parquet", staging.Unheld},
	{"data.20260101 data.12345678 data.cafebabe0 data.cafebab data.cafebabg .cafebabe", staging.Unheld},
	{"a.lock.csv .lock lock 4913.csv 14913 a.crc .crc x.swp .swp .f.swap", staging.Unheld},
	{"sed sedIqE4n sedIqE4nW1 sed-qE4nW XX ziphone.csv tmp tmp_obj tmpabcd-123 .tmp tmp_. tmp_..", staging.Unheld},
	{".in.txt.Ab3d-9 .in.txt.Ab3d9é in.txt.Ab3dE9", staging.Unheld},
	{"f~ f.bak data.json.gz 000000_0", staging.Unheld},
}

// splitNames yields each name of a row, with what is beside it.
func splitNames(t *testing.T, row string) map[string]string {
	t.Helper()
	// A name with a space is written with "·" for it in no row but these two.
	row = strings.NewReplacer(".a b.q1w2e3", ".a·b.q1w2e3", ".new file.swp", ".new·file.swp").Replace(row)
	all := map[string]string{}
	for _, field := range strings.Fields(row) {
		field = strings.ReplaceAll(field, "·", " ")
		beside, name, two := strings.Cut(field, "|")
		if !two {
			beside, name = "", field
		}
		all[name] = beside
	}
	return all
}

func TestDefaultPatternsTellToolsNamesFromData(t *testing.T) {
	t.Parallel()
	temporary, local := patterns(t, DefaultTemporaryNames...), patterns(t, DefaultLocalNames...)
	for _, row := range toolNames {
		for name, beside := range splitNames(t, row.names) {
			there := func(base string) bool { return beside != "" && base == beside }
			got := staging.Unheld
			switch {
			case local.Match(name, there):
				got = staging.Local
			case temporary.Match(name, there):
				got = staging.Temporary
			}
			if got != row.hold {
				t.Errorf("%q beside %q: %q, want %q", name, beside, got, row.hold)
			}
		}
	}
	backup := patterns(t, DefaultBackupNames...)
	for name, want := range map[string]bool{"f~": true, "f.bak": true, ".f~": true, "~": false, ".bak": false, "f~1": false, "f.bak.csv": false, "f": false} {
		if got := backup.Match(name, nothingThere); got != want {
			t.Errorf("backup %q: %v, want %v", name, got, want)
		}
	}
}

func TestPatternsMatchBytes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, name string
		beside        string // what is there
		want          bool
	}{
		{pattern: "é*", name: "éa", want: true},
		{pattern: "é*", name: "e\u0301a"}, // another form of it is another name
		{pattern: "é*", name: "\xc3a"},
		{pattern: "*.日本", name: "x.日本", want: true},
		{pattern: "*.日本", name: "x.日"},
		{pattern: "\xff*", name: "\xffa", want: true},
		{pattern: "\xff*", name: "\xfea"},
		{pattern: "\xff*", name: "ÿa"},
		{pattern: "*.tmp", name: "\xff\xfe.tmp", want: true},
		{pattern: "*.tmp", name: "a\nb.tmp", want: true},
		{pattern: "*.tmp", name: "\n.tmp", want: true},
		{pattern: "*.tmp", name: "a.tmp\n"},
		{pattern: "*.tmp", name: ".tmp"},
		{pattern: "a?", name: "aé"},
		{pattern: "a?", name: "a_", want: true},
		{pattern: "a??", name: "aé"}, // two bytes, which are no letters of these
		{pattern: "a.b", name: "axb"},
		{pattern: `a[b]+(c)\\`, name: `a[b]+(c)\`, want: true},
		{pattern: `a\*\?\#\=b`, name: "a*?#=b", want: true},
		{pattern: `a\*`, name: "ab"},
		{pattern: `\é`, name: "é", want: true},
		{pattern: `a\=*=*`, name: "a=b", beside: "b", want: true},
		{pattern: "#x", name: "ax", want: true},
		{pattern: "#x", name: "1x"}, // no letter
		{pattern: "#*", name: "a0", want: true},
		{pattern: "#*", name: "0a"}, // the letter is not among the digits
		{pattern: "##.*.##", name: "1a.x.00", want: true},
		{pattern: "##.*.##", name: "11.a.00"},
		{pattern: "t_*=*", name: "t_\xff", beside: "\xff", want: true},
		{pattern: "t_*=*.csv", name: "t_é", beside: "é.csv", want: true},
		{pattern: "t_*=*.csv", name: "t_é", beside: "é"},
		{pattern: "#_*=*", name: "a_x", beside: "x", want: true}, // "*" is the star's
		{pattern: "*.*=*", name: "a.b.c", beside: "a.b", want: true},
		{pattern: "new=old", name: "new", beside: "old", want: true},
		{pattern: "new=old", name: "new", beside: "new"},
	} {
		if got := patterns(t, tt.pattern).Match(tt.name, func(base string) bool { return tt.beside != "" && base == tt.beside }); got != tt.want {
			t.Errorf("%q of %q beside %q: %v, want %v", tt.name, tt.pattern, tt.beside, got, tt.want)
		}
	}
}

func TestBadPatternsAreNamed(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "=a", "a=", `a\`, `a\=` + "=", `\*=*`, "a/b", "a=b/c", "a=*", "*/", strings.Repeat("a", 256), "a=" + strings.Repeat("b", 256)} {
		_, err := ParsePatterns([]string{"*.tmp", bad})
		if err == nil || !strings.Contains(err.Error(), strconv.Quote(bad)) {
			t.Errorf("%q: error %v, which does not name it", bad, err)
		}
	}
	if (Patterns{}).Match("a.tmp", nothingThere) || patterns(t).Match("a.tmp", nothingThere) {
		t.Error("no patterns match a name")
	}
}

// What is beside a file costs a look-up: it is asked where a pattern needs it alone.
func TestPatternsAskForWhatIsBesideWhereItMatters(t *testing.T) {
	t.Parallel()
	p := patterns(t, DefaultTemporaryNames...)
	var asked []string
	for _, name := range []string{"part-00000.parquet", "a.tmp", "sedIqE4nW", "x.csv", "tmp_a.parquet"} {
		p.Match(name, func(base string) bool { asked = append(asked, base); return false })
	}
	if !slices.Equal(asked, []string{"a.parquet"}) {
		t.Errorf("asked for %q, want a.parquet alone", asked)
	}
}

func TestStagingTreesAreFoundAtEachLevelBelowTables(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{ // "": none
		"":                                   "",
		"_temporary":                         "",
		"db/_temporary":                      "",
		"_temporary/_temporary":              "",
		"_temporary/__magic/x":               "",
		"db/t":                               "",
		"db/t/_temporary":                    "db/t/_temporary",
		"db/t/_temporary/0":                  "db/t/_temporary",
		"db/t/_temporary/0/_temporary/a/f":   "db/t/_temporary",
		"db/t/dt=1/_temporary/0/f":           "db/t/dt=1/_temporary",
		"db/t/dt=1/h=2/_temporary-uuid/f":    "db/t/dt=1/h=2/_temporary-uuid",
		"db/t/__magic_job-1/tasks/f":         "db/t/__magic_job-1",
		"db/t/.hive-staging_hive_2026/-ext":  "db/t/.hive-staging_hive_2026",
		"db/t/dt=1/.spark-staging-0a1b/dt=1": "db/t/dt=1/.spark-staging-0a1b",
		"db/t/_temporary2/f":                 "",
		"db/t/a_temporary/f":                 "",
		"db/t/_SUCCESS":                      "",
		"db/t/.hive-staging/f":               "",
		"db/t/.spark-staging/f":              "",
		"db/t/dt=1/f":                        "",
		"db/t/\xff/_temporary/\n":            "db/t/\xff/_temporary",
	} {
		root, ok := inStagingTree(path)
		if root != want || ok != (want != "") {
			t.Errorf("%q: in %q, %v; want %q", path, root, ok, want)
		}
		if got := belowStagingTree(path); got != (want != "" && path != want) {
			t.Errorf("%q: below a tree: %v", path, got)
		}
	}
}

func TestHoldOfAPath(t *testing.T) {
	t.Parallel()
	f := &FS{names: newNames(), Config: Config{
		TemporaryNames: patterns(t, "*.tmp"), LocalNames: patterns(t, DefaultLocalNames...),
	}}
	for path, want := range map[string]staging.Hold{
		"db/t/a.csv":                  staging.Unheld,
		"db/t/a.tmp":                  staging.Temporary,
		"db/t/dt=1/a.tmp":             staging.Temporary,
		"db/t/.a.csv.crc":             staging.Local,
		"db/t/.a.tmp.crc":             staging.Local,
		"db/t/x.tmp/a.csv":            staging.Unheld, // a directory's name tells nothing
		"db/t/x.lock/a.csv":           staging.Unheld,
		"db/t/_temporary/0/a.csv":     staging.Local,
		"db/t/_temporary/a.tmp":       staging.Local,
		"db/t/_temporary":             staging.Unheld, // a file of a tree's name
		"db/t/.spark-staging-1/a=1/f": staging.Local,
		"db/t/a\n.tmp":                staging.Temporary,
		"db/t/\xff.tmp":               staging.Temporary,
	} {
		if got := f.holdOf(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	none := &FS{names: newNames()}
	for _, path := range []string{"db/t/a.tmp", "db/t/.a.crc", "db/t/4913"} {
		if got := none.holdOf(path); got != staging.Unheld {
			t.Errorf("%q without patterns: %q", path, got)
		}
	}
}

// FuzzParsePatterns: what is taken compiles, matches what it was made of, and never
// matches a name that its literal parts are not in.
func FuzzParsePatterns(f *testing.F) {
	for _, text := range slices.Concat(DefaultTemporaryNames, DefaultLocalNames, DefaultBackupNames, []string{"", "a=b", "=", "*=*", "é*", "\xff", "#*#", "(?i)a", `\Q`, "\x00"}) {
		f.Add(text, "name.tmp")
	}
	f.Add("tmp_*=*", "tmp_\xff\n")
	f.Fuzz(func(t *testing.T, text, name string) {
		p, err := ParsePatterns([]string{text})
		if err != nil {
			if !strings.Contains(err.Error(), "no pattern of a name") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		one, beside, _ := cut(text)
		asked := ""
		matched := p.Match(name, func(base string) bool { asked = base; return true })
		if matched && (beside == "") != (asked == "") {
			t.Errorf("%q of %q asked for %q", text, name, asked)
		}
		plain := !strings.Contains(one, `\`)
		for _, literal := range strings.FieldsFunc(one, func(r rune) bool { return strings.ContainsRune("*?#", r) }) {
			if plain && matched && !strings.Contains(name, literal) {
				t.Errorf("%q matches %q, which has no %q", text, name, literal)
			}
		}
		if plain && matched && len(name) < len(one) {
			t.Errorf("%q matches %q, which is shorter", text, name)
		}
		made := strings.NewReplacer("*", "x", "?", "_", "#", "f").Replace(one)
		if dots := made == "x" && (beside == "." || beside == ".."); plain && !dots && !p.Match(made, func(string) bool { return true }) {
			t.Errorf("%q does not match %q, which was made of it", text, made)
		}
	})
}
