package objectstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lakefs-mount/lakefs-mount/internal/operation"
)

// storeError is a failure that S3 answered with, or that kept it from answering.
// What the SDK and the network said is in its text alone: an errno that is
// wrapped would be a sentinel to errors.Is that says nothing of the object.
type storeError struct {
	sentinel error // nil: the failure has no meaning of its own
	status   int   // HTTP status; 0: no answer
	code     string
	id       string // the store's request id
	text     string
	passing  bool // may go away by itself
	odd      bool // a badAnswer
}

func (e *storeError) Unwrap() error { return e.sentinel }

func (e *storeError) Error() string {
	var b strings.Builder
	if e.code != "" {
		b.WriteString(e.code)
	}
	if e.status != 0 {
		sep := " ("
		if b.Len() == 0 {
			sep = "("
		}
		fmt.Fprintf(&b, "%sHTTP status %d", sep, e.status)
		if e.id != "" {
			fmt.Fprintf(&b, ", request ID %s", e.id)
		}
		b.WriteByte(')')
	}
	if e.text != "" {
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(e.text)
	}
	if e.sentinel != nil {
		fmt.Fprintf(&b, ": %s", e.sentinel)
	}
	return b.String()
}

// callError is what a call failed with, and what it was of.
type callError struct {
	op  string
	loc Location
	id  operation.ID // for which it was made
	err error
}

func (e *callError) Unwrap() error { return e.err }

func (e *callError) Error() string { return fmt.Sprintf("%s %q: %s", e.op, e.loc.uri(), e.err) }

// LogAttrs are what a log line of the error has beside its text: see package operation.
func (e *callError) LogAttrs() []slog.Attr {
	attrs := []slog.Attr{e.id.Attr(), slog.String("key", e.loc.uri())}
	var answer *storeError
	if errors.As(e.err, &answer) && answer.status != 0 {
		attrs = append(attrs, slog.Int("status", answer.status), slog.String("request_id", answer.id))
	}
	return attrs
}

func (loc Location) uri() string { return "s3://" + loc.Bucket + "/" + loc.Key }

// failS3 wraps err with the operation and the location; nil stays nil.
func failS3(op string, loc Location, err error) error {
	if err == nil {
		return nil
	}
	return &callError{op: op, loc: loc, err: err}
}

// failFor is failS3 of what was done for the operation that ctx names.
func failFor(ctx context.Context, op string, loc Location, err error) error {
	return &callError{op: op, loc: loc, id: operation.Of(ctx), err: err}
}

// answerOf is the store's answer in a failure: its HTTP status (0: none) and
// S3's code.
func answerOf(err error) (status int, code string) {
	var e *storeError
	if errors.As(err, &e) {
		return e.status, e.code
	}
	return 0, ""
}

// badAnswer is an answer that cannot be right, whatever the object is.
type badAnswer string

func (e badAnswer) Error() string { return string(e) }

// meaning tells what a code of S3 says: a sentinel, and whether it may go away
// by itself. What is not here goes by its status.
//
//nolint:revive,staticcheck // error-return: the error is the answer
func meaning(code string) (sentinel error, passing, ok bool) {
	switch code {
	case "NoSuchKey", "NotFound", "NoSuchVersion":
		return ErrNotExist, false, true
	case "NoSuchBucket":
		return ErrNoBucket, false, true
	case "AccessDenied", "AllAccessDisabled", "InvalidAccessKeyId", "XAdminUserNotFound", "SignatureDoesNotMatch", "InvalidToken",
		"ExpiredToken", "ExpiredTokenException", "RequestTimeTooSkewed", "InvalidObjectState":
		return ErrPermission, false, true
	case "PreconditionFailed":
		return ErrChanged, false, true
	case "KeyTooLongError", "InvalidBucketName":
		return ErrName, false, true
	case "EntityTooLarge":
		return ErrTooLarge, false, true
	case "QuotaExceeded", "InsufficientStorage", "XMinioStorageFull":
		return ErrNoSpace, false, true
	case "NotImplemented":
		return errors.ErrUnsupported, false, true
	case "NoSuchUpload": // a 404 that says nothing of the object
		return errNoUpload, false, true
	case "RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "Throttling", "ThrottlingException",
		"RequestLimitExceeded", "BadDigest", "IncompleteBody", "OperationAborted", "ConditionalRequestConflict":
		return ErrUnavailable, true, true
	}
	return nil, false, false
}

// meaningOfStatus is meaning for an answer without a code that is known.
//
//nolint:revive // error-return: the error is the answer
func meaningOfStatus(status int) (sentinel error, passing bool) {
	switch {
	case status == http.StatusNotFound:
		return ErrNotExist, false
	case status == http.StatusForbidden, status == http.StatusUnauthorized:
		return ErrPermission, false
	case status == http.StatusPreconditionFailed, status == http.StatusRequestedRangeNotSatisfiable:
		return ErrChanged, false
	case status == http.StatusRequestEntityTooLarge:
		return ErrTooLarge, false
	case status == http.StatusInsufficientStorage:
		return ErrNoSpace, false
	case status == http.StatusNotImplemented:
		return errors.ErrUnsupported, false
	case status < 300, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 500:
		return ErrUnavailable, true // under 300: an error in a body that began well, or no answer of S3's
	}
	return nil, false
}

// failure is what err of an attempt means.
func (a *attempt) failure(ctx context.Context, err error) *storeError {
	e := &storeError{status: a.status, id: printable(a.id)}
	var own *storeError
	var bad badAnswer
	var api smithy.APIError
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSlow), errors.Is(cause, errDeadline), errors.Is(cause, errStalled):
		return &storeError{sentinel: ErrUnavailable, text: cause.Error(), passing: true}
	case errors.As(err, &own):
		e.sentinel, e.passing, e.code, e.text = own.sentinel, own.passing, printable(own.code), own.text
		return e
	case errors.As(err, &bad):
		e.sentinel, e.passing, e.odd, e.text = ErrUnavailable, true, true, bad.Error()
		return e
	case a.start.IsZero():
		return unsent(err)
	case a.status == 0:
		return noAnswer(err)
	case errors.As(err, &api):
		e.code, e.text = printable(api.ErrorCode()), printable(api.ErrorMessage())
		if e.text == e.code || e.text == "UnknownError" {
			e.text = ""
		}
	default: // the answer is not S3's: HTML of a proxy, a body that was cut
		e.text = "not an answer of S3"
	}
	var known bool
	if e.sentinel, e.passing, known = meaning(e.code); !known {
		e.sentinel, e.passing = meaningOfStatus(e.status)
	}
	if a.html && a.status == http.StatusNotFound && e.code != "NoSuchKey" { // says nothing of the object
		e.sentinel, e.passing = ErrUnavailable, true
	}
	e.explain(a)
	return e
}

// of is the failure as an operation may take it. A listing is answered by 404 for
// want of the bucket alone, which has a code of its own, and a read names the key:
// any other 404 comes from something on the way, and says nothing of objects. What
// a part, and what completes an upload, does not find is the upload. A store that
// copies nothing may know no such method.
func (e *storeError) of(op string, head bool) *storeError {
	if op == "copy" && e.sentinel == nil && e.status == http.StatusMethodNotAllowed {
		e.sentinel = errors.ErrUnsupported
	}
	if !errors.Is(e.sentinel, ErrNotExist) || head {
		return e
	}
	if op == "list" || op == "read" && e.code != "NoSuchKey" && e.code != "NoSuchVersion" {
		e.sentinel, e.passing, e.odd = ErrUnavailable, true, true
	}
	if op == "part" || op == "complete" {
		e.sentinel = errNoUpload
	}
	return e
}

// advise adds the setting that helps a store which does not know what is asked.
func (s *S3) advise(op string, e *storeError) {
	if e.status != http.StatusNotImplemented || s.o.Checksum == "none" {
		return
	}
	switch op {
	case "put", "upload", "part":
		e.text = strings.TrimPrefix(e.text+"; if the store knows no checksums of objects, give --checksum none", "; ")
	}
}

// errNoUpload is [ErrNoUpload] as errors have it.
var errNoUpload = fmt.Errorf("%w: %w", ErrNoUpload, ErrUnavailable)

// noETag: an object that the store knows no version of, or no answer of S3's.
const noETag = badAnswer("an answer without ETag, by which one version of an object is told from another")

// explain adds what a user can do about it.
func (e *storeError) explain(a *attempt) {
	switch {
	case e.code == "InvalidObjectState":
		e.text = "the object is archived: restore it first (aws s3api restore-object)"
	case e.code == "NoSuchBucket":
		e.text = "" // the sentinel says it
	case e.code == "RequestTimeTooSkewed", errors.Is(e, ErrPermission) && skewed(a.skew):
		e.text = strings.TrimSuffix("the clock here is "+a.skew.Abs().Round(time.Second).String()+" off the store's; "+e.text, "; ")
	}
}

// skewed: the clocks differ by more than signatures allow for, nearly.
func skewed(d time.Duration) bool { return d.Abs() > 4*time.Minute }

// unsent is the failure of a request that was never made: there are no
// credentials, or what is asked is no request.
func unsent(err error) *storeError {
	var credentials *CredentialsError
	if errors.As(err, &credentials) {
		return &storeError{sentinel: credentials.sentinel(), text: credentials.Error(), passing: credentials.Passing}
	}
	return &storeError{sentinel: ErrPermission, text: "no request could be signed: " + printable(err.Error())}
}

// noAnswer is the failure of a request that nobody answered.
func noAnswer(err error) *storeError {
	// What the SDK puts before it names fields of an answer, which there is none of.
	var sent *smithyhttp.RequestSendError
	if errors.As(err, &sent) && sent.Err != nil {
		err = sent.Err
	}
	e := &storeError{sentinel: ErrUnavailable, text: printable(err.Error()), passing: true}
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	if errors.As(err, &cert) || errors.As(err, &dns) && dns.IsNotFound {
		e.passing = false // it would be the same in a minute
	}
	e.text += unknownAuthority(err)
	return e
}

// unknownAuthority is the remedy for a certificate that nobody known has signed; ""
// for other failures.
func unknownAuthority(err error) string {
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		return ""
	}
	return "; if the store has an authority of its own, name its certificates with --ca-bundle (or AWS_CA_BUNDLE)"
}

// maxErrorText is how much a store may say in an error, in bytes.
const maxErrorText = 300

// printable makes a text of the network fit for a terminal and a log line.
func printable(s string) string { return printableTo(maxErrorText, s) }

func printableTo(limit int, s string) string {
	if len(s) > limit {
		s = s[:limit] + "…"
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s), "?")
}
