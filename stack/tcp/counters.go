package tcp

// Counter identifies one entry of Counters.
type Counter uint8

// The counters. Every dropped segment is counted in exactly one Drop counter.
const (
	SegmentsIn     Counter = iota // segments received
	SegmentsOut                   // segments sent; a larger frame counts as the segments it is cut into
	Retransmits                   // segments retransmitted
	FastRecoveries                // times loss was repaired without a timeout
	Timeouts                      // retransmission timeouts
	TailProbes                    // loss probes sent (RFC 8985)
	Undos                         // congestion responses undone as spurious
	ChallengeAcks                 // challenge acknowledgments sent (RFC 5961)
	ChallengeLimit                // challenge acknowledgments suppressed by the rate limit
	ResetsOut                     // resets sent
	DuplicatesIn                  // segments whose data had all arrived before
	OutOfOrderIn                  // segments with data behind a gap

	DropSequence  // outside the window
	DropPAWS      // timestamp older than one already seen (RFC 7323)
	DropTimestamp // timestamp missing although negotiated
	DropNoAck     // no ACK bit in a state that needs it
	DropAck       // acknowledges data never sent, or acknowledged long ago
	DropRST       // reset that does not match (RFC 5961, RFC 1337)
	DropSYN       // SYN in the window of a connection, or missing where one is required
	DropRanges    // data behind more gaps than can be tracked
	DropGone      // data after the program has closed the connection
	DropClosed    // arrived after the connection ended
	DropICMP      // ICMP message about a segment not in flight (RFC 5927)

	NumCounters
)

// Counters counts events of all connections that share it through their Config. It has no lock and belongs to
// the owner of these connections.
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

// String returns the name of the counter, as shown to users.
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
