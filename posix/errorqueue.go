package posix

import (
	"encoding/binary"
	"syscall"

	"loam/stack"
)

// The queue of errors of a socket for datagrams: IP_RECVERR of ip(7), IPV6_RECVERR of
// ipv6(7), read with MSG_ERRQUEUE. A TCP socket has none; there the options have it tell
// errors that may pass.

var (
	recvErr  = optionName{syscall.IPPROTO_IP, syscall.IP_RECVERR}
	recvErr6 = optionName{syscall.IPPROTO_IPV6, ipv6RecvErr}

	recvExtensions  = optionName{syscall.IPPROTO_IP, ipRecvErrRFC4884}
	recvExtensions6 = optionName{syscall.IPPROTO_IPV6, ipv6RecvErrRFC4884}
)

// Options that Linux has since 5.9 (linux/in.h, linux/in6.h).
const (
	ipRecvErrRFC4884   = 26
	ipv6RecvErrRFC4884 = 31
)

// Origins of errors (linux/errqueue.h).
const (
	originLocal = 1 + iota
	originICMP
	originICMP6
)

// errorQueued is a socket that may have errors to read.
type errorQueued interface {
	recvError(b []byte) (Received, Errno)
}

// recvError receives a message that did not get through, and never waits for one. MSG_PEEK
// means nothing, as on Linux.
func recvError(s socket, b []byte) (Received, Errno) {
	if q, ok := s.(errorQueued); ok {
		return q.recvError(b)
	}
	return Received{}, syscall.EAGAIN
}

func (s *udpSocket) recvError(b []byte) (Received, Errno) {
	c := s.conn.Load()
	if c == nil {
		return Received{}, syscall.EAGAIN
	}
	e, ok := c.TakeError()
	if !ok {
		return Received{}, syscall.EAGAIN
	}
	s.mu.Lock()
	wants := s.wants
	s.mu.Unlock()
	r := Received{N: copy(b, e.Payload), From: s.inet(s.net, e.To), Flags: syscall.MSG_ERRQUEUE}
	if r.Len = r.N; r.N < len(e.Payload) {
		r.Flags |= syscall.MSG_TRUNC
	}
	if !e.Local && wants != (wantedControl{}) {
		r.Control = wants.messages(s.net, e.Message)
	}
	r.Control = append(r.Control, s.errorMessage(&e))
	return r, 0
}

// extensionData is a struct sock_ee_data_rfc4884: where extensions of the message begin, and whether
// they are as they should be.
func extensionData(e *stack.DatagramError) []byte {
	const invalid = 1 // SO_EE_RFC4884_FLAG_INVALID
	b := binary.NativeEndian.AppendUint16(nil, uint16(e.Extensions.At))
	if e.Extensions.Unsound {
		return append(b, invalid, 0)
	}
	return append(b, 0, 0)
}

// errorMessage is a struct sock_extended_err with the address of who says so behind it.
func (s *udpSocket) errorMessage(e *stack.DatagramError) Control {
	m, size := Control{Level: recvErr.level, Type: recvErr.name}, sizeInet
	if s.isInet6() {
		m, size = Control{Level: recvErr6.level, Type: recvErr6.name}, sizeInet6
	}
	origin := byte(originICMP)
	switch {
	case e.Local:
		origin = originLocal
	case e.To.Addr().Is6():
		origin = originICMP6
	}
	m.Data = binary.NativeEndian.AppendUint32(nil, uint32(toErrno(e.Err)))
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
