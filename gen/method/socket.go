//go:build linux

package method

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// sendBuffer is the send buffer size of a socket in bytes, as the kernel counts them.
const sendBuffer = 4 << 20

// single sends each frame by its own system call. The methods udp, raw and pcap use it; they differ only in the socket.
type single struct {
	counters
	fd    int
	layer Layer
	slot  []byte
}

// newSingle returns a sender for a connected socket. The sender owns the socket and closes it.
func newSingle(fd int, l Layer, c Config) *single {
	return &single{fd: fd, layer: l, slot: make([]byte, c.Size)}
}

// Layer implements Sender.
func (s *single) Layer() Layer { return s.layer }

// Send implements Sender.
func (s *single) Send(n int, fill func(slot []byte) int) (sent int, err error) {
	bytes, kicks := 0, 0
	for range n {
		length := fill(s.slot)
		if length == 0 {
			break
		}
		kicks++
		if errno := send(s.fd, s.slot[:length]); errno != 0 {
			again, err := s.insist(errno, s.slot[:length])
			kicks += again
			if err == errRefused {
				continue
			}
			if err != nil {
				s.took(sent, bytes, kicks)
				return sent, err
			}
		}
		sent++
		bytes += length
	}
	s.took(sent, bytes, kicks)
	return sent, nil
}

// Repeat implements Repeater.
func (s *single) Repeat(frame []byte, n int) (sent int, err error) {
	kicks := 0
	for done := 0; done < n && err == nil; {
		gone, errno := sendAgain(s.fd, frame, n-done)
		done, sent, kicks = done+gone, sent+gone, kicks+gone
		if errno == 0 {
			break
		}
		var again int
		again, err = s.insist(errno, frame)
		done, kicks = done+1, kicks+1+again
		if err == nil {
			sent++
		} else if err == errRefused {
			err = nil
		}
	}
	s.took(sent, sent*len(frame), kicks)
	return sent, err
}

// insist retries sending a frame after the error errno, until the frame is accepted. It returns the number of system
// calls.
func (s *single) insist(errno unix.Errno, frame []byte) (kicks int, err error) {
	var p patience
	for errno != 0 {
		if err := p.wait(s.fd, &s.counters, errno); err != nil {
			return kicks, err
		}
		kicks++
		errno = send(s.fd, frame)
	}
	return kicks, nil
}

// Flush implements Sender.
func (s *single) Flush(timeout time.Duration) error { return flush(s.fd, &s.counters, timeout) }

// flush waits until all data written to a socket has been sent, at most timeout, and then sets the counter left.
func flush(fd int, c *counters, timeout time.Duration) error {
	if err := drained(fd, timeout); err != nil {
		return err
	}
	c.left.Store(c.handed.Load())
	return nil
}

// Close implements Sender.
func (s *single) Close() error { return unix.Close(s.fd) }

// connected opens an IPv4 or IPv6 socket that is connected to c.Destination and bound to c.Interface.
func connected(c Config, kind, protocol int) (fd int, err error) {
	family := unix.AF_INET
	if c.Destination.Addr().Is6() {
		family = unix.AF_INET6
	}
	if fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol); err != nil {
		return -1, explain(c, "socket", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	wishSendBuffer(fd)
	if c.Interface != "" {
		if err := unix.BindToDevice(fd, c.Interface); err != nil {
			return -1, explain(c, "SO_BINDTODEVICE", err)
		}
	}
	if c.Source.Addr().IsValid() {
		if err := unix.Bind(fd, sockaddr(c.Source)); err != nil {
			return -1, explain(c, "bind to "+c.Source.String(), err)
		}
	}
	if err := unix.Connect(fd, sockaddr(c.Destination)); err != nil {
		return -1, explain(c, "connect to "+c.Destination.String(), err)
	}
	return fd, nil
}

// wishSendBuffer requests a large send buffer. SO_SNDBUFFORCE needs CAP_NET_ADMIN; without it, SO_SNDBUF is used, which
// is limited by a system setting.
func wishSendBuffer(fd int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer) != nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
	}
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	s := &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	if i, err := net.InterfaceByName(a.Addr().Zone()); err == nil {
		s.ZoneId = uint32(i.Index)
	}
	return s
}

// explain returns an error about opening a socket. If a privilege is missing, it adds what the user can do.
func explain(c Config, what string, err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%s: %w: this method needs CAP_NET_RAW: run as root", c.Interface, os.NewSyscallError(what, err))
	}
	return fmt.Errorf("%s: %w", c.Interface, os.NewSyscallError(what, err))
}

func withoutPort(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr(), 0) }
