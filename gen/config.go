package gen

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"loam/gen/frame"
	"loam/gen/guard"
	"loam/gen/method"
	"loam/gen/pace"
	"loam/gen/sink"
	"loam/wire"
)

// Config is what a run is told. Zero values are sensible unless it says otherwise.
type Config struct {
	Method    string // by name
	Interface string
	Queues    int // 0 is 1
	Batch     int // frames that a method is given at once; 0 is the method's own
	Qdisc     bool
	Plain     bool // see method.Config
	// LeaveChecksum leaves the checksum of UDP or TCP to the device (methods packet and
	// ring; those that send payloads leave it to the kernel anyway).
	LeaveChecksum bool
	Copying       method.Copying
	Streams       []Stream

	// What is not given in a template is filled in: see address.go.
	NextHop wire.MAC // zero: asked for

	Time time.Duration // 0: until the streams have sent their Count, or ctx is done
	// Steps follow one another, in place of Time.
	Steps []Step
	// Public allows public addresses at any rate.
	Public bool
	// Float leaves it to the kernel on which processors the workers run.
	Float bool

	// Observe is called every Interval (0 is a second), by the goroutine of Run, and
	// a last time at the end.
	Interval time.Duration
	Observe  func(Sample)
	// Ready is called when everything is open and before the first frame: here
	// privileges are dropped.
	Ready func() error
}

// Step is a time with rates of its own.
type Step struct {
	Time  time.Duration
	Scale float64 // of the rates of all streams: 1 as they are, 0.5 half, 0 silence
}

// Stream is a sequence of frames from one template.
type Stream struct {
	Name     string
	Template *frame.Template
	Sizes    frame.Sizes // the zero value: as small as the template lets it be
	Rate     pace.Rate   // the zero value: as fast as it goes
	Count    uint64      // 0: no end
	// Flows has the source port of UDP and TCP cycle over so many values, each
	// numbered by itself. 0 is 1.
	Flows int
	Seed  uint64 // of what is random
	// Bare leaves out the tag by which a sink recognizes the frames.
	Bare bool
}

// ErrConfig is in every error about what a run was told.
var ErrConfig = errors.New("gen: bad configuration")

// bad makes such an error.
func bad(format string, args ...any) error { return &configError{fmt.Sprintf(format, args...)} }

type configError struct{ text string }

func (e *configError) Error() string        { return e.text }
func (e *configError) Is(target error) bool { return target == ErrConfig }

// Bounds of a Config.
const (
	MaxBatch = 4096
	MaxTime  = 1000 * time.Hour
	MaxScale = 1000
	MaxSteps = 10000
	MaxFlows = 60000 // source ports from firstPort on
)

func (c Config) withDefaults() Config {
	if c.Queues == 0 {
		c.Queues = 1
	}
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if len(c.Steps) == 0 {
		c.Steps = []Step{{c.Time, 1}}
	}
	c.Streams = append([]Stream(nil), c.Streams...)
	for i := range c.Streams {
		s := &c.Streams[i]
		if s.Name == "" {
			s.Name = fmt.Sprintf("stream %d", i+1)
		}
		if s.Flows == 0 {
			s.Flows = 1
		}
	}
	return c
}

// check looks at what can be checked without opening anything.
func (c *Config) check() error {
	switch {
	case len(c.Streams) == 0:
		return bad("there is no stream to send")
	case len(c.Streams) > sink.MaxStreams:
		return bad("%d streams are more than %d", len(c.Streams), sink.MaxStreams)
	case c.Queues < 0 || c.Queues > sink.MaxQueues:
		return bad("%d queues; allowed: 1 to %d", c.Queues, sink.MaxQueues)
	case c.Batch < 0 || c.Batch > MaxBatch:
		return bad("a batch of %d frames; allowed: 1 to %d", c.Batch, MaxBatch)
	case c.Time < 0 || c.Time > MaxTime:
		return bad("a time of %v; allowed: above 0, to %v", c.Time, MaxTime)
	case c.Interface == "":
		return bad("no interface is given")
	}
	if err := c.checkSteps(); err != nil {
		return err
	}
	named := make(map[string]bool)
	for i := range c.Streams {
		if name := c.Streams[i].Name; named[name] {
			return bad("there are two streams of the name %q: give each a name of its own", name)
		}
		named[c.Streams[i].Name] = true
		if err := c.checkStream(&c.Streams[i]); err != nil {
			return fmt.Errorf("%s: %w", c.Streams[i].Name, err)
		}
	}
	return nil
}

func (c *Config) checkSteps() error {
	if len(c.Steps) > MaxSteps {
		return bad("%d steps are more than %d", len(c.Steps), MaxSteps)
	}
	for i, s := range c.Steps {
		switch {
		case s.Time < 0 || s.Time == 0 && len(c.Steps) > 1 || s.Time > MaxTime:
			return bad("step %d: a time of %v; allowed: above 0, to %v", i+1, s.Time, MaxTime)
		case s.Scale < 0 || s.Scale > MaxScale || s.Scale != s.Scale:
			return bad("step %d: a scale of %v; allowed: 0 to %d", i+1, s.Scale, MaxScale)
		}
		for j := range c.Streams {
			if c.Streams[j].Rate.IsMax() && s.Scale != 0 && s.Scale != 1 {
				return bad("step %d: %s has no rate that could be scaled", i+1, c.Streams[j].Name)
			}
		}
	}
	return nil
}

func (c *Config) checkStream(s *Stream) error {
	switch {
	case s.Template == nil:
		return bad("there is no template")
	case s.Flows < 0 || s.Flows > MaxFlows:
		return bad("%d flows; allowed: 1 to %d", s.Flows, MaxFlows)
	case !s.Rate.IsMax() && s.Rate.PerSecond < uint64(c.Queues):
		return bad("a rate of %v cannot be shared by %d queues", s.Rate, c.Queues)
	case s.Count != 0 && s.Count < uint64(c.Queues):
		return bad("%d frames cannot be shared by %d queues", s.Count, c.Queues)
	}
	if c.Public {
		return nil
	}
	size := s.Sizes.Mean()
	if size == 0 {
		size = frame.MinSize
	}
	for _, field := range []string{"ip.dst", "ip6.dst"} {
		if d := s.Template.Get(field); d != "" {
			if err := guard.Check(d, c.highest()*s.Rate.FramesPerSecond(size)); err != nil {
				return err
			}
		}
	}
	return nil
}

// highest is the largest scale of the steps.
func (c *Config) highest() float64 {
	if len(c.Steps) == 0 {
		return 1
	}
	top := 0.0
	for _, s := range c.Steps {
		top = max(top, s.Scale)
	}
	return top
}

// firstOf is the first address of a pattern: of a list, a range or a prefix.
func firstOf(pattern string) (netip.Addr, bool) {
	for i, r := range pattern {
		if r == ',' || r == '-' || r == '+' {
			pattern = pattern[:i]
			break
		}
	}
	if p, err := netip.ParsePrefix(pattern); err == nil {
		return p.Masked().Addr(), true
	}
	a, err := netip.ParseAddr(pattern)
	return a, err == nil
}
