package tcp

import (
	"net/netip"
	"testing"
	"time"
)

// Tests of connections in the state SYN-SENT.

func TestActiveOpen(t *testing.T) {
	c := dial(t, nil)
	c.wantState(SynSent)
	c.want("S 0 win 65535 <mss 1460, ws 7, sackOK, ts 3600000 0>")
	c.wantIdle()
	c.advance(30 * ms)
	c.peerTS = true
	c.send("SA 0 ack 1 win 60000 <mss 1400, ws 8, sackOK>")
	c.wantState(Established)
	c.want("A 1 ack 1 win 512 <ts 3600030 7030>") // a window of 64 kB in units of 128 bytes
	c.wantIdle()
	i := c.Info(c.now)
	if i.SndMSS != 1388 || i.SndWnd != 60000 || i.RTT != 30*ms || i.SndWScale != 8 || i.RcvWScale != 7 {
		t.Errorf("after the open: %+v", i)
	}
	c.wantCwnd(10) // the initial window (RFC 6928)
}

func TestActiveOpenWithoutOptions(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	c.send("SA 0 ack 1 win 60000")
	c.want("A 1 ack 1 win 65535 <>") // options that the peer did not offer are not used
	if i := c.Info(c.now); i.SndMSS != 536 {
		t.Errorf("MSS is %d without the option, want 536 (RFC 9293 MUST-15)", i.SndMSS)
	}
}

func TestOwnOptionsCanBeLeftOut(t *testing.T) {
	c := dial(t, &Config{NoSACK: true, NoTimestamps: true, NoWindowScale: true})
	c.want("S 0 win 65535 <mss 1460>")
	c.send("SA 0 ack 1 win 60000 <mss 1400, ws 8, sackOK, ts 1 1>")
	c.want("A 1 ack 1 win 65535 <>")
	if i := c.Info(c.now); i.SndWnd != 60000 || i.SndWScale != 0 {
		t.Errorf("the window is scaled: %+v", i)
	}
}

func TestSynSentUnacceptableAck(t *testing.T) {
	for _, ack := range []string{"A 7 ack 0", "A 7 ack 2", "SA 7 ack 2"} {
		c := dial(t, nil)
		c.want("S 0")
		c.send(ack)
		// RFC 9293 section 3.10.7.3: "If SEG.ACK =< ISS or SEG.ACK > SND.NXT, send a reset <SEQ=SEG.ACK>".
		c.want("R " + map[string]string{"0": "0", "2": "2"}[ack[len(ack)-1:]])
		c.wantState(SynSent)
		c.wantCount(DropAck, 1)
		c.wantIdle()
		// An unacceptable ACK with RST is dropped silently.
		c.send("RA 0 ack 7")
		c.wantIdle()
		c.wantState(SynSent)
	}
}

func TestSynSentReset(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	c.send("R 0")
	c.wantState(SynSent) // a reset without an acceptable ACK was dropped
	c.wantCount(DropRST, 1)
	c.send("RA 0 ack 1")
	c.wantEnd(ErrRefused)
}

func TestSynSentNeitherSynNorRst(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	c.send("A 5 ack 1")
	c.wantState(SynSent)
	c.wantIdle()
	c.send("F 5")
	c.wantState(SynSent)
	c.wantCount(DropSYN, 2)
}

func TestSynSentDataInSynAck(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	// RFC 9293 section 3.10.7.3: "If there are other controls or text in the segment, continue processing".
	seg := c.parse("SA 0 ack 1 win 60000 <mss 1000>")
	seg.Payload = pattern(0, 2)
	c.Receive(c.now, seg)
	c.read()
	c.want("A 1 ack 3")
	c.wantReadable(2)
}

func TestSimultaneousOpen(t *testing.T) {
	// RFC 9293 figure 8.
	c := dial(t, nil)
	c.want("S 0")
	c.send("S 0 win 60000 <mss 1000>")
	c.wantState(SynReceived)
	c.want("SA 0 ack 1 <mss 1460>")
	c.send("SA 0 ack 1 win 60000 <mss 1000>")
	c.wantState(Established)
	c.want("A 1 ack 1")
	c.wantIdle()
}

func TestSimultaneousOpenAnsweredByAck(t *testing.T) {
	// The peer may find our SYN-ACK unacceptable and only acknowledge.
	c := dial(t, nil)
	c.want("S 0")
	c.send("S 0 win 60000 <mss 1000>")
	c.want("SA 0 ack 1")
	c.send("A 1 ack 1")
	c.wantState(Established)
	c.wantIdle()
}

func TestSynRetries(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	for _, s := range []int{1, 2, 4, 8, 16, 32, 60} { // timeouts in seconds, limited by MaxRTO
		c.wantTimer(time.Duration(s) * time.Second)
		c.want("S 0 win 65535 <mss 1460, ws 7, sackOK, ts " + itoa(c.now/ms) + " 0>")
		c.wantIdle()
	}
	c.wantTimer(60 * time.Second)
	c.wantEnd(ErrTimeout)
	if d := c.now - time.Hour; d < 3*time.Minute {
		t.Errorf("gave up after %v, before three minutes (MUST-23)", d)
	}
}

func TestSynLost(t *testing.T) {
	c := dial(t, &Config{NoTimestamps: true})
	c.want("S 0")
	c.wantTimer(time.Second)
	c.want("S 0")
	c.send("SA 0 ack 1 win 60000 <mss 1000, sackOK>")
	c.want("A 1 ack 1")
	// RFC 5681: after a lost SYN, the window is one segment. RFC 6298 (5.7): the timeout is three seconds if
	// no round trip was measured.
	c.wantCwnd(1)
	if i := c.Info(c.now); i.RTO != 3*time.Second {
		t.Errorf("RTO is %v, want 3 s", i.RTO)
	}
}

func TestSynOnlySlow(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	c.wantTimer(time.Second)
	c.want("S 0")
	c.send("SA 0 ack 1 win 60000 <mss 1000, ts 1 3600000>")
	// The timestamp shows that the first SYN was answered: nothing was lost.
	c.wantCwnd(10)
}

// A lost SYN-ACK is repeated with the echo of the first SYN, as on Linux. The time since the first SYN is the
// peer's timeout and not a round trip.
func TestRoundTripOfLostSynAck(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	c.wantTimer(time.Second)
	c.want("S 0")
	c.advance(10 * ms)
	c.send("SA 0 ack 1 win 60000 <mss 1000, ts 1 3600000>")
	if i := c.Info(c.now); i.RTT != 0 || i.RTO != 3*time.Second {
		t.Errorf("RTT %v, RTO %v; want none, and 3 s (RFC 6298 section 5.7)", i.RTT, i.RTO)
	}
}

// The echo of the last SYN gives a round trip measurement.
func TestRoundTripOfSecondSyn(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	c.wantTimer(time.Second)
	c.want("S 0")
	c.advance(10 * ms)
	c.send("SA 0 ack 1 win 60000 <mss 1000, ts 1 3601000>")
	if i := c.Info(c.now); i.RTT != 10*ms {
		t.Errorf("RTT is %v, want 10 ms", i.RTT)
	}
}

// If our SYN-ACK is repeated, the peer may answer the second one with the echo of the first. The echo shows which one
// was answered.
func TestRoundTripOfSecondSynAck(t *testing.T) {
	c := accept(t, nil, "S 0 win 50000 <mss 1000, ts 1 0>")
	c.want("SA 0 ack 1")
	c.wantTimer(time.Second)
	c.want("SA 0 ack 1")
	c.advance(10 * ms)
	c.send("A 1 ack 1 <ts 2 3600000>")
	if i := c.Info(c.now); i.RTT != 0 || i.RTO != 3*time.Second {
		t.Errorf("RTT %v, RTO %v; want none, and 3 s", i.RTT, i.RTO)
	}
}

func TestCloseInSynSent(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	c.Close(c.now)
	c.wantEnd(nil)
}

func TestAbortInSynSent(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	c.Abort(c.now)
	c.wantEnd(ErrAborted) // no reset is sent, since the peer may have no connection
}

func TestHalfCloseInSynSent(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	c.write(100)
	c.CloseWrite(c.now)
	c.wantState(SynSent)
	c.send("SA 0 ack 1 win 60000 <mss 1000>")
	c.wantState(FinWait1)
	c.want("FPA 1:101 ack 1")
}

// Tests of connections in the state SYN-RECEIVED.

func TestPassiveOpen(t *testing.T) {
	c := accept(t, nil, "S 0 win 65535 <mss 1400, ws 3, sackOK, ts 7000 0>")
	c.wantState(SynReceived)
	c.want("SA 0 ack 1 win 65535 <mss 1460, ws 7, sackOK, ts 3600000 7000>")
	c.wantIdle()
	c.advance(20 * ms)
	c.send("A 1 ack 1 win 1000")
	c.wantState(Established)
	c.wantIdle()
	if i := c.Info(c.now); i.SndWnd != 8000 || i.RTT != 20*ms || i.SndMSS != 1388 {
		t.Errorf("after the open: %+v", i)
	}
}

func TestPassiveOpenDataInThirdSegment(t *testing.T) {
	c := accept(t, nil, "S 0 win 65535 <mss 1000>")
	c.want("SA 0 ack 1")
	c.send("PA 1:501 ack 1")
	c.wantState(Established)
	c.wantReadable(500)
	c.want("A 1 ack 501") // at the start, acknowledgments are immediate
}

func TestSynReceivedFin(t *testing.T) {
	c := accept(t, nil, "S 0 win 65535 <mss 1000>")
	c.want("SA 0 ack 1")
	c.send("FA 1 ack 1")
	c.wantState(CloseWait)
	c.want("A 1 ack 2")
}

func TestSynReceivedUnacceptableAck(t *testing.T) {
	for _, ack := range []string{"0", "2"} {
		c := accept(t, nil, "S 0 win 65535 <mss 1000>")
		c.want("SA 0 ack 1")
		c.send("A 1 ack " + ack)
		c.want("R " + ack) // RFC 9293 section 3.10.7.4: "If the segment acknowledgment is not acceptable, form a reset"
		c.wantState(SynReceived)
		c.send("A 1 ack " + ack)
		c.send("A 1 ack 1")
		c.wantState(Established)
		c.want("R " + ack) // the handshake is still pending
	}
}

func TestSynReceivedDuplicateSyn(t *testing.T) {
	c := accept(t, nil, "S 0 win 65535 <mss 1000>")
	c.want("SA 0 ack 1")
	c.send("S 0 win 65535 <mss 1000>")
	c.want("SA 0 ack 1") // the repeated SYN shows that our SYN-ACK may be lost
	c.wantIdle()
}

func TestSynReceivedOtherSyn(t *testing.T) {
	c := accept(t, nil, "S 0 win 65535 <mss 1000>")
	c.want("SA 0 ack 1")
	c.send("S 100 win 65535 <mss 1000>")
	c.want("A 1 ack 1") // a challenge ACK (RFC 5961 section 4)
	c.wantState(SynReceived)
	c.send("R 1") // the reset of a peer that has lost the state of its connection
	c.wantEnd(ErrReset)
}

func TestSynReceivedReset(t *testing.T) {
	c := accept(t, nil, "S 0 win 65535 <mss 1000>")
	c.want("SA 0 ack 1")
	c.send("R 2")
	c.wantState(SynReceived) // RFC 5961: only a reset with the exact sequence number is accepted
	c.want("A 1 ack 1")
	c.send("R 1")
	c.wantEnd(ErrReset)
}

func TestSynReceivedResetOfActiveOpen(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	c.send("S 0 win 60000 <mss 1000>")
	c.want("SA 0 ack 1")
	c.send("R 1")
	c.wantEnd(ErrRefused)
}

func TestSynAckRetries(t *testing.T) {
	c := accept(t, &Config{SynRetries: 2}, "S 0 win 65535 <mss 1000>")
	c.want("SA 0 ack 1")
	c.wantTimer(time.Second)
	c.want("SA 0 ack 1")
	c.wantTimer(2 * time.Second)
	c.want("SA 0 ack 1")
	c.wantTimer(4 * time.Second)
	c.wantEnd(ErrTimeout)
}

func TestSynAckLost(t *testing.T) {
	c := accept(t, nil, "S 0 win 65535 <mss 1000>")
	c.want("SA 0 ack 1")
	c.wantTimer(time.Second)
	c.want("SA 0 ack 1")
	c.send("A 1 ack 1")
	c.wantCwnd(1)
}

func TestCloseInSynReceived(t *testing.T) {
	c := accept(t, nil, "S 0 win 65535 <mss 1000>")
	c.want("SA 0 ack 1")
	c.Close(c.now)
	c.wantIdle() // the FIN is queued until ESTABLISHED
	c.send("A 1 ack 1")
	c.wantState(FinWait1)
	c.want("FA 1 ack 1")
}

func TestAbortInSynReceived(t *testing.T) {
	c := accept(t, nil, "S 0 win 65535 <mss 1000>")
	c.want("SA 0 ack 1")
	c.Abort(c.now)
	c.want("RA 1 ack 1")
	c.wantEnd(ErrAborted)
}

func TestSynAckInEstablished(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	c.send("SA 0 ack 1 win 60000 <mss 1000, sackOK>")
	c.want("A 1 ack 1")
	c.send("SA 0 ack 1 win 60000 <mss 1000, sackOK>") // our ACK was lost
	c.want("A 1 ack 1")
	c.wantIdle()
}

func TestOpenAcrossSequenceWrap(t *testing.T) {
	c := acceptAt(t, nil, "S 0 win 65535 <mss 1000, sackOK>", 0xffffff00, 0xfffffff0)
	c.want("SA 0 ack 1")
	c.send("A 1 ack 1")
	c.send("A 1:1001 ack 1") // the numbers wrap within this segment
	c.want("A 1 ack 1001")
	c.wantReadable(1000)
	c.write(1500)
	c.want("A 1:1001 ack 1001")
	c.want("PA 1001:1501 ack 1001")
	c.send("A 1001 ack 1501")
	if c.out.released != 1500 {
		t.Errorf("%d bytes released, want 1500", c.out.released)
	}
}

func TestOpenIPv6WithDefaults(t *testing.T) {
	id := ID{netip.MustParseAddrPort("[2001:db8::1]:80"), netip.MustParseAddrPort("[2001:db8::2]:40000")}
	c := newTest(t)
	c.Conn = Dial(c.now, nil, id, c.iss, 0, 1440, &c.out, &c.in)
	c.in.t, c.in.conn = t, c.Conn
	if c.ID() != id {
		t.Error("another ID")
	}
	c.want("S 0")
	c.send("SA 0 ack 1 win 60000")
	c.want("A 1 ack 1")
	if i := c.Info(c.now); i.SndMSS != 1220 {
		t.Errorf("MSS is %d without the option, want 1220 (RFC 9293 MUST-15)", i.SndMSS)
	}
}

func TestStreamLongerThan4GiB(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.snd.off += 1 << 33
	c.out.end, c.snd.end, c.out.released = 1<<33, 1<<33, 1<<33
	c.rcv.off += 1 << 33
	c.in.committed, c.in.consumed, c.in.discard = 1<<33, 1<<33, true
	c.write(3000)
	if out := c.poll(); out.Off != 1<<33 {
		t.Errorf("offset is %d", out.Off)
	}
	c.drain()
	c.send("A 1 ack 2001")
	if c.out.released != 1<<33+2000 {
		t.Errorf("%d released", c.out.released)
	}
	c.send("A 1001:2001 ack 2001")
	c.send("A 1:1001 ack 2001")
	c.wantReadable(1<<33 + 2000)
}

// If the next hop does not answer, a connection attempt ends at once. An ICMP unreachable error does not end
// it.
func TestSynSentNoNeighbour(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	c.ICMP(c.now, ICMPUnreachable, testISS, 0)
	c.wantState(SynSent)
	c.ICMP(c.now, ICMPNoNeighbour, testISS, 0)
	c.wantState(Closed)
	if c.Err() != ErrUnreachable {
		t.Errorf("the attempt ended with %v, want %v", c.Err(), ErrUnreachable)
	}
}
