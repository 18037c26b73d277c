package usernet

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loam/link/pipe"
	"loam/stack"
)

// publishing returns a network with one forward to port 80 of the guest, and the host's address and port of the
// forward.
func publishing(t *testing.T, proto string, limits Limits) (*network, string) {
	t.Helper()
	n := newNetwork(t, Config{Limits: limits, Forwards: []Forward{{Proto: proto, Guest: netip.MustParseAddrPort("10.0.2.15:80")}}})
	return n, n.Forwards()[0].Host.String()
}

// listenGuest listens on port 80 of the guest.
func (n *network) listenGuest() *stack.TCPListener {
	n.t.Helper()
	l, err := n.guest.Listen("tcp", ":80")
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { l.Close() })
	l.(*stack.TCPListener).SetDeadline(time.Now().Add(patience))
	return l.(*stack.TCPListener)
}

func dialHostPort(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

// wantResetAt connects to a port and expects a reset, possibly already during the
// connect.
func wantResetAt(t *testing.T, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err == nil {
		_, err = c.Read(make([]byte, 1))
		c.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client sees %v, not a reset", err)
	}
}

func TestPublishTCP(t *testing.T) {
	n, addr := publishing(t, "tcp", Limits{})
	l := n.listenGuest()
	host := dialHostPort(t, addr)
	guest, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	guest.SetDeadline(time.Now().Add(patience))
	if got := guest.RemoteAddrPort().Addr().String(); got != "10.0.2.2" {
		t.Errorf("the client is %s for the guest, want the gateway", got)
	}
	const size = 4 << 20
	var wg sync.WaitGroup
	wg.Go(func() { noise(t, guest, 1, size) })
	wg.Go(func() { noise(t, host, 2, size) })
	wg.Go(func() { wantNoise(t, guest, 2, size) })
	wg.Go(func() { wantNoise(t, host, 1, size) })
	wg.Wait()
	guest.Close()
	host.Close()
	n.wantCounter(PublishTCP, 1)
	n.wantCounter(TCPResets, 0)
}

func TestPublishTCPToAGuestThatDoesNotListen(t *testing.T) {
	n, addr := publishing(t, "tcp", Limits{})
	wantResetAt(t, addr)
	n.wantCounter(PublishFailed, 1)

	l := n.listenGuest() // the guest listens only now
	host := dialHostPort(t, addr)
	guest, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	send(t, guest, "hello")
	want(t, host, "hello")
	guest.Close()
	host.Close()
}

func TestPublishTCPCountsAmongTheConnections(t *testing.T) {
	n, addr := publishing(t, "tcp", Limits{Connections: 1})
	l := n.listenGuest()
	first := dialHostPort(t, addr)
	guest, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	wantResetAt(t, addr)
	n.wantCounter(PublishLimit, 1)
	first.Close()
	guest.Close()
}

func TestPublishUDP(t *testing.T) {
	n, addr := publishing(t, "udp", Limits{})
	guest, err := n.guest.ListenUDP(netip.MustParseAddrPort("10.0.2.15:80"), stack.UDPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close()
	guest.SetDeadline(time.Now().Add(patience))
	clients := [2]*net.UDPConn{listenUDP(t), listenUDP(t)}
	server := netip.MustParseAddrPort(addr)
	var seen [2]netip.AddrPort
	for i, text := range []string{"first", "second"} {
		clients[i].WriteToUDPAddrPort([]byte(text), server)
		seen[i] = wantFrom(t, guest, []byte(text))
		if seen[i].Addr().String() != "10.0.2.2" {
			t.Errorf("a client is %v for the guest", seen[i])
		}
	}
	for i, text := range []string{"to the first", "to the second"} {
		if _, err := guest.WriteToUDPAddrPort([]byte(text), seen[i]); err != nil {
			t.Fatal(err)
		}
		if from := wantFrom(t, clients[i], []byte(text)); from != server {
			t.Errorf("the answer is from %v, not from where the client sent to", from)
		}
	}
	clients[0].WriteToUDPAddrPort([]byte("again"), server)
	if again := wantFrom(t, guest, []byte("again")); again != seen[0] {
		t.Errorf("the first client is %v now, and was %v", again, seen[0])
	}
	n.wantCounter(PublishUDP, 2)
}

func TestPublishUDPToAGuestThatDoesNotListen(t *testing.T) {
	n, addr := publishing(t, "udp", Limits{})
	client, server := listenUDP(t), netip.MustParseAddrPort(addr)
	client.WriteToUDPAddrPort([]byte("lost"), server)
	n.wantCounter(UDPRefused, 1)
	guest, err := n.guest.ListenUDP(netip.MustParseAddrPort("10.0.2.15:80"), stack.UDPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close()
	guest.SetDeadline(time.Now().Add(patience))
	client.WriteToUDPAddrPort([]byte("found"), server)
	wantFrom(t, guest, []byte("found"))
	n.wantCounter(PublishUDP, 1)
}

func TestPublishUDPFlowsAreBounded(t *testing.T) {
	const limit, clients = 4, 20
	n, addr := publishing(t, "udp", Limits{Flows: limit})
	guest, err := n.guest.ListenUDP(netip.MustParseAddrPort("10.0.2.15:80"), stack.UDPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close()
	guest.SetDeadline(time.Now().Add(patience))
	for range clients {
		listenUDP(t).WriteToUDPAddrPort([]byte("x"), netip.MustParseAddrPort(addr))
		wantFrom(t, guest, []byte("x"))
	}
	n.wantCounter(PublishUDP, clients)
	n.wantCounter(UDPEvicted, clients-limit)
}

func TestPublishPortThatIsTakenIsAClearError(t *testing.T) {
	tcp, udp := listen(t), listenUDP(t)
	for _, test := range []struct {
		forward Forward
		want    string
	}{
		{Forward{Proto: "tcp", Host: addrPortOf(tcp.Addr())}, tcp.Addr().String() + " of this host is taken: stop the program that has it, or choose another port"},
		{Forward{Proto: "udp", Host: addrPortOf(udp.LocalAddr())}, udp.LocalAddr().String() + " of this host is taken"},
		{Forward{Proto: "tcp", Host: netip.MustParseAddrPort("192.0.2.1:8080")}, "192.0.2.1 is not an address of this host"},
	} {
		dev, _ := pipe.New(pipe.Config{})
		_, err := New(Config{Device: dev, Forwards: []Forward{test.forward}})
		var forward *ForwardError
		if !errors.As(err, &forward) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
	f := Forward{Proto: "tcp", Host: netip.MustParseAddrPort("127.0.0.1:80"), Guest: netip.MustParseAddrPort("10.0.2.15:80")}
	got := forwardError(&f, syscall.EACCES, false).Error()
	if want := "usernet: cannot forward tcp 127.0.0.1:80 to 10.0.2.15:80: port 80 of this host needs privilege: choose one from 1024 on"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// If a port is in use at only one of 127.0.0.1 and ::1, the error names that address.
func TestIPv6PublishedPortIsTakenAtOneAddress(t *testing.T) {
	needLoopback6(t)
	for _, taken := range []netip.Addr{hostLoopback, hostLoopback6} {
		for _, proto := range []string{"tcp", "udp"} {
			at := takeOne(t, proto, taken)
			dev, _ := pipe.New(pipe.Config{})
			_, err := New(Config{Device: dev, Forwards: []Forward{{Proto: proto, Host: netip.AddrPortFrom(netip.Addr{}, at.Port())}}})
			var forward *ForwardError
			if !errors.As(err, &forward) || !strings.Contains(err.Error(), forward.Free.String()+", which is free") || forward.Forward.Host != at || forward.Free != netip.AddrPortFrom(otherLoopback(taken), at.Port()) {
				t.Errorf("%s %s is taken: %v", proto, at, err)
			}
			if !canBind(Forward{Proto: proto, Host: at}, otherLoopback(taken)) {
				t.Errorf("%s: the other address is not free afterwards", at)
			}
		}
	}
}

// takeOne binds a port at one loopback address that is free at the other, and returns it.
func takeOne(t *testing.T, proto string, at netip.Addr) netip.AddrPort {
	t.Helper()
	var p published
	t.Cleanup(p.close)
	for {
		f := Forward{Proto: proto, Host: netip.AddrPortFrom(at, 0)}
		if err := p.bind(&f); err != nil {
			t.Fatal(err)
		}
		if canBind(f, otherLoopback(at)) {
			return f.Host
		}
	}
}

func addrPortOf(a net.Addr) netip.AddrPort { return netip.MustParseAddrPort(a.String()) }
