package staging

import (
	"context"
	"io"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
)

// streamer is an older object that is cheapest read by few large requests.
type streamer interface {
	// stream opens [off, off+n) for reading in order.
	stream(ctx context.Context, off, n int64) (io.ReadCloser, error)
}

// remotePin is the older object of a store whose reads are requests.
type remotePin struct {
	objectstore.Pinned
	store objectstore.Store
	obj   objectstore.Object
}

func (p *remotePin) stream(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	_, body, err := p.store.Read(ctx, p.obj, off, n)
	return body, err
}

// pin is objectstore.Pin, of what can be streamed where that is cheaper.
func pin(ctx context.Context, store objectstore.Store, obj objectstore.Object) (objectstore.Pinned, error) {
	p, err := objectstore.Pin(ctx, store, obj)
	if err != nil {
		return nil, err
	}
	if _, files := store.(objectstore.Opener); files {
		return p, nil
	}
	return &remotePin{Pinned: p, store: store, obj: obj}, nil
}

// run reads a part of a source from its start to its end, by one request where
// reads are requests. It is for one goroutine, which closes it.
type run struct {
	src  *source
	end  int64
	body io.ReadCloser // nil: not asked for yet
	at   int64         // where body is
}

// newRun is for the bytes before end; it begins where it is read first.
func newRun(src *source, end int64) *run { return &run{src: src, end: end} }

// readAt fills p, which ends before the run does. A body that ends early is
// io.ErrUnexpectedEOF.
func (r *run) readAt(ctx context.Context, p []byte, off int64) (int, error) {
	s, ok := r.src.pin.(streamer)
	if !ok {
		return r.src.readAt(ctx, p, off)
	}
	if r.body == nil || r.at != off {
		r.close()
		body, err := s.stream(ctx, off, r.end-off)
		if err != nil {
			return 0, err
		}
		r.body, r.at = body, off
	}
	n, err := io.ReadFull(r.body, p)
	r.at += int64(n)
	return n, err
}

func (r *run) close() {
	if r.body != nil {
		_ = r.body.Close() // it was read as far as it is wanted
		r.body = nil
	}
}
