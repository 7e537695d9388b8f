package render

import (
	"context"
	"io"
)

func openAvro(context.Context, io.ReaderAt, int64) (source, error) {
	return nil, &Error{Reason: "Avro files are not shown yet"}
}
