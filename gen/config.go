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

// Config is the configuration of a run. Zero values are usable unless a field says otherwise.
type Config struct {
	Method    string // name of the method: see package method
	Interface string
	Queues    int  // number of queues to send on; 0: 1
	Batch     int  // maximum number of frames passed to a method in one call; 0: the method's default
	Qdisc     bool // send through the queueing discipline of the interface: see method.Config
	Plain     bool // the method mmsg sends one datagram per message: see method.Config
	// LeaveChecksum leaves the UDP or TCP checksum to the network device. It applies to the methods packet and ring.
	// With methods that send payloads, the kernel computes the checksum in any case.
	LeaveChecksum bool
	// Patience is the maximum time that the run waits while no frame can be sent, for example because the link is down.
	// 0 means method.DefaultPatience.
	Patience time.Duration
	Copying  method.Copying
	Streams  []Stream

	NextHop wire.MAC // Ethernet address of the next hop; zero: resolved by ARP or Neighbor Discovery, see address.go

	Time time.Duration // duration of sending; 0: until all streams have sent their Count, or ctx is done
	// Steps is a sequence of phases with their own rates. If it is set, Time is not used.
	Steps []Step
	// Public allows public destination addresses at any rate (see package guard).
	Public bool
	// Float does not bind the worker threads to processors.
	Float bool

	// Control changes rates during the run. It may be nil. A Control serves one run.
	Control *Control

	// Observe is called every Interval (0: one second) in the goroutine of Run, and once more at the end.
	Interval time.Duration
	Observe  func(Sample)
	// Ready is called after everything is open and before the first frame is sent, for example to drop privileges.
	Ready func() error
}

// Step is a phase of a run with its own rates.
type Step struct {
	Time  time.Duration
	Scale float64 // factor for the rates of all streams: 1 unchanged, 0.5 half, 0 silence
}

// Stream is a sequence of frames from one template.
type Stream struct {
	Name     string
	Template *frame.Template
	Sizes    frame.Sizes // zero value: the smallest size that the template allows
	Rate     pace.Rate   // zero value: as fast as possible
	Spacing  pace.Spacing
	Count    uint64 // number of frames; 0: unlimited
	// Flows is the number of flows: the source port (UDP, TCP or SCTP) cycles over this number of values. Each flow has
	// its own sequence numbers, for up to sink.MaxFlows flows on each queue; further flows share these sequences. 0
	// means 1.
	Flows int
	Seed  uint64 // seeds the template's random fields and the random spacing
	// Bare omits the tag by which a sink recognises the frames and measures them.
	Bare bool
}

// ErrConfig is wrapped by every error about an invalid configuration.
var ErrConfig = errors.New("gen: bad configuration")

// bad returns an error that wraps ErrConfig.
func bad(format string, args ...any) error { return &configError{fmt.Sprintf(format, args...)} }

// configError is an error that matches ErrConfig.
type configError struct{ text string }

func (e *configError) Error() string        { return e.text }
func (e *configError) Is(target error) bool { return target == ErrConfig }

// Largest values of fields of a Config.
const (
	MaxBatch = 4096
	MaxTime  = 1000 * time.Hour
	MaxScale = 1000
	MaxSteps = 10000
	MaxFlows = 60000 // source ports start at firstPort
)

// withDefaults returns a copy of c with defaults in place of zero fields. If Steps is empty, Time becomes a single
// Step.
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
	if c.Control == nil {
		c.Control = NewControl()
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

// check validates everything that can be validated without opening anything.
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
	case c.Patience < 0 || c.Patience > MaxTime:
		return bad("a patience of %v; allowed: above 0, to %v", c.Patience, MaxTime)
	case c.Interface == "":
		return bad("no interface is given")
	}
	if err := c.checkSteps(); err != nil {
		return err
	}
	if m, err := method.ByName(c.Method); err == nil && c.Qdisc && !m.HasQdisc() {
		return bad("--qdisc has no effect with the method %s; allowed: packet, ring, loam", c.Method)
	} else if err == nil && c.Plain && !m.HasPlain() {
		return bad("--plain has no effect with the method %s; allowed: mmsg", c.Method)
	}
	named := make(map[string]bool)
	for i := range c.Streams {
		if name := c.Streams[i].Name; named[name] {
			return bad("there are two streams of the name %q: give each a name of its own", name)
		}
		named[c.Streams[i].Name] = true
		if err := c.checkStream(&c.Streams[i], 1); err != nil {
			return fmt.Errorf("%s: %w", c.Streams[i].Name, err)
		}
	}
	return nil
}

// checkSteps checks the times and scales of the steps. If a stream has no rate, only the scales 0 and 1 are allowed.
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

// checkStream checks a stream. This includes its rate, multiplied by factor, if the stream sends to public addresses.
func (c *Config) checkStream(s *Stream, factor float64) error {
	switch {
	case s.Template == nil:
		return bad("there is no template")
	case s.Flows < 0 || s.Flows > MaxFlows:
		return bad("%d flows; allowed: 1 to %d", s.Flows, MaxFlows)
	case s.Rate.IsMax() && s.Spacing != (pace.Spacing{}):
		return bad("there is a spacing and no rate: give a rate")
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
			if err := guard.Check(d, factor*c.highest()*s.Rate.FramesPerSecond(size)); err != nil {
				return err
			}
		}
	}
	return nil
}

// highest returns the largest scale of the steps, or 1 if there are none.
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

// firstOf returns the first address of a field pattern: a list, a range or a prefix.
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
