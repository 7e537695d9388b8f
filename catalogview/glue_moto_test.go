package catalogview_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/catalogview/sourcetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// post makes a request to moto; an operation of Glue's, or a path of its own.
func post(t *testing.T, url, op string, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", "AWSGlue."+op)
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/glue/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", op, resp.Status, err, answer)
	}
}

// input is an entry without what the service sets.
func input(entry string) string { return strings.Replace(entry, `"CreateTime":1.795981949E9,`, "", 1) }

// TestGlueOfMotoIsASource: it pages nothing, and refuses some expressions.
func TestGlueOfMotoIsASource(t *testing.T) {
	server := gluetest.FreshMoto(t)
	sourcetest.Run(t, emulatorHarness(server.URL, "/moto-api/reset"))
}

// TestGlueOfMiniStackIsASource: it ignores expressions, and writes null for what is
// not there. Its server is emptied each time: no test may run beside this one.
func TestGlueOfMiniStackIsASource(t *testing.T) {
	server := gluetest.Mini(t)
	sourcetest.Run(t, emulatorHarness(server.URL, "/_ministack/reset"))
}

func emulatorHarness(url, reset string) func(t *testing.T) sourcetest.Harness {
	return func(t *testing.T) sourcetest.Harness {
		t.Helper()
		post(t, url+reset, "", "")
		there := map[string]bool{}
		return sourcetest.Harness{
			Source: glueOn(t, url),
			// Moto takes an update of any version; MiniStack none of a partition, and
			// partitions of no table.
			LooseVersions: strings.Contains(reset, "moto"), FixedPartitions: strings.Contains(reset, "ministack"),
			LoosePartitions: strings.Contains(reset, "ministack"),
			Create: func(t *testing.T, db string) {
				t.Helper()
				post(t, url, "CreateDatabase", fmt.Sprintf(`{"DatabaseInput":{"Name":%q}}`, db))
			},
			Put: func(t *testing.T, tab sourcetest.Table) {
				t.Helper()
				keys := tab.Keys
				if keys == nil {
					keys = []table.Column{{Name: "day", Type: "int"}}
				}
				entry := input(parquetTable(t, tab.Name, tab.Location, keys...))
				if tab.Broken {
					entry = fmt.Sprintf(`{"Name":%q,"StorageDescriptor":{"Location":""}}`, tab.Name)
				}
				op := "CreateTable"
				if there[tab.Database+"/"+tab.Name] {
					op = "UpdateTable"
				}
				there[tab.Database+"/"+tab.Name] = true
				post(t, url, op, fmt.Sprintf(`{"DatabaseName":%q,"TableInput":%s}`, tab.Database, entry))
			},
			Drop: func(t *testing.T, db, name string) {
				t.Helper()
				post(t, url, "DeleteTable", fmt.Sprintf(`{"DatabaseName":%q,"Name":%q}`, db, name))
			},
			PutPartition: func(t *testing.T, db, name string, values []string, location string) {
				t.Helper()
				entry := strings.Replace(parquetPartition(t, values, location), `"CreationTime":1795981949,`, "", 1)
				post(t, url, "CreatePartition", fmt.Sprintf(`{"DatabaseName":%q,"TableName":%q,"PartitionInput":%s}`, db, name, entry))
			},
		}
	}
}

// Emulators send empty lists as the service does: an answer without is none.
func TestEmulatorsSendEmptyLists(t *testing.T) {
	for name, url := range map[string]string{"moto": gluetest.FreshMoto(t).URL, "MiniStack": gluetest.Mini(t).URL} {
		reset := map[string]string{"moto": "/moto-api/reset", "MiniStack": "/_ministack/reset"}[name]
		post(t, url+reset, "", "")
		g := glueOn(t, url)
		if n, err := lengthOf(g.Databases(t.Context())); n != 0 || err != nil {
			t.Errorf("%s: %d databases, %v", name, n, err)
		}
		post(t, url, "CreateDatabase", `{"DatabaseInput":{"Name":"sales"}}`)
		if n, err := lengthOf(g.Tables(t.Context(), "sales")); n != 0 || err != nil {
			t.Errorf("%s: %d tables, %v", name, n, err)
		}
		entry := input(parquetTable(t, "days", "s3://lake/days", table.Column{Name: "day", Type: "int"}))
		post(t, url, "CreateTable", `{"DatabaseName":"sales","TableInput":`+entry+`}`)
		tab := daysOf(t, g)
		for _, prefix := range [][]string{nil, {"7"}} {
			if n, err := lengthOf(g.Partitions(t.Context(), tab, prefix)); n != 0 || err != nil {
				t.Errorf("%s: %d partitions of %q, %v", name, n, prefix, err)
			}
		}
		if n, err := lengthOf(g.PartitionLines(t.Context(), tab)); n != 0 || err != nil {
			t.Errorf("%s: %d lines, %v", name, n, err)
		}
		_, raw, err := g.Table(t.Context(), "sales", "days", "")
		d, dbErr := g.Database(t.Context(), "sales")
		if err != nil || dbErr != nil || bytes.Contains(append(raw.Bytes, d.Raw.Bytes...), []byte("null")) {
			t.Errorf("%s: %v, %v: %s%s", name, err, dbErr, raw.Bytes, d.Raw.Bytes)
		}
	}
}

// TestRule01_EntryIsWhatTheCLIPrints, with times as ISO-8601: that of a table, a
// database and a partition.
func TestRule01_EntryIsWhatTheCLIPrints(t *testing.T) {
	server := gluetest.FreshMoto(t)
	s3test.CLI(t, server.Server, "glue", "create-database", "--database-input", `{"Name":"sales","Description":"<é>"}`)
	entry := strings.Replace(input(parquetTable(t, "days", "s3://lake/days", table.Column{Name: "day", Type: "string"})),
		`{"Name"`, `{"Parameters":{"a":"a<b && c>d","CreateTime":"17","u":"\u2028\u00e9"},"LastAccessTime":1767225600.25,"Retention":0,"Name"`, 1)
	post(t, server.URL, "CreateTable", `{"DatabaseName":"sales","TableInput":`+entry+`}`)
	g := glueOn(t, server.URL)
	tab := daysOf(t, g)
	if _, err := registerOne(t.Context(), g, tab, []string{"é"}, "s3://lake/days/day=é"); err != nil {
		t.Fatal(err)
	}
	_, got, err := g.Table(t.Context(), "sales", "days", "")
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, got.Bytes, isoCLI(t, server, "get-table", "--database-name", "sales", "--name", "days"))
	d, err := g.Database(t.Context(), "sales")
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, d.Raw.Bytes, isoCLI(t, server, "get-database", "--name", "sales"))
	_, got, err = g.Partition(t.Context(), tab, []string{"é"})
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, got.Bytes, isoCLI(t, server, "get-partition", "--database-name", "sales", "--table-name", "days", "--partition-values", "é"))
}

// isoCLI is what "aws glue" prints with times as ISO-8601.
func isoCLI(t *testing.T, server *gluetest.Remote, args ...string) []byte {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("[default]\ncli_timestamp_format = iso8601\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "../.venv/bin/aws", append([]string{"--endpoint-url", server.URL, "--output", "json", "glue"}, args...)...)
	cmd.Env = append(server.Env(), "PATH="+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TZ=UTC", "AWS_PAGER=", "HOME="+t.TempDir(), "AWS_CONFIG_FILE="+config)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("aws glue %v: %v", args, err)
	}
	return out
}

func sameJSON(t *testing.T, got, want []byte) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(want, &w); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
