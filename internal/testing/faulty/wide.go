package faulty

import (
	"context"
	"io"
	"net"
	"sync"
)

// Bodies pass in large pieces: with the 32 KiB of net/http a gigabyte takes this
// process twice the time, which the machine lacks for the store and its client.

// buffers are of copySize bytes.
var buffers = sync.Pool{New: func() any { return new([copySize]byte) }} //nolint:gochecknoglobals // shared by all proxies

// copyWide copies r to w, by at most size bytes at once.
func copyWide(w io.Writer, r io.Reader, size int64) (int64, error) {
	if size < copySize {
		return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, size))
	}
	buf := buffers.Get().(*[copySize]byte)
	defer buffers.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, buf[:])
}

// wideConn is a connection to the store that takes bodies in large pieces.
type wideConn struct{ net.Conn }

var _ io.ReaderFrom = wideConn{}

// ReadFrom sends what r has.
func (c wideConn) ReadFrom(r io.Reader) (int64, error) {
	size := copySize
	if limited, ok := r.(*io.LimitedReader); ok {
		size = min(size, limited.N+1)
	}
	return copyWide(c.Conn, r, size)
}

func dialWide(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return wideConn{conn}, nil
}
