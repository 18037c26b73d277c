package tcp

// Opening a connection: OPEN (RFC 9293 section 3.10.1), and segments that arrive in SYN-SENT (section
// 3.10.7.3) and SYN-RECEIVED.
//
// RFC 9293 returns a passively opened connection from SYN-RECEIVED to LISTEN when a SYN arrives. Here
// listeners belong to the owner, so no connection returns to LISTEN; receiveControl challenges such a SYN.

import (
	"loam/stack/tcp/congestion"
	"loam/wire"
)

// Dial opens a connection (active OPEN); Poll returns its SYN. iss and tsOffset come from a Key. mss is the
// payload that the path allows without options: the MTU less 40 for IPv4 and 60 for IPv6. The owner of the
// connection also owns the parameters out and in. cfg may be nil.
func Dial(now Time, cfg *Config, id ID, iss, tsOffset uint32, mss int, out Outgoing, in Incoming) *Conn {
	c := &Conn{out: out, in: in}
	c.init(now, cfg, id, iss, tsOffset, mss)
	c.state = SynSent
	c.ecn.ask(c.cfg.ECN)
	return c
}

// Accept creates a connection in SYN-RECEIVED for a SYN that arrived at a listener; Poll returns the SYN-ACK.
// Data in syn is ignored unless OpenFast is called, and the peer sends it again. The other parameters are as for Dial.
func Accept(now Time, cfg *Config, id ID, iss, tsOffset uint32, mss int, syn *Segment, out Outgoing, in Incoming) *Conn {
	c := &Conn{out: out, in: in}
	c.init(now, cfg, id, iss, tsOffset, mss)
	c.accept(now, syn)
	return c
}

// accept initializes a connection from the SYN of a passive open. CookieSYNACK calls it as well.
func (c *Conn) accept(now Time, syn *Segment) {
	c.state = SynReceived
	c.passive = true
	c.takeSYN(now, syn)
	c.ecn.answer(c.cfg.ECN, syn.Flags)
}

// init sets the initial state of a connection. cfg may be nil; the other parameters are as for Dial.
func (c *Conn) init(now Time, cfg *Config, id ID, iss, tsOffset uint32, mss int) {
	if cfg == nil {
		cfg = &defaultConfig
	}
	c.id, c.cfg = id, cfg
	c.timers.stopAll()
	c.snd.iss, c.snd.una, c.snd.nxt = Seq(iss), Seq(iss), Seq(iss)
	c.snd.small = Seq(iss)
	c.snd.off = ^uint64(0)
	c.snd.noDelay = cfg.NoDelay
	c.snd.userTimeout = lasting(cfg.UserTimeout)
	c.snd.progress = now
	c.rec.point = Seq(iss)
	c.rack.init(Seq(iss))
	c.ts.offset = tsOffset
	c.rtt.init(c.cfg)
	c.propose(mss)
	c.initSearch(now)
	c.updateMSS()
	c.window.Threshold = congestion.NoThreshold
	c.ack.quick = quickAcks
	c.keep.received, c.ack.last, c.snd.lastSent = now, at(now), now
	if cfg.KeepAlive > 0 {
		c.SetKeepAlive(now, cfg.KeepAlive, cfg.KeepAliveInterval, cfg.KeepAliveCount)
	}
}

// takeSYN initializes the receive sequence space from the peer's SYN.
func (c *Conn) takeSYN(now Time, syn *Segment) {
	window := c.rcv.edge.Sub(c.rcv.nxt)
	c.rcv.irs = Seq(syn.Seq)
	c.rcv.nxt = c.rcv.irs + 1
	c.rcv.edge = c.rcv.nxt.Add(window)
	c.rcv.lastAck = c.rcv.nxt
	c.agree(now, syn)
	c.snd.wnd = uint32(syn.Window) // the window of a SYN is never scaled
	c.snd.maxWnd = c.snd.wnd
	c.snd.wl1, c.snd.wl2 = c.rcv.irs, Seq(syn.Ack)
}

// receiveSynSent handles a segment in SYN-SENT, in the order of RFC 9293 section 3.10.7.3.
func (c *Conn) receiveSynSent(now Time, seg *Segment) {
	acked := seg.Flags.Has(wire.ACK)
	if ack := Seq(seg.Ack); acked && (ack.LessEq(c.snd.iss) || c.snd.nxt.Less(ack)) {
		c.count(DropAck)
		if !seg.Flags.Has(wire.RST) {
			c.refuse(seg)
		}
		return
	}
	if seg.Flags.Has(wire.RST) {
		if !acked {
			c.count(DropRST)
			return
		}
		c.close(wasRefused)
		return
	}
	if !seg.Flags.Has(wire.SYN) {
		c.count(DropSYN)
		return
	}
	c.takeSYN(now, seg)
	if !acked {
		// Simultaneous open (RFC 9293 figure 8): answer with a SYN-ACK.
		c.state = SynReceived
		c.ecn.answer(c.cfg.ECN, seg.Flags)
		c.resendSYN()
		return
	}
	c.ecn.agreed(seg.Flags)
	c.ackedSYN(now, seg)
	c.todo |= todoAck
	if len(seg.Payload) > 0 || seg.Flags.Has(wire.FIN) {
		c.text(now, seg, c.rcv.nxt)
	}
}

// ackedSYN processes the acknowledgment of our SYN and establishes the connection.
func (c *Conn) ackedSYN(now Time, seg *Segment) {
	syn := *c.sent.at(0)
	c.sent.pop()
	c.snd.una = c.snd.iss + 1
	c.timers.stop(timerRTO)
	again := syn.sends > 1
	spurious := again && c.ts.on && seg.TSEcr == c.rec.stamp
	// The echo of an earlier SYN is not a measurement: a peer whose SYN-ACK was lost repeats it with the same
	// echo, after its own timeout.
	if !again || c.ts.on && seg.TSEcr == c.ts.clock(syn.at) {
		c.rtt.sample(c.cfg, now, now-syn.at, 1)
	}
	c.establish(now)
	if again {
		c.rtt.afterLostSYN(c.cfg)
	}
	if again && !spurious {
		// RFC 5681 section 3.1: the window is one segment after a lost SYN.
		c.window.Size = c.window.MSS
	}
	c.ackedSYNData(now, seg)
}

// establish enters ESTABLISHED, or FIN-WAIT-1 if the program has already closed the stream. SND.UNA is the
// number after the SYN.
func (c *Conn) establish(now Time) {
	if c.cc == nil {
		c.cc = c.cfg.congestion()
	}
	c.window.Size = c.initialWindow()
	c.snd.off = 0
	c.snd.retries = 0
	c.snd.usage = c.snd.nxt
	c.snd.lastSent, c.ack.last = now, at(now)
	c.snd.progress = now
	c.rec.stamp = 0
	c.soft = finished
	c.state = Established
	if c.snd.fin {
		c.state = FinWait1
	}
	c.keepAliveStart(now)
	c.startModel(now)
}

// SetCongestion replaces the congestion control (TCP_CONGESTION). cc continues with the current window. The
// connection owns cc.
func (c *Conn) SetCongestion(now Time, cc Congestion) {
	if c.state == Closed || c.state == TimeWait {
		return
	}
	c.cc = cc
	if c.state.synchronized() {
		c.startModel(now)
		if c.rate == nil && c.rec.state != CAOpen {
			// the new window also limits the threshold for the rest of the recovery
			c.window.Threshold = min(c.window.Threshold, c.window.Size)
		}
	}
}

// initialWindow returns the initial window IW (RFC 6928) in bytes.
func (c *Conn) initialWindow() uint32 {
	mss := c.window.MSS
	if c.cfg.InitialWindow > 0 {
		return uint32(c.cfg.InitialWindow) * mss
	}
	return min(DefaultInitialWindow*mss, max(2*mss, 14600))
}

// receiveSynReceived handles the segments that SYN-RECEIVED treats differently from later states. It reports
// whether the normal processing of the segment continues.
func (c *Conn) receiveSynReceived(now Time, seg *Segment) bool {
	syn, ack := seg.Flags.Has(wire.SYN), seg.Flags.Has(wire.ACK)
	if syn && Seq(seg.Seq) == c.rcv.irs && !seg.Flags.Has(wire.RST) {
		if !ack {
			// The peer has repeated its SYN: our SYN-ACK may have been lost.
			c.resendSYN()
			return false
		}
		if c.acksSYN(seg) && !c.passive {
			// The segment is the SYN-ACK of a simultaneous open. Its number is before the window, so RFC 9293 section
			// 3.10.7.4 would answer and drop it, although figure 8 continues to ESTABLISHED.
			c.ackedSYN(now, seg)
			c.todo |= todoAck
			return false
		}
	}
	return true
}

// acksSYN reports whether a segment that arrived in SYN-RECEIVED acknowledges our SYN.
func (c *Conn) acksSYN(seg *Segment) bool {
	ack := Seq(seg.Ack)
	return c.sent.len() > 0 && c.snd.iss.Less(ack) && ack.LessEq(c.snd.nxt)
}

// resendSYN makes Poll retransmit the SYN or SYN-ACK.
func (c *Conn) resendSYN() {
	if c.sent.len() > 0 {
		c.sent.setFlags(c.sent.at(0), sentLost, sentRetrans)
	}
}
