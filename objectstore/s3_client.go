package objectstore

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
)

// defaultTimeout is S3Options.Timeout's default.
const defaultTimeout = 60 * time.Second

// defaultRegion signs the requests to a store that names none.
const defaultRegion = "us-east-1"

// S3 is a [Store] over the buckets of S3, and of stores that speak its protocol.
//
// Versions. An ETag is the store's own, without its quotes; Match is the ETag.
//
// Failures. A call answers with a result or a sentinel: what may pass by itself
// (refused and cut connections, 5xx, throttling, expired credentials, answers
// that cannot be right) is asked again with growing pauses until
// S3Options.Timeout, and is then [ErrUnavailable]. A write that is asked again
// may meet its own first try: Stat and [MetaWriteID] tell.
//
// Keys. Any key of 1 to 1024 bytes without NUL, byte for byte: "a//b" and "a/./b"
// are no "a/b".
//
// Concurrent use is safe.
type S3 struct {
	o       S3Options
	log     *slog.Logger
	shared  http.RoundTripper
	fresh   http.RoundTripper // a connection a request
	budget  *budget
	latency latencies
	main    *account
	secrets map[string]*account
	closed  atomic.Bool

	conditions conditions // on writes, as the store keeps them
	uploads    uploads    // what the store does with them
	copyLimit  int64      // larger objects are copied in parts; 0: MaxPutSize
	serial     sync.Map   // buckets (Location.Bucket) whose listings are not to be split into ranges
	listPage   int32      // keys of a full page; 0: maxListPage

	mu struct {
		sync.Mutex
		clients map[clientKey]*s3.Client
		regions map[string]string // by Location.Bucket, where it was learned
	}
}

var _ Store = (*S3)(nil)

// account is one set of credentials.
type account struct {
	config aws.Config
	cached *aws.CredentialsCache // nil: anonymous, or none
}

// clientKey is what clients differ in.
type clientKey struct {
	account   *account
	region    string
	pathStyle bool
}

// NewS3 makes a store from options. It asks nothing of the network; it fails
// where the options contradict themselves. The caller closes it.
func NewS3(o S3Options) (*S3, error) {
	if err := checkS3Options(o); err != nil {
		return nil, fmt.Errorf("open S3: %w", err)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	s := &S3{o: o, log: o.Log, budget: newBudget(), main: newAccount(o.Config), secrets: map[string]*account{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.shared, s.fresh = newTransport(o, true), newTransport(o, false)
	s.mu.clients, s.mu.regions = map[clientKey]*s3.Client{}, map[string]string{}
	for name, config := range o.Secrets {
		s.secrets[name] = newAccount(config)
	}
	return s, nil
}

func checkS3Options(o S3Options) error {
	switch o.Checksum {
	case "", "crc32c", "crc64nvme", "sha256", "none":
	default:
		return fmt.Errorf("checksum %q: want crc32c, crc64nvme, sha256 or none", o.Checksum)
	}
	if o.Timeout < 0 {
		return fmt.Errorf("timeout %s is negative", o.Timeout)
	}
	if o.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(o.Endpoint)
	switch {
	case err != nil:
		return errors.New("endpoint is not a URL") // err would tell what the URL holds
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("endpoint %q: want http://HOST or https://HOST", u.Redacted())
	case u.User != nil:
		return fmt.Errorf("endpoint %q: credentials do not belong in it", u.Redacted())
	}
	return nil
}

func newAccount(config aws.Config) *account {
	a := &account{config: config}
	switch p := config.Credentials.(type) {
	case nil:
	case *aws.CredentialsCache:
		a.cached = p
	default:
		if !aws.IsCredentialsProvider(p, (*aws.AnonymousCredentials)(nil)) {
			a.cached = aws.NewCredentialsCache(p)
			a.config.Credentials = a.cached
		}
	}
	return a
}

// invalidate drops the credentials that are held: the next request gets new ones.
func (a *account) invalidate() {
	if a.cached != nil {
		a.cached.Invalidate()
	}
}

// Close lets go of idle connections. Calls that run end undisturbed; later ones
// fail.
func (s *S3) Close() error {
	s.closed.Store(true)
	for _, rt := range []http.RoundTripper{s.shared, s.fresh} {
		if t, ok := rt.(*http.Transport); ok {
			t.CloseIdleConnections()
		}
	}
	return nil
}

// access is how a bucket is reached.
type access struct {
	client  *s3.Client
	bucket  *string // its name, without a secret's
	region  string
	account *account
}

// access finds the credentials and the client of a Location's bucket.
func (s *S3) access(locationBucket string) (access, error) {
	if s.closed.Load() {
		return access{}, &storeError{sentinel: ErrUnavailable, text: "the store is closed"}
	}
	acc, bucket := s.main, locationBucket
	if secret, name, ok := strings.Cut(locationBucket, "@"); ok {
		if acc = s.secrets[secret]; acc == nil {
			return access{}, &storeError{sentinel: ErrPermission, text: fmt.Sprintf("no secret %q in the settings", secret)}
		}
		bucket = name
	}
	if bucket == "" {
		return access{}, &storeError{sentinel: ErrName, text: "no bucket"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	region := s.mu.regions[locationBucket]
	if region == "" {
		region = acc.region()
	}
	key := clientKey{account: acc, region: region, pathStyle: s.o.PathStyle || strings.Contains(bucket, ".")}
	client := s.mu.clients[key]
	if client == nil {
		client = s.newClient(key)
		s.mu.clients[key] = client
	}
	return access{client: client, bucket: &bucket, region: region, account: acc}, nil
}

// region is where an account's buckets are looked for first.
func (a *account) region() string {
	if a.config.Region == "" {
		return defaultRegion
	}
	return a.config.Region
}

// learnRegion notes the region of a bucket. It is false where nothing is learned by it.
func (s *S3) learnRegion(locationBucket, region, asked string) bool {
	if s.o.FixedRegion || region == "" || region == asked {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.regions[locationBucket] = region
	return true
}

func (s *S3) newClient(key clientKey) *s3.Client {
	return s3.NewFromConfig(key.account.config, func(o *s3.Options) {
		o.Region = key.region
		o.HTTPClient = &sender{s3: s}
		o.Retryer = aws.NopRetryer{} // do retries
		o.RetryMaxAttempts = 0
		o.Logger, o.ClientLogMode = logging.Nop{}, 0 // it would write headers to stderr
		if s.o.Endpoint != "" {
			o.BaseEndpoint = aws.String(s.o.Endpoint)
		}
		o.UsePathStyle = key.pathStyle || wantsPathStyle(aws.ToString(o.BaseEndpoint))
		// Trailing checksums go as aws-chunked, which many stores refuse.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
		o.APIOptions = append(o.APIOptions, unsignedEncoding)
	})
}

// unsignedEncoding leaves Accept-Encoding to the sender: proxies, and Google's
// store, change it on the way, which breaks a signature that covers it.
func unsignedEncoding(stack *middleware.Stack) error {
	const id = "DisableAcceptEncodingGzip"
	if _, ok := stack.Finalize.Get(id); !ok {
		return nil
	}
	_, err := stack.Finalize.Remove(id)
	return err
}

// wantsPathStyle: below an address or localhost there are no names for buckets.
func wantsPathStyle(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return host == "localhost" || net.ParseIP(host) != nil
}

// isAWS tells whether the store is Amazon's, as far as the main account goes.
func (s *S3) isAWS() bool {
	endpoint := s.o.Endpoint
	if endpoint == "" {
		endpoint = aws.ToString(s.main.config.BaseEndpoint)
	}
	return isAWS(endpoint)
}

// owner is ExpectedBucketOwner as requests take it.
func (s *S3) owner() *string {
	if s.o.ExpectedBucketOwner == "" {
		return nil
	}
	return &s.o.ExpectedBucketOwner
}

// payer is RequesterPays as requests take it.
func (s *S3) payer() types.RequestPayer {
	if s.o.RequesterPays {
		return types.RequestPayerRequester
	}
	return ""
}

// maxS3Key is the longest key, in bytes.
const maxS3Key = 1024

// checkS3Key refuses, without a request, every key that no object has.
func checkS3Key(key string) error {
	if key == "" {
		return ErrName
	}
	return checkS3Prefix(key)
}

// checkS3Prefix is checkS3Key for the beginning of keys.
func checkS3Prefix(key string) error {
	if len(key) > maxS3Key || strings.IndexByte(key, 0) >= 0 {
		return ErrName
	}
	return nil
}

// quoteETag and unquoteETag turn an Object's ETag into a header's and back.
func quoteETag(etag string) *string { return aws.String(`"` + etag + `"`) }

func unquoteETag(etag *string) string {
	return strings.Trim(strings.TrimPrefix(aws.ToString(etag), "W/"), `"`)
}
