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

// number is the index of an interface, or 0 for none.
func (i *Interface) number() int {
	if i == nil {
		return 0
	}
	return i.index
}

// routeOn is route, by an interface if there is one.
func (t *tables) routeOn(on *Interface, source, dst netip.Addr) (path, error) {
	if on == nil {
		return t.route(source, dst)
	}
	return t.routeBy(on, source, dst)
}

// elsewhere reports whether a segment came to another interface than the one that the
// connection is bound to.
func (c *TCPConn) elsewhere(p *packet) bool { return c.device != nil && c.device != p.ifc }

// SetDevice binds the socket to an interface; nil undoes it.
func (b *TCPBinding) SetDevice(on *Interface) {
	b.mu.Lock()
	b.options.Device = on
	b.mu.Unlock()
	b.stack.ports.setDevice(b.port, on)
}

// device is the interface that the listener is bound to, or nil.
func (l *TCPListener) device() *Interface {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.options.Device
}

// heard are those of several listeners that hear what arrives at an interface: those that are
// bound to it, else those that are bound to none.
func heard(list []*TCPListener, ifc *Interface) []*TCPListener {
	if unbound(list) {
		return list
	}
	var found []*TCPListener
	for _, on := range [...]*Interface{ifc, nil} {
		for _, l := range list {
			if l.device() == on {
				found = append(found, l)
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// unbound reports whether no listener of a list is bound to an interface.
func unbound(list []*TCPListener) bool {
	for _, l := range list {
		if l.device() != nil {
			return false
		}
	}
	return true
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
