//go:build linux

// Package nexthop finds out where frames have to go that are not routed by the
// kernel: by which address of Ethernet a destination is reached, and with which
// addresses of our own.
//
// The route is the kernel's (rtnetlink(7)). The neighbour is asked for by ARP or
// Neighbor Discovery, by ourselves (ask.go), unless the kernel knows it already:
// so nothing of the interface is changed.
package nexthop

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"

	"loam/wire"
)

// Path is how a destination is reached.
type Path struct {
	Interface string
	Source    netip.Addr // of the interface; not valid if it has none of the family
	SourceMAC wire.MAC
	Gateway   netip.Addr // the next router, or the destination itself
	NextHop   wire.MAC   // its address
	MTU       int
	Loopback  bool // the interface is that

	broadcast bool // the destination is that of the interface's network
	own       bool // the destination is this host's
}

// Find resolves dst by the interface. An interface without an address takes dst
// for a neighbour, and asks as source. Groups and broadcasts have addresses of their
// own, and on the loopback interface everybody has the address zero.
func Find(name string, dst, source netip.Addr) (Path, error) {
	p, err := Route(name, dst)
	if err != nil {
		return p, err
	}
	if source.IsValid() {
		p.Source = source
	}
	switch {
	case p.Loopback:
		return p, nil
	case p.SourceMAC.IsZero():
		return p, fmt.Errorf("%s is not an Ethernet interface", name)
	case dst.IsMulticast():
		p.Gateway, p.NextHop = dst, wire.MulticastMAC(dst)
		return p, nil
	case p.broadcast || dst == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		p.Gateway, p.NextHop = dst, wire.Broadcast
		return p, nil
	}
	if mac, ok := known(name, p.Gateway); ok {
		p.NextHop = mac
		return p, nil
	}
	p.NextHop, err = ask(p)
	return p, err
}

// Route is Find without the next hop's address.
func Route(name string, dst netip.Addr) (Path, error) {
	p := Path{Interface: name, Gateway: dst}
	link, err := byName(name)
	if err != nil {
		return p, err
	}
	p.MTU = link.Attrs().MTU
	p.Loopback = link.Attrs().Flags&net.FlagLoopback != 0
	copy(p.SourceMAC[:], link.Attrs().HardwareAddr)
	if link.Attrs().Flags&net.FlagUp == 0 {
		return p, fmt.Errorf("%s is down: ip link set %s up", name, name)
	}
	routes, err := netlink.RouteGetWithOptions(dst.AsSlice(), &netlink.RouteGetOptions{Oif: name})
	if err != nil || len(routes) == 0 {
		p.Source = address(link, dst.Is4())
		return p, nil // no route: perhaps it is a neighbour that the kernel does not know of
	}
	p.broadcast, p.own = routes[0].Type == syscall.RTN_BROADCAST, routes[0].Type == syscall.RTN_LOCAL
	if gw, ok := netip.AddrFromSlice(routes[0].Gw); ok {
		p.Gateway = gw.Unmap()
	}
	if src, ok := netip.AddrFromSlice(routes[0].Src); ok {
		p.Source = src.Unmap()
	}
	return p, nil
}

// Interface is the name of the one that the kernel routes dst by.
func Interface(dst netip.Addr) (string, error) {
	routes, err := netlink.RouteGet(dst.AsSlice())
	if err != nil || len(routes) == 0 {
		return "", fmt.Errorf("there is no route to %v", dst)
	}
	i, err := net.InterfaceByIndex(routes[0].LinkIndex)
	if err != nil {
		return "", err
	}
	return i.Name, nil
}

func byName(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("there is no interface %q: ip link lists those that there are", name)
	}
	return link, nil
}

// address is the first address of the interface of that family.
func address(link netlink.Link, is4 bool) (a netip.Addr) {
	family := netlink.FAMILY_V6
	if is4 {
		family = netlink.FAMILY_V4
	}
	list, _ := netlink.AddrList(link, family)
	for _, one := range list {
		if ip, ok := netip.AddrFromSlice(one.IP); ok {
			return ip.Unmap()
		}
	}
	return a
}

// known looks into the kernel's table of neighbours.
func known(name string, a netip.Addr) (m wire.MAC, ok bool) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return m, false
	}
	list, _ := netlink.NeighList(link.Attrs().Index, netlink.FAMILY_ALL)
	const usable = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE | netlink.NUD_PERMANENT
	for _, n := range list {
		if ip, _ := netip.AddrFromSlice(n.IP); ip.Unmap() == a && n.State&usable != 0 && len(n.HardwareAddr) == len(m) {
			copy(m[:], n.HardwareAddr)
			return m, true
		}
	}
	return m, false
}
