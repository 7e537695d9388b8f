package objectstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
)

// maxProbe is the size of the largest object that is sent again to see whether
// the store honours conditions.
const maxProbe = 1 << 20

// bogusETag is of no object: MD5s, and what stores make of parts, have no "x".
const bogusETag = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

// Conditions is what is known of a store's conditional writes.
type Conditions struct {
	Known       bool // the store was tried, or is AWS; else the others are false
	IfNoneMatch bool // PUT only where nothing is
	IfMatch     bool // PUT only over a version
}

// conditions remembers what the store does. A store that is not AWS may answer
// 200 to a condition that it did not look at: its first small conditional Put is
// repeated under conditions that can not hold.
type conditions struct {
	probing sync.Mutex // held by the one Put that probes

	mu      sync.Mutex
	known   Conditions
	refused bool // requests that have one
}

// Conditions tells what is known of the store's conditional writes by now.
func (s *S3) Conditions() Conditions {
	if s.isAWS() {
		return Conditions{Known: true, IfNoneMatch: true, IfMatch: true}
	}
	s.conditions.mu.Lock()
	defer s.conditions.mu.Unlock()
	return s.conditions.known
}

func (s *S3) learn(ctx context.Context, now Conditions) {
	s.conditions.mu.Lock()
	was := s.conditions.known
	s.conditions.known = now
	s.conditions.mu.Unlock()
	if !was.Known && (!now.IfNoneMatch || !now.IfMatch) {
		s.log.LogAttrs(ctx, slog.LevelWarn,
			"the object store ignores conditions on writes: each is preceded by a look, and two writers at one moment can undo one another",
			slog.Bool("if_none_match", now.IfNoneMatch), slog.Bool("if_match", now.IfMatch))
	}
}

// learnRefused notes that the store took without a condition what it had refused
// with one.
func (s *S3) learnRefused(ctx context.Context) {
	s.conditions.mu.Lock()
	s.conditions.refused = true
	s.conditions.mu.Unlock()
	s.learn(ctx, Conditions{Known: true})
}

func (s *S3) conditionsRefused() bool {
	s.conditions.mu.Lock()
	defer s.conditions.mu.Unlock()
	return s.conditions.refused
}

// honours tells whether the store is known to act on cond by itself.
func (c Conditions) honours(cond Cond) bool {
	return c.Known && (cond.IfNoneMatch && c.IfNoneMatch || !cond.IfNoneMatch && c.IfMatch)
}

// holds looks whether cond holds at loc now: nil, ErrExist or ErrChanged.
func (s *S3) holds(ctx context.Context, loc Location, cond Cond) error {
	if !cond.IfNoneMatch && cond.IfMatch == "" {
		return nil
	}
	o, err := s.Stat(ctx, loc)
	switch {
	case errors.Is(err, ErrNotExist) && cond.IfNoneMatch:
		return nil
	case errors.Is(err, ErrNotExist):
		return &storeError{sentinel: ErrChanged, text: "nothing is there"}
	case err != nil:
		return err
	case cond.IfNoneMatch:
		return &storeError{sentinel: ErrExist, text: "version " + printable(o.ETag) + " is there"}
	case o.ETag != cond.IfMatch:
		return &storeError{sentinel: ErrChanged, text: "version " + printable(o.ETag) + " is there"}
	}
	return nil
}

// isAWS tells whether the endpoint is Amazon's.
func isAWS(endpoint string) bool {
	if endpoint == "" {
		return true
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".amazonaws.com.cn")
}

// probe repeats a small conditional Put that has just succeeded, under
// conditions that can not hold, unless the store is known already. Where the
// store writes it nevertheless, it writes what is there: the same bytes with the
// same metadata; that version is returned then, else made. After an error, the
// store's or ctx's, it is as unknown as before.
func (s *S3) probe(ctx context.Context, made Object, send func(context.Context, Cond) (Object, error)) (Object, error) {
	if made.Size > maxProbe || s.Conditions().Known || !s.conditions.probing.TryLock() {
		return made, nil
	}
	defer s.conditions.probing.Unlock()
	if s.Conditions().Known {
		return made, nil
	}
	// If-Match first: it makes nothing where another has removed the object.
	made, match, err := refused(ctx, made, send, Cond{IfMatch: bogusETag}, ErrChanged)
	if err != nil {
		return made, err
	}
	made, noneMatch, err := refused(ctx, made, send, Cond{IfNoneMatch: true}, ErrExist)
	if err != nil {
		return made, err
	}
	s.learn(ctx, Conditions{Known: true, IfMatch: match, IfNoneMatch: noneMatch})
	return made, nil
}

// refused tells whether the store refuses a Put under cond, with the error want.
func refused(ctx context.Context, made Object, send func(context.Context, Cond) (Object, error), cond Cond, want error) (Object, bool, error) {
	// Twice: the first may have found that another removed the object.
	for range 2 {
		switch again, err := send(ctx, cond); {
		case err == nil:
			made = again
		case errors.Is(err, want):
			return made, true, nil
		default:
			return made, false, err
		}
	}
	return made, false, nil
}

// ProbeConditions finds out what the store does with conditions on writes, at
// loc, where a small object is made and removed again. Another's object there is
// left alone: ErrExist.
func (s *S3) ProbeConditions(ctx context.Context, loc Location) (Conditions, error) {
	const text = "made to see whether the store honours conditions on writes; it can be removed\n"
	opts := PutOptions{Cond: Cond{IfNoneMatch: true}}
	if _, err := s.Put(ctx, loc, strings.NewReader(text), int64(len(text)), opts); err != nil {
		return Conditions{}, err
	}
	now, err := s.Conditions(), error(nil)
	if !now.Known {
		err = failS3("probe", loc, fmt.Errorf("what the store does with conditions was not found out: %w", ErrUnavailable))
	}
	for _, removed := range s.Delete(context.WithoutCancel(ctx), []Location{loc}) {
		err = errors.Join(err, removed)
	}
	return now, err
}
