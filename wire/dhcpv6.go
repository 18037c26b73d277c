package wire

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// DHCP for IPv6 (RFC 8415). Only the parts that hosts use are supported: non-temporary addresses, and name servers.
// Messages of relay agents are not supported. Other options are skipped.

// DHCPv6Type is the type of a message (RFC 8415 section 7.3).
type DHCPv6Type uint8

// Types of messages between clients and servers.
const (
	DHCPv6Solicit            DHCPv6Type = 1
	DHCPv6Advertise          DHCPv6Type = 2
	DHCPv6Request            DHCPv6Type = 3
	DHCPv6Renew              DHCPv6Type = 5
	DHCPv6Rebind             DHCPv6Type = 6
	DHCPv6Reply              DHCPv6Type = 7
	DHCPv6Release            DHCPv6Type = 8
	DHCPv6Decline            DHCPv6Type = 9
	DHCPv6InformationRequest DHCPv6Type = 11
)

// Status codes (RFC 8415 section 21.13).
const (
	DHCPv6Success   = 0
	DHCPv6NoAddrs   = 2
	DHCPv6NoBinding = 3
	DHCPv6NotOnLink = 4
)

// Ports of DHCPv6 (RFC 8415 section 7.2).
const (
	DHCPv6ClientPort = 546
	DHCPv6ServerPort = 547
)

// Codes of DHCPv6 options (RFC 8415 section 24, RFC 3646 section 3).
const (
	opt6ClientID    = 1
	opt6ServerID    = 2
	opt6IANA        = 3
	opt6IAAddr      = 5
	opt6Wanted      = 6
	opt6Preference  = 7
	opt6Elapsed     = 8
	opt6Status      = 13
	opt6RapidCommit = 14
	opt6DNS         = 23
	opt6Refresh     = 32
	opt6SolMaxRT    = 82
	opt6InfMaxRT    = 83
)

// Lengths in bytes: of the message header, and of the fields that precede the options in an IA_NA and in an IA Address
// option.
const (
	dhcpv6Len       = 4
	dhcpv6IALen     = 12
	dhcpv6IAAddrLen = 24
)

// DHCPv6 is a message. ClientID and ServerID are DUIDs (RFC 8415 section 11) without the header of the option.
type DHCPv6 struct {
	Type        DHCPv6Type
	Transaction uint32 // 24 bits
	ClientID    []byte
	ServerID    []byte
	IA          *DHCPv6IA // nil: none
	Preference  uint8     // server: preference of an Advertise; the client chooses the server with the highest
	RapidCommit bool      // client and server may use two messages instead of four
	Elapsed     uint16    // client: time since its first message of the exchange, in hundredths of a second
	Status      uint16    // server: status code
	DNS         []netip.Addr
	Refresh     uint32 // server: seconds for which the information is valid; 0: not given
	SolMaxRT    uint32 // server: maximum seconds between Solicits; 0: not given
	InfMaxRT    uint32 // server: maximum seconds between Information-requests; 0: not given
}

// DHCPv6IA is an identity association for non-temporary addresses (RFC 8415 section 21.4).
type DHCPv6IA struct {
	ID        uint32
	T1, T2    uint32 // seconds until the client asks its server (T1) or any server (T2) to extend the lease; 0: the client decides
	Status    uint16
	Addresses []DHCPv6Address
}

// DHCPv6Address is an address of an identity association (RFC 8415 section 21.6), with lifetimes in seconds.
type DHCPv6Address struct {
	Addr             netip.Addr
	Preferred, Valid uint32
}

// ParseDHCPv6 parses the payload of a UDP datagram. The result does not alias b. If an option is repeated, the last one
// is used. It returns ErrShort or ErrOption for an invalid message.
func ParseDHCPv6(b []byte) (m DHCPv6, err error) {
	if len(b) < dhcpv6Len {
		return m, ErrShort
	}
	m.Type, m.Transaction = DHCPv6Type(b[0]), binary.BigEndian.Uint32(b)&0xffffff
	if !options6(b[dhcpv6Len:], m.setOption) {
		return m, ErrOption
	}
	return m, nil
}

// options6 calls the function set with each option in b. It returns false if an option is
// malformed or the function returns false.
func options6(b []byte, set func(kind uint16, data []byte) bool) bool {
	for len(b) > 0 {
		if len(b) < 4 || len(b)-4 < int(binary.BigEndian.Uint16(b[2:])) {
			return false
		}
		kind, data := binary.BigEndian.Uint16(b), b[4:4+int(binary.BigEndian.Uint16(b[2:]))]
		if !set(kind, data) {
			return false
		}
		b = b[4+len(data):]
	}
	return true
}

// setOption stores the value of an option. It returns false if the option is invalid.
func (m *DHCPv6) setOption(kind uint16, data []byte) bool {
	switch kind {
	case opt6ClientID:
		m.ClientID = slices.Clone(data)
	case opt6ServerID:
		m.ServerID = slices.Clone(data)
	case opt6IANA:
		m.IA = new(DHCPv6IA)
		return m.IA.parse(data)
	case opt6Preference:
		return len(data) == 1 && assign(&m.Preference, data[0])
	case opt6RapidCommit:
		m.RapidCommit = true
	case opt6Elapsed:
		return len(data) == 2 && assign(&m.Elapsed, binary.BigEndian.Uint16(data))
	case opt6Status:
		return len(data) >= 2 && assign(&m.Status, binary.BigEndian.Uint16(data))
	case opt6Refresh:
		return len(data) == 4 && assign(&m.Refresh, binary.BigEndian.Uint32(data))
	case opt6SolMaxRT:
		return len(data) == 4 && assign(&m.SolMaxRT, binary.BigEndian.Uint32(data))
	case opt6InfMaxRT:
		return len(data) == 4 && assign(&m.InfMaxRT, binary.BigEndian.Uint32(data))
	case opt6DNS:
		m.DNS = nil
		for ; len(data) >= 16; data = data[16:] {
			m.DNS = append(m.DNS, netip.AddrFrom16([16]byte(data)))
		}
		return len(data) == 0
	}
	return true
}

// assign stores value in *to and returns true.
func assign[T any](to *T, value T) bool { *to = value; return true }

// parse parses the option without its header. It returns false if the option is invalid.
func (ia *DHCPv6IA) parse(b []byte) bool {
	if len(b) < dhcpv6IALen {
		return false
	}
	ia.ID, ia.T1, ia.T2 = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	return options6(b[dhcpv6IALen:], func(kind uint16, data []byte) bool {
		switch kind {
		case opt6IAAddr:
			if len(data) < dhcpv6IAAddrLen {
				return false
			}
			ia.Addresses = append(ia.Addresses, DHCPv6Address{
				netip.AddrFrom16([16]byte(data)), binary.BigEndian.Uint32(data[16:]), binary.BigEndian.Uint32(data[20:]),
			})
		case opt6Status:
			return len(data) >= 2 && assign(&ia.Status, binary.BigEndian.Uint16(data))
		}
		return true
	})
}

// append appends the option without its header to b.
func (ia *DHCPv6IA) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, ia.ID)
	b = binary.BigEndian.AppendUint32(b, ia.T1)
	b = binary.BigEndian.AppendUint32(b, ia.T2)
	for _, a := range ia.Addresses {
		addr := a.Addr.As16()
		data := binary.BigEndian.AppendUint32(addr[:], a.Preferred)
		b = appendOption6(b, opt6IAAddr, binary.BigEndian.AppendUint32(data, a.Valid))
	}
	if ia.Status != DHCPv6Success {
		b = appendOption6(b, opt6Status, binary.BigEndian.AppendUint16(nil, ia.Status))
	}
	return b
}

// Append appends the message to b. A client's message also requests name servers and the limits of its retransmission
// times (RFC 8415 sections 21.7, 21.23 to 21.25).
func (m *DHCPv6) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(m.Type)<<24|m.Transaction&0xffffff)
	if len(m.ClientID) > 0 {
		b = appendOption6(b, opt6ClientID, m.ClientID)
	}
	if len(m.ServerID) > 0 {
		b = appendOption6(b, opt6ServerID, m.ServerID)
	}
	if m.IA != nil {
		b = appendOption6(b, opt6IANA, m.IA.append(nil))
	}
	if m.RapidCommit {
		b = appendOption6(b, opt6RapidCommit, nil)
	}
	if m.Type != DHCPv6Advertise && m.Type != DHCPv6Reply {
		return m.appendQuestion(b)
	}
	return m.appendAnswer(b)
}

// appendQuestion appends the options that only clients send.
func (m *DHCPv6) appendQuestion(b []byte) []byte {
	switch m.Type {
	case DHCPv6InformationRequest:
		b = appendOption6(b, opt6Wanted, []byte{0, opt6DNS, 0, opt6Refresh, 0, opt6InfMaxRT})
	case DHCPv6Solicit, DHCPv6Request, DHCPv6Renew, DHCPv6Rebind:
		b = appendOption6(b, opt6Wanted, []byte{0, opt6DNS, 0, opt6SolMaxRT})
	}
	return appendOption6(b, opt6Elapsed, binary.BigEndian.AppendUint16(nil, m.Elapsed))
}

// appendAnswer appends the options that only servers send.
func (m *DHCPv6) appendAnswer(b []byte) []byte {
	if m.Preference != 0 {
		b = appendOption6(b, opt6Preference, []byte{m.Preference})
	}
	if len(m.DNS) > 0 {
		var servers []byte
		for _, a := range m.DNS {
			s := a.As16()
			servers = append(servers, s[:]...)
		}
		b = appendOption6(b, opt6DNS, servers)
	}
	if m.Status != DHCPv6Success {
		b = appendOption6(b, opt6Status, binary.BigEndian.AppendUint16(nil, m.Status))
	}
	for _, o := range [...]struct {
		kind  uint16
		value uint32
	}{{opt6Refresh, m.Refresh}, {opt6SolMaxRT, m.SolMaxRT}, {opt6InfMaxRT, m.InfMaxRT}} {
		if o.value != 0 {
			b = appendOption6(b, o.kind, binary.BigEndian.AppendUint32(nil, o.value))
		}
	}
	return b
}

// appendOption6 appends one option.
func appendOption6(b []byte, kind uint16, data []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, kind)
	b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
	return append(b, data...)
}
