package tcp

import (
	"testing"
	"time"

	"loam/stack/tcp/congestion"
)

func TestMaxPacingRate(t *testing.T) {
	c := established(t, nil, "")
	c.SetMaxPacingRate(c.now, 1_000_000) // one segment per millisecond
	c.write(5000)
	c.want("A 1:1001 ack 1")
	for i := 1; i < 5; i++ {
		c.wantIdle()
		c.wantTimer(ms)
		if i < 4 {
			c.want("A " + itoa(1000*i+1) + ":" + itoa(1000*i+1001) + " ack 1")
		} else {
			c.want("PA 4001:5001 ack 1")
		}
	}
	if i := c.Info(c.now); i.MaxPacingRate != 1_000_000 || i.PacingRate != 1_000_000 {
		t.Errorf("%d of %d", i.PacingRate, i.MaxPacingRate)
	}
	c.SetMaxPacingRate(c.now, 0)
	c.write(3000)
	c.advance(ms)
	if n := c.drain(); n != 3 {
		t.Errorf("%d segments at once without a bound, want 3", n)
	}
}

func TestPacingMakesUpForALateTimer(t *testing.T) {
	c := established(t, nil, "")
	c.SetMaxPacingRate(c.now, 1_000_000)
	c.write(9000)
	c.want("A 1:1001 ack 1")
	c.wantIdle()
	c.now += 3 * ms // the timer runs 2 ms late
	c.Tick(c.now)
	if n := c.drain(); n != 3 {
		t.Errorf("%d segments after 3 ms, want 3", n)
	}
	c.now += time.Second // after a long delay, the data made up for is limited to an eighth of a round trip, at least 2 ms
	c.Tick(c.now)
	if n := c.drain(); n > 4 {
		t.Errorf("%d segments after a second", n)
	}
}

func TestAcknowledgmentsAreNotPaced(t *testing.T) {
	c := established(t, nil, "")
	c.SetMaxPacingRate(c.now, 1000)
	c.write(3000)
	c.want("A 1:1001 ack 1")
	c.send("A 1:1001 ack 1")
	c.send("A 1001:2001 ack 1")
	c.want("A 1001 ack 2001")
	c.wantIdle()
}

func TestSimMaxPacingRate(t *testing.T) {
	for _, cc := range []func() Congestion{congestion.NewCubic, congestion.NewBBR} {
		s := duplex(path{rate: 1e9, delay: 5 * ms})
		s.bytesA, s.burst, s.cfgA.Congestion = 4<<20, 64_000, cc
		w := newSim(t, s)
		w.a.SetMaxPacingRate(w.now, 2_500_000)
		w.run(time.Hour)
		if r := w.rate(); r > 20.5e6 || r < 19e6 {
			t.Errorf("%s: %v, want 20 Mb/s", cc().Name(), w)
		}
	}
}

// The owner of a connection may stop calling Poll while there is more to send, for example because its device is
// full. Data that pacing holds back still has a deadline.
func TestPacedDataHasADeadlineWithoutAnotherPoll(t *testing.T) {
	c := established(t, nil, "")
	c.SetMaxPacingRate(c.now, 1_000_000)
	c.write(3000)
	var out Out
	if !c.Conn.Poll(c.now, 0, &out) {
		t.Fatal("there is nothing to send")
	}
	if c.Pending(c.now) {
		t.Error("what pacing holds back is pending")
	}
	if d := c.Deadline(); d != c.now+ms {
		t.Errorf("the deadline is in %v, want a millisecond", d-c.now)
	}
}

// Data whose departure time has come is pending, even if the timer for it has not run.
func TestPacedDataIsPendingAtItsDepartureTime(t *testing.T) {
	c := established(t, nil, "")
	c.SetMaxPacingRate(c.now, 1_000_000)
	c.write(1000)
	c.want("PA 1:1001 ack 1")
	c.now += time.Second
	c.write(1000)
	if !c.Pending(c.now) {
		t.Error("data that may leave is not pending")
	}
	c.want("PA 1001:2001 ack 1")
}

// In slow start, each acknowledgment sets the pacing rate by the round trip time, even while the window is not used
// up. Otherwise one long round trip at the beginning would limit the connection forever.
func TestSlowStartRateFollowsRoundTrip(t *testing.T) {
	c := established(t, nil, "")
	c.window.Rate = 1000 // bytes per second, as if a round trip had taken seconds
	c.write(1000)
	c.want("PA 1:1001 ack 1")
	c.send("A 1 ack 1001")
	if got, want := c.window.Rate, congestion.SlowStartRate(&c.window, c.rtt.srtt); got != want {
		t.Errorf("slow start paces at %d bytes a second, want %d", got, want)
	}
}
