package gluetest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
)

const (
	moto = "moto"
	mini = "ministack"
)

// step is a call that is made to every server.
type step struct {
	name  string
	op    string
	input string            // "DB" stands for the name of the test's own database
	count string            // the field whose entries are counted, in place of the whole answer
	want  string            // the outcome
	other map[string]string // the outcomes of servers that are known to differ
}

const (
	none      = "EntityNotFoundException"
	twice     = "AlreadyExistsException"
	bad       = "InvalidInputException"
	state     = "InvalidStateException"
	limit     = "ValidationException"
	at        = `"DatabaseName":"DB","TableName":"t"`
	aTable    = `{"DatabaseName":"DB","TableInput":{"Name":"t","TableType":"EXTERNAL_TABLE","PartitionKeys":[{"Name":"dt","Type":"string"},{"Name":"n","Type":"int"}],"Parameters":{"k":"é\u2028<&>"},"StorageDescriptor":{"Columns":[{"Name":"id","Type":"bigint","Comment":"c"}],"Location":"s3://lake/t/","NumberOfBuckets":-1}}}`
	theTable  = `{"Table":{"CatalogId":"ACCOUNT","CreateTime":"TIME","DatabaseName":"DB","Name":"t","Parameters":{"k":"é\u2028<&>"},"PartitionKeys":[{"Name":"dt","Type":"string"},{"Name":"n","Type":"int"}],"StorageDescriptor":{"Columns":[{"Comment":"c","Name":"id","Type":"bigint"}],"Location":"s3://lake/t/","NumberOfBuckets":-1},"TableType":"EXTERNAL_TABLE","VersionId":"VERSION"}}`
	bareTable = `{"Table":{"CatalogId":"ACCOUNT","CreateTime":"TIME","DatabaseName":"DB","Name":"bare","VersionId":"VERSION"}}`
	one       = `{"Partition":{"CatalogId":"ACCOUNT","CreationTime":"TIME","DatabaseName":"DB","Parameters":{"a":"b"},"StorageDescriptor":{"Columns":[{"Name":"id","Type":"bigint"}],"Location":"s3://lake/t/1"},"TableName":"t","Values":["a","1"]}}`
	listed    = `{"Partitions":[{"CatalogId":"ACCOUNT","CreationTime":"TIME","DatabaseName":"DB","Parameters":{"a":"b"},"StorageDescriptor":{"Columns":[{"Name":"id","Type":"bigint"}],"Location":"s3://lake/t/1"},"TableName":"t","Values":["a","1"]}]}`
	failedAs  = `{"Errors":[{"ErrorDetail":{"ErrorCode":"%s","ErrorMessage":"MESSAGE"},"PartitionValues":["a","1"]}]}`
)

// external is a table's answer of MiniStack, where every table has a type.
func external(table string) string {
	return strings.Replace(table, `"VersionId"`, `"TableType":"EXTERNAL_TABLE","VersionId"`, 1)
}

// accountless is a partition's answer of moto.
func accountless(answer string) string {
	return strings.ReplaceAll(answer, `"CatalogId":"ACCOUNT",`, "")
}

// both is an outcome in which both emulators differ from AWS in the same way.
func both(outcome string) map[string]string { return map[string]string{moto: outcome, mini: outcome} }

// script is the contract, in this order: a step finds what those before it left.
func script() []step {
	var all []step
	for _, part := range [][]step{databases(), tables(), partitions(), batches(), expressions(), removals()} {
		all = append(all, part...)
	}
	return all
}

func databases() []step {
	return []step{
		{name: "an unknown operation", op: "GetNothing", input: `{}`, want: "UnknownOperationException", other: map[string]string{moto: "500 text/html", mini: "InvalidAction"}},
		{name: "no such database", op: "GetDatabase", input: `{"Name":"nodb"}`, want: none},
		{name: "make a database", op: "CreateDatabase", input: `{"DatabaseInput":{"Name":"DB","Description":"d","Parameters":{"a":"b"}}}`, want: `{}`},
		{name: "make it again", op: "CreateDatabase", input: `{"DatabaseInput":{"Name":"DB"}}`, want: twice},
		{name: "the database", op: "GetDatabase", input: `{"Name":"DB"}`, want: `{"Database":{"CatalogId":"ACCOUNT","CreateTime":"TIME","Description":"d","Name":"DB","Parameters":{"a":"b"}}}`},
		{name: "its name in another case", op: "GetDatabase", input: `{"Name":"Db"}`, want: none},
		{name: "in another catalog", op: "GetDatabase", input: `{"Name":"DB","CatalogId":"999999999999"}`, want: none, other: both(`{"Database":{"CatalogId":"ACCOUNT","CreateTime":"TIME","Description":"d","Name":"DB","Parameters":{"a":"b"}}}`)},
		{name: "a database without a name", op: "CreateDatabase", input: `{"DatabaseInput":{"Name":""}}`, want: limit, other: map[string]string{moto: `{}`, mini: bad}},
		{name: "a page that is too large", op: "GetDatabases", input: `{"MaxResults":101}`, count: "DatabaseList", want: limit, other: both("entries")},
		{name: "a token of nobody", op: "GetDatabases", input: `{"NextToken":"bogus"}`, count: "DatabaseList", want: bad, other: both("entries")},
		{name: "a link to a database", op: "CreateDatabase", input: `{"DatabaseInput":{"Name":"DB-link","TargetDatabase":{"CatalogId":"111122223333","DatabaseName":"x"}}}`, want: `{}`},
		{
			name: "the link", op: "GetDatabase", input: `{"Name":"DB-link"}`,
			want:  `{"Database":{"CatalogId":"ACCOUNT","CreateTime":"TIME","Name":"DB-link","TargetDatabase":{"CatalogId":"111122223333","DatabaseName":"x"}}}`,
			other: map[string]string{mini: `{"Database":{"CatalogId":"ACCOUNT","CreateTime":"TIME","Name":"DB-link"}}`},
		},
	}
}

func tables() []step {
	return []step{
		{name: "a table of no database", op: "GetTable", input: `{"DatabaseName":"nodb","Name":"t"}`, want: none},
		{name: "no such table", op: "GetTable", input: `{"DatabaseName":"DB","Name":"zz"}`, want: none},
		{name: "tables of no database", op: "GetTables", input: `{"DatabaseName":"nodb"}`, count: "TableList", want: none, other: map[string]string{mini: "0"}},
		{name: "make a table of no database", op: "CreateTable", input: `{"DatabaseName":"nodb","TableInput":{"Name":"t"}}`, want: none},
		{name: "make a table", op: "CreateTable", input: aTable, want: `{}`},
		{name: "make the table again", op: "CreateTable", input: aTable, want: twice},
		{name: "the table", op: "GetTable", input: `{"DatabaseName":"DB","Name":"t"}`, want: theTable},
		{name: "its name in upper case", op: "GetTable", input: `{"DatabaseName":"DB","Name":"T"}`, want: none},
		{name: "make a bare table", op: "CreateTable", input: `{"DatabaseName":"DB","TableInput":{"Name":"bare"}}`, want: `{}`},
		{name: "the bare table", op: "GetTable", input: `{"DatabaseName":"DB","Name":"bare"}`, want: bareTable, other: map[string]string{mini: external(bareTable)}},
		{name: "tables", op: "GetTables", input: `{"DatabaseName":"DB"}`, count: "TableList", want: "2"},
		{name: "tables of an expression", op: "GetTables", input: `{"DatabaseName":"DB","Expression":"ba.*"}`, count: "TableList", want: "1", other: map[string]string{mini: "0"}},
		{name: "tables of half a name", op: "GetTables", input: `{"DatabaseName":"DB","Expression":"ba"}`, count: "TableList", want: "0", other: map[string]string{moto: "1"}},
		{name: "a page of one table", op: "GetTables", input: `{"DatabaseName":"DB","MaxResults":1}`, count: "TableList", want: "1 and more", other: both("2")},
		{name: "a name of 256", op: "CreateTable", input: `{"DatabaseName":"DB","TableInput":{"Name":"` + strings.Repeat("x", 256) + `"}}`, want: limit, other: both(`{}`)},
		{name: "change the bare table", op: "UpdateTable", input: `{"DatabaseName":"DB","TableInput":{"Name":"bare","Parameters":{"a":"b"}}}`, want: `{}`},
		{name: "change it of a version that is not", op: "UpdateTable", input: `{"DatabaseName":"DB","VersionId":"99","TableInput":{"Name":"bare"}}`, want: "ConcurrentModificationException", other: map[string]string{moto: `{}`}},
		{name: "change no such table", op: "UpdateTable", input: `{"DatabaseName":"DB","TableInput":{"Name":"zz"}}`, want: none},
		{name: "make a table with a field that is not known", op: "CreateTable", input: `{"DatabaseName":"DB","TableInput":{"Name":"odd","StorageDescriptor":{"UnknownField":{"b":1.50,"a":[1]}}}}`, want: `{}`},
		{
			name: "the unknown field", op: "GetTable", input: `{"DatabaseName":"DB","Name":"odd"}`,
			want: `{"Table":{"CatalogId":"ACCOUNT","CreateTime":"TIME","DatabaseName":"DB","Name":"odd","StorageDescriptor":{"UnknownField":{"a":[1],"b":1.50}},"VersionId":"VERSION"}}`,
			other: map[string]string{
				moto: `{"Table":{"CatalogId":"ACCOUNT","CreateTime":"TIME","DatabaseName":"DB","Name":"odd","VersionId":"VERSION"}}`,
				mini: external(`{"Table":{"CatalogId":"ACCOUNT","CreateTime":"TIME","DatabaseName":"DB","Name":"odd","StorageDescriptor":{"UnknownField":{"a":[1],"b":1.5}},"VersionId":"VERSION"}}`),
			},
		},
		{name: "make a link", op: "CreateTable", input: `{"DatabaseName":"DB","TableInput":{"Name":"link","TargetTable":{"CatalogId":"111122223333","DatabaseName":"x","Name":"y"}}}`, want: `{}`},
		{
			name: "the link to a table", op: "GetTable", input: `{"DatabaseName":"DB","Name":"link"}`,
			want:  `{"Table":{"CatalogId":"ACCOUNT","CreateTime":"TIME","DatabaseName":"DB","Name":"link","TargetTable":{"CatalogId":"111122223333","DatabaseName":"x","Name":"y"},"VersionId":"VERSION"}}`,
			other: map[string]string{mini: external(`{"Table":{"CatalogId":"ACCOUNT","CreateTime":"TIME","DatabaseName":"DB","Name":"link","VersionId":"VERSION"}}`)},
		},
	}
}

func partitions() []step {
	const input = `"PartitionInput":{"Values":["a","1"],"Parameters":{"a":"b"},"StorageDescriptor":{"Columns":[{"Name":"id","Type":"bigint"}],"Location":"s3://lake/t/1"}}`
	return []step{
		{name: "no partitions", op: "GetPartitions", input: `{` + at + `}`, want: `{}`},
		{name: "partitions of no table", op: "GetPartitions", input: `{"DatabaseName":"DB","TableName":"zz"}`, want: none, other: map[string]string{mini: `{}`}},
		{name: "a partition of no table", op: "GetPartition", input: `{"DatabaseName":"DB","TableName":"zz","PartitionValues":["a","1"]}`, want: none},
		{name: "no such partition", op: "GetPartition", input: `{` + at + `,"PartitionValues":["a","1"]}`, want: none},
		{name: "too few values", op: "GetPartition", input: `{` + at + `,"PartitionValues":["a"]}`, want: bad, other: both(none)},
		{name: "make a partition", op: "CreatePartition", input: `{` + at + `,` + input + `}`, want: `{}`},
		{name: "make the partition again", op: "CreatePartition", input: `{` + at + `,` + input + `}`, want: twice},
		{name: "make a partition of no table", op: "CreatePartition", input: `{"DatabaseName":"DB","TableName":"zz",` + input + `}`, want: none, other: map[string]string{mini: `{}`}},
		{name: "the partition", op: "GetPartition", input: `{` + at + `,"PartitionValues":["a","1"]}`, want: one, other: map[string]string{moto: accountless(one)}},
		{name: "the only partition", op: "GetPartitions", input: `{` + at + `}`, want: listed, other: map[string]string{moto: accountless(listed)}},
		{
			name: "without column schemas", op: "GetPartitions", input: `{` + at + `,"ExcludeColumnSchema":true}`,
			want:  `{"Partitions":[{"CatalogId":"ACCOUNT","CreationTime":"TIME","DatabaseName":"DB","Parameters":{"a":"b"},"StorageDescriptor":{"Location":"s3://lake/t/1"},"TableName":"t","Values":["a","1"]}]}`,
			other: map[string]string{moto: accountless(listed), mini: listed},
		},
		{name: "a page of 1001", op: "GetPartitions", input: `{` + at + `,"MaxResults":1001}`, count: "Partitions", want: limit, other: both("1")},
		{name: "eleven segments", op: "GetPartitions", input: `{` + at + `,"Segment":{"SegmentNumber":0,"TotalSegments":11}}`, count: "Partitions", want: limit, other: both("1")},
		{name: "change the partition", op: "UpdatePartition", input: `{` + at + `,"PartitionValueList":["a","1"],` + input + `}`, want: `{}`, other: map[string]string{mini: "InvalidAction"}},
		{name: "change no partition", op: "UpdatePartition", input: `{` + at + `,"PartitionValueList":["z","1"],` + input + `}`, want: none, other: map[string]string{mini: "InvalidAction"}},
	}
}

func batches() []step {
	var many []string
	for i := range 101 {
		many = append(many, fmt.Sprintf(`{"Values":["many","%d"]}`, i))
	}
	return []step{
		{name: "make one that is there and one that is not", op: "BatchCreatePartition", input: `{` + at + `,"PartitionInputList":[{"Values":["a","1"]},{"Values":["b","10"]}]}`, want: fmt.Sprintf(failedAs, twice)},
		{name: "make another", op: "BatchCreatePartition", input: `{` + at + `,"PartitionInputList":[{"Values":["c''d","9"]}]}`, want: `{}`},
		{name: "three partitions", op: "GetPartitions", input: `{` + at + `}`, count: "Partitions", want: "3"},
		{name: "make in no table", op: "BatchCreatePartition", input: `{"DatabaseName":"DB","TableName":"zz","PartitionInputList":[{"Values":["a","1"]}]}`, want: none, other: map[string]string{mini: fmt.Sprintf(failedAs, twice)}}, // of CreatePartition above
		{name: "make 101", op: "BatchCreatePartition", input: `{"DatabaseName":"DB","TableName":"bare","PartitionInputList":[` + strings.Join(many, ",") + `]}`, want: limit, other: both(`{}`)},
		{name: "get two", op: "BatchGetPartition", input: `{` + at + `,"PartitionsToGet":[{"Values":["a","1"]},{"Values":["b","10"]}]}`, count: "Partitions", want: "2"},
		{name: "get none", op: "BatchGetPartition", input: `{` + at + `,"PartitionsToGet":[{"Values":["zz","1"]}]}`, want: `{"UnprocessedKeys":[{"Values":["zz","1"]}]}`, other: map[string]string{moto: `{}`}},
		{name: "get of no table", op: "BatchGetPartition", input: `{"DatabaseName":"DB","TableName":"none","PartitionsToGet":[{"Values":["a","1"]}]}`, want: none, other: map[string]string{mini: `{"UnprocessedKeys":[{"Values":["a","1"]}]}`}},
	}
}

// expressions are those of moto: MiniStack ignores them.
func expressions() []step {
	var all []step
	add := func(expression, want, ofMini, ofMoto string) {
		input := fmt.Sprintf(`{`+at+`,"Expression":%s}`, quoted(expression))
		other := map[string]string{mini: ofMini, moto: ofMoto}
		all = append(all, step{name: "partitions where " + expression, op: "GetPartitions", input: input, count: "Partitions", want: want, other: other})
	}
	for _, e := range []struct{ expression, want string }{
		{"dt = 'a'", "1"},
		{"dt = 'c''''d'", "1"},
		{"dt='a' OR dt = 'b'", "2"},
		{"(dt = 'a' or dt = 'b') and n = 10", "1"},
		{"dt IN ('a', 'b', 'z')", "2"},
		{"dt NOT IN ('a')", "2"},
		{"dt < 'b'", "1"},
		{"dt <> 'a'", "2"},
		{"dt BETWEEN 'a' AND 'b'", "2"},
		{"n = '10'", "1"},
		{"n >= 010", "1"},
		{"n > 1 AND n <= 9", "1"},
		{"n IN (1, 9)", "2"},
		{"zz = 'a'", bad},
		{"id = 'a'", bad},
		{"DT = 'a'", bad},
		{"dt != 'a'", bad},
		{"dt = \"a\"", bad},
		{"NOT dt = 'a'", bad},
		{"dt = ", bad},
		{"dt", bad},
		{"n = 'x'", bad},
	} {
		add(e.expression, e.want, "3", e.want)
	}
	all = append(all, step{name: "make one whose number is none", op: "CreatePartition", input: `{` + at + `,"PartitionInput":{"Values":["d","__HIVE_DEFAULT_PARTITION__"]}}`, want: `{}`})
	add("n = 1", state, "4", state)
	add("n = 1 AND dt = 'a'", state, "4", state)
	add("dt = 'a' AND n = 1", state, "4", "1") // moto does not come to n where dt is another
	add("dt = 'd'", "1", "4", "1")
	return all
}

func removals() []step {
	return []step{
		{name: "remove two, one of which is not there", op: "BatchDeletePartition", input: `{` + at + `,"PartitionsToDelete":[{"Values":["b","10"]},{"Values":["zz","1"]}]}`, count: "Errors", want: "1", other: map[string]string{mini: "InvalidAction"}},
		{name: "remove a partition", op: "DeletePartition", input: `{` + at + `,"PartitionValues":["a","1"]}`, want: `{}`},
		{name: "remove it again", op: "DeletePartition", input: `{` + at + `,"PartitionValues":["a","1"]}`, want: none, other: map[string]string{mini: `{}`}},
		{name: "remove the table", op: "DeleteTable", input: `{"DatabaseName":"DB","Name":"t"}`, want: `{}`},
		{name: "remove the table again", op: "DeleteTable", input: `{"DatabaseName":"DB","Name":"t"}`, want: none},
		{name: "remove the database", op: "DeleteDatabase", input: `{"Name":"DB"}`, want: `{}`},
		{name: "remove the link to a database", op: "DeleteDatabase", input: `{"Name":"DB-link"}`, want: `{}`},
		{name: "remove the database without a name", op: "DeleteDatabase", input: `{"Name":""}`, want: limit, other: map[string]string{moto: `{}`, mini: none}},
		{name: "remove the database again", op: "DeleteDatabase", input: `{"Name":"DB"}`, want: none},
	}
}

func quoted(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// The same calls to gluetest and to the emulators of others. Where those differ
// from AWS the step says so, and fails when they do no longer.
func TestContract(t *testing.T) {
	servers := []struct {
		name string
		url  func(t *testing.T) string
	}{
		{"gluetest", func(t *testing.T) string { t.Helper(); return gluetest.New(t).URL }},
		{moto, func(t *testing.T) string { t.Helper(); return gluetest.Moto(t).URL }},
		{mini, func(t *testing.T) string { t.Helper(); return gluetest.Mini(t).URL }},
	}
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			// MiniStack keeps partitions of tables that never were: the name is new.
			db := "contract_" + strings.ReplaceAll(uuid.NewString(), "-", "")
			url := server.url(t)
			for _, s := range script() {
				want, differs := s.other[server.name]
				if !differs {
					want = s.want
				}
				r := do(t, url, s.op, strings.ReplaceAll(s.input, "DB", db))
				if got := strings.ReplaceAll(outcome(r, s), db, "DB"); got != want {
					t.Errorf("%s: %s\n got %s\nwant %s", s.name, s.op, got, want)
				}
				checkHeader(t, s, r, server.name)
			}
		})
	}
}

// checkHeader holds every answer in JSON to the wire's form.
func checkHeader(t *testing.T, s step, r reply, server string) {
	t.Helper()
	if r.body == nil || s.op == "GetNothing" {
		return
	}
	if got := r.header.Get("Content-Type"); server == "gluetest" && got != "application/x-amz-json-1.1" {
		t.Errorf("%s: got type %q", s.name, got)
	}
	if r.header.Get("X-Amzn-Requestid") == "" {
		t.Errorf("%s: got no request id", s.name)
	}
	if code := r.failure(); code != "" && (r.status != http.StatusBadRequest || server == "gluetest" && r.header.Get("X-Amzn-Errortype") != code) {
		t.Errorf("%s: got status %d, type %q of %s, want 400 and the error's", s.name, r.status, r.header.Get("X-Amzn-Errortype"), code)
	}
}

// outcome is an answer in few words: the code of an error, the number of entries,
// or all of it in the order of names, without what is empty or differs by its
// nature.
func outcome(r reply, s step) string {
	switch {
	case r.body == nil:
		media, _, _ := strings.Cut(r.header.Get("Content-Type"), ";")
		return fmt.Sprintf("%d %s", r.status, media)
	case r.failure() != "":
		return r.failure()
	case s.count == "DatabaseList": // of other tests too
		return "entries"
	case s.count != "":
		entries, _ := r.body[s.count].([]any)
		if _, more := r.body["NextToken"]; more {
			return fmt.Sprintf("%d and more", len(entries))
		}
		return fmt.Sprint(len(entries))
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	body, _ := normal(r.body).(map[string]any)
	if body == nil {
		body = map[string]any{}
	}
	_ = enc.Encode(body) // it was JSON
	return strings.TrimSuffix(b.String(), "\n")
}

// normal takes from an answer what is empty, and what only some servers have.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, field := range v {
			if n := normalField(name, field); n != nil {
				out[name] = n
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = normal(v[i])
		}
		return out
	case string:
		if v == "" {
			return nil
		}
	}
	return v
}

func normalField(name string, v any) any {
	switch name {
	case "UpdateTime", "LastAccessTime", "IsRegisteredWithLakeFormation", "NextToken", "CreateTableDefaultPermissions":
		return nil // gluetest, moto and MiniStack each lack some
	case "CreateTime", "CreationTime":
		if _, ok := v.(json.Number); !ok {
			return v
		}
		return "TIME"
	case "CatalogId":
		if v != "111122223333" {
			return "ACCOUNT"
		}
	case "VersionId":
		return "VERSION" // AWS and gluetest begin with 0, others with 1
	case "ErrorMessage":
		return "MESSAGE"
	}
	return normal(v)
}
