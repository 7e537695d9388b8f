// Package port holds TCP ports of the loopback for servers that stop and come
// back in a test.
package port

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Port is a port of 127.0.0.1 that the kernel picked and gives to nobody else:
// a socket is bound to it that never listens. While no server listens on it,
// connections are refused. A server that binds with SO_REUSEADDR, as those of Go
// and of asyncio do, may listen on it and stop as often as it likes.
type Port struct {
	Addr string // "127.0.0.1:41234"

	socket *os.File
}

// Reserve picks a port.
func Reserve() (*Port, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	p := &Port{socket: os.NewFile(uintptr(fd), "reserved port")}
	if err := p.bind(fd); err != nil {
		return nil, fmt.Errorf("reserve a port: %w", errors.Join(err, p.Close()))
	}
	return p, nil
}

func (p *Port) bind(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	p.Addr = fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
	return nil
}

// Close gives the port back.
func (p *Port) Close() error { return p.socket.Close() }
