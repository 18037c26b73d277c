package tcp

import (
	"testing"
	"time"
)

// Keep-alive (RFC 9293 section 3.8.4).

func TestKeepAliveIsOffByDefault(t *testing.T) {
	c := established(t, nil, "")
	c.wantSilence(30 * 24 * time.Hour)
}

func TestKeepAlive(t *testing.T) {
	c := established(t, nil, "")
	c.SetKeepAlive(c.now, 10*time.Second, time.Second, 3)
	c.wantTimer(10 * time.Second)
	c.want("A 0 ack 1")
	c.send("A 1 ack 1") // the answer to a probe: the peer is alive
	c.wantIdle()
	c.advance(4 * time.Second)
	c.send("PA 1:11 ack 1")
	c.advance(40 * ms)
	c.want("A 1 ack 11")
	c.wantTimer(10*time.Second - 40*ms) // the idle time counts from the last received segment
	c.want("A 0 ack 11")
	c.wantTimer(time.Second)
	c.want("A 0 ack 11")
	c.wantTimer(time.Second)
	c.want("A 0 ack 11")
	c.wantTimer(time.Second)
	c.want("RA 1 ack 11")
	c.wantEnd(ErrTimeout)
}

func TestKeepAliveWaitsForDataInFlight(t *testing.T) {
	c := established(t, nil, "")
	c.SetKeepAlive(c.now, 100*ms, 100*ms, 1)
	c.write(10)
	c.want("PA 1:11 ack 1")
	c.wantTimer(210 * ms) // the retransmission timer expires; no probe is sent while data is in flight
	c.want("PA 1:11 ack 1")
	c.send("A 1 ack 11")
	c.wantTimer(100 * ms)
	c.want("A 10 ack 1")
	c.SetKeepAlive(c.now, 0, 0, 0)
	c.wantSilence(time.Hour)
}

func TestKeepAliveFromConfig(t *testing.T) {
	c := established(t, &Config{KeepAlive: time.Minute, KeepAliveInterval: time.Second, KeepAliveCount: 1}, "")
	c.wantTimer(time.Minute)
	c.want("A 0 ack 1")
	c.wantTimer(time.Second)
	c.want("RA 1 ack 1")
	c.wantEnd(ErrTimeout)
}
