package tcp

// Counter names one thing that connections count.
type Counter uint8

// What is counted. Every segment that is dropped is in exactly one of the drop
// counters.
const (
	SegmentsIn     Counter = iota // segments received
	SegmentsOut                   // segments sent; a larger frame counts as what it is cut into
	Retransmits                   // segments sent again
	FastRecoveries                // times that loss was repaired without a timeout
	Timeouts                      // retransmission timeouts
	TailProbes                    // loss probes sent (RFC 8985)
	Undos                         // congestion responses taken back as spurious
	ChallengeAcks                 // sent (RFC 5961)
	ChallengeLimit                // not sent, because the last ones are too recent
	ResetsOut                     // resets sent
	DuplicatesIn                  // segments of which all data had arrived before
	OutOfOrderIn                  // segments with data behind a gap

	DropSequence  // outside of the window
	DropPAWS      // timestamp older than what was seen (RFC 7323)
	DropTimestamp // no timestamp though agreed upon
	DropNoAck     // no ACK bit in a state that needs it
	DropAck       // acknowledges what was never sent, or what is long past
	DropRST       // reset that does not fit (RFC 5961, RFC 1337)
	DropSYN       // SYN in the window of a connection, or none where one is needed
	DropRanges    // data behind more gaps than are kept track of
	DropGone      // data that no program will read any more
	DropClosed    // arrived after the connection had ended
	DropICMP      // ICMP message about a segment that is not in flight (RFC 5927)

	NumCounters
)

// Counters counts for as many connections as share it through their Config. It
// has no lock: it belongs to the owner of these connections.
type Counters [NumCounters]uint64

var counterNames = [NumCounters]string{
	SegmentsIn:     "segments-in",
	SegmentsOut:    "segments-out",
	Retransmits:    "retransmits",
	FastRecoveries: "fast-recoveries",
	Timeouts:       "timeouts",
	TailProbes:     "tail-probes",
	Undos:          "undos",
	ChallengeAcks:  "challenge-acks",
	ChallengeLimit: "challenge-limit",
	ResetsOut:      "resets-out",
	DuplicatesIn:   "duplicates-in",
	OutOfOrderIn:   "out-of-order-in",
	DropSequence:   "drop-sequence",
	DropPAWS:       "drop-paws",
	DropTimestamp:  "drop-timestamp",
	DropNoAck:      "drop-no-ack",
	DropAck:        "drop-ack",
	DropRST:        "drop-rst",
	DropSYN:        "drop-syn",
	DropRanges:     "drop-ranges",
	DropGone:       "drop-gone",
	DropClosed:     "drop-closed",
	DropICMP:       "drop-icmp",
}

// String is the name under which a counter is shown.
func (k Counter) String() string {
	if k < NumCounters {
		return counterNames[k]
	}
	return "unknown counter"
}

func (c *Conn) count(k Counter) { c.countN(k, 1) }

func (c *Conn) countN(k Counter, n int) {
	if c.cfg.Counters != nil {
		c.cfg.Counters[k] += uint64(n)
	}
}
