//go:build linux

package interop

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"loam/stack"
	"loam/wire"
)

// TestErrorQueue checks that errors that the kernel reports about datagrams, as a router and as a host,
// are kept for the program, as traceroute uses them.
func TestErrorQueue(t *testing.T) {
	l, network := newNarrowLab(t)
	beyond, host := network.Addr().Next().Next(), l.linux.addr
	c, err := l.stack.ListenUDP(netip.AddrPort{}, stack.UDPOptions{QueueErrors: true})
	l.must(err)
	defer c.Close()
	for _, hop := range []struct {
		to         netip.Addr
		ttl        uint8
		kind, code uint8
		err        syscall.Errno
	}{
		{beyond, 1, uint8(wire.ICMPv4TimeExceeded), 0, syscall.EHOSTUNREACH},
		{host, 2, uint8(wire.ICMPv4Unreachable), wire.CodePortUnreachable, syscall.ECONNREFUSED},
	} {
		to := netip.AddrPortFrom(hop.to, 33434)
		_, err := c.TryWriteBy([]byte("probe"), to, stack.UDPSend{TTL: hop.ttl})
		l.must(err)
		var e stack.DatagramError
		l.eventually("the kernel answers", func() bool {
			var ok bool
			e, ok = c.TakeError()
			return ok
		})
		if e.Type != hop.kind || e.Code != hop.code || !errors.Is(e.Err, hop.err) || e.To != to || string(e.Payload) != "probe" || e.Message.From.Addr() != host {
			t.Errorf("%+v", e)
		}
		c.Err()
	}
}
