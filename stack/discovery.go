package stack

import "net/netip"

// Discovery is the path MTU discovery mode of a datagram socket: IP_MTU_DISCOVER of ip(7), IPV6_MTU_DISCOVER of ipv6(7). A
// datagram that is too long and must not be fragmented fails with ErrMessageTooLong.
type Discovery uint8

// Path MTU discovery modes. Unlike on Linux, the numbers start with the default.
const (
	DiscoverWant      Discovery = iota // Don't-Fragment (DF) is set if the datagram fits the path MTU; otherwise the datagram is fragmented
	DiscoverDont                       // Don't-Fragment is never set
	DiscoverDo                         // packets are never fragmented
	DiscoverProbe                      // packets are never fragmented, and the interface's MTU replaces the path MTU
	DiscoverInterface                  // like DiscoverProbe, without DF; reports of routers are ignored
	DiscoverOmit                       // like DiscoverInterface, but packets too long for the interface are fragmented
)

// byPath reports whether the known path MTU applies.
func (d Discovery) byPath() bool { return d < DiscoverProbe }

// cuts reports whether this host may fragment datagrams.
func (d Discovery) cuts() bool {
	return d == DiscoverWant || d == DiscoverDont || d == DiscoverOmit
}

// believes reports whether MTU reports of routers are accepted.
func (d Discovery) believes() bool { return d < DiscoverInterface }

// reports returns whether the program of a connected socket gets a router's MTU report for dst as an error. As on
// Linux, a program that uses IPv4 gets the error even if the report is not believed.
func (d Discovery) reports(dst netip.Addr) bool {
	return d != DiscoverDont && (d.believes() || dst.Is4())
}

// discovery returns the mode for a destination's version of IP.
func (o *UDPOptions) discovery(dst netip.Addr) Discovery {
	if dst.Is6() {
		return o.Discovery6
	}
	return o.Discovery
}

// fit decides whether a packet with payload bytes after the IP header may be sent unfragmented, and sets h.atomic if no
// router may fragment it either. Errors: ErrMessageTooLong.
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

// narrowPath lowers the MTU of a path to the path MTU learned for dst.
func (s *Stack) narrowPath(p *path, dst netip.Addr) {
	if !s.paths.Any() {
		return
	}
	if learned, ok := s.paths.Lookup(s.now(), dst.WithZone("")); ok {
		p.mtu, p.narrow = min(p.mtu, learned.MTU), learned.Narrow
	}
}

// PathMTU reports the MTU of a path for which a packet was too long (RFC 3542 section 11.3).
type PathMTU struct {
	To  netip.Addr // destination, with a zone if it is link-local
	MTU int        // the path MTU in bytes
}

// TakePathMTU returns and clears the last report of a packet that was too long. It returns false if there is none, or the
// option ReportPathMTU is off.
func (c *datagramSocket) TakePathMTU() (PathMTU, bool) {
	if c.pathReport.Load() == nil || !c.Options().ReportPathMTU {
		return PathMTU{}, false
	}
	p := c.pathReport.Swap(nil)
	if p == nil {
		return PathMTU{}, false
	}
	return *p, true
}

// PathMTU returns the size of the largest packet that is known to reach an address, in
// bytes (IP_MTU). Errors: ErrNetUnreachable.
func (s *Stack) PathMTU(dst netip.Addr) (int, error) {
	p, err := s.tables.Load().route(netip.Addr{}, dst)
	if err != nil {
		return 0, err
	}
	s.narrowPath(&p, dst)
	return p.mtu, nil
}
