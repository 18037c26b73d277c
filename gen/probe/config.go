package probe

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"loam/gen/probe/target"
	"loam/internal/siphash"
	"loam/wire"
)

// Config is the configuration of a run. Zero values are usable unless a field says otherwise.
type Config struct {
	Path
	Kind      Kind
	Addresses *target.Set // targets; of the same family as Path.Source
	// Neighbours are the Ethernet addresses of targets on the same link. If it is not nil, it is used in place of
	// Path.NextHopMAC, and targets that are not in it are not asked.
	Neighbours map[netip.Addr]wire.MAC
	Ports      []uint16 // ports to probe on each target; required for SYN and UDP, empty for the other kinds
	Payload    []byte   // UDP payload
	// LocalPorts are the source ports of SYN and UDP probes. Answers arrive at them, so no other program may use
	// them during the run.
	LocalPorts Ports
	ID         uint16      // identifier of echo requests; must be unique on this host
	Key        siphash.Key // key of the tags: random and secret

	Seed          uint64 // determines the order of the questions
	Shard, Shards uint64 // this run asks every Shards-th question, starting with number Shard (from 0); Shards 0 means 1
	Most          uint64 // largest number of questions to ask, in order; 0: all

	Rate       float64       // limit in probes per second; 0: as fast as possible without loss
	Retries    int           // number of further passes over questions that are not settled
	RetryAfter time.Duration // time between passes, to wait for answers; 0: DefaultRetryAfter
	Wait       time.Duration // time to wait for answers after the last pass; 0: DefaultWait
	Window     int           // largest number of probes sent between two times that the rings are emptied; 0: DefaultWindow
	All        bool          // report every answer, not only positive ones

	From *Checkpoint // where an earlier run stopped; nil: start from the beginning
	// Answered calls yield for each result of the earlier run. These questions are not asked again.
	Answered func(yield func(netip.Addr, uint16))

	// Reset sends resets to end the connections that SYNs open. It is needed if the receivers take the answers away
	// from the kernel, or if Source is not an address of the kernel. Otherwise the kernel sends the resets, because
	// it does not know the connections.
	Reset bool

	// Record receives results. It may use the slice only until it returns. Mark is called now and then with a
	// checkpoint c from which the run can be resumed, after all earlier results have been recorded. Both are called
	// on the same goroutine. An error from either ends the run.
	Record func([]Result) error
	Mark   func(c Checkpoint) error
	// Losses returns the number of frames that the interface has lost, for the throttle.
	Losses func() uint64
	// Progress is called about once per second on the scheduler's goroutine. It must not block.
	Progress func(Status)
}

// Defaults of Config.
const (
	DefaultRetryAfter = time.Second
	DefaultWait       = 8 * time.Second
	DefaultWindow     = 8192
)

// Result is one answer.
type Result struct {
	Addr     netip.Addr // the probed address
	Port     uint16     // the probed port, 0 for kinds without ports
	Answer   Answer
	Code     uint8         // code of an ICMP error
	HopLimit uint8         // remaining hop limit or TTL of the answer
	RTT      time.Duration // negative: unknown; starts when the probe's batch is written, at most 64 probes early
	From     netip.Addr    // sender of the answer: Addr, except for errors
	MAC      wire.MAC      // Ethernet address of a neighbour, for the kind Neighbour
	At       time.Time     // arrival time
}

// Checkpoint is a position in a run.
type Checkpoint struct {
	Pass int    // 0 is the first pass
	Next uint64 // next position in the pass
	Sent uint64 // number of probes sent so far, for the summary
}

// Status is the progress of a run.
type Status struct {
	Elapsed time.Duration
	Pass    int     // 0 is the first pass
	Done    float64 // completed part of this pass, 0 to 1
	Sent    uint64
	Rate    float64 // probes sent in the last second
	Found   uint64  // number of positive answers
	Waiting bool    // waiting for late answers
}

// Summary is the result of a run.
type Summary struct {
	Asked      uint64             // number of questions in this shard, limited by Most, without those of absent neighbours
	Absent     uint64             // number of questions that were not asked, because the target is not in Config.Neighbours
	Known      uint64             // number of questions answered in an earlier run
	Sent       uint64             // number of probes
	PassSent   []uint64           // number of probes in each pass
	Answers    [numAnswers]uint64 // by Answer; without duplicates of answers that settle a question
	Duplicates uint64
	Forged     uint64 // frames that look like answers but have a wrong tag
	Malformed  uint64
	Resets     uint64        // resets sent in answer to SYN-ACKs
	Foreign    uint64        // unrelated frames that the receivers delivered
	RingDrops  uint64        // answers dropped because our rings were full: should be 0
	LinkDrops  uint64        // frames that the interface lost, ours or not
	Slowed     uint64        // how often losses reduced the rate
	Sending    time.Duration // from the first to the last probe, without the waits between passes
	Elapsed    time.Duration
	RTT        Spread
	Finished   bool       // all questions have been asked
	Stopped    Checkpoint // where to resume if not Finished
}

// Found returns the number of positive answers.
func (s *Summary) Found() uint64 {
	return s.Answers[EchoReply] + s.Answers[SYNACK] + s.Answers[Data] + s.Answers[Resolved]
}

// Spread is a summary of the round-trip times.
type Spread struct {
	Count          uint64
	Min, Mean, Max time.Duration
}

// withDefaults returns a copy of c with defaults in place of zero fields.
func (c *Config) withDefaults() Config {
	d := *c
	if d.Shards == 0 {
		d.Shards = 1
	}
	if d.RetryAfter == 0 {
		d.RetryAfter = DefaultRetryAfter
	}
	if d.Wait == 0 {
		d.Wait = DefaultWait
	}
	if d.Window == 0 {
		d.Window = DefaultWindow
	}
	return d
}

// errConfig is wrapped by every error of check.
var errConfig = errors.New("probe: bad configuration")

// check returns an error that wraps errConfig if the configuration is invalid for this number of senders and
// receivers.
func (c *Config) check(senders, receivers int) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", errConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case c.Addresses == nil || c.Addresses.Len() == 0:
		return bad("there is nobody to ask")
	case !c.Source.IsValid() || c.Source.Is4() != c.Addresses.Is4():
		return bad("the source %v is not of the family of the targets", c.Source)
	case slices.ContainsFunc(c.More, func(a netip.Addr) bool { return !a.IsValid() || a.Is4() != c.Source.Is4() }):
		return bad("the sources %v and %v are not of one family", c.Source, c.More)
	case c.Kind.HasPorts() && len(c.Ports) == 0:
		return bad("%v needs ports to ask for", c.Kind)
	case !c.Kind.HasPorts() && len(c.Ports) != 0:
		return bad("%v has no ports", c.Kind)
	case c.Kind.HasPorts() && (c.LocalPorts.First == 0 || c.LocalPorts.Last < c.LocalPorts.First):
		return bad("there are no source ports")
	case len(c.Payload) > MaxPayload:
		return bad("a payload of %d bytes is longer than %d", len(c.Payload), MaxPayload)
	case c.Window < 2*burstSize:
		return bad("a window of %d probes is less than %d", c.Window, 2*burstSize)
	case c.Reset && receivers > senders:
		return bad("%d receivers and %d senders: who is to end the connections", receivers, senders)
	case c.Rate < 0 || c.Retries < 0:
		return bad("a rate or a number of retries below zero")
	}
	return nil
}

// MaxPayload is the longest UDP payload in bytes: what fits into an Ethernet frame with IPv6.
const MaxPayload = 1500 - 40 - 8

// FrameLen returns the length of the frames that the run sends, without the frame check sequence. The senders need
// slots of at least this size.
func (c *Config) FrameLen() int { return newForm(c, tagger{kind: c.Kind}).len() }
