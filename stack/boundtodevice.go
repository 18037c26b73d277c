package stack

import (
	"net/netip"

	"loam/stack/ip"
)

// Sockets that are bound to an interface (SO_BINDTODEVICE): they send by it, and hear what
// arrives there.

// SetDevice binds the socket to an interface; nil undoes it.
func (c *datagramSocket) SetDevice(on *Interface) { c.device.Store(on) }

// Device is the interface of SetDevice, or nil.
func (c *datagramSocket) Device() *Interface { return c.device.Load() }

// hearsOn reports whether the socket hears what arrives at an interface; nil stands for one
// that is not known.
func (c *datagramSocket) hearsOn(ifc *Interface) bool {
	on := c.device.Load()
	return on == nil || ifc == nil || on == ifc
}

// routeBy is route by one interface. A destination that no route of it leads to is taken to
// be on its link, as on Linux. Errors: those of route.
func (t *tables) routeBy(ifc *Interface, source, dst netip.Addr) (path, error) {
	switch {
	case t.byIndex(ifc.index) == nil:
		return path{}, ErrNetUnreachable
	case dst.Is6() && (isScoped(dst) || dst.IsMulticast()):
		return t.route(source, dst.WithZone(ifc.name))
	case dst == limitedBroadcast || dst.IsMulticast():
		return t.pathOn(ifc, dst), nil
	}
	if p, err := t.route(source, dst); err == nil && (p.ifc == ifc || t.local[dst].ifc == ifc) {
		return p, nil
	}
	p := path{tables: t, ifc: ifc, nextHop: dst}
	if gateway := t.gatewayBy(ifc, dst); gateway.IsValid() {
		p.nextHop = gateway.WithZone("")
	}
	if dst.Is6() {
		p.source, p.mtu = t.source6(ifc, dst), t.mtu6(ifc)
	} else {
		p.source, p.mtu = t.sourceOn(ifc, p.nextHop), ifc.ipv4MTU()
	}
	return p, nil
}

// gatewayBy is the gateway of the best route by an interface, or the zero Addr.
func (t *tables) gatewayBy(ifc *Interface, dst netip.Addr) netip.Addr {
	var by []ip.Route
	for _, r := range t.routes {
		if r.Interface == ifc.name {
			by = append(by, ip.Route{Dst: r.Dst, Gateway: r.Gateway, Interface: ifc.index, Metric: r.Metric})
		}
	}
	table := ip.NewTable(by)
	r, _ := table.Lookup(dst)
	return r.Gateway
}
