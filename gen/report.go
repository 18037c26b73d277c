package gen

import (
	"time"

	"loam/gen/frame"
	"loam/gen/method"
	"loam/gen/pace"
)

// Sample is the state of a run at one time.
type Sample struct {
	Elapsed time.Duration `json:"elapsed_ns"`
	Over    time.Duration `json:"over_ns"` // the time over which the rates are computed
	Streams []Flow        `json:"streams"`
	Total   Flow          `json:"total"`
	Last    bool          `json:"last,omitempty"`
}

// Flow counts the frames that one stream, or all streams together, have sent.
type Flow struct {
	Name   string  `json:"name,omitempty"`
	Asked  string  `json:"asked,omitempty"` // the current rate: as configured, or as last changed
	Frames uint64  `json:"frames"`
	Bytes  uint64  `json:"bytes"`  // bytes of the frames, including FCS
	PPS    float64 `json:"pps"`    // frames per second
	L2Bits float64 `json:"bps"`    // bits of frames per second, including FCS
	L1Bits float64 `json:"bps_l1"` // bits per second, including also preamble and inter-frame gap
}

// SetRates sets the rates, given the frames and bytes that were sent during the duration
// over. It does nothing if that duration is not positive.
func (f *Flow) SetRates(frames, bytes uint64, over time.Duration) {
	if over <= 0 {
		return
	}
	s := over.Seconds()
	f.PPS = float64(frames) / s
	f.L2Bits = 8 * float64(bytes) / s
	f.L1Bits = f.L2Bits + 8*frame.WireOverhead*f.PPS
}

// Report is the result of a run.
type Report struct {
	Run       uint16          `json:"run"` // ID of the run, which is in the tags of its frames: see measure.Tag
	Method    string          `json:"method"`
	Interface string          `json:"interface"`
	Queues    int             `json:"queues"`
	Elapsed   time.Duration   `json:"elapsed_ns"` // time from the first frame to the last
	Streams   []StreamReport  `json:"streams"`
	Total     Flow            `json:"total"`
	Changed   bool            `json:"changed,omitempty"` // rates were changed during the run
	Counters  method.Counters `json:"counters"`
	// LinkFrames is the number of frames that the interface itself has counted as sent during the run, by this and any
	// other sender. It is UnknownLink if the interface has no counter.
	LinkFrames int64 `json:"link_frames"`
}

// UnknownLink is the value of Report.LinkFrames for an interface without a counter.
const UnknownLink = -1

// StreamReport is the result of one stream.
type StreamReport struct {
	Flow
	Error  float64       `json:"error,omitempty"` // relative error of the rate: 0.001 is 0.1 % too fast; 0 if the rate was changed during the run
	Gaps   pace.Gaps     `json:"gaps"`            // gaps between frames, at the times at which they were passed to the sender
	Missed time.Duration `json:"missed_ns"`       // time lost in stalls that were too long to make up for
}
