//go:build linux

package unixsock

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"loam/link/fd"
)

// Pair returns two devices that are connected to each other by one pair of Unix sockets. For a connection to a child
// process, see SocketPair.
func Pair(c Config) (a, b *Device, err error) {
	fa, fb, err := SocketPair(c.Framing)
	if err != nil {
		return nil, nil, err
	}
	if a, err = FromFiles(c, fa); err != nil {
		fb.Close()
		return nil, nil, err
	}
	if b, err = FromFiles(c, fb); err != nil {
		a.Close()
		return nil, nil, err
	}
	return a, b, nil
}

// SocketPair returns two connected sockets of the right type for FromFiles. A child process may
// inherit one of them. For Datagram, the type is SOCK_SEQPACKET, which reports that the other end
// is closed.
func SocketPair(f Framing) (a, b *os.File, err error) {
	kind := syscall.SOCK_STREAM
	if f == Datagram {
		kind = syscall.SOCK_SEQPACKET
	}
	fds, err := syscall.Socketpair(syscall.AF_UNIX, kind|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("unixsock: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "unix.a"), os.NewFile(uintptr(fds[1]), "unix.b"), nil
}

// Dial returns a device connected to the stream socket that listens at path.
func Dial(path string, c Config) (*Device, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("%s: %w: does anybody listen there?", path, err)
	}
	return fromConn(conn, c)
}

// Listener accepts connections at a path.
type Listener struct {
	socket *net.UnixListener
	config Config
}

// Listen listens on a stream socket at path. Close removes the file.
func Listen(path string, c Config) (*Listener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: %w: remove the file if nobody listens there any more", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Listener{socket: l, config: c}, nil
}

// Accept waits for a connection and returns a device over it.
func (l *Listener) Accept() (*Device, error) {
	conn, err := l.socket.AcceptUnix()
	if err != nil {
		return nil, err
	}
	return fromConn(conn, l.config)
}

// Close stops listening. Accepted devices stay open.
func (l *Listener) Close() error { return l.socket.Close() }

// OpenDatagram returns a device over a datagram socket at path local. Its peer has a socket at path
// remote, or creates one later. While there is no peer, sent frames are dropped and counted, as on
// a cable with an open end.
func OpenDatagram(local, remote string, c Config) (*Device, error) {
	c.Framing = Datagram
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: local, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", local, err)
	}
	defer conn.Close()
	file, err := dup(conn)
	if err != nil {
		return nil, err
	}
	d := &Device{info: c.info(), path: local}
	d.add(&c, file, remote)
	return d, nil
}

func fromConn(conn *net.UnixConn, c Config) (*Device, error) {
	defer conn.Close()
	file, err := dup(conn)
	if err != nil {
		return nil, err
	}
	c.Framing = Stream
	d := &Device{info: c.info()}
	d.add(&c, file, "")
	return d, nil
}

// dup returns a File for a duplicate of the descriptor of conn.
func dup(conn *net.UnixConn) (*fd.File, error) {
	f, err := conn.File()
	if err != nil {
		return nil, err
	}
	return fd.Dup(f)
}
