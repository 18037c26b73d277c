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

// TCP from the host to the guest. The guest sees the gateway as the client. The
// host's handshake is complete before the guest has been asked; a guest that
// refuses, or that does not listen yet, shows as a reset.

// publishedTCP is a port of the host that leads to one of the guest.
type publishedTCP struct {
	listener *net.TCPListener
	guest    netip.AddrPort
	plain    *os.File // the same socket, for who accepts without package net; nil: nobody does
}

// acceptPause is how long nothing is accepted when the host is out of
// descriptors.
const acceptPause = 50 * time.Millisecond

// runPublishedTCP accepts connections until the gateway closes, and the listener with it.
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

// acceptToRelay accepts a connection, and has it relayed.
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

// acceptToHand accepts a connection and hands it over.
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

// publishFailed counts a connection that the guest did not take, and tells who asked.
func (g *Gateway) publishFailed(port uint16) {
	g.tally.count(PublishFailed)
	if g.config.Refused != nil && g.ctx.Err() == nil {
		g.config.Refused(port)
	}
}

// guestPatience bounds connecting to the guest.
const guestPatience = 10 * time.Second

// dialGuest connects to a port of the guest: to one that refuses by IPv4, by IPv6.
func (g *Gateway) dialGuest(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	c, err := g.stack.DialContext(ctx, "tcp", to.String())
	if six := g.config.Guest6; errors.Is(err, syscall.ECONNREFUSED) && six.IsValid() && to.Addr() == g.config.Guest {
		return g.stack.DialContext(ctx, "tcp", netip.AddrPortFrom(six, to.Port()).String())
	}
	return c, err
}

// publishConn joins a connection of the host to one to the guest.
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
	guest.SetOptions(func(o *stack.TCPOptions) { *o = guestOptions() })
	g.relay(guest, host)
}
