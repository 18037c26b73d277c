package dhcp

import (
	"bytes"
	"net/netip"

	"loam/wire"
)

// The handling of messages received by the client. Any station on the link can send them. Each message must
// first belong to the current transaction, and then match the request.

// Receive processes a message that arrived at the client's port.
func (c *Client) Receive(now Time, m *wire.DHCPv4) {
	if !c.isForUs(m) {
		c.counters.NotForUs++
		return
	}
	switch m.MessageType() {
	case wire.DHCPv4Offer:
		c.receiveOffer(now, m)
	case wire.DHCPv4Ack:
		c.receiveAck(now, m)
	case wire.DHCPv4Nak:
		c.receiveNak(now, m)
	default:
		c.counters.Unexpected++
	}
}

// isForUs reports whether m answers the last message of this client. A server that supports RFC 6842 repeats the client
// identifier, which must then be the client's own.
func (c *Client) isForUs(m *wire.DHCPv4) bool {
	if m.Op != wire.DHCPv4BootReply || m.XID != c.xid || m.CHAddr != c.cfg.MAC {
		return false
	}
	id, ok := m.Get(wire.DHCPv4OptClientID)
	return !ok || bytes.Equal(id, c.cfg.ClientID)
}

// receiveOffer accepts the first valid offer and requests it.
func (c *Client) receiveOffer(now Time, m *wire.DHCPv4) {
	if c.state != Selecting {
		c.counters.Unexpected++
		return
	}
	l, ok := newLease(m, now)
	if !ok {
		c.counters.BadOffer++
		return
	}
	// The REQUEST has the transaction ID of the DISCOVER (RFC 2131 section 4.4.1), and the lease time counts from now.
	c.state, c.tries, c.sent = Requesting, 0, now
	c.chosen, c.wanted = l.Server, l.Addr.Addr()
	c.sendRequest(now)
}

// receiveAck stores the lease of a valid DHCPACK, if it is for the requested address.
func (c *Client) receiveAck(now Time, m *wire.DHCPv4) {
	if !c.awaits(m.ServerID()) {
		c.counters.Unexpected++
		return
	}
	l, ok := newLease(m, c.sent)
	if !ok || l.Addr.Addr() != c.asked() || now >= l.Expires {
		c.counters.BadAck++
		return
	}
	kind := Acquired
	if c.hasLease && (!c.hasEvent || c.event.Kind != Acquired) {
		kind = Renewed
	}
	if l.T1 != Never { // T1 and T2 are varied randomly, so that clients do not ask simultaneously (RFC 2131 section 4.4.5)
		l.T1 -= Time(c.cfg.Rand.Int64N(int64(l.T1-l.Start)/16 + 1))
	}
	c.lease, c.hasLease, c.naks = l, true, 0
	c.event, c.hasEvent = Event{Kind: kind, Lease: l}, true
	c.state, c.deadline = Bound, l.T1
	c.hasOut = false // discard a retransmission that Poll has not returned yet
}

// awaits reports whether an ACK or NAK from a server is expected in this state. The client expects it from the server to
// which the request was addressed, or from any server if the request was broadcast.
func (c *Client) awaits(server netip.Addr) bool {
	switch c.state {
	case Requesting:
		return server == c.chosen
	case Renewing:
		return server == c.lease.Server
	case Rebooting, Rebinding:
		return true
	}
	return false
}

// asked returns the address that the last REQUEST has asked for.
func (c *Client) asked() netip.Addr {
	if c.hasLease {
		return c.lease.Addr.Addr()
	}
	return c.wanted
}

// receiveNak processes a DHCPNAK: the client gives up the lease or the offer, and starts again.
func (c *Client) receiveNak(now Time, m *wire.DHCPv4) {
	if !c.awaits(m.ServerID()) {
		c.counters.Unexpected++
		return
	}
	c.counters.Naks++
	if c.hasLease {
		c.lose(Refused)
	}
	c.wanted = netip.Addr{}
	c.naks++
	// After a first NAK, the client starts again at once, because it may only have had outdated state. After further NAKs it
	// waits, so that a server that repeatedly offers and refuses is asked no more often than a silent one.
	if c.naks == 1 {
		c.discover(now)
		return
	}
	c.hasOut = false
	c.wait(now + c.backoff(c.naks-2))
}
