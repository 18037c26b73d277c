package gen

import (
	"time"

	"loam/gen/frame"
	"loam/gen/method"
	"loam/gen/pace"
)

// Sample is how a run is doing.
type Sample struct {
	Elapsed time.Duration `json:"elapsed_ns"`
	Over    time.Duration `json:"over_ns"` // the time that the rates are of
	Streams []Flow        `json:"streams"`
	Total   Flow          `json:"total"`
	Last    bool          `json:"last,omitempty"`
}

// Flow is what one stream, or all, have sent.
type Flow struct {
	Name   string  `json:"name,omitempty"`
	Frames uint64  `json:"frames"`
	Bytes  uint64  `json:"bytes"`  // with FCS
	PPS    float64 `json:"pps"`    // frames a second
	L2Bits float64 `json:"bps"`    // bits of frames a second, FCS included
	L1Bits float64 `json:"bps_l1"` // with preamble and gap
}

// SetRates computes the rates of what was sent in a time.
func (f *Flow) SetRates(frames, bytes uint64, over time.Duration) {
	if over <= 0 {
		return
	}
	s := over.Seconds()
	f.PPS = float64(frames) / s
	f.L2Bits = 8 * float64(bytes) / s
	f.L1Bits = f.L2Bits + 8*frame.WireOverhead*f.PPS
}

// Report is how a run went.
type Report struct {
	Method    string          `json:"method"`
	Interface string          `json:"interface"`
	Queues    int             `json:"queues"`
	Elapsed   time.Duration   `json:"elapsed_ns"` // from the first frame to the last
	Streams   []StreamReport  `json:"streams"`
	Total     Flow            `json:"total"`
	Counters  method.Counters `json:"counters"`
	// LinkFrames is what the interface itself counted as sent in this time, whoever
	// sent it; UnknownLink where it does not say.
	LinkFrames int64 `json:"link_frames"`
}

// UnknownLink is an interface that does not count.
const UnknownLink = -1

// StreamReport is how a stream went.
type StreamReport struct {
	Flow
	Asked  string        `json:"asked"`           // the rate
	Error  float64       `json:"error,omitempty"` // of the rate that was held: 0.001 is 0.1 % too fast
	Gaps   pace.Gaps     `json:"gaps"`            // between frames, as they were handed over
	Missed time.Duration `json:"missed_ns"`       // stalls that were too long to make up for
}
