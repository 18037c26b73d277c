package stack

import (
	"context"
	"net/netip"
	"time"

	"loam/link"
	"loam/stack/port"
	"loam/wire"
)

// MaxPing is the most data that an echo request carries over IPv4; over IPv6 it is 20
// bytes more.
const MaxPing = wire.MaxIPv4 - wire.IPv4MinLen - wire.ICMPv4Len

// Pinger is a socket for ICMP echo, as Linux's ping sockets are (icmp(7)): its port is the
// identifier of its requests, and replies with that come to it. Every shard knows it. The
// program gives and gets messages, whose header is of one form in both versions of ICMP
// (TryWriteTo, TryReadFrom), or just sequence numbers and data (Send, Receive).
type Pinger struct {
	datagramSocket
	binding *port.Binding
}

// ListenPing makes a Pinger that sends from source, or from the best address of either
// version of IP if it is the zero Addr, and hears of all errors about its requests. id
// asks for an identifier; 0 means one that is free. Errors: ErrInUse, ErrNotAvailable,
// ErrFamily.
func (s *Stack) ListenPing(source netip.Addr, id uint16) (*Pinger, error) {
	if !source.IsValid() {
		source = s.anywhere("ip")
	}
	return s.ListenPingBy(netip.AddrPortFrom(source, id), UDPOptions{Broadcast: true, SoftErrors: true})
}

// ListenPingBy is ListenPing with options. The address says which version of IP the socket
// is for; all of IPv6 without V6Only are those of IPv4 as well. Sockets with ReuseAddr share
// an identifier; replies come to the newest.
func (s *Stack) ListenPingBy(local netip.AddrPort, o UDPOptions) (*Pinger, error) {
	local, err := s.checkLocal(local)
	if err != nil {
		return nil, err
	}
	all := netip.AddrPortFrom(netip.IPv6Unspecified(), local.Port()) // identifiers are one set for both versions
	binding, err := s.ports.bind(wire.ProtoICMP, all, port.Options{ReuseAddr: o.ReuseAddr})
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

// ID is the identifier of its requests.
func (p *Pinger) ID() uint16 { return p.local.Port() }

// Source is the address that it is bound to, or the zero Addr.
func (p *Pinger) Source() netip.Addr { return p.source() }

// TryWriteTo sends an echo request: a message of ICMP, whose identifier and checksum are
// filled in here. The port of to means nothing; the zero AddrPort is the peer. Errors:
// ErrInvalid for another message; ErrWouldBlock when the device does not keep up,
// ErrClosed, ErrNoDestination, ErrNetUnreachable, ErrMessageTooLong, ErrFamily, ErrAccess
// for broadcast without the option, and what an ICMP error said about an earlier request.
func (p *Pinger) TryWriteTo(b []byte, to netip.AddrPort) (int, error) {
	return p.TryWriteBy(b, to, UDPSend{})
}

// TryWriteBy is TryWriteTo for a request that goes its own way. Errors besides its:
// ErrInvalid for a source that is not ours.
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

// echoTo is the type of an echo request to an address.
func echoTo(dst netip.Addr) uint8 {
	if dst.Is4() {
		return uint8(wire.ICMPv4Echo)
	}
	return uint8(wire.ICMPv6Echo)
}

// Send sends a request with a sequence number and data. Errors: those of TryWriteTo.
func (p *Pinger) Send(dst netip.Addr, seq uint16, data []byte) error {
	if !dst.IsValid() {
		return ErrFamily
	}
	return p.request(seq, data, netip.AddrPortFrom(dst, 0), &UDPSend{})
}

// request sends one.
func (p *Pinger) request(seq uint16, data []byte, to netip.AddrPort, by *UDPSend) error {
	t, o, remote, err := p.beginWrite(to)
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
	out.local = netip.AddrPortFrom(out.local.Addr(), 0) // replies come to the shard of the addresses alone
	p.submit(&out, remote)
	return nil
}

// maxIPPayload is the most that a packet to an address carries, in bytes.
func maxIPPayload(to netip.Addr) int {
	if to.Is4() {
		return wire.MaxIPv4 - wire.IPv4MinLen
	}
	return wire.MaxIPv6Payload
}

// build makes the packet of a request.
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
	f := link.NewFrame(len(data))
	copy(f.Bytes(), data)
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

// TryReadFrom takes the oldest reply, a message of ICMP as it came: see UDPConn.
func (p *Pinger) TryReadFrom(b []byte) (int, Datagram, error) {
	return withoutPort(p.datagramSocket.TryReadFrom(b))
}

// PeekFrom is TryReadFrom but leaves the reply there.
func (p *Pinger) PeekFrom(b []byte) (int, Datagram, error) {
	return withoutPort(p.datagramSocket.PeekFrom(b))
}

// withoutPort takes the sequence number out of what was read.
func withoutPort(n int, d Datagram, err error) (int, Datagram, error) {
	d.From = netip.AddrPortFrom(d.From.Addr(), 0)
	return n, d, err
}

// TryReceive takes the oldest reply: its data, and in info who sent it (From)
// and the sequence number (From's port). Errors: ErrWouldBlock, ErrClosed, and
// what an ICMP error said about a request.
func (p *Pinger) TryReceive(b []byte) (int, Datagram, error) {
	n, info, err := p.read(b, p.takeData)
	info.Len = max(0, info.Len-wire.ICMPv4Len)
	return n, info, err
}

// takeData is take for a message of ICMP, of which b gets the data.
func (p *Pinger) takeData(b []byte) (n int, info Datagram, ok bool) {
	return p.queue.takeFrom(wire.ICMPv4Len, b)
}

// Receive waits for a reply: see TryReceive.
func (p *Pinger) Receive(b []byte) (int, Datagram, error) {
	r, err := await(&p.readers, func() (received, error) {
		n, info, err := p.TryReceive(b)
		return received{n, info}, err
	})
	return r.n, r.info, err
}

// Close closes the socket.
func (p *Pinger) Close() error {
	return p.closeBy(func() {
		p.stack.onEach(p.leave)
		p.stack.ports.release(p.binding)
	})
}

// PingReply is the answer to Stack.Ping.
type PingReply struct {
	From netip.Addr
	Len  int // bytes of data
	TTL  uint8
	RTT  time.Duration
}

// Ping sends one echo request with size bytes of data and waits for the reply,
// until ctx ends.
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
