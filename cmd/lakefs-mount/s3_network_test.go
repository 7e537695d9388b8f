package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// storeHost is a name that only the test's proxy knows.
const storeHost = "store.test"

// front is a store behind TLS, of an authority that nobody knows. Its host is
// storeHost, and a bucket may be in front of it.
type front struct {
	*httptest.Server
	bundle string // a file with its authority's certificate
}

func newFront(t *testing.T, server *s3test.Server) *front {
	t.Helper()
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, r.In.Host
		host, _, _ := strings.Cut(r.In.Host, ":")
		if bucket, found := strings.CutSuffix(host, "."+storeHost); found {
			r.Out.URL.Path, r.Out.URL.RawPath, r.Out.Host = "/"+bucket+r.In.URL.Path, "", storeHost
		}
	}}
	f := &front{Server: httptest.NewUnstartedServer(pass)}
	f.TLS, f.bundle = authorityOf(t)
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

// authorityOf makes a certificate that is its own authority, and its file.
func authorityOf(t *testing.T) (*tls.Config, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		DNSNames: []string{storeHost, "*." + storeHost}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, file
}

// Who may use the test's proxy.
const (
	proxyUser   = "someone"
	proxySecret = "secret-of-the-proxy"
)

// forward is a proxy as HTTPS_PROXY names one. It knows one host, which it
// connects to address, and lets no one through without a password.
type forward struct {
	*httptest.Server
	address string

	mu    sync.Mutex
	asked []string // hosts
}

func newForward(t *testing.T, address string) *forward {
	t.Helper()
	f := &forward{address: address}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// withPassword is its URL with what it wants to know.
func (f *forward) withPassword() string {
	return strings.Replace(f.URL, "://", "://"+proxyUser+":"+proxySecret+"@", 1)
}

func (f *forward) hosts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// ServeHTTP is http.Handler's.
func (f *forward) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ask := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	if user, password, _ := ask.BasicAuth(); user != proxyUser || password != proxySecret {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	f.mu.Lock()
	f.asked = append(f.asked, r.URL.Hostname())
	f.mu.Unlock()
	if host := r.URL.Hostname(); host != storeHost && !strings.HasSuffix(host, "."+storeHost) {
		http.Error(w, "no such host", http.StatusBadGateway)
		return
	}
	if r.Method != http.MethodConnect {
		pass := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", f.address, p.In.Host
		}}
		pass.ServeHTTP(w, r)
		return
	}
	f.tunnel(r.Context(), w)
}

func (f *forward) tunnel(ctx context.Context, w http.ResponseWriter) {
	there, err := (&net.Dialer{}).DialContext(ctx, "tcp", f.address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()                               //nolint:errcheck // all was said
	here, buffered, err := w.(http.Hijacker).Hijack() //nolint:forcetypeassert // HTTP/1.1's
	if err != nil {
		return
	}
	defer here.Close() //nolint:errcheck // likewise
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(there, buffered)
		_ = there.(*net.TCPConn).CloseWrite() //nolint:forcetypeassert // a TCP connection
	}()
	_, _ = io.Copy(here, there)
	_ = here.Close()
	<-done
}

// TestCase64AuthorityOfItsOwnOnS3: a store whose certificate nobody knows, named in
// each way; unnamed it is an error with the remedy at once, and not after a minute of
// retries.
func TestCase64AuthorityOfItsOwnOnS3(t *testing.T) {
	server := s3test.Versity(t)
	store := newFront(t, server)
	file := filepath.Join(t.TempDir(), "config")
	profile := "[profile own]\nca_bundle = " + store.bundle + "\naws_access_key_id = " + server.Access + "\naws_secret_access_key = " + server.Secret + "\n"
	if err := os.WriteFile(file, []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		env   []string
		flags []string
	}{
		{"--ca-bundle", nil, []string{"--ca-bundle=" + store.bundle}},
		{"AWS_CA_BUNDLE", []string{"AWS_CA_BUNDLE=" + store.bundle}, nil},
		{"of the profile", []string{"AWS_CONFIG_FILE=" + file, "AWS_CA_BUNDLE="}, []string{"--profile=own"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := sales(t)
			o.Server, o.Env = server, tt.env
			lake := mounttest.New(t, o)
			lake.Start(append(tt.flags, "--write=delete", "--endpoint-url="+store.URL)...)
			wantOneOfEach(t, lake)
		})
	}
	t.Run("unnamed", func(t *testing.T) {
		o := sales(t)
		o.Server = server
		lake := mounttest.New(t, o)
		for _, command := range [][]string{{"check"}, {"mount", "--daemon"}} {
			args := slices.Concat(command, []string{"--endpoint-url=" + store.URL, "--state-dir=" + lake.State, lake.Source})
			if command[0] == "mount" {
				args = append(args, lake.Root)
			}
			r := lake.Run(args...)
			wantRefusal(t, command[0], r.Out+r.Err, r.Code, []string{"unknown authority", "--ca-bundle"})
		}
		if lake.Mounted() {
			t.Error("it is mounted")
		}
	})
}

// TestCase63RoleBehindAnAuthorityOfItsOwnOnS3: --ca-bundle is for where credentials
// come from, too.
func TestCase63RoleBehindAnAuthorityOfItsOwnOnS3(t *testing.T) {
	store := s3test.Mini(t)
	a := newAuthority(t, store, time.Hour)
	behind := &front{Server: httptest.NewUnstartedServer(a.Config.Handler)}
	behind.TLS, behind.bundle = authorityOf(t)
	behind.StartTLS()
	t.Cleanup(behind.Close)
	from := origins(t, a)[0]
	env := append(from.env, "AWS_ENDPOINT_URL_STS="+behind.URL)
	lake, _ := proxied(t, store, env)
	lake.Start(append(from.flags, "--ca-bundle="+behind.bundle)...)
	if got := lake.MustSh(`cat ` + notes + `/a.csv`); got != "1,one\n" {
		t.Errorf("the mount shows %q", got)
	}
	lake.Unmount()
	said, code := bareRun(t, lake, env, "check", "--profile=assuming", "--endpoint-url="+lake.Proxy.URL, "--path-style", "--state-dir="+lake.State, lake.Source)
	wantRefusal(t, "check", said, code, []string{"STS AssumeRole", "unknown authority", "--ca-bundle"})
}

// TestCase64ProxyOnTheWayOnS3: the store's name is known to the proxy alone. Buckets
// are in its path or before its name, as the settings and their names want it.
func TestCase64ProxyOnTheWayOnS3(t *testing.T) {
	server := s3test.Mini(t) // it takes the host that requests are signed for
	dotted := "a.lake.behind.a.proxy"
	if _, err := server.Client().CreateBucket(context.Background(), &s3.CreateBucketInput{Bucket: &dotted}); err != nil {
		t.Fatal(err)
	}
	store := newFront(t, server)
	secure := newForward(t, store.Listener.Addr().String())
	plain := newForward(t, strings.TrimPrefix(server.Endpoint, "http://"))
	for _, tt := range []struct {
		name   string
		proxy  *forward
		bucket string
		env    string
		flags  []string
		before bool // the bucket is before the store's name
	}{
		{"the bucket in the path", secure, "", "HTTPS_PROXY", []string{"--endpoint-url=https://" + storeHost}, false},
		{"the bucket before the name", secure, "", "HTTPS_PROXY", []string{"--endpoint-url=https://" + storeHost, "--path-style=false"}, true},
		{"a bucket with dots", secure, dotted, "HTTPS_PROXY", []string{"--endpoint-url=https://" + storeHost, "--path-style=false"}, false},
		{"without TLS", plain, "", "HTTP_PROXY", []string{"--endpoint-url=http://" + storeHost}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := sales(t)
			o.Server, o.Bucket = server, tt.bucket
			o.Env = []string{tt.env + "=" + tt.proxy.withPassword(), "NO_PROXY=other.test"}
			lake := mounttest.New(t, o)
			lake.Start(append(tt.flags, "--ca-bundle="+store.bundle, "--write=delete", "--log-level=debug")...)
			wantOneOfEach(t, lake)
			_, bucket := lake.Bucket()
			want := storeHost
			if tt.before {
				want = bucket + "." + storeHost
			}
			if hosts := tt.proxy.hosts(); len(hosts) == 0 || hosts[len(hosts)-1] != want {
				t.Errorf("the proxy was asked for %q, want %q", hosts, want)
			}
			if strings.Contains(lake.Log(), proxySecret) {
				t.Error("the log shows the proxy's password")
			}
		})
	}
}

// TestCase64ProxyThatDoesNotHelpOnS3: it is told that the proxy is what fails, or that
// NO_PROXY goes past it, and no password is shown.
func TestCase64ProxyThatDoesNotHelpOnS3(t *testing.T) {
	server := s3test.Versity(t)
	store := newFront(t, server)
	proxy := newForward(t, store.Listener.Addr().String())
	for _, tt := range []struct {
		name     string
		env      []string
		endpoint string
		want     []string
	}{
		{"no password", []string{"HTTPS_PROXY=" + proxy.URL}, "https://" + storeHost, []string{"Proxy Authentication Required"}},
		{"no password, without TLS", []string{"HTTP_PROXY=" + proxy.URL}, "http://" + storeHost, []string{"Proxy Authentication Required"}},
		{"not there", []string{"HTTPS_PROXY=http://" + proxyUser + ":" + proxySecret + "@127.0.0.1:1"}, "https://" + storeHost, []string{"proxyconnect", "127.0.0.1:1"}},
		{"no URL", []string{"HTTPS_PROXY=http://" + proxyUser + ":" + proxySecret + "%@127.0.0.1:1"}, "https://" + storeHost, []string{"lookup " + storeHost}}, // it is taken for none
		{"no host of the proxy's", []string{"HTTPS_PROXY=" + proxy.withPassword()}, "https://other.test", []string{"Bad Gateway"}},
		{"past it", []string{"HTTPS_PROXY=" + proxy.withPassword(), "NO_PROXY=.test"}, "https://" + storeHost, []string{"lookup " + storeHost}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := sales(t)
			o.Server = server
			lake := mounttest.New(t, o)
			env := slices.Concat(server.Env(), tt.env, []string{"LAKEFS_MOUNT_LOG_LEVEL=debug"})
			flags := []string{"--endpoint-url=" + tt.endpoint, "--path-style", "--state-dir=" + lake.State, "--io-timeout=2s", "--ca-bundle=" + store.bundle}
			for _, command := range [][]string{{"check"}, {"mount", "--daemon"}} {
				args := slices.Concat(command, flags, []string{lake.Source})
				if command[0] == "mount" {
					args = append(args, lake.Root)
				}
				said, code := bareRun(t, lake, env, args...)
				wantRefusal(t, command[0], said, code, tt.want)
				if strings.Contains(said, proxySecret) {
					t.Errorf("%s shows the proxy's password: %q", command[0], said)
				}
			}
			if lake.Mounted() {
				t.Error("it is mounted")
			}
		})
	}
}
