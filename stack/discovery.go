package stack

import (
	"net/netip"

	"loam/stack/icmp"
	"loam/stack/ip"
)

// Discovery is what a socket for datagrams does about the MTU of their path: IP_MTU_DISCOVER
// of ip(7), IPV6_MTU_DISCOVER of ipv6(7). What may not be cut up and is too long is
// ErrMessageTooLong.
type Discovery uint8

// The ways. Unlike Linux's, the numbers begin with what is so by default.
const (
	DiscoverWant      Discovery = iota // DF is set on what fits the path, and what does not is cut up here
	DiscoverDont                       // DF is never set
	DiscoverDo                         // nothing is cut up
	DiscoverProbe                      // nothing is cut up, and the path is taken to be as wide as its first link
	DiscoverInterface                  // as for a probe, without DF; what routers say is not heard
	DiscoverOmit                       // likewise, but what is too long for the first link is cut up
)

// byPath reports whether what is known of the path counts.
func (d Discovery) byPath() bool { return d < DiscoverProbe }

// cuts reports whether datagrams may be cut up here.
func (d Discovery) cuts() bool {
	return d == DiscoverWant || d == DiscoverDont || d == DiscoverOmit
}

// hears reports whether messages of routers are believed.
func (d Discovery) hears() bool { return d < DiscoverInterface }

// discovery is that for a destination.
func (o *UDPOptions) discovery(dst netip.Addr) Discovery {
	if dst.Is6() {
		return o.Discovery6
	}
	return o.Discovery
}

// fit says whether a packet with so many bytes behind the IP header goes out in one piece
// that nobody may cut up, and sets the header so. Errors: ErrMessageTooLong.
func (h *ipHeader) fit(p *path, d Discovery, payload int) error {
	fits := h.length()+payload <= p.mtu
	switch {
	case !fits && !d.cuts():
		return ErrMessageTooLong
	case d == DiscoverWant:
		h.atomic = fits && !p.narrow
	default:
		h.atomic = d == DiscoverDo || d == DiscoverProbe
	}
	return nil
}

// narrowPath lowers the MTU of a path to what has been learnt of it.
func (s *Stack) narrowPath(p *path, dst netip.Addr) {
	if s.paths.generation.Load() == 0 { // nothing has ever been learnt
		return
	}
	if learned, ok := s.paths.lookup(s.now(), dst.WithZone("")); ok {
		p.mtu, p.narrow = min(p.mtu, learned.MTU), learned.Narrow
	}
}

// PathMTU is the longest packet that is known to get to an address (IP_MTU). Errors:
// ErrNetUnreachable.
func (s *Stack) PathMTU(dst netip.Addr) (int, error) {
	p, err := s.tables.Load().route(netip.Addr{}, dst)
	if err != nil {
		return 0, err
	}
	s.narrowPath(&p, dst)
	return p.mtu, nil
}

// inputError takes an ICMP error about a packet of the socket's, and reports whether it tells
// anything. As on Linux without IP_RECVERR, the program hears only what is final.
func (c *datagramSocket) inputError(sh *shard, q *icmp.Quote, kind icmp.Kind, mtu int) bool {
	if kind == icmp.TooBig {
		return c.tooBig(sh, q, mtu)
	}
	return c.hearError(kind)
}

// tooBig takes a router's word that a packet of the socket's was too long, and reports
// whether it is believed. The program of a connected socket is told, as on Linux, unless its
// datagrams may be cut up anywhere.
func (c *datagramSocket) tooBig(sh *shard, q *icmp.Quote, mtu int) bool {
	o := c.Options()
	d := o.discovery(q.Dst)
	if !d.hears() {
		return false
	}
	if mtu == 0 {
		mtu = ip.Plateau(q.Length)
	}
	sh.stack.paths.learn(sh.now, q.Dst, mtu, q.Length)
	if d != DiscoverDont && c.peer.Load() != nil {
		c.fail(ErrMessageTooLong)
	}
	return true
}
