package wire

import (
	"encoding/binary"
	"net/netip"
)

// DHCP for IPv6 (RFC 8415), as far as hosts ask for name servers by it: the messages of a
// client that has its addresses from elsewhere, and the answers. Other options are skipped.

// DHCPv6Type is the type of a message (section 7.3).
type DHCPv6Type uint8

// Types that a client without addresses from a server meets.
const (
	DHCPv6Reply   DHCPv6Type = 7
	DHCPv6Request DHCPv6Type = 11 // Information-request
)

// Ports of DHCPv6 (section 7.2).
const (
	DHCPv6ClientPort = 546
	DHCPv6ServerPort = 547
)

// Options (section 24; RFC 3646 section 3).
const (
	opt6ClientID = 1
	opt6ServerID = 2
	opt6Wanted   = 6
	opt6Elapsed  = 8
	opt6Status   = 13
	opt6DNS      = 23
	opt6Refresh  = 32
	opt6MaxRT    = 83
)

const dhcpv6Len = 4 // of the header

// DHCPv6 is a message. Identifiers are those of section 11, without the option's header.
type DHCPv6 struct {
	Type        DHCPv6Type
	Transaction uint32 // 24 bits
	ClientID    []byte
	ServerID    []byte       // an answer's
	Elapsed     uint16       // a question's: hundredths of a second since it was asked first
	Status      uint16       // an answer's: 0 is success
	DNS         []netip.Addr // an answer's
	Refresh     uint32       // an answer's: seconds that what it says is good for; 0: not said
	MaxRT       uint32       // an answer's: the most seconds between questions; 0: not said
}

// ParseDHCPv6 reads the payload of a datagram. What it returns holds nothing of b. Of an option
// that comes more than once the last counts.
func ParseDHCPv6(b []byte) (m DHCPv6, err error) {
	if len(b) < dhcpv6Len {
		return m, ErrShort
	}
	m.Type, m.Transaction = DHCPv6Type(b[0]), binary.BigEndian.Uint32(b)&0xffffff
	for b = b[dhcpv6Len:]; len(b) > 0; {
		if len(b) < 4 || len(b)-4 < int(binary.BigEndian.Uint16(b[2:])) {
			return m, ErrOption
		}
		kind, data := binary.BigEndian.Uint16(b), b[4:4+int(binary.BigEndian.Uint16(b[2:]))]
		if !m.setOption(kind, data) {
			return m, ErrOption
		}
		b = b[4+len(data):]
	}
	return m, nil
}

// setOption takes what an option says; false: it cannot say so.
func (m *DHCPv6) setOption(kind uint16, data []byte) bool {
	sized := true
	switch kind {
	case opt6ClientID:
		m.ClientID = append([]byte(nil), data...)
	case opt6ServerID:
		m.ServerID = append([]byte(nil), data...)
	case opt6Elapsed:
		if sized = len(data) == 2; sized {
			m.Elapsed = binary.BigEndian.Uint16(data)
		}
	case opt6Status:
		if sized = len(data) >= 2; sized {
			m.Status = binary.BigEndian.Uint16(data)
		}
	case opt6Refresh:
		if sized = len(data) == 4; sized {
			m.Refresh = binary.BigEndian.Uint32(data)
		}
	case opt6MaxRT:
		if sized = len(data) == 4; sized {
			m.MaxRT = binary.BigEndian.Uint32(data)
		}
	case opt6DNS:
		if sized = len(data)%16 == 0; sized {
			m.DNS = nil
			for ; len(data) > 0; data = data[16:] {
				m.DNS = append(m.DNS, netip.AddrFrom16([16]byte(data)))
			}
		}
	}
	return sized
}

// Append appends the message to b. A question asks for name servers, and for how long what is
// said of them is good (sections 21.7, 21.23 and 21.25).
func (m *DHCPv6) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(m.Type)<<24|m.Transaction&0xffffff)
	b = appendOption6(b, opt6ClientID, m.ClientID)
	if m.Type == DHCPv6Request {
		b = appendOption6(b, opt6Wanted, []byte{0, opt6DNS, 0, opt6Refresh, 0, opt6MaxRT})
		return appendOption6(b, opt6Elapsed, binary.BigEndian.AppendUint16(nil, m.Elapsed))
	}
	b = appendOption6(b, opt6ServerID, m.ServerID)
	var servers []byte
	for _, a := range m.DNS {
		s := a.As16()
		servers = append(servers, s[:]...)
	}
	b = appendOption6(b, opt6DNS, servers)
	if m.Status != 0 {
		b = appendOption6(b, opt6Status, binary.BigEndian.AppendUint16(nil, m.Status))
	}
	if m.Refresh != 0 {
		b = appendOption6(b, opt6Refresh, binary.BigEndian.AppendUint32(nil, m.Refresh))
	}
	if m.MaxRT != 0 {
		b = appendOption6(b, opt6MaxRT, binary.BigEndian.AppendUint32(nil, m.MaxRT))
	}
	return b
}

// appendOption6 appends an option, if there is something in it.
func appendOption6(b []byte, kind uint16, data []byte) []byte {
	if len(data) == 0 {
		return b
	}
	b = binary.BigEndian.AppendUint16(b, kind)
	b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
	return append(b, data...)
}
