package catalogview

import (
	"context"
	"crypto/x509"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/glue"

	"github.com/lakefs-mount/lakefs-mount/table"
)

// GlueOptions are those of [NewGlue]; zero fields stand for the values named.
type GlueOptions struct {
	Config    aws.Config // credentials and region; its HTTPClient is not used
	Endpoint  string     // base URL; "": AWS's
	RootCAs   *x509.CertPool
	CatalogID string // the account; "": the caller's own
	// Timeout bounds one call, all its retries included (60 s).
	Timeout time.Duration
	Log     *slog.Logger // none
	// Observe is told of each HTTP request; nil: nobody.
	Observe func(GlueRequest)
	// Segments is in how many parallel parts the partitions of a table are listed
	// (10, the service's most).
	Segments int
}

// GlueRequest is one HTTP request to the catalog.
type GlueRequest struct {
	Operation string // "GetPartitions"
	Elapsed   time.Duration
	Err       error // nil: it was answered with success
	Retry     bool  // not the call's first
}

// Glue is the Source of an AWS Glue catalog.
type Glue struct{ api *glue.Client }

var _ Source = (*Glue)(nil)

// NewGlue returns the Source of a Glue catalog. It asks nothing.
func NewGlue(o GlueOptions) *Glue {
	return &Glue{api: glue.NewFromConfig(o.Config)}
}

var errNotYet = errors.New("not yet")

// Databases is [Source]'s.
func (g *Glue) Databases(context.Context) iter.Seq2[Database, error] {
	return func(yield func(Database, error) bool) { yield(Database{}, errNotYet) }
}

// Database is [Source]'s.
func (g *Glue) Database(context.Context, string) (Database, error) { return Database{}, errNotYet }

// Tables is [Source]'s.
func (g *Glue) Tables(context.Context, string) iter.Seq2[TableInfo, error] {
	return func(yield func(TableInfo, error) bool) { yield(TableInfo{}, errNotYet) }
}

// Table is [Source]'s.
func (g *Glue) Table(context.Context, string, string, string) (*table.Table, Raw, error) {
	return nil, Raw{}, errNotYet
}

// Partitions is [Source]'s.
func (g *Glue) Partitions(context.Context, *table.Table, []string) iter.Seq2[table.Partition, error] {
	return func(yield func(table.Partition, error) bool) { yield(table.Partition{}, errNotYet) }
}

// Partition is [Source]'s.
func (g *Glue) Partition(context.Context, *table.Table, []string) (table.Partition, Raw, error) {
	return table.Partition{}, Raw{}, errNotYet
}

// PartitionLines is [Source]'s.
func (g *Glue) PartitionLines(context.Context, *table.Table) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) { yield(nil, errNotYet) }
}

// Register is [Source]'s.
func (g *Glue) Register(context.Context, *table.Table, []string, string) (string, error) {
	return "", errNotYet
}
