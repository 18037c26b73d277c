package tcp

import "loam/stack/tcp/congestion"

// Samples of the delivery rate for a Model (draft-ietf-ccwg-bbr section 4.1, which includes
// draft-cheng-iccrg-delivery-rate-estimation).
//
// When a range of data leaves, its transit records how much data had been delivered so far, and when. When
// the range is delivered, the data delivered since then, divided by the time since then, is a sample of the
// path's delivery rate. The time is the longer of the time to send that data and the time to acknowledge it.
// Neither a batch of acknowledgments nor a burst therefore looks like a fast path. A sample is marked if the
// program had nothing to send in the meantime.
//
// The transits are a ring parallel to the ring of sent ranges (sentQueue.transits), allocated only for a
// Model. Rejected: fields in sent, which would more than double the size of every connection's ring.

// transit is the delivery state recorded when a range was sent (section 4.1.2.1.2 of the BBR draft).
type transit struct {
	delivered   uint64 // P.delivered
	lost        uint64 // P.lost
	deliveredAt Time   // P.delivered_time
	firstSent   Time   // P.first_send_time
	inFlight    uint32 // P.tx_in_flight
	limited     bool   // P.is_app_limited
}

// sampler is the per-connection state (section 4.1.2.1.1 of the BBR draft).
type sampler struct {
	model       Model
	delivered   uint64 // C.delivered
	lost        uint64 // C.lost
	deliveredAt Time   // C.delivered_time
	firstSent   Time   // C.first_send_time
	limited     uint64 // C.app_limited of the draft: value of the field delivered at which samples are no longer limited by the application; 0: not limited
	minRTT      Time   // minimum of RS.rtt and the round trip time of the handshake; 0: none
	newestAt    Time   // time at which the newest range of this acknowledgment was sent
	newestEnd   Seq    // RS.last_acked_packet_id

	sendElapsed, ackElapsed Time
	sample                  Sample
	rate                    uint64 // delivery rate of the last sample, for Info
	rateLimited             bool
	loss                    Loss
}

// startModel starts the rate measurement if the congestion control is a Model, and stops it otherwise.
func (c *Conn) startModel(now Time) {
	m, ok := c.cc.(Model)
	if !ok {
		c.rate = nil
		c.sent.measure(false)
		c.window.Rate = 0
		return
	}
	c.rate = &sampler{model: m, deliveredAt: now, firstSent: now, minRTT: c.rtt.srtt}
	c.sent.measure(true)
	for i := range c.sent.len() {
		c.rate.leaves(now, c.sent.transit(i), 0, c.pipe())
	}
	m.Start(&c.window, now, c.rtt.srtt, uint32(c.snd.iss))
}

// sampleSent records that n bytes of range i are sent. The pipe already includes these bytes.
func (c *Conn) sampleSent(now Time, i, n int) {
	if c.rate != nil {
		c.rate.leaves(now, c.sent.transit(i), n, c.pipe())
	}
}

// leaves stores the delivery state in t when n bytes are sent (section 4.1.2.2 of the BBR draft).
func (s *sampler) leaves(now Time, t *transit, n, pipe int) {
	if pipe <= n {
		s.firstSent, s.deliveredAt = now, now
	}
	*t = transit{
		delivered: s.delivered, lost: s.lost, deliveredAt: s.deliveredAt, firstSent: s.firstSent,
		inFlight: uint32(pipe), limited: s.limited != 0,
	}
}

// begin implements InitRateSample (section 4.1.2.3 of the BBR draft).
func (s *sampler) begin() { s.sample, s.sendElapsed, s.ackElapsed = Sample{}, 0, 0 }

// arrives implements UpdateRateSample of the BBR draft for the delivered range r, or a part of it, with transit t.
func (s *sampler) arrives(now Time, r *sent, t *transit) {
	s.delivered += uint64(r.len())
	s.deliveredAt = now
	rs := &s.sample
	rs.Acked += uint32(r.len())
	if rs.Any && !sentAfter(r.at, r.end, s.newestAt, s.newestEnd) {
		return
	}
	rs.Any = true
	rs.Prior, rs.InFlight, rs.Limited = t.delivered, t.inFlight, t.limited
	rs.Lost = t.lost
	rs.RTT = 0
	if r.sends == 1 {
		rs.RTT = max(now-r.at, 1)
	}
	s.sendElapsed, s.ackElapsed = r.at-t.firstSent, now-t.deliveredAt
	s.newestAt, s.newestEnd = r.at, r.end
	s.firstSent = r.at
}

// finish implements GenerateRateSample of the BBR draft.
func (s *sampler) finish() {
	rs := &s.sample
	if s.limited != 0 && s.delivered > s.limited {
		s.limited = 0
	}
	rs.Total = s.delivered
	if !rs.Any {
		return
	}
	if rs.RTT > 0 && (s.minRTT == 0 || rs.RTT < s.minRTT) {
		s.minRTT = rs.RTT
	}
	rs.Lost = s.lost - rs.Lost
	rs.Delivered = s.delivered - rs.Prior
	rs.Interval = max(s.sendElapsed, s.ackElapsed)
	if rs.Interval < s.minRTT || rs.Interval <= 0 {
		return // a retransmitted range whose first transmission has arrived: the interval is too short
	}
	rs.Rate = congestion.Rate(rs.Delivered, rs.Interval)
	if !rs.Limited || rs.Rate >= s.rate {
		s.rate, s.rateLimited = rs.Rate, rs.Limited
	}
}

// sampled passes the sample of an acknowledgment to the Model.
func (c *Conn) sampled(ev *arrival) {
	s := c.rate
	s.finish()
	s.sample.Flight = uint32(c.pipe())
	s.sample.Full = c.snd.limited
	s.sample.SACK = c.rcv.sackOK
	c.cc.Acked(&c.window, Ack{
		Now: ev.now, Bytes: uint32(ev.deliver), InFlight: uint32(ev.before), SRTT: c.rtt.srtt,
		Una: c.snd.una, Nxt: c.snd.nxt, Sample: &s.sample,
	})
	if s.sample.Withhold {
		s.limit(c.pipe())
	}
}

// takeForLost marks range i as lost and notifies the Model.
func (c *Conn) takeForLost(now Time, i int) {
	r := c.sent.at(i)
	c.sent.setFlags(r, sentLost, sentRetrans)
	s := c.rate
	if s == nil || c.isMTUProbe(r) {
		return
	}
	t := c.sent.transit(i)
	s.lost += uint64(r.len())
	s.loss = Loss{
		Now: now, Seq: r.seq, End: r.end, Total: s.delivered, Lost: s.lost - t.lost,
		InFlight: t.inFlight, Limited: t.limited, SACK: c.rcv.sackOK,
	}
	s.model.Lost(&c.window, &s.loss)
}

// checkLimited implements CheckIfApplicationLimited (section 4.1.2.4 of the BBR draft). The connection is limited by the
// program if less than a segment is left to send, the window would allow more, and no range waits to be
// retransmitted.
func (c *Conn) checkLimited() {
	if c.rate == nil || c.unsent() >= int(c.window.MSS) || c.sent.lost > c.sent.retrans {
		return
	}
	if pipe := c.pipe(); pipe < int(c.window.Size) {
		c.rate.limit(pipe)
	}
}

// limit implements MarkConnectionAppLimited of the BBR draft: samples count as limited until the data in flight is
// delivered.
func (s *sampler) limit(pipe int) { s.limited = max(s.delivered+uint64(pipe), 1) }
