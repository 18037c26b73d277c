package probe

import (
	"encoding/binary"
	"net/netip"

	"loam/wire"
)

// form is the frame from which all probes of a run are made. It is built once. Some of its fields are blank and are
// filled in for each probe: destination, tag, time, and the checksums that cover them.
//
//	Ethernet | IPv4 or IPv6 | ICMP echo, 16 bytes of data
//	                        | TCP SYN, MSS and timestamp
//	                        | UDP, the user's payload
type form struct {
	Path
	kind      Kind
	is4       bool
	tags      tagger
	local     Ports
	id        uint16 // identifier in echo requests
	transport int    // offset of the transport header
	sources   []netip.Addr
	macs      map[netip.Addr]wire.MAC // Ethernet address by target; nil: NextHopMAC for all targets
	probe     []template              // for each source address, the frame of a probe
	reset     []template              // for each source address, the frame of a reset, which answers a SYN-ACK
}

// template is a frame with blank fields.
type template struct {
	bytes  []byte
	pseudo uint16 // partial sum of the pseudo header, without the destination
}

// Path holds the addresses in the Ethernet and IP headers of the probes.
type Path struct {
	Source     netip.Addr   // the source address of probes, to which answers are sent
	More       []netip.Addr // further source addresses of the same IP version; each question uses Source or one of these
	SourceMAC  wire.MAC
	NextHopMAC wire.MAC // Ethernet address of the router through which all targets are reached
	HopLimit   uint8    // hop limit, or TTL of IPv4; 0 is DefaultHopLimit
}

// Sources returns all source addresses.
func (p *Path) Sources() []netip.Addr { return append([]netip.Addr{p.Source}, p.More...) }

// DefaultHopLimit is the default hop limit, which is large enough to reach any host.
const DefaultHopLimit = 64

// synOptions are the options of a SYN. Some hosts do not answer without an MSS, although they should assume 536
// (RFC 9293 section 3.7.1). The timestamp is used to measure the round-trip time.
var synOptions = wire.TCPOptions{MSS: 1460, HasTimestamps: true}

func newForm(c *Config, tags tagger) *form {
	f := &form{Path: c.Path, kind: c.Kind, is4: c.Source.Is4(), tags: tags, local: c.LocalPorts, id: c.ID, sources: c.Sources(), macs: c.Neighbours}
	if f.HopLimit == 0 {
		f.HopLimit = DefaultHopLimit
	}
	for _, source := range f.sources {
		if f.kind == Neighbour {
			f.probe = append(f.probe, template{bytes: f.solicitation(source)})
			continue
		}
		f.probe = append(f.probe, f.template(source, f.body(c.Payload)))
		if f.kind == SYN {
			h := wire.TCP{Flags: wire.RST}
			b := make([]byte, h.Len())
			h.Put(b)
			f.reset = append(f.reset, f.template(source, b))
		}
	}
	return f
}

// sourceOf returns the index of the source address for a tag.
func (f *form) sourceOf(tag uint64) int {
	if len(f.sources) == 1 {
		return 0
	}
	return int(tag >> 48 % uint64(len(f.sources)))
}

// template returns a frame: Ethernet and IP headers, followed by body, which begins with the transport header.
func (f *form) template(source netip.Addr, body []byte) (t template) {
	eth := wire.Ethernet{Dst: f.NextHopMAC, Src: f.SourceMAC, Type: wire.TypeIPv4}
	ipLen := wire.IPv4MinLen
	if !f.is4 {
		eth.Type, ipLen = wire.TypeIPv6, wire.IPv6Len
	}
	f.transport = wire.EthernetLen + ipLen
	t.bytes = make([]byte, f.transport+len(body))
	eth.Put(t.bytes)
	if f.is4 {
		ip := wire.IPv4{DontFragment: true, TTL: f.HopLimit, Protocol: f.kind.protocol(true),
			Src: source, Dst: netip.IPv4Unspecified(), PayloadLen: len(body)}
		ip.Put(t.bytes[wire.EthernetLen:])
		t.pseudo = wire.PseudoSum(ip.Protocol, ip.Src, ip.Dst, len(body))
	} else {
		ip := wire.IPv6{NextHeader: f.kind.protocol(false), HopLimit: f.HopLimit,
			Src: source, Dst: netip.IPv6Unspecified(), PayloadLen: len(body)}
		ip.Put(t.bytes[wire.EthernetLen:])
		t.pseudo = wire.PseudoSum(ip.NextHeader, ip.Src, ip.Dst, len(body))
	}
	copy(t.bytes[f.transport:], body)
	return t
}

// body returns the part of a probe that begins with the transport header.
func (f *form) body(payload []byte) []byte {
	switch f.kind {
	case SYN:
		h := wire.TCP{Flags: wire.SYN, Window: 65535, TCPOptions: synOptions}
		b := make([]byte, h.Len())
		h.Put(b)
		return b
	case UDP:
		h := wire.UDP{PayloadLen: len(payload)}
		b := make([]byte, wire.UDPLen+len(payload))
		h.Put(b)
		copy(b[wire.UDPLen:], payload)
		return b
	}
	b := make([]byte, wire.ICMPv4Len+echoData)
	if f.is4 {
		wire.ICMPv4{Type: wire.ICMPv4Echo}.Put(b)
	} else {
		wire.ICMPv6{Type: wire.ICMPv6Echo}.Put(b)
	}
	return b
}

// Offsets of the blank fields in their headers, in bytes (RFC 791, 8200, 9293, 768, 792).
const (
	ipv4ID, ipv4Sum, ipv4Dst  = 4, 10, 16
	ipv6Src, ipv6Dst          = 8, 24
	tcpSeq, tcpSum, tcpTSVal  = 4, 16, 28 // tcpTSVal: after MSS, two NOPs, kind and length
	udpSum, icmpSum, icmpRest = 6, 2, 4
)

// len returns the length of every probe in bytes.
func (f *form) len() int { return len(f.probe[0].bytes) }

// put writes the probe for question q into slot and returns its length. slot must have at least len bytes. now is in
// nanoseconds of the run's clock.
func (f *form) put(slot []byte, q question, now int64) int {
	tag := f.tags.tag(q)
	t := &f.probe[f.sourceOf(tag)]
	if f.kind == Neighbour {
		return f.solicit(slot, t, q)
	}
	body, sum := f.address(slot, t, q, tag)
	f.fill(body, q, tag, now, sum)
	return f.len()
}

// putReset writes the reset for a target that has answered q with a SYN-ACK. The reset's sequence number is the number
// that the SYN-ACK has acknowledged (RFC 9293 section 3.10.7.3). So the target closes the connection and retransmits
// nothing.
func (f *form) putReset(slot []byte, q question) int {
	tag := f.tags.tag(q)
	t := &f.reset[f.sourceOf(tag)]
	b, sum := f.address(slot, t, q, tag)
	binary.BigEndian.PutUint16(b, f.local.of(tag))
	binary.BigEndian.PutUint16(b[2:], q.port)
	binary.BigEndian.PutUint32(b[tcpSeq:], initialSequence(tag)+1)
	binary.BigEndian.PutUint16(b[tcpSum:], ^wire.Sum(b, sum))
	return len(t.bytes)
}

// address copies a template to slot and fills in the blank fields of its IP header. It returns the bytes after the IP
// header, and the partial sum of the pseudo header.
func (f *form) address(slot []byte, t *template, q question, tag uint64) (body []byte, sum uint16) {
	n := copy(slot, t.bytes)
	if f.macs != nil {
		mac := f.macs[q.addr]
		copy(slot, mac[:])
	}
	ip, body := slot[wire.EthernetLen:f.transport], slot[f.transport:n]
	if f.is4 {
		dst := q.addr.As4()
		copy(ip[ipv4Dst:], dst[:])
		binary.BigEndian.PutUint16(ip[ipv4ID:], uint16(tag>>16))
		binary.BigEndian.PutUint16(ip[ipv4Sum:], 0)
		binary.BigEndian.PutUint16(ip[ipv4Sum:], ^wire.Sum(ip, 0))
		sum = wire.Sum(dst[:], t.pseudo)
	} else {
		dst := q.addr.As16()
		copy(ip[ipv6Dst:], dst[:])
		sum = wire.Sum(dst[:], t.pseudo)
	}
	return body, sum
}

// fill fills in the blank fields of the transport header and then its checksum. pseudo is the partial sum of the pseudo
// header.
func (f *form) fill(b []byte, q question, tag uint64, now int64, pseudo uint16) {
	sumAt := icmpSum
	switch f.kind {
	case SYN:
		binary.BigEndian.PutUint16(b, f.local.of(tag))
		binary.BigEndian.PutUint16(b[2:], q.port)
		binary.BigEndian.PutUint32(b[tcpSeq:], initialSequence(tag))
		binary.BigEndian.PutUint32(b[tcpTSVal:], timestamp(now))
		sumAt = tcpSum
	case UDP:
		binary.BigEndian.PutUint16(b, f.local.of(tag))
		binary.BigEndian.PutUint16(b[2:], q.port)
		sumAt = udpSum
	default:
		binary.BigEndian.PutUint32(b[icmpRest:], wire.EchoRest(f.id, sequence(tag)))
		f.tags.putEchoData(b[wire.ICMPv4Len:], tag, now)
		if f.is4 {
			pseudo = 0 // ICMP over IPv4 has no pseudo header (RFC 792)
		}
	}
	sum := ^wire.Sum(b, pseudo)
	if sum == 0 && f.kind == UDP {
		sum = 0xffff // a zero in the field would mean that there is no checksum
	}
	binary.BigEndian.PutUint16(b[sumAt:], sum)
}
