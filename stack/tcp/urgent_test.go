package tcp

import "testing"

// The urgent mechanism (RFC 9293 section 3.8.5).

func TestUrgentPointer(t *testing.T) {
	c := established(t, &Config{InitialWindow: 4}, "")
	c.burst = 64_000
	c.SetUrgent(2500)
	c.write(6000)
	for _, want := range []struct {
		text   string
		urgent uint16
	}{
		{"AU 1:1001 ack 1", 2500}, // RFC 6093: the urgent pointer points to the octet after the urgent data
		{"AU 1001:2001 ack 1", 1500},
		{"AU 2001:3001 ack 1", 500},
		{"A 3001:4001 ack 1", 0},
	} {
		if out := c.want(want.text); out.Urgent != want.urgent {
			t.Errorf("%s points to %d, want %d", want.text, out.Urgent, want.urgent)
		}
	}
	c.send("A 1 ack 1001")
	c.SetUrgent(2000) // a smaller urgent mark than the current one has no effect
	c.drain()
	c.advance(c.timers[timerRTO] - c.now)
	if out := c.want("AU 1001:2001 ack 1"); out.Urgent != 1500 {
		t.Errorf("sent again it points to %d", out.Urgent)
	}
	c.send("A 1 ack 2501")
	c.write(10)
	for {
		out := c.poll()
		if out == nil {
			break
		}
		if out.Urgent != 0 {
			t.Errorf("%s after the urgent data was acknowledged", c.format(out))
		}
	}
}

func TestUrgentDataIsFarAhead(t *testing.T) {
	c := established(t, &Config{InitialWindow: 100}, ", ws 7")
	c.snd.wnd = 1 << 20
	c.write(80_000)
	c.SetUrgent(80_000)
	if out := c.want("AU 1:1001 ack 1"); out.Urgent != 65535 {
		t.Errorf("a pointer of 16 bits is %d, want all that it holds", out.Urgent)
	}
}

func TestUrgentDataDoesNotWait(t *testing.T) {
	c := established(t, nil, "")
	c.write(10)
	c.want("PA 1:11 ack 1")
	c.write(10)
	c.wantIdle() // Nagle holds the last data back
	c.SetUrgent(30)
	c.write(10)
	if out := c.want("PAU 11:31 ack 1"); out.Urgent != 20 {
		t.Errorf("points to %d", out.Urgent)
	}
}

func TestUrgentDataBehindAClosedWindow(t *testing.T) {
	// RFC 9293: "even if the window is zero". Probes of the window carry the urgent pointer.
	c := established(t, nil, "")
	c.send("A 1 ack 1 win 0")
	c.write(100)
	c.SetUrgent(100)
	c.wantIdle()
	c.advance(c.timers[timerPersist] - c.now)
	if out := c.poll(); out == nil || out.Urgent == 0 {
		t.Errorf("the probe is %+v", out)
	}
}

func TestUrgentDataArrives(t *testing.T) {
	c := established(t, nil, "")
	if _, ok := c.UrgentEnd(); ok {
		t.Error("urgent data before there is any")
	}
	wantEnd := func(sentence string, want uint64) {
		t.Helper()
		if end, ok := c.UrgentEnd(); !ok || end != want {
			t.Errorf("%s: it ends at %d (%v), want %d", sentence, end, ok, want)
		}
	}
	c.send("UA 1:101 ack 1 urg 250")
	wantEnd("told ahead of the data", 250)
	c.wantReadable(100)
	c.send("UA 101:201 ack 1 urg 100")
	wantEnd("an earlier mark", 250)
	c.send("UPA 201:301 ack 1 urg 60")
	wantEnd("a later mark", 260)
	c.wantReadable(300) // the urgent data is at its place in the stream
	c.send("UPA 201:301 ack 1 urg 100")
	wantEnd("what came before", 260)
	c.send("UA 401:501 ack 1 urg 100")
	wantEnd("behind a gap", 500)
}

// The end of the urgent data is an offset in the stream. A FIN, whose number is not an offset, and another 2 GiB of
// data, after which a sequence number lies ahead again, do not change it.
func TestUrgentEndStays(t *testing.T) {
	for after, event := range map[string]func(*testConn){
		"a FIN": func(c *testConn) { c.send("FA 101 ack 1") },
		"2 GiB": func(c *testConn) { c.rcv.nxt, c.rcv.off = c.rcv.nxt.Add(1<<31+1), c.rcv.off+(1<<31+1) },
	} {
		c := established(t, nil, "")
		c.send("UPA 1:101 ack 1 urg 100")
		event(c)
		if end, ok := c.UrgentEnd(); !ok || end != 100 {
			t.Errorf("after %s: the urgent data ends at %d (%v), want 100", after, end, ok)
		}
	}
}
