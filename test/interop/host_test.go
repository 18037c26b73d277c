//go:build linux

package interop

import (
	"context"
	"net"
	"net/netip"
	"time"

	"loam/stack"
)

// host is one end of a lab in the terms of package net, so that a test can be written once and run in
// both directions.
type host struct {
	name         string
	addr         netip.Addr
	dial         func(ctx context.Context, network, address string) (net.Conn, error)
	listen       func(network, address string) (net.Listener, error)
	listenPacket func(network, address string) (net.PacketConn, error)
}

// conn is the interface of a TCP connection. Connections of Loam and of the kernel implement it.
type conn interface {
	net.Conn
	CloseWrite() error
	SetLinger(seconds int) error
	SetKeepAlive(bool) error
	SetKeepAlivePeriod(time.Duration) error
}

func linuxHost(addr netip.Addr) host {
	return host{"linux", addr, new(net.Dialer).DialContext, net.Listen, net.ListenPacket}
}

func loamHost(s *stack.Stack, addr netip.Addr) host {
	return host{"loam", addr, s.DialContext, s.Listen, s.ListenPacket}
}

func (h host) at(port uint16) string { return netip.AddrPortFrom(h.addr, port).String() }

// directions returns the two directions of a test.
func (l *lab) directions() [2]direction {
	return [2]direction{{l.loam, l.linux}, {l.linux, l.loam}}
}

// direction says which host is the client and which is the server.
type direction struct{ client, server host }

func (d direction) String() string { return d.client.name + " to " + d.server.name }

// until returns the deadline of every connection of the test.
func (l *lab) until() time.Time {
	t, _ := l.ctx.Deadline()
	return t
}

// connect opens a connection and returns both ends of it.
func (l *lab) connect(d direction) (client, server conn) {
	l.Helper()
	ln, err := d.server.listen("tcp", d.server.at(0))
	l.must(err)
	defer ln.Close()
	type result struct {
		c   net.Conn
		err error
	}
	accepted := make(chan result, 1) // the goroutine sends once
	go func() {
		c, err := ln.Accept()
		accepted <- result{c, err}
	}()
	c, err := d.client.dial(l.ctx, "tcp", ln.Addr().String())
	l.must(err)
	r := <-accepted
	l.must(r.err)
	for _, c := range []net.Conn{c, r.c} {
		l.must(c.SetDeadline(l.until()))
		l.Cleanup(func() { c.Close() })
	}
	return c.(conn), r.c.(conn)
}
