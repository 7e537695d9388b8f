package catalogview_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// registerOne registers one partition.
func registerOne(ctx context.Context, g *catalogview.Glue, tab *table.Table, values []string, location string) (string, error) {
	done := g.Register(ctx, tab, []catalogview.NewPartition{{Values: values, Location: location}})
	return done[0].Location, done[0].Err
}

// sentDescriptor registers sales.days/day=1 at "s3://lake/new" of a table with
// this storage descriptor, and returns what was sent of it.
func sentDescriptor(t *testing.T, descriptor string) map[string]any {
	t.Helper()
	server := gluetest.New(t)
	server.AddTable("sales", `{"Name":"days","PartitionKeys":[{"Name":"day","Type":"int"}],"StorageDescriptor":`+descriptor+`}`)
	g := glueOn(t, server.URL)
	if at, err := registerOne(t.Context(), g, daysOf(t, g), []string{"1"}, "s3://lake/new"); err != nil || at != "s3://lake/new" {
		t.Fatalf("Register: %q, %v", at, err)
	}
	calls := server.Calls("BatchCreatePartition")
	if len(calls) != 1 {
		t.Fatalf("%d requests to register", len(calls))
	}
	list, ok := calls[0].Input["PartitionInputList"].([]any)
	if !ok || len(list) != 1 {
		t.Fatalf("sent %v", calls[0].Input)
	}
	partition, ok := list[0].(map[string]any)
	if !ok || !reflect.DeepEqual(partition["Values"], []any{"1"}) {
		t.Fatalf("sent %v", list[0])
	}
	sent, ok := partition["StorageDescriptor"].(map[string]any)
	if !ok {
		t.Fatalf("sent %v", partition)
	}
	return sent
}

// wantDescriptor compares a descriptor with JSON.
func wantDescriptor(t *testing.T, got map[string]any, want string) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(want))
	dec.UseNumber()
	var w map[string]any
	if err := dec.Decode(&w); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, w) {
		t.Errorf("sent %v\nwant %v", got, w)
	}
}

// TestRule02_UnknownFieldsSurvive: what a partition gets is the table's descriptor,
// fields that nobody here knows and exact numbers too.
func TestRule02_UnknownFieldsSurvive(t *testing.T) {
	t.Parallel()
	got := sentDescriptor(t, `{"Location":"s3://lake/days","New":{"CreateTime":12345678901234567890.10,"a":[1,{"b":"<&>\u2028"}]},
"Columns":[{"Name":"id","Type":"bigint","New":1}],"Compressed":false,"NumberOfBuckets":0,"StoredAsSubDirectories":false,"Gone":null}`)
	wantDescriptor(t, got, `{"Location":"s3://lake/new","New":{"CreateTime":12345678901234567890.10,"a":[1,{"b":"<&>\u2028"}]},
"Columns":[{"Name":"id","Type":"bigint","New":1}],"Compressed":false,"NumberOfBuckets":0,"StoredAsSubDirectories":false}`)
}

// TestRule03_PartitionsHaveNoSerDePath: a partition's location is its descriptor's.
func TestRule03_PartitionsHaveNoSerDePath(t *testing.T) {
	t.Parallel()
	got := sentDescriptor(t, `{"Location":"s3://lake/x-__PLACEHOLDER__","NumberOfBuckets":4,
"SerdeInfo":{"SerializationLibrary":"lib","Parameters":{"path":"s3://lake/days","field.delim":","}}}`)
	wantDescriptor(t, got, `{"Location":"s3://lake/new","NumberOfBuckets":4,"Compressed":false,"StoredAsSubDirectories":false,
"SerdeInfo":{"SerializationLibrary":"lib","Parameters":{"field.delim":","}}}`)
}

// TestRule15_AbsentFieldsGetDefaults, and what is there goes as it is: false and 0 too.
func TestRule15_AbsentFieldsGetDefaults(t *testing.T) {
	t.Parallel()
	wantDescriptor(t, sentDescriptor(t, `{"Location":"s3://lake/days"}`),
		`{"Location":"s3://lake/new","Compressed":false,"NumberOfBuckets":-1,"StoredAsSubDirectories":false}`)
	wantDescriptor(t, sentDescriptor(t, `{"Location":"s3://lake/days","Compressed":true,"NumberOfBuckets":0,"StoredAsSubDirectories":true}`),
		`{"Location":"s3://lake/new","Compressed":true,"NumberOfBuckets":0,"StoredAsSubDirectories":true}`)
	wantDescriptor(t, sentDescriptor(t, `{"Location":"s3://lake/days","Compressed":null}`),
		`{"Location":"s3://lake/new","Compressed":false,"NumberOfBuckets":-1,"StoredAsSubDirectories":false}`)
}

// TestCase53_TwentyWritersRegisterOne partition: one is there, nobody fails, and
// all learn where it is.
func TestCase53_TwentyWritersRegisterOne(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 0)
	server.Fault(gluetest.Rule{Op: "BatchCreatePartition", Skip: 3, Times: 3, Fault: gluetest.Throttle()})
	server.Fault(gluetest.Rule{Op: "BatchCreatePartition", Skip: 8, Times: 3, Fault: gluetest.LoseAnswer()})
	g := glueOn(t, server.URL)
	tab := daysOf(t, g)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if at, err := registerOne(t.Context(), g, tab, []string{"1"}, "s3://lake/days/day=1"); err != nil || at != "s3://lake/days/day=1" {
				t.Errorf("Register: %q, %v", at, err)
			}
		})
	}
	wg.Wait()
	if got := partitionsOf(t, g, tab); len(got) != 1 {
		t.Errorf("partitions %q", got)
	}
}

// TestCase53_AnswersThatAreLost: what took effect is success, what did not is an
// error; an error inside a 200 is one.
func TestCase53_AnswersThatAreLost(t *testing.T) {
	t.Parallel()
	inside := func(code string) gluetest.Fault {
		return gluetest.Body(200, "application/x-amz-json-1.1",
			`{"Errors":[{"PartitionValues":["1"],"ErrorDetail":{"ErrorCode":"`+code+`","ErrorMessage":"because"}}]}`)
	}
	for name, c := range map[string]struct {
		fault gluetest.Fault
		times int
		there bool // registered by another before
		want  error
		at    string // "": an error
	}{
		"lost once":              {fault: gluetest.LoseAnswer(), times: 1, at: "s3://lake/new"},
		"lost for good":          {fault: gluetest.LoseAnswer(), at: "s3://lake/new"},
		"never arrived":          {fault: gluetest.LoseRequest(), want: objectstore.ErrUnavailable},
		"500":                    {fault: gluetest.HTML(http.StatusInternalServerError), want: objectstore.ErrUnavailable},
		"500, and there":         {fault: gluetest.HTML(http.StatusInternalServerError), there: true, at: "s3://lake/old"},
		"no answer":              {fault: gluetest.HangAnswer(), at: "s3://lake/new"},
		"denied":                 {fault: gluetest.Denied(), want: objectstore.ErrPermission},
		"denied inside":          {fault: inside("AccessDeniedException"), want: objectstore.ErrPermission},
		"failed inside":          {fault: inside("InternalServiceException"), times: 1, at: "s3://lake/new"},
		"failed inside for good": {fault: inside("InternalServiceException"), want: objectstore.ErrUnavailable},
		"refused inside":         {fault: inside("ResourceNumberLimitExceededException")},
		"there inside":           {fault: inside("AlreadyExistsException"), there: true, at: "s3://lake/old"},
		"there":                  {fault: gluetest.Error(400, "AlreadyExistsException", ""), there: true, at: "s3://lake/old"},
		"odd":                    {fault: gluetest.Body(200, "", `{"Errors":"x"}`), want: objectstore.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := gluetest.New(t)
			partitionedOn(t, server, 0)
			if c.there {
				server.AddPartition("sales", "days", parquetPartition(t, []string{"1"}, "s3://lake/old"))
			}
			server.Fault(gluetest.Rule{Op: "BatchCreatePartition", Times: c.times, Fault: c.fault})
			g := glueOn(t, server.URL, func(o *catalogview.GlueOptions) { o.Timeout = 2 * time.Second })
			at, err := registerOne(t.Context(), g, daysOf(t, g), []string{"1"}, "s3://lake/new")
			if at != c.at || (err == nil) != (c.at != "") || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %q, %v, want %q, %v", at, err, c.at, c.want)
			}
			if c.at == "" && errors.Is(err, objectstore.ErrNotExist) {
				t.Errorf("%v says that something is absent", err)
			}
		})
	}
}

// A table that went is ErrNotExist.
func TestGlueRegisterWithoutTable(t *testing.T) {
	t.Parallel()
	server := gluetest.New(t)
	partitionedOn(t, server, 0)
	g := glueOn(t, server.URL)
	tab := daysOf(t, g)
	server.Remove("sales", "days")
	if _, err := registerOne(t.Context(), g, tab, []string{"1"}, "s3://lake/new"); !errors.Is(err, objectstore.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
