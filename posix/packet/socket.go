package packet

import (
	"encoding/binary"
	"sync/atomic"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/inet"
	"loam/posix/netdevice"
	"loam/posix/socket"
	"loam/stack"
	"loam/wire"
)

// Socket is an AF_PACKET socket (packet(7)): SOCK_RAW for frames with the link header, SOCK_DGRAM
// for frames without it. Receive rings are in ring.go.
type Socket struct {
	socket.Base
	net  *stack.Stack
	conn *stack.LinkConn

	// Guarded by mu.
	auxData bool               // PACKET_AUXDATA
	times   inet.WantedControl // requested timestamps: only the fields Time and Nanoseconds are used
	buffer  int                // SO_RCVBUF in bytes; 0: never set
	filter  bool               // a filter is attached to the socket
	version int                // PACKET_VERSION
	reserve int                // PACKET_RESERVE in bytes

	ring atomic.Pointer[Ring] // receive ring; stored with mu held
}

// New returns a packet socket. It receives frames at once, unless protocol is 0.
func New(net *stack.Stack, typ, protocol int) (socket.Socket, linux.Errno) {
	if typ != linux.SOCK_RAW && typ != linux.SOCK_DGRAM {
		return nil, linux.ESOCKTNOSUPPORT
	}
	s := &Socket{Base: socket.Base{Domain: linux.AF_PACKET, Type: typ, Protocol: protocol}, net: net}
	conn, err := net.ListenLink(typ == linux.SOCK_DGRAM, fromNetworkOrder(protocol))
	if err != nil {
		return nil, file.ToErrno(err)
	}
	s.conn = conn
	conn.Watch(s.Relay)
	return s, 0
}

// fromNetworkOrder converts the protocol argument of socket(2) from network byte order.
func fromNetworkOrder(protocol int) wire.EtherType {
	b := binary.NativeEndian.AppendUint16(nil, uint16(protocol))
	return wire.EtherType(binary.BigEndian.Uint16(b))
}

func (s *Socket) Events() file.Events {
	e := socket.DatagramEvents(s.conn.Events())
	if r := s.ring.Load(); r != nil && r.waits() {
		e |= file.PollIn
	}
	return e
}

// Bind sets the interface, and the protocol if it is not 0. Errors: EINVAL, ENODEV.
func (s *Socket) Bind(_ socket.Caller, a socket.Address) linux.Errno {
	if a.Family != linux.AF_PACKET {
		return linux.EINVAL
	}
	on, errno := s.interfaceOf(a.Link.Index)
	if errno != 0 {
		return errno
	}
	_, kind := s.conn.Bound()
	if a.Link.Protocol != 0 {
		kind = a.Link.Protocol
	}
	s.conn.Bind(on, kind)
	return 0
}

// interfaceOf returns the interface with an index, or nil for index 0. Errors: ENODEV.
func (s *Socket) interfaceOf(index int32) (*stack.Interface, linux.Errno) {
	if index == 0 {
		return nil, 0
	}
	if i := netdevice.ByIndex(s.net, int(index)); i != nil {
		return i, 0
	}
	return nil, linux.ENODEV
}

// Local returns the bound protocol and interface, with the interface's address.
func (s *Socket) Local() socket.Address {
	on, kind := s.conn.Bound()
	a := socket.Address{Family: linux.AF_PACKET, Link: socket.LinkAddress{Protocol: kind}}
	if on != nil {
		a.Link.Index = int32(on.Index())
		setStation(&a.Link, on, on.MAC())
	}
	return a
}

// setStation stores the hardware type of an interface and a link-layer address in the
// socket address a.
func setStation(a *socket.LinkAddress, on *stack.Interface, mac wire.MAC) {
	a.Hardware, _ = netdevice.Kind(on)
	if a.Hardware != linux.ARPHRD_NONE {
		a.Len = uint8(copy(a.MAC[:], mac[:]))
	}
}

func (s *Socket) Peer() (socket.Address, linux.Errno)               { return socket.Address{}, linux.EOPNOTSUPP }
func (s *Socket) Connect(socket.Caller, socket.Address) linux.Errno { return linux.EOPNOTSUPP }
func (s *Socket) Listen(socket.Caller, int) linux.Errno             { return linux.EOPNOTSUPP }
func (s *Socket) Accept() (socket.Socket, linux.Errno)              { return nil, linux.EOPNOTSUPP }
func (s *Socket) Shutdown(int) linux.Errno                          { return linux.EOPNOTSUPP }
func (s *Socket) TakeError() linux.Errno                            { return 0 }
func (s *Socket) Unsent() int                                       { return 0 }
func (s *Socket) Buffered() (first int)                             { _, first = s.conn.Waiting(); return first }
func (s *Socket) Write(b []byte) (int, linux.Errno)                 { return s.Send(b, socket.Outgoing{}) }

func (s *Socket) Close() {
	s.conn.Close()
	if r := s.ring.Load(); r != nil {
		r.drop()
	}
}

func (s *Socket) Read(b []byte) (int, linux.Errno) {
	r, errno := s.Recv(b, 0)
	return r.N, errno
}

func (s *Socket) Recv(b []byte, flags int) (socket.Received, linux.Errno) {
	take := s.conn.TryRead
	if flags&linux.MSG_PEEK != 0 {
		take = s.conn.Peek
	}
	n, frame, err := take(b)
	if err != nil {
		return socket.Received{}, file.ToErrno(err)
	}
	r := socket.Received{N: n, Len: frame.Len, From: s.sender(&frame)}
	if n < frame.Len {
		r.Flags |= linux.MSG_TRUNC
	}
	r.Control = s.messages(&frame)
	return r, 0
}

// sender returns the address of a frame's sender.
func (s *Socket) sender(frame *stack.LinkFrame) socket.Address {
	a := socket.Address{Family: linux.AF_PACKET, Link: socket.LinkAddress{
		Protocol: frame.Type, Index: int32(frame.Interface), Kind: uint8(frame.Kind),
	}}
	if on, errno := s.interfaceOf(int32(frame.Interface)); errno == 0 && on != nil {
		setStation(&a.Link, on, frame.From)
	}
	return a
}

// messages returns the control messages that SO_TIMESTAMP and PACKET_AUXDATA request.
func (s *Socket) messages(frame *stack.LinkFrame) (list []socket.Control) {
	s.Mu.Lock()
	aux, times := s.auxData, s.times
	s.Mu.Unlock()
	if times != (inet.WantedControl{}) {
		list = times.TimeMessage(s.net.ArrivedFrame(frame))
	}
	if aux {
		list = append(list, socket.Control{Level: linux.SOL_PACKET, Type: linux.PACKET_AUXDATA, Data: auxData(frame)})
	}
	return list
}

// auxData returns a struct tpacket_auxdata (linux/if_packet.h).
func auxData(frame *stack.LinkFrame) []byte {
	b := binary.NativeEndian.AppendUint32(nil, frameStatus(frame))
	b = binary.NativeEndian.AppendUint32(b, uint32(frame.WireLen))
	b = binary.NativeEndian.AppendUint32(b, uint32(frame.Len))
	b = append(b, 0, 0) // tp_mac, the offset of the frame, is not used
	b = binary.NativeEndian.AppendUint16(b, uint16(frame.Header))
	return append(b, 0, 0, 0, 0) // no VLAN fields, because VLAN tags are not removed from frames
}

// reaches reports whether the link-layer address in the socket address a is long enough
// for an interface.
func reaches(on *stack.Interface, a socket.LinkAddress) bool {
	hardware, _ := netdevice.Kind(on)
	return hardware == linux.ARPHRD_NONE || int(a.Len) >= len(wire.MAC{})
}

// Send sends a frame on the bound interface, or on the one in the destination address. Errors: EINVAL,
// ENXIO without an interface, EMSGSIZE, ENOBUFS.
func (s *Socket) Send(b []byte, m socket.Outgoing) (int, linux.Errno) {
	on, kind := s.conn.Bound()
	var to wire.MAC
	switch m.To.Family {
	case linux.AF_UNSPEC:
	case linux.AF_PACKET:
		var errno linux.Errno
		if on, errno = s.interfaceOf(m.To.Link.Index); errno != 0 {
			return 0, linux.ENXIO
		}
		kind = m.To.Link.Protocol
		if on != nil && s.Type == linux.SOCK_DGRAM && !reaches(on, m.To.Link) {
			return 0, linux.EINVAL
		}
		copy(to[:], m.To.Link.MAC[:])
	default:
		return 0, linux.EINVAL
	}
	if on == nil {
		return 0, linux.ENXIO
	}
	n, err := s.conn.TryWrite(b, on, to, kind)
	return n, file.ToErrno(err)
}

// MayMap checks whether mmap(2) may map the ring. Only shared mappings that start at offset 0 are allowed. Errors: EINVAL,
// also if the socket has no ring.
func (s *Socket) MayMap(flags int, offset int64) linux.Errno {
	if s.ring.Load() == nil || offset != 0 || flags&linux.MAP_SHARED_VALIDATE == linux.MAP_PRIVATE {
		return linux.EINVAL
	}
	return 0
}

// Mapped returns the ring as an object that can be mapped, or nil.
func (s *Socket) Mapped() *Ring { return s.ring.Load() }

// setRing implements PACKET_RX_RING. A request for zero blocks removes the ring. Errors: EINVAL; EBUSY
// if the socket already has a ring, or if the ring to remove is mapped.
func (s *Socket) setRing(value []byte) linux.Errno {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.version == linux.TPACKET_V1 {
		return linux.EINVAL
	}
	request, errno := parseRingRequest(s.version, value, s.reserve)
	if errno != 0 {
		return errno
	}
	old := s.ring.Load()
	if old != nil && (old.isMapped() || request.blocks > 0) {
		return linux.EBUSY
	}
	if request.blocks == 0 {
		s.conn.SetSink(nil)
		s.ring.Store(nil)
		return 0
	}
	r := &Ring{
		version: s.version, request: request, cooked: s.Type == linux.SOCK_DGRAM, reserve: s.reserve,
		readable: func() { s.Waiters.Notify(file.PollIn) }, arrived: s.net.ArrivedFrame, station: s.sender,
	}
	s.ring.Store(r)
	s.conn.SetSink(r.put)
	return 0
}
