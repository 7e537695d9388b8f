package objectstore

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lakefs-mount/lakefs-mount/internal/pause"
)

// call is one call of S3's, which may take several requests.
type call struct {
	op  string // as S3Request.Operation
	loc Location
	// quick: a first-byte limit holds. For requests that may be asked twice at once.
	quick bool
	// streams: the body of the answer outlives the call. Closing it frees all.
	streams bool
	// moves: bytes that come or go extend the time. Without it Timeout bounds the
	// call as a whole; with it, the wait for the next byte, and all retries.
	moves     bool
	copies    int64 // bytes that the store moves by itself, in silence, before it answers
	again     bool  // it goes on with what an earlier call was cut in
	forRegion bool  // it asks for the bucket's region
	// until ends the call earlier than Timeout would; zero: no.
	until time.Time
}

// do makes the request that send makes, until it succeeds or fails for good. send
// is called once for each request, one after another, and returns the SDK's
// error as it is (or a badAnswer). The error of do has operation, location and
// sentinel; that of a ctx that is done is ctx's.
func do[T any](ctx context.Context, s *S3, c call, send func(context.Context, access) (T, error)) (T, error) {
	var zero T
	r := newRetrier(s, c)
	for {
		if err := ctx.Err(); err != nil {
			return zero, failFor(ctx, c.op, c.loc, err)
		}
		acc, err := s.access(c.loc.Bucket)
		if err != nil {
			return zero, failFor(ctx, c.op, c.loc, err)
		}
		actx, a := r.begin(ctx)
		out, err := send(actx, acc)
		if err == nil {
			s.observe(ctx, c, a, r.attempts, nil)
			a.settle()
			return out, nil
		}
		e := a.failure(actx, err).of(c.op, a.head)
		s.advise(c.op, e)
		if a.region != "" && a.elsewhere(acc, e) {
			e.text = "the bucket is in region " + printable(a.region) + ", not " + acc.region
		}
		a.end()
		if err = ctx.Err(); err != nil {
			err = failFor(ctx, c.op, c.loc, err)
			s.observe(ctx, c, a, r.attempts, err)
			return zero, err
		}
		err = failFor(ctx, c.op, c.loc, e)
		s.observe(ctx, c, a, r.attempts, err)
		wait, again := r.next(ctx, acc, a, e)
		if !again {
			return zero, err
		}
		s.log.DebugContext(ctx, "store asked again", slog.String("operation", c.op), slog.Any("err", err),
			slog.Duration("wait", wait))
		if err := pause.For(ctx, wait); err != nil {
			return zero, failFor(ctx, c.op, c.loc, err)
		}
	}
}

// observe tells of a request, if one was made.
func (s *S3) observe(ctx context.Context, c call, a *attempt, attempts int, err error) {
	if a.start.IsZero() {
		return
	}
	if s.log.Enabled(ctx, slog.LevelDebug) {
		s.log.LogAttrs(ctx, slog.LevelDebug, "store request", slog.String("operation", c.op), slog.String("key", c.loc.uri()),
			slog.Int("status", a.status), slog.String("request_id", printable(a.id)), slog.Duration("took", a.elapsed))
	}
	if a.status != 0 && a.status < 500 {
		s.latency.add(c.op, a.elapsed)
	}
	if s.o.Observe == nil {
		return
	}
	s.o.Observe(S3Request{
		Operation: c.op, Retry: attempts > 1 || c.again, Status: a.status, Err: err,
		Elapsed: a.elapsed, Bytes: a.bytes.Load(), ID: a.id,
	})
}

// retrier decides what becomes of one call's failures.
type retrier struct {
	s        *S3
	c        call
	deadline time.Time // zero: not before the first failure
	attempts int
	pauses   int
	spent    []remedy
	fresh    bool
}

// remedy is what is done about a failure at once, without a pause.
type remedy int

const (
	remedySlow remedy = iota
	remedyRegion
	remedyCredentials
	remedyClock
)

func newRetrier(s *S3, c call) *retrier {
	r := &retrier{s: s, c: c}
	if !c.moves {
		r.deadline = time.Now().Add(s.o.Timeout)
	}
	if !c.until.IsZero() && (r.deadline.IsZero() || c.until.Before(r.deadline)) {
		r.deadline = c.until
	}
	return r
}

// begin starts an attempt. Its context ends with the attempt.
func (r *retrier) begin(parent context.Context) (context.Context, *attempt) {
	r.attempts++
	a := &attempt{fresh: r.fresh, streams: r.c.streams, until: r.c.until}
	r.fresh = false
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, attemptKey{}, a))
	a.cancel, a.cause = cancel, func() error { return context.Cause(ctx) }
	left := r.s.o.Timeout
	if r.c.moves {
		left += silence(r.c.copies)
		a.patience = left
	} else {
		left = time.Until(r.deadline)
		a.stall = min(r.s.o.Timeout/2, stallLimit) // half, so that there is time for another
	}
	a.watch = time.AfterFunc(left, func() { cancel(errDeadline) })
	if r.c.quick && !slices.Contains(r.spent, remedySlow) {
		a.firstByte = min(r.s.latency.limit(r.c.op), max(left/2, 1)) // likewise
	}
	return ctx, a
}

// storeRate is how fast the slowest store moves bytes by itself, a second: one that
// makes an object of parts, or of another one, by copying (versitygw's does some 300
// MiB on a disk) answers nothing before it has.
const storeRate = 64 << 20

// silence is how long a store may take to move so many bytes.
func silence(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / storeRate * float64(time.Second))
}

// settle ends an attempt that succeeded, or leaves it to its body.
func (a *attempt) settle() {
	a.watch.Stop()
	if !a.streams {
		a.cancel(errDone)
	}
}

// once spends a remedy; false if it was spent.
func (r *retrier) once(m remedy) bool {
	if slices.Contains(r.spent, m) {
		return false
	}
	r.spent = append(r.spent, m)
	return true
}

// next tells whether a failed attempt is followed by another, and after what time.
func (r *retrier) next(ctx context.Context, acc access, a *attempt, e *storeError) (time.Duration, bool) {
	if r.deadline.IsZero() {
		r.deadline = time.Now().Add(r.s.o.Timeout)
	}
	if r.c.moves && errors.Is(a.cause(), errDeadline) {
		return 0, false // it stood still for as long as a call may take
	}
	if r.cured(ctx, acc, a, e) {
		return 0, time.Now().Before(r.deadline)
	}
	if !r.worthwhile(e) {
		return 0, false
	}
	// The pause of our own comes on top, as others were told the same time. A store
	// that asks for more than is left is asked before the end all the same.
	wait := min(a.retryAfter, time.Until(r.deadline)/2) + backoff(r.pauses) + r.s.budget.take()
	r.pauses++
	return wait, time.Now().Add(wait).Before(r.deadline)
}

// worthwhile: another attempt may end otherwise.
func (r *retrier) worthwhile(e *storeError) bool {
	switch {
	case expired(e.code):
		return r.attempts < expiredAttempts
	case e.odd:
		return r.attempts < oddAttempts
	}
	return e.passing
}

// cured applies what helps against a failure, once each.
func (r *retrier) cured(ctx context.Context, acc access, a *attempt, e *storeError) bool {
	switch {
	case errors.Is(a.cause(), errSlow):
		if r.once(remedySlow) {
			r.fresh = true
			return true
		}
	case a.elsewhere(acc, e):
		return r.once(remedyRegion) && r.s.relocate(ctx, r.c, acc, a)
	case staleCredentials(e):
		acc.account.invalidate()
		return r.once(remedyCredentials)
	case errors.Is(e, ErrPermission) && (e.code == "RequestTimeTooSkewed" || skewed(a.skew)):
		// The SDK has taken the skew from the answer, and signs the next with it.
		return r.once(remedyClock)
	}
	return false
}

// How often is tried what may be so for good: credentials that have expired (who
// hands them out may be late), and answers that cannot be right.
const (
	expiredAttempts = 4
	oddAttempts     = 6
)

func expired(code string) bool {
	return code == "ExpiredToken" || code == "ExpiredTokenException" || code == "TokenRefreshRequired"
}

// staleCredentials: new ones may help. The answer to a HEAD has no code.
func staleCredentials(e *storeError) bool {
	switch e.code {
	case "InvalidAccessKeyId", "InvalidToken":
		return true
	case "", "BadRequest", "UnknownError":
		return e.status == http.StatusBadRequest
	}
	return expired(e.code)
}

// elsewhere: the bucket may be in another region.
func (a *attempt) elsewhere(acc access, e *storeError) bool {
	switch e.status {
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	case http.StatusBadRequest:
		return e.code == "AuthorizationHeaderMalformed" || a.region != "" && a.region != acc.region
	}
	return false
}

// relocate learns a bucket's region from an answer that says it is elsewhere, or
// by asking for it.
func (s *S3) relocate(ctx context.Context, c call, acc access, a *attempt) bool {
	if a.region == "" && !c.forRegion && !s.o.FixedRegion {
		a.region = s.bucketRegion(ctx, c)
	}
	return s.learnRegion(c.loc.Bucket, a.region, acc.region)
}

// bucketRegion asks for the region of a call's bucket; "": not known. Any answer
// tells it, a refusal too: that is learned by the call itself.
func (s *S3) bucketRegion(ctx context.Context, c call) string {
	c = call{op: c.op, loc: Location{Bucket: c.loc.Bucket}, quick: true, forRegion: true}
	out, err := do(ctx, s, c, func(ctx context.Context, acc access) (*s3.HeadBucketOutput, error) {
		return acc.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: acc.bucket, ExpectedBucketOwner: s.owner()})
	})
	if err == nil && out.BucketRegion != nil {
		return *out.BucketRegion
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.regions[c.loc.Bucket]
}

// Pauses between retries.
const (
	backoffFirst = 100 * time.Millisecond
	backoffMax   = 10 * time.Second
)

// backoff is the pause after n others: twice the last, half of it by chance.
func backoff(n int) time.Duration {
	d := min(backoffFirst<<min(n, 16), backoffMax)
	return d/2 + rand.N(d/2+1)
}

// Rate of retries, over all calls.
const (
	budgetSize = 100
	budgetRate = 20  // a second
	budgetDebt = 100 // no retry waits for more than this
)

// budget holds retries back when there are many: a store that is overloaded is
// not asked more by being slow.
type budget struct {
	mu     sync.Mutex
	tokens float64
	at     time.Time
}

func newBudget() *budget { return &budget{tokens: budgetSize, at: time.Now()} }

// take takes a token, and tells when it may be used.
func (b *budget) take() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.tokens = max(min(b.tokens+now.Sub(b.at).Seconds()*budgetRate, budgetSize)-1, -budgetDebt)
	b.at = now
	if b.tokens >= 0 {
		return 0
	}
	return time.Duration(-b.tokens / budgetRate * float64(time.Second))
}
