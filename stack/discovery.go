package stack

import "net/netip"

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
	DiscoverInterface                  // as for a probe, without DF; what routers say is not believed
	DiscoverOmit                       // likewise, but what is too long for the first link is cut up
)

// byPath reports whether what is known of the path counts.
func (d Discovery) byPath() bool { return d < DiscoverProbe }

// cuts reports whether datagrams may be cut up here.
func (d Discovery) cuts() bool {
	return d == DiscoverWant || d == DiscoverDont || d == DiscoverOmit
}

// believes reports whether the path is taken to be as narrow as routers say.
func (d Discovery) believes() bool { return d < DiscoverInterface }

// tells reports whether the program of a connected socket hears what a router says of a path
// to dst. As on Linux, of IPv4 it does where that is not believed.
func (d Discovery) tells(dst netip.Addr) bool {
	return d != DiscoverDont && (d.believes() || dst.Is4())
}

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

// PathMTU is what a socket is told of a path that a packet was too long for (RFC 3542 section
// 11.3).
type PathMTU struct {
	To  netip.Addr // with a zone where it is only known on a link
	MTU int        // in bytes
}

// TakePathMTU takes what the last packet was too long for, if the program wants to know so.
func (c *datagramSocket) TakePathMTU() (PathMTU, bool) {
	if c.pathTold.Load() == nil || !c.Options().TellPathMTU {
		return PathMTU{}, false
	}
	p := c.pathTold.Swap(nil)
	if p == nil {
		return PathMTU{}, false
	}
	return *p, true
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
