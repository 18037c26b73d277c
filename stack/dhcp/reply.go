package dhcp

import (
	"net/netip"

	"loam/wire"
)

// The replies of a server. RFC 2131 table 3 lists the fields and options of each message.

// udpOverhead is the size of the IPv4 and UDP headers in bytes. It is included in a client's maximum message
// size.
const udpOverhead = wire.IPv4MinLen + wire.UDPLen

// answer begins the reply to m.
func (s *Server) answer(m *wire.DHCPv4, t wire.DHCPv4Type) wire.DHCPv4 {
	r := wire.DHCPv4{
		Op: wire.DHCPv4BootReply, XID: m.XID, Broadcast: m.Broadcast, CHAddr: m.CHAddr,
	}
	r.AddUint8(wire.DHCPv4OptMessageType, uint8(t))
	r.AddAddrs(wire.DHCPv4OptServerID, s.own)
	if id := m.ClientID(); id != nil { // the reply repeats the client identifier (RFC 6842)
		r.Add(wire.DHCPv4OptClientID, id)
	}
	return r
}

// grant returns an OFFER or ACK with an address.
func (s *Server) grant(m *wire.DHCPv4, t wire.DHCPv4Type, addr netip.Addr) Message {
	r := s.answer(m, t)
	r.CIAddr, r.YIAddr = m.CIAddr, addr
	if t == wire.DHCPv4Offer {
		r.CIAddr = netip.Addr{}
	}
	r.AddDuration(wire.DHCPv4OptLeaseTime, s.cfg.LeaseTime)
	s.addConfiguration(m, &r)
	return s.deliver(m, &r)
}

// inform replies to a client that has obtained its address by other means and only needs the other configuration. The reply
// contains no address and no lease time (RFC 2131 section 4.3.5).
func (s *Server) inform(m *wire.DHCPv4) (Message, bool) {
	if !usableIn(m.CIAddr, s.subnet) {
		s.counters.Malformed++
		return Message{}, false
	}
	r := s.answer(m, wire.DHCPv4Ack)
	r.CIAddr = m.CIAddr
	s.addConfiguration(m, &r)
	s.counters.Acks++
	return s.deliver(m, &r), true
}

// nak refuses a request by broadcast, because the client may be using an address that does not belong to this
// link (RFC 2131 section 4.3.2).
func (s *Server) nak(m *wire.DHCPv4, why string) (Message, bool) {
	r := s.answer(m, wire.DHCPv4Nak)
	r.Add(wire.DHCPv4OptMessage, []byte(why))
	s.counters.Naks++
	return s.send(&r, everyone, wire.Broadcast), true
}

// deliver sets the destination of r as in RFC 2131 section 4.1.
func (s *Server) deliver(m, r *wire.DHCPv4) Message {
	switch {
	case m.CIAddr.IsValid():
		return s.send(r, m.CIAddr, wire.MAC{})
	case m.Broadcast:
		return s.send(r, everyone, wire.Broadcast)
	}
	return s.send(r, r.YIAddr, m.CHAddr)
}

func (s *Server) send(r *wire.DHCPv4, to netip.Addr, mac wire.MAC) Message {
	src := netip.AddrPortFrom(s.own, wire.DHCPv4ServerPort)
	dst := netip.AddrPortFrom(to, wire.DHCPv4ClientPort)
	return newMessage(r, src, dst, mac)
}

// usual lists the options that are sent to a client that requests none, the most important first.
var usual = []byte{
	byte(wire.DHCPv4OptRouter), byte(wire.DHCPv4OptDNS), byte(wire.DHCPv4OptDomainName), byte(wire.DHCPv4OptMTU),
}

// addConfiguration adds the subnet mask and then the options that the client requests, in its order, as far
// as they fit into its maximum message size (RFC 2131 section 4.3.1).
func (s *Server) addConfiguration(m, r *wire.DHCPv4) {
	size, ok := m.MaxMessageSize()
	if !ok {
		size = wire.DHCPv4MaxSize
	}
	r.AddSubnetMask(s.subnet.Bits())
	wanted := m.ParameterRequestList()
	if wanted == nil {
		wanted = usual
	}
	var seen [256]bool // codes that were already added: a client's list may contain a code several times
	for _, code := range wanted {
		if seen[code] {
			continue
		}
		seen[code] = true
		with := *r
		s.addOption(&with.DHCPv4Options, wire.DHCPv4Option(code))
		if with.Len() <= size-udpOverhead {
			*r = with
		}
	}
}

// addOption adds the option with the given code, if the server has a value for it.
func (s *Server) addOption(o *wire.DHCPv4Options, code wire.DHCPv4Option) {
	addrs := func(list []netip.Addr) {
		if len(list) > 0 {
			o.AddAddrs(code, list...)
		}
	}
	switch code {
	case wire.DHCPv4OptRouter:
		addrs(s.cfg.Routers)
	case wire.DHCPv4OptDNS:
		addrs(s.cfg.DNS)
	case wire.DHCPv4OptNTP:
		addrs(s.cfg.NTP)
	case wire.DHCPv4OptBroadcast:
		if s.subnet.Bits() < 31 {
			o.AddAddrs(code, lastAddr(s.subnet))
		}
	case wire.DHCPv4OptDomainName:
		if s.cfg.Domain != "" {
			o.Add(code, []byte(s.cfg.Domain))
		}
	case wire.DHCPv4OptDomainSearch:
		if len(s.cfg.Search) > 0 {
			o.AddDomainSearch(s.cfg.Search...)
		}
	case wire.DHCPv4OptMTU:
		if s.cfg.MTU > 0 {
			o.AddUint16(code, uint16(min(s.cfg.MTU, 1<<16-1)))
		}
	case wire.DHCPv4OptClasslessRoutes:
		if len(s.cfg.Routes) > 0 {
			o.AddClasslessRoutes(s.cfg.Routes...)
		}
	}
}
