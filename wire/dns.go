package wire

import (
	"encoding/binary"
	"net/netip"
)

// DNS messages (RFC 1035 section 4), with the functions that a forwarder needs: it parses a question, refuses it or
// answers it with addresses, and extracts the addresses from a server's answer. Of EDNS (RFC 6891), only the maximum
// size of a reply is supported. Zones, other record types and DNSSEC data are forwarded unchanged.
//
// Messages are small and their names are compressed, so Len would have to do most of the work of Put. Functions that
// build a message therefore append it to a buffer.

// DNSType is the type of a record or of a question (IANA dns-parameters).
type DNSType uint16

// Types of DNS records and queries.
const (
	DNSTypeA     DNSType = 1
	DNSTypeNS    DNSType = 2
	DNSTypeCNAME DNSType = 5
	DNSTypePTR   DNSType = 12
	DNSTypeTXT   DNSType = 16
	DNSTypeAAAA  DNSType = 28
	DNSTypeSRV   DNSType = 33
	DNSTypeOPT   DNSType = 41
	DNSTypeANY   DNSType = 255
)

// DNSClass is the class of a record or question.
type DNSClass uint16

// DNSClassIN is the Internet.
const DNSClassIN DNSClass = 1

// DNSRCode is the response code of a query (RFC 1035 section 4.1.1).
type DNSRCode uint8

// Response codes of DNS replies.
const (
	DNSNoError  DNSRCode = 0
	DNSFormErr  DNSRCode = 1 // the server cannot interpret the query
	DNSServFail DNSRCode = 2
	DNSNXDomain DNSRCode = 3 // the name does not exist
	DNSNotImp   DNSRCode = 4
	DNSRefused  DNSRCode = 5
)

// DNSFlags is the second word of the header: flags, opcode and response code.
type DNSFlags uint16

// Flags (RFC 1035 section 4.1.1, RFC 4035 section 3).
const (
	DNSResponse           DNSFlags = 1 << 15 // QR: the message is a response
	DNSAuthoritative      DNSFlags = 1 << 10 // AA: the server is an authority for the name
	DNSTruncated          DNSFlags = 1 << 9  // TC: the message is truncated
	DNSRecursionDesired   DNSFlags = 1 << 8  // RD: the client requests recursion
	DNSRecursionAvailable DNSFlags = 1 << 7  // RA: the server supports recursion
	DNSAuthenticData      DNSFlags = 1 << 5  // AD: the server has verified the data by DNSSEC
	DNSCheckingDisabled   DNSFlags = 1 << 4  // CD: the server need not verify the data by DNSSEC

	dnsOpcode DNSFlags = 0xf << 11
)

// Opcode returns the operation code. 0 is a standard query, the only kind that Loam supports.
func (f DNSFlags) Opcode() int { return int(f & dnsOpcode >> 11) }

// RCode returns the response code.
func (f DNSFlags) RCode() DNSRCode { return DNSRCode(f & 0xf) }

// Sizes in bytes: the header, and the largest message over UDP without EDNS.
const (
	DNSHeaderLen = 12
	MaxDNSByUDP  = 512

	dnsFixedRecord = 10 // type, class, TTL and length of the data
)

// DNSQuestion is the question of a query. The zero value means no question.
type DNSQuestion struct {
	Name  DNSName
	Type  DNSType
	Class DNSClass
}

// DNSRecord is one resource record.
type DNSRecord struct {
	Name  DNSName
	Type  DNSType
	Class DNSClass
	TTL   uint32 // seconds
	Data  []byte // content of the record; aliases the message
}

// Addr returns the address in an A or AAAA record from EachAnswer, and the zero Addr for any other record.
func (r *DNSRecord) Addr() netip.Addr {
	switch {
	case r.Class == DNSClassIN && r.Type == DNSTypeA:
		return netip.AddrFrom4([4]byte(r.Data))
	case r.Class == DNSClassIN && r.Type == DNSTypeAAAA:
		return netip.AddrFrom16([16]byte(r.Data))
	}
	return netip.Addr{}
}

// DNS is a DNS message.
type DNS struct {
	ID       uint16
	Flags    DNSFlags
	Question DNSQuestion
	EDNS     bool   // the message has an OPT record
	UDPSize  uint16 // maximum size of a reply over UDP, from the OPT record, as received

	msg     []byte
	answers int // offset of the answer section in msg
	count   int // number of records in the answer section
}

// ParseDNS parses and checks the whole message: its question, the bounds and names of all records, and the sizes of
// addresses. More than one question is an error (RFC 9619); a response may have none. Bytes after the last record are
// ignored. If b is at least DNSHeaderLen long, ID and Flags are valid even on error, so a server can answer with
// DNSFormErr.
func ParseDNS(b []byte) (m DNS, err error) {
	if len(b) < DNSHeaderLen {
		return m, ErrShort
	}
	m.ID = binary.BigEndian.Uint16(b[0:])
	m.Flags = DNSFlags(binary.BigEndian.Uint16(b[2:]))
	m.msg, m.answers = b, DNSHeaderLen
	questions := binary.BigEndian.Uint16(b[4:])
	if questions > 1 {
		return m, ErrField
	}
	if questions == 1 {
		var q DNSQuestion
		at, err := q.Name.parse(b, DNSHeaderLen)
		if err != nil {
			return m, err
		}
		if at+4 > len(b) {
			return m, ErrShort
		}
		q.Type = DNSType(binary.BigEndian.Uint16(b[at:]))
		q.Class = DNSClass(binary.BigEndian.Uint16(b[at+2:]))
		m.Question, m.answers = q, at+4
	}
	return m, m.checkRecords()
}

// checkRecords checks the three sections of records.
func (m *DNS) checkRecords() error {
	m.count = int(binary.BigEndian.Uint16(m.msg[6:]))
	authority := int(binary.BigEndian.Uint16(m.msg[8:]))
	additional := int(binary.BigEndian.Uint16(m.msg[10:]))
	at := m.answers
	var r DNSRecord
	for i := range m.count + authority + additional {
		next, err := r.parse(m.msg, at)
		if err != nil {
			m.count = 0
			return err
		}
		at = next
		if r.Type != DNSTypeOPT {
			continue
		}
		// RFC 6891 section 6.1.1: at most one OPT record, in the additional section, for the root.
		if m.EDNS || i < m.count+authority || r.Name.n != 1 {
			m.count = 0
			return ErrField
		}
		m.EDNS, m.UDPSize = true, uint16(r.Class)
	}
	return nil
}

// parse parses the record of msg that begins at the offset at, and returns the offset
// after the record.
func (r *DNSRecord) parse(msg []byte, at int) (next int, err error) {
	if at, err = r.Name.parse(msg, at); err != nil {
		return 0, err
	}
	if at+dnsFixedRecord > len(msg) {
		return 0, ErrShort
	}
	r.Type = DNSType(binary.BigEndian.Uint16(msg[at:]))
	r.Class = DNSClass(binary.BigEndian.Uint16(msg[at+2:]))
	r.TTL = binary.BigEndian.Uint32(msg[at+4:])
	n := int(binary.BigEndian.Uint16(msg[at+8:]))
	at += dnsFixedRecord
	if at+n > len(msg) {
		return 0, ErrLength
	}
	if r.Class == DNSClassIN && (r.Type == DNSTypeA && n != 4 || r.Type == DNSTypeAAAA && n != 16) {
		return 0, ErrLength
	}
	r.Data = msg[at : at+n]
	return at + n, nil
}

// EachAnswer calls yield with each record of the answer section until yield returns false. EachAnswer is usable as an
// iter.Seq.
func (m *DNS) EachAnswer(yield func(DNSRecord) bool) {
	var r DNSRecord
	at := m.answers
	for range m.count {
		at, _ = r.parse(m.msg, at) // cannot fail: ParseDNS has checked the record
		if !yield(r) {
			return
		}
	}
}

// UDPLimit returns the size in bytes of the largest message that the sender of m accepts over UDP (RFC 6891 section
// 6.2.5). A larger reply must be truncated and marked with DNSTruncated.
func (m *DNS) UDPLimit() int { return max(MaxDNSByUDP, int(m.UDPSize)) }

// AppendReply appends to b a reply to the query m that has no records, such as a refusal. flags may contain
// DNSAuthoritative and DNSTruncated.
func (m *DNS) AppendReply(b []byte, flags DNSFlags, rcode DNSRCode) []byte {
	return m.appendReply(b, flags|DNSFlags(rcode), 0, nil)
}

// AppendAnswer appends to b a reply to the query m, with an A record for each IPv4 address and an AAAA record for each
// IPv6 address. The addresses must have the type that the question asks for; without a question there must be no
// addresses. ttl is in seconds.
func (m *DNS) AppendAnswer(b []byte, flags DNSFlags, ttl uint32, addrs ...netip.Addr) []byte {
	return m.appendReply(b, flags, ttl, addrs)
}

func (m *DNS) appendReply(b []byte, flags DNSFlags, ttl uint32, addrs []netip.Addr) []byte {
	flags |= DNSResponse | DNSRecursionAvailable | m.Flags&(dnsOpcode|DNSRecursionDesired|DNSCheckingDisabled)
	extra := 0
	if m.EDNS {
		extra = 1
	}
	b = appendDNSHeader(b, m.ID, flags, &m.Question, len(addrs), extra)
	for _, a := range addrs {
		b = append(b, 0xc0, DNSHeaderLen) // a pointer to the name in the question
		if a.Is4() {
			b = appendDNSRecord(b, DNSTypeA, uint16(DNSClassIN), ttl, 4)
		} else {
			b = appendDNSRecord(b, DNSTypeAAAA, uint16(DNSClassIN), ttl, 16)
		}
		b = append(b, a.AsSlice()...)
	}
	if m.EDNS { // RFC 6891 section 6.1.1: the reply to a query with an OPT record has one, too
		b = append(b, 0)
		b = appendDNSRecord(b, DNSTypeOPT, ednsSize, 0, 0)
	}
	return b
}

// ednsSize is the maximum message size that replies advertise, in bytes. A message of this size crosses every link
// without fragmentation (DNS flag day 2020).
const ednsSize = 1232

// AppendDNSQuery appends to b a query with question q that requests recursion.
func AppendDNSQuery(b []byte, id uint16, q *DNSQuestion) []byte {
	return appendDNSHeader(b, id, DNSRecursionDesired, q, 0, 0)
}

func appendDNSHeader(b []byte, id uint16, flags DNSFlags, q *DNSQuestion, answers, extra int) []byte {
	questions := 0
	if !q.Name.IsZero() {
		questions = 1
	}
	for _, v := range [...]int{int(id), int(flags), questions, answers, 0, extra} {
		b = binary.BigEndian.AppendUint16(b, uint16(v))
	}
	if questions == 0 {
		return b
	}
	b = q.Name.AppendTo(b)
	b = binary.BigEndian.AppendUint16(b, uint16(q.Type))
	return binary.BigEndian.AppendUint16(b, uint16(q.Class))
}

// appendDNSRecord appends the part of a record between its name and its data. n is the size of the data in bytes.
func appendDNSRecord(b []byte, t DNSType, class uint16, ttl uint32, n int) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(t))
	b = binary.BigEndian.AppendUint16(b, class)
	b = binary.BigEndian.AppendUint32(b, ttl)
	return binary.BigEndian.AppendUint16(b, uint16(n))
}
