package main

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// credentialsTimeout bounds how long credentials are looked for: an instance's
// metadata service that is not there must not hang a mount.
const credentialsTimeout = 20 * time.Second

// credentialChain is the SDK's default chain, read anew each time: what another
// program has written into the configuration files counts.
type credentialChain struct {
	load    func(ctx context.Context) (aws.Config, error)
	timeout time.Duration
	signed  bool // going without any is no remedy
	had     atomic.Bool
}

// Retrieve is aws.CredentialsProvider's. Its errors are objectstore.CredentialsErrors.
func (c *credentialChain) Retrieve(ctx context.Context) (aws.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	cfg, err := c.load(ctx)
	if err != nil {
		return aws.Credentials{}, &objectstore.CredentialsError{Text: err.Error(), Err: err}
	}
	got, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, c.failure(ctx, cfg, err)
	}
	c.had.Store(true)
	return got, nil
}

// failure is what a failure of the chain means, and its remedy. A source that has
// given credentials before is taken to come back: a mount that writes waits for
// it, where a refusal would fail the file.
func (c *credentialChain) failure(ctx context.Context, cfg aws.Config, err error) *objectstore.CredentialsError {
	e := &objectstore.CredentialsError{Err: err, Passing: ctx.Err() != nil || passing(err)}
	var operation *smithy.OperationError
	var process *processcreds.ProviderError
	switch {
	case errors.As(err, &operation) && operation.ServiceID == "ec2imds": // the last place that is looked at
		if e.Passing = c.had.Load(); e.Passing {
			e.Text = "the instance's metadata service gives no credentials any more: " + cause(err)
			return e
		}
		e.Text = c.none()
		return e
	case errors.As(err, &process):
		e.Passing = c.had.Load()
		e.Text = "AWS credentials: " + processText(process) + "; run the profile's credential_process by hand, as the user of the mount"
		return e
	}
	e.Text = "AWS credentials: " + cause(err)
	if remedy := remedyOf(cfg, err); remedy != "" && !e.Passing {
		e.Text += "; " + remedy
	}
	return e
}

// none: nothing in the default chain has any.
func (c *credentialChain) none() string {
	const text = "no AWS credentials found; name a profile with --profile or AWS_PROFILE"
	if c.signed {
		return text
	}
	return text + ", or give --no-sign-request for a public bucket"
}

// passing tells whether a service that gives credentials may answer otherwise soon.
func passing(err error) bool {
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		status := answer.HTTPStatusCode()
		throttled := retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}.IsErrorThrottle(err) == aws.TrueTernary
		return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || throttled
	}
	var api smithy.APIError // a container's agent has no answer of HTTP in its errors
	if errors.As(err, &api) {
		return api.ErrorFault() == smithy.FaultServer
	}
	var dns *net.DNSError
	if unknownAuthority(err) != "" || errors.As(err, &dns) && dns.IsNotFound {
		return false
	}
	var sent *smithyhttp.RequestSendError
	return errors.As(err, &sent)
}

// cause is a failure without what the SDK puts around it.
func cause(err error) string {
	var operation *smithy.OperationError
	if !errors.As(err, &operation) {
		return err.Error()
	}
	asked := operation.ServiceID + " " + operation.OperationName + ": "
	var api smithy.APIError
	var sent *smithyhttp.RequestSendError
	switch {
	case errors.As(err, &api):
		return asked + api.ErrorCode() + ": " + api.ErrorMessage()
	case errors.As(err, &sent):
		return asked + sent.Err.Error()
	}
	return asked + operation.Err.Error()
}

// processText is what kept a program from giving credentials, without what it
// printed: that may hold a secret.
func processText(err *processcreds.ProviderError) string {
	var exit *exec.ExitError
	var missing *exec.Error
	if errors.Unwrap(err.Err) == nil || errors.As(err, &exit) || errors.As(err, &missing) {
		return err.Error()
	}
	return "what the program printed is not the JSON of credentials"
}

// unknownAuthority is the remedy for a certificate that nobody known has signed; ""
// for other failures.
func unknownAuthority(err error) string {
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return "name the certificates of its authority with --ca-bundle (or AWS_CA_BUNDLE)"
	}
	return ""
}

// remedyOf is what helps where a service refuses to give credentials; "": nothing is known.
func remedyOf(cfg aws.Config, err error) string {
	if remedy := unknownAuthority(err); remedy != "" {
		return remedy
	}
	profile, shared := "", config.SharedConfig{}
	for _, source := range cfg.ConfigSources {
		if s, ok := source.(config.SharedConfig); ok {
			profile, shared = " --profile "+shellQuote(s.Profile), s
		}
	}
	var token *ssocreds.InvalidTokenError
	if errors.As(err, &token) || shared.SSOSession != nil || shared.SSOStartURL != "" {
		return "log in again: aws sso login" + profile
	}
	var operation *smithy.OperationError
	if !errors.As(err, &operation) || operation.ServiceID != "STS" {
		return ""
	}
	if operation.OperationName == "AssumeRoleWithWebIdentity" {
		return "look at the token in AWS_WEB_IDENTITY_TOKEN_FILE, and at the trust policy of the role"
	}
	return "look at the trust policy of the role (role_arn), and at what the source_profile may assume"
}
