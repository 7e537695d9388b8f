package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
)

// glueNotes is a lake whose catalog is Glue: one table with one partition.
func glueNotes() mounttest.Options {
	return mounttest.Options{Glue: &mounttest.Glue{Tables: []mounttest.GlueTable{{
		Table:      mounttest.Table{Database: "sales", Name: "notes", Format: "csv", Keys: []string{"dt:date"}},
		Partitions: []mounttest.GluePartition{{Values: []string{"2026-01-01"}, Files: map[string]string{"a.csv": "1,one\n"}}},
	}}}}
}

func TestALakeOfAGlueCatalog(t *testing.T) {
	lake := mounttest.Mount(t, glueNotes())
	if got := lake.MustSh("ls; ls sales; cat sales/notes/dt=2026-01-01/a.csv; jq -r .Table.Name sales/notes.json"); got != "sales\nsales.json\nnotes\nnotes.json\n1,one\nnotes\n" {
		t.Errorf("the mount has %q", got)
	}
	if e, _, err := mountedAt(lake.Root); err != nil || e.source != "glue:" {
		t.Errorf("the mount table has %q (%v), want glue:", e.source, err)
	}
	var all []mountStatus
	r := lake.Run("status", "--json", lake.Root)
	if err := json.Unmarshal([]byte(r.Out), &all); err != nil || len(all) != 1 {
		t.Fatalf("status --json: %v: %q %q", err, r.Out, r.Err)
	}
	server, _ := lake.Bucket()
	store := all[0].store()
	want := catalogStatus{Kind: "glue", Endpoint: lake.Catalog.Endpoint, Region: server.Region, Writes: "partitions"}
	if all[0].Source != "glue:" || store.Kind != "s3" || store.Endpoint != server.Endpoint || store.Catalog == nil || *store.Catalog != want {
		t.Errorf("status is of %q: %+v, %+v, want %+v", all[0].Source, store, store.Catalog, want)
	}
	asked := lake.Catalog.Server.Requests()
	for _, operation := range []string{"GetDatabases", "GetPartition"} {
		counted := all[0].Metrics[`lakefs_mount_catalog_request_seconds_count{operation="`+operation+`",outcome="ok"}`]
		if counted == 0 || int(counted) > asked[operation] {
			t.Errorf("%v requests of %s are counted, the catalog had %d", counted, operation, asked[operation])
		}
	}
	if text := lake.Run("status"); !strings.Contains(text.Out, "Glue in "+server.Region+" at "+lake.Catalog.Endpoint+", S3 at "+server.Endpoint+"\n") {
		t.Errorf("status is %q", text.Out)
	}
	lake.Catalog.Server.AddTable("sales", `{"Name": "later", "StorageDescriptor": {"Location": "s3://x/"}}`)
	if r := lake.Run("refresh", lake.Path("sales")); r.Code != exitOK {
		t.Errorf("refresh: exit code %d, %q", r.Code, r.Err)
	}
	if got := lake.MustSh("ls -d sales/later.json"); got != "sales/later.json\n" {
		t.Errorf("after refresh: %q", got)
	}
	lake.Unmount()
}

// TestAMountOfGlueAsksLittleByItself: a catalog may have millions of tables.
func TestAMountOfGlueAsksLittleByItself(t *testing.T) {
	lake := mounttest.New(t, glueNotes())
	if r := daemonOf(lake); r.Code != exitOK {
		t.Fatalf("exit code %d, %q", r.Code, r.Err)
	}
	if r := lake.Run("unmount", lake.Root); r.Code != exitOK {
		t.Errorf("unmount: exit code %d, %q", r.Code, r.Err)
	}
	asked := lake.Catalog.Server.Requests()
	if asked["GetDatabases"] != 1 || len(asked) != 1 {
		t.Errorf("a mount that nobody used asked %v, want GetDatabases once", asked)
	}
}

func TestGlueOfAnotherAccount(t *testing.T) {
	lake := mounttest.New(t, glueNotes())
	lake.Catalog.Server.In("210987654321").AddDatabase(`{"Name": "theirs"}`)
	lake.Source = "glue:210987654321"
	lake.Start()
	if got := lake.MustSh("ls -d *"); got != "theirs\ntheirs.json\n" {
		t.Errorf("the mount has %q", got)
	}
	if e, _, err := mountedAt(lake.Root); err != nil || e.source != lake.Source {
		t.Errorf("the mount table has %q (%v)", e.source, err)
	}
}

func TestGlueRefusesWhatItCannotServe(t *testing.T) {
	dir := t.TempDir()
	mnt := filepath.Join(dir, "mnt")
	if err := os.Mkdir(mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_GLUE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	for _, tt := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"a database", []string{"glue:abc", mnt}, exitFailed, []string{`"glue:abc"`, "12 digits", "--database"}},
		{"few digits", []string{"glue:123", mnt}, exitFailed, []string{`"glue:123"`, "12 digits"}},
		{"endpoint", []string{"--glue-endpoint-url=127.0.0.1:1", "glue:", mnt}, exitUsage, []string{"--glue-endpoint-url", "http://HOST"}},
		{"database pattern", []string{"--database=[a", "glue:", mnt}, exitUsage, []string{"--database", "[a", "pattern"}},
		{"table pattern", []string{`--table=a\`, "glue:", mnt}, exitUsage, []string{"--table", "pattern"}},
		{"no region", []string{"glue:", mnt}, exitUsage, []string{"no region", "--region", "AWS_REGION"}},
		{"unsigned", []string{"--no-sign-request", "--region=eu-north-1", "glue:", mnt}, exitUsage, []string{"--no-sign-request", "Glue"}},
		{"a folder to allow", []string{"--glue-endpoint-url=http://127.0.0.1:1", "--allow-location=" + dir, "--state-dir=" + filepath.Join(dir, "state"), "glue:", mnt}, exitFailed, []string{"--allow-location", "s3://BUCKET/PREFIX/"}},
		{"user", []string{"--allow-location=s3://home/{user}/", "--allow-other", "glue:", mnt}, exitUsage, []string{"{user}", "--allow-other"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, code := call(t, "lakefs-mount", os.Environ(), append([]string{"mount"}, tt.args...)...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d: %q", code, tt.code, stderr)
			}
			for _, want := range tt.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr %q lacks %q", stderr, want)
				}
			}
		})
	}
}

func TestTheEndpointOfGlue(t *testing.T) {
	for _, name := range []string{"AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_GLUE", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_REGION", "eu-north-1")
	file := filepath.Join(t.TempDir(), "config")
	text := "[profile lake]\nservices = own\n[services own]\nglue =\n  endpoint_url = http://services:1\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", file)
	for _, tt := range []struct {
		name           string
		env            map[string]string
		profile, given string
		want, wantS3   string
	}{
		{name: "AWS", want: "https://glue.eu-north-1.amazonaws.com", wantS3: "https://s3.eu-north-1.amazonaws.com"},
		{name: "for all", env: map[string]string{"AWS_ENDPOINT_URL": "http://all:1"}, want: "http://all:1", wantS3: "http://all:1"},
		{
			name: "for Glue", env: map[string]string{"AWS_ENDPOINT_URL": "http://all:1", "AWS_ENDPOINT_URL_GLUE": "http://glue:1"},
			want: "http://glue:1", wantS3: "http://all:1",
		},
		{name: "services", profile: "lake", want: "http://services:1", wantS3: "https://s3.eu-north-1.amazonaws.com"},
		{name: "flag", env: map[string]string{"AWS_ENDPOINT_URL_GLUE": "http://glue:1"}, given: "http://flag:1", want: "http://flag:1", wantS3: "https://s3.eu-north-1.amazonaws.com"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			r := &request{}
			r.settings.Profile, r.settings.GlueEndpointURL = tt.profile, tt.given
			if err := (&program{}).setSource(t.Context(), r, "glue:"); err != nil {
				t.Fatal(err)
			}
			if got, s3 := catalogEndpoint(r), storeEndpoint(r); got != tt.want || s3 != tt.wantS3 {
				t.Errorf("Glue at %q, S3 at %q; want %q and %q", got, s3, tt.want, tt.wantS3)
			}
		})
	}
}

func TestTheStateDirectoryIsOfTheCatalog(t *testing.T) {
	p := &program{environ: []string{"HOME=/home/u"}}
	of := func(account, endpoint, glueEndpoint, region string) string {
		r := &request{source: source{glue: true, account: account}, mountpoint: "/m", endpoint: endpoint, glueEndpoint: glueEndpoint}
		r.aws = &awsConfigs{main: aws.Config{Region: region}}
		dir, err := p.stateDir(r)
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	seen := map[string]bool{}
	for _, dir := range []string{
		of("", "", "", "eu-north-1"), of("123456789012", "", "", "eu-north-1"), of("", "http://h", "", "eu-north-1"),
		of("", "", "http://h", "eu-north-1"), of("", "", "", "eu-west-1"),
	} {
		seen[dir] = true
	}
	if len(seen) != 5 {
		t.Errorf("5 catalogs have %d state directories", len(seen))
	}
	again := of("", "", "", "eu-north-1")
	if !seen[again] {
		t.Errorf("one catalog has two state directories, the second is %q", again)
	}
}

// TestCase62ADaemonOfGlueIsReadyOrSaysWhyNot: else nothing is mounted.
func TestCase62ADaemonOfGlueIsReadyOrSaysWhyNot(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags []string
		rule  gluetest.Rule
		want  []string
	}{
		{name: "denied", rule: gluetest.Rule{Op: "GetDatabases", Fault: gluetest.Denied()}, want: []string{"AccessDenied", `"Action":"glue:GetDatabases"`, ":catalog"}},
		{
			name: "wrong key", rule: gluetest.Rule{Fault: gluetest.Error(http.StatusBadRequest, "UnrecognizedClientException", "The security token included in the request is invalid.")},
			want: []string{"UnrecognizedClientException", "--profile"},
		},
		{name: "no answer", flags: []string{"--io-timeout=1s"}, rule: gluetest.Rule{Fault: gluetest.Hang()}, want: []string{"in time", "--glue-endpoint-url"}},
		{name: "not there", flags: []string{"--io-timeout=1s", "--glue-endpoint-url=http://127.0.0.1:1"}, want: []string{"refused", "http://127.0.0.1:1", "--glue-endpoint-url"}},
		{name: "a page", flags: []string{"--io-timeout=1s"}, rule: gluetest.Rule{Fault: gluetest.HTML(http.StatusOK)}, want: []string{"not an answer of the catalog"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lake := mounttest.New(t, glueNotes())
			if tt.rule.Fault != nil {
				lake.Catalog.Server.Fault(tt.rule)
			}
			r := daemonOf(lake, tt.flags...)
			lake.Catalog.Server.Clear()
			if r.Code != exitFailed || lake.Mounted() {
				t.Errorf("exit code %d, mounted: %v; want %d and nothing", r.Code, lake.Mounted(), exitFailed)
			}
			for _, want := range append(tt.want, `source "glue:"`, "--no-wait") {
				if !strings.Contains(r.Err, want) {
					t.Errorf("stderr %q lacks %q", r.Err, want)
				}
			}
		})
	}
}

func TestADaemonOfGlueWithoutCredentialsSaysSo(t *testing.T) {
	lake := mounttest.New(t, glueNotes())
	flags := []string{"--glue-endpoint-url=" + lake.Catalog.Endpoint, "--state-dir=" + lake.State}
	for _, command := range [][]string{{"mount", "--daemon", "glue:", lake.Root}, {"check", "glue:"}} {
		out, code := bareRun(t, lake, nil, slices.Concat(command[:1], flags, command[1:])...)
		if code != exitFailed || lake.Mounted() || !strings.Contains(out, "no AWS credentials found") || !strings.Contains(out, "--profile") || strings.Contains(out, "policy") || strings.Contains(out, "--no-sign-request") {
			t.Errorf("%s: exit code %d, mounted %v, %q", command[0], code, lake.Mounted(), out)
		}
	}
}

// registered are the values of the partitions of sales.notes that the catalog has.
func registered(t *testing.T, lake *mounttest.Lake) []string {
	t.Helper()
	var answer struct{ Partitions []struct{ Values []string } }
	raw := lake.Catalog.Call("GetPartitions", `{"DatabaseName": "sales", "TableName": "notes"}`)
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, p := range answer.Partitions {
		values = append(values, p.Values...)
	}
	slices.Sort(values)
	return values
}

// TestCatalogWrites: a file in a new partition registers it, where that is not
// switched off.
func TestCatalogWrites(t *testing.T) {
	for _, tt := range []struct {
		flags []string
		want  []string
		word  string
	}{
		{nil, []string{"2026-01-01", "2026-01-02"}, "partitions"},
		{[]string{"--catalog-writes=none"}, []string{"2026-01-01"}, "none"},
	} {
		t.Run(tt.word, func(t *testing.T) {
			lake := mounttest.New(t, glueNotes())
			lake.Start(tt.flags...)
			lake.MustSh("mkdir sales/notes/dt=2026-01-02 && echo 2,two > sales/notes/dt=2026-01-02/b.csv")
			if got := registered(t, lake); !slices.Equal(got, tt.want) {
				t.Errorf("registered are %q, want %q", got, tt.want)
			}
			if got := lake.MustSh("jq -r .mount.store.catalog.writes .lakefs/status.json"); got != tt.word+"\n" {
				t.Errorf("status.json says %q, want %s", got, tt.word)
			}
			if got, err := lake.Stored("sales/notes/dt=2026-01-02/b.csv"); err != nil || got != "2,two\n" {
				t.Errorf("the bucket has %q (%v)", got, err)
			}
		})
	}
}

// TestRecoverOfAGlueCatalogRegisters: what recover publishes after a crash is as if
// the mount had published it.
func TestRecoverOfAGlueCatalogRegisters(t *testing.T) {
	lake := mounttest.Mount(t, glueNotes())
	lake.Sh(`mkdir sales/notes/dt=2026-01-02; bash -c 'exec 3>sales/notes/dt=2026-01-02/torn.csv; echo 9,nine >&3; kill -9 $$'`)
	lake.Eventually("a torn file is staged", 10*time.Second, func() bool {
		return strings.Contains(lake.Run("recover", lake.Root).Out, "torn.csv")
	})
	lake.Kill()
	if r := lake.Run("unmount", lake.Root); r.Code != exitOK {
		t.Fatalf("unmount: %q", r.Err)
	}
	r := lake.Run("recover", "--state-dir="+lake.State, "--publish=all", "glue:", lake.Root)
	if r.Code != exitOK || !strings.Contains(r.Out, "published") {
		t.Errorf("recover: exit code %d, %q %q", r.Code, r.Out, r.Err)
	}
	if got := registered(t, lake); !slices.Equal(got, []string{"2026-01-01", "2026-01-02"}) {
		t.Errorf("registered are %q", got)
	}
}

func TestAPartOfACatalog(t *testing.T) {
	o := glueNotes()
	for _, name := range []string{"sales/tmp_x", "tmp_scratch/t"} {
		database, table, _ := strings.Cut(name, "/")
		o.Glue.Tables = append(o.Glue.Tables, mounttest.GlueTable{Table: mounttest.Table{Database: database, Name: table, Format: "csv"}})
	}
	lake := mounttest.New(t, o)
	lake.Start("--database=s*", "--database=other", "--table=n*")
	if got := lake.MustSh("ls; ls sales; cat sales/notes/dt=2026-01-01/a.csv; stat tmp_scratch sales/tmp_x sales/tmp_x.json tmp_scratch.json 2>&1 | grep -c 'No such file'"); got != "sales\nsales.json\nnotes\nnotes.json\n1,one\n4\n" {
		t.Errorf("the mount has %q", got)
	}
}

// TestAPartOfACatalogOfManifests: --database and --table are of every catalog.
func TestAPartOfACatalogOfManifests(t *testing.T) {
	o := sales(t)
	o.Tables = append(o.Tables, mounttest.Table{Database: "sales", Name: "tmp_x", Format: "csv"}, mounttest.Table{Database: "tmp", Name: "t", Format: "csv"})
	lake := mounttest.New(t, o)
	lake.Start("--database=s*", "--table=n*")
	if got := lake.MustSh("ls; ls sales; cat sales/notes/dt=2026-01-01/a.csv; stat tmp sales/tmp_x 2>&1 | grep -c 'No such file'"); got != "sales\nsales.json\nnotes\nnotes.json\n1,one\n2\n" {
		t.Errorf("the mount has %q", got)
	}
}

// TestDatabasesThatMayNotBeListedOpenByName, once the mount does not wait for them.
func TestDatabasesThatMayNotBeListedOpenByName(t *testing.T) {
	lake := mounttest.New(t, glueNotes())
	lake.Catalog.Server.Fault(gluetest.Rule{Op: "GetDatabases", Fault: gluetest.Denied()})
	if r := daemonOf(lake, "--no-wait"); r.Code != exitOK {
		t.Fatalf("exit code %d, %q", r.Code, r.Err)
	}
	if got := lake.MustSh("cat sales/notes/dt=2026-01-01/a.csv; ls 2>&1 | grep -c 'Permission denied'"); got != "1,one\n1\n" {
		t.Errorf("the mount has %q", got)
	}
	lake.Eventually("the log has the cause and the statement that is missing", 10*time.Second, func() bool {
		log, err := os.ReadFile(filepath.Join(lake.State, "mount.log"))
		return err == nil && strings.Contains(string(log), "AccessDenied") && strings.Contains(string(log), "glue:GetDatabases")
	})
	if r := lake.Run("unmount", lake.Root); r.Code != exitOK {
		t.Errorf("unmount: exit code %d, %q", r.Code, r.Err)
	}
}
