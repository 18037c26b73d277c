package probe

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"loam/gen/probe/target"
	"loam/internal/siphash"
)

// Config is what a run is told. Zero values are sensible unless it says
// otherwise.
type Config struct {
	Path
	Kind      Kind
	Addresses *target.Set // whom to ask; of the family of Path.Source
	Ports     []uint16    // to ask each for; SYN and UDP need some, Echo has none
	Payload   []byte      // of UDP
	// LocalPorts are the source ports of SYN and UDP. Answers come back to them, so
	// nobody else may use them while the run lasts.
	LocalPorts Ports
	ID         uint16      // the identifier of echoes: this run's, and nobody else's on this host
	Key        siphash.Key // of the tags: random, and kept to ourselves

	Seed          uint64 // of the order
	Shard, Shards uint64 // this run asks every Shards-th question, from the Shard-th (from 0) on; Shards 0 is 1
	Most          uint64 // questions of it at the most, the first in the order; 0: all

	Rate       float64       // probes a second at the most; 0: as fast as nothing is lost
	Retries    int           // passes after the first, over those who have not settled
	RetryAfter time.Duration // how long a pass waits for answers before the next begins; 0 is DefaultRetryAfter
	Wait       time.Duration // how long the last one does; 0 is DefaultWait
	Window     int           // probes let out before the rings have been emptied again; 0 is DefaultWindow
	All        bool          // results hold every answer, not only the positive ones

	From *Checkpoint // where an earlier run stopped; nil: at the beginning
	// Answered are the results of that run, which are not asked again. It calls yield
	// for each.
	Answered func(yield func(netip.Addr, uint16))

	// Reset ends the connections that SYNs open: for receivers that take the answers
	// away from the kernel, and for a Source that is none of its addresses. Otherwise
	// the kernel does it, which knows of no such connection.
	Reset bool

	// Record takes results, which it may keep until it returns. Mark is told now and
	// then that the run may begin again at c, all results before that having been
	// recorded. Both are called by one goroutine. An error of theirs ends the run.
	Record func([]Result) error
	Mark   func(c Checkpoint) error
	// Losses reads a counter of frames that the interface has lost, for the throttle.
	Losses func() uint64
	// Progress is called about once a second, by the scheduler: it must not block.
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
	Addr     netip.Addr // that was asked
	Port     uint16     // that was asked, 0 for Echo
	Answer   Answer
	Code     uint8         // of ICMP errors
	HopLimit uint8         // that the answer had left (TTL)
	RTT      time.Duration // below 0: not known. It counts from when the batch of the probe was written, at most 64 probes before it left
	From     netip.Addr    // who answered: Addr, except for errors
	At       time.Time     // when the answer came
}

// Checkpoint is a place in a run.
type Checkpoint struct {
	Pass int    // 0 is the first
	Next uint64 // position in it
	Sent uint64 // probes before it, for the summary
}

// Status is how a run is doing.
type Status struct {
	Elapsed time.Duration
	Pass    int     // 0 is the first
	Done    float64 // of this pass, 0 to 1
	Sent    uint64
	Rate    float64 // probes in the last second
	Found   uint64  // positive answers
	Waiting bool    // for late answers
}

// Summary is how a run went.
type Summary struct {
	Asked      uint64    // questions of this shard, or Most
	Known      uint64    // of them, those whose answers are in the results of an earlier run
	Sent       uint64    // probes
	PassSent   []uint64  // of each pass
	Answers    [8]uint64 // by Answer, duplicates left out for those that settle
	Duplicates uint64
	Forged     uint64 // looked like answers, with a wrong tag
	Malformed  uint64
	Resets     uint64        // sent for SYN-ACKs
	Foreign    uint64        // other traffic that the receivers were handed
	RingDrops  uint64        // answers that found no room in our rings: should be 0
	LinkDrops  uint64        // frames that the interface lost, whoever they belonged to
	Slowed     uint64        // times that losses made the run slower
	Sending    time.Duration // from the first to the last probe, waits between passes left out
	Elapsed    time.Duration
	RTT        Spread
	Finished   bool       // nothing is left to be asked
	Stopped    Checkpoint // where to go on otherwise
}

// Found is the number of positive answers.
func (s *Summary) Found() uint64 {
	return s.Answers[EchoReply] + s.Answers[SYNACK] + s.Answers[Data]
}

// Spread is what is known of the round-trip times.
type Spread struct {
	Count          uint64
	Min, Mean, Max time.Duration
}

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

// errConfig is in every error of check.
var errConfig = errors.New("probe: bad configuration")

func (c *Config) check(senders, receivers int) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", errConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case c.Addresses == nil || c.Addresses.Len() == 0:
		return bad("there is nobody to ask")
	case !c.Source.IsValid() || c.Source.Is4() != c.Addresses.Is4():
		return bad("the source %v is not of the family of the targets", c.Source)
	case c.Kind != Echo && len(c.Ports) == 0:
		return bad("%v needs ports to ask for", c.Kind)
	case c.Kind == Echo && len(c.Ports) != 0:
		return bad("echoes have no ports")
	case c.Kind != Echo && (c.LocalPorts.First == 0 || c.LocalPorts.Last < c.LocalPorts.First):
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

// MaxPayload is the longest UDP payload in bytes: what fits an Ethernet frame over
// IPv6.
const MaxPayload = 1500 - 40 - 8

// FrameLen is the length of the frames that a run of c sends, without the frame
// check sequence: what its senders need slots for.
func (c *Config) FrameLen() int { return newForm(c, tagger{kind: c.Kind}).len() }
