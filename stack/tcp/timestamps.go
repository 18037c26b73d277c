package tcp

import "time"

// Timestamps (RFC 7323 sections 3 to 5).
//
// Our clock ticks once a millisecond, from an offset that differs between connections, so that it does not
// reveal the machine's uptime (sections 5.4 and 7). Round trip times are measured from the time at which a
// range was sent, which is more precise. Timestamps are used where that is ambiguous, after a retransmission
// (see rtt.go and undo.go).

// timestamps is the state of the timestamps option for one connection.
type timestamps struct {
	on       bool
	offset   uint32
	recent   uint32 // TS.Recent: the timestamp of the peer that we echo
	recentAt millis
}

// tick is the resolution of our timestamp clock.
const tick = time.Millisecond

// pawsIdle is how long TS.Recent remains valid. With a peer's clock of one millisecond, half of the number space takes
// 24.8 days (RFC 7323 section 5.5).
const pawsIdle = 24 * 24 * time.Hour

// clock returns the value of our timestamp clock at a time.
func (t *timestamps) clock(at Time) uint32 { return uint32(at/tick) + t.offset }

func (t *timestamps) remember(now Time, val uint32) { t.recent, t.recentAt = val, at(now) }

// old reports whether a segment with timestamp val is an old duplicate (PAWS, RFC 7323 section 5.3 R1).
func (t *timestamps) old(now Time, val uint32) bool {
	return Seq(val).Less(Seq(t.recent)) && t.recentAt.since(now) < pawsIdle
}

// update records the timestamp of an accepted segment if it is the one to echo. The segment must begin at or in front
// of the last acknowledgment sent. Otherwise delayed acknowledgments would make the peer measure too short a time (RFC
// 7323 section 4.3 (2)).
func (t *timestamps) update(now Time, seg *Segment, lastAck Seq) {
	if seg.HasTimestamps && !Seq(seg.TSVal).Less(Seq(t.recent)) && Seq(seg.Seq).LessEq(lastAck) {
		t.remember(now, seg.TSVal)
	}
}

// since returns the time between now and the echo of one of our timestamps, at least one tick. It returns 0
// if the echo is not from this connection.
func (t *timestamps) since(now Time, echo uint32) Time {
	d := int32(t.clock(now) - echo)
	if d < 0 {
		return 0
	}
	return max(Time(d)*tick, tick)
}
