package usernet

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"loam/stack"
)

// listenUDP returns a UDP socket of the host.
func listenUDP(t *testing.T) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { c.Close() })
	return c
}

// dialUDP connects a socket of the guest to a socket of the host.
func (n *network) dialUDP(host *net.UDPConn) *stack.UDPConn {
	n.t.Helper()
	c, err := n.guest.Dial("udp", gatewayPort(host.LocalAddr()).String())
	if err != nil {
		n.t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	n.t.Cleanup(func() { c.Close() })
	return c.(*stack.UDPConn)
}

// wantFrom reads a datagram and returns its sender.
func wantFrom(t *testing.T, c datagramConn, payload []byte) netip.AddrPort {
	t.Helper()
	buf := make([]byte, stack.MaxUDP)
	n, from, err := c.ReadFromUDPAddrPort(buf)
	if err != nil || !bytes.Equal(buf[:n], payload) {
		t.Fatalf("a datagram of %d bytes, %v, want one of %d bytes", n, err, len(payload))
	}
	return from
}

func TestUDPCarriesDatagramsBothWays(t *testing.T) {
	n := newNetwork(t, loopback())
	host := listenUDP(t)
	guest := n.dialUDP(host)
	for _, size := range []int{0, 1, 1472, 1473, 9000, stack.MaxUDP} {
		payload := bytes.Repeat([]byte{byte(size)}, size)
		if _, err := guest.Write(payload); err != nil {
			t.Fatalf("sending %d bytes: %v", size, err)
		}
		from := wantFrom(t, host, payload)
		if _, err := host.WriteToUDPAddrPort(payload, from); err != nil {
			t.Fatal(err)
		}
		if from := wantFrom(t, guest, payload); from != gatewayPort(host.LocalAddr()) {
			t.Errorf("the answer is from %v", from)
		}
	}
	n.wantCounter(UDPFlows, 1)
	n.wantCounter(UDPOut, 6)
	n.wantCounter(UDPIn, 6)
}

func TestUDPFlowsAreApart(t *testing.T) {
	n := newNetwork(t, loopback())
	host := listenUDP(t)
	a, b := n.dialUDP(host), n.dialUDP(host)
	send(t, a, "a")
	fromA := wantFrom(t, host, []byte("a"))
	send(t, b, "b")
	fromB := wantFrom(t, host, []byte("b"))
	if fromA == fromB {
		t.Error("two sockets of the guest are one for the host")
	}
	host.WriteToUDPAddrPort([]byte("for b"), fromB)
	host.WriteToUDPAddrPort([]byte("for a"), fromA)
	wantFrom(t, a, []byte("for a"))
	wantFrom(t, b, []byte("for b"))

	stranger := listenUDP(t)
	stranger.WriteToUDPAddrPort([]byte("unasked"), fromA)
	host.WriteToUDPAddrPort([]byte("asked"), fromA)
	wantFrom(t, a, []byte("asked"))
}

func TestUDPDestinationsOutOfReachGetNothing(t *testing.T) {
	n := newNetwork(t, Config{})
	guest := n.dialUDP(listenUDP(t))
	send(t, guest, "x")
	wantRefused(t, guest)
	n.wantCounter(UDPDenied, 1)
	n.wantCounter(UDPFlows, 0)
}

// wantRefused reads an error caused by ICMP.
func wantRefused(t *testing.T, guest *stack.UDPConn) {
	t.Helper()
	if n, err := guest.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the guest reads %d bytes, %v, want that it is refused", n, err)
	}
}

func TestUDPPortThatIsClosedIsClosedForTheGuest(t *testing.T) {
	n := newNetwork(t, loopback())
	host := listenUDP(t)
	guest := n.dialUDP(host)
	host.Close()
	send(t, guest, "x")
	wantRefused(t, guest)
	n.wantCounter(UDPRefused, 1)
}

func TestUDPFlowThatIsIdleEnds(t *testing.T) {
	c := loopback()
	c.Limits.FlowIdle = 50 * time.Millisecond
	n := newNetwork(t, c)
	host := listenUDP(t)
	guest := n.dialUDP(host)
	send(t, guest, "one")
	first := wantFrom(t, host, []byte("one"))
	n.wantCounter(UDPExpired, 1)
	if n.flows.len() != 0 {
		t.Error("the flow is still there")
	}
	send(t, guest, "two") // the previous flow has ended, so this starts another one
	if second := wantFrom(t, host, []byte("two")); second == first {
		t.Logf("the kernel gave the same port twice")
	}
	n.wantCounter(UDPFlows, 2)
}

// A guest that sends between many addresses gets a bounded number of host sockets. The
// flows used last are kept.
func TestUDPFlowsAreBounded(t *testing.T) {
	const limit, flood = 10, 200
	c := loopback()
	c.Limits.Flows = limit
	n := newNetwork(t, c)
	host := listenUDP(t)
	for i := range flood {
		send(t, n.dialUDP(host), "x")
		wantFrom(t, host, []byte("x"))
		if got := n.flows.len(); got > limit {
			t.Fatalf("there are %d flows after %d datagrams", got, i+1)
		}
	}
	n.wantCounter(UDPFlows, flood)
	n.wantCounter(UDPEvicted, flood-limit)
}

// A guest that does not read loses its datagrams; other flows lose none.
func TestUDPGuestThatDoesNotReadLosesDatagrams(t *testing.T) {
	n := newNetwork(t, loopback())
	host := listenUDP(t)
	deaf, other := n.dialUDP(host), n.dialUDP(host)
	deaf.SetOptions(func(o *stack.UDPOptions) { o.ReceiveBuffer = 64 << 10 })
	send(t, deaf, "x")
	to := wantFrom(t, host, []byte("x"))
	payload := make([]byte, 1400)
	for range 1000 {
		host.WriteToUDPAddrPort(payload, to)
	}
	send(t, other, "y")
	host.WriteToUDPAddrPort([]byte("z"), wantFrom(t, host, []byte("y")))
	wantFrom(t, other, []byte("z"))
	if waiting, _ := deaf.Waiting(); waiting >= 1000 {
		t.Errorf("%d datagrams wait in a buffer of 64 KiB", waiting)
	}
}

func TestUDPAnswerToAPortThatTheGuestHasClosed(t *testing.T) {
	n := newNetwork(t, loopback())
	host := listenUDP(t)
	guest := n.dialUDP(host)
	send(t, guest, "x")
	from := wantFrom(t, host, []byte("x"))
	guest.Close()
	host.WriteToUDPAddrPort([]byte("too late"), from)
	n.wantCounter(UDPIn, 1)
	n.wantCounter(UDPRefused, 1)
}

func TestUDPErrorsOfTheHostDoNotEndAFlow(t *testing.T) {
	n := newNetwork(t, loopback())
	host := listenUDP(t)
	guest := n.dialUDP(host)
	addr := host.LocalAddr().(*net.UDPAddr)
	host.Close()
	send(t, guest, "lost")
	wantRefused(t, guest)
	again, err := net.ListenUDP("udp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		t.Skip("somebody has taken the port meanwhile")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	again.SetDeadline(time.Now().Add(patience))
	send(t, guest, "found")
	wantFrom(t, again, []byte("found"))
	n.wantCounter(UDPFlows, 1)
}
