package catalogview

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/lakefs-mount/lakefs-mount/internal/operation"
	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// said is a service that says the same to every request, or what say says to the nth.
type said struct {
	requests int
	keys     []string // the ids of the keys that signed
	say      func(n int, req *http.Request) (*http.Response, error)
}

func (s *said) RoundTrip(req *http.Request) (*http.Response, error) {
	s.requests++
	_, key, _ := strings.Cut(req.Header.Get("Authorization"), "Credential=")
	key, _, _ = strings.Cut(key, "/")
	s.keys = append(s.keys, key)
	return s.say(s.requests, req)
}

func reply(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"X-Amzn-Requestid": {"id-1"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func always(status int, body string) func(int, *http.Request) (*http.Response, error) {
	return func(int, *http.Request) (*http.Response, error) { return reply(status, body), nil }
}

const goodDatabase = `{"Database":{"Name":"sales"}}`

func glueThatSays(s *said, change ...func(*GlueOptions)) *Glue {
	o := GlueOptions{
		Config:   aws.Config{Credentials: credentials.NewStaticCredentialsProvider("access", "secret", "")},
		Endpoint: "http://catalog.invalid",
	}
	for _, c := range change {
		c(&o)
	}
	g := NewGlue(o)
	g.rt = s
	return g
}

// TestCase39_OnlyEntityNotFoundIsAbsence: each answer has its sentinel, its number
// of requests, and a message that tells operation, object, code and request id.
func TestCase39_OnlyEntityNotFoundIsAbsence(t *testing.T) {
	t.Parallel()
	failure := func(code string) string { return fmt.Sprintf(`{"__type":%q,"message":"because of it"}`, code) }
	const forever = -1
	for name, c := range map[string]struct {
		status   int
		body     string
		want     error // nil: none of the sentinels
		requests int
		text     string
	}{
		"not found":         {400, failure("EntityNotFoundException"), objectstore.ErrNotExist, 1, "EntityNotFoundException"},
		"name space":        {400, failure("com.amazonaws.glue#EntityNotFoundException"), objectstore.ErrNotExist, 1, "because of it"},
		"denied":            {400, failure("AccessDeniedException"), objectstore.ErrPermission, 1, "AccessDeniedException (HTTP status 400, request ID id-1): because of it"},
		"unknown key":       {400, failure("UnrecognizedClientException"), objectstore.ErrPermission, 2, ""},
		"bad signature":     {400, failure("InvalidSignatureException"), objectstore.ErrPermission, 3, ""},
		"expired":           {400, failure("ExpiredTokenException"), objectstore.ErrPermission, 4, ""},
		"no token":          {403, failure("MissingAuthenticationTokenException"), objectstore.ErrPermission, 1, ""},
		"forbidden page":    {403, "<html>", objectstore.ErrPermission, 1, ""},
		"invalid input":     {400, failure("InvalidInputException"), nil, 1, "InvalidInputException"},
		"key policy":        {400, failure("GlueEncryptionException"), nil, 1, "GlueEncryptionException"},
		"throttled":         {400, failure("ThrottlingException"), objectstore.ErrUnavailable, forever, "ThrottlingException"},
		"too many runs":     {400, failure("ConcurrentRunsExceededException"), objectstore.ErrUnavailable, forever, ""},
		"too many requests": {429, "", objectstore.ErrUnavailable, forever, ""},
		"service fails":     {500, failure("InternalServiceException"), objectstore.ErrUnavailable, glueServerAttempts, "InternalServiceException"},
		"page of a proxy":   {502, "<html>", objectstore.ErrUnavailable, glueServerAttempts, ""},
		"404 of a proxy":    {404, "<html>not found</html>", objectstore.ErrUnavailable, glueOddAttempts, ""},
		"redirect":          {301, "", objectstore.ErrUnavailable, glueOddAttempts, ""},
		"bad request":       {400, "no", objectstore.ErrUnavailable, glueOddAttempts, ""},
		"page with 200":     {200, "<html><body>sign in</body></html>", objectstore.ErrUnavailable, glueOddAttempts, "sign in"},
		"empty":             {200, "", objectstore.ErrUnavailable, glueOddAttempts, ""},
		"no content":        {204, "", objectstore.ErrUnavailable, glueOddAttempts, ""},
		"cut":               {200, goodDatabase[:20], objectstore.ErrUnavailable, glueOddAttempts, ""},
		"list":              {200, `[]`, objectstore.ErrUnavailable, glueOddAttempts, ""},
		"nothing in it":     {200, `{}`, objectstore.ErrUnavailable, glueOddAttempts, "no Database"},
		"null":              {200, `{"Database":null}`, objectstore.ErrUnavailable, glueOddAttempts, ""},
		"string":            {200, `{"Database":"sales"}`, objectstore.ErrUnavailable, glueOddAttempts, ""},
		"deep":              {200, `{"Database":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, objectstore.ErrUnavailable, 1, "deeper than 64"},
		"deep error":        {500, strings.Repeat("[", 1<<20), objectstore.ErrUnavailable, glueServerAttempts, ""},
		"another name":      {200, `{"Database":{"Name":"Sales"}}`, objectstore.ErrNotExist, 1, "Sales"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &said{say: always(c.status, c.body)} //nolint:bodyclose // who asks closes it
				_, err := glueThatSays(s).Database(t.Context(), "sales.json")
				wantSentinel(t, err, c.want)
				if c.requests == forever && s.requests < 9 || c.requests != forever && s.requests != c.requests {
					t.Errorf("%d requests, want %d; %v", s.requests, c.requests, err)
				}
				if status, code := GlueAnswer(err); c.want != objectstore.ErrNotExist && (status != c.status || code != "" && !strings.Contains(c.body, code) || code == "" && strings.Contains(c.body, "__type")) { //nolint:errorlint // a table's own value
					t.Errorf("answered %d %q, want %d of %s", status, code, c.status, c.body)
				}
				for _, part := range []string{"GetDatabase", `"sales.json"`, c.text} {
					if !strings.Contains(fmt.Sprint(err), part) {
						t.Errorf("%q does not tell %q", err, part)
					}
				}
			})
		})
	}
}

// wantSentinel checks that err is want, and none of the other sentinels.
func wantSentinel(t *testing.T, err, want error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, s := range []error{objectstore.ErrNotExist, objectstore.ErrPermission, objectstore.ErrUnavailable} {
		if errors.Is(err, s) != errors.Is(want, s) {
			t.Errorf("%v: errors.Is(%v) = %v", err, s, errors.Is(err, s))
		}
	}
}

// A body may have 32 MiB, compressed or not; the error of a larger one names the
// limit, and it is not asked for again.
func TestGlueBodyLimit(t *testing.T) {
	t.Parallel()
	body := func(size int) string {
		const head, tail = `{"Database":{"Name":"sales","Description":"`, `"}}`
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	compressed := func(body string) *http.Response {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := io.WriteString(z, body); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		resp := reply(200, b.String())
		resp.Header.Set("Content-Encoding", "gzip")
		return resp
	}
	unsized := func(body string) *http.Response {
		resp := reply(200, body)
		resp.ContentLength = -1
		return resp
	}
	for name, make := range map[string]func(string) *http.Response{
		"sized": func(s string) *http.Response { return reply(200, s) }, "unsized": unsized, "gzip": compressed,
	} {
		for _, over := range []int{0, 1} {
			if over == 0 && name == "unsized" {
				continue // nothing else than sized
			}
			s := &said{say: func(int, *http.Request) (*http.Response, error) { return make(body(maxGlueBody + over)), nil }}
			d, err := glueThatSays(s).Database(t.Context(), "sales")
			if over == 0 && (err != nil || d.Raw.Size < maxGlueBody) {
				t.Errorf("%s: 32 MiB: %v", name, err)
			}
			if over == 1 && (!errors.Is(err, objectstore.ErrUnavailable) || !strings.Contains(err.Error(), "32 MiB") || s.requests != 1) {
				t.Errorf("%s: 32 MiB and 1 byte: %v after %d requests", name, err, s.requests)
			}
		}
	}
}

func TestGlueBodyEncodings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, encoding := range []string{"gzip", "br"} { // which it is not
			s := &said{say: func(int, *http.Request) (*http.Response, error) {
				resp := reply(200, goodDatabase)
				resp.Header.Set("Content-Encoding", encoding)
				return resp, nil
			}}
			_, err := glueThatSays(s).Database(t.Context(), "sales")
			wantSentinel(t, err, objectstore.ErrUnavailable)
		}
	})
}

// Throttling, failures and lost connections pass, and each request is told of.
func TestGlueAsksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &said{say: func(n int, _ *http.Request) (*http.Response, error) {
			switch n {
			case 1, 2, 3:
				return reply(400, `{"__type":"ThrottlingException"}`), nil
			case 4:
				return nil, io.ErrUnexpectedEOF
			case 5:
				return reply(503, "<html>"), nil
			case 6:
				resp := reply(200, goodDatabase)
				resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(goodDatabase[:9]), failingReader{}))
				return resp, nil
			}
			return reply(200, goodDatabase), nil
		}}
		var told []GlueRequest
		g := glueThatSays(s, func(o *GlueOptions) { o.Observe = func(r GlueRequest) { told = append(told, r) } })
		if d, err := g.Database(t.Context(), "sales"); err != nil || d.Guessed {
			t.Fatal(err)
		}
		if len(told) != 7 || s.requests != 7 {
			t.Fatalf("%d of %d requests told of, want 7", len(told), s.requests)
		}
		for i, r := range told {
			if r.Operation != "GetDatabase" || r.Retry != (i > 0) || (r.Err == nil) != (i == 6) {
				t.Errorf("request %d: %+v", i, r)
			}
		}
	})
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A service that does not answer is given up in Timeout, not before a second try.
func TestGlueTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &said{say: func(_ int, req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}}
		start := time.Now()
		_, err := glueThatSays(s, func(o *GlueOptions) { o.Timeout = 10 * time.Second }).Database(t.Context(), "sales")
		wantSentinel(t, err, objectstore.ErrUnavailable)
		if status, code := GlueAnswer(err); status != 0 || code != "" {
			t.Errorf("no answer is %d %q", status, code)
		}
		if took := time.Since(start); took > 10*time.Second || s.requests != 2 {
			t.Errorf("given up after %s and %d requests", took, s.requests)
		}
	})
}

// A caller that leaves waits for nothing more: neither an answer nor a pause.
func TestGlueCancelled(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func(int, *http.Request) (*http.Response, error){
		"answer": func(_ int, req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		},
		"pause": always(400, `{"__type":"ThrottlingException"}`), //nolint:bodyclose // who asks closes it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(5*time.Second, cancel)
				start := time.Now()
				_, err := glueThatSays(&said{say: say}).Database(ctx, "sales")
				if took := time.Since(start); !errors.Is(err, context.Canceled) || errors.Is(err, objectstore.ErrUnavailable) || took != 5*time.Second {
					t.Errorf("got %v after %s", err, took)
				}
			})
		})
	}
}

// What is denied is guessed, but for names of entries.
func TestGlueGuessesDeniedDatabase(t *testing.T) {
	t.Parallel()
	s := &said{say: always(400, `{"__type":"AccessDeniedException"}`)} //nolint:bodyclose // who asks closes it
	g := glueThatSays(s)
	d, err := g.Database(t.Context(), `a"b<c`)
	want := "{\n  \"Database\": {\n    \"Name\": \"a\\\"b<c\"\n  }\n}\n"
	if err != nil || !d.Guessed || d.Name != `a"b<c` || string(d.Raw.Bytes) != want {
		t.Errorf("got %+v, %v: %s", d, err, d.Raw.Bytes)
	}
	_, err = g.Database(t.Context(), "sales.json")
	wantSentinel(t, err, objectstore.ErrPermission)
}

// Names that no entry can have cost no request.
func TestGlueNames(t *testing.T) {
	t.Parallel()
	s := &said{say: always(200, `{"Table":{"Name":"x"}}`)} //nolint:bodyclose // who asks closes it
	g := glueThatSays(s)
	for _, name := range []string{"", ".", "..", "a/b", "a\x00", "a\nb", "caf\xe9", strings.Repeat("x", 256)} {
		if _, err := g.Database(t.Context(), name); !errors.Is(err, objectstore.ErrNotExist) {
			t.Errorf("Database(%q): %v", name, err)
		}
		for _, pair := range [][2]string{{"sales", name}, {name, "orders"}} {
			if _, _, err := g.Table(t.Context(), pair[0], pair[1], ""); !errors.Is(err, objectstore.ErrNotExist) {
				t.Errorf("Table(%q): %v", pair, err)
			}
		}
		for info, err := range g.Tables(t.Context(), name) {
			t.Errorf("Tables(%q): %+v, %v", name, info, err)
		}
	}
	if s.requests != 0 {
		t.Errorf("%d requests", s.requests)
	}
}

// A failed call tells, beside its text, for which operation it was made, and what the
// service calls it.
func TestAFailedGlueCallTellsItsOperation(t *testing.T) {
	t.Parallel()
	ctx := operation.NewIDs().New(t.Context())
	g := glueThatSays(&said{say: always(http.StatusBadRequest, `{"__type":"GlueEncryptionException"}`)}) //nolint:bodyclose // who asks closes it
	_, err := g.Database(ctx, "sales")
	var got []string
	for _, a := range operation.Attrs(fmt.Errorf("list: %w", err)) {
		got = append(got, a.String())
	}
	if want := []string{operation.Of(ctx).Attr().String(), "object=sales", "status=400", "request_id=id-1"}; !slices.Equal(got, want) {
		t.Errorf("attributes are %q, want %q (%v)", got, want, err)
	}
}

// away is a provider that has no credentials when it is first asked.
type away struct{ asked int }

func (a *away) Retrieve(context.Context) (aws.Credentials, error) {
	if a.asked++; a.asked == 1 {
		return aws.Credentials{}, &objectstore.CredentialsError{Text: "later", Passing: true, Err: io.EOF}
	}
	return aws.Credentials{AccessKeyID: "access", SecretAccessKey: "secret"}, nil
}

// Calls wait for credentials that may come, as for the service.
func TestGlueWaitsForCredentials(t *testing.T) {
	t.Parallel()
	a := &away{}
	g := glueThatSays(&said{say: always(200, goodDatabase)}, func(o *GlueOptions) { o.Config.Credentials = a }) //nolint:bodyclose // who asks closes it
	if _, err := g.Database(t.Context(), "sales"); err != nil || a.asked < 2 {
		t.Errorf("%v, credentials asked for %d times", err, a.asked)
	}
}
