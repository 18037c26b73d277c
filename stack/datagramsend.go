package stack

import (
	"net/netip"

	"loam/link"
	"loam/wire"
)

// Output common to all datagram sockets.

// beginWrite returns the destination and the options for a datagram; the zero AddrPort stands for the peer. Errors:
// ErrClosed, ErrNoDestination, those of tables.destination, and a pending ICMP error about an earlier datagram.
func (c *datagramSocket) beginWrite(to netip.AddrPort, by *UDPSend) (t *tables, o UDPOptions, remote netip.AddrPort, err error) {
	if !by.Held {
		err = c.Err()
	}
	c.mu.Lock()
	o, remote, closed := c.options, c.remote, c.closed
	c.mu.Unlock()
	t = c.stack.tables.Load()
	switch {
	case err != nil:
	case closed:
		err = ErrClosed
	case to.IsValid():
		remote, err = t.destination(c.local.Addr(), to, c.v6Only)
	case !remote.IsValid():
		err = ErrNoDestination
	}
	return t, o, remote, err
}

// pathTo returns the source address and the path of a datagram.
func (c *datagramSocket) pathTo(t *tables, dst netip.Addr, by *UDPSend) (src netip.Addr, p path, err error) {
	src = c.source()
	if by.Source.IsValid() {
		if src, err = t.ownSource(by.Source, dst); err != nil {
			return src, p, err
		}
	}
	switch device := c.device.Load(); {
	case device != nil:
		p, err = t.routeBy(device, src, dst)
	case by.On != nil && dst.Is4() && dst.IsMulticast():
		p = t.pathOn(by.On, dst)
	default:
		if by.On != nil && dst.Zone() == "" && (isScoped(dst) || dst.IsMulticast()) {
			dst = dst.WithZone(by.On.name)
		}
		p, err = t.route(src, dst)
	}
	if !src.IsValid() {
		src = p.source
	}
	return src, p, err
}

// prepare returns the path and the IP header of a datagram. Errors: those of pathTo, ErrAccess for a broadcast without
// the option, ErrNotAvailable if there is no source address.
func (c *datagramSocket) prepare(t *tables, proto wire.Protocol, remote netip.AddrPort, o *UDPOptions, by *UDPSend) (path, ipHeader, error) {
	dst := remote.Addr()
	src, p, err := c.pathTo(t, dst, by)
	if err != nil {
		return p, ipHeader{}, err
	}
	broadcast := dst == limitedBroadcast || t.local[dst].broadcast
	if broadcast && !o.Broadcast {
		return p, ipHeader{}, ErrAccess
	}
	if o.discovery(dst).byPath() {
		c.stack.narrowPath(&p, dst)
	}
	if o.MaxPacket6 != 0 && dst.Is6() {
		p.mtu = min(p.mtu, o.MaxPacket6)
	}
	header := o.header(proto, src, dst)
	header.loops = broadcast || dst.IsMulticast() && o.loops(dst)
	if header.ttl == 0 {
		header.ttl = p.hopLimit()
	}
	if src.Is6() {
		if src.IsUnspecified() {
			return p, header, ErrNotAvailable
		}
		header.label = c.stack.flowLabel(netip.AddrPortFrom(src, c.local.Port()), remote)
	} else {
		header.id = c.stack.nextID(src, dst, proto)
	}
	by.apply(&header)
	return p, header, nil
}

// outgoing returns a complete packet ready for submit, and counts it against the send buffer.
func (c *datagramSocket) outgoing(f *link.Frame, p path, h *ipHeader) outgoing {
	size := f.Cap()
	c.sending.Take(size)
	return outgoing{frame: f, path: p, owner: c, size: size, local: netip.AddrPortFrom(h.src, c.local.Port()), loops: h.loops}
}

// submit queues a packet for the shard of its flow.
func (c *datagramSocket) submit(o *outgoing, remote netip.AddrPort) {
	c.stack.shardFor(o.local, remote).submit(o)
}

// header returns an IP header according to the options. A TTL of 0 means that the path determines it.
func (o *UDPOptions) header(proto wire.Protocol, src, dst netip.Addr) ipHeader {
	h := ipHeader{proto: proto, src: src, dst: dst, ttl: o.TTL, tos: o.TOS}
	group := o.GroupTTL
	if dst.Is6() {
		h.ttl, h.tos, group = o.HopLimit, o.TrafficClass, o.GroupHops
	}
	if dst.IsMulticast() {
		h.ttl = max(group, 1)
	}
	return h
}

// apply overrides header fields with the values of o that are set.
func (o *UDPSend) apply(h *ipHeader) {
	if o.TTL != 0 {
		h.ttl = o.TTL
	}
	if o.HasTOS {
		h.tos = o.TOS
	}
}

// ownSource validates the source of a datagram. Errors: ErrInvalid if it is not an
// address of this host, or has another IP version than the destination.
func (t *tables) ownSource(source, dst netip.Addr) (netip.Addr, error) {
	source = source.Unmap().WithZone("")
	l, ours := t.local[source]
	if source.Is4() != dst.Is4() || l.broadcast || !ours && !(source.Is4() && source.IsLoopback()) {
		return source, ErrInvalid
	}
	return source, nil
}
