package settings

import (
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// UnixPrefix begins an address that is the path of a socket.
const UnixPrefix = "unix:"

// UnixPath returns the path of an address that is a socket's.
func UnixPath(addr string) (path string, ok bool) { return strings.CutPrefix(addr, UnixPrefix) }

// setAddress takes where to listen: HOST:PORT, :PORT on this machine alone, or
// unix:PATH, made absolute, for a daemon leaves its directory.
func setAddress(at *string, raw string) error {
	if path, ok := UnixPath(raw); ok {
		abs, err := filepath.Abs(path)
		if path == "" || err != nil {
			return errors.New("want the path of a socket")
		}
		*at = UnixPrefix + abs
		return nil
	}
	host, port, err := net.SplitHostPort(raw)
	if err != nil {
		return errors.New("want HOST:PORT, :PORT or unix:PATH")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return errors.New("want a port from 1 to 65535, or 0 for a free one")
	}
	if host == "" {
		host = "127.0.0.1"
	}
	*at = net.JoinHostPort(host, port)
	return nil
}
