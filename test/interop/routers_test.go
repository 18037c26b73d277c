//go:build linux

package interop

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"loam/stack"
	"loam/wire"
)

// IPv6 routers: dnsmasq advertises the kernel to Loam, and Loam advertises itself to the kernel.

// newRouterLab returns a lab whose kernel has an IPv6 address at its end, and forwards. Loam has no
// address.
func newRouterLab(t *testing.T) (l *lab, network netip.Prefix) {
	t.Helper()
	l = newLab(t, setup{noAddress: true})
	l.openIPv6("lo", l.tap)
	network = l.forwardIPv6()
	l.awaitLinkLocal()
	return l, network
}

// awaitLinkLocal waits until the kernel has a link-local address at its end and has finished duplicate
// address detection. It returns the address.
func (l *lab) awaitLinkLocal() (kernel netip.Addr) {
	l.Helper()
	l.eventually("the kernel has a link-local address", func() bool {
		out := l.run("ip", "-6", "-brief", "address", "show", "dev", l.tap, "scope", "link", "-tentative")
		for _, f := range strings.Fields(out) {
			if p, err := netip.ParsePrefix(f); err == nil {
				kernel = p.Addr()
			}
		}
		return kernel.IsValid()
	})
	return kernel
}

// forwardIPv6 makes the kernel a router with an address in the returned network.
func (l *lab) forwardIPv6() netip.Prefix {
	l.Helper()
	prefix := netip.AddrFrom16([16]byte{0xfd, 0x78, 3: l.linux.addr.As4()[2]})
	l.linux.addr = prefix.Next()
	l.must(os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0))
	l.ip("-6", "address", "add", l.linux.addr.String()+"/64", "dev", l.tap, "nodad")
	return netip.PrefixFrom(prefix, 64)
}

// openIPv6 enables IPv6 on interfaces of the kernel.
func (l *lab) openIPv6(names ...string) {
	l.Helper()
	for _, name := range names {
		l.must(os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("0"), 0))
	}
}

// TestDnsmasqRouter checks that Loam creates an address from dnsmasq's advertisement, reaches what is
// behind the kernel through it, and queries the advertised name server.
func TestDnsmasqRouter(t *testing.T) {
	l, network := newRouterLab(t)
	beyond := netip.MustParseAddr("fd99::1")
	l.ip("-6", "address", "replace", beyond.String()+"/128", "dev", "lo", "nodad")
	l.startDnsmasq(l.linux.addr.String(), "--interface="+l.tap, "--enable-ra", "--ra-param="+l.tap+",mtu:1400,10,600",
		"--dhcp-range="+network.Addr().String()+",ra-only,64,1h", "--dhcp-option=option6:dns-server,["+l.linux.addr.String()+"]")

	own, err := l.ifc.Autoconfigure(l.ctx)
	l.must(err)
	station := wire.LinkLocal6(l.ifc.MAC()).As16()
	want := network.Addr().As16()
	copy(want[8:], station[8:])
	if own != netip.PrefixFrom(netip.AddrFrom16(want), 64) {
		t.Errorf("the address is %v", own)
	}
	if dns := l.stack.DNS(); !slices.Equal(dns, []netip.Addr{l.linux.addr}) {
		t.Errorf("the name servers are %v", dns)
	}
	if got, err := l.stack.Resolver().LookupNetIP(l.ctx, "ip4", "web.test."); err != nil || len(got) != 1 {
		t.Errorf("web.test is %v, %v", got, err)
	}
	l.eventually("the kernel answers by its address beyond", func() bool { // the kernel may not use that address yet
		r, err := l.stack.Ping(l.ctx, beyond, 3000)
		return err == nil && r.Len == 3000
	})
	l.linux.addr, l.loam.addr = beyond, own.Addr()
	for _, d := range l.directions() {
		client, server := l.connect(d)
		l.exchange(d.String(), client, server, 1<<20)
	}
	if !slices.ContainsFunc(l.stack.Routes(), func(r stack.Route) bool { return r.Gateway.IsLinkLocalUnicast() && r.Dst.Bits() == 0 }) {
		t.Errorf("the routes are %v", l.stack.Routes())
	}
}

// TestDnsmasqInform checks that Loam follows dnsmasq's advertisement of DHCPv6 for other information,
// which is another name server than the one in its advertisements.
func TestDnsmasqInform(t *testing.T) {
	l, network := newRouterLab(t)
	said, asked := l.linux.addr, netip.MustParseAddr("fd99::53")
	l.startDnsmasq(l.linux.addr.String(), "--interface="+l.tap, "--enable-ra",
		"--dhcp-range="+network.Addr().String()+",ra-stateless,64,1h",
		"--dhcp-option=option6:dns-server,["+said.String()+"]", "--dhcp-option=tag:dhcpv6,option6:dns-server,["+asked.String()+"]")
	if _, err := l.ifc.Autoconfigure(l.ctx); err != nil {
		t.Fatal(err)
	}
	l.eventually("dnsmasq answers, and that comes first", func() bool {
		return slices.Equal(l.stack.DNS(), []netip.Addr{asked, said})
	})
}

// TestDnsmasqAddresses checks that Loam gets an address by DHCPv6 from dnsmasq, and that it reaches the
// kernel, which is on the link, and what is behind it.
func TestDnsmasqAddresses(t *testing.T) {
	l, network := newRouterLab(t)
	beyond := netip.MustParseAddr("fd99::1")
	l.ip("-6", "address", "replace", beyond.String()+"/128", "dev", "lo", "nodad")
	first := network.Addr().As16()
	first[14] = 1
	low, high := netip.AddrFrom16(first), netip.AddrFrom16(first).Next().Next()
	l.startDnsmasq(l.linux.addr.String(), "--interface="+l.tap, "--enable-ra",
		"--dhcp-range="+low.String()+","+high.String()+",64,1h", "--dhcp-option=option6:dns-server,["+l.linux.addr.String()+"]")
	own, err := l.ifc.Autoconfigure(l.ctx)
	l.must(err)
	if own.Bits() != 128 || own.Addr().Less(low) || high.Less(own.Addr()) {
		t.Errorf("the address is %v", own)
	}
	if dns := l.stack.DNS(); !slices.Equal(dns, []netip.Addr{l.linux.addr}) {
		t.Errorf("the name servers are %v", dns)
	}
	l.loam.addr = own.Addr()
	for _, kernel := range []netip.Addr{l.linux.addr, beyond} {
		l.linux.addr = kernel
		for _, d := range l.directions() {
			client, server := l.connect(d)
			l.exchange(d.String(), client, server, 1<<16)
		}
	}
	l.ifc.ReleaseDHCP()
	if slices.ContainsFunc(l.stack.Addresses(), func(a stack.Address) bool { return a.Prefix == own }) {
		t.Errorf("given back, the addresses are %v", l.stack.Addresses())
	}
}

// TestLoamIsRouter checks that the kernel accepts Loam as its router.
func TestLoamIsRouter(t *testing.T) {
	l := newLab(t, setup{noAddress: true})
	l.openIPv6("lo", l.tap)
	network := netip.MustParsePrefix("fd79::/64")
	l.must(os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("0"), 0))
	l.must(os.WriteFile("/proc/sys/net/ipv6/conf/"+l.tap+"/accept_ra", []byte("2"), 0))
	own := netip.PrefixFrom(network.Addr().Next(), 64)
	l.must(l.stack.AddAddress(l.tap, own))
	l.must(l.ifc.Advertise(wire.RouterAdvertisement{
		HopLimit: 64, Lifetime: 1800, MTU: 1400,
		Prefixes: []wire.PrefixInfo{{Prefix: network, OnLink: true, Autonomous: true, Valid: 7200, Preferred: 3600}},
	}))
	l.eventually("the kernel has an address", func() bool {
		return strings.Contains(l.run("ip", "-6", "address", "show", "dev", l.tap, "-tentative"), "inet6 fd79::")
	})
	routes := l.run("ip", "-6", "route")
	if !strings.Contains(routes, "default via "+wire.LinkLocal6(l.ifc.MAC()).String()) || !strings.Contains(routes, "mtu 1400") {
		t.Errorf("the kernel's routes are\n%s", routes)
	}
	ln, err := l.stack.Listen("tcp", net.JoinHostPort(own.Addr().String(), "0"))
	l.must(err)
	defer ln.Close()
	go echo(ln)
	c, err := l.linux.dial(l.ctx, "tcp", ln.Addr().String())
	l.must(err)
	c.Close()
}

// TestRunIPv6 checks that a program of "loam run" on a tap serves HTTP over IPv6: at an address learned
// from routers, and at a configured address.
func TestRunIPv6(t *testing.T) {
	command := buildLoam(t)
	for _, platform := range []string{"process", "vm"} {
		t.Run("routers/"+platform, func(t *testing.T) {
			l, network := newTapRouter(t, platform)
			l.startDnsmasq(l.linux.addr.String(), "--interface="+l.tap, "--enable-ra", "--dhcp-range="+network.Addr().String()+",ra-only,64,1h")
			l.serveAt(command, platform, func() netip.Addr {
				var own netip.Addr
				linux := l.run("ip", "-6", "address", "show", "dev", l.tap) // the kernel's own addresses, which its neighbour table sometimes contains
				l.eventually("the program has asked for routers", func() bool {
					for _, word := range strings.Fields(l.run("ip", "-6", "neigh", "show", "dev", l.tap)) {
						if a, err := netip.ParseAddr(word); err == nil && a.IsLinkLocalUnicast() && !strings.Contains(linux, " "+word+"/") {
							own = a
						}
					}
					return own.IsValid()
				})
				b, id := network.Addr().As16(), own.As16()
				copy(b[8:], id[8:])
				return netip.AddrFrom16(b)
			})
		})
		t.Run("given/"+platform, func(t *testing.T) {
			l, _ := newTapRouter(t, platform)
			own := l.linux.addr.Next()
			l.serveAt(command, platform, func() netip.Addr { return own }, "--ip", own.String()+"/64", "--gw", l.linux.addr.String())
		})
	}
}

// newTapRouter is like newRouterLab, but for a program that opens the tap itself.
func newTapRouter(t *testing.T, platform string) (*lab, netip.Prefix) {
	t.Helper()
	l, kernel := openLab(t)
	if platform == "vm" {
		l.need("qemu-system-x86_64")
	}
	l.makeTap(setup{}, kernel)
	l.Cleanup(l.remove)
	l.openIPv6("lo", l.tap)
	l.linux = linuxHost(kernel)
	return l, l.forwardIPv6()
}

// serveAt starts a server and gets its page from an address, the result of the function
// where.
func (l *lab) serveAt(command, platform string, where func() netip.Addr, flags ...string) {
	l.Helper()
	args := append([]string{"run", "--platform", platform, "--net", "tap:" + l.tap}, flags...)
	program := l.start(command, append(args, "../../examples/web")...)
	program.awaitOutput("listening on")
	page := l.run("curl", "-6", "--silent", "--show-error", "--fail", "--retry", "9", "--retry-all-errors", "http://["+where().String()+"]:8080/")
	if !strings.Contains(page, "<html") {
		l.Errorf("the page is %q", page)
	}
	l.must(program.cmd.Process.Signal(os.Interrupt))
	<-program.ended
	if status := program.cmd.ProcessState.ExitCode(); status != 0 {
		l.Errorf("exit status %d", status)
	}
}
