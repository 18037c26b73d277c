package stack_test

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

func mustUDPLite(t *testing.T, s *stack.Stack, local string, o stack.UDPOptions) *stack.UDPConn {
	t.Helper()
	c, err := s.ListenUDPLite(netip.MustParseAddrPort(local), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantLite reads one datagram of a socket and compares it with data. Empty data means that no datagram must be waiting.
func wantLite(t *testing.T, c *stack.UDPConn, sentence, data string) {
	t.Helper()
	synctest.Wait()
	b := make([]byte, 100)
	n, _, err := c.TryReadFrom(b)
	if data == "" && err != stack.ErrWouldBlock || string(b[:n]) != data {
		t.Errorf("%s: read %q, %v; want %q", sentence, b[:n], err, data)
	}
}

// Datagrams between two stacks: over both versions of IP, on ports that are not those of UDP, and in fragments.
func TestUDPLite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, stack.Config{}, pipe.Config{})
		for _, remote := range []string{"10.0.0.2:53", "[2001:db8::2]:53"} {
			to := netip.MustParseAddrPort(remote)
			server := mustUDPLite(t, p.b, remote, stack.UDPOptions{})
			client := mustUDPLite(t, p.a, "[::]:0", stack.UDPOptions{SendCoverage: 8})
			udp, err := p.b.ListenUDP(to, stack.UDPOptions{})
			if err != nil {
				t.Fatal(err)
			}
			mustWriteTo(t, client, "partly covered", remote)
			wantLite(t, server, "partly covered", "partly covered")
			wantLite(t, udp, "a UDP socket on the same port", "")
			if n, err := client.TryWriteTo(make([]byte, 3000), to); n != 3000 || err != nil {
				t.Errorf("wrote %d bytes, %v", n, err)
			}
			synctest.Wait()
			if n, d, err := server.TryReadFrom(make([]byte, 4000)); n != 3000 || d.Len != 3000 || err != nil {
				t.Errorf("in fragments: %d bytes, %v", n, err)
			}
			client.Connect(to)
			server.Close()
			mustWriteTo(t, client, "anybody?", remote)
			synctest.Wait()
			if err := client.Err(); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("nobody listens: %v, want ECONNREFUSED", err)
			}
			client.Close()
			udp.Close()
		}
	})
}

// A socket accepts datagrams depending on how many of their bytes the checksum covers (UDPLITE_RECV_CSCOV).
func TestUDPLiteCoverage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, stack.Config{}, pipe.Config{})
		for _, c := range []struct {
			sent    uint16
			wanted  int
			arrives bool
		}{
			{0, 0, true}, {8, 0, true}, {12, 0, true}, {40, 0, true},
			{0, stack.FullCoverage, true}, {11, stack.FullCoverage, false}, {12, stack.FullCoverage, true},
			{0, 11, true}, {10, 11, false}, {11, 11, true}, {12, 40, true},
		} {
			server := mustUDPLite(t, p.b, "10.0.0.2:53", stack.UDPOptions{ReceiveCoverage: c.wanted})
			client := mustUDPLite(t, p.a, "10.0.0.1:1000", stack.UDPOptions{SendCoverage: c.sent})
			mustWriteTo(t, client, "data", "10.0.0.2:53")
			want := ""
			if c.arrives {
				want = "data"
			}
			before := p.b.Counters()[stack.UDPFiltered]
			wantLite(t, server, "", want)
			if t.Failed() {
				t.Fatalf("coverage %d, wanted %d; %d filtered", c.sent, c.wanted, p.b.Counters()[stack.UDPFiltered]-before)
			}
			server.Close()
			client.Close()
		}
	})
}

// The bytes that the checksum does not cover may change on the way. Other changes, and a missing checksum, are counted.
func TestUDPLiteChecksum(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustUDPLite(t, w.s, "10.0.0.1:53", stack.UDPOptions{})
		defer c.Close()
		send := func(change int) {
			b := append(make([]byte, wire.UDPLen), "data"...)
			h := wire.UDPLite{SrcPort: 1000, DstPort: 53, Coverage: wire.UDPLen + 2}
			h.Put(b)
			wire.PutUDPLiteChecksum(b, addrB, addrA)
			if change >= 0 {
				b[change] ^= 0x20
			}
			w.sendIP(wire.IPv4{TTL: 64, Protocol: wire.ProtoUDPLite, Src: addrB, Dst: addrA}, b)
		}
		send(-1)
		wantLite(t, c, "unchanged", "data")
		send(wire.UDPLen + 2)
		wantLite(t, c, "changed behind the coverage", "daTa")
		send(wire.UDPLen + 1)
		wantLite(t, c, "changed inside the coverage", "")
		w.wantCount("a wrong checksum", stack.UDPChecksum, 1)
		send(5)
		wantLite(t, c, "an impossible coverage", "")
		w.wantCount("an impossible coverage", stack.UDPMalformed, 1)
	})
}
