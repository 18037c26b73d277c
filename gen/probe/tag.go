package probe

import (
	"encoding/binary"

	"loam/internal/siphash"
	"loam/wire"
)

// Tags authenticate the answers to probes. Nothing is stored about a probe. Its question is hashed with a key that
// is valid for one run, and the hash is put into fields that an answer has to repeat:
//
//	echo   sequence number (16 bits), and in the data the time of sending with a
//	       hash over tag and time (64 bits); the identifier is one for the run
//	SYN    source port and sequence number (32 bits), which a SYN-ACK or a reset
//	       acknowledges
//	UDP    source port
//
// ICMP errors quote the start of the probe, so the same fields are checked there. An attacker who cannot see the
// probes cannot forge answers. One who can see them could answer in any case.
//
// The time of sending is included where possible: in the data of an echo, and in TCP's timestamp option (RFC 7323),
// which a SYN-ACK repeats. UDP has no field that a server would return.

// tagger computes the tags of a run.
type tagger struct {
	key  siphash.Key
	kind Kind
}

// tag returns the hash of a question.
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

// putEchoData writes the data of an echo sent at now, in nanoseconds of the run's clock.
func (t *tagger) putEchoData(b []byte, tag uint64, now int64) {
	binary.BigEndian.PutUint64(b, uint64(now))
	binary.BigEndian.PutUint64(b[8:], t.stamp(tag, uint64(now)))
}

// readEchoData returns the time at which the echo was sent. ok is false if the data is not ours.
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

// sequence returns the part of a tag that is the sequence number of an echo.
func sequence(tag uint64) uint16 { return uint16(tag) }

// initialSequence returns the part of a tag that is the sequence number of a SYN.
func initialSequence(tag uint64) uint32 { return uint32(tag) }

// Ports is a range of ports. It includes First and Last, and First must not be above Last.
type Ports struct{ First, Last uint16 }

// of returns the port for a tag.
func (p Ports) of(tag uint64) uint16 {
	return p.First + uint16((tag>>32)%(uint64(p.Last-p.First)+1))
}

func (p Ports) contain(port uint16) bool { return p.First <= port && port <= p.Last }

// timestampUnit is the resolution of our TCP timestamps in nanoseconds. The 32-bit timestamp wraps after 71
// minutes.
const timestampUnit = 1000

// timestamp returns the TCP timestamp at now. It starts at 1, because an echoed 0 means that nothing was echoed
// (RFC 7323 section 3.2).
func timestamp(now int64) uint32 { return uint32(now/timestampUnit) + 1 }

// roundTrip returns the time since an echoed TCP timestamp was sent, in nanoseconds. ok is false if the timestamp
// cannot be ours.
func roundTrip(now int64, echoed uint32) (rtt int64, ok bool) {
	steps := timestamp(now) - echoed
	const longest = 1 << 30 // 18 minutes: no answer takes longer
	return int64(steps) * timestampUnit, steps < longest
}

// protocol returns the IP protocol number of the kind.
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
