package usernet

import (
	"errors"
	"net"
	"net/netip"

	"loam/stack"
)

// UDP from the host to the guest. Each client is a flow, which has its own socket of the gateway's stack, connected to
// the guest. The guest sees each client as a different port of the gateway. So its replies can be sent to the right
// client.

// publishedUDP is a host port that is forwarded to a guest port.
type publishedUDP struct {
	conn  *net.UDPConn
	guest netip.AddrPort
	flows *flowTable // the flows of this port, one per client
}

// runPublishedUDP forwards datagrams to the guest until the socket is closed.
func (g *Gateway) runPublishedUDP(p publishedUDP) {
	buf := new(buffer)
	for {
		n, client, err := p.conn.ReadFromUDPAddrPort(buf[:])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // an ICMP error about an earlier reply to a client
			g.tally.count(UDPRefused)
			continue
		}
		f := p.flows.get(flowKey{client, p.guest})
		if f == nil {
			if f = g.beginPublished(p, client); f == nil {
				continue
			}
		}
		f.sendToGuest(g, buf[:n])
	}
}

// beginPublished creates the flow of a client. It returns nil on failure.
func (g *Gateway) beginPublished(p publishedUDP, client netip.AddrPort) *flow {
	guest, err := g.stack.ListenUDP(netip.AddrPortFrom(g.config.Gateway, 0), stack.UDPOptions{})
	if err == nil {
		if err = guest.Connect(p.guest); err != nil {
			guest.Close()
		}
	}
	if err != nil {
		g.tally.count(UDPFailed)
		return nil
	}
	f := newFlow(flowKey{client, p.guest}, guest, clientPeer{p.conn, client})
	if !g.admit(p.flows, f) {
		return nil
	}
	g.tally.count(PublishUDP)
	g.wg.Go(func() { f.runFromGuest(g) })
	return f
}

// clientPeer is a client of a published port.
type clientPeer struct {
	conn   *net.UDPConn
	client netip.AddrPort
}

func (p clientPeer) send(b []byte) error {
	_, err := p.conn.WriteToUDPAddrPort(b, p.client)
	return err
}

// close does nothing: all clients of the port share the socket.
func (p clientPeer) close() {}
