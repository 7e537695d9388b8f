package faulty

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// CutBody closes the connection in the middle of an answer's body, whose full
// length was announced.
type CutBody struct{ After int64 } // bytes that arrive

// Apply cuts the answer.
func (f CutBody) Apply(x *Exchange, next Next) (*http.Response, error) {
	return after(x, next, f.After, func() error { return ErrClosed })
}

// StallBody sends the beginning of an answer's body, and the rest after Release.
type StallBody struct{ After int64 } // bytes that arrive before

// Apply stalls the answer.
func (f StallBody) Apply(x *Exchange, next Next) (*http.Response, error) {
	return after(x, next, f.After, x.hold)
}

// after has something happen when n bytes of an answer's body were sent.
func after(x *Exchange, next Next, n int64, happen func() error) (*http.Response, error) {
	resp, err := next()
	if err != nil {
		return nil, err
	}
	rest, first := resp.Body, io.LimitReader(resp.Body, n)
	resp.Body = body{rest, io.MultiReader(first, once(x.flush), once(happen), rest)}
	return resp, nil
}

// WrongLength leaves off the end of an answer's body and announces the length of
// what is left.
type WrongLength struct{ Short int64 } // bytes left off

// Apply shortens the answer.
func (f WrongLength) Apply(_ *Exchange, next Next) (*http.Response, error) {
	return resized(next, func(length int64, content io.Reader) (int64, io.Reader) {
		length = max(0, length-f.Short)
		return length, io.LimitReader(content, length)
	})
}

// ExtraBytes appends zeroes to an answer's body and announces them.
type ExtraBytes struct{ N int64 }

// Apply lengthens the answer.
func (f ExtraBytes) Apply(_ *Exchange, next Next) (*http.Response, error) {
	return resized(next, func(length int64, content io.Reader) (int64, io.Reader) {
		return length + f.N, io.MultiReader(content, io.LimitReader(zeroes{}, f.N))
	})
}

func resized(next Next, change func(int64, io.Reader) (int64, io.Reader)) (*http.Response, error) {
	resp, err := next()
	if err != nil {
		return nil, err
	}
	if resp.ContentLength < 0 {
		_ = resp.Body.Close() // in favour of the other error
		return nil, fmt.Errorf("%w: an answer of unknown length", ErrClosed)
	}
	length, content := change(resp.ContentLength, resp.Body)
	resp.Body = body{resp.Body, content}
	setLength(resp, length)
	return resp, nil
}

// Corrupt changes the first byte of an answer's body.
type Corrupt struct{}

// Apply changes the answer.
func (Corrupt) Apply(_ *Exchange, next Next) (*http.Response, error) {
	resp, err := next()
	if err != nil {
		return nil, err
	}
	done := false
	content := resp.Body
	resp.Body = body{content, readFunc(func(p []byte) (int, error) {
		n, err := content.Read(p)
		if n > 0 && !done {
			p[0] ^= 0xff
			done = true
		}
		return n, err
	})}
	return resp, nil
}

// FullForRange answers a ranged GET by 200 and the whole object.
type FullForRange struct{}

// Apply takes the range away.
func (FullForRange) Apply(x *Exchange, next Next) (*http.Response, error) {
	if err := x.Drop("Range"); err != nil {
		return nil, err
	}
	return next()
}

// WrongRange answers a ranged GET by another Content-Range.
type WrongRange struct{ Value string } // "bytes 0-9/10"; "": one byte further on

// Apply changes the header.
func (f WrongRange) Apply(_ *Exchange, next Next) (*http.Response, error) {
	resp, err := next()
	if err != nil || resp.StatusCode != http.StatusPartialContent {
		return resp, err
	}
	value := f.Value
	if value == "" {
		var first, last int64
		was := resp.Header.Get("Content-Range")
		if _, err := fmt.Sscanf(was, "bytes %d-%d/", &first, &last); err != nil {
			_ = resp.Body.Close() // in favour of the other error
			return nil, fmt.Errorf("%w: Content-Range %q: %w", ErrClosed, was, err)
		}
		value = fmt.Sprintf("bytes %d-%d/%s", first+1, last+1, was[strings.LastIndex(was, "/")+1:])
	}
	resp.Header.Set("Content-Range", value)
	return resp, nil
}

func setLength(resp *http.Response, length int64) {
	resp.ContentLength = length
	resp.Header.Set("Content-Length", strconv.FormatInt(length, 10))
}

// body is other content in place of a body, which it closes.
type body struct {
	io.Closer
	io.Reader
}

// readFunc is a Reader.
type readFunc func(p []byte) (int, error)

// Read calls the function.
func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// once is a Reader without content, that calls a function when it is reached.
func once(f func() error) io.Reader {
	return readFunc(func([]byte) (int, error) {
		if err := f(); err != nil {
			return 0, err
		}
		return 0, io.EOF
	})
}

// zeroes has no end.
type zeroes struct{}

// Read clears p.
func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
