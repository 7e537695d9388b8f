package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// authority gives the credentials of a store as AWS's services do: STS, an instance's
// metadata, a container's agent, SSO with its renewal of tokens. Each answer has a
// session token of its own: the kind of source, "-", and its number.
type authority struct {
	*httptest.Server
	store *s3test.Server
	life  time.Duration // of credentials

	mu    sync.Mutex
	asked map[string]int
	fault func(kind string, w http.ResponseWriter) bool // true: it has answered; nil: none
}

func newAuthority(t *testing.T, store *s3test.Server, life time.Duration) *authority {
	t.Helper()
	a := &authority{store: store, life: life, asked: map[string]int{}}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	return a
}

// times is how often credentials of a kind were asked for.
func (a *authority) times(kind string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[kind]
}

func (a *authority) fail(fault func(kind string, w http.ResponseWriter) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault = fault
}

func (a *authority) note(kind string) (token string, fault func(string, http.ResponseWriter) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[kind]++
	return fmt.Sprintf("%s-%d", kind, a.asked[kind]), a.fault
}

// kindOf is what a request asks for; "": it is on the way there.
func kindOf(r *http.Request) string {
	switch {
	case r.URL.Path == "/latest/meta-data/iam/security-credentials/role":
		return "instance"
	case r.URL.Path == "/container":
		return "container"
	case r.URL.Path == "/federation/credentials":
		return "sso"
	case r.URL.Path == "/token":
		return "renewal"
	case r.Method == http.MethodPost && r.URL.Path == "/":
		return r.PostFormValue("Action")
	}
	return ""
}

func (a *authority) serve(w http.ResponseWriter, r *http.Request) {
	kind := kindOf(r)
	switch {
	case kind != "":
		token, fault := a.note(kind)
		if fault == nil || !fault(kind, w) {
			a.give(w, r, kind, token)
		}
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "60")
		writeText(w, "session-of-the-instance")
	case strings.HasPrefix(r.URL.Path, "/latest/meta-data/iam/security-credentials"):
		writeText(w, "role")
	default:
		http.NotFound(w, r)
	}
}

// expected is what a request for credentials must have with it.
var expected = map[string]func(*http.Request) bool{
	"instance": func(r *http.Request) bool {
		return r.Header.Get("X-Aws-Ec2-Metadata-Token") == "session-of-the-instance"
	},
	"container": func(r *http.Request) bool { return r.Header.Get("Authorization") == "token-of-the-pod" },
	"sso": func(r *http.Request) bool {
		return strings.HasPrefix(r.Header.Get("X-Amz-Sso_bearer_token"), "token-of-sso")
	},
	"renewal": func(r *http.Request) bool { return r.Method == http.MethodPost },
	"AssumeRole": func(r *http.Request) bool {
		return strings.Contains(r.Header.Get("Authorization"), "Credential=source-key/")
	},
	"AssumeRoleWithWebIdentity": func(r *http.Request) bool { return r.PostFormValue("WebIdentityToken") == "token-of-the-web" },
}

func (a *authority) give(w http.ResponseWriter, r *http.Request, kind, token string) {
	check, known := expected[kind]
	if !known || !check(r) {
		http.Error(w, kind+" without what it needs", http.StatusForbidden)
		return
	}
	until := time.Now().Add(a.life).UTC()
	key, secret := a.store.Access, a.store.Secret
	w.Header().Set("Content-Type", "application/json")
	switch kind {
	case "sso":
		writeJSON(w, map[string]any{"roleCredentials": map[string]any{
			"accessKeyId": key, "secretAccessKey": secret, "sessionToken": token, "expiration": until.UnixMilli(),
		}})
	case "renewal":
		writeJSON(w, map[string]any{"accessToken": "token-of-sso-renewed", "refreshToken": "another", "tokenType": "Bearer", "expiresIn": 3600})
	case "instance", "container":
		writeJSON(w, map[string]any{
			"Code": "Success", "AccessKeyId": key, "SecretAccessKey": secret, "Token": token, "Expiration": until.Format(time.RFC3339),
		})
	default:
		w.Header().Set("Content-Type", "text/xml")
		writeText(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials>
			<AccessKeyId>%[2]s</AccessKeyId><SecretAccessKey>%[3]s</SecretAccessKey><SessionToken>%[4]s</SessionToken><Expiration>%[5]s</Expiration>
			</Credentials></%[1]sResult></%[1]sResponse>`, kind, key, secret, token, until.Format(time.RFC3339))
	}
}

func writeText(w http.ResponseWriter, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...) // who asked may have left
}

func writeJSON(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

// refuseSTS answers as STS does to what it does not permit, or cannot do now.
func refuseSTS(status int, code, message string) func(string, http.ResponseWriter) bool {
	return func(_ string, w http.ResponseWriter) bool {
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(status)
		writeText(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>`, code, message)
		return true
	}
}
