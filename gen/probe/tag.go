package probe

import (
	"encoding/binary"

	"loam/internal/siphash"
	"loam/wire"
)

// Tags make a probe's answer prove itself. Nothing is remembered about a probe
// that was sent; what it asked is hashed under a key that lives as long as the
// run, and the hash stands where an answer has to repeat it:
//
//	echo   sequence number (16 bits), and in the data the time of sending with a
//	       hash over tag and time (64 bits); the identifier is one for the run
//	SYN    source port and sequence number (32 bits), which a SYN-ACK or a reset
//	       acknowledges
//	UDP    source port
//
// ICMP errors quote the front of the probe, so the same fields are checked there.
// Whoever does not see the probes cannot make answers up; whoever sees them could
// answer anyway.
//
// Time rides along where it fits: in the echo's data, and in TCP's timestamp
// option (RFC 7323), which a SYN-ACK repeats. UDP has no room that a server would
// send back.

// tagger makes the tags of a run.
type tagger struct {
	key  siphash.Key
	kind Kind
}

// tag hashes a question.
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

// echoData is the length of the data of an echo: time and hash.
const echoData = 16

// putEchoData writes the data of an echo that is sent at now, in nanoseconds of
// the run's clock.
func (t *tagger) putEchoData(b []byte, tag uint64, now int64) {
	binary.BigEndian.PutUint64(b, uint64(now))
	binary.BigEndian.PutUint64(b[8:], t.stamp(tag, uint64(now)))
}

// readEchoData gives back when the echo was sent, if the data is ours.
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

// sequence is the part of a tag that an echo carries in its header.
func sequence(tag uint64) uint16 { return uint16(tag) }

// initialSequence is the part that a SYN carries.
func initialSequence(tag uint64) uint32 { return uint32(tag) }

// Ports is a range of ports with both its ends, First not above Last.
type Ports struct{ First, Last uint16 }

// of picks the port that a tag asks for.
func (p Ports) of(tag uint64) uint16 {
	return p.First + uint16((tag>>32)%(uint64(p.Last-p.First)+1))
}

func (p Ports) contain(port uint16) bool { return p.First <= port && port <= p.Last }

// timestampUnit is how many nanoseconds one step of our TCP timestamps is: the
// 32 bits go round in 71 minutes.
const timestampUnit = 1000

// timestamp is the TCP timestamp at now. It begins at 1, since an answer that
// repeats 0 repeats nothing (RFC 7323 section 3.2).
func timestamp(now int64) uint32 { return uint32(now/timestampUnit) + 1 }

// roundTrip is the time since a TCP timestamp that came back, in nanoseconds; ok
// is false if it cannot be one of ours.
func roundTrip(now int64, echoed uint32) (rtt int64, ok bool) {
	steps := timestamp(now) - echoed
	const longest = 1 << 30 // 18 minutes: no answer takes as long
	return int64(steps) * timestampUnit, steps < longest
}

// protocol is what the kind is in an IP header.
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
