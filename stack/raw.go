package stack

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"sync/atomic"

	"loam/link"
	"loam/wire"
)

// RawConn is a socket for the packets of one IP protocol, like the raw sockets of Linux (raw(7)). It receives a copy of every
// arriving packet of that protocol, whether or not another socket receives it too. IPv4 packets include the IP header; IPv6
// packets start after the headers. The stack adds the IP header to packets it sends.
//
// Raw sockets are few. They are published as an immutable list that shards and receivers read.
type RawConn struct {
	datagramSocket
	proto      wire.Protocol
	bound      atomic.Pointer[netip.Addr]
	checksumAt atomic.Int32              // offset of the checksum in packets: see SetChecksum
	whole      atomic.Bool               // programs write the IP header themselves: see SetHeaderIncluded
	blocked    atomic.Pointer[[8]uint32] // ICMP types that are not delivered: see BlockTypes; nil: none
}

// ProtoRaw is the protocol number for sockets that only send complete packets (IPPROTO_RAW). No packet arrives for it.
const ProtoRaw wire.Protocol = 255

// ListenRaw returns a raw socket for a protocol. local selects the IP version and the local address; the unspecified address
// means any. Errors: ErrNotAvailable, ErrFamily, ErrClosed.
func (s *Stack) ListenRaw(proto wire.Protocol, local netip.Addr, o UDPOptions) (*RawConn, error) {
	c := &RawConn{proto: proto}
	network := "ip4"
	if local.Is6() {
		network, o.V6Only = "ip6", true
	}
	c.init(s, network, netip.AddrPortFrom(anyAddr(local), uint16(proto)), o)
	c.checksumAt.Store(-1)
	if proto == wire.ProtoICMPv6 && local.Is6() {
		c.checksumAt.Store(2)
	}
	c.whole.Store(proto == ProtoRaw)
	if err := c.Bind(local); err != nil {
		return nil, err
	}
	return c, s.publishRaw(c)
}

// Bind restricts the socket to packets sent to a local address, and makes that address
// the source of its packets. Errors: ErrNotAvailable, ErrFamily.
func (c *RawConn) Bind(local netip.Addr) error {
	at, err := c.stack.checkLocal(netip.AddrPortFrom(local, 0))
	switch {
	case err != nil:
		return err
	case at.Addr().Is4() != c.local.Addr().Is4():
		return ErrFamily
	}
	addr := at.Addr()
	c.bound.Store(&addr)
	return nil
}

// publishRaw adds a socket to the list. Errors: ErrClosed.
func (s *Stack) publishRaw(c *RawConn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	list := append(slices.Clone(s.rawConns()), c)
	s.raws.Store(&list)
	return nil
}

// withdrawRaw removes a socket from the list.
func (s *Stack) withdrawRaw(c *RawConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(s.rawConns()), func(other *RawConn) bool { return other == c })
	if len(list) == 0 {
		s.raws.Store(nil)
		return
	}
	s.raws.Store(&list)
}

// rawConns returns the raw sockets. The slice must not be changed.
func (s *Stack) rawConns() []*RawConn {
	if list := s.raws.Load(); list != nil {
		return *list
	}
	return nil
}

// SetChecksum enables a checksum that includes the IPv6 pseudo-header, at the given offset in the payload (IPV6_CHECKSUM). It
// is filled in when sending, and packets with a wrong checksum are dropped. A negative offset disables it. For ICMPv6 sockets
// it is enabled by default.
func (c *RawConn) SetChecksum(offset int) { c.checksumAt.Store(int32(offset)) }

// Checksum returns the offset set by SetChecksum, or -1.
func (c *RawConn) Checksum() int { return int(c.checksumAt.Load()) }

// SetHeaderIncluded makes the program supply the IP header (IP_HDRINCL). In an IPv4 header, the length and checksum are always
// filled in, and the identification and source if they are zero.
func (c *RawConn) SetHeaderIncluded(on bool) { c.whole.Store(on) }

// HeaderIncluded reports the setting of SetHeaderIncluded.
func (c *RawConn) HeaderIncluded() bool { return c.whole.Load() }

// BlockTypes sets the ICMP types that are not delivered to the socket: type t is bit t%32
// of word t/32 (ICMP_FILTER, ICMP6_FILTER).
func (c *RawConn) BlockTypes(types [8]uint32) { c.blocked.Store(&types) }

// BlockedTypes returns the setting of BlockTypes.
func (c *RawConn) BlockedTypes() [8]uint32 {
	if types := c.blocked.Load(); types != nil {
		return *types
	}
	return [8]uint32{}
}

// LocalAddrPort returns the bound address. If the socket is connected and bound to no specific address, it is the source
// address of its packets. The port is the protocol number.
func (c *RawConn) LocalAddrPort() netip.AddrPort {
	if at := *c.bound.Load(); !at.IsUnspecified() {
		return netip.AddrPortFrom(at, c.local.Port())
	}
	return c.datagramSocket.LocalAddrPort()
}

// TryWriteTo sends a packet with p as its payload, or p as a complete packet after SetHeaderIncluded. The port of the
// destination, to, is ignored, and the zero AddrPort means the peer. Errors: ErrWouldBlock, ErrMessageTooLong,
// ErrNoDestination, ErrNetUnreachable, ErrFamily, ErrAccess for a broadcast without the option, ErrClosed, ErrInvalid
// for a packet that is too short, and a pending ICMP error about an earlier packet of a connected socket.
func (c *RawConn) TryWriteTo(p []byte, to netip.AddrPort) (int, error) {
	return c.TryWriteBy(p, to, UDPSend{})
}

// TryWriteBy is TryWriteTo with per-packet options. It also returns ErrInvalid for a
// source that is not an address of this host.
func (c *RawConn) TryWriteBy(p []byte, to netip.AddrPort, by UDPSend) (int, error) {
	t, o, remote, err := c.beginWrite(to, &by)
	if err != nil {
		return 0, err
	}
	remote = netip.AddrPortFrom(remote.Addr(), 0)
	if !c.hasRoom() {
		return 0, ErrWouldBlock
	}
	c.setSource(t, &by)
	out, err := c.build(t, p, remote, &o, &by)
	if err != nil {
		return 0, err
	}
	c.stack.tally.count(RawSent)
	c.submit(&out, remote)
	return len(p), nil
}

// setSource sets the source of a packet to the bound address, unless the send options (by) contain a source.
func (c *RawConn) setSource(t *tables, by *UDPSend) {
	at := *c.bound.Load()
	if by.Source.IsValid() || at.IsUnspecified() || at.IsMulticast() {
		return
	}
	by.Source = at
	if by.On == nil && at.Zone() != "" {
		by.On = t.zone(at.Zone())
	}
}

// build returns the packet, ready to be queued.
func (c *RawConn) build(t *tables, p []byte, remote netip.AddrPort, o *UDPOptions, by *UDPSend) (outgoing, error) {
	whole := c.whole.Load()
	if whole {
		o.Discovery, o.Discovery6 = DiscoverProbe, DiscoverProbe
	}
	path, header, err := c.prepare(t, c.proto, remote, o, by)
	switch {
	case err != nil:
		return outgoing{}, err
	case whole:
		return c.buildWhole(p, &path, &header, remote, o)
	case len(p) > maxIPPayload(header.dst):
		return outgoing{}, ErrMessageTooLong
	}
	if err := c.fit(&header, &path, o, remote, len(p)); err != nil {
		return outgoing{}, err
	}
	at := int(c.checksumAt.Load())
	if at >= 0 && at+2 > len(p) {
		return outgoing{}, ErrInvalid
	}
	f := link.FrameOf(p)
	if at >= 0 {
		putChecksum(f.Bytes(), at, &header)
	}
	header.put(f)
	return c.outgoing(f, path, &header), nil
}

// putChecksum computes the checksum of the payload b and stores it at the offset at.
func putChecksum(b []byte, at int, h *ipHeader) {
	b[at], b[at+1] = 0, 0
	sum := ^wire.Sum(b, wire.PseudoSum(h.proto, h.src, h.dst, len(b)))
	if sum == 0 && h.proto == wire.ProtoUDP {
		sum = 0xffff // RFC 8200 section 8.1: 0 would mean that there is no checksum
	}
	binary.BigEndian.PutUint16(b[at:], sum)
}

// buildWhole returns a packet whose IP header was made by the program. Such a packet is not fragmented.
func (c *RawConn) buildWhole(p []byte, path *path, header *ipHeader, remote netip.AddrPort, o *UDPOptions) (outgoing, error) {
	switch {
	case len(p) > path.mtu:
		c.tooLong(o, remote, path.mtu)
		return outgoing{}, ErrMessageTooLong
	case len(p) < header.length():
		return outgoing{}, ErrInvalid
	}
	f := link.FrameOf(p)
	if header.dst.Is4() && !fillIPv4(f.Bytes(), header) {
		f.Free()
		return outgoing{}, ErrInvalid
	}
	return c.outgoing(f, *path, header), nil
}

// fillIPv4 fills in the fields of a program's IPv4 header that the kernel fills in on
// Linux (raw(7)). It returns false if the header is longer than the packet or too short.
func fillIPv4(b []byte, h *ipHeader) bool {
	n := int(b[0]&0xf) * 4
	if n < wire.IPv4MinLen || n > len(b) {
		return false
	}
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	if b[4] == 0 && b[5] == 0 {
		binary.BigEndian.PutUint16(b[4:], h.id)
	}
	if source := b[12:16]; [4]byte(source) == [4]byte{} {
		a := h.src.As4()
		copy(source, a[:])
	}
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], ^wire.Sum(b[:n], 0))
	return true
}

// Close closes the socket. Packets already written are still sent.
func (c *RawConn) Close() error {
	return c.closeBy(func() { c.stack.withdrawRaw(c) })
}
