package usernet

import "loam/stack"

// TCP from the guest. The host is dialled first, and the guest's handshake is
// completed only when that has worked: so a port that is closed is closed for
// the guest too, and a host that does not answer does not seem to.

// handleTCP decides a connection attempt and serves the connection.
func (g *Gateway) handleTCP(r *stack.TCPRequest) { // returning without Accept refuses
	g.tally.count(TCPAttempts)
	to, ok := g.config.reachPort(r.Local())
	if !ok {
		g.deny(TCPDenied, r.Local().Addr())
		return
	}
	if !g.connections.take() {
		g.tally.count(TCPLimit)
		return
	}
	defer g.connections.give()
	if !g.dials.take() {
		g.tally.count(TCPDialLimit)
		return
	}
	host, err := g.config.dial(g.ctx, to)
	g.dials.give()
	if err != nil {
		g.tally.count(TCPFailed)
		return
	}
	guest, err := r.Accept(guestOptions())
	if err != nil {
		reset(host)
		return
	}
	g.tally.count(TCPConnected)
	g.relay(guest, host)
}
