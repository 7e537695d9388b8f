package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lakefs-mount/lakefs-mount/catalogview"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// errNotSeen is of a database whose entry is denied.
var errNotSeen = fmt.Errorf("whether it is there cannot be seen, nor its entry: %w", objectstore.ErrPermission)

// glueCall is an action of Glue on a part of the catalog, as IAM names both.
type glueCall struct {
	action   string // without "glue:"
	database string // "": all
	table    string // "": all
}

// resources are what a policy must name for the call, most general first.
func (g glueCall) resources() []string {
	database, table := g.database, g.table
	if database == "" {
		database = "*"
	}
	if table == "" {
		table = "*"
	}
	switch g.action {
	case "GetDatabases", "GetDatabase":
		return []string{"catalog", "database/" + database}
	}
	return []string{"catalog", "database/" + database, "table/" + database + "/" + table}
}

// policy is the statement that an IAM or catalog policy needs for the call. The
// account of the credentials is not known here: "*" stands for it.
func (g glueCall) policy(r *request) string {
	account := r.source.account
	if account == "" {
		account = "*"
	}
	s := struct {
		Effect, Action string
		Resource       []string
	}{Effect: "Allow", Action: "glue:" + g.action}
	for _, name := range g.resources() {
		s.Resource = append(s.Resource, fmt.Sprintf("arn:%s:glue:%s:%s:%s", partitionOf(r.aws.main.Region), r.aws.main.Region, account, name))
	}
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // texts always encode
	}
	return string(raw)
}

// refusedCredentials is what would help where the service refuses the credentials
// themselves; "" where its code says another thing.
func refusedCredentials(code string) string {
	switch code {
	case "UnrecognizedClientException", "InvalidClientTokenId", "MissingAuthenticationToken", "MissingAuthenticationTokenException",
		"IncompleteSignature", "IncompleteSignatureException":
		return "the service does not know these credentials: choose others by --profile or AWS_PROFILE"
	case "InvalidSignatureException", "SignatureDoesNotMatch":
		return "the secret key is not that of the key id (choose others by --profile or AWS_PROFILE), this host's clock is wrong, or a proxy on the way changes requests"
	case "ExpiredToken", "ExpiredTokenException":
		return "the session is over: log in again (aws sso login, or choose others by --profile or AWS_PROFILE), then send the mount SIGHUP"
	case "RequestExpired", "RequestTimeTooSkewed":
		return "set this host's clock: timedatectl set-ntp true"
	}
	return ""
}

// remedy is what would help against the error of the call; "" where nothing is known.
func (g glueCall) remedy(r *request, err error) string {
	status, code := catalogview.GlueAnswer(err)
	if remedy := refusedCredentials(code); remedy != "" {
		return remedy
	}
	switch {
	case errors.Is(err, objectstore.ErrPermission) && status == 0 && !errors.Is(err, errNotSeen):
		return "the credentials cannot be had: look at them (aws sts get-caller-identity), or choose others by --profile or AWS_PROFILE"
	case errors.Is(err, objectstore.ErrPermission):
		return "a policy lacks this statement: " + g.policy(r) + "; or, where Lake Formation governs the catalog, a grant of DESCRIBE is missing"
	case errors.Is(err, objectstore.ErrUnavailable):
		return "look at --glue-endpoint-url (AWS_ENDPOINT_URL_GLUE, AWS_ENDPOINT_URL), --region, and the network on the way to " + catalogEndpoint(r)
	}
	return ""
}

// withRemedy adds to the error of a catalog's first answer what would help.
func withRemedy(ctx context.Context, r *request, err error) error {
	if !r.source.glue {
		return err
	}
	var none *objectstore.CredentialsError
	if errors.Is(err, objectstore.ErrPermission) && !r.settings.NoSignRequest {
		if _, missing := r.aws.main.Credentials.Retrieve(ctx); errors.As(missing, &none) {
			return none
		}
	}
	if remedy := (glueCall{action: "GetDatabases"}).remedy(r, err); remedy != "" {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	return err
}
