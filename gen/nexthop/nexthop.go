//go:build linux

// Package nexthop determines the addresses of frames that bypass the kernel's routing: the Ethernet address of the next
// hop, and the source addresses.
//
// The route comes from the kernel (rtnetlink(7)). The Ethernet address of a neighbour comes from the kernel's neighbour
// table if it is there. Otherwise this package resolves it by ARP or Neighbor Discovery (ask.go). The configuration and
// the neighbour table of the interface do not change.
package nexthop

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"

	"loam/wire"
)

// Path is the route to a destination.
type Path struct {
	Interface string
	Source    netip.Addr // address of the interface; not valid if it has no address of the IP version
	SourceMAC wire.MAC
	Gateway   netip.Addr // the next router, or the destination itself
	NextHop   wire.MAC   // Ethernet address of the gateway
	MTU       int
	Loopback  bool // the interface is a loopback interface

	broadcast bool // the destination is a broadcast address of the interface's network
	own       bool // the destination is an address of this host
}

// Find resolves the next hop to dst through the interface called name. If the interface has no address, Find assumes
// that dst is a neighbour, and uses source as the sender address of ARP and neighbour discovery requests. Multicast and
// broadcast destinations have fixed Ethernet addresses. On the loopback interface every address is zero.
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

// Route is like Find but does not resolve the next hop's Ethernet address.
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
		return p, nil // no route: dst may be a neighbour although the kernel has no route to it
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

// Interface returns the name of the interface that the kernel uses to reach dst.
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

// address returns the first address of the interface that has the given IP version.
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

// known returns the Ethernet address of a from the kernel's neighbour table, if it is there.
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
