package mounttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// Glue makes the lake's catalog a Glue server; the data lie in buckets. The zero
// value is an empty catalog with one bucket, served by gluetest.
//
// A table without a Location lies where the helpers of the store look for it
// ([Lake.Stored] and the like), in the first bucket. "{0}", "{1}" in a Location
// stand for the names of the lake's buckets.
type Glue struct {
	Server   *gluetest.Server // nil: one of the lake's own
	Endpoint string           // of another program that serves Glue (moto), in place of Server
	Buckets  int              // how many buckets the lake has; 0: one
	Tables   []GlueTable
}

// Catalog is the Glue server of a lake, and the lake's buckets. Its methods are
// for the test's own goroutine.
type Catalog struct {
	Server   *gluetest.Server // requests and faults; nil: the catalog is another program
	Endpoint string           // what the daemon has as --glue-endpoint-url
	Buckets  []string         // the first is that of Lake.Bucket

	t      testing.TB
	server *s3test.Server // its credentials are the catalog's too
}

// CLI runs `aws glue ARGUMENTS…` against the catalog ("get-table", "--name", "t"),
// which must succeed, and returns what it prints: JSON with times as ISO 8601. It
// is skipped where the CLI is not installed ([Venv]).
func (c *Catalog) CLI(args ...string) string {
	c.t.Helper()
	program, home := Venv(c.t, "aws"), c.t.TempDir()
	config := filepath.Join(home, "config")
	must(c.t, os.WriteFile(config, []byte("[default]\ncli_timestamp_format = iso8601\n"), 0o600))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), bucketTimeout)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, program, slices.Concat([]string{"--endpoint-url", c.Endpoint, "--output", "json", "glue"}, args)...)
	cmd.Env = slices.Concat(c.server.Env(), []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LC_ALL=C.UTF-8", "AWS_PAGER=", "AWS_CONFIG_FILE=" + config})
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("aws glue %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String()
}

// Call makes one call of Glue's API ("CreateTable"), as another program would, and
// returns the body of its answer, which must be a success. in is the request:
// JSON text, or what encodes to it.
func (c *Catalog) Call(operation string, in any) []byte {
	c.t.Helper()
	out, err := c.TryCall(operation, in)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// TryCall is Call for what may be refused.
func (c *Catalog) TryCall(operation string, in any) ([]byte, error) {
	body, isText := in.(string)
	if !isText {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", operation, err)
		}
		body = string(raw)
	}
	ctx, cancel := context.WithTimeout(context.Background(), bucketTimeout)
	defer cancel()
	req, err := c.request(ctx, operation, []byte(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("answer to %s: %w", operation, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s of %s: %s: %s", operation, body, resp.Status, out)
	}
	return out, nil
}

// request is a signed request of Glue's JSON protocol: fields that no SDK knows
// pass by it.
func (c *Catalog) request(ctx context.Context, operation string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Endpoint+"/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "AWSGlue."+operation)
	hash := sha256.Sum256(body)
	who := aws.Credentials{AccessKeyID: c.server.Access, SecretAccessKey: c.server.Secret}
	return req, v4.NewSigner().SignHTTP(ctx, who, req, hex.EncodeToString(hash[:]), "glue", c.server.Region, time.Now())
}

// At is a Location with the names of the lake's buckets in it: "s3://{1}/x".
func (c *Catalog) At(location string) string {
	for i, name := range c.Buckets {
		location = strings.ReplaceAll(location, fmt.Sprintf("{%d}", i), name)
	}
	return location
}

// openCatalog finds or starts the lake's Glue server, and makes its buckets.
func (l *Lake) openCatalog() {
	l.t.Helper()
	b, _ := l.store.(bucket)
	o := l.o.Glue
	c := &Catalog{t: l.t, Server: o.Server, Endpoint: o.Endpoint, server: b.server}
	if c.Endpoint == "" {
		if c.Server == nil {
			c.Server = gluetest.New(l.t)
		}
		c.Endpoint = c.Server.URL
	}
	for c.Buckets = []string{b.name}; len(c.Buckets) < o.Buckets; {
		c.Buckets = append(c.Buckets, b.server.Bucket(l.t))
	}
	l.Catalog, l.Source = c, "glue:"
}
