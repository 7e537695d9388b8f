package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

func TestCheckOfAGlueCatalog(t *testing.T) {
	type want struct{ what, state, part string }
	denied := func(op string) gluetest.Rule { return gluetest.Rule{Op: op, Fault: gluetest.Denied()} }
	for _, tt := range []struct {
		name  string
		rule  gluetest.Rule
		flags []string
		want  []want
		not   []string
		// without is what no remedy of a failure says, besides the flag that is none for Glue.
		without string
	}{
		{name: "well", want: []want{
			{"source", "ok", "glue:"},
			{"allowed locations", "ok", "every bucket that the catalog names"},
			{"kernel", "ok", "files are read through the mount"},
			{checkCredentials, "ok", "EnvConfigCredentials"},
			{checkEndpoint, "ok", "answers"},
			{checkDatabases, "ok", "works, 1 database"},
			{checkDatabase, "ok", "works"},
			{checkTables, "ok", "works, 1 table of 1 database"},
			{checkGetTable, "ok", "works"},
			{checkPartitions, "ok", "works"},
			{checkPartition, "ok", "works"},
			{checkList, "ok", "works, 1 object"},
			{checkGet, "ok", "works"},
			{checkCatalogWrites, "ok", "glue:BatchCreatePartition"},
		}},
		{name: "read-only", flags: []string{"--read-only"}, want: []want{{checkCatalogWrites, "ok", "none"}}},
		{name: "removing", flags: []string{"--write=delete"}, want: []want{{checkCatalogWrites, "ok", "glue:BatchCreatePartition"}, {checkCatalogWrites, "ok", "glue:DeletePartition"}}},
		{name: "writing entries", flags: []string{"--catalog-writes=entries"}, want: []want{{checkCatalogWrites, "ok", "glue:UpdateTable"}, {checkCatalogWrites, "ok", "glue:DeleteTable"}}},
		{name: "no catalog writes", flags: []string{"--catalog-writes=none"}, want: []want{{checkCatalogWrites, "ok", "none"}}},
		{
			name: "no databases", rule: denied("GetDatabases"), not: []string{checkTables, checkList},
			want: []want{{checkDatabases, "failed", `"Action":"glue:GetDatabases"`}, {checkDatabases, "failed", ":*:catalog"}, {checkDatabases, "failed", "Lake Formation"}},
		},
		{name: "no database", rule: denied("GetDatabase"), want: []want{{checkDatabase + ` "sales"`, "failed", `:database/sales"`}, {checkTables, "ok", "works"}}},
		{
			name: "no tables", rule: denied("GetTables"), not: []string{checkTables, checkGetTable},
			want: []want{{checkTables + ` "sales"`, "failed", `"Action":"glue:GetTables"`}, {checkTables + ` "sales"`, "failed", `:table/sales/*"`}},
		},
		{name: "no table", rule: denied("GetTable"), want: []want{{checkGetTable + ` "sales/notes"`, "failed", `:table/sales/notes"`}}},
		{name: "no partitions", rule: denied("GetPartitions"), want: []want{{checkPartitions + ` "sales/notes"`, "failed", `"Action":"glue:GetPartitions"`}, {checkList, "ok", "works"}}},
		{name: "no partition", rule: denied("GetPartition"), want: []want{{checkPartitions, "ok", "works"}, {checkPartition + ` "sales/notes"`, "failed", `"Action":"glue:GetPartition"`}}},
		{
			name: "unknown key", rule: gluetest.Rule{Fault: gluetest.Error(http.StatusBadRequest, "UnrecognizedClientException", "no such token")},
			want: []want{{checkDatabases, "failed", "UnrecognizedClientException"}, {checkDatabases, "failed", "--profile"}}, not: []string{checkTables}, without: "policy",
		},
		{
			name: "wrong secret", rule: gluetest.Rule{Fault: gluetest.Error(http.StatusBadRequest, "InvalidSignatureException", "it does not match")},
			want: []want{{checkDatabases, "failed", "the secret key is not that of the key id"}}, not: []string{checkTables}, without: "policy",
		},
		{
			name: "session over", rule: gluetest.Rule{Fault: gluetest.Error(http.StatusBadRequest, "ExpiredTokenException", "it is over")},
			want: []want{{checkDatabases, "failed", "log in again"}}, not: []string{checkTables}, without: "policy",
		},
		{name: "a policy alone", rule: denied("GetTables"), want: []want{{checkTables + ` "sales"`, "failed", "policy"}}, without: "--profile"},
		{
			name: "never answers", rule: gluetest.Rule{Op: "GetDatabases", Fault: gluetest.Hang()}, flags: []string{"--io-timeout=1s"},
			want: []want{{checkEndpoint, "ok", "answers"}, {checkDatabases, "failed", "--glue-endpoint-url"}},
		},
		{
			name: "not there", flags: []string{"--glue-endpoint-url=http://127.0.0.1:1"}, not: []string{checkDatabases},
			want: []want{{checkEndpoint, "failed", "http://127.0.0.1:1"}, {checkEndpoint, "failed", "look at --glue-endpoint-url"}},
		},
		{name: "not allowed", flags: []string{"--allow-location=s3://elsewhere/"}, want: []want{
			{"allowed locations", "ok", "s3://elsewhere/"}, {`table "sales/notes"`, "warning", "mount with --allow-location s3://"}, {checkList, "ok", "not tried"},
		}},
		{name: "no pattern matches", flags: []string{"--database=none*"}, want: []want{{checkDatabases, "warning", "--database"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lake := mounttest.New(t, glueNotes())
			if tt.rule.Fault != nil {
				lake.Catalog.Server.Fault(tt.rule)
			}
			found, code := checked(t, lake, tt.flags...)
			failed := false
			for _, f := range found {
				failed = failed || f.State == "failed"
			}
			if failed != (code == exitFailed) || !failed != (code == exitOK) {
				t.Errorf("exit code %d, something failed: %v", code, failed)
			}
			for _, w := range tt.want {
				f := found[w.what]
				if text := f.Detail + f.Problem + f.Remedy; f.State != w.state || !strings.Contains(text, w.part) {
					t.Errorf("%s is %+v, want %s and %q", w.what, f, w.state, w.part)
				}
			}
			for what, f := range found {
				if f.State == "failed" && (tt.without != "" && strings.Contains(f.Remedy, tt.without) || strings.Contains(f.Problem+f.Remedy, "--no-sign-request")) {
					t.Errorf("remedy of %s: %s", what, f.Remedy)
				}
			}
			for _, what := range tt.not {
				if f, there := found[what]; there {
					t.Errorf("%s was looked at: %+v", what, f)
				}
			}
			for op := range lake.Catalog.Server.Requests() {
				if !strings.HasPrefix(op, "Get") {
					t.Errorf("check made %s", op)
				}
			}
		})
	}
}

// TestCheckWarnsOfLinksThatLeadNowhere, names each, and goes on.
func TestCheckWarnsOfLinksThatLeadNowhere(t *testing.T) {
	lake := mounttest.New(t, glueNotes())
	for name, target := range map[string]string{"a": "b", "b": "a", "dangling": "nope"} {
		lake.Catalog.Server.AddDatabase(`{"Name": "` + name + `", "TargetDatabase": {"CatalogId": "` + gluetest.Account + `", "DatabaseName": "` + target + `"}}`)
	}
	found, code := checked(t, lake)
	if code != exitOK {
		t.Errorf("exit code %d: %+v", code, found)
	}
	for name, problem := range map[string]string{"a": "resource link too", "b": "resource link too", "dangling": "not there"} {
		f := found[`database "`+name+`"`]
		if f.State != "warning" || !strings.Contains(f.Problem, problem) || !strings.Contains(f.Remedy, `"`+name+`.json"`) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := found[checkTables]; f.State != "ok" || !strings.Contains(f.Detail, "1 table of 1 database") || !strings.Contains(found[checkDatabases].Detail, "4 databases") {
		t.Errorf("%s: %+v, %+v", checkTables, f, found[checkDatabases])
	}
}

// TestCheckLooksAtTheFirstOfMany: a catalog may have 10,000 databases.
func TestCheckLooksAtTheFirstOfMany(t *testing.T) {
	lake := mounttest.New(t, mounttest.Options{Glue: &mounttest.Glue{}})
	for i := range 250 {
		name := "db" + string([]byte{'a' + byte(i/26), 'a' + byte(i%26)})
		lake.Catalog.Server.AddDatabase(`{"Name": "` + name + `"}`)
		if i < 30 {
			lake.Catalog.Server.AddTable(name, `{"Name": "t", "StorageDescriptor": {"Location": "s3://`+lake.Catalog.Buckets[0]+`/t/"}}`)
		}
	}
	found, code := checked(t, lake)
	if code != exitOK || !strings.Contains(found[checkDatabases].Detail, "the first 100 databases") ||
		!strings.Contains(found[checkTables].Detail, "10 tables of 10 databases") {
		t.Errorf("exit code %d, %+v", code, found)
	}
	asked := lake.Catalog.Server.Requests()
	if asked["GetDatabases"] != 1 || asked["GetTables"] != checkGlueListed || asked["GetTable"] > 2*checkGlueLoaded {
		t.Errorf("check asked %v", asked)
	}
}

func TestPolicyStatementsOfGlue(t *testing.T) {
	r := &request{aws: &awsConfigs{main: aws.Config{Region: "eu-north-1"}}}
	for _, tt := range []struct {
		call    glueCall
		account string
		want    string
	}{
		{glueCall{action: "GetDatabases"}, "", `{"Effect":"Allow","Action":"glue:GetDatabases","Resource":["arn:aws:glue:eu-north-1:*:catalog","arn:aws:glue:eu-north-1:*:database/*"]}`},
		{glueCall{action: "GetTables", database: "sales"}, "123456789012", `{"Effect":"Allow","Action":"glue:GetTables","Resource":["arn:aws:glue:eu-north-1:123456789012:catalog","arn:aws:glue:eu-north-1:123456789012:database/sales","arn:aws:glue:eu-north-1:123456789012:table/sales/*"]}`},
	} {
		r.source = source{glue: true, account: tt.account}
		if got := tt.call.policy(r); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.call, got, tt.want)
		}
	}
}
