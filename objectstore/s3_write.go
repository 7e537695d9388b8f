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
	// copies is what the store moves by itself for it, in bytes.
	copies int64
	id     string // the write id of what is written; "": none
	etag   string // what is written has this one, if there is no id; "": not known
	// looks: the destination is looked at before each request, whatever is known.
	looks bool
	blind bool // it is never looked at

	bare    bool // the store refused to know conditions: it is sent without
	unclear bool // an earlier request may have taken effect
	lost    bool // likewise, and nobody answered it
	digests digests
}

// do makes requests until one of them takes effect or the write fails. Bytes
// that move extend the time.
func (w *write) do(ctx context.Context, send func(context.Context, access) (Object, error)) (Object, error) {
	c := call{op: w.op, loc: w.dst, moves: true, copies: w.copies}
	return do(ctx, w.s, c, func(ctx context.Context, acc access) (Object, error) {
		if o, done, err := w.before(ctx); done || err != nil {
			return o, err
		}
		o, err := send(ctx, acc)
		if err != nil {
			return w.after(ctx, err)
		}
		if w.bare {
			w.s.learnRefused(ctx)
		}
		return o, nil
	})
}

// sent is the condition that goes along: none to a store that refuses requests
// which have one.
func (w *write) sent() Cond {
	if w.bare || w.s.conditionsRefused() {
		return Cond{}
	}
	return w.cond
}

// refuses tells whether an answer may say that the store knows no conditions. It is
// sent without, then; only if it takes that, it is known.
func (w *write) refuses(status int) bool {
	return status == http.StatusNotImplemented && w.sent() != (Cond{}) && !w.blind && !w.s.Conditions().honours(w.cond)
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
	status, code := answered(ctx, err)
	if w.refuses(status) {
		w.bare = true
		return Object{}, &storeError{sentinel: ErrUnavailable, code: code, text: "the store may know no conditions on writes", passing: true}
	}
	var own *storeError
	if errors.As(err, &own) {
		return Object{}, err // it says what it means
	}
	switch {
	case status == http.StatusPreconditionFailed && w.cond.IfNoneMatch:
		return w.settle(ctx, &storeError{sentinel: ErrExist, code: code})
	case status == http.StatusPreconditionFailed,
		code == "NoSuchKey" && w.cond.IfMatch != "":
		return w.settle(ctx, &storeError{sentinel: ErrChanged, code: code})
	case uploadGone(ctx, w.op, code): // completed by an earlier request, or aborted by others
		w.unclear = true
		return w.settle(ctx, &storeError{sentinel: errNoUpload, code: code, text: partsRefused(code, err)})
	case corrupt(code):
		err = w.digests.refused(code)
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
	case w.id == "" && w.etag == "" && !errors.Is(conflict, ErrNoUpload):
		return Object{}, &storeError{sentinel: ErrUnavailable, text: "an answer was lost, and nothing tells whose object is there"}
	case o.ETag == w.cond.IfMatch:
	case w.id != "" && o.Meta[MetaWriteID] == w.id, w.id == "" && o.ETag == w.etag:
		return o, nil
	}
	return Object{}, conflict
}

// uploadGone tells whether an answer means that the upload, or a part, is not there.
func uploadGone(ctx context.Context, op, code string) bool {
	switch code {
	case "NoSuchUpload", "InvalidPart", "InvalidPartOrder":
		return true
	case "NoSuchKey", "NotFound":
		return op == "complete" && !pageOf(ctx)
	}
	return false
}

// partsRefused is what a store says of the parts that it makes no object of; "": it is
// the upload that is gone.
func partsRefused(code string, err error) string {
	var api smithy.APIError
	if code != "InvalidPart" || !errors.As(err, &api) {
		return ""
	}
	return printable(api.ErrorMessage()) + "; if the store wants parts of one size, give --part-size"
}

// corrupt tells whether a code means that other bytes came than were summed up.
func corrupt(code string) bool {
	switch code {
	case "BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch":
		return true
	}
	return false
}

// digests counts the requests of a call that the store took for corrupt.
type digests int

// refused is what one more means. Once it may have been the network. Twice the
// source is not what it was.
func (n *digests) refused(code string) error {
	*n++
	return &storeError{sentinel: ErrUnavailable, code: code, text: "the store received other bytes than were summed up", passing: *n == 1}
}

// answered is the HTTP status and the code of S3 of an SDK's error.
func answered(ctx context.Context, err error) (int, string) {
	var api smithy.APIError
	if errors.As(err, &api) {
		return statusOf(ctx), api.ErrorCode()
	}
	return statusOf(ctx), ""
}
