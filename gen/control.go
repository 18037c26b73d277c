package gen

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"loam/gen/pace"
)

// Control changes the rates of a run while it sends. The caller creates it with NewControl, passes it to Run as
// Config.Control, and may then call its methods on any goroutine. Workers notice a change within 50 ms.
type Control struct {
	mu sync.Mutex // guards the fields below, and writing rates
	// sending is true while the run sends.
	sending bool
	changed bool
	names   []string // names of the streams of the run
	dev     string   // name of the interface, for rates that are a share of its speed
	check   func(*Rates) error

	rates atomic.Pointer[Rates] // read by the workers
}

// Rates holds the rates with which a run currently sends. It is immutable.
type Rates struct {
	Factor float64     // factor by which the rates of all streams are multiplied, in addition to the scale of the current step
	Of     []pace.Rate // rate of each stream
}

// NewControl returns a Control for one run.
func NewControl() *Control { return &Control{} }

// ErrNotRunning reports that a run has not begun to send, or has ended.
var ErrNotRunning = errors.New("the run is not sending")

// Factors that Control.Scale accepts, besides 0.
const (
	MinFactor = 0.0001
	MaxFactor = 10000
)

// Scale multiplies the rates of all streams by factor. 0 pauses the run, and 1 restores the original rates. For a
// stream without a rate, only 0 and 1 are allowed.
func (c *Control) Scale(factor float64) error {
	return c.change(func(s *Rates) error {
		if factor != 0 && !(factor >= MinFactor && factor <= MaxFactor) {
			return bad("a scale of %v; allowed: 0, and %v to %v", factor, MinFactor, MaxFactor)
		}
		s.Factor = factor
		return nil
	})
}

// SetRate sets the rate of a stream. An empty name means all streams.
func (c *Control) SetRate(stream string, r pace.Rate) error {
	return c.change(func(s *Rates) error {
		found := false
		resolved, err := OnLine(r, c.dev)
		if err != nil {
			return err
		}
		for i, name := range c.names {
			if stream == "" || name == stream {
				s.Of[i], found = resolved, true
			}
		}
		if !found {
			return bad("there is no stream %q", stream)
		}
		return nil
	})
}

// change applies edit to a copy of the rates. If the run's check accepts the copy, it becomes the current rates.
func (c *Control) change(edit func(*Rates) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.sending {
		return ErrNotRunning
	}
	before := c.rates.Load()
	s := Rates{before.Factor, append([]pace.Rate(nil), before.Of...)}
	if err := edit(&s); err != nil {
		return err
	}
	if err := c.check(&s); err != nil {
		return err
	}
	c.changed = true
	c.rates.Store(&s)
	return nil
}

// checkRates returns an error if the run cannot send with the given rates.
func (c *Config) checkRates(s *Rates) error {
	for i, r := range s.Of {
		stream := c.Streams[i]
		if stream.Rate = r; r.IsMax() {
			stream.Spacing = pace.Spacing{} // a stream without a rate has no spacing
		}
		err := c.checkStream(&stream, s.Factor)
		if err == nil && r.IsMax() && (s.Factor != 0 && s.Factor != 1 || c.scaled()) {
			err = bad("there is no rate that could be scaled")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", stream.Name, err)
		}
	}
	return nil
}

// State describes the current rates, for display.
type State struct {
	Factor  float64       `json:"scale"`
	Streams []StreamState `json:"streams"`
}

// StreamState is the rate of a stream, before it is multiplied by State.Factor and by the scale of the step.
type StreamState struct {
	Name string `json:"name"`
	Rate string `json:"rate"`
}

// State returns the current rates.
func (c *Control) State() (State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.sending {
		return State{}, ErrNotRunning
	}
	s := c.rates.Load()
	state := State{Factor: s.Factor}
	for i, r := range s.Of {
		state.Streams = append(state.Streams, StreamState{c.names[i], r.String()})
	}
	return state, nil
}

// Begin is called by a run before it sends its first frame. The function check is called for every later change, and
// returns an error for rates with which the run cannot send.
func (c *Control) Begin(dev string, streams []Stream, check func(*Rates) error) {
	s := Rates{Factor: 1}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range streams {
		s.Of = append(s.Of, streams[i].Rate)
		c.names = append(c.names, streams[i].Name)
	}
	c.dev, c.check, c.sending = dev, check, true
	c.rates.Store(&s)
}

// End is called by a run after its last frame. It reports whether rates were changed during the run.
func (c *Control) End() (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending = false
	return c.changed
}

// Rates returns the current rates. A run may call it from Begin until it has made its report.
func (c *Control) Rates() *Rates { return c.rates.Load() }

// scaled reports whether a step has a scale other than 0 and 1.
func (c *Config) scaled() bool {
	for _, s := range c.Steps {
		if s.Scale != 0 && s.Scale != 1 {
			return true
		}
	}
	return false
}
