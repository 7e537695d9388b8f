package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/commit"
	"github.com/lakefs-mount/lakefs-mount/fs"
	lakemetrics "github.com/lakefs-mount/lakefs-mount/internal/metrics"
	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

// glueScheme begins a SOURCE that is a Glue catalog.
const glueScheme = "glue"

// accountDigits is the length of an AWS account's number.
const accountDigits = 12

// glueSource takes what follows the "glue:" of a SOURCE: nothing, or an account.
func glueSource(text, account string) (source, error) {
	digit := func(r rune) bool { return r >= '0' && r <= '9' }
	if account != "" && (len(account) != accountDigits || strings.ContainsFunc(account, func(r rune) bool { return !digit(r) })) {
		return source{}, fmt.Errorf("source %q: want glue: (the catalog of the credentials' own account) or glue: and the 12 digits of another; one database alone is named by --database", text)
	}
	return source{glue: true, account: account}, nil
}

// glueEndpointOf is the base URL of the catalog, "" for AWS's own, which is one of
// a region and takes signed requests alone.
func glueEndpointOf(ctx context.Context, v settings.Values, cfg aws.Config) (string, error) {
	endpoint, err := endpointOf(ctx, v.GlueEndpointURL, cfg, "Glue")
	switch {
	case err != nil || endpoint != "":
		return endpoint, err
	case v.NoSignRequest:
		return "", usagef("--no-sign-request: AWS Glue answers no request without credentials; leave it out")
	case cfg.Region == "":
		return "", usagef("no region: a Glue catalog is one of a region; give --region, AWS_REGION, or a region in the profile")
	}
	return "", nil
}

// catalogEndpoint is the base URL of the service of a Glue catalog.
func catalogEndpoint(r *request) string {
	if r.glueEndpoint != "" {
		return r.glueEndpoint
	}
	return awsEndpoint("glue", r.aws.main.Region)
}

func glueOptions(r *request, log *slog.Logger, set *lakemetrics.Set) catalogview.GlueOptions {
	o := catalogview.GlueOptions{
		Config: r.aws.main, Endpoint: r.glueEndpoint, RootCAs: r.aws.roots, CatalogID: r.source.account,
		Timeout: r.settings.IOTimeout, Log: log,
	}
	if set != nil {
		o.Observe = func(q catalogview.GlueRequest) { countCatalogRequest(set, q) }
	}
	return o
}

// countCatalogRequest notes one HTTP request.
func countCatalogRequest(set *lakemetrics.Set, q catalogview.GlueRequest) {
	set.CatalogRequests.With(q.Operation, outcomeOf(q.Err)).Observe(q.Elapsed.Seconds())
	if q.Retry {
		set.CatalogRetries.Inc()
	}
}

// registers tells whether new partitions are written into the catalog.
func registers(r *request) bool {
	v := r.settings
	return v.CatalogWrites != settings.CatalogWritesNone && !v.ReadOnly && v.Write != settings.WriteNone
}

// writesEntries tells whether NAME.json may be written, and the catalog with it.
func writesEntries(r *request) bool {
	return r.settings.CatalogWrites == settings.CatalogWritesEntries && registers(r)
}

// registrar is what a publish tells of a partition; nil: nobody.
func registrar(r *request, view *catalogview.View) commit.Registrar {
	if !r.source.glue || !registers(r) {
		return nil
	}
	return view
}

// deregistrar takes removed partitions out of the catalog; nil: nobody does.
func deregistrar(r *request, view *catalogview.View) fs.Deregistrar {
	if !r.source.glue || !registers(r) {
		return nil
	}
	return view
}
