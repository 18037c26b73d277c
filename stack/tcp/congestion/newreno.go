package congestion

// newReno is the congestion control of RFC 5681 with appropriate byte counting (RFC 3465) and HyStart++. The
// NewReno part, RFC 6582, is in package tcp.
type newReno struct {
	start hystart
	acked uint32 // bytes acknowledged since the window last grew
}

// NewReno returns the congestion control of RFC 5681.
func NewReno() Control { return &newReno{} }

func (r *newReno) Name() string { return "reno" }

// Acked grows the window by one segment per window of acknowledged data (RFC 5681 section 3.1).
func (r *newReno) Acked(w *Window, a Ack) {
	n := r.start.acked(w, a)
	if n == 0 {
		return
	}
	if r.acked += n; r.acked >= w.Size {
		r.acked -= w.Size
		w.Size += w.MSS
	}
}

// Reduce halves the data in flight (RFC 5681 equation 4).
func (r *newReno) Reduce(w *Window, now Time, flight uint32) uint32 {
	r.start.leave()
	r.acked = 0
	return w.floor(min(flight, w.Size) / 2)
}

func (r *newReno) Timeout(w *Window, now Time) {}

func (r *newReno) Undo(w *Window, now Time) { r.start.undo(w) }

func (r *newReno) Restart(w *Window, now, idle Time) { r.start.restart() }
