//go:build linux

package rfc2544

import (
	"context"
	"time"

	"loam/gen"
	"loam/gen/frame"
	"loam/gen/method"
	"loam/gen/pace"
	"loam/gen/sink"
)

// Trial is the result of one trial.
type Trial struct {
	Test     string        `json:"test"`
	Size     int           `json:"size"`    // frame size in bytes, FCS included
	Offered  float64       `json:"offered"` // requested rate in frames per second; 0: as fast as possible
	Sent     uint64        `json:"sent"`
	Received uint64        `json:"received"` // number of frames received, without duplicates
	Elapsed  time.Duration `json:"elapsed_ns"`
	Latency  sink.Latency  `json:"latency"`
	// Slow is the reason why this machine was too slow: it could not keep the rate, or lost frames in its own receive
	// ring. Such a trial gives no information about the device. "" means that the machine was fast enough.
	Slow string `json:"slow,omitempty"`
}

// Rate returns the actual rate in frames per second.
func (t *Trial) Rate() float64 {
	if t.Elapsed <= 0 {
		return 0
	}
	return float64(t.Sent) / t.Elapsed.Seconds()
}

// Loss returns the fraction of lost frames (RFC 2544 section 26.3).
func (t *Trial) Loss() float64 {
	if t.Sent == 0 {
		return 0
	}
	return float64(t.Sent-min(t.Sent, t.Received)) / float64(t.Sent)
}

// Passed reports whether no frame was lost and this machine was fast enough.
func (t *Trial) Passed() bool { return t.Received == t.Sent && t.Sent > 0 && t.Slow == "" }

// load is the load of a trial: either a rate for a time, or a burst of count frames. least is the minimum rate of a
// burst: if the burst was sent more slowly, the trial does not count.
type load struct {
	pps   float64 // rate in frames per second
	span  time.Duration
	count uint64  // number of frames in a burst; 0: the load is the rate pps
	least float64 // minimum rate of a burst in frames per second
}

// trial sends frames of one size, waits until the device's queues have drained, and counts the received frames. RFC
// 2544 section 23 requires a wait of two seconds; Options.Settle can shorten it.
func (o *Options) trial(ctx context.Context, test string, size int, l load) (Trial, error) {
	t := Trial{Test: test, Size: size, Offered: l.pps}
	s := gen.Stream{Name: "trial", Template: o.Template.Clone(), Sizes: frame.FixedSize(size), Count: l.count}
	if l.count == 0 {
		s.Rate = pace.Rate{PerSecond: uint64(max(1, l.pps+0.5)), Unit: pace.Frames}
	}
	m, err := method.ByName(o.ReceiveMethod)
	if err != nil {
		return t, err
	}
	rx, err := sink.Open(m, method.Config{Interface: o.RX, Promiscuous: true})
	if err != nil {
		return t, err
	}
	receiving := sink.Start(rx...)
	c := gen.Config{Method: o.Method, Interface: o.TX, NextHop: o.NextHop, Streams: []gen.Stream{s}, Public: o.Public}
	if l.count == 0 {
		c.Time = l.span
	}
	sent, err := gen.Run(ctx, c)
	settle(ctx, o.Settle)
	got, e := receiving.Stop()
	if err == nil {
		err = e
	}
	if err == nil {
		err = ctx.Err()
	}
	t.Sent, t.Elapsed = sent.Total.Frames, sent.Elapsed
	t.Received, t.Latency = got.Of(sent.Run).Unique, got.Total.Latency
	if err == nil {
		t.Slow = l.slow(&t, &sent, &got)
	}
	return t, err
}

// tooSlow is the relative shortfall of a rate that is tolerated. slowBurst is the same for bursts, in which the time to
// start is significant.
const (
	tooSlow   = 0.01
	slowBurst = 0.1
)

// slow returns the reason why this machine was too slow for the load, or "" if it was fast enough.
func (l *load) slow(t *Trial, sent *gen.Report, got *sink.Report) string {
	switch {
	case got.Dropped > 0:
		return "the receiver's own ring was full"
	case l.count == 0 && sent.Streams[0].Error < -tooSlow, l.count > 0 && t.Rate() < l.least*(1-slowBurst):
		return "the sender could not keep the rate"
	}
	return ""
}

func settle(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
