package usernet

import "loam/stack"

// TCP from the guest. The gateway first connects to the destination from the host, and completes the guest's handshake
// only if that succeeds. So the guest sees a closed port as closed, and gets no answer from a host that does not
// answer.

// handleTCP accepts or refuses a connection attempt of the guest, and relays the connection.
func (g *Gateway) handleTCP(r *stack.TCPRequest) { // returning without Accept refuses the attempt
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
	guest, err := r.Accept(guestOptions(g.memory.next()))
	if err != nil {
		reset(host)
		return
	}
	g.tally.count(TCPConnected)
	g.relay(guest, host)
}
