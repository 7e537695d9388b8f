package gluetest_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
)

func TestEntriesStayAsTheyAre(t *testing.T) {
	const entry = `{"Zeta": 1.50E+2, "Name": "t","Big":12345678901234567890,"CreateTime":1.7672256E9,"Alpha":{"b":"\u00e9<&>","a":null},"Parameters":{"z":"1","a":"2"}`
	s := gluetest.New(t)
	s.AddTable("d", entry+"}")
	want := `{"Table":{` + strings.NewReplacer(`"Zeta": `, `"Zeta":`, `, "Name": `, `,"Name":`).Replace(entry[1:]) +
		`,"DatabaseName":"d","CatalogId":"123456789012","VersionId":"0"}}`
	if got := must(t, s.URL, "GetTable", getOne).raw; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestInputsStayAsTheyAre(t *testing.T) {
	s := gluetest.New(t)
	s.AddDatabase("d")
	const odd = `"New":{"z":1.50E+2,"a":[12345678901234567890,null]}`
	must(t, s.URL, "CreateTable", `{"DatabaseName":"d","TableInput":{`+odd+`,"Name":"t","PartitionKeys":[{"Name":"k","Type":"string"}],"Owner":null}}`)
	must(t, s.URL, "CreatePartition", `{"DatabaseName":"d","TableName":"t","PartitionInput":{`+odd+`,"Values":["<é>"]}}`)
	for op, input := range map[string]string{"GetTable": getOne, "GetPartition": `{"DatabaseName":"d","TableName":"t","PartitionValues":["<é>"]}`} {
		r := must(t, s.URL, op, input)
		if !strings.Contains(r.raw, odd) || strings.Contains(r.raw, "Owner") {
			t.Errorf("%s: got %s, want %s in it, and no Owner", op, r.raw, odd)
		}
	}
}

func TestVersionsCountFromZero(t *testing.T) {
	s := gluetest.New(t)
	s.AddDatabase("d")
	must(t, s.URL, "CreateTable", `{"DatabaseName":"d","TableInput":{"Name":"t"}}`)
	update := func(version string) string {
		return do(t, s.URL, "UpdateTable", fmt.Sprintf(`{"DatabaseName":"d","VersionId":%q,"TableInput":{"Name":"t"}}`, version)).failure()
	}
	if got := update("0"); got != "" {
		t.Errorf("got %s of the version that is there", got)
	}
	if got := update("0"); got != "ConcurrentModificationException" {
		t.Errorf("got %q of a stale version, want ConcurrentModificationException", got)
	}
	if r := must(t, s.URL, "GetTable", getOne); !strings.Contains(r.raw, `"VersionId":"1"`) {
		t.Errorf("got %s, want version 1", r.raw)
	}
	s.SetTable("d", `{"Name":"t","VersionId":"7"}`)
	if got := update("7"); got != "" {
		t.Errorf("got %s of the version that was set", got)
	}
}

func TestCatalogsOfOtherAccounts(t *testing.T) {
	s := gluetest.New(t)
	s.AddTable("d", `{"Name":"t","Description":"own"}`)
	other := s.In("111122223333")
	other.AddTable("d", `{"Name":"t","Description":"theirs"}`)
	for _, c := range []struct{ account, want string }{
		{"", "own"}, {gluetest.Account, "own"}, {"111122223333", "theirs"}, {"999999999999", "EntityNotFoundException"},
	} {
		id := fmt.Sprintf(`"CatalogId":%q,`, c.account)
		if c.account == "" {
			id = ""
		}
		for _, in := range []struct{ op, input string }{{"GetTable", `"DatabaseName":"d","Name":"t"}`}, {"GetTables", `"DatabaseName":"d"}`}} {
			if r := do(t, s.URL, in.op, "{"+id+in.input); !strings.Contains(r.raw, c.want) {
				t.Errorf("%s of account %q: got %s, want %s", in.op, c.account, r.raw, c.want)
			}
		}
	}
	if r := do(t, s.URL, "GetDatabases", `{"CatalogId":"999999999999"}`); r.failure() != "EntityNotFoundException" {
		t.Errorf("got %s, want EntityNotFoundException", r.raw)
	}
}

func TestFixtures(t *testing.T) {
	s := gluetest.New(t)
	dir := filepath.Join("..", "..", "..", "table", "testdata", "glue")
	all := s.LoadFixtures(dir)
	if len(all) < 38 {
		t.Fatalf("got %d fixtures, want 38 or more", len(all))
	}
	for _, f := range all {
		op, input := "GetTable", fmt.Sprintf(`{"DatabaseName":%q,"Name":%q}`, f.Database, f.Table)
		if f.Table == "" {
			op, input = "GetDatabase", fmt.Sprintf(`{"Name":%q}`, f.Database)
		}
		if r := do(t, s.URL, op, input); r.failure() != "" {
			t.Errorf("%s: got %s, want the entry", f.Folder, r.raw)
		}
	}
	for _, f := range all {
		want, counted := map[string]int{"awswrangler-parquet": 3, "made-by-hand/multi-format-partitions": 6, "pyiceberg": 0}[f.Folder]
		if !counted {
			continue
		}
		in := fmt.Sprintf(`{"DatabaseName":%q,"TableName":%q}`, f.Database, f.Table)
		if got := pages(t, s.URL, "GetPartitions", "Partitions", in); got[0] != want {
			t.Errorf("%s: got %d partitions, want %d", f.Folder, got[0], want)
		}
	}
}

func TestManyPartitionsAreSmall(t *testing.T) {
	s := gluetest.New(t)
	s.AddTable("d", `{"Name":"t","PartitionKeys":[{"Name":"n","Type":"int"}]}`)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s.AddMany("d", "t", gluetest.Many{Count: 100_000, Columns: 170, Values: func(i int) []string { return []string{fmt.Sprint(i)} }})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20; got > 64 {
		t.Errorf("100,000 partitions take %d MiB, want 64 at most", got)
	}
	r := must(t, s.URL, "GetPartition", `{"DatabaseName":"d","TableName":"t","PartitionValues":["99999"]}`)
	if !strings.Contains(r.raw, `"Location":"s3://lake/d/t/n=99999/"`) || !strings.Contains(r.raw, `{"Name":"c0169","Type":"string"}`) {
		t.Errorf("got %s, want its location and 170 columns", r.raw)
	}
	if got := pages(t, s.URL, "GetPartitions", "Partitions", `{"DatabaseName":"d","TableName":"t","ExcludeColumnSchema":true}`); len(got) != 100 {
		t.Errorf("got %d pages, want 100", len(got))
	}
}

func TestBadEntriesAreTold(t *testing.T) {
	told := 0
	s, err := gluetest.Start(func(string, ...any) { told++ })
	if err != nil {
		t.Fatal(err)
	}
	for i, load := range []func(){
		func() { s.AddDatabase(`{"Name":`) },
		func() { s.AddTable("d", `[]`) },
		func() { s.AddTable("d", `{"Name":"t"}{}`) },
		func() { s.SetTable("d", `{"Name":"t"}`) },
		func() { s.AddPartition("d", "t", `{"Values":["1"]}`) },
		func() { s.AddPartitions("d", "t", `{`) },
		func() { s.AddMany("d", "t", gluetest.Many{Count: 1}) },
		func() { s.Remove("d", "") },
		func() { s.LoadFixtures("nowhere") },
	} {
		if load(); told != i+1 {
			t.Fatalf("step %d: told %d times, want %d", i, told, i+1)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// An index into the middle of a listing holds while partitions come and go.
func TestTokensOutliveChanges(t *testing.T) {
	s := gluetest.New(t)
	s.AddTable("d", `{"Name":"t","PartitionKeys":[{"Name":"n","Type":"int"}]}`)
	s.AddMany("d", "t", gluetest.Many{Count: 6, Values: func(i int) []string { return []string{fmt.Sprint(i)} }})
	const in = `{"DatabaseName":"d","TableName":"t","MaxResults":3`
	r := must(t, s.URL, "GetPartitions", in+"}")
	for _, n := range []string{"0", "1", "3"} {
		must(t, s.URL, "DeletePartition", fmt.Sprintf(`{"DatabaseName":"d","TableName":"t","PartitionValues":[%q]}`, n))
	}
	r = must(t, s.URL, "GetPartitions", in+fmt.Sprintf(`,"NextToken":%q}`, r.body["NextToken"]))
	if !strings.Contains(r.raw, `["4"]`) || !strings.Contains(r.raw, `["5"]`) || strings.Contains(r.raw, `["2"]`) {
		t.Errorf("got %s, want 4 and 5", r.raw)
	}
}

func TestLimits(t *testing.T) {
	s, _ := withTable(t)
	s.AddTable("d", `{"Name":"b","PartitionKeys":[{"Name":"k","Type":"boolean"}]}`)
	long := func(n int) string { return strings.Repeat("x", n) }
	entry := func(format string, n int) string {
		return fmt.Sprintf(`{"DatabaseName":"d","TableInput":{"Name":"n`+fmt.Sprint(n)+`",`+format+`}}`, long(n))
	}
	for name, c := range map[string]struct {
		format string
		limit  int
	}{
		"parameter's key":   {`"Parameters":{"%s":"v"}`, 255},
		"parameter's value": {`"Parameters":{"k":"%s"}`, 512_000},
		"column's name":     {`"StorageDescriptor":{"Columns":[{"Name":"%s"}]}`, 255},
		"column's comment":  {`"StorageDescriptor":{"Columns":[{"Name":"c","Comment":"%s"}]}`, 255},
		"column's type":     {`"PartitionKeys":[{"Name":"c","Type":"%s"}]`, 131_072},
		"location":          {`"StorageDescriptor":{"Location":"%s"}`, 2056},
	} {
		if r := do(t, s.URL, "CreateTable", entry(c.format, c.limit)); r.failure() != "" && r.failure() != "AlreadyExistsException" {
			t.Errorf("%s of %d: got %s, want it taken", name, c.limit, r.raw)
		}
		if r := do(t, s.URL, "CreateTable", entry(c.format, c.limit+1)); r.failure() != "ValidationException" {
			t.Errorf("%s of %d: got %s, want ValidationException", name, c.limit+1, r.failure())
		}
	}
	for name, c := range map[string]struct{ op, input, want string }{
		"expression":     {"GetPartitions", `{"DatabaseName":"d","TableName":"t","Expression":"dt = '` + long(2048) + `'"}`, "ValidationException"},
		"segment":        {"GetPartitions", `{"DatabaseName":"d","TableName":"t","Segment":{"SegmentNumber":3,"TotalSegments":3}}`, "InvalidInputException"},
		"page of none":   {"GetPartitions", `{"DatabaseName":"d","TableName":"t","MaxResults":0}`, "ValidationException"},
		"batch to get":   {"BatchGetPartition", `{"DatabaseName":"d","TableName":"t","PartitionsToGet":[{}` + strings.Repeat(",{}", 1000) + `]}`, "ValidationException"},
		"batch to go":    {"BatchDeletePartition", `{"DatabaseName":"d","TableName":"t","PartitionsToDelete":[{}` + strings.Repeat(",{}", 25) + `]}`, "ValidationException"},
		"no database":    {"GetTables", `{}`, "ValidationException"},
		"no JSON":        {"GetTables", `{"DatabaseName":`, "SerializationException"},
		"values missing": {"CreatePartition", `{"DatabaseName":"d","TableName":"t","PartitionInput":{}}`, "InvalidInputException"},
		"boolean key":    {"GetPartitions", `{"DatabaseName":"d","TableName":"b","Expression":"k = true"}`, "InvalidInputException"},
		"foreign token":  {"GetPartitions", `{"DatabaseName":"d","TableName":"t","NextToken":"Z2x1ZQ"}`, "InvalidInputException"},
	} {
		if r := do(t, s.URL, c.op, c.input); r.failure() != c.want {
			t.Errorf("%s: got %s, want %s", name, r.raw, c.want)
		}
	}
}
