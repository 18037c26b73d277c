package usernet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"loam/link"
)

// Config is what a gateway is made from. Only Device has to be given.
type Config struct {
	// Device is the gateway's end of the link to the guest. The gateway closes it.
	Device link.Device

	// Prefix is the guest's subnet; zero: 10.0.2.0/24. The addresses in it are,
	// unless they are given, those of QEMU's user network: Gateway the second
	// one, DNS the third, Guest the fifteenth.
	Prefix              netip.Prefix
	Gateway, DNS, Guest netip.Addr

	// Prefix6 is the guest's subnet of IPv6, of 64 bits; zero: fd6c:6f61:6d00::/64. Of the addresses
	// in it Gateway6 and DNS6 are, unless they are given, the second and the third. The
	// gateway advertises the prefix, so that guests make themselves addresses in it, and
	// itself as their router if the host has an address of IPv6 beyond its own link.
	Prefix6        netip.Prefix
	Gateway6, DNS6 netip.Addr

	// Guest6, if given, is an address of the guest's in Prefix6. Connections to a published TCP port
	// that nobody takes at Guest lead there, since a program may listen for IPv6 alone: such a
	// client is Gateway6 to it.
	Guest6 netip.Addr

	// NoIPv6 leaves the guest's network without IPv6; so does a device that cannot carry it.
	NoIPv6 bool

	// Hostname, if given, makes the guest known to itself as
	// Hostname.loam.internal: see dnsnames.go.
	Hostname string

	// Forwards are the ports of the host that lead to the guest.
	Forwards []Forward

	// Program, if given, is one of a pair of sockets (AF_UNIX, SOCK_SEQPACKET), of which
	// the other is with the guest: a program of this host, which then gets the
	// connections of its published TCP ports handed over. Package hand says how. The
	// gateway closes it.
	Program *net.UnixConn

	// HostLoopback makes the services of the host's 127.0.0.1 and ::1 reachable for the
	// guest, at the addresses of the gateway. It is off because much that listens
	// there trusts whoever can connect: a guest should not reach a database or a
	// desktop's control socket without having been meant to.
	HostLoopback bool

	// Resolvers are asked by the DNS forwarder. Empty: those of the host's
	// /etc/resolv.conf, which is read again when it changes.
	Resolvers []netip.AddrPort

	// Limits bound what the guest can make the gateway hold.
	Limits Limits

	// Refused, if given, is told the guest's port of each connection to a published port that
	// the guest does not take: most often nobody listens there. Several goroutines may call
	// it at a time.
	Refused func(port uint16)

	// Log receives what an operator should know. Nil: nothing is logged.
	Log *slog.Logger

	// What follows stands in for the host in tests.

	dial       func(context.Context, netip.AddrPort) (*net.TCPConn, error)
	hostIPv6   func() bool   // HostHasIPv6
	resolvConf string        // path
	dnsTimeout time.Duration // of one server
	linger     time.Duration // how long a finished connection may take to be read
	downBound  time.Duration // see watchLink
}

// Limits bound what the guest can make the gateway hold. A field that is zero
// has the default.
type Limits struct {
	Dials       int           // attempts to connect at once; 512
	Connections int           // TCP connections, both directions together; 2048, each of about 1 MiB at worst
	Flows       int           // UDP flows from the guest, and to it for each forward; 1024
	FlowIdle    time.Duration // after which a UDP flow ends, at most twice that; 60 s
	Pings       int           // echo requests without an answer; 128
	Queries     int           // DNS queries at once; 256
}

// Forward has a port of the host lead to a port of the guest.
type Forward struct {
	Proto string // "tcp" or "udp"
	// Host is where the gateway listens. A zero address means 127.0.0.1, and ::1 if the
	// host has it, so that only programs of the host get in; port 0 one that is free.
	Host netip.AddrPort
	// Guest is where it leads. A zero address means Config.Guest; port 0 the
	// port of Host.
	Guest netip.AddrPort

	loopback bool // no address of the host was given
}

// String is "tcp 127.0.0.1:8080 to 10.0.2.15:80".
func (f Forward) String() string { return fmt.Sprintf("%s %s to %s", f.Proto, f.Host, f.Guest) }

var (
	defaultPrefix  = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 2, 0}), 24)
	defaultPrefix6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 'l', 'o', 'a', 'm'}), 64)
)

// Places in Prefix of the three addresses.
const (
	gatewayPlace = 2
	dnsPlace     = 3
	guestPlace   = 15
)

var (
	hostLoopback  = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	hostLoopback6 = netip.IPv6Loopback()
)

// withDefaults fills in what was not given and checks what was.
func (c Config) withDefaults() (Config, error) {
	if c.Device == nil {
		return c, errors.New("usernet: Config.Device is missing")
	}
	if !c.Prefix.IsValid() {
		c.Prefix = defaultPrefix
	}
	c.Prefix = c.Prefix.Masked()
	place(&c.Gateway, c.Prefix, gatewayPlace)
	place(&c.DNS, c.Prefix, dnsPlace)
	place(&c.Guest, c.Prefix, guestPlace)
	if !c.Prefix6.IsValid() {
		c.Prefix6 = defaultPrefix6
	}
	c.Prefix6 = c.Prefix6.Masked()
	place6(&c.Gateway6, c.Prefix6, gatewayPlace)
	place6(&c.DNS6, c.Prefix6, dnsPlace)
	if err := errors.Join(c.checkAddresses(), c.checkAddresses6()); err != nil {
		return c, err
	}
	if c.hostIPv6 == nil {
		c.hostIPv6 = HostHasIPv6
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.dial == nil {
		c.dial = dialHost
	}
	if c.resolvConf == "" {
		c.resolvConf = "/etc/resolv.conf"
	}
	setDefault(&c.dnsTimeout, 2*time.Second)
	setDefault(&c.linger, time.Minute)
	setDefault(&c.downBound, downBound)
	l := &c.Limits
	setDefault(&l.Dials, 512)
	setDefault(&l.Connections, 2048)
	setDefault(&l.Flows, 1024)
	setDefault(&l.FlowIdle, time.Minute)
	setDefault(&l.Pings, 128)
	setDefault(&l.Queries, 256)
	c.Forwards = append([]Forward(nil), c.Forwards...)
	for i := range c.Forwards {
		if err := c.Forwards[i].complete(c.Guest); err != nil {
			return c, err
		}
	}
	return c, nil
}

func setDefault[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// place sets an address that was not given to the nth of the prefix.
func place(a *netip.Addr, p netip.Prefix, n byte) {
	if a.IsValid() || !p.Addr().Is4() {
		return
	}
	b := p.Addr().As4()
	b[3] += n
	*a = netip.AddrFrom4(b)
}

// place6 is place for IPv6.
func place6(a *netip.Addr, p netip.Prefix, n byte) {
	if a.IsValid() {
		return
	}
	b := p.Addr().As16()
	b[15] += n
	*a = netip.AddrFrom16(b)
}

// checkAddresses6 is checkAddresses for IPv6.
func (c *Config) checkAddresses6() error {
	p := c.Prefix6
	if p.Bits() != 64 || !p.Addr().Is6() || p.Addr().Is4In6() || p.Addr().IsMulticast() || p.Addr().IsLinkLocalUnicast() {
		return fmt.Errorf("usernet: %s cannot be the guest's network of IPv6: use a prefix of 64 bits, such as %s", p, defaultPrefix6)
	}
	if !p.Contains(c.Gateway6) || !p.Contains(c.DNS6) || c.Gateway6 == c.DNS6 || c.Gateway6 == p.Addr() || c.DNS6 == p.Addr() {
		return fmt.Errorf("usernet: gateway %s and name server %s are not two hosts in %s", c.Gateway6, c.DNS6, p)
	}
	if six := c.Guest6; six.IsValid() && (!p.Contains(six) || six == c.Gateway6 || six == c.DNS6 || six == p.Addr()) {
		return fmt.Errorf("usernet: guest %s is not another host in %s than gateway and name server", six, p)
	}
	return nil
}

func (c *Config) checkAddresses() error {
	if !c.Prefix.Addr().Is4() || c.Prefix.Bits() == 0 || c.Prefix.Bits() > 30 {
		return fmt.Errorf("usernet: %s cannot be the guest's network: use an IPv4 prefix of 1 to 30 bits, such as %s", c.Prefix, defaultPrefix)
	}
	for _, a := range []struct {
		name string
		addr netip.Addr
	}{{"Gateway", c.Gateway}, {"DNS", c.DNS}, {"Guest", c.Guest}} {
		if !c.Prefix.Contains(a.addr) || a.addr == c.Prefix.Addr() || !c.Prefix.Contains(a.addr.Next()) {
			return fmt.Errorf("usernet: %s address %s is not that of a host in %s: give another address, or a prefix of at most 27 bits", a.name, a.addr, c.Prefix)
		}
	}
	if c.Gateway == c.DNS || c.Gateway == c.Guest || c.DNS == c.Guest {
		return fmt.Errorf("usernet: gateway %s, name server %s and guest %s must be different addresses", c.Gateway, c.DNS, c.Guest)
	}
	return nil
}

// complete fills in what was left out of a forward, and checks it.
func (f *Forward) complete(guest netip.Addr) error {
	if f.Proto != "tcp" && f.Proto != "udp" {
		return fmt.Errorf("usernet: a port forward has protocol %q: use tcp or udp", f.Proto)
	}
	if !f.Host.Addr().IsValid() {
		f.Host, f.loopback = netip.AddrPortFrom(hostLoopback, f.Host.Port()), true
	}
	if !f.Guest.Addr().IsValid() {
		f.Guest = netip.AddrPortFrom(guest, f.Guest.Port())
	}
	if f.Guest.Port() == 0 {
		f.Guest = netip.AddrPortFrom(f.Guest.Addr(), f.Host.Port())
	}
	if f.Guest.Port() == 0 || !f.Guest.Addr().Is4() {
		return fmt.Errorf("usernet: port forward %s: name a port of the guest, and no IPv6 address", f)
	}
	return nil
}
