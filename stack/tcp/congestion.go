package tcp

// Congestion decides how large the congestion window is. What is lost, and how
// the window is filled while loss is repaired (prr.go), is the same for all. The
// machine calls it; it keeps the state that it needs and changes only the Window
// that it is given.
type Congestion interface {
	// Name is the name of the algorithm as Linux spells it.
	Name() string
	// Acked is called for each acknowledgment of new data outside of recovery
	// if the window was what limited sending. It grows w.Size.
	Acked(w *Window, a Ack)
	// Reduce is called when loss or ECN shows that the path is congested, with
	// the bytes that were in flight. It returns the new slow start threshold;
	// the machine brings w.Size down to it.
	Reduce(w *Window, now Time, flight uint32) uint32
	// Timeout is called after Reduce if it took a retransmission timeout to
	// notice.
	Timeout(w *Window, now Time)
	// Undo is called when the last Reduce turned out to be for nothing; w has
	// already been restored.
	Undo(w *Window, now Time)
	// Restart is called when sending begins again after nothing was in flight
	// for the time idle.
	Restart(w *Window, now, idle Time)
}

// Window is the state that every congestion control has. All are in bytes.
type Window struct {
	Size      uint32 // cwnd
	Threshold uint32 // ssthresh
	MSS       uint32 // SMSS: payload of a full segment
}

// slowStart reports whether the window is below the threshold.
func (w *Window) slowStart() bool { return w.Size < w.Threshold }

// floor is the least threshold (RFC 5681 equation 4).
func (w *Window) floor(n uint32) uint32 { return max(n, 2*w.MSS) }

// Ack tells a congestion control what an acknowledgment brought.
type Ack struct {
	Now      Time
	Bytes    uint32 // newly delivered
	InFlight uint32 // before this acknowledgment
	Frame    uint32 // payload that leaves in one frame at most; 0: one segment
	RTT      Time   // a new measurement, or 0
	SRTT     Time   // smoothed
	Una, Nxt Seq    // SND.UNA and SND.NXT after it
}
