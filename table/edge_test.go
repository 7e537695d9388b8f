package table

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The design's edge cases, by number.

func TestEdge1ReservedCharactersAreEscaped(t *testing.T) {
	tab := hive("k", "string")
	if got, want := "k="+Escape("a/b:c=d%"), "k=a%2Fb%3Ac%3Dd%25"; got != want {
		t.Errorf("Escape: got %q, want %q", got, want)
	}
	got, err := tab.Partition("k=a%2Fb%3Ac%3Dd%25", 0)
	if want := "a/b:c=d%"; err != nil || got != want {
		t.Errorf("Partition: got %q, %v, want %q", got, err, want)
	}
	if err := tab.CheckNew("k=a%2Fb%3Ac%3Dd%25", 0, nil); err != nil {
		t.Errorf("CheckNew: %v", err)
	}
}

func TestEdge2ControlBytesAreEscapedAndOthersLeft(t *testing.T) {
	for in, want := range map[string]string{
		"\x00\x1f\x7f":      "%00%1F%7F",
		"é":                 "é",
		" ":                 " ",
		"}":                 "}",
		`"#%'*/:=?\{[]^`:    "%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%5B%5D%5E",
		"+,-.;<>@_|}~!":     "+,-.;<>@_|}~!",
		"\xff":              "\xff",
		"2026-01-01 12:30:": "2026-01-01 12%3A30%3A",
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q): got %q, want %q", in, got, want)
		}
	}
}

func TestEdge3LonePercentsAreLiterals(t *testing.T) {
	tab := hive("k", "string")
	for _, v := range []string{"%zz", "%", "%2", "50%", "%2%", "a%g0"} {
		if got, err := tab.Partition("k="+v, 0); err != nil || got != v {
			t.Errorf("Partition(k=%s): got %q, %v", v, got, err)
		}
		if err := tab.CheckNew("k="+v, 0, nil); err != nil {
			t.Errorf("CheckNew(k=%s): %v", v, err)
		}
	}
	for in, want := range map[string]string{
		"S%C3%A3o": "São", "%e9": "é", "\xe9": "é", "%ff%41": "ÿA", "%2541": "%41", "%25": "%", "%%41": "%A",
	} {
		if got := Unescape(in); got != want {
			t.Errorf("Unescape(%q): got %q, want %q", in, got, want)
		}
	}
}

func TestEdge4NewNameWithTwoEqualSignsIsRefusedExistingSplitsAtFirst(t *testing.T) {
	tab := hive("k", "string")
	for _, name := range []string{"k=a=b", "k=", "=v", "k", "x=1", "K=1", "", ".", "..", "k=a/b", "k=\x00"} {
		if err := tab.CheckNew(name, 0, nil); !errors.Is(err, ErrName) {
			t.Errorf("CheckNew(%q): got %v, want ErrName", name, err)
		}
	}
	if got, err := tab.Partition("k=a=b", 0); err != nil || got != "a=b" {
		t.Errorf("Partition(k=a=b): got %q, %v", got, err)
	}
}

func TestEdge5ComponentsAboveTheTableAreNoPartitions(t *testing.T) {
	m := manifest(func(m obj) {
		m["storage_descriptor"].(obj)["location"] = "/wh/env=prod/t"
		m["partition_keys"] = []obj{{"name": "dt", "type": "int"}}
	})
	tab := ParseManifest("db", "t", m, Limits{})
	if tab.Kind != Hive || len(tab.Keys) != 1 {
		t.Fatalf("got kind %s, keys %v: %s", tab.Kind, tab.Keys, tab.Reason)
	}
	if got, err := tab.Partition("dt=1", 0); err != nil || got != "1" {
		t.Errorf("Partition(dt=1): got %q, %v", got, err)
	}
	if _, err := tab.Partition("env=prod", 0); !errors.Is(err, ErrNotPartition) {
		t.Errorf("Partition(env=prod): got %v, want ErrNotPartition", err)
	}
	if _, err := tab.Partition("dt=1", 1); !errors.Is(err, ErrNotPartition) {
		t.Errorf("Partition(dt=1) below the last key: got %v, want ErrNotPartition", err)
	}
}

func TestEdge6EqualIntegersUnderAnotherSpelling(t *testing.T) {
	tab := hive("d", "int")
	err := tab.CheckNew("d=07", 0, slices.Values([]string{"x", "_SUCCESS", "d=8", "d=7"}))
	if !errors.Is(err, ErrEqual) || !strings.Contains(err.Error(), "d=7") {
		t.Errorf("Hive table, d=07 beside d=7: got %v, want ErrEqual that names d=7", err)
	}
	if err = tab.CheckNew("d=07", 0, slices.Values([]string{"d=8"})); err != nil {
		t.Errorf("Hive table, d=07 alone: %v", err)
	}
	ft := formatTable("d", "int")
	err = ft.CheckNew("d=07", 0, nil)
	if !errors.Is(err, ErrName) || !strings.Contains(err.Error(), `"d=7"`) {
		t.Errorf("format table, d=07: got %v, want ErrName that names d=7", err)
	}
	if err := ft.CheckNew("d=7", 0, nil); err != nil {
		t.Errorf("format table, d=7: %v", err)
	}
}

func TestEdge7LegacyDatesAreDayCounts(t *testing.T) {
	tab := formatTable("dt", "date")
	for _, c := range []struct {
		legacy bool
		name   string
		names  string // what the message names; "-" for no error
	}{
		{true, "dt=19723", "-"},
		{true, "dt=2024-01-01", "dt=19723"},
		{true, "dt=019723", "dt=19723"},
		{true, "dt=-1", "-"},
		{true, "dt=foo", "date"},
		{true, "dt=99999999", "date"},
		{false, "dt=2024-01-01", "-"},
		{false, "dt=2024-1-1", "dt=2024-01-01"},
		{false, "dt=19723", "date"},
		{false, "dt=foo", "date"},
		{false, "dt=2024-02-30", "date"},
		{true, "dt=__DEFAULT_PARTITION__", "-"},
		{true, "dt=__DEFAULT%5FPARTITION__", "dt=__DEFAULT_PARTITION__"},
	} {
		tab.LegacyDate = c.legacy
		err := tab.CheckNew(c.name, 0, nil)
		if c.names == "-" {
			if err != nil {
				t.Errorf("legacy %t, %s: %v", c.legacy, c.name, err)
			}
			continue
		}
		if !errors.Is(err, ErrName) || !strings.Contains(err.Error(), c.names) {
			t.Errorf("legacy %t, %s: got %v, want ErrName that names %s", c.legacy, c.name, err, c.names)
		}
	}
}

func TestEdge8ValueOnlyNames(t *testing.T) {
	tab := formatTable("k", "string")
	tab.PathOnlyValue = true
	for _, c := range []struct {
		name     string
		level    int
		metadata bool
		want     error
	}{
		{"__DEFAULT_PARTITION__", 0, false, nil},
		{"a", 0, false, nil},
		{"_x", 0, false, ErrName},
		{".x", 0, false, ErrName},
		{"a=b", 0, false, ErrName}, // spelt a%3Db
		{"a%3Db", 0, false, nil},
		{"_temporary", 0, false, nil},
		{"schema", 0, false, nil},
		{"branch", 0, false, nil},
		{"schema", 0, true, ErrMetadata},
		{"branch", 0, true, ErrMetadata},
		{"schema", 1, true, nil},
		{"schemas", 0, true, nil},
	} {
		tab.MetadataUnderTable = c.metadata
		if err := tab.CheckNew(c.name, c.level, nil); !errors.Is(err, c.want) {
			t.Errorf("CheckNew(%s, level %d, metadata %t): got %v, want %v", c.name, c.level, c.metadata, err, c.want)
		}
	}
	tab.MetadataUnderTable = false
	if tab.HiddenAt("__DEFAULT_PARTITION__", 0) || !tab.HiddenAt("__DEFAULT_PARTITION__", 1) {
		t.Error("the null name is hidden at its level, or shown elsewhere")
	}
	v, err := tab.ParsePartition("__DEFAULT_PARTITION__", 0)
	if err != nil || !v.Null {
		t.Errorf("null name: got %+v, %v", v, err)
	}
}

func TestEdge11LimitsAreNamed(t *testing.T) {
	columns := func(n int) []obj {
		out := make([]obj, n)
		for i := range out {
			out[i] = obj{"name": fmt.Sprint("c", i), "type": "int"}
		}
		return out
	}
	big := make([]byte, 1<<20+1)
	for _, c := range []struct {
		what string
		raw  []byte
		want []string
	}{
		{"1 MiB + 1", big, []string{"1048577", "limit of 1048576 bytes"}},
		{"4097 columns", manifest(func(m obj) { m["storage_descriptor"].(obj)["columns"] = columns(4097) }), []string{"4097", "limit of 4096 columns"}},
		{"33 keys", manifest(func(m obj) { m["partition_keys"] = columns(33) }), []string{"33", "limit of 32 partition keys"}},
	} {
		tab := ParseManifest("db", "t", c.raw, Limits{})
		wantBroken(t, c.what, tab, c.want...)
	}
	for _, m := range [][]byte{
		manifest(func(m obj) { m["storage_descriptor"].(obj)["columns"] = columns(4096) }),
		manifest(func(m obj) { m["partition_keys"] = columns(32) }),
	} {
		if tab := ParseManifest("db", "t", m, Limits{}); !tab.Writable {
			t.Errorf("at the limit: %s", tab.Reason)
		}
	}
	tab := ParseManifest("db", "t", manifest(nil), Limits{MaxBytes: 10})
	wantBroken(t, "own limit", tab, "limit of 10 bytes")
}
