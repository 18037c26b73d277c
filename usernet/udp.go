package usernet

import (
	"errors"
	"net"
	"syscall"

	"loam/stack"
)

// UDP from the guest. Each pair of a guest address and a destination is a flow. It has a host socket that is connected
// to the destination, so the guest receives replies only from there. In the terms of RFC 4787 this is address and
// port-dependent mapping and filtering.

// handleUDP creates a flow for a new socket on the guest's side, the parameter guest. The
// stack waits until handleUDP returns, so it does not block.
func (g *Gateway) handleUDP(guest *stack.UDPConn) {
	dst := guest.LocalAddrPort()
	to, ok := g.config.reachPort(dst)
	if !ok {
		g.deny(UDPDenied, dst.Addr())
		guest.Refuse()
		guest.Close()
		return
	}
	host, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		g.tally.count(UDPFailed)
		guest.Refuse()
		guest.Close()
		return
	}
	in, err := newHostReader(host)
	if err != nil {
		panic("usernet: a socket that was just made has no descriptor")
	}
	f := newFlow(flowKey{guest.RemoteAddrPort(), dst}, guest, udpPeer{host})
	if !g.admit(g.flows, f) {
		return
	}
	g.tally.count(UDPFlows)
	g.wg.Go(func() { f.runFromGuest(g) })
	g.wg.Go(func() { f.runFromHost(g, in) })
}

// admit adds a flow to a table and closes the flow that the table has evicted for it. If the gateway is being closed,
// admit closes f and returns false.
func (g *Gateway) admit(t *flowTable, f *flow) bool {
	evicted, ok := t.add(g.now(), f)
	if evicted != nil {
		g.tally.count(UDPEvicted)
		evicted.close()
	}
	if !ok {
		f.close()
	}
	return ok
}

// udpPeer is the host's side of a flow begun by the guest.
type udpPeer struct{ conn *net.UDPConn }

func (p udpPeer) send(b []byte) error {
	_, err := p.conn.Write(b)
	return err
}

func (p udpPeer) close() { p.conn.Close() }

// runFromHost forwards replies to the guest until the flow is closed.
func (f *flow) runFromHost(g *Gateway, in *hostReader) {
	defer in.release()
	for {
		p, err := in.read()
		switch {
		case err == nil:
			f.sendToGuest(g, p)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			f.refused(g, err)
		}
	}
}

// refused reports to the guest that a datagram was refused. A connected host socket returns the ICMP error about an
// earlier datagram at its next use.
func (f *flow) refused(g *Gateway, err error) {
	g.tally.count(UDPRefused)
	if errors.Is(err, syscall.ECONNREFUSED) {
		f.guest.Refuse()
	}
}
