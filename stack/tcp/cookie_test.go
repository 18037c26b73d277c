package tcp

import (
	"testing"

	"loam/wire"
)

// Tests of SYN cookies.

// cookieOpen runs the two steps of a handshake with a SYN cookie: the SYN, and its
// acknowledgment. The parameter later is the time between them in minutes.
func cookieOpen(t *testing.T, syn string, later uint32) (*testConn, wire.TCP) {
	c := newTest(t)
	var synAck wire.TCP
	cfg := c.config(&Config{ECN: ECNAccept})
	testKey.CookieSYNACK(c.now, 60, cfg, testID, 1460, c.parse(syn), &synAck)
	c.iss = synAck.Seq
	ack := c.parse("A 1 ack 1 win 1000")
	if synAck.HasTimestamps {
		ack.HasTimestamps, ack.TSVal, ack.TSEcr = true, 7000, synAck.TSVal
	}
	c.peerTS = synAck.HasTimestamps
	c.Conn = testKey.CookieAccept(c.now, 60+later, cfg, testID, 1460, ack, &c.out, &c.in)
	if c.Conn != nil {
		c.in.t, c.in.conn = t, c.Conn
		c.Receive(c.now, ack)
	}
	return c, synAck
}

func TestCookieWithTimestamps(t *testing.T) {
	c, synAck := cookieOpen(t, "SEC 0 win 50000 <mss 1400, ws 9, sackOK, ts 7000 0>", 1)
	if c.Conn == nil {
		t.Fatal("a good cookie is refused")
	}
	if synAck.Flags != wire.SYN|wire.ACK|wire.ECE || synAck.Ack != testIRS+1 || synAck.TSEcr != 7000 || !synAck.SACKPermitted || synAck.WindowScale != 7 {
		t.Errorf("%+v", synAck)
	}
	c.wantState(Established)
	i := c.Info(c.now)
	if i.SndMSS != 1360-12 || i.SndWScale != 9 || i.RcvWScale != 7 || !i.SACK || !i.Timestamps || !i.ECN || i.SndWnd != 1000<<9 {
		t.Errorf("%+v", i)
	}
	c.write(100)
	out := c.want("PA 1:101 ack 1")
	if Seq(out.TSVal).Less(Seq(synAck.TSVal)) {
		t.Error("timestamps go back behind that of the SYN-ACK")
	}
	c.send("PA 1:101 ack 101")
	c.wantReadable(100)
}

func TestCookieWithoutTimestamps(t *testing.T) {
	c, synAck := cookieOpen(t, "S 0 win 50000 <mss 600, ws 9, sackOK>", 0)
	if c.Conn == nil {
		t.Fatal("a good cookie is refused")
	}
	if synAck.HasWindowScale || synAck.SACKPermitted || synAck.HasTimestamps || synAck.MSS != 1460 {
		t.Errorf("offers what it cannot remember: %+v", synAck)
	}
	if i := c.Info(c.now); i.SndMSS != 536 || i.SACK || i.WindowScaled || i.SndWnd != 1000 {
		t.Errorf("%+v", i)
	}
}

func TestCookieExpires(t *testing.T) {
	for later, good := range []bool{true, true, false, false} {
		if c, _ := cookieOpen(t, "S 0 win 50000 <mss 1400>", uint32(later)); (c.Conn != nil) != good {
			t.Errorf("after %d minutes: accepted %v", later, c.Conn != nil)
		}
	}
	if c, _ := cookieOpen(t, "S 0 win 50000 <mss 1400>", 32); c.Conn != nil {
		t.Error("accepted when the minute looks the same again")
	}
}

func TestForgedCookies(t *testing.T) {
	c := newTest(t)
	accepted := 0
	for i := range uint32(1 << 16) {
		ack := c.parse("A 1 ack 1")
		ack.Ack = i * 0x9e3779b1
		if testKey.CookieAccept(0, 60, nil, testID, 1460, ack, &c.out, &c.in) != nil {
			accepted++
		}
	}
	if accepted > 1 {
		t.Errorf("%d of 65536 guesses are accepted", accepted)
	}
	for _, s := range []string{"SA 1 ack 1", "R 1", "RA 1 ack 1", "P 1"} {
		if testKey.CookieAccept(0, 60, nil, testID, 1460, c.parse(s), &c.out, &c.in) != nil {
			t.Errorf("%s is accepted", s)
		}
	}
}

func TestCookieTellsOptions(t *testing.T) {
	for scale := range uint8(15) {
		for _, now := range []Time{0, 63 * ms, 64 * ms, 1<<32*ms + 5*ms} {
			var c Conn
			c.rcv.scaled, c.snd.scale, c.rcv.sackOK = true, scale, scale%2 == 0
			at := cookieTimestamp(now, &c)
			if at&cookieNoScale != uint32(scale) || (at&cookieSACK != 0) != (scale%2 == 0) {
				t.Errorf("options are lost at %v", now)
			}
			if behind := uint32(now/tick) - at; behind >= 64 {
				t.Errorf("%d ticks behind the clock", behind)
			}
		}
	}
}

func TestCookiesCostNoMemory(t *testing.T) {
	c := newTest(t)
	syn := c.parse("S 0 win 50000 <mss 1400, ws 9, sackOK, ts 7000 0>")
	bad := c.parse("A 1 ack 77")
	var out wire.TCP
	if n := testing.AllocsPerRun(100, func() {
		testKey.CookieSYNACK(c.now, 60, &defaultConfig, testID, 1460, syn, &out)
		testKey.CookieAccept(c.now, 60, &defaultConfig, testID, 1460, bad, nil, nil)
	}); n != 0 {
		t.Errorf("%v allocations for a SYN and a false acknowledgment", n)
	}
}
