package usernet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"loam/stack"
)

// TCP from the host to the guest. The guest sees the gateway as the client. The
// host's handshake is complete before the guest has been asked; a guest that
// refuses, or that does not listen yet, shows as a reset.

// publishedTCP is a port of the host that leads to one of the guest.
type publishedTCP struct {
	listener *net.TCPListener
	guest    netip.AddrPort
}

// acceptPause is how long nothing is accepted when the host is out of
// descriptors.
const acceptPause = 50 * time.Millisecond

// runPublishedTCP accepts connections until the listener is closed.
func (g *Gateway) runPublishedTCP(p publishedTCP) {
	for {
		c, err := p.listener.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			g.config.Log.Warn("a port forward cannot accept", "port", p.listener.Addr(), "error", err)
			select {
			case <-g.ctx.Done():
			case <-time.After(acceptPause):
			}
		case !g.connections.take():
			g.tally.count(PublishLimit)
			reset(c)
		default:
			g.wg.Go(func() {
				defer g.connections.give()
				g.publishConn(p.guest, c)
			})
		}
	}
}

// guestPatience bounds connecting to the guest.
const guestPatience = 10 * time.Second

// publishConn joins a connection of the host to one to the guest.
func (g *Gateway) publishConn(to netip.AddrPort, host *net.TCPConn) {
	g.tally.count(PublishTCP)
	ctx, cancel := context.WithTimeout(g.ctx, guestPatience)
	defer cancel()
	c, err := g.stack.DialContext(ctx, "tcp", to.String())
	if err != nil {
		g.tally.count(PublishFailed)
		reset(host)
		return
	}
	guest := c.(*stack.TCPConn)
	guest.SetOptions(func(o *stack.TCPOptions) { *o = guestOptions() })
	g.relay(guest, host)
}
