package wire

import (
	"bytes"
	"encoding/binary"
	"net/netip"
)

// DHCP for IPv4: the message (RFC 2131 section 2). Its options are in dhcpv4option.go, the meaning of the
// common ones in dhcpv4value.go.
//
// Ethernet is the only supported hardware type. A message without a message type is plain BOOTP (RFC 951),
// which Loam does not support.

// UDP ports (RFC 2131 section 4.1).
const (
	DHCPv4ServerPort = 67
	DHCPv4ClientPort = 68
)

// DHCPv4Op is the direction of a message.
type DHCPv4Op uint8

// Directions of a DHCP message.
const (
	DHCPv4BootRequest DHCPv4Op = 1 // client to server
	DHCPv4BootReply   DHCPv4Op = 2 // server to client
)

// Sizes of DHCP messages in bytes.
const (
	// DHCPv4MinLen is the size of the fixed part of a message, with the magic cookie, before the options.
	DHCPv4MinLen = 240
	// DHCPv4MinSent is the size to which Put pads a message: the size of a BOOTP packet (RFC 951 section 3).
	// Some servers and relays reject shorter messages.
	DHCPv4MinSent = 300
	// DHCPv4MaxSize is the size of the largest IP packet with a DHCP message that every host accepts (RFC 2131 section
	// 2). With DHCPv4OptMaxMessageSize, a client accepts larger ones.
	DHCPv4MaxSize = 576

	dhcpv4Cookie    = 0x63825363
	dhcpv4HType     = 1 // hardware type: Ethernet
	dhcpv4HLen      = 6
	dhcpv4Broadcast = 1 << 15 // bit of the field flags: the client needs replies by broadcast

	dhcpv4SName   = 44 // offsets of the fields in the message
	dhcpv4File    = 108
	dhcpv4FileEnd = 236
)

// DHCPv4 is a DHCP message. A zero Addr means that an address is not given (0.0.0.0 on the wire).
type DHCPv4 struct {
	Op         DHCPv4Op
	Hops       uint8 // number of relay agents passed
	XID        uint32
	Secs       uint16     // seconds since the client began
	Broadcast  bool       // the client requests that replies are sent to 255.255.255.255
	CIAddr     netip.Addr // address that the client uses already, and for which it answers ARP
	YIAddr     netip.Addr // "your" address, assigned to the client
	SIAddr     netip.Addr // address of the server for the next step of booting
	GIAddr     netip.Addr // address of the relay agent
	CHAddr     MAC
	ServerName []byte // server name, at most 64 bytes; aliases the message
	BootFile   []byte // name of the boot file, at most 128 bytes; aliases the message
	DHCPv4Options
}

// ParseDHCPv4 parses a message and checks two parts of it: the structure of all options, including those in the server
// name and boot file fields (DHCPv4OptOverload), and the lengths of those options that determine how the message is
// handled. The contents of other options may be invalid; their accessors then report that the option is absent.
func ParseDHCPv4(b []byte) (m DHCPv4, err error) {
	if len(b) < DHCPv4MinLen {
		return m, ErrShort
	}
	if binary.BigEndian.Uint32(b[dhcpv4FileEnd:]) != dhcpv4Cookie || b[1] != dhcpv4HType {
		return m, ErrVersion
	}
	if b[2] != dhcpv4HLen {
		return m, ErrLength
	}
	m = DHCPv4{
		Op:        DHCPv4Op(b[0]),
		Hops:      b[3],
		XID:       binary.BigEndian.Uint32(b[4:]),
		Secs:      binary.BigEndian.Uint16(b[8:]),
		Broadcast: binary.BigEndian.Uint16(b[10:])&dhcpv4Broadcast != 0,
		CIAddr:    givenAddr(b[12:]),
		YIAddr:    givenAddr(b[16:]),
		SIAddr:    givenAddr(b[20:]),
		GIAddr:    givenAddr(b[24:]),
		CHAddr:    MAC(b[28:34]),
	}
	if m.Op != DHCPv4BootRequest && m.Op != DHCPv4BootReply {
		return m, ErrField
	}
	overload, err := m.parseOptions(b)
	if err != nil {
		return m, err
	}
	if overload&dhcpv4OverloadSName == 0 {
		m.ServerName = untilZero(b[dhcpv4SName:dhcpv4File])
	}
	if overload&dhcpv4OverloadFile == 0 {
		m.BootFile = untilZero(b[dhcpv4File:dhcpv4FileEnd])
	}
	return m, nil
}

// givenAddr returns the address at the front of b, or the zero Addr for 0.0.0.0.
func givenAddr(b []byte) netip.Addr {
	a := netip.AddrFrom4([4]byte(b))
	if a == netip.IPv4Unspecified() {
		return netip.Addr{}
	}
	return a
}

// putGivenAddr is the inverse of givenAddr.
func putGivenAddr(b []byte, a netip.Addr) {
	var v [4]byte
	if a.IsValid() {
		v = a.As4()
	}
	copy(b, v[:])
}

// untilZero returns the text in a zero-padded field, or nil if it is empty.
func untilZero(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	if len(b) == 0 {
		return nil
	}
	return b
}

// Len returns the size of the message in bytes, at least DHCPv4MinSent.
func (m *DHCPv4) Len() int {
	return max(DHCPv4MinSent, DHCPv4MinLen+m.DHCPv4Options.len()+1)
}

// Put writes the message into the first Len bytes of b. All options are written to the options field.
func (m *DHCPv4) Put(b []byte) {
	b = b[:m.Len()]
	clear(b)
	b[0], b[1], b[2], b[3] = uint8(m.Op), dhcpv4HType, dhcpv4HLen, m.Hops
	binary.BigEndian.PutUint32(b[4:], m.XID)
	binary.BigEndian.PutUint16(b[8:], m.Secs)
	if m.Broadcast {
		binary.BigEndian.PutUint16(b[10:], dhcpv4Broadcast)
	}
	putGivenAddr(b[12:], m.CIAddr)
	putGivenAddr(b[16:], m.YIAddr)
	putGivenAddr(b[20:], m.SIAddr)
	putGivenAddr(b[24:], m.GIAddr)
	copy(b[28:34], m.CHAddr[:])
	copy(b[dhcpv4SName:dhcpv4File], m.ServerName)
	copy(b[dhcpv4File:dhcpv4FileEnd], m.BootFile)
	binary.BigEndian.PutUint32(b[dhcpv4FileEnd:], dhcpv4Cookie)
	m.DHCPv4Options.put(b[DHCPv4MinLen:])
}
