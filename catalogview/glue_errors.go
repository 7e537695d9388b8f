package catalogview

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"unicode"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// glueError is a failure that the service answered with, or that kept it from
// answering. What the SDK and the network said is in its text alone: an errno
// that is wrapped would be a sentinel to errors.Is that says nothing of the entry.
type glueError struct {
	sentinel error // nil: the failure has no meaning of its own
	status   int   // HTTP status; 0: no answer
	code     string
	id       string // the service's request id
	text     string
	passing  bool  // may go away by itself
	attempts int   // how many are made at most; 0: as time allows
	cause    error // errGlueBody, errGlueDepth or nil
}

func (e *glueError) Unwrap() []error {
	var all []error
	for _, err := range []error{e.sentinel, e.cause} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

func (e *glueError) Error() string {
	var parts []string
	head := e.code
	if e.status != 0 {
		answer := fmt.Sprintf("HTTP status %d", e.status)
		if e.id != "" {
			answer += ", request ID " + e.id
		}
		head = strings.TrimPrefix(head+" ("+answer+")", " ")
	}
	for _, s := range []string{head, e.text, e.meaning()} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// meaning is the sentinel in words that fit a catalog.
func (e *glueError) meaning() string {
	switch {
	case e.sentinel == nil:
		return ""
	case errors.Is(e.sentinel, objectstore.ErrUnavailable):
		return "catalog unavailable"
	}
	return e.sentinel.Error()
}

// How often is tried what may be so for good.
const (
	glueServerAttempts  = 8 // 5xx: some eight seconds
	glueOddAttempts     = 4 // answers that can not be right
	glueExpiredAttempts = 4 // who hands credentials out may be late
)

// codeMeaning tells what a code of the service says.
//
//nolint:revive,staticcheck // error-return: the error is the answer
func codeMeaning(code string) (sentinel error, passing, ok bool) {
	switch code {
	case "EntityNotFoundException":
		return objectstore.ErrNotExist, false, true
	case "AccessDeniedException", "AccessDenied", "UnauthorizedException", "NotAuthorized", "OptInRequired",
		"UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "SignatureDoesNotMatch",
		"IncompleteSignature", "IncompleteSignatureException", "MissingAuthenticationToken",
		"MissingAuthenticationTokenException", "ExpiredToken", "ExpiredTokenException", "RequestExpired", "RequestTimeTooSkewed":
		return objectstore.ErrPermission, false, true
	case "ThrottlingException", "Throttling", "ThrottledException", "TooManyRequestsException", "RequestThrottled",
		"RequestThrottledException", "RequestLimitExceeded", "ConcurrentRunsExceededException", "ConcurrentRunsExceeded",
		"ProvisionedThroughputExceededException", "SlowDown", "BandwidthLimitExceeded", "OperationTimeoutException",
		"ServiceUnavailable", "ServiceUnavailableException", "ConcurrentModificationException",
		"FederationSourceRetryableException", "RequestTimeout", "RequestTimeoutException":
		return objectstore.ErrUnavailable, true, true
	}
	return nil, false, false
}

// glueFailure is what the error of an attempt, or of reading its answer, means.
func glueFailure(ctx context.Context, x *exchange, err error) *glueError {
	e := &glueError{status: x.status, id: printable(x.id)}
	var own *glueError
	var odd oddAnswer
	var credentials *objectstore.CredentialsError
	switch {
	case errors.As(err, &own): // an error inside a success
		own.status, own.id = e.status, e.id
		return own
	case errors.Is(err, errGlueBody), errors.Is(err, errGlueDepth): // it would be the same again
		e.sentinel, e.text, e.cause = objectstore.ErrUnavailable, "", errGlueBody
		if errors.Is(err, errGlueDepth) {
			e.cause = errGlueDepth
		}
		e.text = e.cause.Error()
	case errors.As(err, &odd):
		e.odd(odd.Error())
	case ctx.Err() != nil:
		e.sentinel, e.passing, e.text = objectstore.ErrUnavailable, true, "no answer in time"
	case x.start.IsZero() && errors.As(err, &credentials):
		e.sentinel, e.text = objectstore.ErrPermission, credentials.Error()
		if e.passing = credentials.Passing; e.passing {
			e.sentinel = objectstore.ErrUnavailable
		}
	case x.start.IsZero(): // there are no credentials, or what is asked is no request
		e.sentinel, e.text = objectstore.ErrPermission, "no request could be signed: "+printable(err.Error())
	case x.status == 0:
		e.unanswered(err)
	case x.success():
		e.odd("not an answer of the catalog: " + printable(err.Error()))
	default:
		e.answered(x)
	}
	return e
}

func (e *glueError) odd(text string) {
	e.sentinel, e.passing, e.attempts, e.text = objectstore.ErrUnavailable, true, glueOddAttempts, text
}

// unanswered is the failure of a request that nobody answered.
func (e *glueError) unanswered(err error) {
	e.sentinel, e.passing, e.text = objectstore.ErrUnavailable, true, printable(err.Error())
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	if errors.As(err, &cert) || errors.As(err, &dns) && dns.IsNotFound {
		e.passing = false // it would be the same in a minute
	}
}

// answered is the failure that an error status tells.
func (e *glueError) answered(x *exchange) {
	e.code, e.text = glueErrorOf(x)
	var known bool
	if e.sentinel, e.passing, known = codeMeaning(e.code); known {
		return
	}
	switch {
	case x.status == http.StatusTooManyRequests, x.status == http.StatusRequestTimeout:
		e.sentinel, e.passing = objectstore.ErrUnavailable, true
	case x.status >= 500, e.code == "InternalServiceException", e.code == "InternalFailure":
		e.sentinel, e.passing, e.attempts = objectstore.ErrUnavailable, true, glueServerAttempts
	case x.status == http.StatusForbidden, x.status == http.StatusUnauthorized:
		e.sentinel = objectstore.ErrPermission
	case e.code == "": // a page of some program on the way, a redirect
		e.odd("not an answer of the catalog")
	}
}

// otherVersion has the answer to a call of one version say what it says of it.
func (e *glueError) otherVersion() {
	if e.code == "ConcurrentModificationException" || e.code == "VersionMismatchException" {
		e.sentinel, e.passing = objectstore.ErrChanged, false
	}
}

// glueErrorOf reads an error's code and message.
func glueErrorOf(x *exchange) (code, text string) {
	code = x.code
	if checkGlueJSON(x.body) == nil {
		for _, name := range []string{"__type", "code", "Code"} {
			if code == "" {
				code = jsonText(member(x.body, name))
			}
		}
		text = jsonText(member(x.body, "message"))
		if text == "" {
			text = jsonText(member(x.body, "Message"))
		}
	}
	code, _, _ = strings.Cut(code, ":") // a header's: NAME:URL
	if _, name, ok := strings.Cut(code, "#"); ok {
		code = name // a body's: NAMESPACE#NAME
	}
	return printable(code), printable(text)
}

// accessDenied: the service knows who asks, and says no.
func accessDenied(err error) bool {
	var e *glueError
	return errors.As(err, &e) && (e.code == "AccessDeniedException" || e.code == "AccessDenied")
}

// staleGlueCredentials: new ones may help.
func staleGlueCredentials(e *glueError) bool {
	switch e.code {
	case "UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException":
		return true
	}
	return expiredGlueCredentials(e)
}

// skewedGlueClock: the signature may be of another time than the service's.
func skewedGlueClock(e *glueError) bool {
	switch e.code {
	case "InvalidSignatureException", "SignatureDoesNotMatch", "RequestExpired", "RequestTimeTooSkewed":
		return true
	}
	return false
}

func expiredGlueCredentials(e *glueError) bool {
	return e.code == "ExpiredToken" || e.code == "ExpiredTokenException"
}

// maxGlueText is how much a service may say in an error, in bytes.
const maxGlueText = 300

// printable makes a text of the network fit for a terminal and a log line.
func printable(s string) string {
	if len(s) > maxGlueText {
		s = s[:maxGlueText] + "…"
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s), "?")
}
