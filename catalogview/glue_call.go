package catalogview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/glue"

	"github.com/lakefs-mount/lakefs-mount/internal/operation"
	"github.com/lakefs-mount/lakefs-mount/internal/pause"
)

// glueCall is one call of the catalog, which may take several requests.
type glueCall struct {
	op    string // "GetTable"
	about string // what it is asked of
	// versioned: it names the version that it is of, and a concurrent modification says
	// that the catalog has another.
	versioned bool
	id        operation.ID // for which it is made
}

func (c glueCall) fail(err error) error { return &glueCallError{c, err} }

// glueCallError is what a call failed with.
type glueCallError struct {
	call glueCall
	err  error
}

func (e *glueCallError) Unwrap() error { return e.err }

func (e *glueCallError) Error() string {
	return fmt.Sprintf("%s %q: %s", e.call.op, e.call.about, e.err)
}

// LogAttrs are what a log line of the error has beside its text: see package operation.
func (e *glueCallError) LogAttrs() []slog.Attr {
	attrs := []slog.Attr{e.call.id.Attr(), slog.String("object", e.call.about)}
	var answer *glueError
	if errors.As(e.err, &answer) && answer.status != 0 {
		attrs = append(attrs, slog.Int("status", answer.status), slog.String("request_id", answer.id))
	}
	return attrs
}

// askGlue makes the request that send makes until it is answered with what read
// takes, or fails for good. read gets a body that is a JSON object; its oddAnswer
// counts as a failure of the request. The error has operation, object and
// sentinel; that of a ctx that is done is ctx's.
//
// It retries itself: the SDK's retries end with an error that tells of the time
// that ran out alone, know nothing of a body that only askGlue reads, and keep
// signing with a secret that was replaced.
func askGlue[T any](
	ctx context.Context, g *Glue, c glueCall,
	send func(context.Context, *glue.Client) error, read func(body []byte) (T, error),
) (T, error) {
	c.id = operation.Of(ctx)
	r := glueRetrier{g: g, deadline: time.Now().Add(g.o.Timeout)}
	for {
		out, err := glueAttempt(ctx, &r, c, send, read)
		if err == nil {
			return out, nil
		}
		if ctx.Err() != nil {
			return out, c.fail(ctx.Err())
		}
		wait, again := r.next(err)
		if !again {
			return out, c.fail(err)
		}
		g.log.DebugContext(ctx, "catalog asked again", slog.String("operation", c.op), slog.String("object", c.about),
			slog.Any("err", err), slog.Duration("wait", wait))
		if err := pause.For(ctx, wait); err != nil {
			return out, c.fail(err)
		}
	}
}

// glueAttempt is one request of a call's.
func glueAttempt[T any](
	ctx context.Context, r *glueRetrier, c glueCall,
	send func(context.Context, *glue.Client) error, read func(body []byte) (T, error),
) (T, error) {
	var out T
	r.attempts++
	// Half the time at most, so that there is some for another.
	actx, x, cancel := withExchange(ctx, min(time.Until(r.deadline), r.g.o.Timeout/2))
	defer cancel()
	err := send(actx, r.g.client())
	if err == nil {
		err = checkGlueJSON(x.body)
	}
	if err == nil {
		out, err = read(x.body)
	}
	if err != nil {
		failure := glueFailure(actx, x, err)
		if c.versioned {
			failure.otherVersion()
		}
		err = failure
	}
	r.observe(ctx, c, x, err)
	return out, err
}

// observe tells of a request, if one was made.
func (r *glueRetrier) observe(ctx context.Context, c glueCall, x *exchange, err error) {
	if x.start.IsZero() {
		return
	}
	if r.g.log.Enabled(ctx, slog.LevelDebug) {
		r.g.log.LogAttrs(ctx, slog.LevelDebug, "catalog request", slog.String("operation", c.op), slog.String("object", c.about),
			slog.Int("status", x.status), slog.String("request_id", printable(x.id)), slog.Duration("took", x.elapsed))
	}
	if r.g.o.Observe != nil {
		r.g.o.Observe(GlueRequest{Operation: c.op, Elapsed: x.elapsed, Err: err, Retry: r.attempts > 1})
	}
}

// glueRetrier decides what becomes of one call's failures.
type glueRetrier struct {
	g         *Glue
	deadline  time.Time
	attempts  int
	pauses    int
	resigned  bool
	refreshed bool
}

// next tells whether a failed attempt is followed by another, and after what time.
func (r *glueRetrier) next(err error) (time.Duration, bool) {
	var e *glueError
	if !errors.As(err, &e) {
		return 0, false
	}
	if skewedGlueClock(e) && !r.resigned {
		// The client has taken the time from the answer, and signs the next with it.
		r.resigned = true
		return 0, time.Now().Before(r.deadline)
	}
	if staleGlueCredentials(e) {
		r.g.RefreshCredentials()
		if !r.refreshed {
			r.refreshed = true
			return 0, time.Now().Before(r.deadline)
		}
		if !expiredGlueCredentials(e) || r.attempts >= glueExpiredAttempts {
			return 0, false
		}
	} else if !e.passing || e.attempts > 0 && r.attempts >= e.attempts {
		return 0, false
	}
	wait := glueBackoff(r.pauses)
	r.pauses++
	return wait, time.Now().Add(wait).Before(r.deadline)
}

// glueBackoff is the pause after n others: twice the last, half of it by chance.
func glueBackoff(n int) time.Duration {
	const first, most = 100 * time.Millisecond, 10 * time.Second
	d := min(first<<min(n, 16), most)
	return d/2 + rand.N(d/2+1)
}
