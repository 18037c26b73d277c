package stack

import (
	"net/netip"

	"loam/stack/ip"
	"loam/stack/port"
)

// Sockets bound to an interface (SO_BINDTODEVICE). They send on that interface and receive only packets that arrive there.

// SetDevice binds the socket to an interface; nil removes the binding.
func (c *datagramSocket) SetDevice(on *Interface) { c.device.Store(on) }

// Device returns the interface set by SetDevice, or nil.
func (c *datagramSocket) Device() *Interface { return c.device.Load() }

// receivesOn reports whether the socket receives packets that arrived on an interface; nil means the interface is unknown.
func (c *datagramSocket) receivesOn(ifc *Interface) bool {
	on := c.device.Load()
	return on == nil || ifc == nil || on == ifc
}

// number returns the index of an interface, or 0 if i is nil.
func (i *Interface) number() int {
	if i == nil {
		return 0
	}
	return i.index
}

// routeOn finds a route as the method route does, but only through the interface that is
// passed as on. If that is nil, any interface is allowed.
func (t *tables) routeOn(on *Interface, source, dst netip.Addr) (path, error) {
	if on == nil {
		return t.route(source, dst)
	}
	return t.routeBy(on, source, dst)
}

// elsewhere reports whether a segment arrived on another interface than the one that the connection is bound to.
func (c *TCPConn) elsewhere(p *packet) bool { return c.device != nil && c.device != p.ifc }

// SetDevice binds the socket to an interface; nil removes the binding.
func (b *TCPBinding) SetDevice(on *Interface) {
	b.mu.Lock()
	b.options.Device = on
	b.mu.Unlock()
	b.stack.ports.SetInterface(b.port, on.number())
}

// routeBy finds a route as the method route does, but only through one interface. As on Linux, a destination
// without a route through the interface is assumed to be on its link. It returns the same errors as the method route.
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
	gateway := t.gatewayBy(ifc, dst)
	if gateway.IsValid() {
		p.nextHop = gateway.WithZone("")
	}
	if dst.Is6() {
		p.source, p.mtu = t.source6(ifc, dst, gateway), t.mtu6(ifc)
	} else {
		p.source, p.mtu = t.sourceOn(ifc, p.nextHop), ifc.ipv4MTU()
	}
	return t.redirected(p, dst), nil
}

// gatewayBy returns the gateway of the best route through an interface, or the zero Addr.
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

func (o *TCPOptions) sharing() port.Options {
	return port.Options{ReuseAddr: o.ReuseAddr, ReusePort: o.ReusePort, Owner: o.Owner, V6Only: o.V6Only, Interface: o.Device.number()}
}

func (o *UDPOptions) sharing() port.Options {
	return port.Options{ReuseAddr: o.ReuseAddr, ReusePort: o.ReusePort, Owner: o.Owner, V6Only: o.V6Only, Interface: o.Device.number()}
}
