package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"net/netip"
	"time"
)

// What the usual DHCP options mean. Each accessor returns its zero value if the
// option is absent or makes no sense; lists are in the order of preference that
// the sender gave them, and allocated.

// DHCPv4Infinite is a lease time without end (RFC 2131 section 3.3).
const DHCPv4Infinite = time.Duration(1<<63 - 1)

// MaxDomainSearch is the number of names in a search list that are looked at.
const MaxDomainSearch = 32

// MessageType is never zero in a message that ParseDHCPv4 accepted.
func (o *DHCPv4Options) MessageType() DHCPv4Type {
	if data, _ := o.Get(DHCPv4OptMessageType); len(data) == 1 {
		return DHCPv4Type(data[0])
	}
	return 0
}

// addr is the one address in an option; 0.0.0.0 is none.
func (o *DHCPv4Options) addr(code DHCPv4Option) netip.Addr {
	if data, _ := o.Get(code); len(data) == 4 {
		return givenAddr(data)
	}
	return netip.Addr{}
}

// ServerID says which server is meant, or speaks (RFC 2132 section 9.7).
func (o *DHCPv4Options) ServerID() netip.Addr { return o.addr(DHCPv4OptServerID) }

// RequestedIP is the address that a client would like (RFC 2132 section 9.1).
func (o *DHCPv4Options) RequestedIP() netip.Addr { return o.addr(DHCPv4OptRequestedIP) }

// BroadcastAddr is the subnet's broadcast address (RFC 2132 section 5.3).
func (o *DHCPv4Options) BroadcastAddr() netip.Addr { return o.addr(DHCPv4OptBroadcast) }

// addrs is a list of addresses, nil if the option does not hold whole ones.
func (o *DHCPv4Options) addrs(code DHCPv4Option) []netip.Addr {
	data, _ := o.Get(code)
	if len(data) == 0 || len(data)%4 != 0 {
		return nil
	}
	list := make([]netip.Addr, len(data)/4)
	for i := range list {
		list[i] = netip.AddrFrom4([4]byte(data[4*i:]))
	}
	return list
}

// Routers are the routers of the subnet (RFC 2132 section 3.5).
func (o *DHCPv4Options) Routers() []netip.Addr { return o.addrs(DHCPv4OptRouter) }

// DNS are the name servers (RFC 2132 section 3.8).
func (o *DHCPv4Options) DNS() []netip.Addr { return o.addrs(DHCPv4OptDNS) }

// NTP are the time servers (RFC 2132 section 8.3).
func (o *DHCPv4Options) NTP() []netip.Addr { return o.addrs(DHCPv4OptNTP) }

// SubnetMask is the mask as a number of bits (RFC 2132 section 3.3); ok is false
// for a mask that has ones behind a zero.
func (o *DHCPv4Options) SubnetMask() (n int, ok bool) {
	data, _ := o.Get(DHCPv4OptSubnetMask)
	if len(data) != 4 {
		return 0, false
	}
	mask := binary.BigEndian.Uint32(data)
	n = bits.LeadingZeros32(^mask)
	return n, uint64(mask) == 1<<32-1<<(32-n)
}

// duration is a time in seconds.
func (o *DHCPv4Options) duration(code DHCPv4Option) (d time.Duration, ok bool) {
	data, _ := o.Get(code)
	if len(data) != 4 {
		return 0, false
	}
	v := binary.BigEndian.Uint32(data)
	if v == 1<<32-1 {
		return DHCPv4Infinite, true
	}
	return time.Duration(v) * time.Second, true
}

// LeaseTime is how long the client may keep the address, or would like to; it
// may be DHCPv4Infinite (RFC 2132 section 9.2).
func (o *DHCPv4Options) LeaseTime() (d time.Duration, ok bool) {
	return o.duration(DHCPv4OptLeaseTime)
}

// T1 is when the client asks its server to extend the lease, from its beginning
// (RFC 2132 section 9.11).
func (o *DHCPv4Options) T1() (d time.Duration, ok bool) { return o.duration(DHCPv4OptT1) }

// T2 is when it asks every server (RFC 2132 section 9.12).
func (o *DHCPv4Options) T2() (d time.Duration, ok bool) { return o.duration(DHCPv4OptT2) }

// size is a number of bytes that is at least lowest.
func (o *DHCPv4Options) size(code DHCPv4Option, lowest int) (n int, ok bool) {
	data, _ := o.Get(code)
	if len(data) != 2 || int(binary.BigEndian.Uint16(data)) < lowest {
		return 0, false
	}
	return int(binary.BigEndian.Uint16(data)), true
}

// MTU is that of the interface, at least 68 (RFC 2132 section 5.1).
func (o *DHCPv4Options) MTU() (n int, ok bool) { return o.size(DHCPv4OptMTU, 68) }

// MaxMessageSize is the largest IP packet that the sender takes a message in, at
// least DHCPv4MaxSize (RFC 2132 section 9.10).
func (o *DHCPv4Options) MaxMessageSize() (n int, ok bool) {
	return o.size(DHCPv4OptMaxMessageSize, DHCPv4MaxSize)
}

// text is NVT ASCII, which some senders end with zeros (RFC 2132 section 2). It
// comes from a stranger and may hold any byte.
func (o *DHCPv4Options) text(code DHCPv4Option) string {
	data, _ := o.Get(code)
	return string(bytes.TrimRight(data, "\x00"))
}

// HostName is the name of the client (RFC 2132 section 3.14), unchecked.
func (o *DHCPv4Options) HostName() string { return o.text(DHCPv4OptHostName) }

// DomainName is the domain of the client (RFC 2132 section 3.17), unchecked.
func (o *DHCPv4Options) DomainName() string { return o.text(DHCPv4OptDomainName) }

// Message says for people what went wrong (RFC 2132 section 9.9), unchecked.
func (o *DHCPv4Options) Message() string { return o.text(DHCPv4OptMessage) }

// ClientID is what the client wants to be known by in place of its hardware
// address, at least two bytes (RFC 2132 section 9.14); nil if it does not say.
func (o *DHCPv4Options) ClientID() []byte {
	if data, _ := o.Get(DHCPv4OptClientID); len(data) >= 2 {
		return data
	}
	return nil
}

// ParameterRequestList holds the codes of the options that a client would like
// to have (RFC 2132 section 9.8).
func (o *DHCPv4Options) ParameterRequestList() []byte {
	data, _ := o.Get(DHCPv4OptParameterRequest)
	return data
}

// DomainSearch is the search list (RFC 3397), nil if one of the names is
// malformed. Names beyond MaxDomainSearch are left out.
func (o *DHCPv4Options) DomainSearch() (names []DNSName) {
	data, _ := o.Get(DHCPv4OptDomainSearch)
	for at := 0; at < len(data) && len(names) < MaxDomainSearch; {
		var name DNSName
		next, err := name.parse(data, at)
		if err != nil {
			return nil
		}
		names = append(names, name)
		at = next
	}
	return names
}

// DHCPv4Route is a route by way of a gateway, or, if that is the zero Addr, to
// what is on the link itself.
type DHCPv4Route struct {
	Dst     netip.Prefix
	Gateway netip.Addr
}

// ClasslessRoutes are static routes (RFC 3442), nil if one of them is malformed.
func (o *DHCPv4Options) ClasslessRoutes() (routes []DHCPv4Route) {
	data, _ := o.Get(DHCPv4OptClasslessRoutes)
	for len(data) > 0 {
		width := int(data[0])
		n := (width + 7) / 8 // only these bytes of the destination are there
		if width > 32 || 1+n+4 > len(data) {
			return nil
		}
		var dst [4]byte
		copy(dst[:], data[1:1+n])
		routes = append(routes, DHCPv4Route{
			Dst:     netip.PrefixFrom(netip.AddrFrom4(dst), width).Masked(),
			Gateway: givenAddr(data[1+n:]),
		})
		data = data[1+n+4:]
	}
	return routes
}
