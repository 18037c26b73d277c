//go:build linux

package rfc2544

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"loam/gen/frame"
	"loam/wire"
)

// Options say what to test, and how.
type Options struct {
	TX, RX        string // interfaces of this machine, with the device in between
	Method        string // of sending; "" is ring
	ReceiveMethod string // "" is ring
	Template      *frame.Template
	NextHop       wire.MAC // zero: asked for
	Public        bool

	Sizes  []int         // of frames, FCS included; nil is Sizes
	Trial  time.Duration // of each trial; 0 is DefaultTrial
	Settle time.Duration // for the device to empty itself after a trial; 0 is DefaultSettle
	// Top is the highest rate to try, in frames a second: that of the medium. 0: what
	// our own sender reaches without a limit.
	Top        float64
	Resolution float64 // of the search, as a part of Top; 0 is DefaultResolution
	Repeats    int     // of the latency and back-to-back tests; 0 is DefaultRepeats
	Tests      []string
	// Progress is told of each trial; it may be nil.
	Progress func(test string, t Trial)
}

// Sizes are those of section 9.1 for Ethernet.
var Sizes = []int{64, 128, 256, 512, 1024, 1280, 1518}

// Defaults. Those of the RFC are longer: 60 seconds, 2 seconds, 20 repetitions
// (50 of back-to-back).
const (
	DefaultTrial      = 5 * time.Second
	DefaultSettle     = 500 * time.Millisecond
	DefaultResolution = 0.01
	DefaultRepeats    = 3
)

// Tests.
const (
	Throughput = "throughput"
	LatencyOf  = "latency"
	FrameLoss  = "loss"
	BackToBack = "back-to-back"
)

// Tests lists them, in their order.
var Tests = []string{Throughput, LatencyOf, FrameLoss, BackToBack}

func (o Options) withDefaults() Options {
	set := func(s *string, d string) {
		if *s == "" {
			*s = d
		}
	}
	set(&o.Method, "ring")
	set(&o.ReceiveMethod, "ring")
	if o.Sizes == nil {
		o.Sizes = Sizes
	}
	if o.Trial == 0 {
		o.Trial = DefaultTrial
	}
	if o.Settle == 0 {
		o.Settle = DefaultSettle
	}
	if o.Resolution == 0 {
		o.Resolution = DefaultResolution
	}
	if o.Repeats == 0 {
		o.Repeats = DefaultRepeats
	}
	if o.Tests == nil {
		o.Tests = Tests
	}
	return o
}

// Run runs the tests for each size. The report is of what was done, also where
// there is an error.
func Run(ctx context.Context, o Options) (Report, error) {
	o = o.withDefaults()
	for _, t := range o.Tests {
		if !slices.Contains(Tests, t) {
			return Report{}, fmt.Errorf("there is no test %q; allowed: %v", t, Tests)
		}
	}
	r := Report{Trial: o.Trial, Repeats: o.Repeats, TX: o.TX, RX: o.RX, Tests: o.Tests}
	if err := o.connected(ctx); err != nil {
		return r, err
	}
	for _, size := range o.Sizes {
		row, err := o.size(ctx, size)
		if row.Size != 0 {
			r.Rows = append(r.Rows, row)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// What finds out whether anything arrives at all, which takes bridges through their
// learning, too (section 23).
const (
	greetingRate = 1000 // frames a second
	greeting     = 100 * time.Millisecond
)

// connected sends a few frames of each size until one arrives.
func (o *Options) connected(ctx context.Context) error {
	for _, size := range o.Sizes {
		t, err := o.trial(ctx, size, greetingRate, greeting, 0)
		if err != nil || t.Received > 0 || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("nothing that is sent by %s arrives at %s: look whether the device between them is up, and whether --dst and --dst-mac are as it wants them", o.TX, o.RX)
}

// size runs the tests for one size. All of them need the throughput.
func (o *Options) size(ctx context.Context, size int) (row Row, err error) {
	top := o.Top
	if top == 0 {
		t, err := o.tell(Throughput)(o.trial(ctx, size, math.Inf(1), 0, topFrames))
		if err != nil {
			return row, err
		}
		top = t.Rate()
	}
	row = Row{Size: size, Top: top}
	if err = o.throughput(ctx, &row); err != nil {
		return row, err
	}
	for _, test := range []struct {
		name string
		run  func(context.Context, *Row) error
	}{{LatencyOf, o.latency}, {FrameLoss, o.loss}, {BackToBack, o.backToBack}} {
		if slices.Contains(o.Tests, test.name) {
			if err = test.run(ctx, &row); err != nil {
				return row, err
			}
		}
	}
	return row, nil
}

// topFrames is how many frames find out how fast our own sender is.
const topFrames = 50_000

// tell has Progress told of a trial's outcome.
func (o *Options) tell(test string) func(Trial, error) (Trial, error) {
	return func(t Trial, err error) (Trial, error) {
		if err == nil && o.Progress != nil {
			o.Progress(test, t)
		}
		return t, err
	}
}

// throughput searches for the highest rate at which nothing is lost.
func (o *Options) throughput(ctx context.Context, row *Row) error {
	s := newSearch(row.Top, o.Resolution*row.Top)
	for load, ok := s.next(); ok; load, ok = s.next() {
		t, err := o.tell(Throughput)(o.trial(ctx, row.Size, load, o.Trial, 0))
		if err != nil {
			return err
		}
		s.told(load, t.Passed())
		if t.Slow != "" {
			row.Slow = t.Slow
		}
	}
	row.Throughput = s.low
	return nil
}

// latency sends at the throughput and takes the times of all frames, where the
// RFC takes that of one in the middle.
func (o *Options) latency(ctx context.Context, row *Row) error {
	if row.Throughput == 0 {
		return nil
	}
	for range o.Repeats {
		t, err := o.tell(LatencyOf)(o.trial(ctx, row.Size, row.Throughput, o.Trial, 0))
		if err != nil {
			return err
		}
		row.Latency = append(row.Latency, t.Latency)
	}
	return nil
}

// loss begins at the top and goes down in steps of a tenth, until two trials in a
// row have lost nothing.
func (o *Options) loss(ctx context.Context, row *Row) error {
	clean := 0
	for percent := 100; percent > 0 && clean < 2; percent -= 10 {
		t, err := o.tell(FrameLoss)(o.trial(ctx, row.Size, row.Top*float64(percent)/100, o.Trial, 0))
		if err != nil {
			return err
		}
		row.Loss = append(row.Loss, Loss{percent, t.Loss()})
		if clean++; t.Loss() > 0 {
			clean = 0
		}
	}
	return nil
}

// Bounds of a burst: RFC 9004 section 5.2 has the longest last two seconds or as
// long as a trial.
const leastBurst = 16

// backToBack searches for the longest burst, sent as fast as it goes, of which
// nothing is lost.
func (o *Options) backToBack(ctx context.Context, row *Row) error {
	longest := max(leastBurst, row.Top*min(o.Trial, 2*time.Second).Seconds())
	for range o.Repeats {
		s := newSearch(longest, max(1, o.Resolution*longest))
		for load, ok := s.next(); ok; load, ok = s.next() {
			n := uint64(max(1, load))
			t, err := o.tell(BackToBack)(o.trial(ctx, row.Size, math.Inf(1), 0, n))
			if err != nil {
				return err
			}
			s.told(load, t.Passed())
		}
		row.Bursts = append(row.Bursts, uint64(s.low))
	}
	return nil
}
