package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/uuid"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// Names of the findings on a bucket, some of which a Glue catalog has too.
const (
	checkCredentials = "credentials"
	checkEndpoint    = "endpoint"
	checkRegion      = "region"
	checkClock       = "clock"
	checkList        = "list"
	checkGet         = "get"
	checkPut         = "put"
	checkConditions  = "conditional writes"
	checkDelete      = "delete"
)

// bucketCheck looks at a source in S3, one promise after another.
type bucketCheck struct {
	r      *request
	store  *objectstore.S3
	report func(finding)
}

// run tells whether the catalog can be looked at.
func (c bucketCheck) run(ctx context.Context, roots []string) bool {
	if !c.credentials(ctx) || !c.answers(ctx) {
		return false
	}
	first, listed := c.list(ctx, c.r.source.root)
	for _, root := range roots[1:] {
		loc, err := bucketLocation(strings.TrimPrefix(root, "s3://"))
		if err == nil {
			c.list(ctx, loc)
		}
	}
	if !listed {
		return false
	}
	c.get(ctx, first, c.r.source.root)
	c.write(ctx)
	return true
}

// credentials tells whose they are; of the key id enough to recognise it. Without
// those of the catalog it returns false: each request would fail for that one cause.
func (c bucketCheck) credentials(ctx context.Context) bool {
	if c.r.settings.NoSignRequest {
		c.report(finding{what: checkCredentials, detail: "none are sent (--no-sign-request)"})
		return true
	}
	got := c.credentialsOf(ctx, checkCredentials, c.r.aws.main)
	for _, name := range slices.Sorted(maps.Keys(c.r.aws.secrets)) {
		c.credentialsOf(ctx, fmt.Sprintf("%s of secret %q", checkCredentials, name), c.r.aws.secrets[name])
	}
	return got
}

func (c bucketCheck) credentialsOf(ctx context.Context, what string, cfg aws.Config) bool {
	got, err := cfg.Credentials.Retrieve(ctx)
	var none *objectstore.CredentialsError
	switch {
	case errors.As(err, &none):
		c.report(fromError(what, "", none))
	case err != nil:
		c.report(finding{what: what, problem: err.Error(), remedy: "look at them: aws sts get-caller-identity"})
	default:
		c.report(finding{what: what, detail: fmt.Sprintf("key id %s, from %s", masked(got.AccessKeyID), got.Source)})
	}
	return err == nil
}

// masked is a key id of which its owner recognises the end.
func masked(id string) string {
	if len(id) < 12 {
		return "****"
	}
	return id[:4] + "…" + id[len(id)-4:]
}

// answers looks at what needs no credentials: that the store answers, its clock,
// and the region of the bucket.
func (c bucketCheck) answers(ctx context.Context) bool {
	v := c.r.settings.Values
	endpoint := storeEndpoint(c.r)
	a, reached := c.reaches(ctx, endpoint, strings.TrimSuffix(endpoint, "/")+"/"+c.r.source.root.Bucket, "--endpoint-url")
	if !reached {
		return false
	}
	switch {
	case a.region == "":
		c.report(finding{what: checkRegion, detail: c.r.aws.main.Region + " (the store does not tell)"})
	case v.Region != "" && v.Region != a.region:
		c.report(finding{
			what: checkRegion, problem: fmt.Sprintf("the bucket is in %s, --region says %s", a.region, v.Region),
			remedy: "leave --region out, or give --region " + shellQuote(a.region),
		})
		return false
	default:
		c.report(finding{what: checkRegion, detail: a.region})
	}
	return true
}

// reaches tells that a service answers at all, and how far its clock is off; url is
// what is asked for, flag what names another endpoint.
func (c bucketCheck) reaches(ctx context.Context, endpoint, url, flag string) (answer, bool) {
	a, err := ask(ctx, c.r, url)
	if err != nil {
		c.report(finding{
			what: checkEndpoint, problem: fmt.Sprintf("%s: %v", endpoint, err),
			remedy: "look at " + flag + " (AWS_ENDPOINT_URL), --ca-bundle, and the proxy and firewall on the way",
		})
		return a, false
	}
	c.report(finding{what: checkEndpoint, detail: endpoint + " answers"})
	if a.dated {
		c.report(clockFinding(a.skew))
	}
	return a, true
}

// list looks at one root, and finds an object to read: the zero one if there is none.
func (c bucketCheck) list(ctx context.Context, root objectstore.Location) (objectstore.Object, bool) {
	const enough = 100
	what := checkList + " " + source{root: root}.String()
	found, n := objectstore.Object{}, 0
	for e, err := range c.store.List(ctx, root, objectstore.ListOptions{Limit: enough}) {
		if err != nil {
			c.report(c.failed(what, err, "s3:ListBucket", root))
			return found, false
		}
		n++
		if found.ETag == "" && e.Size > 0 {
			found = e.Object
		}
	}
	switch n {
	case 0:
		c.report(finding{what: what, detail: "nothing is there: a lake without databases"})
	case enough:
		c.report(finding{what: what, detail: "works"})
	default:
		c.report(finding{what: what, detail: "works, " + countOf(n, "object")})
	}
	return found, true
}

// get reads one byte of an object below root, if one was found.
func (c bucketCheck) get(ctx context.Context, o objectstore.Object, root objectstore.Location) {
	what := checkGet
	if c.r.source.glue { // of several buckets
		what += " " + source{root: root}.String()
	}
	if o.ETag == "" {
		c.report(finding{what: what, detail: "not tried: no object to read"})
		return
	}
	_, body, err := c.store.Read(ctx, o, 0, 1)
	if err == nil {
		err = body.Close()
	}
	if err != nil {
		c.report(c.failed(what, err, "s3:GetObject", root))
		return
	}
	c.report(finding{what: what, detail: "works"})
}

// write makes a small object beside the databases and removes it again.
func (c bucketCheck) write(ctx context.Context) {
	if c.r.settings.ReadOnly {
		c.report(finding{what: checkPut, detail: "not tried (--read-only)"})
		return
	}
	const text = "made by lakefs-mount check to see what may be done here; it can be removed\n"
	loc := c.r.source.root
	loc.Key += "_temporary/.lakefs-mount-check-" + uuid.NewString()
	_, err := c.store.Put(ctx, loc, strings.NewReader(text), int64(len(text)), objectstore.PutOptions{Cond: objectstore.Cond{IfNoneMatch: true}})
	if err != nil {
		c.report(c.failed(checkPut, err, "s3:PutObject", c.r.source.root))
		if !errors.Is(err, objectstore.ErrUnavailable) { // else it may be there
			return
		}
	} else {
		c.report(finding{what: checkPut, detail: "works"})
		c.report(conditionsFinding(c.store.Conditions()))
	}
	for _, err = range c.store.Delete(context.WithoutCancel(ctx), []objectstore.Location{loc}) {
		if err != nil {
			f := c.failed(checkDelete, err, "s3:DeleteObject", c.r.source.root)
			f.problem += fmt.Sprintf("; left there: %q", loc.Key)
			c.report(f)
			return
		}
	}
	if err == nil {
		c.report(finding{what: checkDelete, detail: "works"})
	}
}

func conditionsFinding(known objectstore.Conditions) finding {
	var ignored []string
	if !known.IfNoneMatch {
		ignored = append(ignored, "If-None-Match")
	}
	if !known.IfMatch {
		ignored = append(ignored, "If-Match")
	}
	switch {
	case !known.Known:
		return finding{what: checkConditions, warning: true, problem: "it was not found out whether the store honours them", remedy: "try again"}
	case len(ignored) > 0:
		return finding{
			what: checkConditions, warning: true, problem: "the store ignores " + strings.Join(ignored, " and "),
			remedy: "the mount looks before each write instead; let one mount alone write a file, or two that write it at one moment can undo one another",
		}
	}
	return finding{what: checkConditions, detail: "honoured"}
}

// failed is the finding of a request that failed, with what would help.
func (c bucketCheck) failed(what string, err error, action string, root objectstore.Location) finding {
	f := finding{what: what, problem: err.Error()}
	status, code := objectstore.S3Answer(err)
	switch code {
	case "InvalidAccessKeyId", "XAdminUserNotFound":
		f.remedy = "the store does not know this key id: choose other credentials by --profile or AWS_PROFILE"
		return f
	case "SignatureDoesNotMatch":
		f.remedy = "the secret key is not that of the key id; or a proxy on the way changes requests"
		return f
	case "ExpiredToken", "ExpiredTokenException", "InvalidToken":
		f.remedy = "the session is over: log in again (aws sso login), then send the mount SIGHUP"
		return f
	case "RequestTimeTooSkewed":
		f.remedy = "set this host's clock: timedatectl set-ntp true"
		return f
	case "NoSuchBucket":
		f.remedy = "make it (aws s3 mb s3://" + root.Bucket + "), or name another bucket or --endpoint-url"
		return f
	}
	switch {
	case status == 301 || status == 307 || code == "AuthorizationHeaderMalformed":
		f.remedy = "the bucket is in another region: leave --region out"
	case errors.Is(err, objectstore.ErrPermission) && status != 0:
		f.remedy = "a policy lacks this statement: " + policyStatement(action, root, c.r.aws.main.Region)
	case errors.Is(err, objectstore.ErrUnavailable):
		f.remedy = "look at the store, and at the network on the way"
	}
	return f
}

// policyStatement is what an IAM or bucket policy needs for an action below root.
func policyStatement(action string, root objectstore.Location, region string) string {
	type statement struct {
		Effect, Action, Resource string
		Condition                map[string]map[string]string `json:",omitempty"`
	}
	s := statement{Effect: "Allow", Action: action, Resource: "arn:" + partitionOf(region) + ":s3:::" + root.Bucket}
	switch {
	case action != "s3:ListBucket":
		s.Resource += "/" + root.Key + "*"
	case root.Key != "":
		s.Condition = map[string]map[string]string{"StringLike": {"s3:prefix": root.Key + "*"}}
	}
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // texts always encode
	}
	return string(raw)
}

// partitionOf is what ARNs of a region begin with.
func partitionOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}
