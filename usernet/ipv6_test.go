package usernet

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"loam/link"
	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// Tests of IPv6 through the gateway. The guest reaches ::1 of this machine.

var (
	gateway6 = netip.MustParseAddr("fd6c:6f61:6d00::2")
	dns6     = netip.MustParseAddr("fd6c:6f61:6d00::3")
	far6     = netip.MustParseAddrPort("[2001:db8::1]:80")
)

// needLoopback6 skips a test if the host has no ::1.
func needLoopback6(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip(err)
	}
	l.Close()
}

// newNetwork6 returns a gateway and a guest configured by the gateway's advertisements.
func newNetwork6(t *testing.T, c Config, hostIPv6 bool) *network {
	t.Helper()
	needLoopback6(t)
	checkLeaks(t)
	var far link.Device
	c.Device, far = pipe.New(pipe.Config{})
	c.hostIPv6 = func() bool { return hostIPv6 }
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	guest := stack.New(stack.Config{})
	t.Cleanup(func() {
		g.Close()
		guest.Close()
	})
	ifc, err := guest.Attach(far, stack.InterfaceConfig{Name: "eth0", NoDetection: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := ifc.Autoconfigure(ctx(t))
	if err != nil || p.Masked() != defaultPrefix6 {
		t.Fatalf("the guest is at %v, %v", p, err)
	}
	if dns := guest.DNS(); !slices.Equal(dns, []netip.Addr{dns6}) {
		t.Errorf("it knows the name servers %v", dns)
	}
	return &network{g, t, guest, ifc}
}

func TestIPv6CarriesStreams(t *testing.T) {
	n := newNetwork6(t, loopback(), true)
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	guest, err := n.guest.DialContext(ctx(t), "tcp", netip.AddrPortFrom(gateway6, netip.MustParseAddrPort(l.Addr().String()).Port()).String())
	if err != nil {
		t.Fatal(err)
	}
	host, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 20
	done := make(chan struct{}) // closed by the goroutine
	go func() {
		defer close(done)
		noise(t, guest.(*stack.TCPConn), 1, size)
		wantNoise(t, guest, 2, size)
	}()
	wantNoise(t, host, 1, size)
	noise(t, host.(*net.TCPConn), 2, size)
	<-done
	guest.Close()
	host.Close()
}

func TestIPv6CarriesDatagrams(t *testing.T) {
	n := newNetwork6(t, loopback(), true)
	host, err := net.ListenUDP("udp6", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("[::1]:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	host.SetDeadline(time.Now().Add(patience))
	guest, err := n.guest.Dial("udp", netip.AddrPortFrom(gateway6, host.LocalAddr().(*net.UDPAddr).AddrPort().Port()).String())
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close()
	guest.SetDeadline(time.Now().Add(patience))
	for _, size := range []int{1, 1400, 20000} {
		data := bytes.Repeat([]byte{'x'}, size)
		if _, err := guest.Write(data); err != nil {
			t.Fatal(err)
		}
		from := wantFrom(t, host, data)
		if _, err := host.WriteToUDPAddrPort(data, from); err != nil {
			t.Fatal(err)
		}
		wantFrom(t, guest.(*stack.UDPConn), data)
	}
	host.Close()
	guest.Write([]byte("x"))
	if _, err := guest.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody takes datagrams any more: %v", err)
	}
}

func TestIPv6Pings(t *testing.T) {
	n := newNetwork6(t, loopback(), true)
	if _, err := n.guest.Ping(ctx(t), dns6, 56); err != nil {
		t.Errorf("the gateway's own address: %v", err)
	}
	if _, err := n.guest.Ping(ctx(t), gateway6, 1400); err != nil {
		t.Errorf("its other one: %v", err)
	}
	if n.pinger6.socket == nil {
		t.Skip("the host allows no ping sockets")
	}
	answered := make(chan struct{}) // closed by the pinger
	n.pinger6.send(hostLoopback6, make([]byte, 1400), func() { close(answered) })
	<-answered
	n.wantCounter(PingIn, 1)
}

// An IPv6 ping of the guest is sent by a socket of the host.
func TestIPv6PingThroughTheGateway(t *testing.T) {
	ownNamespace(t, "192.0.2.1/32")
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/lo/disable_ipv6", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("ip", "-6", "address", "add", "2001:db8::1/128", "dev", "lo", "nodad").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n := newNetwork6(t, Config{}, true)
	eventually(t, "the kernel does not answer at its new address", func() bool { // waits until duplicate detection has finished in the background
		soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := n.guest.Ping(soon, far6.Addr(), 0)
		return err == nil
	})
	for _, size := range []int{0, 56, 1452, 4000} {
		reply, err := n.guest.Ping(ctx(t), far6.Addr(), size)
		if err != nil || reply.From != far6.Addr() || reply.Len != size {
			t.Fatalf("a ping of %d bytes: %+v, %v", size, reply, err)
		}
	}
}

// On a host without IPv6, a program of the guest that tries both versions continues with IPv4 at once.
func TestIPv6Unreachable(t *testing.T) {
	n := newNetwork6(t, Config{}, false)
	for _, network := range []string{"tcp", "udp"} {
		if _, err := n.guest.Dial(network, far6.String()); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("%s to the world: %v", network, err)
		}
	}
	if _, err := n.guest.Ping(ctx(t), far6.Addr(), 0); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("ping: %v", err)
	}
}

// If the host loses its IPv6 address, connections of the guest over IPv6 are refused at once.
func TestIPv6IsLost(t *testing.T) {
	n := newNetwork6(t, Config{dial: func(context.Context, netip.AddrPort) (*net.TCPConn, error) {
		return nil, syscall.ENETUNREACH
	}}, true)
	if _, err := n.guest.DialContext(ctx(t), "tcp", far6.String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("TCP to the world: %v", err)
	}
	n.wantCounter(TCPFailed, 1)
}

func TestIPv6DNS(t *testing.T) {
	n := newNetwork6(t, Config{}, false)
	got, err := n.guest.Resolver().LookupNetIP(ctx(t), "ip4", "host.loam.internal")
	if err != nil || !slices.Equal(got, []netip.Addr{netip.MustParseAddr("10.0.2.2")}) {
		t.Errorf("the gateway is %v, %v", got, err)
	}
}

// A port published without an address is published on ::1 too.
func TestIPv6Published(t *testing.T) {
	needLoopback6(t)
	n, at := publishing(t, "tcp", Limits{})
	l := n.listenGuest()
	port := netip.MustParseAddrPort(at).Port()
	host := dialHostPort(t, netip.AddrPortFrom(hostLoopback6, port).String())
	defer host.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if from := c.RemoteAddr().String(); netip.MustParseAddrPort(from).Addr().String() != "10.0.2.2" {
		t.Errorf("the guest sees %s", from)
	}
}

// If a listener accepts only IPv6, it receives the connections that were refused over
// IPv4; they come from the gateway's IPv6 address. If a listener accepts both, it
// receives the connections over IPv4.
func TestIPv6PublishedToIPv6Alone(t *testing.T) {
	needLoopback6(t)
	guest6 := netip.MustParseAddr("fd6c:6f61:6d00::f")
	n := newNetwork(t, Config{Guest6: guest6, Forwards: []Forward{{Proto: "tcp", Guest: netip.MustParseAddrPort("10.0.2.15:80")}}})
	if err := n.guest.AddAddress("eth0", netip.PrefixFrom(guest6, 64)); err != nil {
		t.Fatal(err)
	}
	at := n.Forwards()[0].Host
	wantResetAt(t, at.String())
	n.wantCounter(PublishFailed, 1)
	for _, c := range []struct{ network, from string }{{"tcp6", "fd6c:6f61:6d00::2"}, {"tcp", "10.0.2.2"}} {
		l, err := n.guest.Listen(c.network, ":80")
		if err != nil {
			t.Fatal(err)
		}
		l.(*stack.TCPListener).SetDeadline(time.Now().Add(patience))
		for _, host := range []netip.Addr{hostLoopback, hostLoopback6} {
			host := dialHostPort(t, netip.AddrPortFrom(host, at.Port()).String())
			guest, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if from := guest.RemoteAddr().(*net.TCPAddr).IP.String(); from != c.from {
				t.Errorf("%s: the guest sees %s", c.network, from)
			}
			guest.SetDeadline(time.Now().Add(patience))
			send(t, host, "hello")
			want(t, guest, "hello")
			guest.Close()
			host.Close()
		}
		l.Close()
	}
	n.wantCounter(PublishFailed, 1)
}

func TestIPv6Reach(t *testing.T) {
	dev, _ := pipe.New(pipe.Config{})
	c, err := Config{Device: dev}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for dst, want := range map[string]bool{
		"2001:db8::1": true, "fd00::1": true, "fd6c:6f61:6d01::2": true,
		"fd6c:6f61:6d00::2": false, "fd6c:6f61:6d00::99": false, "::1": false, "::": false, "fe80::1": false,
		"ff02::1": false, "ff0e::1": false, "::ffff:127.0.0.1": false, "::ffff:192.0.2.1": false,
	} {
		if got, ok := c.reach(netip.MustParseAddr(dst)); ok != want || ok && got.String() != dst {
			t.Errorf("%s leads to %v, %v", dst, got, ok)
		}
	}
	c.HostLoopback = true
	if got, ok := c.reach(gateway6); !ok || got != hostLoopback6 {
		t.Errorf("the gateway leads to %v, %v", got, ok)
	}
}

func TestIPv6Config(t *testing.T) {
	dev, _ := pipe.New(pipe.Config{})
	for _, c := range []Config{
		{Prefix6: netip.MustParsePrefix("fd00::/48")}, {Prefix6: netip.MustParsePrefix("fe80::/64")}, {Prefix6: netip.MustParsePrefix("10.0.0.0/8")},
		{Gateway6: dns6}, {DNS6: netip.MustParseAddr("fd00::3")},
		{Guest6: dns6}, {Guest6: gateway6}, {Guest6: netip.MustParseAddr("fd00::f")}, {Guest6: netip.MustParseAddr("10.0.2.15")},
	} {
		c.Device = dev
		if _, err := c.withDefaults(); err == nil {
			t.Errorf("%v, %v, %v is taken", c.Prefix6, c.Gateway6, c.DNS6)
		}
	}
}

// The lifetimes in the gateway's advertisement are nonzero and finite.
func TestIPv6Advertisement(t *testing.T) {
	c := Config{Prefix6: defaultPrefix6, DNS6: dns6, hostIPv6: func() bool { return true }}
	a := c.advertisement()
	if a.Lifetime == 0 || a.Prefixes[0].Valid == wire.LifetimeForever {
		t.Errorf("%+v", a)
	}
}
