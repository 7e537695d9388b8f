package objectstore

import (
	"context"
	"errors"
	"net/http"

	"github.com/aws/smithy-go"
)

// write is a conditional write that may take several requests.
type write struct {
	s    *S3
	op   string
	dst  Location
	cond Cond
	id   string // the write id of what is written; "": none
	etag string // what is written has this one, if there is no id; "": not known
	// looks: the destination is looked at before each request, whatever is known.
	looks bool
	blind bool // it is never looked at

	unclear bool // an earlier request may have taken effect
	lost    bool // likewise, and nobody answered it
	digests int  // requests that the store took for corrupt
}

// do makes requests until one of them takes effect or the write fails. Bytes
// that move extend the time.
func (w *write) do(ctx context.Context, send func(context.Context, access) (Object, error)) (Object, error) {
	c := call{op: w.op, loc: w.dst, moves: true}
	return do(ctx, w.s, c, func(ctx context.Context, acc access) (Object, error) {
		if o, done, err := w.before(ctx); done || err != nil {
			return o, err
		}
		o, err := send(ctx, acc)
		if err != nil {
			return w.after(ctx, err)
		}
		return o, nil
	})
}

// before looks whether the condition holds, where the store itself may not, and
// where an answer was lost: the store would refuse the bytes that it has already,
// but only once they were sent again. It is done if an earlier request took effect.
func (w *write) before(ctx context.Context) (Object, bool, error) {
	if w.cond == (Cond{}) || w.blind || !w.looks && !w.lost && w.s.Conditions().honours(w.cond) {
		return Object{}, false, nil
	}
	err := w.s.holds(ctx, w.dst, w.cond)
	if err == nil {
		return Object{}, false, nil
	}
	if !errors.Is(err, ErrExist) && !errors.Is(err, ErrChanged) {
		return Object{}, false, err
	}
	o, err := w.settle(ctx, err)
	return o, err == nil, err
}

// after tells what a request's error means for the write. A write that took
// effect after all has none.
func (w *write) after(ctx context.Context, err error) (Object, error) {
	var own *storeError
	if errors.As(err, &own) {
		return Object{}, err // it says what it means
	}
	status, code := answered(ctx, err)
	switch {
	case status == http.StatusPreconditionFailed && w.cond.IfNoneMatch:
		return w.settle(ctx, &storeError{sentinel: ErrExist, text: code})
	case status == http.StatusPreconditionFailed,
		code == "NoSuchKey" && w.cond.IfMatch != "":
		return w.settle(ctx, &storeError{sentinel: ErrChanged, text: code})
	case code == "NoSuchUpload": // completed by an earlier request, or aborted by others
		w.unclear = true
		return w.settle(ctx, &storeError{sentinel: ErrUnavailable, text: code})
	case code == "BadDigest", code == "XAmzContentSHA256Mismatch":
		// Once it may have been the network. Twice the source is not what it was.
		w.digests++
		err = &storeError{sentinel: ErrUnavailable, text: code + ": the store received other bytes than were summed up", passing: w.digests == 1}
	case status < 400 || status >= 500 || status == http.StatusRequestTimeout || status == http.StatusConflict:
		w.unclear, w.lost = true, status == 0
	}
	return Object{}, err
}

// settle tells whether a condition failed because an earlier request of this
// write took effect: conflict if not.
func (w *write) settle(ctx context.Context, conflict error) (Object, error) {
	if !w.unclear {
		return Object{}, conflict
	}
	o, err := w.s.Stat(ctx, w.dst)
	switch {
	case errors.Is(err, ErrNotExist):
		return Object{}, conflict
	case err != nil:
		return Object{}, &storeError{sentinel: ErrUnavailable, text: err.Error()}
	case w.id == "" && w.etag == "":
		return Object{}, &storeError{sentinel: ErrUnavailable, text: "an answer was lost, and nothing tells whose object is there"}
	case o.ETag == w.cond.IfMatch:
	case w.id != "" && o.Meta[MetaWriteID] == w.id, w.id == "" && o.ETag == w.etag:
		return o, nil
	}
	return Object{}, conflict
}

// answered is the HTTP status and the code of S3 of an SDK's error.
func answered(ctx context.Context, err error) (int, string) {
	var api smithy.APIError
	if errors.As(err, &api) {
		return statusOf(ctx), api.ErrorCode()
	}
	return statusOf(ctx), ""
}
