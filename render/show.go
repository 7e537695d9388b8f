package render

import (
	"context"
	"io"
)

func show(context.Context, io.Writer, source, []output, Spec) error { return nil }
