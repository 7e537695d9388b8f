package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// askTimeout bounds the one question that check asks without credentials.
	askTimeout = 10 * time.Second
	// skewWarning is the difference of clocks that is worth a word; S3 refuses
	// requests at 15 minutes.
	skewWarning = time.Minute
)

// answer is what a service tells anybody.
type answer struct {
	region string        // of a bucket; "": the store does not tell
	dated  bool          // the service told its time
	skew   time.Duration // its clock's lead over ours
}

// ask sends a HEAD of a bucket, or of an endpoint, without credentials. Any answer
// is one.
func ask(ctx context.Context, r *request, at string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, min(askTimeout, r.settings.IOTimeout))
	defer cancel()
	var a answer
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, at, nil)
	if err != nil {
		return a, err
	}
	transport := &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		TLSClientConfig:   &tls.Config{RootCAs: r.aws.roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}
	began := time.Now()
	resp, err := transport.RoundTrip(req) // a redirect is an answer
	if err != nil {
		return a, withoutURL(ctx, err)
	}
	middle := began.Add(time.Since(began) / 2)
	if err := resp.Body.Close(); err != nil {
		return a, err
	}
	a.region = resp.Header.Get("X-Amz-Bucket-Region")
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		a.dated, a.skew = true, date.Sub(middle)
	}
	return a, nil
}

// withoutURL is what kept a request from an answer, without what the message says
// already.
func withoutURL(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("no answer in time")
	}
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		return urlErr.Err
	}
	return err
}

// awsEndpoint is where AWS serves s3 or glue in a region.
func awsEndpoint(service, region string) string {
	host := "https://" + service + "." + region + ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		host += ".cn"
	}
	return host
}

// clockFinding tells how far the clocks differ. A Date header has whole seconds.
func clockFinding(skew time.Duration) finding {
	if skew.Abs() <= skewWarning {
		return finding{what: checkClock, detail: "agrees with the service's"}
	}
	which := "behind"
	if skew < 0 {
		which = "ahead of"
	}
	return finding{
		what: checkClock, warning: true,
		problem: fmt.Sprintf("this host's clock is %v %s the service's; AWS refuses requests at 15 minutes", skew.Abs().Round(time.Second), which),
		remedy:  "set it: timedatectl set-ntp true",
	}
}
