package stack

import (
	"net/netip"
	"testing"
)

// Check returns the errors that the send of a datagram would return. A datagram with Held ignores a pending error and a full
// send buffer: both remain.
func TestHeldDatagram(t *testing.T) {
	s, client, server := loopbackPair(t, Config{})
	client.Close()
	u, err := s.ListenUDP(netip.AddrPort{}, UDPOptions{SendBuffer: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	to := netip.MustParseAddrPort(server.LocalAddr().String())
	check := func(n int, at netip.AddrPort, by UDPSend, want error) {
		t.Helper()
		if _, err := u.Check(n, at, by); err != want {
			t.Errorf("check of %d bytes to %v: %v, want %v", n, at, err, want)
		}
	}
	check(1, netip.AddrPort{}, UDPSend{}, ErrNoDestination)
	check(1, netip.AddrPortFrom(to.Addr(), 0), UDPSend{}, ErrInvalid)
	check(MaxUDP+1, to, UDPSend{}, ErrMessageTooLong)
	check(129, to, UDPSend{Segment: 1}, ErrInvalid)
	check(1, to, UDPSend{Source: netip.MustParseAddr("192.0.2.1")}, ErrInvalid)
	check(1, netip.MustParseAddrPort("192.0.2.1:7"), UDPSend{}, ErrNetUnreachable)
	check(1, to, UDPSend{}, nil)

	u.sending.Take(1)
	u.fail(ErrRefused)
	held := UDPSend{Held: true}
	check(1, to, held, nil)
	if n, err := u.TryWriteBy([]byte("x"), to, held); n != 1 || err != nil {
		t.Errorf("a datagram with Held: %d, %v", n, err)
	}
	check(1, to, UDPSend{}, ErrRefused)
	check(1, to, UDPSend{}, ErrWouldBlock)
	b := make([]byte, 2)
	if n, _, err := server.ReadFrom(b); n != 1 || err != nil {
		t.Errorf("received %d bytes, %v", n, err)
	}
}
