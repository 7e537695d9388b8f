package gluetest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
)

const getOne = `{"DatabaseName":"d","Name":"t"}`

// withTable is a server that has one table, and what GetTable answers of it.
func withTable(t *testing.T) (s *gluetest.Server, want string) {
	t.Helper()
	s = gluetest.New(t)
	s.AddTable("d", keyed)
	return s, must(t, s.URL, "GetTable", getOne).raw
}

func TestFaultsInPlaceOfAnAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  gluetest.Fault
		status int
		code   string
		body   string
	}{
		{"throttle", gluetest.Throttle(), 400, "ThrottlingException", ""},
		{"denied", gluetest.Denied(), 400, "AccessDeniedException", ""},
		{"error", gluetest.Error(500, "InternalServiceException", "sorry"), 500, "InternalServiceException", `{"__type":"InternalServiceException","message":"sorry"}`},
		{"page", gluetest.HTML(502), 502, "", "<html><body><h1>502 Bad Gateway</h1></body></html>\n"},
		{"good page", gluetest.HTML(200), 200, "", "<html><body><h1>200 OK</h1></body></html>\n"},
		{"body", gluetest.Body(200, "application/json", `{"Table":`), 200, "", `{"Table":`},
		{"edit", gluetest.Edit(func([]byte) []byte { return []byte(`{}`) }), 200, "", `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, want := withTable(t)
			a := s.Fault(gluetest.Rule{Op: "GetTable", Database: "d", Table: "t", Skip: 1, Times: 1, Fault: c.fault})
			if got := must(t, s.URL, "GetTable", getOne).raw; got != want {
				t.Errorf("got %s of the skipped request, want %s", got, want)
			}
			r := do(t, s.URL, "GetTable", getOne)
			if r.status != c.status || r.failure() != c.code || c.body != "" && r.raw != c.body {
				t.Errorf("got %d %s, want %d %s %s", r.status, r.raw, c.status, c.code, c.body)
			}
			if got := must(t, s.URL, "GetTable", getOne).raw; got != want || a.Hits() != 1 {
				t.Errorf("got %s after %d hits, want the answer after one", got, a.Hits())
			}
			if got := s.Requests()["GetTable"]; got != 4 {
				t.Errorf("got %d requests, want 4", got)
			}
		})
	}
}

func TestFaultsMeetWhatTheRuleNames(t *testing.T) {
	s, _ := withTable(t)
	s.AddTable("other", `{"Name": "t"}`)
	s.Fault(gluetest.Rule{Database: "d", Fault: gluetest.Denied()})
	second := s.Fault(gluetest.Rule{Op: "GetPartitions", If: func(c *gluetest.Call) bool { return c.Input["NextToken"] != nil }})
	for _, c := range []struct{ op, input, want string }{
		{"GetTable", getOne, "AccessDeniedException"},
		{"GetTables", `{"DatabaseName":"d"}`, "AccessDeniedException"},
		{"GetDatabase", `{"Name":"d"}`, "AccessDeniedException"},
		{"CreateTable", `{"DatabaseName":"d","TableInput":{"Name":"u"}}`, "AccessDeniedException"},
		{"GetDatabases", `{}`, ""},
		{"GetTable", `{"DatabaseName":"other","Name":"t"}`, ""},
		{"GetPartitions", `{"DatabaseName":"other","TableName":"t"}`, ""},
	} {
		if r := do(t, s.URL, c.op, c.input); r.failure() != c.want {
			t.Errorf("%s %s: got %s, want %q", c.op, c.input, r.raw, c.want)
		}
	}
	if second.Hits() != 0 {
		t.Errorf("got %d hits of a condition that is not true", second.Hits())
	}
	s.Clear()
	must(t, s.URL, "GetTable", getOne)
}

func TestFaultsOfConnections(t *testing.T) {
	for name, c := range map[string]struct {
		fault   gluetest.Fault
		created bool
	}{
		"lost answer":  {gluetest.LoseAnswer(), true},
		"lost request": {gluetest.LoseRequest(), false},
		"cut body":     {gluetest.CutBody(1), true},
	} {
		s := gluetest.New(t)
		s.AddDatabase("d")
		a := s.Fault(gluetest.Rule{Op: "CreateTable", Fault: c.fault})
		if r, err := try(t, s.URL, "CreateTable", `{"DatabaseName":"d","TableInput":{"Name":"t"}}`); err == nil {
			t.Errorf("%s: got %s, want an error of the connection", name, r.raw)
		}
		a.Remove()
		if got := do(t, s.URL, "GetTable", getOne).status == http.StatusOK; got != c.created || a.Hits() != 1 {
			t.Errorf("%s: got created %v of %d hits, want %v of one", name, got, a.Hits(), c.created)
		}
	}
}

func TestCutBodyOfAnError(t *testing.T) {
	s := gluetest.New(t)
	s.Fault(gluetest.Rule{Fault: gluetest.CutBody(0)})
	if r, err := try(t, s.URL, "GetTable", getOne); err == nil {
		t.Errorf("got %s, want an error of the connection", r.raw)
	}
}

func TestHangUntilRelease(t *testing.T) {
	for name, fault := range map[string]gluetest.Fault{"request": gluetest.Hang(), "answer": gluetest.HangAnswer()} {
		s, want := withTable(t)
		a := s.Fault(gluetest.Rule{Op: "GetTable", Times: 2, Fault: fault})
		var hung sync.WaitGroup
		for range 2 {
			hung.Go(func() {
				if r, err := try(t, s.URL, "GetTable", getOne); err != nil || r.raw != want {
					t.Errorf("%s: got %s and %v, want the table", name, r.raw, err)
				}
			})
		}
		a.Wait(t, 2)
		must(t, s.URL, "GetTable", getOne) // nothing is locked
		s.Release()
		hung.Wait()
	}
}

func TestCloseEndsWhatHangs(t *testing.T) {
	s, err := gluetest.Start(t.Errorf)
	if err != nil {
		t.Fatal(err)
	}
	a := s.Fault(gluetest.Rule{Fault: gluetest.Hang()})
	var hung sync.WaitGroup
	hung.Go(func() {
		if r, err := try(t, s.URL, "GetTable", getOne); err == nil {
			t.Errorf("got %s, want an error of the connection", r.raw)
		}
	})
	a.Wait(t, 1)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	hung.Wait()
}

func TestEmptyPageGoesOn(t *testing.T) {
	for _, c := range []struct{ op, field, input string }{
		{"GetDatabases", "DatabaseList", `{"MaxResults":2}`},
		{"GetTables", "TableList", `{"DatabaseName":"d","MaxResults":2}`},
		{"GetPartitions", "Partitions", `{"DatabaseName":"d","TableName":"t","MaxResults":2}`},
		{"GetPartitions", "Partitions", `{"DatabaseName":"d","TableName":"t","MaxResults":2,"Segment":{"SegmentNumber":0,"TotalSegments":1}}`},
	} {
		s, _ := withTable(t)
		s.AddTable("d", `{"Name":"u"}`)
		s.AddTable("d", `{"Name":"v"}`)
		s.AddDatabase("e")
		s.AddDatabase("f")
		s.AddPartitions("d", "t", `{"Partitions":[{"Values":["a","1"]},{"Values":["b","1"]},{"Values":["c","1"]}]}`)
		first := s.Fault(gluetest.Rule{Op: c.op, Times: 1, Fault: gluetest.EmptyPage()})
		s.Fault(gluetest.Rule{Op: c.op, Skip: 2, Times: 1, Fault: gluetest.EmptyPage()})
		if got := fmt.Sprint(pages(t, s.URL, c.op, c.field, c.input)); got != "[0 2 0 1]" || first.Hits() != 1 {
			t.Errorf("%s: got pages %s, want 0, 2, 0 and 1", c.op, got)
		}
	}
}

func TestRepeatToken(t *testing.T) {
	s, _ := withTable(t)
	s.AddMany("d", "t", gluetest.Many{Count: 5, Values: func(i int) []string { return []string{"a", fmt.Sprint(i)} }})
	s.Fault(gluetest.Rule{Op: "GetPartitions", Fault: gluetest.RepeatToken()})
	const in = `{"DatabaseName":"d","TableName":"t","MaxResults":2`
	var first string
	for range 3 {
		token := ""
		if first != "" {
			token = fmt.Sprintf(`,"NextToken":%q`, first)
		}
		r := must(t, s.URL, "GetPartitions", in+token+"}")
		got, _ := r.body["NextToken"].(string)
		if got == "" || first != "" && got != first {
			t.Errorf("got token %q, want %q again", got, first)
		}
		first = got
	}
}

func TestGzip(t *testing.T) {
	s, want := withTable(t)
	s.Fault(gluetest.Rule{Fault: gluetest.Gzip()})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(getOne))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", "AWSGlue.GetTable")
	resp, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil || string(plain) != want || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("got %s and %v of encoding %q, want the table", plain, err, resp.Header.Get("Content-Encoding"))
	}
}

func TestCalls(t *testing.T) {
	s, _ := withTable(t)
	must(t, s.URL, "GetPartitions", `{"CatalogId":"123456789012","DatabaseName":"d","TableName":"t","ExcludeColumnSchema":true,"MaxResults":7}`)
	calls := s.Calls("GetPartitions")
	if len(calls) != 1 || len(s.Calls()) != 2 {
		t.Fatalf("got %d and %d calls, want 1 and 2", len(calls), len(s.Calls()))
	}
	c := calls[0]
	if c.Op != "GetPartitions" || c.Catalog != gluetest.Account || c.Database != "d" || c.Table != "t" ||
		c.Input["ExcludeColumnSchema"] != true || c.Input["MaxResults"] != json.Number("7") {
		t.Errorf("got %+v, want what was asked", c)
	}
	s.Reset()
	if len(s.Calls()) != 0 || len(s.Requests()) != 0 {
		t.Errorf("got %v after Reset, want none", s.Requests())
	}
}
