package congestion

import "time"

// Slow start (RFC 5681 section 3.1) that ends before it overflows the path: HyStart++ (RFC 9406). If the
// round trip time of a round exceeds the previous round's, a queue is building up. Growth then slows to
// a quarter for five rounds, and congestion avoidance begins. If the round trip time falls again, the
// increase was only jitter, and slow start continues.
//
// Each acknowledgment grows the window by the amount acknowledged, up to the limit L. The limit prevents
// bursts from a sender that does not pace (section 4.2). A large frame is already a burst when it leaves, and
// a peer that receives large frames sends one acknowledgment for each. With large frames the limit is
// therefore one frame; otherwise slow start would be linear.
//
// A peer that processes received frames in batches acknowledges many frames with one acknowledgment, and slow
// start would become linear after all. Once an acknowledgment exceeds the limit, slow start paces and has no
// limit (section 4.2: L is infinity then). It paces at two windows per round trip, as fast as the window
// grows. On very short paths it does not pace, because a round trip has no room for it and the path holds
// only a few frames.
//
// Only the first slow start is monitored, as section 4.3 recommends. Later ones have a threshold.

const (
	hyMinThresh = 4 * time.Millisecond  // MIN_RTT_THRESH of RFC 9406
	hyMaxThresh = 16 * time.Millisecond // MAX_RTT_THRESH of RFC 9406
	hyDivisor   = 8                     // MIN_RTT_DIVISOR of RFC 9406
	hySamples   = 8                     // N_RTT_SAMPLE of RFC 9406
	cssDivisor  = 4                     // CSS_GROWTH_DIVISOR of RFC 9406
	cssRounds   = 5                     // CSS_ROUNDS of RFC 9406
	hyLimit     = 8                     // L of RFC 9406 in segments, for senders that do not pace

	// pacedFrom is the round trip time from which on slow start may pace: four quanta (Quantum).
	pacedFrom = 4 * time.Millisecond
)

// hystart is the state of slow start for one connection.
type hystart struct {
	last, now Time // minimum round trip time of the previous round and of the current round; 0: none
	base      Time // minimum round trip time when growth was slowed down; 0: growth was not slowed down
	end       Seq  // SND.NXT when the round began
	samples   uint8
	rounds    uint8 // number of rounds with slowed growth
	running   bool
	left      bool // the first slow start is over
	paced     bool // an acknowledgment has exceeded the limit, so slow start paces
}

// acked grows the window in slow start. It returns the bytes left for congestion avoidance to count.
func (h *hystart) acked(w *Window, a Ack) uint32 {
	w.Rate = 0
	if !w.SlowStart() {
		return a.Bytes
	}
	first := w.Threshold == NoThreshold && !h.left
	if first {
		h.watch(w, a)
	}
	if !w.SlowStart() {
		return 0
	}
	n, limit := a.Bytes, max(hyLimit*w.MSS, a.Frame)
	if n > limit && a.SRTT >= pacedFrom {
		h.paced = true
	}
	if !h.paced {
		n = min(n, limit)
	}
	if first && h.base > 0 {
		n /= cssDivisor
	}
	rest := uint32(0)
	if n > w.Threshold-w.Size {
		rest = n - (w.Threshold - w.Size)
		n -= rest
	}
	w.Size += n
	if h.paced {
		w.Rate = SlowStartRate(w, a.SRTT)
	}
	return rest
}

// SlowStartRate returns the rate in bytes per second at which slow start paces: two windows per round trip. It returns 0 if
// slow start does not pace.
func SlowStartRate(w *Window, srtt Time) uint64 {
	if !w.SlowStart() || srtt < pacedFrom {
		return 0
	}
	return 2 * Rate(uint64(w.Size), srtt)
}

// watch applies RFC 9406 section 4.2 to one acknowledgment.
func (h *hystart) watch(w *Window, a Ack) {
	if !h.running || h.end.LessEq(a.Una) {
		h.nextRound(w, a)
	}
	if a.RTT == 0 {
		return
	}
	if h.now == 0 || a.RTT < h.now {
		h.now = a.RTT
	}
	if h.samples < hySamples {
		h.samples++
	}
	if h.samples < hySamples || h.last == 0 {
		return
	}
	if h.base > 0 {
		if h.now < h.base { // the round trip time has fallen again, so the increase was only jitter
			h.base = 0
		}
		return
	}
	if h.now >= h.last+min(max(hyMinThresh, h.last/hyDivisor), hyMaxThresh) {
		h.base, h.rounds = h.now, 0
	}
}

// nextRound begins a round, which lasts until the data sent now is acknowledged.
func (h *hystart) nextRound(w *Window, a Ack) {
	if h.running && h.base > 0 {
		if h.rounds++; h.rounds >= cssRounds {
			w.Threshold = w.Size
			h.leave()
		}
	}
	h.running = true
	h.end = a.Nxt
	h.last, h.now, h.samples = h.now, 0, 0
}

// leave ends the monitoring when the first slow start is over.
func (h *hystart) leave() { h.left = true }

// undo resumes the monitoring if the first slow start was ended unnecessarily.
func (h *hystart) undo(w *Window) {
	if w.Threshold == NoThreshold {
		*h = hystart{}
	}
}

// restart discards the measurements after an idle period.
func (h *hystart) restart() { h.running, h.base, h.last, h.now = false, 0, 0, 0 }
