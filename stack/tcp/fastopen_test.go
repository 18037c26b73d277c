package tcp

import (
	"testing"
	"time"

	"loam/wire"
)

// Tests of TCP Fast Open (RFC 7413).

func fastCookie(t *testing.T, text string) wire.FastOpenCookie {
	t.Helper()
	c, ok := wire.NewFastOpenCookie([]byte(text))
	if !ok {
		t.Fatalf("%q is no cookie", text)
	}
	return c
}

// dialFast begins an active open with a cookie and n bytes of data.
func dialFast(t *testing.T, n int) *testConn {
	c := dial(t, nil)
	c.peerTS = true
	c.SetFastOpen(fastCookie(t, "12345678"), 1460)
	c.write(n)
	out := c.want("S 0:" + itoa(min(n, 1460-32)) + "")
	if want := fastCookie(t, "12345678"); out.FastOpen != want || out.Off != 0 {
		t.Fatalf("the SYN has %+v at the offset %d", out.FastOpen, out.Off)
	}
	c.wantIdle()
	c.advance(10 * ms)
	return c
}

const fastSYNACK = " win 60000 <mss 1460, ws 8, sackOK>"

// Section 4.2.1: the SYN-ACK acknowledges the data, which is then not sent again.
func TestFastOpenDataAcknowledged(t *testing.T) {
	c := dialFast(t, 100)
	c.send("SA 0 ack 101" + fastSYNACK)
	c.wantState(Established)
	c.want("A 101 ack 1")
	c.wantIdle()
	if f := c.FastOpen(); !f.SynData || !f.Sent || c.out.released != 100 || !c.Info(c.now).SynData {
		t.Errorf("%+v, released %d", f, c.out.released)
	}
	c.write(50)
	c.want("PA 101:151 ack 1")
	c.send("PA 1:11 ack 151")
	c.wantReadable(10)
}

// Section 4.2.1: the SYN-ACK acknowledges only the SYN, and the data is sent again.
func TestFastOpenDataRefused(t *testing.T) {
	c := dialFast(t, 100)
	c.send("SA 0 ack 1" + fastSYNACK)
	c.wantState(Established)
	c.want("PA 1:101 ack 1")
	c.wantIdle()
	if f := c.FastOpen(); f.SynData || !f.Sent {
		t.Errorf("%+v", f)
	}
	c.wantCwnd(10)
	c.send("A 1 ack 101")
	c.wantIdle()
}

// A part of the data is acknowledged. The rest is sent again.
func TestFastOpenPartAcknowledged(t *testing.T) {
	c := dialFast(t, 2000)
	c.send("SA 0 ack 1001" + fastSYNACK)
	c.want("A 1001:1429 ack 1")
	c.want("PA 1429:2001 ack 1")
	c.send("A 1 ack 2001")
	c.wantIdle()
}

// A path drops SYNs with data or with the option. Retransmitted SYNs have neither, as on Linux.
func TestFastOpenBlackHole(t *testing.T) {
	c := dialFast(t, 100)
	c.wantTimer(time.Second - 10*ms)
	if out := c.want("S 0"); out.FastOpen.Present() {
		t.Error("the retransmitted SYN has the option")
	}
	c.advance(10 * ms)
	c.send("SA 0 ack 1" + fastSYNACK)
	c.want("PA 1:101 ack 1")
	c.send("A 1 ack 101")
	c.wantIdle()
}

// A client without a cookie requests one, and sends the data after the handshake.
func TestFastOpenRequest(t *testing.T) {
	c := dial(t, nil)
	c.SetFastOpen(fastCookie(t, ""), 0)
	c.write(100)
	if out := c.want("S 0"); !out.FastOpen.Present() || out.FastOpen.Len() != 0 {
		t.Errorf("the SYN has %+v", out.FastOpen)
	}
	seg := c.parse("SA 0 ack 1 win 60000 <mss 1460>")
	seg.FastOpen = fastCookie(t, "abcdefgh")
	c.Receive(c.now, seg)
	if f := c.FastOpen(); f.Cookie != seg.FastOpen {
		t.Errorf("the connection has %+v", f)
	}
	c.want("PA 1:101 ack 1")
}

// acceptFast opens a connection by a SYN with a valid cookie and 100 bytes.
func acceptFast(t *testing.T) *testConn {
	c := newTest(t)
	syn := c.parse("S 0:100 win 50000 <mss 1000>")
	copy(syn.Payload, pattern(0, 100))
	c.Conn = Accept(c.now, c.config(nil), testID, c.iss, 0, 1460, syn, &c.out, &c.in)
	c.in.t, c.in.conn = t, c.Conn
	c.OpenFast(c.now, syn)
	c.read()
	c.wantReadable(100)
	if !c.Usable() || !c.FastOpen().SynData {
		t.Error("the connection is not usable")
	}
	c.want("SA 0 ack 101")
	c.wantIdle()
	return c
}

// Section 4.2.2: the server may send data before the handshake is complete.
func TestFastOpenServer(t *testing.T) {
	c := acceptFast(t)
	c.write(2500)
	c.want("A 1:1001 ack 101")
	c.want("A 1001:2001 ack 101")
	c.want("PA 2001:2501 ack 101")
	c.wantState(SynReceived)
	c.send("A 101 ack 2501")
	c.wantState(Established)
	c.wantIdle()
	if c.out.released != 2500 {
		t.Errorf("released %d", c.out.released)
	}
	c.send("PA 101:111 ack 2501")
	c.wantReadable(110)
}

// The acknowledgment of the SYN-ACK covers no data: data in flight has a retransmission timer.
func TestFastOpenServerLosesData(t *testing.T) {
	c := acceptFast(t)
	c.write(100)
	c.want("PA 1:101 ack 101")
	c.send("A 101 ack 1")
	c.wantState(Established)
	c.wantIdle()
	c.advance(2 * time.Second)
	c.want("PA 1:101 ack 101")
}

// A lost SYN-ACK is sent again without the data that follows it.
func TestFastOpenServerLosesSYNACK(t *testing.T) {
	c := acceptFast(t)
	c.write(100)
	c.want("PA 1:101 ack 101")
	c.wantTimer(time.Second)
	c.want("SA 0 ack 101")
	c.wantIdle()
	c.send("S 0 win 50000 <mss 1000>") // the client repeats its SYN, without data
	c.want("SA 0 ack 101")
	c.send("A 101 ack 101")
	c.wantState(Established)
	c.wantIdle()
}

// The program ends its stream before the handshake is complete.
func TestFastOpenServerEndsEarly(t *testing.T) {
	c := acceptFast(t)
	c.write(10)
	c.CloseWrite(c.now)
	c.want("FPA 1:11 ack 101")
	c.wantIdle()
	c.send("A 101 ack 12")
	c.wantState(FinWait2)
	c.send("FA 101 ack 12")
	c.want("A 12 ack 102")
	c.wantState(TimeWait)
}

func TestFastOpenServerIsReset(t *testing.T) {
	c := acceptFast(t)
	c.send("R 101")
	c.wantEnd(ErrReset)
}
