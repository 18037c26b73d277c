package inet

import (
	"bytes"
	"net/netip"
	"sync"
	"sync/atomic"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/socket"
	"loam/stack"
)

// Sends that are held back (MSG_MORE of send(2), UDP_CORK of udp(7)): their data becomes one datagram.

// corkOption is UDP_CORK, which holds every send back until the option is cleared.
var corkOption = socket.OptionName{Level: linux.IPPROTO_UDP, Name: linux.UDP_CORK}

// cork holds the datagram of a socket that was not sent yet.
type cork struct {
	on atomic.Bool // UDP_CORK is set: every send is held back

	// mu is held while data is added to the datagram, and while it is sent, so that threads lose no data. It is locked
	// before the socket's Mu.
	mu   sync.Mutex
	held atomic.Pointer[corkedDatagram] // the datagram to which sends add bytes; nil: none. It is changed with mu held.
}

// corkedDatagram is a datagram that was not sent yet. The first send sets its destination and its control messages. The fields
// are guarded by cork.mu.
type corkedDatagram struct {
	data []byte
	to   netip.AddrPort
	by   stack.UDPSend
}

// checker is a socket of the stack that can check a datagram before it is sent: stack.UDPConn.
type checker interface {
	Check(n int, to netip.AddrPort, by stack.UDPSend) (netip.AddrPort, error)
}

// check returns the destination of a datagram of n bytes.
func (s *UDPSocket) check(n int, to netip.AddrPort, by stack.UDPSend) (netip.AddrPort, linux.Errno) {
	to, err := s.conn.Load().datagramConn.(checker).Check(n, to, by)
	return to, file.ToErrno(err)
}

// holdsBack reports whether a send with these flags does not complete a datagram.
func (s *UDPSocket) holdsBack(flags int) bool {
	return (flags&linux.MSG_MORE != 0 || s.cork.on.Load()) && s.hasPorts()
}

// sendCorked sends b if the socket holds a datagram back, or if it must hold b back. Otherwise, it returns false.
func (s *UDPSocket) sendCorked(b []byte, m socket.Outgoing) (n int, errno linux.Errno, done bool) {
	if s.cork.held.Load() == nil && !s.holdsBack(m.Flags) {
		return 0, 0, false
	}
	s.cork.mu.Lock()
	defer s.cork.mu.Unlock()
	d := s.cork.held.Load()
	switch {
	case d != nil:
		errno = s.addCorked(d, b, m.Flags)
	case s.holdsBack(m.Flags):
		errno = s.startCorked(b, m)
	default: // another thread has cleared UDP_CORK or completed the datagram
		return 0, 0, false
	}
	if errno != 0 {
		return 0, errno, true
	}
	return len(b), 0, true
}

// startCorked holds back a datagram, and copies its data. It returns the errors of a send, among them EAGAIN and the error of
// an earlier datagram, because the send that completes the datagram cannot report them. The caller holds cork.mu.
func (s *UDPSocket) startCorked(b []byte, m socket.Outgoing) linux.Errno {
	d, errno := s.prepare(m)
	if errno != 0 {
		return errno
	}
	if d.to, errno = s.check(len(b), d.to, d.by); errno != 0 {
		return errno
	}
	d.data, d.by.Held = bytes.Clone(b), true
	s.cork.held.Store(&d)
	return 0
}

// addCorked adds bytes to the datagram that is held back, and sends it unless a later send completes it. After an error, the
// datagram is dropped, as on Linux. The caller holds cork.mu.
func (s *UDPSocket) addCorked(d *corkedDatagram, b []byte, flags int) linux.Errno {
	if _, errno := s.check(len(d.data)+len(b), d.to, d.by); errno != 0 {
		s.cork.held.Store(nil)
		return errno
	}
	d.data = append(d.data, b...)
	if s.holdsBack(flags) {
		return 0
	}
	return s.uncork(d)
}

// uncork sends the datagram that is held back. The caller holds cork.mu.
func (s *UDPSocket) uncork(d *corkedDatagram) linux.Errno {
	s.cork.held.Store(nil)
	_, err := s.conn.Load().TryWriteBy(d.data, d.to, d.by)
	return file.ToErrno(err)
}

// setCork implements UDP_CORK. If the option is cleared, the socket sends the datagram that it holds back. As on Linux, the
// error of this send is not reported.
func (s *UDPSocket) setCork(value []byte) linux.Errno {
	n, errno := socket.ParseInt(value)
	if errno != 0 {
		return errno
	}
	s.cork.mu.Lock()
	defer s.cork.mu.Unlock()
	s.cork.on.Store(n != 0)
	if d := s.cork.held.Load(); d != nil && n == 0 {
		s.uncork(d)
	}
	return 0
}

// redirectCorked changes the destination of the datagram that is held back to a new peer. As on Linux, this applies to IPv4
// only.
func (s *UDPSocket) redirectCorked(peer netip.AddrPort) {
	if s.cork.held.Load() == nil {
		return
	}
	s.cork.mu.Lock()
	defer s.cork.mu.Unlock()
	if d := s.cork.held.Load(); d != nil && d.to.Addr().Is4() && peer.Addr().Is4() {
		d.to = peer
	}
}
