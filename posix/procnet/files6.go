package procnet

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"loam/posix/netdevice"
	"loam/posix/socket"
)

// The files of /proc/net about IPv6.

// Address scopes (net/ipv6.h) and the flag of permanent addresses in if_inet6, and values of
// ipv6_route.
const (
	scopeGlobal, scopeHost, scopeLink = 0, 0x10, 0x20
	addressPermanent                  = 0x80
	routeUp6                          = 1
	noMetric6                         = 1024
)

// hex6 formats an address as 32 hexadecimal digits.
func hex6(a netip.Addr) string {
	b := a.As16()
	return hex.EncodeToString(b[:])
}

// procIfInet6 lists the IPv6 addresses.
func (p *View) procIfInet6() string {
	var b strings.Builder
	if p.Net == nil {
		return ""
	}
	for _, a := range p.Net.Addresses() {
		addr := a.Prefix.Addr()
		if addr.Is4() {
			continue
		}
		scope := scopeGlobal
		switch {
		case addr.IsLoopback():
			scope = scopeHost
		case addr.IsLinkLocalUnicast():
			scope = scopeLink
		}
		fmt.Fprintf(&b, "%s %02x %02x %02x %02x %8s\n", hex6(addr), netdevice.Index(p.Net, a.Interface), a.Prefix.Bits(), scope, addressPermanent, a.Interface)
	}
	return b.String()
}

// procIPv6Route lists the IPv6 routes, including those to directly connected networks.
func (p *View) procIPv6Route() string {
	var b strings.Builder
	if p.Net == nil {
		return ""
	}
	add := func(name string, dst netip.Prefix, gateway netip.Addr, metric int) {
		flags := routeUp6
		if gateway.IsValid() {
			flags |= routeGateway
		} else {
			gateway = netip.IPv6Unspecified()
		}
		fmt.Fprintf(&b, "%s %02x %s 00 %s %08x %08x %08x %08x %8s\n", hex6(dst.Masked().Addr()), dst.Bits(),
			hex6(netip.IPv6Unspecified()), hex6(gateway), metric, 1, 0, flags, name)
	}
	for _, a := range p.Net.Addresses() {
		if a.Prefix.Addr().Is6() {
			add(a.Interface, a.Prefix, netip.Addr{}, 256)
		}
	}
	for _, r := range p.Net.Routes() {
		if r.Dst.Addr().Is6() {
			add(p.routeInterface(r), r.Dst, r.Gateway, noMetric6+r.Metric)
		}
	}
	return b.String()
}

// Flags of groups in igmp6 (net/if_inet6.h).
const (
	groupTimer, groupReporter, groupLoaded, groupUntold = 1, 2, 4, 8
)

// procIGMP6 lists the IPv6 multicast memberships of each interface. Every interface is a member of the
// all-nodes group, which is never reported by MLD.
func (p *View) procIGMP6() string {
	var b strings.Builder
	for _, i := range netdevice.All(p.Net) {
		everybody := netip.IPv6LinkLocalAllNodes()
		for _, m := range members(i.Groups().Members, everybody) {
			running, left := ReportTimer(&m)
			flags := groupLoaded | running*groupTimer
			switch {
			case m.Group == everybody:
				flags |= groupUntold
			case m.Reporter:
				flags |= groupReporter
			}
			fmt.Fprintf(&b, "%-4d %-15s %s %5d %08X %d\n", i.Index(), i.Name(), hex6(m.Group), m.Users, flags, left)
		}
	}
	return b.String()
}

// procMCFilter6 is procMCFilter for IPv6.
func (p *View) procMCFilter6() string {
	var b strings.Builder
	b.WriteString("Idx Device                Multicast Address                   Source Address    INC    EXC\n")
	for _, i := range netdevice.All(p.Net) {
		for _, m := range mentions(i, false) {
			fmt.Fprintf(&b, "%3d %6.6s %s %s %6d %6d\n", i.Index(), i.Name(), hex6(m.Group), hex6(m.Source), m.Include, m.Exclude)
		}
	}
	return b.String()
}

// hexEndpoint6 formats an address and port for /proc/net/tcp6 and udp6. The address is four numbers in
// the machine's byte order.
func hexEndpoint6(a socket.Address) string {
	ip := netip.IPv6Unspecified()
	if a.IP.IsValid() {
		ip = a.IP.Addr()
	}
	b := ip.As16()
	var text strings.Builder
	for i := 0; i < len(b); i += 4 {
		fmt.Fprintf(&text, "%08X", binary.NativeEndian.Uint32(b[i:]))
	}
	return fmt.Sprintf("%s:%04X", text.String(), a.IP.Port())
}
