package tcp

import "time"

// Challenge acknowledgments (RFC 5961): to a segment that could be forged, the
// answer says where we are, and a peer that really means it answers in turn with
// a segment that hits exactly.
//
// Section 7 asks for a limit. One limit for the whole machine can be felt from
// outside, and gives away connections and their numbers (CVE-2016-5696), so each
// connection has its own.

const (
	challengeEvery = 500 * time.Millisecond
	challengeMost  = 10 // at once, after a pause
)

// challenge acknowledges at once, unless that happened too often lately. The
// limit is one time: that at which, at the allowed rate, the challenges sent so
// far would be over (the generic cell rate algorithm).
func (c *Conn) challenge(now Time) {
	over := max(c.challenged, now) + challengeEvery
	if over-now > challengeMost*challengeEvery {
		c.count(ChallengeLimit)
		return
	}
	c.challenged = over
	c.count(ChallengeAcks)
	c.todo |= todoAck
}
