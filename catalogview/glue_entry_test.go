package catalogview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// editor is a Glue catalog whose entries may be written, and its view.
type editor struct {
	t      *testing.T
	server *gluetest.Server
	view   *View
}

func newEditor(t *testing.T, change ...func(*Options)) *editor {
	t.Helper()
	server := gluetest.New(t)
	src := NewGlue(GlueOptions{
		Config:   aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")},
		Endpoint: server.URL, Timeout: 20 * time.Second,
	})
	o := Options{Rootless: true, WriteEntries: true, Register: true, TTL: time.Hour, NegativeTTL: time.Hour}
	for _, c := range change {
		c(&o)
	}
	v := NewView(src, newPageStore(), o)
	t.Cleanup(func() {
		if err := errors.Join(v.Close(), src.Close()); err != nil {
			t.Error(err)
		}
	})
	return &editor{t: t, server: server, view: v}
}

const ordersDescriptor = `"Columns":[{"Name":"id","Type":"bigint"}],"Location":"s3://lake/orders","Compressed":false,"NumberOfBuckets":-1,"StoredAsSubDirectories":false,
"InputFormat":"org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat","OutputFormat":"org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
"SerdeInfo":{"SerializationLibrary":"org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"}`

// ordersEntry is a table's entry as the catalog has it; more ends in a comma.
func ordersEntry(more string) string {
	return `{` + more + `"Name":"orders","CreateTime":1.795981949E9,"UpdateTime":1.795981949123E9,"CreatedBy":"me","Retention":0,"TableType":"EXTERNAL_TABLE",
"VersionId":"7","IsRegisteredWithLakeFormation":false,"Parameters":{"EXTERNAL":"TRUE","trino_query_id":"x"},"PartitionKeys":[{"Name":"dt","Type":"string"}],
"StorageDescriptor":{` + ordersDescriptor + `}}`
}

// read is FreshEntry of sales/orders.
func (e *editor) read() (entry, etag string) {
	e.t.Helper()
	b, n, err := e.view.FreshEntry(e.t.Context(), "sales/orders")
	if err != nil {
		e.t.Fatal(err)
	}
	return string(b), n.ETag
}

// edit reads the entry of sales/orders, changes it and writes it back; what was sent of
// it is returned.
func (e *editor) edit(change func(t obj)) (sent obj, err error) {
	e.t.Helper()
	entry, etag := e.read()
	_, err = e.view.WriteEntry(e.t.Context(), "sales/orders", []byte(changed(e.t, entry, change)), etag, false)
	return e.sent("UpdateTable"), err
}

// changed is an entry with some changes.
func changed(t *testing.T, entry string, change func(t obj)) string {
	t.Helper()
	all, err := decodeExact([]byte(entry))
	if err != nil {
		t.Fatal(err)
	}
	change(all["Table"].(obj))
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sent is the TableInput of the last call of an operation.
func (e *editor) sent(op string) obj {
	calls := e.server.Calls(op)
	if len(calls) == 0 {
		return nil
	}
	in, _ := calls[len(calls)-1].Input["TableInput"].(obj)
	return in
}

// good is edit of what is to be taken.
func (e *editor) good(change func(t obj)) obj {
	e.t.Helper()
	sent, err := e.edit(change)
	if err != nil {
		e.t.Fatal(err)
	}
	return sent
}

func descriptorOf(t obj) obj { return t["StorageDescriptor"].(obj) }

func parametersOf(t obj) obj { return t["Parameters"].(obj) }

// TestRule02_AnUpdateKeepsWhatItDoesNotKnow: unknown fields and parameters, exact
// numbers, times; and what the catalog tells of itself is not sent.
func TestRule02_AnUpdateKeepsWhatItDoesNotKnow(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", ordersEntry(`"New":{"CreateTime":12345678901234567890.10,"a":[1.50,{"b":"<&>\u2028"}],"UpdateTime":1.5E9},"Status":{"State":"QUEUED"},
"LastAccessTime":1.7E9,"LastAnalyzedTime":1.700000000123E9,"Owner":"hadoop","Gone":null,`))
	sent := e.good(func(t obj) { parametersOf(t)["mine"] = "1" })
	var want obj
	dec := json.NewDecoder(strings.NewReader(`{"New":{"CreateTime":12345678901234567890.10,"a":[1.50,{"b":"<&>\u2028"}],"UpdateTime":1.5E9},
"LastAccessTime":1.7E9,"LastAnalyzedTime":1.700000000123E9,"Owner":"hadoop","Name":"orders","Retention":0,"TableType":"EXTERNAL_TABLE",
"Parameters":{"EXTERNAL":"TRUE","trino_query_id":"x","mine":"1"},"PartitionKeys":[{"Name":"dt","Type":"string"}],"StorageDescriptor":{` + ordersDescriptor + `}}`))
	dec.UseNumber()
	if err := dec.Decode(&want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(sent, want) {
		t.Errorf("sent %v\nwant %v", sent, want)
	}
	call := e.server.Calls("UpdateTable")[0]
	if call.Input["SkipArchive"] != true || call.Input["VersionId"] != "7" {
		t.Errorf("sent SkipArchive %v, VersionId %v", call.Input["SkipArchive"], call.Input["VersionId"])
	}
	entry, _ := e.read()
	if !strings.Contains(entry, `"VersionId": "8"`) || !strings.Contains(entry, `"mine": "1"`) {
		t.Errorf("the entry is now %s", entry)
	}
	sent = e.good(func(t obj) {
		t["LastAccessTime"] = "2026-11-29T12:00:00.250000+01:00"
		delete(t, "VersionId")
		delete(t, "CreateTime")
	})
	if got := fmt.Sprint(sent["LastAccessTime"], " ", sent["LastAnalyzedTime"]); got != "1795950000.25 1.700000000123E9" {
		t.Errorf("sent the times %s", got)
	}
}

// A change of what is the catalog's own is refused by name, and of the version is of
// another version.
func TestRule02_TheCatalogsOwnFieldsStay(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", ordersEntry(""))
	for field, value := range map[string]any{
		"CreateTime": "2020-01-01T00:00:00+00:00", "UpdateTime": json.Number("5"), "CreatedBy": "you", "IsRegisteredWithLakeFormation": true,
		"CatalogId": "999999999999", "Status": obj{"State": "x"}, "IsMultiDialectView": true,
	} {
		_, err := e.edit(func(t obj) { t[field] = value })
		wantEntryError(t, err, field)
	}
	_, err := e.edit(func(t obj) { t["VersionId"] = "6" })
	if !errors.Is(err, objectstore.ErrChanged) || errors.Is(err, ErrEntry) {
		t.Errorf("of version 6: %v, want ErrChanged", err)
	}
	if n := e.server.Requests()["UpdateTable"]; n != 0 {
		t.Errorf("%d updates", n)
	}
	st, err := e.view.Status(t.Context(), "sales")
	if err != nil || len(st.Rejected) != 1 || st.Rejected[0].Path != "sales/orders.json" || !strings.Contains(st.Rejected[0].Reason, `"6"`) {
		t.Errorf("status has %+v, %v", st.Rejected, err)
	}
}

func wantEntryError(t *testing.T, err error, reason string) {
	t.Helper()
	var invalid *EntryError
	if !errors.As(err, &invalid) || !strings.Contains(invalid.Reason, reason) {
		t.Errorf("got %v, want an EntryError with %q", err, reason)
	}
}

// TestRule13_CommentsAreCut: on one line, at a character's edge, and what the catalog
// has stays as it is.
func TestRule13_CommentsAreCut(t *testing.T) {
	e := newEditor(t)
	long := strings.Repeat("é", 200) // 400 bytes, which the service takes: its limit is in characters
	e.server.AddTable("sales", strings.Replace(ordersEntry(""), `{"Name":"dt","Type":"string"}`, `{"Name":"dt","Type":"string","Comment":"`+long+`"}`, 1))
	sent := e.good(func(t obj) {
		t["Description"] = "two\nlines " + strings.Repeat("é", 3000)
		descriptorOf(t)["Columns"] = []any{
			obj{"Name": "id", "Type": "bigint", "Comment": "a\tb\x00c\nd\x7f"},
			obj{"Name": "cut", "Type": "int", "Comment": strings.Repeat("x", 254) + "é" + strings.Repeat("y", 44)},
			obj{"Name": "none", "Type": "int", "Comment": nil},
		}
	})
	if got := sent["Description"].(string); len(got) != 2048 || !strings.HasPrefix(got, "two\nlines é") || !utf8.ValidString(got) {
		t.Errorf("a description of %d bytes: %.20q", len(got), got)
	}
	columns := descriptorOf(sent)["Columns"].([]any)
	for i, want := range []any{"a b c d ", strings.Repeat("x", 254), nil} {
		if got := columns[i].(obj)["Comment"]; got != want {
			t.Errorf("comment %d: got %q, want %q", i, got, want)
		}
	}
	if got := sent["PartitionKeys"].([]any)[0].(obj)["Comment"]; got != long {
		t.Errorf("a comment that nobody changed is now %q", got)
	}
	_, err := e.edit(func(t obj) { t["Description"] = json.Number("5") })
	wantEntryError(t, err, "Description")
}

// TestRule14_EntriesNeverOwnData: tables are external, and dropping one is a DeleteTable.
func TestRule14_EntriesNeverOwnData(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", strings.NewReplacer(`"EXTERNAL_TABLE"`, `"MANAGED_TABLE"`, `"EXTERNAL":"TRUE",`, "").Replace(ordersEntry("")))
	store, ok := e.view.store.(*pageStore)
	if !ok {
		t.Fatal("another store")
	}
	store.set("orders/dt=1/f", "x")
	sent := e.good(func(obj) {})
	if sent["TableType"] != "EXTERNAL_TABLE" || parametersOf(sent)["EXTERNAL"] != "TRUE" {
		t.Errorf("sent %v", sent)
	}
	_, etag := e.read()
	if err := e.view.RemoveEntry(t.Context(), "sales/orders", "another"); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("RemoveEntry of another version: %v", err)
	}
	wantLs(t, e.view, "sales", "orders.json", "orders/")
	if err := e.view.RemoveEntry(t.Context(), "sales/orders", etag); err != nil {
		t.Fatal(err)
	}
	wantLs(t, e.view, "sales")
	if _, err := e.view.Lookup(t.Context(), "sales/orders.json"); !errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("Lookup: %v", err)
	}
	if _, there := store.get("orders/dt=1/f"); !there {
		t.Error("the data is gone")
	}
	if err := e.view.RemoveEntry(t.Context(), "sales/orders", etag); !errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("RemoveEntry of none: %v", err)
	}
}

// TestRule14_ViewsStayViews: no view is made a table.
func TestRule14_ViewsStayViews(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", `{"Name":"orders","TableType":"VIRTUAL_VIEW","ViewOriginalText":"/* Presto View: x */","Parameters":{"presto_view":"true"},
"StorageDescriptor":{"Columns":[{"Name":"id","Type":"bigint"}],"Location":"","SerdeInfo":{}}}`)
	sent := e.good(func(t obj) { t["ViewOriginalText"] = "/* Presto View: y */" })
	if sent["TableType"] != "VIRTUAL_VIEW" || len(parametersOf(sent)) != 1 || sent["ViewOriginalText"] != "/* Presto View: y */" {
		t.Errorf("sent %v", sent)
	}
}

// TestRule15_TheFourKeysAreSent: in the body, where the SDK would leave out 0 and false;
// as they were written, so that a table with buckets keeps their number.
func TestRule15_TheFourKeysAreSent(t *testing.T) {
	for name, c := range map[string]struct {
		change            func(t obj)
		retention, bucket string
		compressed, sub   bool
	}{
		"absent": {func(t obj) {
			delete(t, "Retention")
			for _, k := range []string{"Compressed", "NumberOfBuckets", "StoredAsSubDirectories"} {
				delete(descriptorOf(t), k)
			}
		}, "0", "-1", false, false},
		"null": {func(t obj) {
			t["Retention"] = nil
			for _, k := range []string{"Compressed", "NumberOfBuckets", "StoredAsSubDirectories"} {
				descriptorOf(t)[k] = nil
			}
		}, "0", "-1", false, false},
		"unchanged": {func(obj) {}, "0", "-1", false, false},
		"buckets": {func(t obj) {
			descriptorOf(t)["NumberOfBuckets"], descriptorOf(t)["BucketColumns"] = json.Number("8"), []any{"id"}
		}, "0", "8", false, false},
		"set": {func(t obj) {
			t["Retention"] = json.Number("30")
			descriptorOf(t)["NumberOfBuckets"], descriptorOf(t)["Compressed"], descriptorOf(t)["StoredAsSubDirectories"] = json.Number("0"), true, true
		}, "30", "0", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEditor(t)
			e.server.AddTable("sales", ordersEntry(""))
			sent := e.good(c.change)
			sd := descriptorOf(sent)
			if fmt.Sprint(sent["Retention"], sd["NumberOfBuckets"], sd["Compressed"], sd["StoredAsSubDirectories"]) != fmt.Sprint(c.retention, c.bucket, c.compressed, c.sub) {
				t.Errorf("sent %v", sent)
			}
			again := e.good(func(t obj) { parametersOf(t)["mine"] = "1" }) // another edit leaves them alone
			if !reflect.DeepEqual(descriptorOf(again), sd) || fmt.Sprint(again["Retention"]) != c.retention {
				t.Errorf("sent again %v", again)
			}
		})
	}
	e := newEditor(t)
	e.server.AddTable("sales", ordersEntry(""))
	for _, bad := range []string{"Compressed", "NumberOfBuckets", "StoredAsSubDirectories"} {
		_, err := e.edit(func(t obj) { descriptorOf(t)[bad] = "no" })
		wantEntryError(t, err, bad)
	}
}

// TestRule16_LongSchemasAreSplit: into parts of at most 4000 characters that join to it.
func TestRule16_LongSchemasAreSplit(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", ordersEntry(""))
	var fields []string
	for i := range 90 {
		fields = append(fields, fmt.Sprintf(`{"name":"c%d","type":"string","nullable":true,"metadata":{"comment":"%s"}}`, i, strings.Repeat("é𝄞", 20)))
	}
	fields = append(fields, `{"name":"dt","type":"string","nullable":true,"metadata":{}}`)
	schema := `{"type":"struct","fields":[` + strings.Join(fields, ",") + `]}`
	if n := utf8.RuneCountInString(schema); n < 10_000 {
		t.Fatalf("a schema of %d characters", n)
	}
	sent := e.good(func(t obj) {
		p := parametersOf(t)
		p["spark.sql.sources.provider"], p["spark.sql.sources.schema"] = "parquet", schema
		p["spark.sql.sources.schema.part.0"], p["spark.sql.sources.schema.part.9"] = "stale", "stale"
	})
	p := parametersOf(sent)
	joined, n := "", 0
	for ; p[fmt.Sprintf("spark.sql.sources.schema.part.%d", n)] != nil; n++ {
		part := p[fmt.Sprintf("spark.sql.sources.schema.part.%d", n)].(string)
		if utf8.RuneCountInString(part) > 4000 || !utf8.ValidString(part) {
			t.Errorf("part %d has %d characters", n, utf8.RuneCountInString(part))
		}
		joined += part
	}
	if joined != schema || p["spark.sql.sources.schema.numParts"] != fmt.Sprint(n) || p["spark.sql.sources.schema"] != nil || p["spark.sql.sources.schema.part.9"] != nil {
		t.Errorf("sent %d parts of %d characters, numParts %v", n, len(joined), p["spark.sql.sources.schema.numParts"])
	}
	if p["classification"] != nil {
		t.Error("a classification is set")
	}
	if node := lookup(t, e.view, "sales/orders"); len(node.Table.Columns) != 91 || node.Table.Format != "parquet" {
		t.Errorf("it shows with %d columns, as %s", len(node.Table.Columns), node.Table.Format)
	}
	if short := splitText(strings.Repeat("x", 4000), maxSchemaPart); len(short) != 1 {
		t.Errorf("4000 characters are %d parts", len(short))
	}
}

// TestRule16_DeltaTablesSayWhatAthenaReads, and must have a real location.
func TestRule16_DeltaTablesSayWhatAthenaReads(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", ordersEntry(""))
	delta := func(location, path string, kind any) func(t obj) {
		return func(t obj) {
			delete(t, "PartitionKeys")
			p := parametersOf(t)
			p["spark.sql.sources.provider"] = "DELTA"
			if kind != nil {
				p["table_type"] = kind
			}
			descriptorOf(t)["Location"] = location
			descriptorOf(t)["SerdeInfo"] = obj{"Parameters": obj{"path": path}}
		}
	}
	for location, kind := range map[string]any{"": nil, "s3://lake/x-__PLACEHOLDER__": nil, "s3://lake/x": "ICEBERG"} {
		_, err := e.edit(delta(location, "", kind))
		wantEntryError(t, err, map[bool]string{true: "real location", false: "table_type"}[kind == nil])
	}
	for _, location := range []string{"s3://lake/orders", "s3://lake/x-__PLACEHOLDER__", ""} {
		sent := e.good(delta(location, "s3://lake/orders", nil))
		if parametersOf(sent)["table_type"] != "DELTA" || descriptorOf(sent)["Location"] != "s3://lake/orders" {
			t.Errorf("sent %v", sent)
		}
	}
	if got := lookup(t, e.view, "sales/orders").Table; got.Kind != table.Delta || got.Writable {
		t.Errorf("it shows as %+v", got)
	}
}

// Bad entries are refused with the reason, nothing is sent, and the next good one clears it.
func TestBadEntriesOfGlueAreRefused(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", ordersEntry(""))
	e.server.AddPartition("sales", "orders", `{"Values":["1"],"StorageDescriptor":{`+ordersDescriptor+`}}`)
	good, etag := e.read()
	with := func(change func(t obj)) string { return changed(t, good, change) }
	for _, c := range []struct{ name, entry, reason string }{
		{"empty", "", "empty"},
		{"2 MiB", with(func(t obj) { parametersOf(t)["p"] = strings.Repeat("x", 2<<20) }), "limit of 1048576 bytes"},
		{"bad JSON", good[:len(good)/2], "it is cut"},
		{"trailing garbage", good + "{}", "something follows"},
		{"an array", "[" + good + "]", "an array"},
		{"no Table", `{"Name":"orders"}`, "Table"},
		{"more than Table", strings.Replace(good, `"Table"`, `"X":1,"Table"`, 1), "Table"},
		{"Table is none", `{"Table":[]}`, "Table"},
		{"a key twice", strings.Replace(good, `"Name": "orders"`, `"Name": "orders", "Name": "orders"`, 1), "there twice"},
		{"bad UTF-8", strings.Replace(good, `"me"`, "\"m\xff\"", 1), "not UTF-8"},
		{"a nesting bomb", `{"Table":` + strings.Repeat(`[`, 100_000), "nests deeper than 64"},
		{"another table's", with(func(t obj) { t["Name"] = "other" }), "another table"},
		{"another database's", with(func(t obj) { t["DatabaseName"] = "other" }), "another table"},
		{"a name that is none", with(func(t obj) { t["Name"] = json.Number("5") }), "another table"},
		{"no Name", with(func(t obj) { delete(t, "Name") }), "Name is missing"},
		{"no StorageDescriptor", with(func(t obj) { delete(t, "StorageDescriptor") }), "StorageDescriptor.Location is missing"},
		{"no PartitionKeys", with(func(t obj) { delete(t, "PartitionKeys") }), "PartitionKeys cannot be changed"},
		{"another PartitionKey", with(func(t obj) { t["PartitionKeys"].([]any)[0].(obj)["Name"] = "day" }), "PartitionKeys cannot be changed"},
		{"no Columns", with(func(t obj) { delete(descriptorOf(t), "Columns") }), "Columns is missing"},
		{"Columns are none", with(func(t obj) { descriptorOf(t)["Columns"] = "id" }), "StorageDescriptor.Columns is a string"},
		{"a column is none", with(func(t obj) { descriptorOf(t)["Columns"] = []any{"id"} }), "not an object"},
		{"PartitionKeys are none", with(func(t obj) { t["PartitionKeys"] = "x" }), "PartitionKeys is a string"},
		{"StorageDescriptor is none", with(func(t obj) { t["StorageDescriptor"] = "x" }), "StorageDescriptor"},
		{"SerdeInfo is none", with(func(t obj) { descriptorOf(t)["SerdeInfo"] = "x" }), "SerdeInfo"},
		{"Parameters are none", with(func(t obj) { t["Parameters"] = []any{} }), "Parameters"},
		{"a parameter is a number", with(func(t obj) { parametersOf(t)["n"] = json.Number("5") }), `Parameters."n" is a number`},
		{"a time is none", with(func(t obj) { t["LastAccessTime"] = "yesterday" }), "LastAccessTime"},
		{"Retention is none", with(func(t obj) { t["Retention"] = "x" }), "Retention"},
		{"Retention is a string", with(func(t obj) { t["Retention"] = "7" }), "Retention is a string, not a number"},
		{"Retention is a fraction", with(func(t obj) { t["Retention"] = json.Number("7.5") }), "Retention is 7.5, and no integer"},
		{"Retention is huge", with(func(t obj) { t["Retention"] = json.Number("1e400") }), "Retention is 1e400, and no integer"},
		{"Retention is over its range", with(func(t obj) { t["Retention"] = json.Number("2147483648") }), "no integer from 0 to 2147483647"},
		{"Retention is negative", with(func(t obj) { t["Retention"] = json.Number("-1") }), "no integer from 0"},
		{"NumberOfBuckets is a fraction", with(func(t obj) { descriptorOf(t)["NumberOfBuckets"] = json.Number("0.5") }), "no integer from -2147483648"},
		{"Owner is a number", with(func(t obj) { t["Owner"] = json.Number("3") }), "Owner is a number, not a string"},
		{"Description is a number", with(func(t obj) { t["Description"] = json.Number("3") }), "Description is a number"},
		{"TableType is a list", with(func(t obj) { t["TableType"] = []any{} }), "TableType is a list"},
		{"ViewOriginalText is an object", with(func(t obj) { t["ViewOriginalText"] = obj{} }), "ViewOriginalText is an object"},
		{"ViewExpandedText is true", with(func(t obj) { t["ViewExpandedText"] = true }), "ViewExpandedText is true or false"},
		{"a SerDe's Name is a number", with(func(t obj) { descriptorOf(t)["SerdeInfo"].(obj)["Name"] = json.Number("3") }), "StorageDescriptor.SerdeInfo.Name is a number"},
		{"a bucket's column is a number", with(func(t obj) { descriptorOf(t)["BucketColumns"] = []any{json.Number("3")} }), "StorageDescriptor.BucketColumns[0] is a number"},
		{"a column's parameter is a number", with(func(t obj) { descriptorOf(t)["Columns"].([]any)[0].(obj)["Parameters"] = obj{"p": json.Number("3")} }), `StorageDescriptor.Columns[0].Parameters."p" is a number`},
		{"a time that is none", with(func(t obj) { t["LastAccessTime"] = json.Number("1e400") }), "LastAccessTime is 1e400"},
		{"half a character", strings.Replace(good, `"me"`, `"m\\\ud800e"`, 1), `\ud800 at byte`},
		{"the other half", strings.Replace(good, `"me"`, `"\uDC00"`, 1), `\uDC00 at byte`},
		{"two first halves", strings.Replace(good, `"me"`, `"\ud800\ud800\udc00"`, 1), `\ud800 at byte`},
		{"half a key", strings.Replace(good, `"EXTERNAL"`, `"\udbff":"x","EXTERNAL"`, 1), `\udbff at byte`},
		{"VersionId is a number", with(func(t obj) { t["VersionId"] = json.Number("7") }), "VersionId is a number, and it is a string"},
		{"a resource link", with(func(t obj) { t["TargetTable"] = obj{"DatabaseName": "a", "Name": "b"} }), "resource link"},
		{"a placeholder", with(func(t obj) { descriptorOf(t)["Location"] = "s3://lake/x-__PLACEHOLDER__" }), "placeholder"},
		{"a bad schema", with(func(t obj) { parametersOf(t)["spark.sql.sources.schema"] = "{" }), "spark.sql.sources.schema"},
		{"a missing part", with(func(t obj) {
			p := parametersOf(t)
			p["spark.sql.sources.schema.numParts"], p["spark.sql.sources.schema.part.0"] = "2", "{"
		}), "spark.sql.sources.schema.part.1 is missing"},
		{"the service's no", with(func(t obj) { parametersOf(t)[strings.Repeat("k", 256)] = "" }), "the catalog refuses it"},
	} {
		_, err := e.view.WriteEntry(t.Context(), "sales/orders", []byte(c.entry), etag, false)
		wantEntryError(t, err, c.reason)
		if t.Failed() {
			t.Fatal(c.name)
		}
		if now, _ := e.read(); now != good {
			t.Fatalf("%s: the entry is now %s", c.name, now)
		}
		st, err := e.view.Status(t.Context(), "sales/orders")
		if err != nil || len(st.Rejected) != 1 || !strings.Contains(st.Rejected[0].Reason, c.reason) {
			t.Errorf("%s: status has %+v, %v", c.name, st.Rejected, err)
		}
	}
	if n := e.server.Requests()["UpdateTable"]; n != 1 {
		t.Errorf("%d updates were sent", n)
	}
	e.good(func(obj) {})
	if st, err := e.view.Status(t.Context(), "sales/orders"); err != nil || st.Rejected != nil {
		t.Errorf("status has %+v, %v", st.Rejected, err)
	}
}

// A table whose entry does not load is mended by an edit.
// TestWholeCharactersAndNulls: an escaped pair is a character, an escaped backslash no
// escape, and null is as good as absent.
func TestWholeCharactersAndNulls(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", ordersEntry(""))
	good, etag := e.read()
	entry := strings.Replace(good, `"EXTERNAL"`, `"pair":"\ud83d\ude00x\u00e9","none":"\\ud800","gone":null,"EXTERNAL"`, 1)
	if _, err := e.view.WriteEntry(t.Context(), "sales/orders", []byte(entry), etag, false); err != nil {
		t.Fatal(err)
	}
	p := parametersOf(e.sent("UpdateTable"))
	if _, there := p["gone"]; there || p["pair"] != "😀xé" || p["none"] != `\ud800` {
		t.Errorf("the parameters are %q", p)
	}
}

func TestABrokenEntryIsMended(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", strings.Replace(ordersEntry(""), "s3://lake/orders", "", 1))
	if got := lookup(t, e.view, "sales/orders").Table; got.Kind != table.Broken {
		t.Fatalf("it shows as %+v", got)
	}
	e.good(func(t obj) { descriptorOf(t)["Location"] = "s3://lake/orders" })
	if got := lookup(t, e.view, "sales/orders"); !got.Table.Writable || got.Location() != (objectstore.Location{Bucket: "lake", Key: "orders/"}) {
		t.Errorf("it shows as %+v", got)
	}
}

// TestRule43_WrittenLocationsOfGlueAreChecked against the allow list.
func TestRule43_WrittenLocationsOfGlueAreChecked(t *testing.T) {
	e := newEditor(t, func(o *Options) { o.Roots = []string{"s3://lake/"} })
	e.server.AddTable("sales", ordersEntry(""))
	for location, class := range map[string]table.Class{"s3://lake2/x": table.ClassDenied, "file:///etc": table.ClassUnsupported} {
		_, err := e.edit(func(t obj) { descriptorOf(t)["Location"] = location })
		var verdict *VerdictError
		if !errors.As(err, &verdict) || verdict.Class != class {
			t.Errorf("%s: got %v, want a verdict of class %s", location, err, class)
		}
	}
	if n := e.server.Requests()["UpdateTable"]; n != 0 {
		t.Errorf("%d updates", n)
	}
	e.good(func(t obj) { descriptorOf(t)["Location"] = "s3://lake/moved" })
	if got := lookup(t, e.view, "sales/orders").Location(); got.Key != "moved/" {
		t.Errorf("it shows at %v", got)
	}
}

// The mount shows a new entry at once, and keeps what it knows of the others.
func TestAWrittenEntryShowsAtOnce(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", ordersEntry(""))
	e.server.AddTable("sales", strings.Replace(ordersEntry(""), `"orders"`, `"other"`, 1))
	for _, name := range []string{"orders", "other"} {
		e.server.AddPartition("sales", name, `{"Values":["1"],"StorageDescriptor":{`+strings.Replace(ordersDescriptor, "s3://lake/orders", "s3://lake/"+name+"/dt=1", 1)+`}}`)
	}
	wantLs(t, e.view, "sales", "orders.json", "orders/", "other.json", "other/")
	wantLs(t, e.view, "sales/orders", "dt=1/")
	wantLs(t, e.view, "sales/other", "dt=1/")
	entry, etag := e.read()
	e.server.Reset()

	fresh := strings.NewReplacer(`"orders"`, `"fresh"`, "s3://lake/orders", "s3://lake/fresh").Replace(entry)
	n, err := e.view.WriteEntry(t.Context(), "sales/fresh", []byte(fresh), "", false)
	if err != nil || n.Path != "sales/fresh.json" || n.Table.Location != "s3://lake/fresh" {
		t.Fatalf("got %+v, %v", n, err)
	}
	if sent := e.sent("CreateTable"); sent["VersionId"] != nil || sent["CreateTime"] != nil || sent["DatabaseName"] != nil {
		t.Errorf("sent %v", sent)
	}
	wantLs(t, e.view, "sales", "fresh.json", "fresh/", "orders.json", "orders/", "other.json", "other/")
	if _, err = e.view.WriteEntry(t.Context(), "sales/fresh", []byte(fresh), "", false); !errors.Is(err, objectstore.ErrExist) {
		t.Errorf("a second new one: %v, want ErrExist", err)
	}
	for path, want := range map[string]error{"sales/Fresh": ErrEntry, "nowhere/fresh": ErrEntry} {
		if _, err = e.view.WriteEntry(t.Context(), path, []byte(strings.ReplaceAll(fresh, `"fresh"`, `"Fresh"`)), "", false); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
	nowhere := changed(t, fresh, func(t obj) { delete(t, "DatabaseName") })
	if _, err = e.view.WriteEntry(t.Context(), "nowhere/fresh", []byte(nowhere), "", false); !errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("in no database: %v, want ErrNotExist", err)
	}

	e.server.Reset()
	if n, err = e.view.WriteEntry(t.Context(), "sales/orders", []byte(changed(t, entry, func(t obj) { parametersOf(t)["mine"] = "1" })), etag, false); err != nil {
		t.Fatal(err)
	}
	wantLs(t, e.view, "sales/orders", "dt=1/")
	wantLs(t, e.view, "sales/other", "dt=1/")
	if got := lookup(t, e.view, "sales/orders.json").ETag; got != n.ETag || got == etag {
		t.Errorf("the version shown is %q, want %q", got, n.ETag)
	}
	if got := e.server.Requests(); !reflect.DeepEqual(got, map[string]int{"GetTable": 2, "UpdateTable": 1}) {
		t.Errorf("requests of an edit: %v", got)
	}
	if _, err = e.view.WriteEntry(t.Context(), "sales/orders", []byte(entry), etag, false); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("a stale copy: %v, want ErrChanged", err)
	}
	e.good(func(t obj) {
		delete(t, "PartitionKeys") // refused while there are partitions
		t["PartitionKeys"] = []any{obj{"Name": "dt", "Type": "string", "Comment": "the day"}}
	})
	wantLs(t, e.view, "sales/orders", "dt=1/")
}

// One mount's stale entry never wins, whoever changed it meanwhile: what the service
// says of versions counts, and the look before it.
func TestAnEditOfAnotherVersionIsChanged(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", ordersEntry(""))
	entry, etag := e.read()
	e.server.Fault(gluetest.Rule{Op: "UpdateTable", Times: 1, Fault: func(_ *gluetest.Exchange, next gluetest.Next) (gluetest.Answer, error) {
		e.server.SetTable("sales", strings.Replace(ordersEntry(`"Owner":"another",`), `"7"`, `"8"`, 1))
		return next()
	}})
	if _, err := e.view.WriteEntry(t.Context(), "sales/orders", []byte(entry), etag, false); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("changed between look and update: %v, want ErrChanged", err)
	}
	if now, _ := e.read(); !strings.Contains(now, `"another"`) {
		t.Errorf("the entry is now %s", now)
	}
	// A concurrent change that comes to nothing is waited for.
	_, etag = e.read()
	now, _ := e.read()
	e.server.Fault(gluetest.Rule{Op: "UpdateTable", Times: 2, Fault: gluetest.Error(400, "ConcurrentModificationException", "busy")})
	if _, err := e.view.WriteEntry(t.Context(), "sales/orders", []byte(now), etag, false); err != nil {
		t.Errorf("after two refusals: %v", err)
	}
	e.server.Fault(gluetest.Rule{Op: "UpdateTable", Fault: gluetest.Error(400, "ConcurrentModificationException", "busy")})
	now, etag = e.read()
	if _, err := e.view.WriteEntry(t.Context(), "sales/orders", []byte(now), etag, false); !errors.Is(err, objectstore.ErrChanged) {
		t.Errorf("refused for good: %v, want ErrChanged", err)
	}
}

// A partition that is registered behind an edit is of the table as it is then.
func TestNewPartitionsAreOfTheWrittenEntry(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", ordersEntry(""))
	formatOf := func(value string) string {
		t.Helper()
		path := "sales/orders/dt=" + value
		if err := e.view.Register(t.Context(), path+"/f", objectstore.Location{Bucket: "lake", Key: "orders/dt=" + value + "/f"}); err != nil {
			t.Fatal(err)
		}
		st, err := e.view.Status(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		return st.Format
	}
	if got := formatOf("1"); got != "parquet" {
		t.Errorf("the first is of the format %q", got)
	}
	e.good(func(t obj) {
		descriptorOf(t)["SerdeInfo"] = obj{"SerializationLibrary": "org.apache.hadoop.hive.ql.io.orc.OrcSerde"}
	})
	if got := formatOf("2"); got != "orc" {
		t.Errorf("the next is of the format %q", got)
	}
	if b, _, err := e.view.EntryJSON(t.Context(), "sales/orders/dt=2"); err != nil || !strings.Contains(string(b), "OrcSerde") {
		t.Errorf("its entry is %s, %v", b, err)
	}
}

// Answers that are lost are settled by looking.
func TestLostAnswersOfEntriesAreSettled(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", ordersEntry(""))
	for _, op := range []string{"UpdateTable", "CreateTable", "DeleteTable", "UpdatePartition"} {
		e.server.Fault(gluetest.Rule{Op: op, Times: 1, Fault: gluetest.LoseAnswer()})
	}
	e.good(func(t obj) { parametersOf(t)["mine"] = "1" })
	entry, etag := e.read()
	if !strings.Contains(entry, `"mine"`) {
		t.Errorf("the entry is %s", entry)
	}
	if _, err := e.view.WriteEntry(t.Context(), "sales/fresh", []byte(strings.ReplaceAll(entry, `"orders"`, `"fresh"`)), "", false); err != nil {
		t.Errorf("a new table: %v", err)
	}
	if err := e.view.RemoveEntry(t.Context(), "sales/orders", etag); err != nil {
		t.Errorf("RemoveEntry: %v", err)
	}
	if got := e.server.Requests(); got["DeleteTable"] != 2 || got["CreateTable"] != 2 {
		t.Errorf("requests: %v", got)
	}
	e.server.Fault(gluetest.Rule{Op: "CreateTable", Fault: gluetest.Denied()})
	if _, err := e.view.WriteEntry(t.Context(), "sales/no", []byte(strings.ReplaceAll(entry, `"orders"`, `"no"`)), "", false); !errors.Is(err, objectstore.ErrPermission) {
		t.Errorf("not allowed: %v, want ErrPermission", err)
	}
}

// A resource link's own entry is not written; dropping it drops the link alone.
func TestResourceLinksAreNotWritten(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("there", ordersEntry(""))
	e.server.AddTable("sales", `{"Name":"link","TargetTable":{"CatalogId":"`+gluetest.Account+`","DatabaseName":"there","Name":"orders"}}`)
	b, n, err := e.view.FreshEntry(t.Context(), "sales/link")
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.view.WriteEntry(t.Context(), "sales/link", b, n.ETag, false)
	wantEntryError(t, err, "resource link")
	plain := strings.ReplaceAll(ordersEntry(""), `"orders"`, `"link"`)
	plain = changed(t, `{"Table":`+plain+`}`, func(t obj) {
		delete(t, "VersionId")
		delete(t, "CreateTime")
		delete(t, "UpdateTime")
		delete(t, "CreatedBy")
		delete(t, "IsRegisteredWithLakeFormation")
	})
	_, err = e.view.WriteEntry(t.Context(), "sales/link", []byte(plain), n.ETag, false)
	wantEntryError(t, err, "resource link")
	if err = e.view.RemoveEntry(t.Context(), "sales/link", n.ETag); err != nil {
		t.Error(err)
	}
	lookup(t, e.view, "there/orders")
}

// TestRule59_AFormatIsThePartitionsAlone: SerDe that is not given stays, formats come
// from the table, properties are added.
func TestRule59_AFormatIsThePartitionsAlone(t *testing.T) {
	e := newEditor(t)
	e.server.AddTable("sales", ordersEntry(`"Odd":{"a":1.50},`))
	descriptor := `{"Columns":[{"Name":"id","Type":"bigint","New":1}],"Location":"s3://else/where","InputFormat":"old.In","OutputFormat":"old.Out",
"SerdeInfo":{"SerializationLibrary":"old.SerDe","Name":"n","Parameters":{"a":"1","b":"2"}},"New":12345678901234567890.10}`
	for _, value := range []string{"1", "2"} {
		e.server.AddPartition("sales", "orders", `{"Values":["`+value+`"],"CreationTime":1.7E9,"LastAccessTime":1.7E9,"Parameters":{"p":"q"},"StorageDescriptor":`+descriptor+`}`)
	}
	wantLs(t, e.view, "sales/orders", "dt=1/", "dt=2/")
	before, _, err := e.view.EntryJSON(t.Context(), "sales/orders/dt=2")
	if err != nil {
		t.Fatal(err)
	}
	set := func(path, format string) error {
		t.Helper()
		f, bad := table.ParseFormatChange(format)
		if bad != nil {
			t.Fatal(bad)
		}
		return e.view.SetFormat(t.Context(), path, f)
	}
	if err = set("sales/orders/dt=1", `SERDE 'new.SerDe' WITH SERDEPROPERTIES ('b'='3','c'='4')`); err != nil {
		t.Fatal(err)
	}
	call := e.server.Calls("UpdatePartition")[0]
	var want obj
	dec := json.NewDecoder(strings.NewReader(`{"Values":["1"],"LastAccessTime":1.7E9,"Parameters":{"p":"q"},"StorageDescriptor":{"Columns":[{"Name":"id","Type":"bigint","New":1}],
"Location":"s3://else/where","InputFormat":"org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat","OutputFormat":"org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
"SerdeInfo":{"SerializationLibrary":"new.SerDe","Name":"n","Parameters":{"a":"1","b":"3","c":"4"}},"New":12345678901234567890.10,
"Compressed":false,"NumberOfBuckets":-1,"StoredAsSubDirectories":false}}`))
	dec.UseNumber()
	if err = dec.Decode(&want); err != nil {
		t.Fatal(err)
	}
	if got := call.Input["PartitionInput"]; !reflect.DeepEqual(got, want) {
		t.Errorf("sent %v\nwant %v", got, want)
	}
	if err = set("sales/orders/dt=1", "AVRO"); err != nil {
		t.Fatal(err)
	}
	st, err := e.view.Status(t.Context(), "sales/orders/dt=1")
	if err != nil || st.Format != "avro" || st.EntryLocation != "s3://else/where" {
		t.Errorf("status: %+v, %v", st, err)
	}
	if st, err = e.view.Status(t.Context(), "sales/orders"); err != nil || string(st.MultiFormat) != "true" {
		t.Errorf("status of the table: %s %v, %v", st.MultiFormat, st.Formats, err)
	}
	if after, _, failed := e.view.EntryJSON(t.Context(), "sales/orders/dt=2"); failed != nil || string(after) != string(before) {
		t.Errorf("the other partition is now %s, %v", after, failed)
	}
	if err = set("sales/orders/dt=1", "SEQUENCEFILE"); err != nil {
		t.Fatal(err)
	}
	if b, _, failed := e.view.EntryJSON(t.Context(), "sales/orders/dt=1"); failed != nil || !strings.Contains(string(b), "avro.AvroSerDe") || !strings.Contains(string(b), "SequenceFileInputFormat") {
		t.Errorf("a SerDe that is not given: %s, %v", b, failed)
	}

	if err = set("sales/orders", "ORC"); err != nil {
		t.Fatal(err)
	}
	sent := e.sent("UpdateTable")
	if sent["Odd"] == nil || fmt.Sprint(parametersOf(sent)) != "map[EXTERNAL:TRUE trino_query_id:x]" || sent["CreatedBy"] != nil || fmt.Sprint(descriptorOf(sent)["NumberOfBuckets"]) != "-1" {
		t.Errorf("sent %v", sent)
	}
	if got := lookup(t, e.view, "sales/orders").Table; got.Format != "orc" {
		t.Errorf("the table is of the format %q", got.Format)
	}
	if after, _, failed := e.view.EntryJSON(t.Context(), "sales/orders/dt=2"); failed != nil || string(after) != string(before) {
		t.Errorf("a partition is now %s, %v", after, failed)
	}
	for path, want := range map[string]error{
		"sales/orders/dt=3": objectstore.ErrNotExist, "sales/orders/x": objectstore.ErrNotExist, "sales": objectstore.ErrNotExist,
		"sales/none": objectstore.ErrNotExist, "sales/orders/dt=1/f": objectstore.ErrNotExist,
	} {
		if err = set(path, "ORC"); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
	e.server.AddTable("sales", strings.Replace(strings.Replace(ordersEntry(""), `"orders"`, `"two"`, 1), `[{"Name":"dt",`, `[{"Name":"r","Type":"string"},{"Name":"dt",`, 1))
	err = set("sales/two/r=eu", "ORC")
	if !errors.Is(err, table.ErrName) || !strings.Contains(err.Error(), "no whole partition") {
		t.Errorf("a directory above partitions: %v", err)
	}
}

// TestRule59_WhereNoFormatCanBeSet: what decides it is something else.
func TestRule59_WhereNoFormatCanBeSet(t *testing.T) {
	e := newEditor(t)
	f, err := table.ParseFormatChange("ORC")
	if err != nil {
		t.Fatal(err)
	}
	for name, entry := range map[string]string{
		"provider":   strings.Replace(ordersEntry(""), `"EXTERNAL":"TRUE"`, `"spark.sql.sources.provider":"parquet"`, 1),
		"delta":      strings.Replace(ordersEntry(""), `"EXTERNAL":"TRUE"`, `"table_type":"DELTA"`, 1),
		"paimon":     strings.Replace(ordersEntry(""), `"EXTERNAL":"TRUE"`, `"type":"format-table","file.format":"parquet"`, 1),
		"projected":  strings.Replace(ordersEntry(""), `"EXTERNAL":"TRUE"`, `"projection.enabled":"true","projection.dt.type":"enum","projection.dt.values":"1,2"`, 1),
		"filesystem": strings.Replace(ordersEntry(""), `"EXTERNAL":"TRUE"`, `"spark.sql.partitionProvider":"filesystem"`, 1),
	} {
		e.server.AddTable("sales", strings.Replace(entry, `"orders"`, `"`+name+`"`, 1))
		if err := e.view.SetFormat(t.Context(), "sales/"+name+"/dt=1", f); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("a partition of %s: %v, want ErrUnsupported", name, err)
		}
		ordinary := name == "projected" || name == "filesystem" // their tables are
		if err := e.view.SetFormat(t.Context(), "sales/"+name, f); errors.Is(err, errors.ErrUnsupported) == ordinary {
			t.Errorf("the table %s: %v", name, err)
		}
	}
	e.server.AddTable("sales", `{"Name":"v","TableType":"VIRTUAL_VIEW","ViewOriginalText":"x"}`)
	if err := e.view.SetFormat(t.Context(), "sales/v", f); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a view: %v", err)
	}
	if n := e.server.Requests()["UpdatePartition"]; n != 0 {
		t.Errorf("%d partitions were changed", n)
	}
	for name, change := range map[string]func(*Options){
		"sales/orders":      func(o *Options) { o.WriteEntries = false },
		"sales/orders/dt=1": func(o *Options) { o.Register = false },
	} {
		e := newEditor(t, change)
		e.server.AddTable("sales", ordersEntry(""))
		e.server.AddPartition("sales", "orders", `{"Values":["1"],"StorageDescriptor":{`+ordersDescriptor+`}}`)
		if err := e.view.SetFormat(t.Context(), name, f); !errors.Is(err, objectstore.ErrPermission) {
			t.Errorf("%s: %v, want ErrPermission", name, err)
		}
	}
}

// A manifest's formats change, and no other byte of it.
func TestRule59_AManifestKeepsItsText(t *testing.T) {
	l := newLake(t, editable)
	const text = "{\n  \"manifest_version\": 1, \"odd\":[1.50, \"<\"],\n  \"storage_descriptor\": {\n    \"location\": \"db/t\",\n    \"input_format\": null,\n    \"serde_info\": {}\n  }\n}\n"
	l.write("db/t/_sqe/table.json", text)
	f, err := table.ParseFormatChange(`INPUTFORMAT 'org.apache.hadoop.mapred.TextInputFormat' OUTPUTFORMAT 'o.O' SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde' WITH SERDEPROPERTIES ('separatorChar'=';')`)
	if err != nil {
		t.Fatal(err)
	}
	lookup(t, l.view, "db/t")
	if err = l.view.SetFormat(t.Context(), "db/t", f); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"manifest_version\": 1, \"odd\":[1.50, \"<\"],\n  \"storage_descriptor\": {\n    \"location\": \"db/t\",\n    \"input_format\": \"org.apache.hadoop.mapred.TextInputFormat\",\n" +
		"    \"serde_info\": {\"serialization_library\":\"org.apache.hadoop.hive.serde2.OpenCSVSerde\",\"parameters\":{\"separatorChar\":\";\"}},\n    \"output_format\": \"o.O\"\n  }\n}\n"
	if got := l.manifest("db/t"); got != want {
		t.Errorf("the manifest is\n%s\nwant\n%s", got, want)
	}
	if got := lookup(t, l.view, "db/t").Table.Format; got != "csv" {
		t.Errorf("it shows as %q", got)
	}
	l.table("db/keyed", "db/keyed", []string{"dt:string"}, nil)
	l.write("db/keyed/dt=1/f", "x")
	if err = l.view.SetFormat(t.Context(), "db/keyed/dt=1", f); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a manifest's partition: %v", err)
	}
}

// FuzzEntryInput: whatever is written, an entry is refused or makes a body that loads.
func FuzzEntryInput(f *testing.F) {
	shown := string(entryJSON("Table", []byte(ordersEntry(`"LastAccessTime":1.7E9,`))))
	f.Add(shown, ordersEntry(""))
	f.Add(`{"Table":{"Name":"orders","PartitionKeys":[null,1],"StorageDescriptor":{"Columns":[{"Name":[1]},null]}}}`, `{"PartitionKeys":[{"Name":{}}]}`)
	f.Fuzz(func(t *testing.T, entry, element string) {
		written, err := writtenTable([]byte(entry))
		if err != nil {
			return
		}
		in := tableInput{name: table.Ref{Database: "sales", Name: "orders"}, written: written}
		if checkGlueJSON([]byte(element)) == nil {
			if in.of([]byte(element)) != nil {
				return
			}
		}
		input, err := in.make()
		if err != nil {
			return
		}
		g := NewGlue(GlueOptions{})
		body, err := g.tableRequest(in.name, input, nil)
		if err != nil || checkGlueJSON(body) != nil {
			t.Fatalf("%s: %v", body, err)
		}
		_, _ = g.admit(context.Background(), foundTable{as: in.name, from: in.name}, in, EntryWrite{})
	})
}

// TestRule02_AnEditOfRealEntriesKeepsThem: those that real writers made, written back as
// they are read, are what they were but for what every written entry has.
func TestRule02_AnEditOfRealEntriesKeepsThem(t *testing.T) {
	e := newEditor(t)
	written := 0
	for _, f := range e.server.LoadFixtures("../table/testdata/glue") {
		if f.Table == "" {
			continue
		}
		path := f.Database + "/" + f.Table
		before, n, err := e.view.FreshEntry(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.view.WriteEntry(t.Context(), path, before, n.ETag, false)
		refused := n.Table.Kind == table.Broken || !n.Table.Readable && n.Table.Kind != table.View || n.Table.Kind == table.Link || n.Table.Target != nil
		if refused {
			var verdict *VerdictError
			if !errors.Is(err, ErrEntry) && !errors.As(err, &verdict) {
				t.Errorf("%s (%s): %v, want a refusal: %s", path, n.Table.Kind, err, n.Table.Reason)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		written++
		after, now, err := e.view.FreshEntry(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if want, got := plainEntry(t, before), plainEntry(t, after); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is now\n%v\nwant\n%v", path, got, want)
		}
		a, b := *n.Table, *now.Table
		a.Parameters, b.Parameters, a.LakeFormation, b.LakeFormation = nil, nil, nil, nil
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s loads as\n%+v\nwant\n%+v", path, b, a)
		}
	}
	if written < 15 {
		t.Errorf("%d entries were written", written)
	}
}

// plainEntry is an entry without what differs by its nature, and without what each that is
// written has.
func plainEntry(t *testing.T, entry []byte) obj {
	t.Helper()
	all, err := decodeExact(entry)
	if err != nil {
		t.Fatal(err)
	}
	tab := all["Table"].(obj)
	for _, field := range append(glueOwnFields(), "VersionId", "Retention", "TableType") {
		delete(tab, field)
	}
	if sd, ok := tab["StorageDescriptor"].(obj); ok {
		for _, field := range []string{"Compressed", "NumberOfBuckets", "StoredAsSubDirectories"} {
			delete(sd, field)
		}
	}
	if p, ok := tab["Parameters"].(obj); ok {
		if provider, _ := p["spark.sql.sources.provider"].(string); strings.EqualFold(provider, "delta") {
			delete(p, "table_type") // TestRule16
			delete(descriptorOf(tab), "Location")
		}
		delete(p, "EXTERNAL")
		if len(p) == 0 {
			delete(tab, "Parameters")
		}
	}
	return tab
}
