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

// Config configures a gateway. Only Device is required.
type Config struct {
	// Device is the gateway's end of the link to the guest. The gateway closes it.
	Device link.Device

	// Prefix is the guest's IPv4 subnet; zero: 10.0.2.0/24. Gateway, DNS and Guest are addresses in it. Their defaults
	// are the host numbers that QEMU's user network uses: 2, 3 and 15.
	Prefix              netip.Prefix
	Gateway, DNS, Guest netip.Addr

	// Prefix6 is the guest's IPv6 subnet, a /64; zero: fd6c:6f61:6d00::/64. Gateway6 and DNS6 are addresses in it;
	// their default host numbers are 2 and 3. The gateway advertises the prefix, so that guests configure addresses in
	// it. If the host has a global IPv6 address, the gateway also advertises itself as a default router.
	Prefix6        netip.Prefix
	Gateway6, DNS6 netip.Addr

	// Guest6, if valid, is an address of the guest in Prefix6. If the guest refuses a connection to a published TCP
	// port at Guest, the gateway tries Guest6, because a program may listen on IPv6 only. The guest then sees Gateway6
	// as the client.
	Guest6 netip.Addr

	// NoIPv6 disables IPv6 on the guest's network. IPv6 is also disabled if Device cannot carry IPv6.
	NoIPv6 bool

	// Hostname, if not empty, is the guest's name in DNS: Hostname.loam.internal. See
	// dnsnames.go.
	Hostname string

	// Forwards lists the host ports that are forwarded to the guest.
	Forwards []Forward

	// Program is one end of a socket pair (AF_UNIX, SOCK_SEQPACKET), or nil. The other end belongs to a guest that is a
	// process on this host. The gateway passes it the descriptors of connections to published TCP ports. Package hand
	// defines the messages. The gateway closes Program.
	Program *net.UnixConn

	// HostLoopback lets the guest reach services on the host's 127.0.0.1 and ::1, at the
	// gateway's addresses. It is off by default because many such services trust every
	// client that can connect, for example databases and desktop control sockets.
	HostLoopback bool

	// Resolvers are the servers that the DNS forwarder asks. Empty: the servers in the host's
	// /etc/resolv.conf, which is read again when it changes.
	Resolvers []netip.AddrPort

	// Limits bounds the resources that the guest can make the gateway use.
	Limits Limits

	// Refused, if not nil, is called for each connection to a published port that the
	// guest does not accept, usually because no program listens there. port is the
	// guest's port. It is called concurrently.
	Refused func(port uint16)

	// Log receives messages for an operator. Nil: nothing is logged.
	Log *slog.Logger

	// The fields below replace parts of the host in tests.

	dial       func(context.Context, netip.AddrPort) (*net.TCPConn, error)
	hostIPv6   func() bool   // replaces the function HostHasIPv6
	resolvConf string        // path of the file that replaces /etc/resolv.conf
	dnsTimeout time.Duration // how long the gateway waits for the reply of one server
	linger     time.Duration // how long the guest may take to acknowledge the rest of a finished connection
	downBound  time.Duration // replaces the constant downBound
}

// Limits bounds the resources that the guest can make the gateway use. A zero field selects the default, the number at
// the end of the field's comment.
type Limits struct {
	Dials       int           // concurrent connection attempts to the host; 512
	Connections int           // TCP connections, from and to the guest together; 2048
	Memory      int           // bytes that all TCP connections together may hold, see memory.go; 256 MiB
	Flows       int           // UDP flows from the guest; also, UDP flows to the guest per forward; 1024
	FlowIdle    time.Duration // a UDP flow ends after an idle time between FlowIdle and twice FlowIdle; default 60 s
	Pings       int           // unanswered echo requests; 128
	Queries     int           // concurrent DNS queries; 256
}

// Forward forwards a port of the host to a port of the guest.
type Forward struct {
	Proto string // "tcp" or "udp"
	// Host is the address and port where the gateway listens. A zero address means
	// 127.0.0.1, and also ::1 if the host has it, so that only programs on the host can
	// connect. Port 0 selects a free port.
	Host netip.AddrPort
	// Guest is the destination. A zero address means Config.Guest; port 0 means the port
	// of Host.
	Guest netip.AddrPort

	loopback bool // the user gave no host address: both loopback addresses are used
}

// String returns the forward as in "tcp 127.0.0.1:8080 to 10.0.2.15:80".
func (f Forward) String() string { return fmt.Sprintf("%s %s to %s", f.Proto, f.Host, f.Guest) }

var (
	defaultPrefix  = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 2, 0}), 24)
	defaultPrefix6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 'l', 'o', 'a', 'm'}), 64)
)

// Host numbers of the gateway, the DNS server and the guest in Prefix. Prefix6 uses the first two.
const (
	gatewayPlace = 2
	dnsPlace     = 3
	guestPlace   = 15
)

var (
	hostLoopback  = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	hostLoopback6 = netip.IPv6Loopback()
)

// withDefaults returns the configuration with defaults for unset fields. It returns an error if a field is invalid.
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
	setDefault(&l.Memory, 256<<20)
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

// place sets the address a to host number n of the IPv4 prefix p, unless a is set already.
func place(a *netip.Addr, p netip.Prefix, n byte) {
	if a.IsValid() || !p.Addr().Is4() {
		return
	}
	b := p.Addr().As4()
	b[3] += n
	*a = netip.AddrFrom4(b)
}

// place6 does for IPv6 prefixes what the function place does for IPv4 prefixes.
func place6(a *netip.Addr, p netip.Prefix, n byte) {
	if a.IsValid() {
		return
	}
	b := p.Addr().As16()
	b[15] += n
	*a = netip.AddrFrom16(b)
}

// checkAddresses6 validates the IPv6 prefix and addresses, as checkAddresses does for
// IPv4.
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

// checkAddresses validates the IPv4 prefix and addresses.
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

// complete sets the defaults of a forward and validates it.
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
