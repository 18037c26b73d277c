//go:build linux

package rfc2544

import (
	"context"
	"fmt"
	"slices"
	"time"

	"loam/gen/frame"
	"loam/wire"
)

// Options are the parameters of the tests.
type Options struct {
	TX, RX        string // interfaces of this machine, connected by the device under test
	Method        string // name of the sending method; "": ring
	ReceiveMethod string // name of the receiving method; "": ring
	Template      *frame.Template
	NextHop       wire.MAC // Ethernet address of the next hop; zero: resolved by ARP or Neighbor Discovery
	Public        bool

	Sizes  []int         // frame sizes in bytes, FCS included; nil: the variable Sizes
	Trial  time.Duration // duration of each trial; 0: DefaultTrial
	Settle time.Duration // time after a trial in which the device's queues drain; 0: DefaultSettle
	// Top is the highest rate to try, in frames per second. Normally it is the maximum rate of the medium. 0 means the
	// rate that the sender reaches without a limit.
	Top        float64
	Resolution float64 // resolution of the search, as a fraction of Top; 0: DefaultResolution
	Repeats    int     // number of repetitions of the latency and back-to-back tests; 0: DefaultRepeats
	Tests      []string
	// Progress is called after each trial. It may be nil.
	Progress func(Trial)
}

// Sizes are the frame sizes of RFC 2544 section 9.1 for Ethernet.
var Sizes = []int{64, 128, 256, 512, 1024, 1280, 1518}

// Defaults. The RFC requires more: trials of 60 seconds, 2 seconds for queues to drain, 20 repetitions (50 of the
// back-to-back test).
const (
	DefaultTrial      = 5 * time.Second
	DefaultSettle     = 500 * time.Millisecond
	DefaultResolution = 0.01
	DefaultRepeats    = 3
)

// Names of the tests.
const (
	Throughput = "throughput"
	LatencyOf  = "latency"
	FrameLoss  = "loss"
	BackToBack = "back-to-back"
)

// Tests lists the tests in the order in which they run.
var Tests = []string{Throughput, LatencyOf, FrameLoss, BackToBack}

// withDefaults returns o with defaults in place of zero fields.
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

// Run runs the tests for each frame size. Even if it returns an error, the report contains the trials made so far.
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

// Parameters of the connectivity check. Its frames also let bridges learn the addresses (RFC 2544 section 23).
const (
	greetingRate = 1000 // frames per second
	greeting     = 100 * time.Millisecond
)

// connected sends a few frames of each size until one arrives. It returns an error if none does.
func (o *Options) connected(ctx context.Context) error {
	for _, size := range o.Sizes {
		t, err := o.trial(ctx, "greeting", size, load{pps: greetingRate, span: greeting})
		if err != nil || t.Received > 0 || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("nothing that is sent by %s arrives at %s: look whether the device between them is up, and whether --dst and --dst-mac are as it wants them", o.TX, o.RX)
}

// size runs the tests for one frame size. Every test needs the throughput, so that is measured first.
func (o *Options) size(ctx context.Context, size int) (row Row, err error) {
	row = Row{Size: size, Top: o.Top}
	if row.Top == 0 {
		t, err := o.trial(ctx, Throughput, size, load{count: topFrames})
		if err != nil {
			return Row{}, err
		}
		o.addTrial(&row, t)
		row.Top = t.Rate()
	}
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

// topFrames is the number of frames that are sent to measure the highest rate of the sender.
const topFrames = 50_000

// addTrial adds a trial to the report and calls Progress.
func (o *Options) addTrial(row *Row, t Trial) {
	row.Trials = append(row.Trials, t)
	if o.Progress != nil {
		o.Progress(t)
	}
}

// attempts is the maximum number of times that a trial is made if this machine is too slow.
const attempts = 3

// attempt makes a trial, and repeats it if this machine was too slow. It adds each of these trials to the report.
func (o *Options) attempt(ctx context.Context, row *Row, test string, l load) (t Trial, err error) {
	for range attempts {
		if t, err = o.trial(ctx, test, row.Size, l); err != nil {
			return t, err
		}
		o.addTrial(row, t)
		if t.Slow == "" {
			break
		}
	}
	return t, nil
}

// throughput searches for the highest rate without loss.
func (o *Options) throughput(ctx context.Context, row *Row) error {
	s := newSearch(row.Top, o.Resolution*row.Top)
	for pps, ok := s.next(); ok; pps, ok = s.next() {
		t, err := o.attempt(ctx, row, Throughput, load{pps: pps, span: o.Trial})
		if err != nil {
			return err
		}
		s.record(pps, t.Passed())
	}
	row.Throughput, row.AtLeast = s.low, s.reached()
	return nil
}

// latency sends at the throughput and measures the latency of all frames. The RFC requires only one frame in the middle
// of a trial.
func (o *Options) latency(ctx context.Context, row *Row) error {
	if row.Throughput == 0 {
		return nil
	}
	for range o.Repeats {
		t, err := o.attempt(ctx, row, LatencyOf, load{pps: row.Throughput, span: o.Trial})
		if err != nil {
			return err
		}
		row.Latency = append(row.Latency, t.Latency)
	}
	return nil
}

// loss starts at the top rate and decreases it in steps of a tenth, until two consecutive trials have no loss.
func (o *Options) loss(ctx context.Context, row *Row) error {
	clean := 0
	for percent := 100; percent > 0 && clean < 2; percent -= 10 {
		t, err := o.attempt(ctx, row, FrameLoss, load{pps: row.Top * float64(percent) / 100, span: o.Trial})
		if err != nil {
			return err
		}
		row.Loss = append(row.Loss, Loss{percent, t.Loss(), t.Slow})
		if clean++; !t.Passed() {
			clean = 0
		}
	}
	return nil
}

// leastBurst is the minimum upper limit of the search for the longest burst, in frames. Normally the limit is a burst
// of two seconds (RFC 9004 section 5.2), or of the duration of a trial if that is shorter.
const leastBurst = 16

// backToBack searches for the longest burst without loss at the top rate. A burst that was sent more slowly is not
// counted as a result.
func (o *Options) backToBack(ctx context.Context, row *Row) error {
	longest := max(leastBurst, row.Top*min(o.Trial, 2*time.Second).Seconds())
	for range o.Repeats {
		s := newSearch(longest, max(1, o.Resolution*longest))
		for frames, ok := s.next(); ok; frames, ok = s.next() {
			t, err := o.attempt(ctx, row, BackToBack, load{count: uint64(max(1, frames)), least: row.Top})
			if err != nil {
				return err
			}
			s.record(frames, t.Passed())
		}
		row.Bursts = append(row.Bursts, Burst{uint64(s.low), s.reached()})
	}
	return nil
}
