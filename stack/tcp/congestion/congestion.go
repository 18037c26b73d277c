// Package congestion has the congestion controls of TCP: NewReno (RFC 5681), CUBIC (RFC 9438) and BBR (draft-ietf-ccwg-bbr), the slow
// start that the first two share (RFC 9406), and the interface between them and a connection.
//
// congestion.go has the interface and its types; newreno.go, cubic.go and hystart.go the controls that adjust the window; the bbr
// files the one that measures the path.
package congestion

import (
	"math/bits"
	"time"

	"loam/stack/tcp/sequence"
)

// Time is the time since an epoch that the owner chose, on a monotonic clock.
type Time = time.Duration

// Seq is a sequence number.
type Seq = sequence.Seq

// MaxWindow is the largest window with scaling, in bytes (RFC 7323 section 2.3).
const MaxWindow = 1 << 30

// NoThreshold is a slow start threshold that no window reaches.
const NoThreshold = 1<<31 - 1

// Control is a congestion control algorithm: it decides how large the congestion window is. Loss
// detection, and the use of the window during recovery (package tcp), are the same for all algorithms.
//
// A connection calls it on the connection's goroutine. An implementation keeps its own state and changes only the
// Window that it is given. It has no clock: each event carries its time.
//
// There are two kinds. One adjusts the window on acknowledgments and loss (newreno.go, cubic.go). The other
// is a Model, which measures the path (bbr.go).
type Control interface {
	// Name returns the name of the algorithm, as Linux spells it.
	Name() string
	// Acked grows w.Size. It is called outside of recovery for each acknowledgment of new data if the window
	// limited sending. For a Model, it is called for each acknowledgment that arrives while data is in
	// flight.
	Acked(w *Window, a Ack)
	// Reduce is called when loss or ECN indicates congestion. flight is the number of bytes that were in
	// flight. It returns the new slow start threshold; the connection then reduces w.Size to it, unless this is a
	// Model.
	Reduce(w *Window, now Time, flight uint32) uint32
	// Timeout is called after Reduce if a retransmission timeout detected the loss.
	Timeout(w *Window, now Time)
	// Undo is called when the last Reduce turns out to have been unnecessary. w has already been restored.
	Undo(w *Window, now Time)
	// Restart is called when sending resumes after nothing was in flight for the duration idle.
	Restart(w *Window, now, idle Time)
}

// Model is a Control that derives both the window and a pacing rate from samples of the delivery rate
// (package tcp). It also controls the window during recovery, where proportional rate reduction does not apply.
type Model interface {
	Control
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
	Size      uint32 // congestion window (cwnd) in bytes
	Threshold uint32 // slow start threshold (ssthresh) in bytes
	MSS       uint32 // SMSS: payload of a full segment
	Rate      uint64 // pacing rate in bytes per second; 0: data is not paced, and acknowledgments clock the sender
}

// quantum returns the number of bytes that may be sent at once at the window's pacing rate.
func (w *Window) quantum() uint32 { return Quantum(w.Rate, w.MSS) }

// Limits of a quantum, the data that is sent at once when sending is paced.
const (
	quantumTime = time.Millisecond
	mostQuantum = 64 << 10
)

// Quantum returns the bytes that may leave at once at a pacing rate: the data of one millisecond, between two
// segments and 64 KiB (draft-ietf-ccwg-bbr section 5.6.3).
func Quantum(rate uint64, mss uint32) uint32 {
	return max(uint32(min(BytesIn(rate, quantumTime), mostQuantum)), 2*mss)
}

// BytesIn returns the bytes sent during d at a rate in bytes per second.
func BytesIn(rate uint64, d Time) uint64 {
	hi, lo := bits.Mul64(rate, uint64(max(d, 0)))
	if hi >= uint64(time.Second) {
		return 1<<64 - 1
	}
	n, _ := bits.Div64(hi, lo, uint64(time.Second))
	return n
}

// Rate returns n bytes over d in bytes per second.
func Rate(n uint64, d Time) uint64 { return n * uint64(Time(1e9)) / uint64(d) }

// SlowStart reports whether the window is below the threshold.
func (w *Window) SlowStart() bool { return w.Size < w.Threshold }

// floor applies the lower bound of the threshold to n (RFC 5681 equation 4).
func (w *Window) floor(n uint32) uint32 { return max(n, 2*w.MSS) }

// Ack describes an acknowledgment for a congestion control. Sizes are in bytes.
type Ack struct {
	Now      Time
	Bytes    uint32  // bytes newly delivered
	InFlight uint32  // bytes in flight before this acknowledgment
	Frame    uint32  // maximum payload of a frame in bytes; 0: one segment
	RTT      Time    // round trip time measured by this acknowledgment; 0: not measured
	SRTT     Time    // smoothed round trip time
	Una, Nxt Seq     // SND.UNA and SND.NXT after this acknowledgment
	Sample   *Sample // delivery rate sample for a Model; nil for other controls
}

// congestions lists the algorithms by their Linux names.
var congestions = []struct {
	name string
	make func() Control
}{{"cubic", NewCubic}, {"bbr", NewBBR}}

// Names returns the names that Named accepts, the default first.
func Names() (names []string) {
	for _, c := range congestions {
		names = append(names, c.name)
	}
	return names
}

// Named returns the constructor of the named algorithm, or nil if there is none.
func Named(name string) func() Control {
	for _, c := range congestions {
		if c.name == name {
			return c.make
		}
	}
	return nil
}

// Sample is the delivery rate sample of one acknowledgment (RS, section 4.1.2.1.3 of the BBR draft).
type Sample struct {
	Any       bool   // some data was delivered; if not, the fields from Rate to Limited are undefined
	Rate      uint64 // delivery rate in bytes per second; 0: no reliable sample (RS.delivery_rate)
	Interval  Time   // time over which the sample was taken (RS.interval)
	RTT       Time   // round trip time of the newest delivered range; 0: that range was retransmitted (RS.rtt)
	Delivered uint64 // bytes delivered during the interval (RS.delivered)
	// C.delivered of the BBR draft at the time when the newest delivered range was sent: all bytes delivered since the
	// start, cumulatively or selectively acknowledged (RS.prior_delivered)
	Prior    uint64
	Lost     uint64 // bytes considered lost since the newest delivered range was sent (RS.lost)
	InFlight uint32 // bytes in flight when the newest delivered range was sent, including that range (RS.tx_in_flight)
	Limited  bool   // the program had nothing more to send when the newest delivered range was sent (RS.is_app_limited)

	Acked  uint32 // newly acknowledged bytes, cumulatively or selectively (RS.newly_acked)
	Total  uint64 // bytes delivered since the start (C.delivered)
	Flight uint32 // bytes in flight after this acknowledgment (C.inflight)
	Full   bool   // the window was fully used in the last round trip (C.is_cwnd_limited)
	SACK   bool   // the peer supports selective acknowledgments (C.has_selective_acks)
	// set by the Model: the caller limits the data in flight for a purpose, so later samples do not show the path's rate
	Withhold bool
}

// Loss describes a range that is considered lost (section 5.5.10.2 of the BBR draft).
type Loss struct {
	Now      Time
	Seq, End Seq    // first sequence number of the range, and the one after it (P.size is End - Seq)
	Total    uint64 // bytes delivered since the start (C.delivered)
	Lost     uint64 // bytes considered lost since the range was sent, including the range (RS.lost)
	InFlight uint32 // bytes in flight when the range was sent (RS.tx_in_flight)
	Limited  bool   // the program had nothing more to send when the range was sent (P.is_app_limited)
	SACK     bool
}
