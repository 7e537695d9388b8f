package main

import (
	"fmt"
	"net"
)

// notify tells systemd the state of this service, as sd_notify(3) does; without
// a socket nobody wants to know.
func notify(socket, state string) error {
	if socket == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify %q: %w", socket, err)
	}
	_, err = conn.Write([]byte(state))
	if closeErr := conn.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("notify %q: %w", socket, err)
	}
	return nil
}
