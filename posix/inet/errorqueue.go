package inet

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/socket"
	"loam/stack"
)

// The error queue of a datagram socket: IP_RECVERR of ip(7) and IPV6_RECVERR of ipv6(7), read with
// MSG_ERRQUEUE. A TCP socket has no error queue. There the options make it report transient errors.

var (
	recvErr  = socket.OptionName{Level: linux.IPPROTO_IP, Name: linux.IP_RECVERR}
	recvErr6 = socket.OptionName{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_RECVERR}

	recvExtensions  = socket.OptionName{Level: linux.IPPROTO_IP, Name: linux.IP_RECVERR_RFC4884}
	recvExtensions6 = socket.OptionName{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_RECVERR_RFC4884}
)

// Values of ee_origin: the sources of errors (linux/errqueue.h).
const (
	originLocal = 1 + iota
	originICMP
	originICMP6
)

// errorQueued is a socket that has an error queue.
type errorQueued interface {
	recvError(b []byte) (socket.Received, linux.Errno)
}

// RecvError receives from the error queue, and never waits. MSG_PEEK has no effect, as on Linux.
// Errors: EAGAIN if the queue is empty.
func RecvError(s socket.Socket, b []byte) (socket.Received, linux.Errno) {
	if q, ok := s.(errorQueued); ok {
		return q.recvError(b)
	}
	return socket.Received{}, linux.EAGAIN
}

// recvError returns the oldest error of the queue. The data is the start of the datagram that caused the error, the sender
// is the destination of that datagram, and a control message describes the error. Errors: EAGAIN.
func (s *UDPSocket) recvError(b []byte) (socket.Received, linux.Errno) {
	c := s.conn.Load()
	if c == nil {
		return socket.Received{}, linux.EAGAIN
	}
	e, ok := c.TakeError()
	if !ok {
		return socket.Received{}, linux.EAGAIN
	}
	s.Mu.Lock()
	wants := s.wants
	s.Mu.Unlock()
	r := socket.Received{N: copy(b, e.Payload), From: s.inet(s.net, e.To), Flags: linux.MSG_ERRQUEUE}
	if r.Len = r.N; r.N < len(e.Payload) {
		r.Flags |= linux.MSG_TRUNC
	}
	if !e.Local && wants != (WantedControl{}) {
		r.Control = wants.messages(s.net, e.Message)
	}
	r.Control = append(r.Control, s.errorMessage(&e))
	return r, 0
}

// extensionData returns a struct sock_ee_data_rfc4884: the offset of the ICMP message's extensions, and
// whether they are valid.
func extensionData(e *stack.DatagramError) []byte {
	const invalid = 1 // SO_EE_RFC4884_FLAG_INVALID: the extensions are malformed
	b := binary.NativeEndian.AppendUint16(nil, uint16(e.Extensions.At))
	if e.Extensions.Unsound {
		return append(b, invalid, 0)
	}
	return append(b, 0, 0)
}

// errorMessage returns a struct sock_extended_err, followed by the address of the node that reported
// the error.
func (s *UDPSocket) errorMessage(e *stack.DatagramError) socket.Control {
	m, size := socket.Control{Level: recvErr.Level, Type: recvErr.Name}, linux.SizeofSockaddrIn
	if s.IsInet6() {
		m, size = socket.Control{Level: recvErr6.Level, Type: recvErr6.Name}, linux.SizeofSockaddrIn6
	}
	origin := byte(originICMP)
	switch {
	case e.Local:
		origin = originLocal
	case e.To.Addr().Is6():
		origin = originICMP6
	}
	m.Data = binary.NativeEndian.AppendUint32(nil, uint32(file.ToErrno(e.Err)))
	m.Data = append(m.Data, origin, e.Type, e.Code, 0)
	m.Data = binary.NativeEndian.AppendUint32(m.Data, e.Info)
	m.Data = append(m.Data, extensionData(e)...)
	if e.Local {
		m.Data = append(m.Data, make([]byte, size)...)
	} else {
		m.Data = s.inet(s.net, e.Message.From).Append(m.Data)
	}
	return m
}
