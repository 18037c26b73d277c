package tcp

// Congestion decides how large the congestion window is; what is lost, and how
// the window is filled while loss is repaired (proportional rate reduction), is
// the same for all of them. The machine calls it; it keeps the state that it
// needs and changes only the Window it is given.
type Congestion interface {
	// Name is the name of the algorithm as Linux spells it.
	Name() string
	// Acked is called for each acknowledgment of new data outside of recovery
	// while the window was what limited sending. It grows w.Size.
	Acked(w *Window, a Ack)
	// Reduce is called when loss or ECN says that the path is congested, and
	// returns the new slow start threshold in bytes. The machine brings w.Size
	// down to it.
	Reduce(w *Window, now Time) uint32
	// Timeout is called after Reduce if it took a retransmission timeout.
	Timeout(w *Window, now Time)
	// Undo is called when the last Reduce turned out to be for nothing; w has
	// already been restored.
	Undo(w *Window, now Time)
	// Restart is called when sending begins again after the time idle with
	// nothing in flight.
	Restart(w *Window, now, idle Time)
}

// Window is the state that every congestion control has. All are in bytes.
type Window struct {
	Size      uint32 // cwnd
	Threshold uint32 // ssthresh
	MSS       uint32 // SMSS: payload of a full segment
}

// Ack tells a congestion control what an acknowledgment brought.
type Ack struct {
	Now      Time
	Bytes    uint32 // newly delivered
	InFlight uint32 // before this acknowledgment
	RTT      Time   // a new measurement, or 0
	SRTT     Time   // smoothed
	Una, Nxt Seq    // SND.UNA and SND.NXT after it
}
