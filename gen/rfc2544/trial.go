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

// Trial is what one trial showed.
type Trial struct {
	Size     int           `json:"size"`    // of frames, FCS included
	Offered  float64       `json:"offered"` // frames a second that were asked for
	Sent     uint64        `json:"sent"`
	Received uint64        `json:"received"` // without duplicates
	Elapsed  time.Duration `json:"elapsed_ns"`
	Latency  sink.Latency  `json:"latency"`
	// Slow is set where our own side could not keep the rate, or lost frames in its
	// ring: the trial says nothing about the device.
	Slow string `json:"slow,omitempty"`
}

// Rate is how fast the frames went.
func (t *Trial) Rate() float64 {
	if t.Elapsed <= 0 {
		return 0
	}
	return float64(t.Sent) / t.Elapsed.Seconds()
}

// Loss is the part of the frames that was lost (section 26.3).
func (t *Trial) Loss() float64 {
	if t.Sent == 0 {
		return 0
	}
	return float64(t.Sent-min(t.Sent, t.Received)) / float64(t.Sent)
}

// Passed reports whether all frames came back.
func (t *Trial) Passed() bool { return t.Received == t.Sent && t.Sent > 0 && t.Slow == "" }

// trial sends frames of a size at a rate for a time, or count of them at once,
// waits for the device to empty itself, and counts. Section 23 has two seconds for
// that, which Options.Settle may shorten.
func (o *Options) trial(ctx context.Context, size int, pps float64, span time.Duration, count uint64) (Trial, error) {
	t := Trial{Size: size, Offered: pps}
	s := gen.Stream{Name: "trial", Template: o.Template.Clone(), Sizes: frame.FixedSize(size), Count: count}
	if count == 0 {
		s.Rate = pace.Rate{PerSecond: uint64(max(1, pps+0.5)), Unit: pace.Frames}
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
	if count == 0 {
		c.Time = span
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
	t.Received, t.Latency = got.Total.Unique, got.Total.Latency
	if err == nil {
		t.Slow = slow(&sent, &got, count)
	}
	return t, err
}

// tooSlow is by how much a sender may fall short of the rate.
const tooSlow = 0.01

// slow says what our own side did wrong.
func slow(sent *gen.Report, got *sink.Report, count uint64) string {
	switch {
	case got.Dropped > 0:
		return "the receiver's own ring was full"
	case count == 0 && sent.Streams[0].Error < -tooSlow:
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
