package tcp

// Challenge acknowledgments (RFC 5961). A segment that might be forged is answered with our current numbers.
// A genuine peer then repeats its request with exactly matching numbers.
//
// Section 7 requires a rate limit. A limit shared by the whole machine is observable from outside and reveals
// connections and their sequence numbers (CVE-2016-5696). Each connection therefore has its own limit.

const (
	challengeEvery = millis(500)
	challengeMost  = 10 // number of challenges that may be sent at once after a pause
)

// challenge sends an acknowledgment at once, unless the rate limit is exceeded. The limit is stored as one
// time: the time at which the challenges sent so far would be finished at the allowed rate (the generic cell
// rate algorithm). A time that lies further ahead than that is possible is weeks old.
func (c *Conn) challenge(now Time) {
	ahead := c.challenged - at(now)
	if ahead > challengeMost*challengeEvery {
		ahead = 0
	}
	if ahead += challengeEvery; ahead > challengeMost*challengeEvery {
		c.count(ChallengeLimit)
		return
	}
	c.challenged = at(now) + ahead
	c.count(ChallengeAcks)
	c.todo |= todoAck
}
