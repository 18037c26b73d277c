//go:build linux

package gen

import (
	"errors"
	"strings"
	"testing"
	"time"

	"loam/gen/frame"
)

// If the rate is raised during a run that would otherwise take half an hour, the run ends soon. A pause sends nothing
// and does not count as missed time. The report says that the rate was changed, and does not report a deviation from
// the configured rate.
func TestRatesChangeWhileSending(t *testing.T) {
	l := newLab(t)
	c := NewControl()
	if err := c.Scale(2); !errors.Is(err, ErrNotRunning) {
		t.Errorf("before the run: %v", err)
	}
	const count = 2000
	step, paused := 0, uint64(0)
	rep, err := Run(t.Context(), Config{
		Method: "packet", Interface: l.near, Queues: 2, Interval: 100 * time.Millisecond, Control: c,
		Streams: []Stream{{Name: "slow", Template: l.udp(t), Sizes: frame.FixedSize(100), Rate: rate(t, "2pps"), Count: count}},
		Observe: func(s Sample) {
			step++
			var err error
			switch step {
			case 1:
				err = c.Scale(0)
			case 3: // the workers have applied the factor 0 of step 1, which is a pause
				paused = s.Total.Frames
			case 5:
				if s.Total.Frames != paused {
					t.Errorf("%d frames in a pause", s.Total.Frames-paused)
				}
				err = errors.Join(c.SetRate("slow", rate(t, "500pps")), c.Scale(10))
			case 6:
				if s.Streams[0].Asked != "500pps" {
					t.Errorf("asked %s", s.Streams[0].Asked)
				}
			}
			if err != nil {
				t.Error(err)
			}
		},
	})
	if err != nil || rep.Total.Frames != count || !rep.Changed || rep.Streams[0].Error != 0 || rep.Streams[0].Missed > 0 {
		t.Errorf("%+v, %v", rep, err)
	}
	if _, err := c.State(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the run: %v", err)
	}
}

// A rate that Run would have rejected is rejected, and the rates stay unchanged.
func TestControlRefuses(t *testing.T) {
	l := newLab(t)
	tpl := l.udp(t)
	if err := tpl.Set("ip.dst", "8.8.8.8"); err != nil {
		t.Fatal(err)
	}
	done := false
	c := NewControl()
	_, err := Run(t.Context(), Config{
		Method: "packet", Interface: l.near, Queues: 2, Interval: 10 * time.Millisecond, Time: 200 * time.Millisecond, Control: c,
		NextHop: [6]byte{2, 0, 0, 0, 0, 9},
		Streams: []Stream{
			{Name: "public", Template: tpl, Rate: rate(t, "500pps")},
			{Name: "fast", Template: l.udp(t), Sizes: frame.FixedSize(1518)},
		},
		Observe: func(s Sample) {
			if done {
				return
			}
			done = true
			for want, err := range map[string]error{
				"public address":                    c.SetRate("public", rate(t, "2kpps")),
				"cannot be shared":                  c.SetRate("", rate(t, "1pps")),
				`no stream "other"`:                 c.SetRate("other", rate(t, "10pps")),
				"a scale of -1":                     c.Scale(-1),
				"no rate that could be scaled":      c.Scale(0.5),
				"a scale of 1e+06; allowed: 0, and": c.Scale(1e6),
			} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
			}
			if s, err := c.State(); err != nil || s.Factor != 1 || s.Streams[0].Rate != "500pps" || s.Streams[1].Rate != "max" {
				t.Errorf("%+v, %v", s, err)
			}
			if err := c.SetRate("fast", rate(t, "10pps")); err != nil {
				t.Error(err)
			}
			if err := c.Scale(0.5); err != nil {
				t.Error(err)
			}
		},
	})
	if err != nil || !done {
		t.Error(err)
	}
}
