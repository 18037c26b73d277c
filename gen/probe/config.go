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
	Addresses *target.Set // targets; of the same IP version as Path.Source
	// Neighbours holds the Ethernet addresses of targets that are on the same link. If it is not nil, it replaces
	// Path.NextHopMAC, and targets that are not in it are not probed.
	Neighbours map[netip.Addr]wire.MAC
	Ports      []uint16 // ports to probe on each target; required for SYN and UDP, empty for the other kinds
	Payload    []byte   // UDP payload
	// LocalPorts are the source ports of SYN and UDP probes. Answers arrive at these ports, so no other program may use
	// them during the run.
	LocalPorts Ports
	ID         uint16      // identifier of echo requests; must be unique on this host
	Key        siphash.Key // key with which the tags are computed; it must be random and secret

	Seed          uint64 // determines the order of the questions; a question is one address and port to probe
	Shard, Shards uint64 // this run asks every Shards-th question, beginning with number Shard (from 0); Shards 0 means 1
	Most          uint64 // maximum number of questions to ask, in order; 0: all

	Rate       float64       // maximum number of probes per second; 0: as fast as possible without loss
	Retries    int           // number of further passes, which repeat the unanswered questions
	RetryAfter time.Duration // time between passes, to wait for answers; 0: DefaultRetryAfter
	Wait       time.Duration // time to wait for answers after the last pass; 0: DefaultWait
	Window     int           // maximum number of probes that are sent before the receive rings are emptied; 0: DefaultWindow
	All        bool          // report all answers, not only positive ones

	From *Checkpoint // position at which an earlier run stopped; nil: start from the beginning
	// Answered calls yield for each result of the earlier run. The questions of these results are not asked again.
	Answered func(yield func(netip.Addr, uint16))

	// Reset makes the run send resets, which end the connections that SYN probes begin. It is needed if the receivers
	// take the answers away from the kernel, or if Source is not an address of the kernel. Otherwise the kernel sends
	// the resets itself, because it has no record of the connections.
	Reset bool

	// Record is called with results. The slice is valid only during the call. Mark is called from time to time with a
	// checkpoint c, from which the run can be resumed; all earlier results have been recorded before. Both are called
	// in the same goroutine. An error of either ends the run.
	Record func([]Result) error
	Mark   func(c Checkpoint) error
	// Losses returns the number of frames that were lost on this machine. The run reduces its rate when the number
	// grows.
	Losses func() uint64
	// Progress is called about once per second, in the scheduler's goroutine. It must not block.
	Progress func(Status)
}

// Defaults of Config.
const (
	DefaultRetryAfter = time.Second
	DefaultWait       = 8 * time.Second
	DefaultWindow     = 8192
)

// Result is one answer, with the question (the probed address and port) to which it belongs.
type Result struct {
	Addr     netip.Addr // the probed address
	Port     uint16     // the probed port, 0 for kinds without ports
	Answer   Answer
	Code     uint8         // code of an ICMP error
	HopLimit uint8         // remaining hop limit or TTL of the answer
	RTT      time.Duration // round-trip time, from when the probe's batch of up to 64 probes is written; negative: unknown
	From     netip.Addr    // sender of the answer: Addr, except for errors
	MAC      wire.MAC      // Ethernet address of a neighbour, for the kind Neighbour
	At       time.Time     // time of arrival
}

// Checkpoint is a position in a run.
type Checkpoint struct {
	Pass int    // 0 is the first pass
	Next uint64 // number of the next position in the pass
	Sent uint64 // number of probes sent so far, for the summary
}

// Status is the progress of a run.
type Status struct {
	Elapsed time.Duration
	Pass    int     // 0 is the first pass
	Done    float64 // part of this pass that is completed, 0 to 1
	Sent    uint64
	Rate    float64 // probes per second during the last second
	Found   uint64  // number of positive answers
	Waiting bool    // waiting for late answers
}

// Summary is the result of a run.
type Summary struct {
	Asked      uint64             // number of questions (an address and a port) in this shard, limited by Most; without the Absent ones
	Absent     uint64             // number of questions that were not asked, because their target is not in Config.Neighbours
	Known      uint64             // number of probes whose answers an earlier run has stored
	Sent       uint64             // number of probes sent
	PassSent   []uint64           // number of probes in each pass
	Answers    [numAnswers]uint64 // number of answers by kind; later answers to a settled question are not counted
	Duplicates uint64
	Forged     uint64 // frames that have the form of an answer but a wrong tag
	Malformed  uint64
	Resets     uint64        // resets sent in answer to SYN-ACKs
	Foreign    uint64        // frames that have nothing to do with the run, but that the receivers delivered
	RingDrops  uint64        // answers that were dropped because a receive ring was full; should be 0
	LinkDrops  uint64        // frames that the interface has lost, of this run or of other traffic
	Slowed     uint64        // number of times that losses have reduced the rate
	Sending    time.Duration // time from the first to the last probe, without the waits between passes
	Elapsed    time.Duration
	RTT        Spread
	Finished   bool       // all questions have been asked
	Stopped    Checkpoint // position at which to resume, if not Finished
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

// check returns an error that wraps errConfig if the configuration is invalid for the given numbers of senders and
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

// MaxPayload is the maximum length of a UDP payload in bytes: it fits into an Ethernet frame with IPv6.
const MaxPayload = 1500 - 40 - 8

// FrameLen returns the length of the frames that the run sends, without the frame check sequence. The senders need
// slots of at least this size.
func (c *Config) FrameLen() int { return newForm(c, tagger{kind: c.Kind}).len() }
