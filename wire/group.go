package wire

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"time"
)

// Multicast group membership: IGMP for IPv4 (RFC 1112 appendix I, RFC 2236 section 2, RFC 9776 section 4) and MLD for
// IPv6 (RFC 2710 section 3, RFC 9777 section 5). MLD is the same protocol with longer addresses, in ICMPv6 messages:
// MLDv1 corresponds to IGMPv2, MLDv2 to IGMPv3. The length of a query determines its version.
//
// Lists in a parsed message are allocated copies.

// GroupProtocol selects IGMP or MLD.
type GroupProtocol uint8

// Values of GroupProtocol: IGMP is for IPv4, MLD for IPv6.
const (
	IGMP GroupProtocol = iota
	MLD
)

// String returns the name of the protocol.
func (p GroupProtocol) String() string {
	if p == IGMP {
		return "IGMP"
	}
	return "MLD"
}

// Newest returns the newest version of the protocol.
func (p GroupProtocol) Newest() uint8 {
	if p == IGMP {
		return 3
	}
	return 2
}

// addrLen returns the size of an address in bytes.
func (p GroupProtocol) addrLen() int {
	if p == IGMP {
		return 4
	}
	return 16
}

// shortLen returns the size in bytes of a message without a list of sources or records. A longer query begins with the
// same fields.
func (p GroupProtocol) shortLen() int {
	if p == IGMP {
		return 8
	}
	return 24
}

// unspecified returns the unspecified address, which is the group of a general query.
func (p GroupProtocol) unspecified() netip.Addr {
	if p == IGMP {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// addr returns the address at the front of b.
func (p GroupProtocol) addr(b []byte) netip.Addr {
	if p == IGMP {
		return netip.AddrFrom4([4]byte(b))
	}
	return netip.AddrFrom16([16]byte(b))
}

// GroupKind is the kind of a message, independent of protocol and version.
type GroupKind uint8

// Kinds of group membership messages.
const (
	GroupQuery  GroupKind = iota + 1 // a router asks which groups have members
	GroupMember                      // report of an older version (IGMPv1, IGMPv2, MLDv1): the sender is a member of Group
	GroupLeave                       // message of an older version (IGMPv2, MLDv1): the sender has left Group
	GroupReport                      // report of the newest version, with Records
)

// groupType describes one value of the type octet of a message.
type groupType struct {
	octet   uint8
	kind    GroupKind
	version uint8 // protocol version that uses the value; 0 for a query, which may have any version
}

// groupTypes lists the types of each protocol (IANA igmp-type-numbers, icmpv6-parameters).
var groupTypes = [...][]groupType{
	IGMP: {{0x11, GroupQuery, 0}, {0x12, GroupMember, 1}, {0x16, GroupMember, 2}, {0x17, GroupLeave, 2}, {0x22, GroupReport, 3}},
	MLD:  {{130, GroupQuery, 0}, {131, GroupMember, 1}, {132, GroupLeave, 1}, {143, GroupReport, 2}},
}

// Knows reports whether octet is the type of a message of the protocol.
func (p GroupProtocol) Knows(octet uint8) bool { return p.kindOf(octet).kind != 0 }

func (p GroupProtocol) kindOf(octet uint8) groupType {
	for _, t := range groupTypes[p] {
		if t.octet == octet {
			return t
		}
	}
	return groupType{}
}

// RecordType is the type of a group record.
type RecordType uint8

// Types of records (RFC 9776 section 4.2.13). The first two report the current state, the other types a change.
const (
	ModeIsInclude   RecordType = 1 // only packets from Sources are received
	ModeIsExclude   RecordType = 2 // packets from all sources except Sources are received
	ChangeToInclude RecordType = 3
	ChangeToExclude RecordType = 4
	AllowNewSources RecordType = 5
	BlockOldSources RecordType = 6
)

// GroupRecord is the part of a report that concerns one group.
type GroupRecord struct {
	Type    RecordType
	Group   netip.Addr
	Sources []netip.Addr
}

// recordLen is the size of a record without its addresses in bytes.
const recordLen = 4

// groupReportLen is the size of a report without records in bytes.
const groupReportLen = 8

// Len returns the size of the record in bytes.
func (r *GroupRecord) Len() int { return recordLen + r.Group.BitLen()/8*(1+len(r.Sources)) }

// GroupMessage is a message of IGMP or MLD.
type GroupMessage struct {
	Protocol GroupProtocol
	Kind     GroupKind
	Version  uint8      // protocol version of the message
	Group    netip.Addr // group of the query, member report or leave; unspecified in a general query

	MaxDelay   time.Duration // query: maximum time until members respond
	Sources    []netip.Addr  // query of the newest version: the sources that the querier asks about
	Suppress   bool          // query of the newest version: other routers must not update their timers
	Robustness uint8         // query of the newest version: the querier's robustness variable; 0: not given
	Interval   time.Duration // query of the newest version: time between general queries; 0: not given

	Records []GroupRecord // report: the records, one for each group
}

// igmpv1Delay is the maximum response time of an IGMPv1 query, which has no field for it (RFC 9776 section 7.2.1).
const igmpv1Delay = 10 * time.Second

// ParseGroupMessage parses a whole message. For MLD, b is an ICMPv6 message. It does not verify the checksum: see
// IGMPChecksumOK and ICMPv6ChecksumOK. Bytes after the message are ignored. It returns ErrField for an unknown type,
// for a group address that is not multicast, and for a query with sources but without a group.
func ParseGroupMessage(p GroupProtocol, b []byte) (m GroupMessage, err error) {
	if len(b) < groupReportLen {
		return m, ErrShort
	}
	t := p.kindOf(b[0])
	m.Protocol, m.Kind, m.Version = p, t.kind, t.version
	switch {
	case t.kind == 0:
		return m, ErrField
	case t.kind == GroupReport:
		return m, m.setRecords(b)
	case len(b) < p.shortLen():
		return m, ErrShort
	}
	m.Group = p.addr(b[p.shortLen()-p.addrLen():])
	if t.kind == GroupQuery {
		return m, m.setQuery(b)
	}
	if !m.Group.IsMulticast() {
		return m, ErrField
	}
	return m, nil
}

// setQuery parses a query and determines its version (RFC 9776 section 7.1, RFC 9777 section 8.1).
func (m *GroupMessage) setQuery(b []byte) error {
	short := m.Protocol.shortLen()
	switch {
	case len(b) == short:
		m.setOlderQuery(b)
	case len(b) < short+recordLen:
		return ErrLength
	default:
		m.Version, m.MaxDelay = m.Protocol.Newest(), m.Protocol.delay(b)
		flags, n := b[short], int(binary.BigEndian.Uint16(b[short+2:]))
		m.Suppress, m.Robustness = flags&8 != 0, flags&7
		m.Interval = time.Duration(fromCode(uint32(b[short+1]), 8)) * time.Second
		if b = b[short+recordLen:]; n*m.Protocol.addrLen() > len(b) {
			return ErrLength
		}
		m.Sources = m.Protocol.addrs(b, n)
	}
	if m.Group.IsUnspecified() && m.Sources == nil || m.Group.IsMulticast() {
		return nil
	}
	return ErrField
}

// setOlderQuery parses a query of an older version, which has the shortest form.
func (m *GroupMessage) setOlderQuery(b []byte) {
	switch code := b[1]; {
	case m.Protocol == MLD:
		m.Version, m.MaxDelay = 1, time.Duration(binary.BigEndian.Uint16(b[4:]))*time.Millisecond
	case code == 0:
		m.Version, m.MaxDelay, m.Group = 1, igmpv1Delay, IGMP.unspecified()
	default:
		m.Version, m.MaxDelay = 2, time.Duration(code)*tenth
	}
}

// tenth is the unit of delays in IGMP.
const tenth = time.Second / 10

// delay returns the maximum response delay in a query of the newest version.
func (p GroupProtocol) delay(b []byte) time.Duration {
	if p == IGMP {
		return time.Duration(fromCode(uint32(b[1]), 8)) * tenth
	}
	return time.Duration(fromCode(uint32(binary.BigEndian.Uint16(b[4:])), 16)) * time.Millisecond
}

// fromCode decodes a field of width bits, 8 or 16. If the top bit is clear, the value is the field itself; otherwise
// the field consists of a three-bit exponent and a mantissa (RFC 9776 section 4.1.1, RFC 9777 section 5.1.3).
func fromCode(code uint32, width int) uint32 {
	mantissa := width - 4
	if code>>(width-1) == 0 {
		return code
	}
	exp := code >> mantissa & 7
	return (code&(1<<mantissa-1) | 1<<mantissa) << (exp + 3)
}

// toCode is the inverse of fromCode. A number without an exact code is rounded down (RFC 9776 section 8.8).
func toCode(v uint32, width int) uint32 {
	mantissa := width - 4
	if v>>(width-1) == 0 {
		return v
	}
	exp := bits.Len32(v) - mantissa - 4
	if exp > 7 {
		return 1<<width - 1
	}
	return 1<<(width-1) | uint32(exp)<<mantissa | v>>(exp+3)&(1<<mantissa-1)
}

// addrs returns the first n addresses in b. It returns nil if n is 0.
func (p GroupProtocol) addrs(b []byte, n int) (list []netip.Addr) {
	for ; n > 0; n-- {
		list = append(list, p.addr(b))
		b = b[p.addrLen():]
	}
	return list
}

// setRecords parses the records of a report. It skips auxiliary data, since no version defines any (RFC 9776 section
// 4.2.11).
func (m *GroupMessage) setRecords(b []byte) error {
	size, n := m.Protocol.addrLen(), int(binary.BigEndian.Uint16(b[6:]))
	for b = b[groupReportLen:]; n > 0; n-- {
		if len(b) < recordLen+size {
			return ErrLength
		}
		kind, aux, sources := RecordType(b[0]), 4*int(b[1]), int(binary.BigEndian.Uint16(b[2:]))
		r := GroupRecord{Type: kind, Group: m.Protocol.addr(b[recordLen:])}
		if b = b[recordLen+size:]; sources*size+aux > len(b) {
			return ErrLength
		}
		if !r.Group.IsMulticast() {
			return ErrField
		}
		r.Sources = m.Protocol.addrs(b, sources)
		m.Records = append(m.Records, r)
		b = b[sources*size+aux:]
	}
	return nil
}

// Len returns the size of the message in bytes.
func (m *GroupMessage) Len() int {
	switch {
	case m.Kind == GroupReport:
		n := groupReportLen
		for i := range m.Records {
			n += m.Records[i].Len()
		}
		return n
	case m.Kind == GroupQuery && m.Version == m.Protocol.Newest():
		return m.Protocol.shortLen() + recordLen + m.Protocol.addrLen()*len(m.Sources)
	}
	return m.Protocol.shortLen()
}

// Put writes the message with a zero checksum into the first Len bytes of b. PutIGMPChecksum or PutICMPv6Checksum then
// sets the checksum. Times that the message cannot represent exactly are rounded down.
func (m *GroupMessage) Put(b []byte) {
	clear(b[:groupReportLen])
	for _, t := range groupTypes[m.Protocol] {
		if t.kind == m.Kind && (t.version == 0 || t.version == m.Version) {
			b[0] = t.octet
		}
	}
	if m.Kind == GroupReport {
		m.putRecords(b)
		return
	}
	short, size := m.Protocol.shortLen(), m.Protocol.addrLen()
	putAddr(b[short-size:], m.Group)
	if m.Kind != GroupQuery {
		return
	}
	m.putDelay(b)
	if m.Version < m.Protocol.Newest() {
		return
	}
	b[short] = m.Robustness & 7
	if m.Suppress {
		b[short] |= 8
	}
	b[short+1] = uint8(toCode(uint32(m.Interval/time.Second), 8))
	putAddrs(b[short+2:], m.Sources, b[short+recordLen:])
}

// putDelay writes the maximum response delay in the format of the query's version.
func (m *GroupMessage) putDelay(b []byte) {
	older := m.Version < m.Protocol.Newest()
	switch {
	case m.Protocol == MLD && older:
		binary.BigEndian.PutUint16(b[4:], uint16(min(m.MaxDelay/time.Millisecond, 1<<16-1)))
	case m.Protocol == MLD:
		binary.BigEndian.PutUint16(b[4:], uint16(toCode(uint32(m.MaxDelay/time.Millisecond), 16)))
	case m.Version == 1:
	case older:
		b[1] = uint8(min(m.MaxDelay/tenth, 1<<8-1))
	default:
		b[1] = uint8(toCode(uint32(m.MaxDelay/tenth), 8))
	}
}

// putRecords writes the number of records and the records of a report.
func (m *GroupMessage) putRecords(b []byte) {
	binary.BigEndian.PutUint16(b[6:], uint16(len(m.Records)))
	b = b[groupReportLen:]
	for i := range m.Records {
		r := &m.Records[i]
		b[0], b[1] = uint8(r.Type), 0
		putAddr(b[recordLen:], r.Group)
		putAddrs(b[2:], r.Sources, b[recordLen+r.Group.BitLen()/8:])
		b = b[r.Len():]
	}
}

// putAddrs writes the number of addresses into count, and the addresses to the front of b.
func putAddrs(count []byte, list []netip.Addr, b []byte) {
	binary.BigEndian.PutUint16(count, uint16(len(list)))
	for _, a := range list {
		b = b[putAddr(b, a):]
	}
}

// putAddr writes an address to the front of b and returns its size.
func putAddr(b []byte, a netip.Addr) int {
	if a.Is4() {
		four := a.As4()
		return copy(b, four[:])
	}
	sixteen := a.As16()
	return copy(b, sixteen[:])
}

// IGMPChecksumOK verifies the checksum of an IGMP message. The argument b is the whole
// payload of the IP packet, because the checksum also covers bytes that follow the fields
// of the message.
func IGMPChecksumOK(b []byte) bool { return Sum(b, 0) == 0xffff }

// PutIGMPChecksum sets the checksum of the whole IGMP message b. Its checksum field must
// be zero before the call.
func PutIGMPChecksum(b []byte) { binary.BigEndian.PutUint16(b[2:], ^Sum(b, 0)) }

// MulticastMAC returns the Ethernet address of an IPv4 or IPv6 multicast group.
func MulticastMAC(group netip.Addr) MAC {
	if group.Is4() {
		return MulticastMAC4(group)
	}
	return MulticastMAC6(group)
}

// MulticastMAC4 returns the Ethernet address of an IPv4 multicast group (RFC 1112 section 6.4).
func MulticastMAC4(group netip.Addr) MAC {
	a := group.As4()
	return MAC{0x01, 0x00, 0x5e, a[1] & 0x7f, a[2], a[3]}
}
