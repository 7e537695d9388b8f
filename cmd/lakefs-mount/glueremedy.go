package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

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

// glueAnswer is the error of a call as the service answered it.
type glueAnswer interface {
	error
	ErrorCode() string
	HTTPStatusCode() int // 0: nothing was answered
}

// remedy is what would help against the error of the call; "" where the error says
// it by itself, or nothing is known.
func (g glueCall) remedy(r *request, err error) string {
	var answer glueAnswer
	code, asked := "", true
	if errors.As(err, &answer) {
		code, asked = answer.ErrorCode(), answer.HTTPStatusCode() != 0
	}
	if remedy := credentialsRemedy(code); remedy != "" {
		return remedy
	}
	switch {
	case errors.Is(err, objectstore.ErrPermission) && !asked:
		return "" // there are no credentials, and why is in the error
	case code == "GlueEncryptionException":
		return "the catalog is encrypted: its KMS key must allow these credentials kms:Decrypt"
	case errors.Is(err, objectstore.ErrPermission):
		return "a policy lacks this statement: " + g.policy(r) + "; or, where Lake Formation governs the catalog, a grant of DESCRIBE is missing"
	case errors.Is(err, objectstore.ErrUnavailable):
		return "look at --glue-endpoint-url (AWS_ENDPOINT_URL_GLUE, AWS_ENDPOINT_URL), --region, and the network on the way to " + catalogEndpoint(r)
	}
	return ""
}
