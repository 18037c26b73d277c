package tcp

import "time"

// The round trip time and the retransmission timeout (RFC 6298).

// rtt is the estimator. The timeout is SRTT + max(4 RTTVAR, MinRTO). The minimum applies to the variance term
// and not to the sum, so that a steady path of 300 ms does not time out after 301.
type rtt struct {
	srtt, rttvar Time
	rto          Time // retransmission timeout without backoff
	min          Time // minimum round trip time of the last minutes; 0 if none
	minAt        millis
	backoff      uint8 // number of doublings of the timeout
}

const (
	initialRTO = time.Second // timeout before the first measurement (RFC 6298 rule 2.1)

	// lostSYNRTO is the timeout after a SYN was lost, if no round trip was measured (RFC 6298 rule 5.7).
	lostSYNRTO = 3 * time.Second

	// minRTTAge is how long the minimum round trip time remains valid, since paths change. RFC 8985 section
	// 6.2 does not prescribe the window.
	minRTTAge = 5 * time.Minute
)

func (r *rtt) init(cfg *Config) { r.rto = min(initialRTO, cfg.maxRTO()) }

// sample updates the estimate with the measurement d. expected is the expected number of samples per round trip: the higher
// it is, the less weight each sample has (RFC 7323 appendix G).
func (r *rtt) sample(cfg *Config, now, d Time, expected int) {
	d = max(d, 1)
	if r.min == 0 || d <= r.min || r.minAt.since(now) > minRTTAge {
		r.min, r.minAt = d, at(now)
	}
	if r.srtt == 0 {
		r.srtt, r.rttvar = d, d/2
	} else {
		n := Time(max(expected, 1))
		diff := r.srtt - d
		if diff < 0 {
			diff = -diff
		}
		r.rttvar += (diff - r.rttvar) / (4 * n)
		r.srtt += (d - r.srtt) / (8 * n)
	}
	r.rto = min(r.srtt+max(4*r.rttvar, cfg.minRTO()), cfg.maxRTO())
	r.backoff = 0
}

// afterLostSYN raises the timeout after a SYN was lost (RFC 6298 rule 5.7).
func (r *rtt) afterLostSYN(cfg *Config) {
	if r.srtt == 0 {
		r.rto = min(max(r.rto, lostSYNRTO), cfg.maxRTO())
	}
	r.backoff = 0
}

// rto returns the current retransmission timeout, with backoff.
func (c *Conn) rto() Time { return c.backedOff(c.rtt.backoff) }

// backedOff returns the timeout doubled n times, up to MaxRTO.
func (c *Conn) backedOff(n uint8) Time {
	d, most := c.rtt.rto, c.cfg.maxRTO()
	for ; n > 0 && d < most; n-- {
		d *= 2
	}
	return min(d, most)
}
