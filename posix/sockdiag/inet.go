package sockdiag

import (
	"encoding/binary"
	"math"
	"net/netip"

	"loam/abi/linux"
	"loam/posix/inet"
	"loam/posix/netlink"
	"loam/posix/procnet"
	"loam/posix/socket"
)

// Sizes of struct inet_diag_req_v2 and struct inet_diag_msg in bytes (linux/inet_diag.h).
const (
	inetRequestSize = 56
	inetMessageSize = 72
)

// Dump answers a request for a list of sockets. The function emit gets the body of one message for each socket. Errors: EINVAL
// for a request that is too short or an unknown family, ENOENT for a family without a list. If there is no list for the protocol,
// end is ENOENT.
func Dump(v *procnet.View, request []byte, emit func(body []byte)) (end, errno linux.Errno) {
	const families = 46 // AF_MAX
	if len(request) < 2 || request[0] >= families {
		return 0, linux.EINVAL
	}
	switch request[0] {
	case linux.AF_INET, linux.AF_INET6:
		return dumpInet(v, request, emit)
	case linux.AF_UNIX:
		return 0, dumpUnix(v, request, emit)
	}
	return 0, linux.ENOENT
}

// inetSocket is a socket of AF_INET or AF_INET6.
type inetSocket interface {
	socket.Socket
	IsInet6() bool
}

// inetRequest is a struct inet_diag_req_v2. Its socket ID is used only by requests for one socket, which are not supported. The
// filter that may follow it is ignored: ss applies its filters to the answers, too.
type inetRequest struct {
	family, protocol byte
	extensions       byte   // bit n-1 requests the attribute n
	states           uint32 // bit n: sockets in the state n
}

func dumpInet(v *procnet.View, request []byte, emit func([]byte)) (end, errno linux.Errno) {
	if len(request) < inetRequestSize {
		return 0, linux.EINVAL
	}
	q := inetRequest{request[0], request[1], request[2], binary.NativeEndian.Uint32(request[4:])}
	switch q.protocol {
	case linux.IPPROTO_TCP, linux.IPPROTO_UDP, linux.IPPROTO_UDPLITE, linux.IPPROTO_RAW:
	default:
		return linux.ENOENT, 0
	}
	for inode, o := range v.Opened {
		s, ok := o.File.(inetSocket)
		if !ok || s.IsInet6() != (q.family == linux.AF_INET6) || s.Local().IP.Port() == 0 {
			continue
		}
		if protocol, state := stateOf(s); protocol == q.protocol && q.states>>state&1 != 0 {
			emit(q.describe(s, state, inode, v.UID))
		}
	}
	return 0, 0
}

// stateOf returns the protocol and the state of a socket. A datagram socket is in the state of an established or of a closed
// TCP connection. The result is 0 for a TCP socket that is only bound: as on Linux, it is not listed.
func stateOf(s inetSocket) (protocol, state byte) {
	switch s := s.(type) {
	case interface{ State() uint8 }:
		if state = s.State(); state == inet.StateClose {
			return 0, 0
		}
		return linux.IPPROTO_TCP, state
	case *inet.UDPSocket:
		protocol = linux.IPPROTO_UDP
	case *inet.UDPLiteSocket:
		protocol = linux.IPPROTO_UDPLITE
	case *inet.RawSocket:
		protocol = linux.IPPROTO_RAW
	}
	return protocol, procnet.DatagramState(s)
}

// describe returns a struct inet_diag_msg with the requested attributes.
func (q *inetRequest) describe(s inetSocket, state byte, inode int, uid int32) []byte {
	le := binary.NativeEndian
	peer, _ := s.Peer()
	b := make([]byte, 0, 2*inetMessageSize)
	b = append(b, q.family, state, 0, 0) // no timer, and no retransmissions
	b = binary.BigEndian.AppendUint16(b, s.Local().IP.Port())
	b = binary.BigEndian.AppendUint16(b, peer.IP.Port())
	b = appendAddress(b, s.Local().IP.Addr(), s.IsInet6())
	b = appendAddress(b, peer.IP.Addr(), s.IsInet6())
	b = le.AppendUint32(b, 0) // interface
	b = le.AppendUint64(b, uint64(inode))
	b = le.AppendUint32(b, 0) // time until the timer expires
	received, sent := queues(s)
	b = le.AppendUint32(b, uint32(received))
	b = le.AppendUint32(b, uint32(sent))
	b = le.AppendUint32(b, uint32(uid))
	b = le.AppendUint32(b, uint32(inode))
	return q.attributes(b, s, state)
}

// queues returns what ss shows as Recv-Q and Send-Q: the bytes in both directions, or for a listener the connections that
// wait, and their maximum.
func queues(s inetSocket) (received, sent int) {
	if l, ok := s.(interface{ Backlog() (waiting, most int) }); ok {
		if waiting, most := l.Backlog(); most > 0 {
			return waiting, most
		}
	}
	received = bytesIn(s)
	if u, ok := s.(interface{ Unsent() int }); ok {
		sent = u.Unsent()
	}
	return received, sent
}

// bytesIn returns the number of received bytes that the program has not read.
func bytesIn(s socket.Socket) int {
	if b, ok := s.(interface{ Buffered() int }); ok {
		return b.Buffered()
	}
	return 0
}

// appendAddress appends an IP address as four words. An IPv4 address fills the first word.
func appendAddress(b []byte, a netip.Addr, six bool) []byte {
	var words [16]byte
	switch {
	case six && a.IsValid() && !a.Unmap().IsUnspecified():
		words = a.As16()
	case !six && a.Unmap().Is4():
		four := a.Unmap().As4()
		copy(words[:], four[:])
	}
	return append(b, words[:]...)
}

// attributes appends the requested attributes of a socket.
func (q *inetRequest) attributes(b []byte, s inetSocket, state byte) []byte {
	wants := func(attribute int) bool { return q.extensions>>(attribute-1)&1 != 0 }
	value := func(level, name int) []byte {
		v, errno := s.Option(level, name)
		if errno != 0 {
			return nil
		}
		return v
	}
	// add adds the first bytes of an option's value as an attribute, if it is requested: some values are expensive to get.
	add := func(attribute uint16, level, name, most int) {
		if !wants(int(attribute)) {
			return
		}
		if v := value(level, name); len(v) > 0 {
			netlink.Attribute(&b, attribute, v[:min(len(v), most)])
		}
	}
	add(linux.INET_DIAG_TOS, linux.IPPROTO_IP, linux.IP_TOS, 1)
	if s.IsInet6() {
		add(linux.INET_DIAG_TCLASS, linux.IPPROTO_IPV6, linux.IPV6_TCLASS, 1)
		if state == inet.StateListen || state == inet.StateClose {
			netlink.Attribute(&b, linux.INET_DIAG_SKV6ONLY, []byte{onlyIPv6(s, value(linux.IPPROTO_IPV6, linux.IPV6_V6ONLY))})
		}
	}
	if wants(linux.INET_DIAG_SKMEMINFO) {
		received, _ := queues(s)
		if state == inet.StateListen {
			received = 0
		}
		netlink.Attribute(&b, linux.INET_DIAG_SKMEMINFO, memoryInfo(received, value))
	}
	if q.protocol != linux.IPPROTO_TCP {
		return b
	}
	add(linux.INET_DIAG_INFO, linux.IPPROTO_TCP, linux.TCP_INFO, math.MaxInt)
	add(linux.INET_DIAG_CONG, linux.IPPROTO_TCP, linux.TCP_CONGESTION, math.MaxInt)
	return b
}

// onlyIPv6 returns 1 if a socket receives no IPv4 packets: because of IPV6_V6ONLY, whose value is option, or because it is bound
// to an IPv6 address.
func onlyIPv6(s inetSocket, option []byte) byte {
	if a := s.Local().IP.Addr(); a.Is6() && !a.Is4In6() && !a.IsUnspecified() {
		return 1
	}
	if len(option) == 0 {
		return 0
	}
	return option[0]
}

// memoryInfo returns the value of INET_DIAG_SKMEMINFO: the bytes in use, and the limits. Only the received bytes and the limits
// are known.
func memoryInfo(received int, value func(level, name int) []byte) []byte {
	const words = 9
	b := make([]byte, 4*words)
	binary.NativeEndian.PutUint32(b, uint32(received))
	copy(b[4:8], value(linux.SOL_SOCKET, linux.SO_RCVBUF))
	copy(b[12:16], value(linux.SOL_SOCKET, linux.SO_SNDBUF))
	return b
}
