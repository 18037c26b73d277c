package inet

import (
	"bytes"
	"math"
	"net/netip"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/socket"
	"loam/stack"
)

// Sends that are held back (MSG_MORE of send(2), UDP_CORK of udp(7)): their data becomes one datagram.

// corkOption is UDP_CORK, which holds every send back until the option is cleared.
var corkOption = socket.OptionName{Level: linux.IPPROTO_UDP, Name: linux.UDP_CORK}

// maxCorked is the maximum number of bytes in a datagram that is held back, as on Linux: an IPv4 packet has room for no more.
const maxCorked = math.MaxUint16 - 20 - 8

// corkedDatagram is a datagram that was not sent yet. The first send sets its destination and its control messages. The
// thread that takes it out of UDPSocket.corked owns it.
type corkedDatagram struct {
	data []byte
	to   netip.AddrPort // zero: the peer
	by   stack.UDPSend
}

// holdsBack reports whether a send with these flags does not complete a datagram. The caller holds mu.
func (s *UDPSocket) holdsBack(flags int) bool {
	return s.hasPorts() && (s.cork || flags&linux.MSG_MORE != 0)
}

// startCorked holds back a datagram. It copies the data.
func (s *UDPSocket) startCorked(c *datagramBox, d corkedDatagram) (int, linux.Errno) {
	switch {
	case !d.to.IsValid() && !c.RemoteAddrPort().IsValid():
		return 0, linux.EDESTADDRREQ
	case len(d.data) > maxCorked:
		return 0, linux.EMSGSIZE
	}
	d.data = bytes.Clone(d.data)
	s.corked.Store(&d)
	return len(d.data), 0
}

// addCorked adds bytes to the datagram that is held back, and sends it unless a later send completes it. It returns false
// if no datagram is held back. After an error the datagram is dropped, except after EAGAIN, which changes nothing.
func (s *UDPSocket) addCorked(b []byte, flags int) (int, linux.Errno, bool) {
	if s.corked.Load() == nil {
		return 0, 0, false
	}
	d := s.corked.Swap(nil)
	if d == nil { // another thread has sent it
		return 0, 0, false
	}
	if len(d.data)+len(b) > maxCorked {
		return 0, linux.EMSGSIZE, true
	}
	s.Mu.Lock()
	holdBack := s.holdsBack(flags)
	s.Mu.Unlock()
	whole := append(d.data, b...)
	if holdBack {
		d.data = whole
		s.corked.Store(d)
		return len(b), 0, true
	}
	if _, err := s.conn.Load().TryWriteBy(whole, d.to, d.by); err != nil {
		if err == stack.ErrWouldBlock {
			s.corked.Store(d)
		}
		return 0, file.ToErrno(err), true
	}
	return len(b), 0, true
}

// setCork implements UDP_CORK. If the option is cleared, the socket sends the datagram that it holds back. As on Linux, the
// error of this send is not reported.
func (s *UDPSocket) setCork(value []byte) linux.Errno {
	n, errno := socket.ParseInt(value)
	if errno != 0 {
		return errno
	}
	s.Mu.Lock()
	s.cork = n != 0
	s.Mu.Unlock()
	if n != 0 {
		return 0
	}
	if d := s.corked.Swap(nil); d != nil {
		s.conn.Load().TryWriteBy(d.data, d.to, d.by)
	}
	return 0
}
