package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

const (
	// credentialsTimeout bounds how long credentials are looked for: an instance's
	// metadata service that is not there must not hang a mount.
	credentialsTimeout = 20 * time.Second
	// expiryWindow is how long before their end credentials are fetched anew.
	expiryWindow = 15 * time.Second
	// defaultRegion is where a bucket is looked for first.
	defaultRegion = "us-east-1"
)

// awsConfigs are the credentials of a mount: the default ones, and those of each
// secret of the settings file.
type awsConfigs struct {
	main    aws.Config
	secrets map[string]aws.Config
	roots   *x509.CertPool // nil: the system's
}

// loadAWS reads the AWS configuration for r, and fills r.aws and the endpoints. No
// network is asked: credentials are fetched when the first request needs them.
func (p *program) loadAWS(ctx context.Context, r *request) error {
	v := r.settings.Values
	main, err := loadAWSConfig(ctx, v, v.Profile, r.source.glue)
	if err != nil {
		return err
	}
	if r.source.glue {
		if r.glueEndpoint, err = glueEndpointOf(ctx, v, main); err != nil {
			return err
		}
	}
	r.aws = &awsConfigs{main: inRegion(main), secrets: map[string]aws.Config{}}
	for _, name := range slices.Sorted(maps.Keys(v.Secrets)) {
		r.aws.secrets[name], err = loadAWSConfig(ctx, v, v.Secrets[name], r.source.glue)
		if err != nil {
			return fmt.Errorf("secret %q of %s: %w", name, v.Config, err)
		}
		r.aws.secrets[name] = inRegion(r.aws.secrets[name])
	}
	if r.endpoint, err = endpointOf(ctx, v.EndpointURL, main, "S3"); err != nil {
		return err
	}
	r.aws.roots, err = certificates(v.CABundle, p.getenv("AWS_CA_BUNDLE"))
	return err
}

// inRegion fills the region where the configuration names none.
func inRegion(cfg aws.Config) aws.Config {
	if cfg.Region == "" {
		cfg.Region = defaultRegion
	}
	return cfg
}

// loadAWSConfig loads the SDK's default configuration for a profile, "" for that
// of the environment. Its credentials are read anew from there whenever they have
// expired, or were invalidated. signed: they are for a service that answers no
// request without.
func loadAWSConfig(ctx context.Context, v settings.Values, profile string, signed bool) (aws.Config, error) {
	load := func(ctx context.Context) (aws.Config, error) { return defaultConfig(ctx, v, profile) }
	cfg, err := load(ctx)
	if err != nil {
		return aws.Config{}, err
	}
	if !v.NoSignRequest {
		cfg.Credentials = aws.NewCredentialsCache(&credentialChain{load: load, timeout: min(v.IOTimeout, credentialsTimeout), signed: signed},
			func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = expiryWindow })
	}
	return cfg, nil
}

func defaultConfig(ctx context.Context, v settings.Values, profile string) (aws.Config, error) {
	options := []func(*config.LoadOptions) error{
		config.WithSharedConfigProfile(profile), config.WithRegion(v.Region),
		config.WithLogger(logging.Nop{}), // it would write to standard error by itself
	}
	if v.NoSignRequest {
		options = append(options, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	}
	if v.CABundle != "" {
		bundle, err := os.Open(v.CABundle)
		if err != nil {
			return aws.Config{}, fmt.Errorf("--ca-bundle: %w", err)
		}
		defer bundle.Close() //nolint:errcheck // only read
		options = append(options, config.WithCustomCABundle(bundle))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	var missing config.SharedConfigProfileNotExistError
	if errors.As(err, &missing) {
		return aws.Config{}, fmt.Errorf("AWS profile %q: neither ~/.aws/config nor ~/.aws/credentials has it; name another with --profile (or AWS_PROFILE); they are listed by: aws configure list-profiles", missing.Profile)
	}
	if err != nil {
		return aws.Config{}, fmt.Errorf("AWS configuration: %w", err)
	}
	return cfg, nil
}

// endpointOf is the base URL of a service, by its id in the SDK: what was given by
// a flag, else what the AWS configuration says (of S3: AWS_ENDPOINT_URL_S3,
// AWS_ENDPOINT_URL, endpoint_url), else "".
func endpointOf(ctx context.Context, given string, cfg aws.Config, service string) (string, error) {
	if given != "" {
		return given, nil
	}
	for _, source := range cfg.ConfigSources {
		if s, ok := source.(interface {
			GetIgnoreConfiguredEndpoints(ctx context.Context) (bool, bool, error)
		}); ok {
			if ignore, found, err := s.GetIgnoreConfiguredEndpoints(ctx); err == nil && found {
				if ignore {
					return "", nil
				}
				break
			}
		}
	}
	for _, source := range cfg.ConfigSources {
		s, ok := source.(interface {
			GetServiceBaseEndpoint(ctx context.Context, sdkID string) (string, bool, error)
		})
		if !ok {
			continue
		}
		if endpoint, found, err := s.GetServiceBaseEndpoint(ctx, service); err != nil || found {
			return endpoint, err
		}
	}
	return aws.ToString(cfg.BaseEndpoint), nil
}

// certificates are the system's and those of the first file named; nil: the
// system's alone.
func certificates(files ...string) (*x509.CertPool, error) {
	for _, file := range files {
		if file == "" {
			continue
		}
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("CA bundle: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA bundle %q: no certificate in PEM form; name another with --ca-bundle", file)
		}
		return pool, nil
	}
	return nil, nil //nolint:nilnil // the system's
}

// credentialChain is the SDK's default chain, read anew each time: what another
// program has written into the configuration files counts.
type credentialChain struct {
	load    func(ctx context.Context) (aws.Config, error)
	timeout time.Duration
	signed  bool // going without any is no remedy
}

// Retrieve is aws.CredentialsProvider's.
func (c *credentialChain) Retrieve(ctx context.Context) (aws.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	cfg, err := c.load(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	got, err := cfg.Credentials.Retrieve(ctx)
	if err == nil {
		return got, nil
	}
	var operation *smithy.OperationError
	if errors.As(err, &operation) && operation.ServiceID == "ec2imds" { // the last place that is looked at
		return aws.Credentials{}, &noCredentialsError{err: err, signed: c.signed}
	}
	return aws.Credentials{}, fmt.Errorf("AWS credentials: %w", err)
}

// noCredentialsError: nothing in the default chain has any.
type noCredentialsError struct {
	err    error
	signed bool
}

func (e *noCredentialsError) Error() string {
	text := "no AWS credentials found; name a profile with --profile or AWS_PROFILE"
	if e.signed {
		return text
	}
	return text + ", or give --no-sign-request for a public bucket"
}

// Unwrap says that it is a refusal, and what the last place answered.
func (e *noCredentialsError) Unwrap() []error { return []error{objectstore.ErrPermission, e.err} }
