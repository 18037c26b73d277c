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
	challengeEvery = 5 * time.Second
	challengeMost  = 10 // in that time
)

type challengeLimit struct {
	since Time
	n     uint8
}

// challenge acknowledges at once, unless that happened too often lately.
func (c *Conn) challenge(now Time) {
	if c.limit.n == 0 || now-c.limit.since >= challengeEvery {
		c.limit.since, c.limit.n = now, 0
	}
	if c.limit.n >= challengeMost {
		c.count(ChallengeLimit)
		return
	}
	c.limit.n++
	c.count(ChallengeAcks)
	c.todo |= todoAck
}
