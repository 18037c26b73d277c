package tcp

// Congestion is a congestion control algorithm: it decides how large the congestion window is. Loss
// detection, and the use of the window during recovery (prr.go), are the same for all algorithms.
//
// The Conn calls it on the connection's goroutine. An implementation keeps its own state and changes only the
// Window that it is given. It has no clock: each event carries its time.
//
// There are two kinds. One adjusts the window on acknowledgments and loss (newreno.go, cubic.go). The other
// is a Model, which measures the path (bbr.go).
type Congestion interface {
	// Name returns the name of the algorithm, as Linux spells it.
	Name() string
	// Acked grows w.Size. It is called outside of recovery for each acknowledgment of new data if the window
	// limited sending. For a Model, it is called for each acknowledgment that arrives while data is in
	// flight.
	Acked(w *Window, a Ack)
	// Reduce is called when loss or ECN indicates congestion. flight is the number of bytes that were in
	// flight. It returns the new slow start threshold; the Conn then reduces w.Size to it, unless this is a
	// Model.
	Reduce(w *Window, now Time, flight uint32) uint32
	// Timeout is called after Reduce if a retransmission timeout detected the loss.
	Timeout(w *Window, now Time)
	// Undo is called when the last Reduce turns out to have been unnecessary. w has already been restored.
	Undo(w *Window, now Time)
	// Restart is called when sending resumes after nothing was in flight for the duration idle.
	Restart(w *Window, now, idle Time)
}

// Model is a Congestion that derives both the window and a pacing rate from samples of the delivery rate
// (rate.go). It also controls the window during recovery, where prr.go does not apply.
type Model interface {
	Congestion
	// Start is called when the connection is established, or when SetCongestion selects the Model. srtt is 0
	// if no round trip has been measured; seed is for random choices.
	Start(w *Window, now, srtt Time, seed uint32)
	// Lost is called for each range taken for lost, before Acked and Reduce.
	Lost(w *Window, l *Loss)
	// Marked is called once per round trip when congestion is reported without a known lost range: by ECN, or
	// by a tail loss probe that repaired a loss.
	Marked(w *Window, now Time)
	// Recovered is called when the loss that Reduce was called for has been repaired.
	Recovered(w *Window, now Time)
}

// Window is the state shared by all congestion controls. Sizes are in bytes.
type Window struct {
	Size      uint32 // cwnd
	Threshold uint32 // ssthresh
	MSS       uint32 // SMSS: payload of a full segment
	Rate      uint64 // pacing rate in bytes per second; 0: acknowledgments alone clock the sender
}

// quantum returns the bytes that may leave at once at that rate: the data of one millisecond, between two
// segments and 64 KiB (draft-ietf-ccwg-bbr section 5.6.3).
func (w *Window) quantum() uint32 { return sendQuantum(w.Rate, w.MSS) }

// slowStart reports whether the window is below the threshold.
func (w *Window) slowStart() bool { return w.Size < w.Threshold }

// floor applies the lower bound of the threshold to n (RFC 5681 equation 4).
func (w *Window) floor(n uint32) uint32 { return max(n, 2*w.MSS) }

// Ack describes an acknowledgment for a congestion control. Sizes are in bytes.
type Ack struct {
	Now      Time
	Bytes    uint32  // newly delivered
	InFlight uint32  // before this acknowledgment
	Frame    uint32  // maximum payload of a frame; 0: one segment
	RTT      Time    // a new measurement, or 0
	SRTT     Time    // smoothed
	Una, Nxt Seq     // SND.UNA and SND.NXT after it
	Sample   *Sample // for a Model, else nil
}

// congestions lists the algorithms by their Linux names.
var congestions = []struct {
	name string
	make func() Congestion
}{{"cubic", NewCubic}, {"bbr", NewBBR}}

// CongestionNames returns the names that CongestionNamed accepts, the default first.
func CongestionNames() (names []string) {
	for _, c := range congestions {
		names = append(names, c.name)
	}
	return names
}

// CongestionNamed returns the constructor of the named algorithm, or nil if there is none.
func CongestionNamed(name string) func() Congestion {
	for _, c := range congestions {
		if c.name == name {
			return c.make
		}
	}
	return nil
}
