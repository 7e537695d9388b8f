package main

import (
	"crypto/sha1" //nolint:gosec // how the SDK names the files of its tokens
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/faulty"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// origin is a place that credentials come from.
type origin struct {
	name  string
	kind  string // of the authority's
	env   []string
	flags []string
}

// origins are the places of the SDK's default chain, with a home directory for them.
func origins(t *testing.T, a *authority) []origin {
	t.Helper()
	home := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := func(key, expires, further string) {
		sum := sha1.Sum([]byte(key)) //nolint:gosec // likewise
		file(".aws/sso/cache/"+hex.EncodeToString(sum[:])+".json", `{"accessToken": "token-of-sso", "expiresAt": "`+expires+`"`+further+`}`)
	}
	token("https://start.test/legacy", "2999-01-01T00:00:00Z", "")
	token("renewed", "2020-01-01T00:00:00Z", `, "refreshToken": "renew", "clientId": "id", "clientSecret": "secret"`)
	config := file("config", `
[profile assuming]
role_arn = arn:aws:iam::000000000000:role/lake
source_profile = source
[profile source]
aws_access_key_id = source-key
aws_secret_access_key = source-secret
[profile web]
role_arn = arn:aws:iam::000000000000:role/lake
web_identity_token_file = `+file("web", "token-of-the-web")+`
[profile legacy]
sso_start_url = https://start.test/legacy
sso_region = eu-west-1
sso_account_id = 123456789012
sso_role_name = lake
[sso-session renewed]
sso_start_url = https://start.test/renewed
sso_region = eu-west-1
[profile session]
sso_session = renewed
sso_account_id = 123456789012
sso_role_name = lake
[profile instance]
role_arn = arn:aws:iam::000000000000:role/lake
credential_source = Ec2InstanceMetadata
`)
	base := []string{
		"HOME=" + home, "AWS_CONFIG_FILE=" + config, "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_REGION=", "AWS_DEFAULT_REGION=",
		"AWS_ENDPOINT_URL_STS=" + a.URL, "AWS_ENDPOINT_URL_SSO=" + a.URL, "AWS_ENDPOINT_URL_SSO_OIDC=" + a.URL,
	}
	with := func(env ...string) []string { return append(env, base...) }
	return []origin{
		{"a role of a profile", "AssumeRole", with(), []string{"--profile=assuming"}},
		{"a role of AWS_PROFILE", "AssumeRole", with("AWS_PROFILE=assuming"), nil},
		{"web identity", "AssumeRoleWithWebIdentity", with("AWS_WEB_IDENTITY_TOKEN_FILE="+filepath.Join(home, "web"), "AWS_ROLE_ARN=arn:aws:iam::000000000000:role/lake"), nil},
		{"web identity of a profile", "AssumeRoleWithWebIdentity", with(), []string{"--profile=web"}},
		{"the instance", "instance", with("AWS_EC2_METADATA_DISABLED=false", "AWS_EC2_METADATA_SERVICE_ENDPOINT="+a.URL), nil},
		{"the container", "container", with("AWS_CONTAINER_CREDENTIALS_FULL_URI="+a.URL+"/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE="+file("pod", "token-of-the-pod")), nil},
		{"SSO", "sso", with(), []string{"--profile=legacy"}},
		{"SSO, its token renewed", "sso", with(), []string{"--profile=session"}},
	}
}

// TestCase63EachOriginOfCredentialsOnS3: of short life, so that they are fetched anew
// while a mount runs. Each request is signed with a token of the origin.
func TestCase63EachOriginOfCredentialsOnS3(t *testing.T) {
	store := s3test.Mini(t) // versitygw takes no session tokens
	a := newAuthority(t, store, expiryWindow+2*time.Second)
	for _, from := range origins(t, a) {
		t.Run(from.name, func(t *testing.T) {
			lake, proxy := proxied(t, store, from.env)
			lake.Start(append(from.flags, "--log-level=debug", "--metadata-ttl=0")...)
			before := a.times(from.kind)
			lake.MustSh(`cat ` + notes + `/a.csv >/dev/null; echo 2,two >` + notes + `/b.csv`)
			lake.Eventually("credentials are fetched anew", 0, func() bool {
				lake.MustSh(`ls ` + notes)
				return a.times(from.kind) > before
			})
			if got := wantStored(t, lake, notes+"/b.csv"); got != "2,two\n" {
				t.Errorf("the store has %q", got)
			}
			for _, q := range proxy.Log() {
				if token := q.Header.Get("X-Amz-Security-Token"); !strings.HasPrefix(token, from.kind+"-") {
					t.Errorf("%s with the token %q, want one of %s", q.Op, token, from.kind)
				}
			}
			for _, secret := range []string{store.Secret, "source-secret", "token-of-", from.kind + "-1", from.kind + "-2"} {
				if strings.Contains(lake.Log(), secret) {
					t.Errorf("the log shows %q", secret)
				}
			}
		})
	}
}

// proxied is a lake of the store whose daemon alone goes through a proxy.
func proxied(t *testing.T, store *s3test.Server, env []string) (*mounttest.Lake, *faulty.Proxy) {
	t.Helper()
	o := sales(t)
	o.Server, o.Faulty, o.Env, o.Timeout = store, true, env, 3*time.Minute
	lake := mounttest.New(t, o)
	return lake, lake.Proxy
}

// TestCase63RoleOfARealSTSOnS3: MiniStack's, which gives keys of its own.
func TestCase63RoleOfARealSTSOnS3(t *testing.T) {
	mini := s3test.Mini(t)
	a := newAuthority(t, mini, time.Hour)
	for _, from := range origins(t, a)[:4] {
		t.Run(from.name, func(t *testing.T) {
			lake, proxy := proxied(t, mini, append(from.env, "AWS_ENDPOINT_URL_STS="+mini.Endpoint))
			lake.Start(from.flags...)
			if got := lake.MustSh(`cat ` + notes + `/a.csv`); got != "1,one\n" {
				t.Errorf("the mount shows %q", got)
			}
			for _, q := range proxy.Log() {
				if q.Header.Get("X-Amz-Security-Token") == "" {
					t.Errorf("%s without the role's token", q.Op)
				}
			}
		})
	}
}

// TestCase63CredentialsAreAwayUnderAnUploadOnS3: where they come from fails for a
// while, when those of a long upload have expired. The upload waits, and is published
// whole.
func TestCase63CredentialsAreAwayUnderAnUploadOnS3(t *testing.T) {
	store := s3test.Mini(t)
	a := newAuthority(t, store, expiryWindow+time.Second)
	for _, tt := range []struct {
		from  int // of origins
		fault func(string, http.ResponseWriter) bool
	}{
		{0, refuseSTS(http.StatusServiceUnavailable, "ServiceUnavailable", "later")},
		{4, func(_ string, w http.ResponseWriter) bool { w.WriteHeader(http.StatusServiceUnavailable); return true }},
		{5, func(_ string, w http.ResponseWriter) bool { w.WriteHeader(http.StatusInternalServerError); return true }},
	} {
		from := origins(t, a)[tt.from]
		t.Run(from.name, func(t *testing.T) {
			a.fail(nil)
			lake, proxy := proxied(t, store, from.env)
			parts := proxy.Add(faulty.Rule{Op: "UploadPart", Skip: 1, Fault: faulty.Hang{}})
			lake.Start(append(from.flags, "--part-size=5MiB", "--io-timeout=30s")...)
			dir := t.TempDir()
			lake.MustSh(`head -c 32M /dev/urandom >` + dir + `/big`)
			copied := make(chan mounttest.Result)
			go func() { copied <- lake.Sh(`cp ` + dir + `/big ` + notes + `/big`) }()
			parts.Wait(t, 1)
			was := a.times(from.kind)
			a.fail(tt.fault)
			proxy.Release()
			parts.Remove()
			lake.Eventually("the mount asks again and again", 0, func() bool { return a.times(from.kind) >= was+7 })
			a.fail(nil)
			if r := <-copied; r.Code != 0 {
				t.Fatalf("exit code %d, %s", r.Code, r.Err)
			}
			if wantStored(t, lake, notes+"/big") != readAll(t, dir+"/big") {
				t.Error("what was copied differs")
			}
			if log := lake.Log(); strings.Contains(log, "level=ERROR") {
				t.Errorf("errors were logged: %s", log)
			}
		})
	}
}

// TestCase63CredentialsThatAreRefusedNameTheRemedy: by check, and by --daemon,
// which mounts nothing then.
func TestCase63CredentialsThatAreRefusedNameTheRemedy(t *testing.T) {
	store := s3test.Mini(t)
	a := newAuthority(t, store, time.Hour)
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	const secret = "a-secret-of-the-program"
	program := filepath.Join(dir, "prints")
	for path, text := range map[string]string{
		program: "#!/bin/sh\necho 'AccessKeyId " + secret + "'\n",
		file: `
[profile prints]
credential_process = ` + program + `
[profile fails]
credential_process = /bin/false
[profile nobody]
sso_session = nobody
sso_account_id = 123456789012
sso_role_name = lake
[sso-session nobody]
sso_start_url = https://start.test/nobody
sso_region = eu-west-1
[profile code]
role_arn = arn:aws:iam::000000000000:role/lake
source_profile = nobody
mfa_serial = arn:aws:iam::123456789012:mfa/me
`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // one is a program
			t.Fatal(err)
		}
	}
	all := origins(t, a)
	denied := refuseSTS(http.StatusForbidden, "AccessDenied", "User: arn:aws:iam::123456789012:user/me is not authorized to perform: sts:AssumeRole")
	for _, tt := range []struct {
		name  string
		from  origin
		fault func(string, http.ResponseWriter) bool
		want  []string
	}{
		{"a role", all[0], denied, []string{"STS AssumeRole: AccessDenied: User: arn:aws", "trust policy", "source_profile"}},
		{"web identity", all[2], refuseSTS(http.StatusBadRequest, "InvalidIdentityToken", "no provider"), []string{"InvalidIdentityToken", "AWS_WEB_IDENTITY_TOKEN_FILE"}},
		{"the instance has no role", all[4], func(_ string, w http.ResponseWriter) bool { w.WriteHeader(http.StatusNotFound); return true }, []string{"no AWS credentials found", "--profile"}},
		{"SSO", all[6], func(_ string, w http.ResponseWriter) bool {
			w.Header().Set("X-Amzn-Errortype", "UnauthorizedException")
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(map[string]string{"message": "Session token not found or invalid"})
			return true
		}, []string{"Session token not found", "aws sso login --profile legacy"}},
		{"nobody has logged in", origin{env: all[6].env, flags: []string{"--profile=nobody"}}, nil, []string{"aws sso login --profile nobody"}},
		{"what the program prints", origin{env: all[0].env, flags: []string{"--profile=prints"}}, nil, []string{"is not the JSON of credentials", "credential_process"}},
		{"the program fails", origin{env: all[0].env, flags: []string{"--profile=fails"}}, nil, []string{"exit status 1", "credential_process"}},
		{"a code is wanted", origin{env: all[0].env, flags: []string{"--profile=code"}}, nil, []string{"mfa_serial", "get-session-token"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a.fail(tt.fault)
			env := tt.from.env
			if tt.from.kind == "" {
				env = append(env, "AWS_CONFIG_FILE="+file)
			}
			lake, proxy := proxied(t, store, env)
			flags := append([]string{"--endpoint-url=" + proxy.URL, "--path-style", "--state-dir=" + lake.State, "--io-timeout=5s"}, tt.from.flags...)
			said, code := bareRun(t, lake, env, append(append([]string{"check"}, flags...), lake.Source)...)
			wantRefusal(t, "check", said, code, tt.want)
			said, code = bareRun(t, lake, env, append(append([]string{"mount", "--daemon"}, flags...), lake.Source, lake.Root)...)
			wantRefusal(t, "mount", said, code, tt.want)
			if lake.Mounted() {
				t.Error("it is mounted")
			}
			if strings.Contains(said, secret) {
				t.Errorf("what the program printed is shown: %q", said)
			}
		})
	}
}

func wantRefusal(t *testing.T, what, said string, code int, want []string) {
	t.Helper()
	if code != exitFailed {
		t.Errorf("%s: exit code %d, want %d", what, code, exitFailed)
	}
	for _, part := range want {
		if !strings.Contains(said, part) {
			t.Errorf("%s says %q, want %q", what, said, part)
		}
	}
}
