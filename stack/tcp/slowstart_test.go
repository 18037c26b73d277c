package tcp

import (
	"testing"
	"time"
)

// A peer processes all segments that have arrived and sends one acknowledgment for them. Slow start must still double
// the window in each round trip (RFC 5681 section 3.1, RFC 3465 section 2.2), because a sender that paces has no limit
// L (RFC 9406 section 4.2).
func TestSimSlowStartDoublesOverLongPath(t *testing.T) {
	for _, rtt := range []time.Duration{20 * ms, 40 * ms, 200 * ms} {
		for _, turn := range []time.Duration{0, 2 * ms, 5 * ms} {
			s := duplex(path{rate: 10e9, delay: rtt / 2})
			s.bytesA, s.buffer, s.burst, s.turn, s.whole = 32<<20, 64<<20, 64_000, turn, true
			s.cfgB.MaxReceiveBuffer, s.cfgB.ReceiveBuffer = 64<<20, 64<<20
			w := newSim(t, s)
			sizes := w.rounds(10)
			// Nine doublings; the round trip in which pacing begins does not count.
			if last := sizes[len(sizes)-1]; last < sizes[0]<<8*9/10 {
				t.Errorf("%v, turns of %v: window at the end of each round trip: %d", rtt, turn, sizes)
			}
		}
	}
}

// Paced data leaves over the whole round trip and not as a burst after one acknowledgment of a window. A
// queue of half the window is enough.
func TestSimSlowStartDoesNotBurst(t *testing.T) {
	s := duplex(path{rate: 1e9, delay: 50 * ms, queue: 3 << 20})
	s.bytesA, s.buffer, s.burst, s.turn = 64<<20, 64<<20, 64_000, 5*ms
	s.cfgB.MaxReceiveBuffer, s.cfgB.ReceiveBuffer = 64<<20, 64<<20
	w := newSim(t, s)
	for w.a.Conn.window.Size < 6<<20 && len(w.events) > 0 {
		w.until(w.events[0].at)
	}
	if n := w.a.Info(w.now).TotalRetrans; n > 0 {
		t.Errorf("%d segments lost before the window reached half of what the path holds", n)
	}
}

// rounds runs n round trips, each from sending data to its acknowledgment. It returns the window of a at the
// end of each.
func (w *sim) rounds(n int) (sizes []uint32) {
	var mark Seq
	for len(sizes) < n && len(w.events) > 0 {
		w.until(w.events[0].at)
		if c := w.a.Conn; c.state >= Established && mark.LessEq(c.snd.una) && c.sent.len() > 0 {
			mark = c.snd.nxt
			sizes = append(sizes, c.window.Size)
		}
	}
	return sizes
}
