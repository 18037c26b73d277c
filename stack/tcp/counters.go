package tcp

// Counter identifies one entry of Counters.
type Counter uint8

// The counters. Every dropped segment is counted in exactly one Drop counter.
const (
	SegmentsIn     Counter = iota // segments received
	SegmentsOut                   // segments sent; a larger frame counts as the segments it is cut into
	Retransmits                   // segments retransmitted
	FastRecoveries                // times loss was repaired without a timeout
	Timeouts                      // retransmission timeouts that have expired
	TailProbes                    // tail loss probes sent (RFC 8985)
	BlackHoles                    // black holes suspected (RFC 4821)
	MTUProbes                     // probes of a larger path MTU delivered
	MTUProbesLost                 // probes of a larger path MTU lost
	Undos                         // congestion responses that were undone, because no data was lost
	ChallengeAcks                 // challenge acknowledgments sent (RFC 5961)
	ChallengeLimit                // challenge acknowledgments suppressed by the rate limit
	ResetsOut                     // resets sent
	DuplicatesIn                  // segments whose data had all arrived earlier
	OutOfOrderIn                  // segments with data after a gap

	DropSequence  // segment outside the window
	DropPAWS      // segment with a timestamp older than one already received (RFC 7323)
	DropTimestamp // segment without a timestamp, although timestamps were negotiated
	DropNoAck     // segment without the ACK bit in a state that requires it
	DropAck       // segment that acknowledges data that was never sent, or was acknowledged long ago
	DropRST       // reset whose number does not match (RFC 5961, RFC 1337)
	DropSYN       // SYN in the window of a connection, or no SYN where one is required
	DropRanges    // segment with data after more gaps than the connection tracks
	DropGone      // segment with data after the program has closed the connection
	DropClosed    // segment that arrived after the connection ended
	DropICMP      // ICMP error about a segment that is not in flight (RFC 5927)

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
	BlackHoles:     "black-holes",
	MTUProbes:      "mtu-probes",
	MTUProbesLost:  "mtu-probes-lost",
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
