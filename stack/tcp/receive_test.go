package tcp

import (
	"testing"
)

// SEGMENT ARRIVES: acceptance, RST, SYN, ACK (RFC 9293 section 3.10.7.4).

func TestUnacceptableSegmentIsAcknowledged(t *testing.T) {
	c := established(t, nil, "")
	c.send("A 1:1001 ack 1")
	c.send("A 1001:2001 ack 1")
	c.want("A 1 ack 2001")
	for _, s := range []string{
		"PA 1:1001 ack 1",          // only old data
		"PA 70000:70100 ack 1",     // beyond the receive window
		"FA 1 ack 1",               // an old FIN
		"PA 1:2001 ack 1",          // the segment ends at the beginning of the window
		"A 2000 ack 1",             // no data; the number is before the receive window
		"A 70000 ack 1",            // no data; the number is after the receive window
		"PA -30000:-29000 ack 1",   // the segment is long before the window
		"PA 2000000:2000100 ack 1", // the segment is far beyond the window
	} {
		c.send(s)
		c.want("A 1 ack 2001 <>")
		c.wantIdle()
		c.wantState(Established)
		c.wantReadable(2000)
	}
	c.wantCount(DropSequence, 8)
}

func TestUnacceptableResetIsDropped(t *testing.T) {
	c := established(t, nil, "")
	c.send("R 100000")
	c.send("R 0")
	c.wantIdle()
	c.wantState(Established)
	c.wantCount(DropSequence, 2)
}

func TestSegmentIsTrimmedToWindow(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 4096, MaxReceiveBuffer: 4096}, "")
	c.reads = false
	c.send("A 1:1001 ack 1")
	c.send("A 501:1501 ack 1") // the first 500 bytes have arrived before
	c.wantReadable(1500)
	c.send("A 1501:4501 ack 1") // the end is beyond the window
	c.wantReadable(4096)
	c.want("A 1 ack 4097 win 0")
	c.wantIdle()
}

func TestClosedWindowLetsAckAndResetThrough(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 4096, MaxReceiveBuffer: 4096}, "")
	c.reads = false
	c.send("A 1:4097 ack 1")
	c.want("A 1 ack 4097 win 0")
	c.write(500)
	c.want("PA 1:501 ack 4097")
	// RFC 9293 section 3.10.7.4: "special allowance should be made to accept valid ACKs, URGs, and RSTs".
	c.send("A 4097:4098 ack 501")
	if c.out.released != 500 {
		t.Fatal("an ACK was not looked at because the window is closed")
	}
	c.want("A 501 ack 4097 win 0")
	c.wantReadable(4096)
	c.send("R 4097")
	c.wantEnd(ErrReset)
}

func TestAckAtRightEdgeCounts(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 4096, MaxReceiveBuffer: 4096}, "")
	c.write(500)
	c.want("PA 1:501 ack 1")
	c.send("A 1001:4097 ack 1") // fills the window, after a gap
	c.want("A 501 ack 1")
	c.send("A 4097 ack 501") // the number at the right edge, the only one that the peer can use
	if c.out.released != 500 {
		t.Fatal("ACK at the right edge was dropped")
	}
}

func TestReset(t *testing.T) {
	for _, state := range []State{Established, FinWait1, FinWait2, CloseWait, Closing, LastAck} {
		c := inState(t, state)
		c.send("R " + itoa(c.rcv.nxt-Seq(c.irs)))
		switch state {
		case Closing, LastAck:
			c.wantEnd(nil) // no error, since all data had been delivered before
		case CloseWait:
			c.wantEnd(ErrPipe)
		default:
			c.wantEnd(ErrReset)
		}
	}
}

func TestResetWithDataInFlightInLastAck(t *testing.T) {
	c := inState(t, CloseWait)
	c.write(100)
	c.CloseWrite(c.now)
	c.want("FPA 1:101 ack 2")
	c.send("R 2")
	c.wantEnd(ErrReset)
}
