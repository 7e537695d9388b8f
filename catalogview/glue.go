package catalogview

import (
	"crypto/x509"
	"log/slog"
	"net/http"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/smithy-go/logging"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// GlueOptions are those of [NewGlue]; zero fields stand for the values named.
type GlueOptions struct {
	Config    aws.Config // credentials and region; its HTTPClient and its retries are not used
	Endpoint  string     // base URL; "": AWS's
	RootCAs   *x509.CertPool
	CatalogID string // the account; "": the caller's own
	// Timeout bounds one call, all its retries included (60 s). A listing is a call
	// a page.
	Timeout time.Duration
	Log     *slog.Logger // none
	// Observe is told of each HTTP request, retries included, when its answer was
	// read or it failed; nil: nobody. It is called concurrently, and must not block.
	Observe func(GlueRequest)
	// Segments bounds the requests that list the partitions of a table in parallel:
	// the first page is one, each part of the rest another (10, the service's most).
	Segments int
}

// Defaults of [GlueOptions].
const (
	glueTimeout  = 60 * time.Second
	glueSegments = 10
)

// GlueRequest is one HTTP request to the catalog.
type GlueRequest struct {
	Operation string // "GetPartitions"
	Elapsed   time.Duration
	Err       error // nil: it was answered with success
	Retry     bool  // not the call's first
}

// Glue is the Source of an AWS Glue catalog. Concurrent use is safe.
//
// Entries are the answers' own bytes, not the SDK's structs, which drop what they
// do not know: the JSON of an entry, its ETag and its table.Table are all made
// from them.
//
// Names are exact. The service looks names up without case, so an answer that
// names another than was asked for is one that is not there.
//
// Requests: a listing of databases or tables is one a page of 100, and tells all
// there is to tell of a table; that of partitions one a page of 1000: see
// Partitions. Database, Table and Partition are one each. A resource link is one
// more, and so is a name that is not found in a database: that may be a link.
//
// Failures. What may pass by itself (throttling, 5xx, lost connections, answers
// that are none) is asked again with growing pauses, and is then
// objectstore.ErrUnavailable; objectstore.ErrPermission is a refusal, or that
// there are no credentials; objectstore.ErrNotExist comes of the service's own
// EntityNotFoundException alone.
type Glue struct {
	o        GlueOptions
	log      *slog.Logger
	rt       http.RoundTripper
	config   aws.Config
	provider *aws.CredentialsCache // nil: anonymous, or none

	mu struct {
		sync.Mutex
		api         *glue.Client // nil: to be made
		descriptors map[table.Ref]keptDescriptor
	}
}

var _ Source = (*Glue)(nil)

// NewGlue returns the Source of a Glue catalog. It asks nothing.
func NewGlue(o GlueOptions) *Glue {
	if o.Timeout <= 0 {
		o.Timeout = glueTimeout
	}
	if o.Segments <= 0 || o.Segments > glueSegments {
		o.Segments = glueSegments
	}
	g := &Glue{o: o, log: o.Log, rt: newGlueTransport(o.RootCAs), config: o.Config}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	switch p := o.Config.Credentials.(type) {
	case nil:
	case *aws.CredentialsCache:
		g.provider = p
	default:
		if !aws.IsCredentialsProvider(p, (*aws.AnonymousCredentials)(nil)) {
			g.provider = aws.NewCredentialsCache(p)
			g.config.Credentials = g.provider
		}
	}
	return g
}

// Close lets go of idle connections. Calls that run end undisturbed.
func (g *Glue) Close() error {
	if t, ok := g.rt.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
	return nil
}

// RefreshCredentials forgets the credentials that are held: the next request gets
// new ones. Requests under way are not touched.
//
// The client goes too: a signer of the SDK's keeps what it derived from a secret
// key for as long as the key id is the same, and would sign with the old secret.
func (g *Glue) RefreshCredentials() {
	if g.provider != nil {
		g.provider.Invalidate()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.api = nil
}

// client returns the SDK's client.
func (g *Glue) client() *glue.Client {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.api == nil {
		g.mu.api = glue.NewFromConfig(g.config, func(o *glue.Options) {
			o.HTTPClient = &glueSender{rt: g.rt}
			o.Retryer = aws.NopRetryer{} // askGlue retries
			o.RetryMaxAttempts = 0
			o.Logger, o.ClientLogMode = logging.Nop{}, 0 // it would write bodies to stderr
			if g.o.Endpoint != "" {
				o.BaseEndpoint = aws.String(g.o.Endpoint)
				if o.Region == "" {
					o.Region = "us-east-1" // signs the requests to a service that has no regions
				}
			}
		})
	}
	return g.mu.api
}

// catalog is the CatalogId of a request; nil: the caller's own.
func (g *Glue) catalog(id string) *string {
	if id == "" {
		id = g.o.CatalogID
	}
	if id == "" {
		return nil
	}
	return &id
}

// noGlueName says that no entry can have the name: no path component has it, or
// the service has no such names. One that is not UTF-8 would be asked for, and
// found, under another.
func noGlueName(name string) bool {
	if badName(name) || !utf8.ValidString(name) {
		return true
	}
	for _, r := range name {
		if unicode.IsControl(r) && r < 0x20 && r != '\t' {
			return true
		}
	}
	return false
}

// about names a table in errors and logs.
func about(r table.Ref) string {
	name := r.Database
	if r.Name != "" {
		name += "/" + r.Name
	}
	if r.CatalogID != "" {
		name = r.CatalogID + ":" + name
	}
	return name
}
