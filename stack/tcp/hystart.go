package tcp

import "time"

// Slow start (RFC 5681 section 3.1) that ends before it overflows the path:
// HyStart++ (RFC 9406). When the round trip time of a round exceeds that of the
// round before, the queue has begun to fill: growth slows to a quarter for five
// rounds, and then congestion avoidance begins; unless the round trip time falls
// again, which shows that it was only jitter.
//
// An acknowledgment lets the window grow by what it acknowledges, up to the limit L,
// which keeps a sender that does not pace from bursts (section 4.2). What leaves in
// one frame is a burst already, and what arrives in one gets one acknowledgment: with
// large frames the limit is a frame, or slow start would be linear.
//
// It watches the first slow start only, as section 4.3 recommends: later ones
// have a threshold.

const (
	hyMinThresh = 4 * time.Millisecond  // MIN_RTT_THRESH
	hyMaxThresh = 16 * time.Millisecond // MAX_RTT_THRESH
	hyDivisor   = 8                     // MIN_RTT_DIVISOR
	hySamples   = 8                     // N_RTT_SAMPLE
	cssDivisor  = 4                     // CSS_GROWTH_DIVISOR
	cssRounds   = 5                     // CSS_ROUNDS
	hyLimit     = 8                     // L, for senders that do not pace
)

type hystart struct {
	last, now Time // least RTT of the round before and of this one; 0: none
	base      Time // least RTT when growth slowed; 0: not slowed
	end       Seq  // SND.NXT when the round began
	samples   uint8
	rounds    uint8 // of slowed growth
	running   bool
	left      bool // the first slow start is over
}

// acked grows the window in slow start. It returns the bytes that are left for
// congestion avoidance to count.
func (h *hystart) acked(w *Window, a Ack) uint32 {
	if !w.slowStart() {
		return a.Bytes
	}
	first := w.Threshold == noThreshold && !h.left
	if first {
		h.watch(w, a)
	}
	if !w.slowStart() {
		return 0
	}
	n := min(a.Bytes, max(hyLimit*w.MSS, a.Frame))
	if first && h.base > 0 {
		n /= cssDivisor
	}
	rest := uint32(0)
	if n > w.Threshold-w.Size {
		rest = n - (w.Threshold - w.Size)
		n -= rest
	}
	w.Size += n
	return rest
}

// watch is section 4.2 for one acknowledgment.
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
		if h.now < h.base { // it was jitter
			h.base = 0
		}
		return
	}
	if h.now >= h.last+min(max(hyMinThresh, h.last/hyDivisor), hyMaxThresh) {
		h.base, h.rounds = h.now, 0
	}
}

// nextRound begins a round, which lasts until what is sent now is acknowledged.
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

// leave ends the watch: the threshold is known.
func (h *hystart) leave() { h.left = true }

// undo goes back to the watch if the first slow start was left for nothing.
func (h *hystart) undo(w *Window) {
	if w.Threshold == noThreshold {
		*h = hystart{}
	}
}

// restart forgets rounds that an idle time has ended.
func (h *hystart) restart() { h.running, h.base, h.last, h.now = false, 0, 0, 0 }
