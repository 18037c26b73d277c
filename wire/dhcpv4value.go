package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"net/netip"
	"time"
)

// Accessors of the common DHCP options. An accessor returns its zero value if the option is absent or invalid. Lists
// are newly allocated; their order is the sender's order of preference.

// DHCPv4Infinite is an unlimited lease time (RFC 2131 section 3.3).
const DHCPv4Infinite = time.Duration(1<<63 - 1)

// MaxDomainSearch is the maximum number of names used from a search list.
const MaxDomainSearch = 32

// MessageType returns the message type. It is never zero in a message that ParseDHCPv4 accepted.
func (o *DHCPv4Options) MessageType() DHCPv4Type {
	if data, _ := o.Get(DHCPv4OptMessageType); len(data) == 1 {
		return DHCPv4Type(data[0])
	}
	return 0
}

// addr returns the single address in an option, or the zero Addr for 0.0.0.0.
func (o *DHCPv4Options) addr(code DHCPv4Option) netip.Addr {
	if data, _ := o.Get(code); len(data) == 4 {
		return givenAddr(data)
	}
	return netip.Addr{}
}

// ServerID returns the address of the server that sent the message, or for which a client's message is meant (RFC 2132
// section 9.7).
func (o *DHCPv4Options) ServerID() netip.Addr { return o.addr(DHCPv4OptServerID) }

// RequestedIP returns the address that a client requests (RFC 2132 section 9.1).
func (o *DHCPv4Options) RequestedIP() netip.Addr { return o.addr(DHCPv4OptRequestedIP) }

// BroadcastAddr returns the subnet's broadcast address (RFC 2132 section 5.3).
func (o *DHCPv4Options) BroadcastAddr() netip.Addr { return o.addr(DHCPv4OptBroadcast) }

// addrs returns a list of addresses, or nil if the length is not a multiple of four.
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

// Routers returns the routers of the subnet (RFC 2132 section 3.5).
func (o *DHCPv4Options) Routers() []netip.Addr { return o.addrs(DHCPv4OptRouter) }

// DNS returns the name servers (RFC 2132 section 3.8).
func (o *DHCPv4Options) DNS() []netip.Addr { return o.addrs(DHCPv4OptDNS) }

// NTP returns the time servers (RFC 2132 section 8.3).
func (o *DHCPv4Options) NTP() []netip.Addr { return o.addrs(DHCPv4OptNTP) }

// SubnetMask returns the length of the mask in bits (RFC 2132 section 3.3). ok is false if the option is absent, or if
// a one follows a zero in the mask.
func (o *DHCPv4Options) SubnetMask() (n int, ok bool) {
	data, _ := o.Get(DHCPv4OptSubnetMask)
	if len(data) != 4 {
		return 0, false
	}
	mask := binary.BigEndian.Uint32(data)
	n = bits.LeadingZeros32(^mask)
	return n, uint64(mask) == 1<<32-1<<(32-n)
}

// duration returns the time in an option that is a number of seconds. All ones mean DHCPv4Infinite.
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

// LeaseTime returns how long the client may keep the address; in a client's message, it is the time that the client
// requests. It may be DHCPv4Infinite (RFC 2132 section 9.2).
func (o *DHCPv4Options) LeaseTime() (d time.Duration, ok bool) {
	return o.duration(DHCPv4OptLeaseTime)
}

// T1 returns the renewal time, counted from the beginning of the lease: after it, the client asks its server to extend
// the lease (RFC 2132 section 9.11).
func (o *DHCPv4Options) T1() (d time.Duration, ok bool) { return o.duration(DHCPv4OptT1) }

// T2 returns the rebinding time, counted from the beginning of the lease: after it, the client asks any server to
// extend the lease (RFC 2132 section 9.12).
func (o *DHCPv4Options) T2() (d time.Duration, ok bool) { return o.duration(DHCPv4OptT2) }

// size returns the value of an option that is a number of bytes, such as the maximum message size. ok is false if the option
// is absent, or its value is less than lowest.
func (o *DHCPv4Options) size(code DHCPv4Option, lowest int) (n int, ok bool) {
	data, _ := o.Get(code)
	if len(data) != 2 || int(binary.BigEndian.Uint16(data)) < lowest {
		return 0, false
	}
	return int(binary.BigEndian.Uint16(data)), true
}

// MTU returns the MTU of the interface, at least 68 (RFC 2132 section 5.1).
func (o *DHCPv4Options) MTU() (n int, ok bool) { return o.size(DHCPv4OptMTU, 68) }

// MaxMessageSize returns the size of the largest IP packet with a DHCP message that the sender accepts, at least
// DHCPv4MaxSize (RFC 2132 section 9.10).
func (o *DHCPv4Options) MaxMessageSize() (n int, ok bool) {
	return o.size(DHCPv4OptMaxMessageSize, DHCPv4MaxSize)
}

// text returns NVT ASCII text without the trailing zeros that some senders add (RFC 2132 section 2). The text
// is untrusted and may contain any byte.
func (o *DHCPv4Options) text(code DHCPv4Option) string {
	data, _ := o.Get(code)
	return string(bytes.TrimRight(data, "\x00"))
}

// HostName returns the name of the client (RFC 2132 section 3.14). The name may contain any byte.
func (o *DHCPv4Options) HostName() string { return o.text(DHCPv4OptHostName) }

// DomainName returns the domain of the client (RFC 2132 section 3.17). It may contain any byte.
func (o *DHCPv4Options) DomainName() string { return o.text(DHCPv4OptDomainName) }

// Message returns an error message for users (RFC 2132 section 9.9). It may contain any byte.
func (o *DHCPv4Options) Message() string { return o.text(DHCPv4OptMessage) }

// ClientID returns the identifier that the client uses instead of its hardware address. It has at least two bytes (RFC
// 2132 section 9.14). ClientID returns nil if the option is absent.
func (o *DHCPv4Options) ClientID() []byte {
	if data, _ := o.Get(DHCPv4OptClientID); len(data) >= 2 {
		return data
	}
	return nil
}

// ParameterRequestList returns the codes of the options that a client requests (RFC 2132 section 9.8).
func (o *DHCPv4Options) ParameterRequestList() []byte {
	data, _ := o.Get(DHCPv4OptParameterRequest)
	return data
}

// DomainSearch returns the search list (RFC 3397), or nil if one of the names is malformed. Names beyond
// MaxDomainSearch are omitted.
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

// DHCPv4Route is a route through a gateway. A zero Gateway means that the destination is on the link.
type DHCPv4Route struct {
	Dst     netip.Prefix
	Gateway netip.Addr
}

// ClasslessRoutes returns the static routes (RFC 3442), or nil if one of them is malformed.
func (o *DHCPv4Options) ClasslessRoutes() (routes []DHCPv4Route) {
	data, _ := o.Get(DHCPv4OptClasslessRoutes)
	for len(data) > 0 {
		width := int(data[0])
		n := (width + 7) / 8 // only this many bytes of the destination are present
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
