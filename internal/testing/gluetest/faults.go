package gluetest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Error answers an error in place of the catalog, which never learns of the request.
func Error(status int, code, message string) Fault {
	return func(*Exchange, Next) (Answer, error) {
		return answer(nil, &Failure{Status: status, Code: code, Message: message}), nil
	}
}

// Throttle answers that there were too many requests.
func Throttle() Fault {
	return Error(http.StatusBadRequest, "ThrottlingException", "Rate exceeded")
}

// Denied answers that the caller may not.
func Denied() Fault {
	return Error(http.StatusBadRequest, "AccessDeniedException", "User is not authorized to perform this action on the resource")
}

// HTML answers a page, as a load balancer or a proxy does.
func HTML(status int) Fault {
	page := fmt.Sprintf("<html><body><h1>%d %s</h1></body></html>\n", status, http.StatusText(status))
	return Body(status, "text/html", page)
}

// Body answers these bytes in place of the catalog.
func Body(status int, mediaType, body string) Fault {
	return func(*Exchange, Next) (Answer, error) {
		return Answer{Status: status, Header: http.Header{"Content-Type": {mediaType}}, Body: []byte(body)}, nil
	}
}

// Edit changes the body of a good answer.
func Edit(change func(body []byte) []byte) Fault {
	return good(func(_ *Exchange, a *Answer) { a.Body = change(slices.Clone(a.Body)) })
}

// good changes an answer that is no error.
func good(change func(*Exchange, *Answer)) Fault {
	return func(x *Exchange, next Next) (Answer, error) {
		a, err := next()
		if err == nil && a.Status == http.StatusOK {
			change(x, &a)
		}
		return a, err
	}
}

// CutBody sends so many bytes of the answer, and closes the connection.
func CutBody(after int) Fault {
	return func(_ *Exchange, next Next) (Answer, error) {
		a, err := next()
		if err == nil && after < len(a.Body) {
			a.Header.Set("Content-Length", strconv.Itoa(len(a.Body)))
			a.Body = a.Body[:after]
		}
		return a, err
	}
}

// Hang does not answer until Release, the end of the server, or until the client
// leaves. The catalog learns of the request at the release.
func Hang() Fault {
	return func(x *Exchange, next Next) (Answer, error) {
		if err := x.hold(); err != nil {
			return Answer{}, err
		}
		return next()
	}
}

// HangAnswer is Hang of the answer: the request takes effect at once.
func HangAnswer() Fault {
	return func(x *Exchange, next Next) (Answer, error) {
		a, err := next()
		if err == nil {
			err = x.hold()
		}
		return a, err
	}
}

// Delay answers so much later.
func Delay(d time.Duration) Fault {
	return func(x *Exchange, next Next) (Answer, error) {
		if err := x.pause(d); err != nil {
			return Answer{}, err
		}
		return next()
	}
}

// LoseAnswer lets the request take effect, and closes the connection in place of
// the answer.
func LoseAnswer() Fault {
	return func(_ *Exchange, next Next) (Answer, error) {
		_, _ = next() // it is lost
		return Answer{}, ErrClosed
	}
}

// LoseRequest closes the connection; the catalog never learns of the request.
func LoseRequest() Fault {
	return func(*Exchange, Next) (Answer, error) { return Answer{}, ErrClosed }
}

// EmptyPage answers a page of a listing that has no entries and a token, which
// goes on where this request was to begin.
func EmptyPage() Fault {
	return good(func(x *Exchange, a *Answer) {
		a.Body = object{{listField(x.Call.Op), []byte("[]")}, {"NextToken", quote(x.Call.here())}}.raw()
	})
}

// RepeatToken gives each page of a listing the token that asked for it: a listing
// that follows it comes to the same page for ever.
func RepeatToken() Fault {
	return good(func(x *Exchange, a *Answer) {
		o, err := parse(a.Body)
		if err != nil {
			return // another fault's
		}
		o.set("NextToken", quote(x.Call.here()))
		a.Body = o.raw()
	})
}

// Gzip compresses the answer, asked or not.
func Gzip() Fault {
	return func(_ *Exchange, next Next) (Answer, error) {
		a, err := next()
		if err != nil {
			return a, err
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(a.Body) // a Buffer takes all
		_ = z.Close()          // likewise
		a.Body = b.Bytes()
		a.Header.Set("Content-Encoding", "gzip")
		return a, nil
	}
}

// listField is where a listing has its entries.
func listField(op string) string {
	switch op {
	case "GetDatabases":
		return "DatabaseList"
	case "GetTables":
		return "TableList"
	}
	return "Partitions"
}
