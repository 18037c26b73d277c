//go:build linux

package interop

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loam/link/pipe"
	"loam/stack"
	"loam/usernet"
)

// dnsmasq is a DHCP and DNS server of another project.

// startDnsmasq runs dnsmasq at an address of the kernel, with one long record in addition to options.
func (l *lab) startDnsmasq(addr string, options ...string) {
	l.Helper()
	always := []string{
		"--keep-in-foreground", "--log-facility=-", "--conf-file=/dev/null", "--user=root", "--no-resolv", "--no-hosts",
		"--bind-interfaces", "--listen-address=" + addr,
		"--address=/web.test/192.0.2.80", "--txt-record=long.test," + strings.Join(longText, ","),
	}
	l.start("dnsmasq", append(always, options...)...).awaitOutput("started")
}

// longText is longer than a response over UDP can be.
var longText = slices.Repeat([]string{strings.Repeat("x", 250)}, 10)

// resolver is Go's own resolver, which queries the server through a stack of Loam. It records the
// networks that it used.
type resolver struct {
	net.Resolver
	networks []string
}

func newResolver(s *stack.Stack, server netip.Addr) *resolver {
	r := new(resolver)
	r.PreferGo = true
	r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		r.networks = append(r.networks, network)
		return s.DialContext(ctx, network, netip.AddrPortFrom(server, 53).String())
	}
	return r
}

// wantDNS queries a short record and the long one. The resolver gets the long one over TCP after a
// truncated response over UDP (RFC 7766 section 5).
func (l *lab) wantDNS(r *resolver) {
	l.Helper()
	if got, err := r.LookupNetIP(l.ctx, "ip4", "web.test."); err != nil || len(got) != 1 || got[0] != netip.MustParseAddr("192.0.2.80") {
		l.Errorf("web.test is %v, %v", got, err)
	}
	r.networks = nil
	if got, err := r.LookupTXT(l.ctx, "long.test."); err != nil || strings.Join(got, "") != strings.Join(longText, "") {
		l.Errorf("long.test has %d bytes, %v", len(strings.Join(got, "")), err)
	}
	if !slices.Equal(r.networks, []string{"udp", "tcp"}) {
		l.Errorf("long.test was asked for by %v", r.networks)
	}
}

// TestDnsmasq checks that Loam's DHCP client gets an address with all its options, is known by its
// name, queries the name server that it was given, and releases the address.
func TestDnsmasq(t *testing.T) {
	l := newLab(t, setup{noAddress: true})
	subnet, leases := netip.PrefixFrom(l.linux.addr, 24).Masked(), filepath.Join(t.TempDir(), "leases")
	first := l.loam.addr.Next() // the usual address of Loam's end is not in dnsmasq's range
	router, ntp := l.linux.addr.String(), "192.0.2.123"
	l.startDnsmasq(router, "--dhcp-leasefile="+leases, "--dhcp-range="+first.String()+","+first.Next().String()+",2m",
		"--domain=home.test", "--no-ping", "--dhcp-option=option:mtu,1400",
		"--dhcp-option=option:ntp-server,"+ntp, "--dhcp-option=option:domain-search,home.test,example.test")

	lease, err := l.ifc.DHCP(l.ctx, "guest")
	l.must(err)
	addr := lease.Addr.Addr()
	if lease.Addr.Masked() != subnet || addr != first && addr != first.Next() {
		t.Errorf("address %v", lease.Addr)
	}
	for what, got := range map[string][]netip.Addr{"routers": lease.Routers, "name servers": lease.DNS, "server": {lease.Server}} {
		if !slices.Equal(got, []netip.Addr{l.linux.addr}) {
			t.Errorf("%s: %v", what, got)
		}
	}
	if lease.Domain != "home.test" || !slices.Equal(lease.Search, []string{"home.test", "example.test"}) || lease.MTU != 1400 || len(lease.NTP) != 1 || lease.NTP[0].String() != ntp {
		t.Errorf("the rest of the lease is %+v", lease)
	}
	known := func() bool {
		text, _ := os.ReadFile(leases)
		return strings.Contains(string(text), addr.String()+" guest ")
	}
	l.eventually("a lease that dnsmasq wrote down", known)

	r := newResolver(l.stack, lease.DNS[0])
	if got, err := r.LookupNetIP(l.ctx, "ip4", "guest.home.test."); err != nil || len(got) != 1 || got[0] != addr {
		t.Errorf("the guest's own name is %v, %v", got, err)
	}
	l.wantDNS(r)

	l.ifc.ReleaseDHCP()
	l.eventually("a lease that dnsmasq forgot", func() bool { return !known() })
}

// TestDNSForwarder checks that a response too long for UDP is resolved through the gateway over TCP. The guest is a
// stack on a pipe, and the gateway queries dnsmasq.
func TestDNSForwarder(t *testing.T) {
	l, _ := openLab(t)
	l.ip("link", "set", "lo", "up")
	l.startDnsmasq("127.0.0.1")
	near, far := pipe.New(pipe.Config{})
	gateway, err := usernet.New(usernet.Config{Device: near, Resolvers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")}})
	l.must(err)
	guest := stack.New(stack.Config{})
	l.Cleanup(func() {
		l.must(guest.Close())
		l.must(gateway.Close())
	})
	ifc, err := guest.Attach(far, stack.InterfaceConfig{Name: "eth0"})
	l.must(err)
	lease, err := ifc.DHCP(l.ctx, "")
	l.must(err)
	l.wantDNS(newResolver(guest, lease.DNS[0]))
	counters := gateway.Counters()
	if n := counters.Get(usernet.DNSAnswered); n != 3 { // two queries over UDP and one over TCP
		t.Errorf("the gateway had %d questions answered, want 3:\n%s", n, counters.String())
	}
}
