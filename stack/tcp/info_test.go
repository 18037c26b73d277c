package tcp

import (
	"testing"
	"time"
)

// TCP_INFO includes the times since data and acknowledgments were last sent and received.
func TestInfoTellsTimes(t *testing.T) {
	c := established(t, nil, "")
	c.advance(3 * time.Second)
	c.send("PA 1:101 ack 1")
	c.advance(2 * time.Second)
	c.want("A 1 ack 101")
	c.write(10)
	c.want("PA 1:11 ack 101")
	c.advance(100 * ms)
	c.send("A 101 ack 11")
	c.advance(50 * ms)
	i := c.Info(c.now)
	for name, x := range map[string]struct{ got, want Time }{
		"data sent":     {i.LastDataSent, 150 * ms},
		"data received": {i.LastDataRecv, 2150 * ms},
		"acknowledged":  {i.LastAckRecv, 50 * ms},
	} {
		if x.got != x.want {
			t.Errorf("last %s %v ago, want %v", name, x.got, x.want)
		}
	}
	c = established(t, nil, "")
	if i = c.Info(c.now); i.LastDataRecv > time.Second || i.LastDataSent > time.Second {
		t.Errorf("a new connection received data %v ago and sent some %v ago", i.LastDataRecv, i.LastDataSent)
	}
}
