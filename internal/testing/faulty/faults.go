package faulty

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Status answers in place of the store, which never learns of the request.
type Status struct {
	Code    int         // of HTTP
	S3Code  string      // "SlowDown"
	Message string      // of the error
	HTML    bool        // a page, as a load balancer answers, and no XML
	Header  http.Header // further headers
}

// Apply answers.
func (f Status) Apply(x *Exchange, _ Next) (*http.Response, error) {
	if err := x.drain(); err != nil {
		return nil, err
	}
	if f.HTML {
		page := fmt.Sprintf("<html><body><h1>%d %s</h1></body></html>\n", f.Code, http.StatusText(f.Code))
		return Answer(x, f.Code, with(f.Header, "Content-Type", "text/html"), page), nil
	}
	return Answer(x, f.Code, with(f.Header, "Content-Type", "application/xml"), errorXML(f.S3Code, f.Message)), nil
}

// OK200Error answers 200 with an error as its body, as S3 may do to copies and to
// the completion of an upload. The store never learns of the request.
type OK200Error struct{ S3Code, Message string }

// Apply answers.
func (f OK200Error) Apply(x *Exchange, _ Next) (*http.Response, error) {
	return Status{Code: http.StatusOK, S3Code: f.S3Code, Message: f.Message}.Apply(x, nil)
}

// Archived refuses GETs as S3 does of an object in Glacier; HEAD tells the class.
type Archived struct{}

// Apply refuses, or adds the header.
func (Archived) Apply(x *Exchange, next Next) (*http.Response, error) {
	if x.Request.Op == "GetObject" {
		return Status{Code: http.StatusForbidden, S3Code: "InvalidObjectState", Message: "The operation is not valid for the object's storage class"}.Apply(x, next)
	}
	resp, err := next()
	if err == nil && x.Request.Op == "HeadObject" {
		resp.Header.Set("X-Amz-Storage-Class", "GLACIER")
	}
	return resp, err
}

// RejectTrailer refuses bodies with checksum trailers or in signed chunks, as
// older stores do.
type RejectTrailer struct{}

// Apply refuses, or passes on.
func (RejectTrailer) Apply(x *Exchange, next Next) (*http.Response, error) {
	h := x.Request.Header
	if strings.Contains(h.Get("Content-Encoding"), "aws-chunked") || h.Get("X-Amz-Trailer") != "" ||
		strings.HasPrefix(h.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return Status{Code: http.StatusBadRequest, S3Code: "InvalidArgument", Message: "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, or a valid sha256 value."}.Apply(x, next)
	}
	return next()
}

// NeedMD5 refuses DeleteObjects without Content-MD5, as older stores do.
type NeedMD5 struct{}

// Apply refuses, or passes on.
func (NeedMD5) Apply(x *Exchange, next Next) (*http.Response, error) {
	if x.Request.Op == "DeleteObjects" && x.Request.Header.Get("Content-Md5") == "" {
		return Status{Code: http.StatusBadRequest, S3Code: "MissingContentMD5", Message: "Missing required header for this request: Content-Md5"}.Apply(x, next)
	}
	return next()
}

// Redirect answers requests that are signed for another region as S3 does: 301,
// and the region in a header.
type Redirect struct{ Region string }

// Apply answers, or passes on.
func (f Redirect) Apply(x *Exchange, next Next) (*http.Response, error) {
	if strings.Contains(x.Request.Header.Get("Authorization"), "/"+f.Region+"/s3/aws4_request") {
		return next()
	}
	return Status{
		Code: http.StatusMovedPermanently, S3Code: "PermanentRedirect",
		Message: "The bucket you are attempting to access must be addressed using the specified endpoint.",
		Header:  http.Header{"X-Amz-Bucket-Region": {f.Region}},
	}.Apply(x, next)
}

// Hang takes the request and does not answer until Release, or until the client
// leaves. The request goes on to the store at the release. A client that leaves
// before its request's body was read is not noticed until then.
type Hang struct {
	Answer bool // pass the request on at once, and hold its answer back
}

// Apply holds the request.
func (f Hang) Apply(x *Exchange, next Next) (*http.Response, error) {
	if !f.Answer {
		if err := x.hold(); err != nil {
			return nil, err
		}
		return next()
	}
	x.detached = true
	resp, err := next()
	if err != nil {
		return nil, err
	}
	if err := x.hold(); err != nil {
		_ = resp.Body.Close() // nobody is there to read it
		return nil, err
	}
	return resp, nil
}

// Delay lets the answer begin no sooner than so long after the request's end.
type Delay struct{ FirstByte time.Duration }

// Apply delays the answer.
func (f Delay) Apply(x *Exchange, next Next) (*http.Response, error) {
	resp, err := next()
	if err != nil {
		return nil, err
	}
	if err := pause(x.gone, x.sinceRequest(f.FirstByte)); err != nil {
		_ = resp.Body.Close() // nobody is there to read it
		return nil, err
	}
	return resp, nil
}

// LoseAnswer passes the request on, which takes effect, and closes the connection
// in place of the answer. The effect is there when the connection closes.
type LoseAnswer struct{}

// Apply loses the answer.
func (LoseAnswer) Apply(x *Exchange, next Next) (*http.Response, error) {
	x.detached = true
	resp, err := next()
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if closed := resp.Body.Close(); err != nil || closed != nil {
		return nil, fmt.Errorf("%w: the store broke off", ErrClosed)
	}
	return nil, ErrClosed
}

// LoseAnswerBefore reads the request and closes the connection; the store never
// learns of it.
type LoseAnswerBefore struct{}

// Apply closes the connection.
func (LoseAnswerBefore) Apply(x *Exchange, _ Next) (*http.Response, error) {
	if err := x.drain(); err != nil {
		return nil, err
	}
	return nil, ErrClosed
}

// Refuse resets the connection as soon as the request's header is read. See
// [Proxy.Down] for connections that are refused altogether.
type Refuse struct{}

// Apply resets the connection.
func (Refuse) Apply(*Exchange, Next) (*http.Response, error) { return nil, ErrReset }

// StripConditions makes the store one that ignores conditions: If-Match,
// If-None-Match and those of copies never reach it.
type StripConditions struct{}

// Apply takes the conditions away.
func (StripConditions) Apply(x *Exchange, next Next) (*http.Response, error) {
	err := x.Drop("If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
		"X-Amz-Copy-Source-If-Match", "X-Amz-Copy-Source-If-None-Match",
		"X-Amz-Copy-Source-If-Modified-Since", "X-Amz-Copy-Source-If-Unmodified-Since")
	if err != nil {
		return nil, err
	}
	return next()
}

// Answer is an answer in place of the store's, for a Func.
func Answer(x *Exchange, code int, header http.Header, body string) *http.Response {
	h := with(header, "Content-Length", strconv.Itoa(len(body)))
	if x.HTTP.Method == http.MethodHead {
		body = ""
	}
	return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// with is a copy of a header that has a further value, unless it has it already.
func with(header http.Header, name, value string) http.Header {
	h := header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if h.Get(name) == "" {
		h.Set(name, value)
	}
	return h
}

func errorXML(code, message string) string {
	var b bytes.Buffer
	b.WriteString(xml.Header + "<Error><Code>")
	_ = xml.EscapeText(&b, []byte(code)) // a Buffer takes all
	b.WriteString("</Code><Message>")
	_ = xml.EscapeText(&b, []byte(message)) // likewise
	b.WriteString("</Message><RequestId>faulty</RequestId></Error>")
	return b.String()
}
