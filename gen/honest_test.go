//go:build linux

package gen

import (
	"testing"
	"time"

	"loam/gen/frame"
	"loam/internal/netns"
)

// Frames that the kernel refuses use up their time slots, so the configured rate also limits attempts. Their bytes do
// not count as sent.
func TestRefusedFrames(t *testing.T) {
	for _, m := range []string{"ring", "packet", "pcap", "raw", "xdp", "tc"} {
		l := newLab(t)
		netns.IP(t, "link", "set", l.near, "mtu", "600")
		sizes, err := frame.ParseSizes("imix:64=1,1000=1")
		if err != nil {
			t.Fatal(err)
		}
		rep, err := Run(t.Context(), Config{
			Method: m, Interface: l.near, Time: 300 * time.Millisecond,
			Streams: []Stream{
				{Template: l.udp(t), Sizes: sizes, Rate: rate(t, "1kpps")},
				{Template: l.udp(t), Sizes: frame.FixedSize(100), Rate: rate(t, "500pps")},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if s := rep.Streams[0]; s.Frames == 0 || s.Frames > 151 || rep.Counters.Refused > 151 || s.Bytes != 64*s.Frames {
			t.Errorf("%s: 300 frames were due and half are too long: %d sent, %d bytes, %d refused", m, s.Frames, s.Bytes, rep.Counters.Refused)
		}
		if s := rep.Streams[1]; s.Bytes != 100*s.Frames {
			t.Errorf("%s: %d frames of 100 bytes with %d bytes", m, s.Frames, s.Bytes)
		}
	}
}

// If an interface starts to refuse every frame, the run does not try more often than the rate allows.
func TestAllRefusedLater(t *testing.T) {
	for _, bare := range []bool{false, true} {
		l := newLab(t)
		shrunk := false
		rep, err := Run(t.Context(), Config{
			Method: "packet", Interface: l.near, Time: 400 * time.Millisecond, Interval: 50 * time.Millisecond,
			Streams: []Stream{{Template: l.udp(t), Sizes: frame.FixedSize(1000), Rate: rate(t, "1kpps"), Bare: bare}},
			Observe: func(s Sample) {
				if s.Total.Frames > 0 && !shrunk {
					netns.IP(t, "link", "set", l.near, "mtu", "600")
					shrunk = true
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := rep.Total.Frames + rep.Counters.Refused; rep.Counters.Refused == 0 || n > 401 {
			t.Errorf("bare %v: 400 frames were due, and %d went and %d were refused", bare, rep.Total.Frames, rep.Counters.Refused)
		}
	}
}

// The method tap reports no frames counted by the interface: its counter of sent frames does not exist, because the
// interface receives the frames.
func TestTapCountsNothing(t *testing.T) {
	newLab(t)
	tpl, err := frame.Parse("eth dst=02:00:00:00:00:01; ip dst=10.0.0.2; udp")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(t.Context(), Config{Method: "tap", Interface: "loamtap9", Streams: []Stream{{Template: tpl, Count: 5}}})
	if err != nil || rep.Counters.Left != 5 || rep.LinkFrames != UnknownLink {
		t.Errorf("%+v, %v", rep, err)
	}
}

// The rate of a stream that has sent its count is computed over the stream's own time, not over the time of longer
// streams. This also holds for streams of few frames.
func TestRateOfAStreamThatEnded(t *testing.T) {
	l := newLab(t)
	rep, err := Run(t.Context(), Config{
		Method: "ring", Interface: l.near,
		Streams: []Stream{
			{Name: "short", Template: l.udp(t), Rate: rate(t, "1kpps"), Count: 20},
			{Name: "long", Template: l.udp(t), Rate: rate(t, "1kpps"), Count: 1000},
			{Name: "bits", Template: l.udp(t), Rate: rate(t, "512kbps"), Count: 20},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rep.Streams {
		// The stream may end late by a stall shorter than catchUp, after which no frame is missing.
		const late = 2 * catchUp
		took := time.Duration(float64(s.Frames) / s.PPS * float64(time.Second))
		if most := time.Duration(s.Frames)*time.Millisecond + late; s.Error > 0.001 || s.Missed == 0 && took > most {
			t.Errorf("%s: %d frames in %v, off by %+.1f %%", s.Name, s.Frames, took, 100*s.Error)
		}
	}
}
