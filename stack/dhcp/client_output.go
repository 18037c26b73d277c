package dhcp

import (
	"net/netip"
	"time"

	"loam/wire"
)

// The messages of a client. RFC 2131 table 5 lists the fields and options of each message; the functions here
// follow its columns.

// wishes lists the options that a client requests from a server. The fields of Lease are set from them.
var wishes = []byte{
	byte(wire.DHCPv4OptSubnetMask), byte(wire.DHCPv4OptClasslessRoutes), byte(wire.DHCPv4OptRouter),
	byte(wire.DHCPv4OptDNS), byte(wire.DHCPv4OptDomainName), byte(wire.DHCPv4OptDomainSearch),
	byte(wire.DHCPv4OptMTU), byte(wire.DHCPv4OptNTP),
	byte(wire.DHCPv4OptLeaseTime), byte(wire.DHCPv4OptT1), byte(wire.DHCPv4OptT2),
}

// message begins a message of this client.
func (c *Client) message(t wire.DHCPv4Type) wire.DHCPv4 {
	m := wire.DHCPv4{Op: wire.DHCPv4BootRequest, XID: c.xid, CHAddr: c.cfg.MAC}
	m.AddUint8(wire.DHCPv4OptMessageType, uint8(t))
	m.Add(wire.DHCPv4OptClientID, c.cfg.ClientID)
	return m
}

// addWishes adds the options that only DISCOVER and REQUEST messages contain.
func (c *Client) addWishes(m *wire.DHCPv4) {
	m.Add(wire.DHCPv4OptParameterRequest, wishes)
	if c.cfg.HostName != "" {
		m.Add(wire.DHCPv4OptHostName, []byte(c.cfg.HostName))
	}
	if c.cfg.MTU > wire.DHCPv4MaxSize {
		m.AddUint16(wire.DHCPv4OptMaxMessageSize, uint16(min(c.cfg.MTU, 1<<16-1)))
	}
}

// send stores m for Poll.
func (c *Client) send(m *wire.DHCPv4, from, to netip.Addr) {
	src := netip.AddrPortFrom(from, wire.DHCPv4ClientPort)
	dst := netip.AddrPortFrom(to, wire.DHCPv4ServerPort)
	c.out, c.hasOut = newMessage(m, src, dst, wire.MAC{}), true
	c.tries++
}

// elapsed returns the secs field: the time since this attempt began in seconds.
func (c *Client) elapsed(now Time) uint16 {
	return uint16(min((now-c.began)/time.Second, 1<<16-1))
}

func (c *Client) sendDiscover(now Time) {
	m := c.message(wire.DHCPv4Discover)
	m.Broadcast = c.cfg.Broadcast
	c.secs = c.elapsed(now)
	m.Secs = c.secs
	if c.wanted.IsValid() {
		m.AddAddrs(wire.DHCPv4OptRequestedIP, c.wanted)
	}
	c.addWishes(&m)
	c.deadline = now + c.backoff(c.tries)
	c.send(&m, netip.IPv4Unspecified(), everyone)
}

// sendRequest requests an offered address, an earlier address or an extension, depending on the state. The
// four columns of RFC 2131 table 4:
//
//	             to        ciaddr  requested IP  server identifier
//	Requesting   everyone  -       yes           yes
//	Rebooting    everyone  -       yes           -
//	Renewing     server    yes     -             -
//	Rebinding    everyone  yes     -             -
func (c *Client) sendRequest(now Time) {
	m := c.message(wire.DHCPv4Request)
	m.Secs = c.elapsed(now)
	from, to := netip.IPv4Unspecified(), everyone
	if c.hasLease {
		from = c.lease.Addr.Addr()
		m.CIAddr = from
		c.deadline = c.nextExtend(now)
	} else {
		m.Broadcast = c.cfg.Broadcast
		m.AddAddrs(wire.DHCPv4OptRequestedIP, c.wanted)
		c.deadline = now + c.backoff(c.tries)
	}
	switch c.state {
	case Requesting:
		// "the same value ... as the original DHCPDISCOVER" (RFC 2131 section 3.1 item 3): relay agents select servers by
		// the secs field.
		m.Secs = c.secs
		m.AddAddrs(wire.DHCPv4OptServerID, c.chosen)
	case Renewing:
		to = c.lease.Server
	}
	c.addWishes(&m)
	c.send(&m, from, to)
}

// nextExtend returns when to ask again: after half of the time left in this state, but at most once a minute
// (RFC 2131 section 4.4.5), and at the latest at its end.
func (c *Client) nextExtend(now Time) Time {
	end := c.lease.T2
	if c.state == Rebinding {
		end = c.lease.Expires
	}
	return min(end, now+max(extendWait, (end-now)/2))
}

func (c *Client) sendDecline(now Time) {
	c.begin(now, c.state)
	m := c.message(wire.DHCPv4Decline)
	m.AddAddrs(wire.DHCPv4OptRequestedIP, c.lease.Addr.Addr())
	m.AddAddrs(wire.DHCPv4OptServerID, c.lease.Server)
	c.send(&m, netip.IPv4Unspecified(), everyone)
}

func (c *Client) sendRelease(now Time) {
	c.begin(now, c.state)
	m := c.message(wire.DHCPv4Release)
	m.CIAddr = c.lease.Addr.Addr()
	m.AddAddrs(wire.DHCPv4OptServerID, c.lease.Server)
	c.send(&m, m.CIAddr, c.lease.Server)
}
