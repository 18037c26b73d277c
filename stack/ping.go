package stack

import (
	"context"
	"net/netip"
	"time"

	"loam/link"
	"loam/stack/port"
	"loam/stack/socket"
	"loam/wire"
)

// MaxPing is the largest amount of data in an echo request over IPv4, in bytes. Over IPv6 it is 20 bytes more.
const MaxPing = wire.MaxIPv4 - wire.IPv4MinLen - wire.ICMPv4Len

// Pinger is a socket for ICMP echo, like the ping sockets of Linux (icmp(7)). Its port is the identifier of its requests, and
// it receives the replies with that identifier. It is registered with every shard. A program can exchange ICMP messages, whose
// header is the same in both versions of ICMP (TryWriteTo, TryReadFrom), or only sequence numbers and data (Send, Receive).
type Pinger struct {
	datagramSocket
	binding *port.Binding
}

// ListenPing returns a Pinger that sends from source. If source is the zero Addr, it uses either version of IP and selects the
// source address by route. All errors about its requests are reported. id is the identifier; 0 selects a free one. Errors:
// ErrInUse, ErrNotAvailable, ErrFamily, ErrClosed.
func (s *Stack) ListenPing(source netip.Addr, id uint16) (*Pinger, error) {
	if !source.IsValid() {
		source = s.anywhere("ip")
	}
	return s.ListenPingBy(netip.AddrPortFrom(source, id), UDPOptions{Broadcast: true, SoftErrors: true})
}

// ListenPingBy is ListenPing with options. The address selects the version of IP; the unspecified IPv6 address covers both
// versions unless V6Only is set. Sockets with ReuseAddr may share an identifier; replies then go to the newest.
func (s *Stack) ListenPingBy(local netip.AddrPort, o UDPOptions) (*Pinger, error) {
	local, err := s.checkLocal(local)
	if err != nil {
		return nil, err
	}
	all := netip.AddrPortFrom(netip.IPv6Unspecified(), local.Port()) // both versions share one set of identifiers
	binding, err := s.ports.Bind(wire.ProtoICMP, all, port.Options{ReuseAddr: o.ReuseAddr})
	if err != nil {
		return nil, err
	}
	p := &Pinger{binding: binding}
	p.init(s, "ip", netip.AddrPortFrom(local.Addr(), binding.Local().Port()), o)
	if !s.enter(p.enter) {
		p.Close()
		return nil, ErrClosed
	}
	return p, nil
}

// enter adds the socket to a shard's table as the newest, and leave removes it.
func (p *Pinger) enter(sh *shard) {
	sh.pings[p.ID()] = append([]*Pinger{p}, sh.pings[p.ID()]...)
}

func (p *Pinger) leave(sh *shard) {
	if list := removeOne(sh.pings[p.ID()], p); len(list) > 0 {
		sh.pings[p.ID()] = list
		return
	}
	delete(sh.pings, p.ID())
}

// ID returns the identifier of the socket's requests.
func (p *Pinger) ID() uint16 { return p.local.Port() }

// Source returns the bound address, or the zero Addr.
func (p *Pinger) Source() netip.Addr { return p.source() }

// TryWriteTo sends an echo request. b is an ICMP message; its identifier and checksum are filled in. The port of the
// destination, to, is ignored, and the zero AddrPort means the peer. Errors: ErrInvalid for any other message; ErrWouldBlock,
// ErrClosed, ErrNoDestination, ErrNetUnreachable, ErrMessageTooLong, ErrFamily, ErrAccess for a broadcast without the option,
// and a pending ICMP error about an earlier request.
func (p *Pinger) TryWriteTo(b []byte, to netip.AddrPort) (int, error) {
	return p.TryWriteBy(b, to, UDPSend{})
}

// TryWriteBy is TryWriteTo with per-request options. It also returns ErrInvalid for a
// source that is not an address of this host.
func (p *Pinger) TryWriteBy(b []byte, to netip.AddrPort, by UDPSend) (int, error) {
	if len(b) > wire.MaxIPv6Payload {
		return 0, ErrMessageTooLong
	}
	h, data, err := wire.ParseICMPv4(b)
	if err != nil || h.Code != 0 {
		return 0, ErrInvalid
	}
	dst := to
	if !to.IsValid() {
		dst = p.RemoteAddrPort()
	}
	if dst.IsValid() && uint8(h.Type) != echoTo(dst.Addr().Unmap()) {
		return 0, ErrInvalid
	}
	if err := p.request(h.EchoSeq(), data, to, &by); err != nil {
		return 0, err
	}
	return len(b), nil
}

// echoTo returns the ICMP type of an echo request to an address.
func echoTo(dst netip.Addr) uint8 {
	if dst.Is4() {
		return uint8(wire.ICMPv4Echo)
	}
	return uint8(wire.ICMPv6Echo)
}

// Send sends an echo request with a sequence number and data. Errors are those of TryWriteTo.
func (p *Pinger) Send(dst netip.Addr, seq uint16, data []byte) error {
	if !dst.IsValid() {
		return ErrFamily
	}
	return p.request(seq, data, netip.AddrPortFrom(dst, 0), &UDPSend{})
}

// request sends an echo request.
func (p *Pinger) request(seq uint16, data []byte, to netip.AddrPort, by *UDPSend) error {
	t, o, remote, err := p.beginWrite(to, by)
	if err != nil {
		return err
	}
	remote = netip.AddrPortFrom(remote.Addr(), 0)
	switch most := maxIPPayload(remote.Addr()) - wire.ICMPv4Len; {
	case len(data) > most:
		return ErrMessageTooLong
	case !p.hasRoom():
		return ErrWouldBlock
	}
	out, err := p.build(t, seq, data, remote, &o, by)
	if err != nil {
		return err
	}
	out.local = netip.AddrPortFrom(out.local.Addr(), 0) // replies are assigned to a shard by addresses alone
	p.submit(&out, remote)
	return nil
}

// maxIPPayload returns the largest payload of a packet to an address, in bytes.
func maxIPPayload(to netip.Addr) int {
	if to.Is4() {
		return wire.MaxIPv4 - wire.IPv4MinLen
	}
	return wire.MaxIPv6Payload
}

// build returns the packet of an echo request, ready to be queued.
func (p *Pinger) build(t *tables, seq uint16, data []byte, remote netip.AddrPort, o *UDPOptions, by *UDPSend) (outgoing, error) {
	proto := wire.ProtoICMP
	if remote.Addr().Is6() {
		proto = wire.ProtoICMPv6
	}
	path, header, err := p.prepare(t, proto, remote, o, by)
	if err == nil {
		err = p.fit(&header, &path, o, remote, wire.ICMPv4Len+len(data))
	}
	if err != nil {
		return outgoing{}, err
	}
	f := link.FrameOf(data)
	h := wire.ICMPv4{Type: wire.ICMPv4Type(echoTo(remote.Addr())), Rest: wire.EchoRest(p.ID(), seq)}
	h.Put(f.Prepend(wire.ICMPv4Len))
	if proto == wire.ProtoICMP {
		wire.PutICMPv4Checksum(f.Bytes())
	} else {
		wire.PutICMPv6Checksum(f.Bytes(), header.src, header.dst)
	}
	header.put(f)
	p.stack.tally.countBy(header.dst, ICMPSent)
	return p.outgoing(f, path, &header), nil
}

// TryReadFrom returns the oldest reply as an unmodified ICMP message. See the method of UDPConn.
func (p *Pinger) TryReadFrom(b []byte) (int, Datagram, error) {
	return withoutPort(p.datagramSocket.TryReadFrom(b))
}

// PeekFrom is TryReadFrom without removing the reply.
func (p *Pinger) PeekFrom(b []byte) (int, Datagram, error) {
	return withoutPort(p.datagramSocket.PeekFrom(b))
}

// withoutPort clears the port, which holds the sequence number.
func withoutPort(n int, d Datagram, err error) (int, Datagram, error) {
	d.From = netip.AddrPortFrom(d.From.Addr(), 0)
	return n, d, err
}

// TryReceive returns the data of the oldest reply. In the returned Datagram, From has the sender, and the sequence number as
// its port. Errors: ErrWouldBlock, ErrClosed, and a pending ICMP error about a request.
func (p *Pinger) TryReceive(b []byte) (int, Datagram, error) {
	n, info, err := p.read(b, p.takeData)
	info.Len = max(0, info.Len-wire.ICMPv4Len)
	return n, info, err
}

// takeData takes an ICMP message from the queue and copies its data, without the header, to b.
func (p *Pinger) takeData(b []byte) (n int, info Datagram, ok bool) {
	return p.queue.TakeFrom(wire.ICMPv4Len, b)
}

// Receive waits for a reply and returns it. See TryReceive.
func (p *Pinger) Receive(b []byte) (int, Datagram, error) {
	r, err := socket.Await(&p.readers, func() (received, error) {
		n, info, err := p.TryReceive(b)
		return received{n, info}, err
	})
	return r.n, r.info, err
}

// Close closes the socket.
func (p *Pinger) Close() error {
	return p.closeBy(func() {
		p.stack.onEach(p.leave)
		p.stack.ports.Release(p.binding)
	})
}

// PingReply describes the reply to Stack.Ping.
type PingReply struct {
	From netip.Addr
	Len  int // bytes of data in the reply
	TTL  uint8
	RTT  time.Duration
}

// Ping sends one echo request with size bytes of data and waits for the reply until ctx ends. A lost request is not repeated.
func (s *Stack) Ping(ctx context.Context, dst netip.Addr, size int) (PingReply, error) {
	p, err := s.ListenPing(netip.Addr{}, 0)
	if err != nil {
		return PingReply{}, err
	}
	defer p.Close()
	stop := context.AfterFunc(ctx, func() { p.Close() })
	defer stop()
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i)
	}
	began := time.Now()
	if err := p.Send(dst, 1, data); err != nil {
		return PingReply{}, err
	}
	n, info, err := p.Receive(data)
	if ctx.Err() != nil {
		return PingReply{}, context.Cause(ctx)
	}
	if err != nil {
		return PingReply{}, err
	}
	return PingReply{From: info.From.Addr(), Len: n, TTL: info.TTL, RTT: time.Since(began)}, nil
}
