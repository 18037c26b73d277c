package stack

import (
	"net/netip"

	"loam/link"
	"loam/stack/demux"
	"loam/stack/port"
	"loam/wire"
)

// MaxUDP and MaxUDP6 are the largest payloads of a UDP datagram over IPv4 and IPv6, in bytes.
const (
	MaxUDP  = wire.MaxIPv4 - wire.IPv4MinLen - wire.UDPLen
	MaxUDP6 = wire.MaxIPv6Payload - wire.UDPLen
)

// UDPOptions are the options of a datagram socket: UDP, raw or ping. The zero value selects the defaults. The comments name
// the options of socket(7), ip(7), ipv6(7) and udp(7).
type UDPOptions struct {
	Broadcast     bool       // SO_BROADCAST: permits sending to broadcast addresses
	ReuseAddr     bool       // SO_REUSEADDR: the socket shares its port with sockets that have this option
	ReusePort     bool       // SO_REUSEPORT: the socket shares its port with sockets of the same Owner that have this option
	Owner         uint32     // effective user ID of the program at the creation of the socket
	TTL           uint8      // IP_TTL: time to live of IPv4 datagrams; zero: 64
	GroupTTL      uint8      // IP_MULTICAST_TTL: time to live of IPv4 multicast datagrams; zero: 1
	TOS           uint8      // IP_TOS: type of service of IPv4 datagrams
	HopLimit      uint8      // IPV6_UNICAST_HOPS; zero: as advertised by routers, or 64
	GroupHops     uint8      // IPV6_MULTICAST_HOPS: hop limit of IPv6 multicast datagrams; zero: 1
	TrafficClass  uint8      // IPV6_TCLASS: traffic class of IPv6 datagrams
	Discovery     Discovery  // IP_MTU_DISCOVER: whether IPv4 datagrams may be fragmented
	Discovery6    Discovery  // IPV6_MTU_DISCOVER: whether IPv6 datagrams may be fragmented
	Device        *Interface // SO_BINDTODEVICE: the interface at the creation of the socket; see SetDevice
	Whole6        bool       // IPV6_DONTFRAG: IPv6 packets are not fragmented by this host
	ReportPathMTU bool       // IPV6_RECVPATHMTU: TakePathMTU reports packets rejected by Whole6
	MaxPacket6    int        // IPV6_MTU: longer IPv6 packets are fragmented; zero: the path MTU
	NoLoop        bool       // IP_MULTICAST_LOOP off: sent multicast packets are not delivered on this host
	NoLoop6       bool       // IPV6_MULTICAST_LOOP off: sent IPv6 multicast packets are not delivered on this host
	V6Only        bool       // IPV6_V6ONLY: a socket bound to :: does not receive IPv4
	ReceiveBuffer int        // SO_RCVBUF: size of the receive buffer in bytes; zero: 2 MiB
	SendBuffer    int        // SO_SNDBUF: size of the send buffer in bytes; zero: 1 MiB

	// Groups is the initial set of multicast groups; nil: none.
	Groups *Memberships
	// AllGroups and AllGroups6 deliver datagrams to any group that some socket has joined on the interface, even if this
	// socket has not (IP_MULTICAST_ALL and IPV6_MULTICAST_ALL). Both are on by default on Linux, but not here.
	AllGroups, AllGroups6 bool

	QueueErrors  bool // IP_RECVERR: all errors about IPv4 datagrams are reported and queued for TakeError
	QueueErrors6 bool // IPV6_RECVERR: all errors about IPv6 datagrams are reported and queued for TakeError

	ReportExtensions  bool // IP_RECVERR_RFC4884: DatagramError.Extensions is set in errors about IPv4 datagrams
	ReportExtensions6 bool // IPV6_RECVERR_RFC4884: DatagramError.Extensions is set in errors about IPv6 datagrams

	// SendCoverage is the number of bytes that the checksum of sent UDP-Lite datagrams covers, including the header
	// (UDPLITE_SEND_CSCOV). 0: all.
	SendCoverage uint16
	// ReceiveCoverage is the least coverage of received UDP-Lite datagrams whose checksum covers only a part
	// (UDPLITE_RECV_CSCOV). FullCoverage: they are dropped. 0: any.
	ReceiveCoverage int

	// SoftErrors enables the report of transient ICMP errors, and of errors about datagrams sent without a connected peer.
	SoftErrors bool
}

// FullCoverage is the value of UDPOptions.ReceiveCoverage with which checksums must cover the whole datagram.
const FullCoverage = -1

// UDPConn is a UDP or UDP-Lite socket. It is registered with every shard, because its datagrams may belong to any of them. A
// datagram is built, including its checksum, on the program's goroutine and then queued for the shard of its flow.
//
// The methods in udp.go never block. ReadFrom and WriteTo are in net.go.
type UDPConn struct {
	datagramSocket
	proto wire.Protocol // ProtoUDP or ProtoUDPLite
	at    demux.Place
	home  *shard        // the only shard that has the socket (forwarder's sockets); nil: all shards
	port  *port.Binding // nil for a forwarder's socket
}

// Filter returns how many bytes of a packet a socket keeps. 0 means that the packet is not delivered. The packet starts with
// its UDP header for a UDPConn, with the link header, if any, for a LinkConn, and otherwise with the first byte that the
// socket would read. Shards call it concurrently.
type Filter func(datagram []byte) uint32

// filtered truncates a payload to the length that the filter returns, and reports whether the datagram is delivered. While
// the filter runs, the UDP header is part of the frame again, with a zero checksum.
func (c *UDPConn) filtered(f *link.Frame, info *Datagram) bool {
	filter := c.filter.Load()
	if filter == nil {
		return true
	}
	from, to := info.From.Port(), info.To.Port()
	h := wire.UDP{SrcPort: from, DstPort: to, PayloadLen: f.Len()}
	f.Prepend(wire.UDPLen)
	if h.Put(f.Bytes()); c.proto == wire.ProtoUDPLite {
		lite := wire.UDPLite{SrcPort: from, DstPort: to, Coverage: info.partial}
		lite.Put(f.Bytes())
	}
	n := (*filter)(f.Bytes())
	f.TrimFront(wire.UDPLen)
	if keep := int(max(n, wire.UDPLen) - wire.UDPLen); keep < f.Len() {
		f.Resize(keep)
		info.Len = keep
	}
	return n > 0
}

// ListenUDP returns a socket bound to local. The zero address means any address, and port
// 0 any free port. Errors: ErrInUse, ErrNotAvailable, ErrFamily, ErrClosed.
func (s *Stack) ListenUDP(local netip.AddrPort, o UDPOptions) (*UDPConn, error) {
	return s.listenUDP(wire.ProtoUDP, local, o)
}

// listenUDP implements ListenUDP and ListenUDPLite.
func (s *Stack) listenUDP(proto wire.Protocol, local netip.AddrPort, o UDPOptions) (*UDPConn, error) {
	place := demux.Place{Six: local.Addr().Is6(), V6Only: o.V6Only, ReusePort: o.ReusePort}
	local, err := s.checkLocal(local)
	if err != nil {
		return nil, err
	}
	b, err := s.ports.Bind(proto, local, o.sharing())
	if err != nil {
		return nil, err
	}
	place.Local = b.Local()
	c := s.newUDPConn(proto, place, o)
	c.port = b
	if !s.enter(c.enter) {
		c.Close()
		return nil, ErrClosed
	}
	return c, nil
}

func (s *Stack) newUDPConn(proto wire.Protocol, at demux.Place, o UDPOptions) *UDPConn {
	c := &UDPConn{proto: proto, at: at}
	c.init(s, "udp", at.Local, o)
	return c
}

// SetDevice binds the socket to an interface; nil removes the binding. Another socket may
// then use the same port on another interface.
func (c *UDPConn) SetDevice(on *Interface) {
	c.datagramSocket.SetDevice(on)
	c.stack.ports.SetInterface(c.port, on.number())
}

// enter adds the socket to a shard's table, and leave removes it.
func (c *UDPConn) enter(sh *shard) { sh.table(c.proto).Add(c, c.at) }
func (c *UDPConn) leave(sh *shard) { sh.table(c.proto).Remove(c, c.at) }

// table returns the sockets of UDP or UDP-Lite.
func (sh *shard) table(proto wire.Protocol) *demux.Table[*UDPConn] {
	if proto == wire.ProtoUDPLite {
		return &sh.lites
	}
	return &sh.sockets
}

// TryWriteTo sends a datagram to an address, or to the peer of a connected socket if that address is the zero
// AddrPort. Errors: ErrWouldBlock, ErrMessageTooLong, ErrNoDestination, ErrNetUnreachable, ErrAccess for a broadcast
// without the option, ErrClosed, and a pending ICMP error about an earlier datagram of a connected socket.
func (c *UDPConn) TryWriteTo(p []byte, to netip.AddrPort) (int, error) {
	return c.TryWriteBy(p, to, UDPSend{})
}

// UDPSend overrides socket options for one datagram, like the control messages of ip(7) and RFC 3542.
type UDPSend struct {
	Source netip.Addr // source address of the datagram, an address of this host; zero: the socket's address
	On     *Interface // interface for a multicast or link-local destination; nil: the routing table selects it
	TTL    uint8      // TTL or hop limit of the datagram; zero: the socket's setting
	TOS    uint8      // TOS or traffic class of the datagram, if HasTOS is set
	HasTOS bool       // TOS applies instead of the socket's setting

	// Segment is the payload size of each datagram if the data is split into several; the last may be shorter
	// (UDP_SEGMENT). 0: one datagram. A segment that exceeds the path MTU is not fragmented: ErrMessageTooLong.
	Segment int

	// Held is set if Check has allowed the first part of the datagram. A pending error then stays pending, and a full
	// send buffer is not an error.
	Held bool
}

// maxSegments is the largest number of datagrams per call (UDP_MAX_SEGMENTS of linux/udp.h).
const maxSegments = 128

// TryWriteBy is TryWriteTo with per-datagram options. It also returns ErrInvalid for a
// source that is not an address of this host, and for more than maxSegments segments.
func (c *UDPConn) TryWriteBy(p []byte, to netip.AddrPort, by UDPSend) (int, error) {
	t, options, remote, size, err := c.admit(len(p), to, &by)
	if err != nil {
		return 0, err
	}
	for done := 0; ; {
		segment := p[done:min(done+size, len(p))]
		out, err := c.build(t, segment, remote, &options, &by)
		if err != nil {
			return 0, err
		}
		c.submit(&out, remote)
		if done += len(segment); done == len(p) {
			return done, nil
		}
	}
}

// Check returns the destination of a datagram of n bytes. It sends nothing. Its errors are those of TryWriteBy.
func (c *UDPConn) Check(n int, to netip.AddrPort, by UDPSend) (netip.AddrPort, error) {
	t, options, remote, size, err := c.admit(n, to, &by)
	if err == nil {
		_, _, _, err = c.place(t, min(n, size), remote, &options, &by)
	}
	return remote, err
}

// admit returns what beginWrite returns, and the payload size of each datagram. Errors are those of TryWriteBy that do not
// depend on the path.
func (c *UDPConn) admit(n int, to netip.AddrPort, by *UDPSend) (t *tables, o UDPOptions, remote netip.AddrPort, size int, err error) {
	t, o, remote, err = c.beginWrite(to, by)
	if size = max(n, 1); by.Segment > 0 {
		size = min(size, by.Segment)
	}
	switch {
	case err != nil:
	case remote.Port() == 0:
		err = ErrInvalid
	case n > maxUDP(remote.Addr()):
		err = ErrMessageTooLong
	case !by.Held && !c.hasRoom():
		err = ErrWouldBlock
	case n > size*maxSegments:
		err = ErrInvalid
	}
	return t, o, remote, size, err
}

// place returns the path and the IP header of a datagram of n bytes. whole is false if it will be fragmented.
func (c *UDPConn) place(t *tables, n int, remote netip.AddrPort, o *UDPOptions, by *UDPSend) (p path, h ipHeader, whole bool, err error) {
	p, h, err = c.prepare(t, c.proto, remote, o, by)
	if err == nil {
		err = c.fit(&h, &p, o, remote, wire.UDPLen+n)
	}
	whole = h.length()+wire.UDPLen+n <= p.mtu
	if err == nil && by.Segment > 0 && !whole {
		err = ErrMessageTooLong
	}
	return p, h, whole, err
}

// build returns the IP packet of a datagram, ready to be queued.
func (c *UDPConn) build(t *tables, p []byte, remote netip.AddrPort, o *UDPOptions, by *UDPSend) (outgoing, error) {
	path, header, whole, err := c.place(t, len(p), remote, o, by)
	if err != nil {
		return outgoing{}, err
	}
	f := link.FrameOf(p)
	if c.proto == wire.ProtoUDPLite {
		putUDPLite(f, c.local.Port(), remote.Port(), o.SendCoverage, &header)
	} else {
		h := wire.UDP{SrcPort: c.local.Port(), DstPort: remote.Port(), PayloadLen: len(p)}
		h.Put(f.Prepend(wire.UDPLen))
		finishUDP(f, path.ifc, header.src, header.dst, whole)
	}
	header.put(f)
	c.stack.tally.countBy(header.dst, UDPSent)
	return c.outgoing(f, path, &header), nil
}

// finishUDP computes the checksum of a datagram, or leaves it to a device with checksum offload. The device can do that only
// for a datagram that will not be fragmented (whole).
func finishUDP(f *link.Frame, ifc *Interface, src, dst netip.Addr, whole bool) {
	b := f.Bytes()
	if whole && ifc.offloads.Has(link.OffloadChecksum) {
		f.NeedsChecksum, f.CsumStart, f.CsumOffset = true, 0, 6
		sum := wire.PseudoSum(wire.ProtoUDP, src, dst, len(b))
		b[6], b[7] = byte(sum>>8), byte(sum)
		return
	}
	wire.PutUDPChecksum(b, src, dst)
}

// Close closes the socket. Datagrams already written are still sent.
func (c *UDPConn) Close() error {
	return c.closeBy(func() {
		if c.home != nil {
			c.home.request(c.leave)
			return
		}
		c.stack.onEach(c.leave)
		c.stack.ports.Release(c.port)
	})
}

// normalRemote returns the effective destination: IPv4-mapped addresses become IPv4, and the unspecified address becomes
// the loopback address (as on Linux).
func normalRemote(a netip.AddrPort) netip.AddrPort {
	addr := a.Addr().Unmap()
	switch addr {
	case netip.IPv4Unspecified():
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case netip.IPv6Unspecified():
		addr = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(addr, a.Port())
}
