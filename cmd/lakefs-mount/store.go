package main

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	lakemetrics "github.com/lakefs-mount/lakefs-mount/internal/metrics"
	"github.com/lakefs-mount/lakefs-mount/internal/settings"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const (
	// commitRetryMax bounds how long a publish asks a store that does not answer.
	commitRetryMax = 30 * time.Second
	// loadSlack and requestSlack are what a load from the catalog, and a request as a
	// whole, may take beyond the store's own limit, so that its error is the one told.
	loadSlack    = 5 * time.Second
	requestSlack = 10 * time.Second
)

// closingStore is a store that someone owns.
type closingStore interface {
	objectstore.Store
	io.Closer
}

// openStore opens the store of r's source, and returns it with the roots that a
// table may lie in, that of the manifests first; none for a Glue catalog whose
// tables may lie in every bucket. Requests are counted in set, if there is one. It
// asks the store nothing.
func openStore(r *request, log *slog.Logger, set *lakemetrics.Set) (closingStore, []string, error) {
	extra, err := allowed(r)
	if err != nil {
		return nil, nil, err
	}
	roots := extra
	if !r.source.glue {
		roots = append([]string{r.source.String()}, extra...)
	}
	if !r.source.onS3() {
		return openFolder(r, roots, set)
	}
	store, err := objectstore.NewS3(s3Options(r, log, set))
	if err != nil {
		return nil, nil, fmt.Errorf("source %q: %w", r.source.String(), err)
	}
	return store, roots, nil
}

func openFolder(r *request, roots []string, set *lakemetrics.Set) (closingStore, []string, error) {
	store, err := objectstore.NewFolder(roots...)
	if err != nil {
		return nil, nil, fmt.Errorf("source %q: %w", r.source.String(), err)
	}
	if set == nil {
		return store, roots, nil
	}
	return &countedStore{folderStore: store, metrics: set}, roots, nil
}

func s3Options(r *request, log *slog.Logger, set *lakemetrics.Set) objectstore.S3Options {
	v := r.settings.Values
	o := objectstore.S3Options{
		Config: r.aws.main, Secrets: r.aws.secrets, RootCAs: r.aws.roots,
		Endpoint: r.endpoint, PathStyle: v.PathStyle, FixedRegion: v.Region != "" && !r.source.glue, // else it is the catalog's
		RequesterPays: v.RequesterPays, SSE: v.SSE, SSEKMSKeyID: v.SSEKMSKeyID, StorageClass: v.StorageClass,
		ExpectedBucketOwner: v.ExpectedBucketOwner, Checksum: v.Checksum, Timeout: v.IOTimeout, Log: log,
	}
	if set != nil {
		o.Observe = func(q objectstore.S3Request) { countRequest(set, q) }
		o.Sent = func(n int) { set.StoreSent.Add(int64(n)) }
		read := set.StoreBytes.With(lakemetrics.DirectionRead)
		o.Received = func(n int) { read.Add(int64(n)) }
	}
	return o
}

// countRequest notes one HTTP request.
func countRequest(set *lakemetrics.Set, q objectstore.S3Request) {
	set.StoreRequests.With(q.Operation, outcomeOf(q.Err)).Observe(q.Elapsed.Seconds())
	if q.Retry {
		set.StoreRetries.Inc()
	}
	if q.Err == nil && (q.Operation == "put" || q.Operation == "part") { // else it is a request's XML
		set.StoreBytes.With(lakemetrics.DirectionWritten).Add(q.Bytes)
	}
}

// commitRetry is how long a publish asks a store again that did not answer. S3
// has asked for all of --io-timeout by itself then: it is looked what came of it,
// and no more, or a close would take twice the time.
func commitRetry(r *request) time.Duration {
	if r.source.onS3() {
		return time.Nanosecond
	}
	return min(commitRetryMax, r.settings.IOTimeout)
}

// secretNames are the names that an entry may give as sqe.secret.
func secretNames(r *request) []string { return slices.Sorted(maps.Keys(r.settings.Secrets)) }

// storeStatus is what status.json shows of the store.
type storeStatus struct {
	Kind       string            `json:"kind"` // folder, s3
	Endpoint   string            `json:"endpoint,omitempty"`
	Conditions *conditionsStatus `json:"conditional_writes,omitempty"`
	Catalog    *catalogStatus    `json:"catalog,omitempty"`
}

// catalogStatus is what status.json shows of a Glue catalog.
type catalogStatus struct {
	Kind     string `json:"kind"` // glue
	Endpoint string `json:"endpoint"`
	Region   string `json:"region"`
	Account  string `json:"account,omitempty"` // "": the credentials' own
	Writes   string `json:"writes"`            // none, partitions: what this mount writes into it
}

// conditionsStatus is what a store in S3 was found to do with conditions on
// writes: honoured, ignored, or unknown until the first small write.
type conditionsStatus struct {
	IfNoneMatch string `json:"if_none_match"`
	IfMatch     string `json:"if_match"`
}

// Values of conditionsStatus.
const (
	conditionUnknown  = "unknown"
	conditionHonoured = "honoured"
	conditionIgnored  = "ignored"
)

// statusOfStore makes what status.json shows of the store, each time anew.
func statusOfStore(r *request, store objectstore.Store) func() any {
	s3, ok := store.(*objectstore.S3)
	if !ok {
		return func() any { return storeStatus{Kind: "folder"} }
	}
	return func() any {
		known := s3.Conditions()
		word := func(honoured bool) string {
			switch {
			case !known.Known:
				return conditionUnknown
			case honoured:
				return conditionHonoured
			}
			return conditionIgnored
		}
		return storeStatus{
			Kind: "s3", Endpoint: storeEndpoint(r),
			Conditions: &conditionsStatus{IfNoneMatch: word(known.IfNoneMatch), IfMatch: word(known.IfMatch)},
			Catalog:    statusOfCatalog(r),
		}
	}
}

// statusOfCatalog is nil of manifests.
func statusOfCatalog(r *request) *catalogStatus {
	if !r.source.glue {
		return nil
	}
	writes := settings.CatalogWritesNone
	if registers(r) {
		writes = r.settings.CatalogWrites
	}
	return &catalogStatus{
		Kind: "glue", Endpoint: catalogEndpoint(r), Region: r.aws.main.Region, Account: r.source.account, Writes: writes,
	}
}

// storeEndpoint is the base URL of the store of a source in S3.
func storeEndpoint(r *request) string {
	if r.endpoint != "" {
		return r.endpoint
	}
	return awsEndpoint("s3", r.aws.main.Region)
}
