package gluetest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
)

// reply is what a server answered.
type reply struct {
	status int
	header http.Header
	raw    string
	body   map[string]any // nil: no JSON
}

// failure is the code of an error; "" for a good answer.
func (r reply) failure() string {
	if r.status == http.StatusOK {
		return ""
	}
	code, _ := r.body["__type"].(string)
	return code
}

// try makes a call; its error is that of the connection.
func try(t *testing.T, url, op, input string) (reply, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(input))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "AWSGlue."+op)
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/glue/aws4_request, SignedHeaders=host, Signature=0")
	req.GetBody = nil // the client is not to repeat it
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	_ = dec.Decode(&r.body) // pages are no JSON
	return r, nil
}

// do makes a call that is answered.
func do(t *testing.T, url, op, input string) reply {
	t.Helper()
	r, err := try(t, url, op, input)
	if err != nil {
		t.Fatalf("%s: %v", op, err)
	}
	return r
}

// must makes a call that is answered without an error.
func must(t *testing.T, url, op, input string) reply {
	t.Helper()
	r := do(t, url, op, input)
	if r.status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", op, input, r.status, r.raw)
	}
	return r
}

// pages follows the tokens of a listing, and returns the numbers of entries.
func pages(t *testing.T, url, op, field, input string) []int {
	t.Helper()
	var sizes []int
	token := ""
	for {
		in := input
		if token != "" {
			in = strings.TrimSuffix(input, "}") + fmt.Sprintf(`,"NextToken":%q}`, token)
		}
		r := must(t, url, op, in)
		entries, _ := r.body[field].([]any)
		sizes = append(sizes, len(entries))
		token, _ = r.body["NextToken"].(string)
		if token == "" {
			return sizes
		}
	}
}

const keyed = `{"Name": "t", "PartitionKeys": [{"Name": "dt", "Type": "string"}, {"Name": "n", "Type": "int"}]}`

func TestTablesComeInPagesOfAHundred(t *testing.T) {
	s := gluetest.New(t)
	for i := range 300 {
		s.AddTable("d", fmt.Sprintf(`{"Name": "t%03d"}`, i))
	}
	if got := fmt.Sprint(pages(t, s.URL, "GetTables", "TableList", `{"DatabaseName":"d"}`)); got != "[100 100 100]" {
		t.Errorf("got pages %s, want three of 100", got)
	}
	if got := s.Requests()["GetTables"]; got != 3 {
		t.Errorf("got %d requests, want 3", got)
	}
	if r := do(t, s.URL, "GetTables", `{"DatabaseName":"d","MaxResults":101}`); r.failure() != "ValidationException" {
		t.Errorf("got %s for a page of 101, want ValidationException", r.raw)
	}
	if got := fmt.Sprint(pages(t, s.URL, "GetTables", "TableList", `{"DatabaseName":"d","Expression":"t0.*","MaxResults":60}`)); got != "[60 40]" {
		t.Errorf("got pages %s of the tables of an expression, want 60 and 40", got)
	}
}

func TestPartitionsComeInPagesAndSegments(t *testing.T) {
	s := gluetest.New(t)
	s.AddTable("d", keyed)
	s.AddMany("d", "t", gluetest.Many{Count: 2501, Columns: 170, Values: func(i int) []string { return []string{"a", fmt.Sprint(i)} }})
	const all = `{"DatabaseName":"d","TableName":"t","ExcludeColumnSchema":true}`
	if got := fmt.Sprint(pages(t, s.URL, "GetPartitions", "Partitions", all)); got != "[1000 1000 501]" {
		t.Errorf("got pages %s, want 1000, 1000 and 501", got)
	}
	sum := 0
	for i := range 5 {
		in := fmt.Sprintf(`{"DatabaseName":"d","TableName":"t","Segment":{"SegmentNumber":%d,"TotalSegments":5}}`, i)
		got := pages(t, s.URL, "GetPartitions", "Partitions", in)
		if len(got) != 1 {
			t.Errorf("segment %d: got %d pages, want 1", i, len(got))
		}
		sum += got[0]
	}
	if sum != 2501 {
		t.Errorf("the segments have %d partitions, want 2501", sum)
	}
	if r := must(t, s.URL, "GetPartitions", all); strings.Contains(r.raw, "Columns") {
		t.Error("got columns, want none with ExcludeColumnSchema")
	}
	if r := must(t, s.URL, "GetPartition", `{"DatabaseName":"d","TableName":"t","PartitionValues":["a","7"]}`); strings.Count(r.raw, `"Type"`) != 170 {
		t.Errorf("got %d columns of one partition, want 170", strings.Count(r.raw, `"Type"`))
	}
}
