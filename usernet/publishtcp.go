package usernet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"loam/stack"
)

// TCP from the host to the guest. The guest sees the gateway as the client. The host's kernel completes the client's
// handshake before the gateway connects to the guest. So if the guest refuses the connection, or does not listen yet,
// the client sees a reset.

// publishedTCP is a host port that is forwarded to a guest port.
type publishedTCP struct {
	listener *net.TCPListener
	guest    netip.AddrPort
	plain    *os.File // a duplicate of listener, for accepting without package net (hand.go); nil: connections are relayed
}

// acceptPause is the pause after accept has failed, for example because the process has no free descriptors.
const acceptPause = 50 * time.Millisecond

// runPublishedTCP accepts connections until the gateway closes the listener.
func (g *Gateway) runPublishedTCP(p publishedTCP) {
	next := g.acceptToRelay
	if p.plain != nil {
		next = g.acceptToHand
	}
	for {
		err := next(p)
		switch {
		case err != nil && g.ctx.Err() != nil:
			return
		case err != nil:
			g.config.Log.Warn("a port forward cannot accept", "port", p.listener.Addr(), "error", err)
			select {
			case <-g.ctx.Done():
			case <-time.After(acceptPause):
			}
		}
	}
}

// acceptToRelay accepts a connection and starts a relay for it.
func (g *Gateway) acceptToRelay(p publishedTCP) error {
	c, err := p.listener.AcceptTCP()
	if err != nil {
		return err
	}
	if !g.connections.take() {
		g.tally.count(PublishLimit)
		reset(c)
		return nil
	}
	g.wg.Go(func() {
		defer g.connections.give()
		g.publishConn(p.guest, c)
	})
	return nil
}

// acceptToHand accepts a connection and passes it to the program.
func (g *Gateway) acceptToHand(p publishedTCP) error {
	fd, err := acceptHost(p.plain)
	if err != nil {
		return err
	}
	if !g.connections.take() {
		g.tally.count(PublishLimit)
		resetHost(fd)
		return nil
	}
	g.handConn(p.guest.Port(), fd)
	return nil
}

// publishFailed counts a connection that the guest did not accept, and calls
// Config.Refused.
func (g *Gateway) publishFailed(port uint16) {
	g.tally.count(PublishFailed)
	if g.config.Refused != nil && g.ctx.Err() == nil {
		g.config.Refused(port)
	}
}

// guestPatience is the maximum duration of a connection attempt to the guest.
const guestPatience = 10 * time.Second

// dialGuest connects to a port of the guest. If the guest refuses over IPv4, it tries
// Config.Guest6.
func (g *Gateway) dialGuest(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	c, err := g.stack.DialContext(ctx, "tcp", to.String())
	if six := g.config.Guest6; errors.Is(err, syscall.ECONNREFUSED) && six.IsValid() && to.Addr() == g.config.Guest {
		return g.stack.DialContext(ctx, "tcp", netip.AddrPortFrom(six, to.Port()).String())
	}
	return c, err
}

// publishConn connects to the guest and relays data between that connection and the
// host's connection (the parameter host).
func (g *Gateway) publishConn(to netip.AddrPort, host *net.TCPConn) {
	g.tally.count(PublishTCP)
	ctx, cancel := context.WithTimeout(g.ctx, guestPatience)
	defer cancel()
	c, err := g.dialGuest(ctx, to)
	if err != nil {
		g.publishFailed(to.Port())
		reset(host)
		return
	}
	guest := c.(*stack.TCPConn)
	guest.SetOptions(func(o *stack.TCPOptions) { *o = guestOptions(g.memory.next()) })
	g.relay(guest, host)
}
