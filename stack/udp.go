package stack

import (
	"net/netip"

	"loam/link"
	"loam/stack/port"
	"loam/wire"
)

// MaxUDP and MaxUDP6 are the largest payloads of a UDP datagram over IPv4 and IPv6.
const (
	MaxUDP  = wire.MaxIPv4 - wire.IPv4MinLen - wire.UDPLen
	MaxUDP6 = wire.MaxIPv6Payload - wire.UDPLen
)

// UDPOptions are the options of a socket for datagrams, of UDP or not. The zero value is
// the default of each; socket(7) and ip(7) name what is in the comments.
type UDPOptions struct {
	Broadcast     bool       // SO_BROADCAST: sending to broadcast addresses is allowed
	ReuseAddr     bool       // SO_REUSEADDR
	ReusePort     bool       // SO_REUSEPORT
	TTL           uint8      // IP_TTL; zero: 64
	GroupTTL      uint8      // IP_MULTICAST_TTL: the same for groups; zero: 1
	TOS           uint8      // IP_TOS
	HopLimit      uint8      // IPV6_UNICAST_HOPS; zero: as routers say, or 64
	GroupHops     uint8      // IPV6_MULTICAST_HOPS: the same for groups; zero: 1
	TrafficClass  uint8      // IPV6_TCLASS
	Discovery     Discovery  // IP_MTU_DISCOVER
	Discovery6    Discovery  // IPV6_MTU_DISCOVER
	Device        *Interface // SO_BINDTODEVICE, as the socket begins: see SetDevice
	Whole6        bool       // IPV6_DONTFRAG: no packet of IPv6 is cut up here
	TellPathMTU   bool       // IPV6_RECVPATHMTU: TakePathMTU says what Whole6 has stopped
	MaxPacket6    int        // IPV6_MTU: packets of IPv6 that are longer are cut up; zero: by the path
	NoLoop        bool       // IP_MULTICAST_LOOP is off: what is sent to groups is not heard on this host
	NoLoop6       bool       // IPV6_MULTICAST_LOOP: the same for IPv6
	V6Only        bool       // IPV6_V6ONLY: bound to all addresses of IPv6, not those of IPv4 as well
	ReceiveBuffer int        // SO_RCVBUF; zero: 2 MiB
	SendBuffer    int        // SO_SNDBUF; zero: 1 MiB

	// Groups is the multicast groups that the socket begins in; nil: none.
	Groups *Memberships
	// AllGroups and AllGroups6 have the socket hear, of groups that it has not joined, what
	// others hear on the interface: IP_MULTICAST_ALL and IPV6_MULTICAST_ALL, which are set on
	// Linux if nobody says otherwise.
	AllGroups, AllGroups6 bool

	QueueErrors  bool // IP_RECVERR: errors about datagrams to IPv4 are kept for TakeError, and all told
	QueueErrors6 bool // IPV6_RECVERR: the same for IPv6

	TellExtensions  bool // IP_RECVERR_RFC4884: DatagramError.Extensions is told, of errors about datagrams to IPv4
	TellExtensions6 bool // IPV6_RECVERR_RFC4884: the same for IPv6

	// SoftErrors has ICMP errors be told that may pass, and those about datagrams that
	// were sent without a peer.
	SoftErrors bool
}

// UDPConn is a UDP socket. Every shard knows it, since its datagrams may belong
// to any; a program builds a datagram on its own goroutine, checksum included,
// and leaves it to the shard of the flow.
//
// The methods here never block: ReadFrom and WriteTo are in net.go.
type UDPConn struct {
	datagramSocket
	home *shard        // the only shard that knows it: a forwarder's socket; nil: all
	port *port.Binding // nil: a forwarder's
}

// Filter says how many bytes of a datagram, which begins with its UDP header, a socket
// keeps; 0: it does not get the datagram. Several shards may call it at once.
type Filter func(datagram []byte) uint32

// filtered cuts a payload to what the filter keeps, and reports whether it keeps any. Its
// header is put before it again meanwhile, without the checksum.
func (c *UDPConn) filtered(f *link.Frame, info *Datagram) bool {
	filter := c.filter.Load()
	if filter == nil {
		return true
	}
	h := wire.UDP{SrcPort: info.From.Port(), DstPort: info.To.Port(), PayloadLen: f.Len()}
	h.Put(f.Prepend(wire.UDPLen))
	n := (*filter)(f.Bytes())
	f.TrimFront(wire.UDPLen)
	if keep := int(max(n, wire.UDPLen) - wire.UDPLen); keep < f.Len() {
		f.Resize(keep)
		info.Len = keep
	}
	return n > 0
}

// ListenUDP makes a socket bound to local; the zero address means any, port 0
// one that is free. Errors: ErrInUse, ErrNotAvailable, ErrFamily.
func (s *Stack) ListenUDP(local netip.AddrPort, o UDPOptions) (*UDPConn, error) {
	local, err := s.checkLocal(local)
	if err != nil {
		return nil, err
	}
	b, err := s.ports.bind(wire.ProtoUDP, local, o.sharing())
	if err != nil {
		return nil, err
	}
	c := s.newUDPConn(b.Local(), o)
	c.port = b
	if !s.enter(c.enter) {
		c.Close()
		return nil, ErrClosed
	}
	return c, nil
}

func (s *Stack) newUDPConn(local netip.AddrPort, o UDPOptions) *UDPConn {
	c := &UDPConn{}
	c.init(s, "udp", local, o)
	return c
}

// SetDevice binds the socket to an interface; nil undoes it. Another socket can have the port
// on another interface then.
func (c *UDPConn) SetDevice(on *Interface) {
	c.datagramSocket.SetDevice(on)
	c.stack.ports.setDevice(c.port, on)
}

func (c *UDPConn) enter(sh *shard) {
	for _, at := range keys(c.local, c.v6Only) {
		sh.sockets[at] = append(sh.sockets[at], c)
	}
}

func (c *UDPConn) leave(sh *shard) {
	for _, at := range keys(c.local, c.v6Only) {
		if list := removeOne(sh.sockets[at], c); len(list) == 0 {
			delete(sh.sockets, at)
		} else {
			sh.sockets[at] = list
		}
	}
}

// TryWriteTo sends a datagram to to, or to the peer of a connected socket when
// to is the zero AddrPort. Errors: ErrWouldBlock, ErrMessageTooLong,
// ErrNoDestination, ErrNetUnreachable, ErrAccess for broadcast without the
// option, ErrClosed, and what an ICMP error said about an earlier datagram of a
// connected socket.
func (c *UDPConn) TryWriteTo(p []byte, to netip.AddrPort) (int, error) {
	return c.TryWriteBy(p, to, UDPSend{})
}

// UDPSend says how one datagram goes, where that is not by the socket and its options:
// the control messages of ip(7) and RFC 3542.
type UDPSend struct {
	Source netip.Addr // an address of this host; zero: the socket's
	On     *Interface // for groups and link-local addresses; nil: by the routes
	TTL    uint8      // or hop limit; zero: the socket's
	TOS    uint8      // or traffic class
	HasTOS bool       // TOS is meant, and not the socket's

	// Segment is how long each datagram is, of several that the bytes are cut into, but
	// for the last; 0: there is one (UDP_SEGMENT). What is to be cut so is not cut up
	// otherwise: it is ErrMessageTooLong.
	Segment int
}

// maxSegments is how many datagrams one call sends (UDP_MAX_SEGMENTS of linux/udp.h).
const maxSegments = 128

// TryWriteBy is TryWriteTo for a datagram that goes its own way. Errors besides its:
// ErrInvalid for a source that is not ours, or for too many segments.
func (c *UDPConn) TryWriteBy(p []byte, to netip.AddrPort, by UDPSend) (int, error) {
	t, options, remote, err := c.beginWrite(to)
	switch {
	case err != nil:
		return 0, err
	case remote.Port() == 0:
		return 0, ErrInvalid
	case len(p) > maxUDP(remote.Addr()):
		return 0, ErrMessageTooLong
	case !c.hasRoom():
		return 0, ErrWouldBlock
	}
	size := max(len(p), 1)
	if by.Segment > 0 && by.Segment < len(p) {
		size = by.Segment
	}
	if len(p) > size*maxSegments {
		return 0, ErrInvalid
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

// build makes the IP packet of a datagram.
func (c *UDPConn) build(t *tables, p []byte, remote netip.AddrPort, o *UDPOptions, by *UDPSend) (outgoing, error) {
	path, header, err := c.prepare(t, wire.ProtoUDP, remote, o, by)
	if err == nil {
		err = c.fit(&header, &path, o, remote, wire.UDPLen+len(p))
	}
	whole := header.length()+wire.UDPLen+len(p) <= path.mtu
	switch {
	case err != nil:
		return outgoing{}, err
	case by.Segment > 0 && !whole:
		return outgoing{}, ErrMessageTooLong
	}
	f := link.NewFrame(len(p))
	copy(f.Bytes(), p)
	h := wire.UDP{SrcPort: c.local.Port(), DstPort: remote.Port(), PayloadLen: len(p)}
	h.Put(f.Prepend(wire.UDPLen))
	finishUDP(f, path.ifc, header.src, header.dst, whole)
	header.put(f)
	c.stack.tally.countBy(header.dst, UDPSent)
	return c.outgoing(f, path, &header), nil
}

// finishUDP fills in the checksum of a datagram, or leaves it to the device,
// which can do it only for a datagram that is not going to be fragmented.
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

// Close closes the socket. What has been written is still sent.
func (c *UDPConn) Close() error {
	return c.closeBy(func() {
		if c.home != nil {
			c.home.request(c.leave)
			return
		}
		c.stack.onEach(c.leave)
		c.stack.ports.release(c.port)
	})
}

// normalRemote is the destination that is meant: IPv4-mapped addresses are
// IPv4, and the unspecified address is this host (as on Linux).
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
