package operation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/operation"
)

func TestLinesOfOneOperationHaveItsID(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(operation.Handler(slog.NewTextHandler(&out, nil))).With(slog.String("a", "b"))
	ids := operation.NewIDs()
	first, second := ids.New(t.Context()), ids.New(t.Context())
	child, cancel := context.WithCancel(context.WithoutCancel(first))
	defer cancel()
	if operation.Of(child) != operation.Of(first) || operation.Of(first) == operation.Of(second) || operation.Of(first) == 0 {
		t.Errorf("ids are %v, below %v, of another %v", operation.Of(first), operation.Of(child), operation.Of(second))
	}
	for _, ctx := range []context.Context{first, child, second, t.Context()} {
		log.InfoContext(ctx, "said")
	}
	lines := strings.Split(out.String(), "\n")
	want := operation.Of(first).Attr().String()
	if !strings.HasSuffix(lines[0], " a=b "+want) || !strings.HasSuffix(lines[1], " "+want) ||
		strings.Contains(lines[2], want) || !strings.Contains(lines[2], operation.Key) || strings.Contains(lines[3], operation.Key) {
		t.Errorf("lines are %q", lines)
	}
}

type failure struct{ error }

func (failure) LogAttrs() []slog.Attr { return []slog.Attr{slog.Int("status", 503)} }

func TestErrorsTellAttributes(t *testing.T) {
	err := fmt.Errorf("read: %w", errors.Join(io.EOF, failure{io.ErrUnexpectedEOF}))
	if got := operation.Attrs(err); len(got) != 1 || got[0].String() != "status=503" {
		t.Errorf("attributes are %v", got)
	}
	for _, err := range []error{nil, io.EOF} {
		if got := operation.Attrs(err); got != nil {
			t.Errorf("attributes of %v are %v", err, got)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	ids, parent := operation.NewIDs(), context.WithoutCancel(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		ctx, cancel := context.WithCancel(ids.New(parent))
		if operation.Of(ctx) == 0 {
			b.Fatal("no id")
		}
		cancel()
	}
}
