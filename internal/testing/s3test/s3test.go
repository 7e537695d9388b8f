// Package s3test starts real S3 servers for tests: versitygw, which keeps
// objects as files and verifies signatures, and MiniStack, whose keys are flat
// ("a" and "a/b" at once).
//
//	server := s3test.Versity(t)
//	bucket := server.Bucket(t)
//	server.Put(t, bucket, "dt=1/a.csv", []byte("x,y\n"))
//
// Guarantees: a server listens on the loopback alone, on a port that is its own
// while the test process lives; it ends with the process, however that ends, and
// its directory goes with it. versitygw is built once, by tools/versitygw.sh.
// MiniStack and moto come with tools/venv.sh; where they are not installed tests
// are skipped with the reason, unless MOUNTTEST_REQUIRED is set: then they fail.
// Both serve AWS Glue too.
//
// The methods of a Server that take a testing.TB fail that test, so they are for
// its own goroutine; other than that several may use a server at once. They speak
// to the store as another program would, with the retries of the AWS SDK.
package s3test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Server is an S3 server. Its fields do not change.
type Server struct {
	Endpoint string // "http://127.0.0.1:41234"; requests are path-style
	Access   string // access key id
	Secret   string
	Region   string

	client  *s3.Client
	process *process
	root    string // where the buckets are directories; "": nowhere
}

// shared is a server that all tests of a process use.
type shared struct {
	once   sync.Once
	server *Server
	err    error
}

func (s *shared) get(start func() (*Server, error)) (*Server, error) {
	s.once.Do(func() { s.server, s.err = start() })
	return s.server, s.err
}

var (
	versity shared       //nolint:gochecknoglobals // one server serves every test of the process
	mini    shared       //nolint:gochecknoglobals // likewise
	moto    shared       //nolint:gochecknoglobals // likewise
	buckets atomic.Int64 //nolint:gochecknoglobals // names of buckets are unique in the process
)

// Versity is the versitygw of this test process, started on first use. It is
// never stopped: tests that do so take one of their own by Fresh.
func Versity(tb testing.TB) *Server {
	tb.Helper()
	s, err := versity.get(Start)
	must(tb, err)
	return s
}

// Fresh is a versitygw for one test, which may stop it. It ends with the test.
func Fresh(tb testing.TB) *Server {
	tb.Helper()
	s, err := Start()
	must(tb, err)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("end versitygw: %v", err)
		}
	})
	return s
}

// Mini is the MiniStack of this test process, started on first use. It keeps
// objects in memory, and takes any credentials.
func Mini(tb testing.TB) *Server {
	tb.Helper()
	program := venv(tb, "ministack")
	s, err := mini.get(func() (*Server, error) { return startMini(program) })
	must(tb, err)
	return s
}

// Moto is the moto of this test process, started on first use. It keeps objects in
// memory, and takes any credentials. Its S3 ignores many conditions and verifies
// no checksum: it is there for what other programs store with an entry in Glue.
func Moto(tb testing.TB) *Server {
	tb.Helper()
	program := venv(tb, "moto_server")
	s, err := moto.get(func() (*Server, error) { return startMoto(program) })
	must(tb, err)
	return s
}

// FreshMoto is a moto for one test, which may stop it. It ends with the test.
func FreshMoto(tb testing.TB) *Server {
	tb.Helper()
	s, err := startMoto(venv(tb, "moto_server"))
	must(tb, err)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("end moto: %v", err)
		}
	})
	return s
}

// Start starts a versitygw for programs that are no tests, which Close it.
func Start() (*Server, error) {
	binary, err := buildVersity()
	if err != nil {
		return nil, err
	}
	const access, secret, region = "s3test", "s3test-secret", "us-east-1"
	env := []string{"ROOT_ACCESS_KEY=" + access, "ROOT_SECRET_KEY=" + secret, "VGW_REGION=" + region}
	p, err := newProcess(env, func(addr, dir string) []string {
		// With O_TMPFILE an overwrite is an object of another name for a moment.
		return []string{binary, "--port", addr, "--keep-alive", "--quiet", "posix", "--disableotmp", filepath.Join(dir, "buckets")}
	})
	if err != nil {
		return nil, fmt.Errorf("start versitygw: %w", err)
	}
	s := newServer(p, access, secret, region)
	s.root = filepath.Join(p.dir, "buckets")
	return s, nil
}

// Close ends a server and removes what it stored.
func (s *Server) Close() error { return s.process.close() }

func startMini(program string) (*Server, error) {
	const region = "us-east-1"
	p, err := newProcess([]string{"BIND_HOST=127.0.0.1", "SERVICES=s3,glue,sts", "LOG_LEVEL=WARNING", "MINISTACK_REGION=" + region},
		func(addr, _ string) []string {
			return []string{"env", "GATEWAY_PORT=" + addr[len("127.0.0.1:"):], program}
		})
	if err != nil {
		return nil, fmt.Errorf("start MiniStack: %w", err)
	}
	return newServer(p, "s3test", "s3test-secret", region), nil
}

func startMoto(program string) (*Server, error) {
	p, err := newProcess(nil, func(addr, _ string) []string {
		return []string{program, "-H", "127.0.0.1", "-p", addr[len("127.0.0.1:"):]}
	})
	if err != nil {
		return nil, fmt.Errorf("start moto: %w", err)
	}
	return newServer(p, "s3test", "s3test-secret", "us-east-1"), nil
}

func newServer(p *process, access, secret, region string) *Server {
	s := &Server{Access: access, Secret: secret, Region: region, process: p}
	return s.Via("http://" + p.port.Addr)
}

// Via is the same server seen at another endpoint, that of a proxy in front of it.
func (s *Server) Via(endpoint string) *Server {
	via := *s
	via.Endpoint = endpoint
	via.client = s3.NewFromConfig(via.Config(), func(o *s3.Options) { o.UsePathStyle = true })
	return &via
}

// Config is what an SDK client needs; path style (s3.Options.UsePathStyle) is
// not part of it.
func (s *Server) Config() aws.Config {
	return aws.Config{
		Region:       s.Region,
		Credentials:  credentials.NewStaticCredentialsProvider(s.Access, s.Secret, ""),
		BaseEndpoint: aws.String(s.Endpoint),
	}
}

// Client is an SDK client of the server, for any number of goroutines.
func (s *Server) Client() *s3.Client { return s.client }

// Env is the environment in which a child process has the server's credentials
// and no others: neither the user's ~/.aws nor those of the machine. The endpoint
// is not in it.
func (s *Server) Env() []string {
	return []string{
		"AWS_ACCESS_KEY_ID=" + s.Access,
		"AWS_SECRET_ACCESS_KEY=" + s.Secret,
		"AWS_SESSION_TOKEN=",
		"AWS_REGION=" + s.Region,
		"AWS_DEFAULT_REGION=" + s.Region,
		"AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
}

// Stop ends the server at once, as a crash does: connections are reset, new ones
// refused. What it stored stays for Start.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	must(tb, s.process.stop())
}

// Start starts a stopped server, at the same endpoint with the same objects.
func (s *Server) Start(tb testing.TB) {
	tb.Helper()
	must(tb, s.process.start())
}

// Pause makes the server one that accepts connections and never answers, until
// Resume.
func (s *Server) Pause(tb testing.TB) {
	tb.Helper()
	must(tb, s.process.pause())
}

// Resume goes on after Pause, requests of meanwhile included.
func (s *Server) Resume(tb testing.TB) {
	tb.Helper()
	must(tb, s.process.resume())
}

// Pid is the process id of the server, 0 when it does not run.
func (s *Server) Pid() int {
	s.process.mu.Lock()
	defer s.process.mu.Unlock()
	if s.process.mu.run == nil {
		return 0
	}
	return s.process.mu.run.pid
}

// Dir is the directory of a bucket of versitygw, in which its objects are files;
// "" for other servers.
func (s *Server) Dir(bucket string) string {
	if s.root == "" {
		return ""
	}
	return filepath.Join(s.root, bucket)
}

// venv is a program of the Python environment of the tests.
func venv(tb testing.TB, name string) string {
	tb.Helper()
	root, err := moduleRoot()
	must(tb, err)
	program := filepath.Join(root, ".venv", "bin", name)
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("MOUNTTEST_REQUIRED") != "" {
			tb.Fatalf("%s is not installed: run tools/venv.sh .venv: %v", name, err)
		}
		tb.Skipf("%s is not installed: run tools/venv.sh .venv", name)
	}
	return program
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
