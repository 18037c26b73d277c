package probe

import (
	"encoding/binary"

	"loam/internal/siphash"
	"loam/wire"
)

// Tags authenticate the answers to probes, without storing anything about a probe. The tag of a probe is a hash of its
// question with a key that is valid for one run. It is written into fields of the probe that an answer has to repeat:
//
//	echo   sequence number (16 bits), and in the data the time of sending with a
//	       hash over tag and time (64 bits); the identifier is one for the run
//	SYN    source port and sequence number (32 bits), which a SYN-ACK or a reset
//	       acknowledges
//	UDP    source port
//
// ICMP errors quote the start of the probe, so the same fields can be checked in them. An attacker who cannot see the
// probes cannot forge answers. An attacker who can see them can answer in any case.
//
// Where possible, the probe also contains its time of sending: in the data of an echo request, and in TCP's timestamp
// option (RFC 7323), which a SYN-ACK repeats. A UDP probe has no field that a server returns.

// tagger computes the tags of a run.
type tagger struct {
	key  siphash.Key
	kind Kind
}

// tag returns the keyed hash of a question (address and port). A probe carries it, and an answer returns it.
func (t *tagger) tag(q question) uint64 {
	var b [19]byte
	n := 4
	if q.addr.Is4() {
		a := q.addr.As4()
		copy(b[:], a[:])
	} else {
		a := q.addr.As16()
		n = copy(b[:], a[:])
	}
	binary.BigEndian.PutUint16(b[n:], q.port)
	b[n+2] = byte(t.kind)
	return siphash.Sum(t.key, b[:n+3])
}

// echoData is the length of the data of an echo request in bytes: the time and a hash, 8 bytes each.
const echoData = 16

// putEchoData writes the data of an echo request that is sent at time now, in nanoseconds of the run's clock.
func (t *tagger) putEchoData(b []byte, tag uint64, now int64) {
	binary.BigEndian.PutUint64(b, uint64(now))
	binary.BigEndian.PutUint64(b[8:], t.stamp(tag, uint64(now)))
}

// readEchoData returns the time at which an echo request was sent, from the data in its reply. ok is false if we have
// not sent this data.
func (t *tagger) readEchoData(b []byte, tag uint64) (sent int64, ok bool) {
	now := binary.BigEndian.Uint64(b)
	return int64(now), binary.BigEndian.Uint64(b[8:]) == t.stamp(tag, now)
}

func (t *tagger) stamp(tag, now uint64) uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], tag)
	binary.LittleEndian.PutUint64(b[8:], now)
	return siphash.Sum(t.key, b[:])
}

// sequence returns the part of a tag that is used as the sequence number of an echo request.
func sequence(tag uint64) uint16 { return uint16(tag) }

// initialSequence returns the part of a tag that is used as the sequence number of a SYN.
func initialSequence(tag uint64) uint32 { return uint32(tag) }

// Ports is a range of ports, including First and Last. First must not be greater than Last.
type Ports struct{ First, Last uint16 }

// of returns the source port of a probe with the given tag.
func (p Ports) of(tag uint64) uint16 {
	return p.First + uint16((tag>>32)%(uint64(p.Last-p.First)+1))
}

func (p Ports) contain(port uint16) bool { return p.First <= port && port <= p.Last }

// timestampUnit is the unit of our TCP timestamps in nanoseconds. The 32-bit timestamp wraps after 71 minutes.
const timestampUnit = 1000

// timestamp returns the TCP timestamp for time now. Timestamps start at 1, because a SYN-ACK with an echoed timestamp
// of 0 does not echo anything (RFC 7323 section 3.2).
func timestamp(now int64) uint32 { return uint32(now/timestampUnit) + 1 }

// roundTrip returns the time, in nanoseconds, since an echoed TCP timestamp was sent. ok is false if we cannot have
// sent this timestamp.
func roundTrip(now int64, echoed uint32) (rtt int64, ok bool) {
	steps := timestamp(now) - echoed
	const longest = 1 << 30 // 18 minutes: no answer takes longer
	return int64(steps) * timestampUnit, steps < longest
}

// protocol returns the number of the IP protocol in which probes of the kind are sent.
func (k Kind) protocol(is4 bool) wire.Protocol {
	switch {
	case k == SYN:
		return wire.ProtoTCP
	case k == UDP:
		return wire.ProtoUDP
	case is4:
		return wire.ProtoICMP
	}
	return wire.ProtoICMPv6
}
