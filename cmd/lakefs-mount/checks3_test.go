package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// bucketLake is a lake in a bucket behind a proxy, not mounted.
func bucketLake(t *testing.T) (*mounttest.Lake, *faulty.Proxy) {
	t.Helper()
	proxy := faulty.New(t, s3test.Versity(t))
	o := sales(t)
	o.Server = proxy.Server()
	return mounttest.New(t, o), proxy
}

// checked is check --json of a lake, by what was looked at.
func checked(t *testing.T, lake *mounttest.Lake, flags ...string) (map[string]findingJSON, int) {
	t.Helper()
	r := lake.Run(slices.Concat([]string{"check", "--json", "--state-dir=" + lake.State}, flags, []string{lake.Source})...)
	var all []findingJSON
	if err := json.Unmarshal([]byte(r.Out), &all); err != nil {
		t.Fatalf("check --json: %v: %q %q", err, r.Out, r.Err)
	}
	found := map[string]findingJSON{}
	for _, f := range all {
		what, _, _ := strings.Cut(f.What, " s3://")
		found[what] = f
	}
	if server, _ := lake.Bucket(); strings.Contains(r.Out+r.Err, server.Secret) {
		t.Error("the secret key is shown")
	}
	return found, r.Code
}

// dated has the store's answers tell another time.
func dated(by time.Duration) faulty.Fault {
	return faulty.Func(func(_ *faulty.Exchange, next faulty.Next) (*http.Response, error) {
		resp, err := next()
		if err == nil {
			resp.Header.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
		}
		return resp, err
	})
}

func TestCheckOfABucket(t *testing.T) {
	denied := faulty.Status{Code: http.StatusForbidden, S3Code: "AccessDenied", Message: "Access Denied"}
	type want struct{ what, state, part string }
	for _, tt := range []struct {
		name  string
		rule  faulty.Rule
		flags []string
		want  []want
		not   []string // what is not looked at any more
	}{
		{name: "well", want: []want{
			{"kernel", "ok", "files are read through the mount"},
			{checkCredentials, "ok", "EnvConfigCredentials"},
			{checkEndpoint, "ok", "answers"},
			{checkClock, "ok", "agrees"},
			{checkList, "ok", "works"},
			{checkGet, "ok", "works"},
			{checkPut, "ok", "works"},
			{checkConditions, "ok", "honoured"},
			{checkDelete, "ok", "works"},
			{"catalog", "ok", "1 tables"},
		}},
		{
			name: "read-only", flags: []string{"--read-only"},
			want: []want{{checkPut, "ok", "not tried"}, {checkGet, "ok", "works"}}, not: []string{checkConditions, checkDelete},
		},
		{
			name: "no listing", rule: faulty.Rule{Op: "ListObjectsV2", Fault: denied},
			want: []want{{checkList, "failed", `"Action":"s3:ListBucket"`}, {checkList, "failed", `"s3:prefix":"wh/*"`}},
			not:  []string{checkGet, checkPut, "catalog"},
		},
		{
			name: "no reading", rule: faulty.Rule{Op: "GetObject", Fault: denied},
			want: []want{{checkList, "ok", "works"}, {checkGet, "failed", `"Action":"s3:GetObject"`}, {checkPut, "ok", "works"}},
		},
		{
			name: "no writing", rule: faulty.Rule{Op: "PutObject", Fault: denied},
			want: []want{{checkGet, "ok", "works"}, {checkPut, "failed", `"Action":"s3:PutObject"`}}, not: []string{checkDelete, checkConditions},
		},
		{
			name: "another region", rule: faulty.Rule{Op: "HeadBucket", Fault: faulty.Redirect{Region: "eu-west-1"}},
			flags: []string{"--region=us-east-1"},
			want:  []want{{checkRegion, "failed", "the bucket is in eu-west-1, --region says us-east-1"}, {checkRegion, "failed", "leave --region out"}},
			not:   []string{checkList},
		},
		{
			name: "the region is found", rule: faulty.Rule{Op: "HeadBucket", Fault: faulty.Redirect{Region: "eu-west-1"}},
			want: []want{{checkRegion, "ok", "eu-west-1"}, {checkList, "ok", "works"}},
		},
		{
			name: "behind", rule: faulty.Rule{Fault: dated(2 * time.Hour)},
			want: []want{{checkClock, "warning", "behind the service's"}, {checkList, "ok", "works"}},
		},
		{
			name: "ahead", rule: faulty.Rule{Fault: dated(-2 * time.Hour)},
			want: []want{{checkClock, "warning", "ahead of the service's"}},
		},
		{
			name: "no conditions", rule: faulty.Rule{Op: "PutObject", Fault: faulty.StripConditions{}},
			want: []want{{checkConditions, "warning", "ignores If-None-Match and If-Match"}, {checkPut, "ok", "works"}, {checkDelete, "ok", "works"}},
		},
		{
			name: "no such bucket", rule: faulty.Rule{Op: "ListObjectsV2", Fault: faulty.Status{Code: http.StatusNotFound, S3Code: "NoSuchBucket"}},
			want: []want{{checkList, "failed", "NoSuchBucket"}, {checkList, "failed", "aws s3 mb s3://"}},
		},
		{
			name: "unknown key", rule: faulty.Rule{Op: "ListObjectsV2", Fault: faulty.Status{Code: http.StatusForbidden, S3Code: "InvalidAccessKeyId"}},
			want: []want{{checkList, "failed", "does not know this key id"}},
		},
		{
			name: "never answers", rule: faulty.Rule{Op: "ListObjectsV2", Fault: faulty.Hang{}}, flags: []string{"--io-timeout=1s"},
			want: []want{{checkEndpoint, "ok", "answers"}, {checkList, "failed", "look at the store"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lake, proxy := bucketLake(t)
			server, bucket := lake.Bucket()
			before := server.Keys(t, bucket, "")
			if tt.rule.Fault != nil {
				proxy.Add(tt.rule)
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
			for _, what := range tt.not {
				if f, there := found[what]; there {
					t.Errorf("%s was looked at: %+v", what, f)
				}
			}
			proxy.Clear()
			if after := server.Keys(t, bucket, ""); !slices.Equal(before, after) {
				t.Errorf("the bucket has %q, had %q", after, before)
			}
		})
	}
}

// TestCheckOnAnotherStore: MiniStack, where keys are strings.
func TestCheckOnAnotherStore(t *testing.T) {
	o := sales(t)
	o.Server = s3test.Mini(t)
	lake := mounttest.New(t, o)
	found, code := checked(t, lake)
	if code != exitOK || found[checkConditions].Detail != "honoured" || !strings.Contains(found["catalog"].Detail, "1 tables") {
		t.Errorf("exit code %d, %+v", code, found)
	}
}

func TestCheckOfAStoreThatIsNotThere(t *testing.T) {
	lake, proxy := bucketLake(t)
	proxy.Down()
	found, code := checked(t, lake)
	if f := found[checkEndpoint]; code != exitFailed || f.State != "failed" || !strings.Contains(f.Problem, proxy.URL) || !strings.Contains(f.Problem, "refused") {
		t.Errorf("exit code %d, endpoint %+v", code, f)
	}
	if _, there := found[checkList]; there {
		t.Error("listed")
	}
}

// bare runs the program with nothing of AWS in its environment but what is given.
func bareRun(t *testing.T, lake *mounttest.Lake, env []string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), lake.Binary(), args...)
	home := t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "AWS_EC2_METADATA_DISABLED=true"}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestCredentialsThatAreNotThereAreNamed(t *testing.T) {
	lake, proxy := bucketLake(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "lake.yaml")
	if err := os.WriteFile(config, []byte("secrets: {partner: no-such-profile}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"check", "--endpoint-url=" + proxy.URL, "--state-dir=" + lake.State}
	for _, tt := range []struct {
		name  string
		env   []string
		flags []string
		want  []string
		alone bool // nothing else fails, for nothing else is tried
	}{
		{name: "none", alone: true, want: []string{"no AWS credentials found", "--profile", "--no-sign-request"}},
		{name: "no such profile", flags: []string{"--profile=nobody"}, want: []string{`AWS profile "nobody"`, "list-profiles"}},
		{name: "no such profile in the environment", env: []string{"AWS_PROFILE=nobody"}, want: []string{`AWS profile "nobody"`}},
		{name: "no such profile of a secret", flags: []string{"--config=" + config}, want: []string{`secret "partner"`, `"no-such-profile"`}},
		{name: "unsigned", flags: []string{"--no-sign-request"}, want: []string{"none are sent", "FAIL  list", "AccessDenied"}},
		{name: "no bundle", flags: []string{"--ca-bundle=/none.pem"}, want: []string{"--ca-bundle", "/none.pem"}},
		{name: "no certificate", flags: []string{"--ca-bundle=" + config}, want: []string{"CA bundle"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, code := bareRun(t, lake, tt.env, slices.Concat(args, tt.flags, []string{lake.Source})...)
			if code != exitFailed {
				t.Errorf("exit code %d, want %d", code, exitFailed)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q lacks %q", out, want)
				}
			}
			if n := strings.Count(out, "FAIL "); tt.alone && (n != 1 || strings.Contains(out, checkEndpoint+": ")) {
				t.Errorf("one cause is %d failures, and the bucket is asked: %q", n, out)
			}
		})
	}
}

// TestTheEndpointOfTheAWSConfiguration: as the SDKs take it.
func TestTheEndpointOfTheAWSConfiguration(t *testing.T) {
	lake, proxy := bucketLake(t)
	server, _ := lake.Bucket()
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	profile := "[profile lake]\naws_access_key_id = " + server.Access + "\naws_secret_access_key = " + server.Secret +
		"\nregion = " + server.Region + "\nendpoint_url = " + proxy.URL + "\n"
	if err := os.WriteFile(file, []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := []string{"AWS_ACCESS_KEY_ID=" + server.Access, "AWS_SECRET_ACCESS_KEY=" + server.Secret}
	const nowhere = "http://127.0.0.1:1"
	for _, tt := range []struct {
		name  string
		env   []string
		flags []string
	}{
		{"AWS_ENDPOINT_URL", append(keys, "AWS_ENDPOINT_URL="+proxy.URL), nil},
		{"AWS_ENDPOINT_URL_S3", append(keys, "AWS_ENDPOINT_URL="+nowhere, "AWS_ENDPOINT_URL_S3="+proxy.URL), nil},
		{"of the profile", []string{"AWS_CONFIG_FILE=" + file}, []string{"--profile=lake"}},
		{"the flag wins", append(keys, "AWS_ENDPOINT_URL="+nowhere), []string{"--endpoint-url=" + proxy.URL}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, code := bareRun(t, lake, tt.env, slices.Concat([]string{"check", "--state-dir=" + lake.State}, tt.flags, []string{lake.Source})...)
			if code != exitOK || !strings.Contains(out, proxy.URL) {
				t.Errorf("exit code %d, %q", code, out)
			}
		})
	}
}

// TestTablesElsewhere: a table in another bucket is refused with a remedy that
// helps, and is read with the credentials that its entry names.
func TestTablesElsewhere(t *testing.T) {
	server := s3test.Versity(t)
	other := server.Bucket(t)
	server.Put(t, other, "x/dt=2026-01-01/far.csv", []byte("7,far\n"))
	dir := t.TempDir()
	config, credentials := filepath.Join(dir, "lake.yaml"), filepath.Join(dir, "credentials")
	for path, text := range map[string]string{
		config:      "secrets:\n  partner: {profile: partner}\n",
		credentials: "[partner]\naws_access_key_id = " + server.Access + "\naws_secret_access_key = " + server.Secret + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := sales(t)
	o.S3, o.Env = true, []string{"AWS_SHARED_CREDENTIALS_FILE=" + credentials}
	o.Tables = append(o.Tables, mounttest.Table{Database: "sales", Name: "far", Format: "csv", Keys: []string{"dt:date"}, Location: "s3://" + other + "/x"})
	lake := mounttest.New(t, o)
	found, code := checked(t, lake)
	flag := "--allow-location s3://" + other + "/x/"
	if f := found[`table "sales/far"`]; code != exitFailed || f.State != "failed" || !strings.Contains(f.Remedy, "mount with "+flag) {
		t.Errorf("exit code %d, %+v; want the remedy %q", code, f, flag)
	}
	allow := strings.Replace(flag, " ", "=", 1)
	if found, code = checked(t, lake, allow); code != exitOK || !strings.Contains(found["catalog"].Detail, "2 tables") {
		t.Errorf("with the flag: exit code %d, %+v", code, found)
	}
	manifest := lake.StoredManifest("sales/far")
	lake.PutManifest("sales/far", strings.Replace(manifest, "{", `{"sqe": {"secret": "partner"},`, 1))
	if found, code = checked(t, lake, allow); code != exitFailed || !strings.Contains(found[`table "sales/far"`].Problem, "partner") {
		t.Errorf("a secret that nobody has: exit code %d, %+v", code, found)
	}
	lake.Start(allow, "--config="+config)
	if got := lake.MustSh("cat sales/far/dt=2026-01-01/far.csv"); got != "7,far\n" {
		t.Errorf("the table elsewhere has %q", got)
	}
}
