package table

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func hive(key, typ string) *Table {
	return &Table{Kind: Hive, Keys: []Column{{Name: key, Type: typ}}, NullName: HiveNull}
}

func formatTable(key, typ string) *Table {
	return &Table{Kind: FormatTable, Keys: []Column{{Name: key, Type: typ}}, NullName: formatTableNull, LegacyDate: true}
}

func TestRule45TypedValues(t *testing.T) {
	for _, c := range []struct {
		typ, value string
		ok         bool
	}{
		{"int", "7", true},
		{"int", "-7", true},
		{"int", "07", true},
		{"int", "7.0", false},
		{"int", "x", false},
		{"int", "", false},
		{"int", "2147483648", false},
		{"integer", "2147483647", true},
		{"tinyint", "128", false},
		{"smallint", "32768", false},
		{"bigint", "9223372036854775807", true},
		{"bigint", "9223372036854775808", false},
		{"BIGINT", " 1", false},
		{"date", "2026-01-31", true},
		{"date", "2026-1-31", true},
		{"date", "2026-02-30", false},
		{"date", "20260131", false},
		{"string", "", true},
		{"varchar(3)", "long text", true},
		{"binary", "\x01", true},
		{"double", "abc", true},
		{"boolean", "maybe", true},
		{"timestamp", "never", true}, // only integers and dates must parse
		{"int", HiveNull, true},
		{"date", HiveNull, true},
	} {
		got, err := hive("k", c.typ).Partition("k="+Escape(c.value), 0)
		if c.ok && (err != nil || got != c.value) {
			t.Errorf("%s %q: got %q, %v", c.typ, c.value, got, err)
		}
		if !c.ok && (!errors.Is(err, ErrValue) || !strings.Contains(err.Error(), "k="+Escape(c.value))) {
			t.Errorf("%s %q: got %q, %v, want ErrValue that names the segment", c.typ, c.value, got, err)
		}
	}
}

func TestRule46NullIsOneValue(t *testing.T) {
	tab := hive("k", "string")
	var null int
	for _, v := range []string{HiveNull, "null", "NULL", "default", "", formatTableNull} {
		p, err := tab.ParsePartition("k="+v, 0)
		if err != nil || p.Text != v {
			t.Errorf("%q: got %+v, %v", v, p, err)
		}
		if p.Null {
			null++
		}
	}
	if null != 1 {
		t.Errorf("%d null values, want 1", null)
	}
	if err := tab.CheckNew("k=null", 0, slices.Values([]string{"k=" + HiveNull, "k=NULL"})); err != nil {
		t.Errorf("the text null beside the null name: %v", err)
	}
	if err := tab.CheckNew("k="+HiveNull, 0, slices.Values([]string{"k="})); err != nil {
		t.Errorf("the null name beside an empty value: %v", err)
	}
	if err := hive("k", "int").CheckNew("k="+HiveNull, 0, slices.Values([]string{"k=1"})); err != nil {
		t.Errorf("null of an int key: %v", err)
	}
}

func TestCase47EqualByTypeIsRefusedForNewNames(t *testing.T) {
	for _, c := range []struct{ typ, there, name string }{
		{"int", "k=1", "k=01"},
		{"int", "K=1", "k=1"},
		{"date", "k=2024-05-01", "k=2024-5-1"},
		{"string", "k=a b", "k=a%20b"},
		{"string", "k=a%3Ab", "k=a:b"},
		{"string", "k=x", "k=x"},
		{"boolean", "k=true", "k=TRUE"},
		{"double", "k=1.0", "k=1"},
		{"decimal(4,2)", "k=1.50", "k=1.5"},
		{"decimal(4,2)", "k=99.99", "k=+99.990"},
		{"char(3)", "k=a", "k=a  "},
		{"timestamp", "k=2024-01-01 00%3A00%3A00", "k=2024-01-01"},
		{"string", "k=" + HiveNull, "k=" + HiveNull},
	} {
		err := hive("k", c.typ).CheckNew(c.name, 0, slices.Values([]string{"_SUCCESS", c.there}))
		if !errors.Is(err, ErrEqual) || !strings.Contains(err.Error(), c.there) {
			t.Errorf("%s: %s beside %s: got %v, want ErrEqual", c.typ, c.name, c.there, err)
		}
	}
	for _, c := range []struct{ typ, there, name string }{
		{"string", "k=1", "k=01"}, {"string", "k=a", "k=A"}, {"int", "k=1", "k=11"}, {"string", "k=é", "k=e\u0301"},
	} {
		if err := hive("k", c.typ).CheckNew(c.name, 0, slices.Values([]string{c.there})); err != nil {
			t.Errorf("%s: %s beside %s: %v", c.typ, c.name, c.there, err)
		}
	}
}

func TestNewValueMustBeOfItsKeysType(t *testing.T) {
	for typ, value := range map[string]string{
		"int": "x", "date": "yesterday", "boolean": "maybe", "double": "abc", "decimal(3,1)": "1e9", "timestamp": "never",
		"decimal(4,2)": "1.555", "decimal(4)": "1.5", "DECIMAL( 4 , 2 )": "100", "numeric(1,0)": "-10", "varchar(3)": "abcd", "char(2)": "éa ö", "timestamp ": "2024-01-01 12:00:00,5",
	} {
		if err := hive("k", typ).CheckNew("k="+value, 0, nil); !errors.Is(err, ErrName) {
			t.Errorf("%s %q: got %v, want ErrName", typ, value, err)
		}
		if v, err := hive("k", typ).Partition("k="+value, 0); !strict(typ) && (err != nil || v != value) {
			t.Errorf("%s: one that exists reads %q, %v", typ, v, err)
		}
	}
	for typ, value := range map[string]string{
		"decimal(4,2)": "99.99", "decimal(38,38)": "0.1", "decimal": "1.555", "decimal(x)": "1.5", "decimal(4,2": "1.555", "decimal(99999999999)": "1.5",
		"varchar(3)": "ééé", "varchar": "abcd", "char(2)": "é   ", "string(2)": "abc", "timestamp": "2024-01-01 12:00:00.5",
	} {
		if err := hive("k", typ).CheckNew("k="+value, 0, nil); err != nil {
			t.Errorf("%s %q: %v", typ, value, err)
		}
	}
}

func TestCase49KeysCompareWithoutCaseWhenRead(t *testing.T) {
	tab := hive("userid", "int")
	if got, err := tab.Partition("userId=1", 0); err != nil || got != "1" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := tab.CheckNew("userId=2", 0, nil); !errors.Is(err, ErrName) || !strings.Contains(err.Error(), "userid") {
		t.Errorf("a new key in another case: got %v, want ErrName that names the catalog's", err)
	}
}

func TestHiddenNamesAtPartitionLevels(t *testing.T) {
	tab := hive("_year", "int")
	for name, want := range map[string]bool{
		"_year=1": false, "_YEAR=1": false, "_month=1": true, "_SUCCESS": true, ".x": true, "a": false, "_year": true,
	} {
		if got := tab.HiddenAt(name, 0); got != want {
			t.Errorf("HiddenAt(%s): got %t, want %t", name, got, want)
		}
	}
	if !tab.HiddenAt("_year=1", 1) {
		t.Error("_year=1 below the last key is not hidden")
	}
	if got, err := tab.Partition("_year=2024", 0); err != nil || got != "2024" {
		t.Errorf("_year=2024: got %q, %v", got, err)
	}
	for _, name := range []string{"_year=1", "_temporary", "_delta_log", ".git", ".hive-staging_x"} {
		if err := tab.CheckNew(name, 0, nil); err != nil {
			t.Errorf("CheckNew(%s): %v", name, err)
		}
	}
	if err := tab.CheckNew("anything at all=", 1, nil); err != nil {
		t.Errorf("below the last key: %v", err)
	}
}

func TestAPartitionMayLookLikeAStagingTree(t *testing.T) {
	tab := hive("__magic", "int")
	if err := tab.CheckNew("__magic=x", 0, nil); !errors.Is(err, ErrName) {
		t.Errorf("__magic=x: got %v, want ErrName", err)
	}
	if err := tab.CheckNew("__magic_job", 0, nil); err != nil {
		t.Errorf("__magic_job: %v", err)
	}
}

func TestStagingTrees(t *testing.T) {
	for name, want := range map[string]bool{
		"_temporary": true, "_temporary-1": true, "__magic": true, "__magic_job-1": true, ".hive-staging_x": true,
		".spark-staging-x": true, "_temporary1": false, "_SUCCESS": false, "temporary": false, ".hive-staging": false,
		"_delta_log": false, "_magic": false, ".~tmp~": true, ".rsync-partial": true, ".~tmp": false, "~tmp~": false, ".rsync-partial1": false,
	} {
		if got := StagingTree(name); got != want {
			t.Errorf("StagingTree(%s): got %t, want %t", name, got, want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"a/b:c=d%", "\x00\x1f\x7f", "%41", "é", "\xff", "%zz", "%C3%A3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name := Escape(s)
		if strings.ContainsAny(name, "/\x00=:") {
			t.Fatalf("Escape(%q) = %q", s, name)
		}
		got := Unescape(name)
		if utf8.ValidString(s) && got != s {
			t.Fatalf("%q: escaped %q, back %q", s, name, got)
		}
		if !utf8.ValidString(got) || !utf8.ValidString(Unescape(s)) {
			t.Fatalf("%q: not UTF-8", s)
		}
		if !utf8.ValidString(s) {
			return
		}
		tab := hive("k", "string")
		if s != "" {
			if err := tab.CheckNew("k="+name, 0, nil); err != nil {
				t.Fatalf("CheckNew(k=%s): %v", name, err)
			}
		}
		if v, err := tab.Partition("k="+name, 0); err != nil || v != s {
			t.Fatalf("Partition(k=%s): %q, %v, want %q", name, v, err, s)
		}
	})
}
