package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"github.com/lakefs-mount/lakefs-mount/internal/settings"
)

const (
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
	r.aws.roots, err = certificates(v.CABundle, p.getenv("AWS_CA_BUNDLE"), bundleOf(main))
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
	cfg, err := defaultConfig(ctx, v, profile)
	if err != nil {
		return aws.Config{}, err
	}
	if !v.NoSignRequest {
		load := func(ctx context.Context) (aws.Config, error) {
			// A role is assumed in some region, if none is named too.
			return defaultConfig(ctx, v, profile, config.WithDefaultRegion(defaultRegion))
		}
		cfg.Credentials = aws.NewCredentialsCache(&credentialChain{load: load, timeout: min(v.IOTimeout, credentialsTimeout), signed: signed},
			func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = expiryWindow })
	}
	return cfg, nil
}

func defaultConfig(ctx context.Context, v settings.Values, profile string, further ...func(*config.LoadOptions) error) (aws.Config, error) {
	options := append(further,
		config.WithSharedConfigProfile(profile), config.WithRegion(v.Region),
		config.WithLogger(logging.Nop{}), // it would write to standard error by itself
	)
	if v.NoSignRequest {
		options = append(options, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	}
	client, err := credentialsClient(v)
	if err != nil {
		return aws.Config{}, err
	}
	if client != nil {
		options = append(options, config.WithHTTPClient(client))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	var missing config.SharedConfigProfileNotExistError
	if errors.As(err, &missing) {
		return aws.Config{}, fmt.Errorf("AWS profile %q: neither ~/.aws/config nor ~/.aws/credentials has it; name another with --profile (or AWS_PROFILE); they are listed by: aws configure list-profiles", missing.Profile)
	}
	var asks config.AssumeRoleTokenProviderNotSetError
	if errors.As(err, &asks) {
		return aws.Config{}, errors.New("AWS configuration: the profile's role wants a code (mfa_serial), which a mount cannot ask for; use a profile whose credentials were made with it (aws sts get-session-token), or one of SSO")
	}
	if err != nil {
		return aws.Config{}, fmt.Errorf("AWS configuration: %w", err)
	}
	return cfg, nil
}

// credentialsClient is what services are asked with that give credentials: nil, the
// SDK's own, or one that trusts the certificates of --ca-bundle beside the system's.
func credentialsClient(v settings.Values) (*awshttp.BuildableClient, error) {
	roots, err := certificates(v.CABundle)
	if err != nil {
		return nil, fmt.Errorf("--ca-bundle: %w", err)
	}
	if roots == nil {
		return nil, nil //nolint:nilnil // the SDK's own
	}
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.TLSClientConfig.RootCAs = roots
	}), nil
}

// bundleOf is the ca_bundle of the profile.
func bundleOf(cfg aws.Config) string {
	for _, source := range cfg.ConfigSources {
		if shared, ok := source.(config.SharedConfig); ok {
			return shared.CustomCABundle
		}
	}
	return ""
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
