// Package operation gives each operation of a program an id, by which the log tells
// which requests to the store and the catalog it led to. A context carries it: what
// is logged under [Handler] with that context has it as op_id, and errors of requests
// that were made under it bring it along (see [Attrs]).
package operation

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"
)

// Key is the name of the attribute that has an id.
const Key = "op_id"

// ID names an operation; 0: none.
type ID uint64

// Attr is the id as an attribute of a log line; an empty one, which handlers leave
// out, for none.
func (id ID) Attr() slog.Attr {
	if id == 0 {
		return slog.Attr{}
	}
	return slog.String(Key, strconv.FormatUint(uint64(id), 16))
}

// IDs hands out ids, concurrently. NewIDs makes one.
type IDs struct{ last atomic.Uint64 }

// NewIDs returns IDs that go on where those of an earlier mount cannot have been: they
// begin with the time.
func NewIDs() *IDs {
	ids := &IDs{}
	ids.last.Store(uint64(time.Now().Unix()) << 24)
	return ids
}

// New returns parent as the context of an operation of its own.
func (ids *IDs) New(parent context.Context) context.Context {
	return &operation{parent, ID(ids.last.Add(1))}
}

// operation is a context with an id: one allocation, made for each request.
type operation struct {
	context.Context //nolint:containedctx // it is one
	id              ID
}

type idKey struct{}

// Value is context.Context's.
func (o *operation) Value(key any) any {
	if key == (idKey{}) {
		return o // a pointer: an id would have to be moved to the heap
	}
	return o.Context.Value(key)
}

// Of returns the operation that ctx works for.
func Of(ctx context.Context) ID {
	o, ok := ctx.Value(idKey{}).(*operation)
	if !ok {
		return 0
	}
	return o.id
}

// Attrs are what the outermost error in err that has a method LogAttrs tells of
// itself, apart from its text: of a failed request the key, the HTTP status, the
// answer's request id and the operation.
func Attrs(err error) []slog.Attr {
	var teller interface{ LogAttrs() []slog.Attr }
	if !errors.As(err, &teller) {
		return nil
	}
	return teller.LogAttrs()
}

// Handler returns h with the operation's id on what is logged with its context.
func Handler(h slog.Handler) slog.Handler { return handler{h} }

type handler struct{ slog.Handler }

// Handle is slog.Handler's.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if id := Of(ctx); id != 0 {
		r.AddAttrs(id.Attr())
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs is slog.Handler's.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup is slog.Handler's.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
