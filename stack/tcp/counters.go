package tcp

// Counters counts what connections did, for as many connections as share it.
// Every segment that was dropped is in exactly one of the Drop counters.
type Counters struct {
	SegmentsIn, SegmentsOut uint64 // segments; a larger frame counts as what it is cut into
	Retransmits             uint64 // segments sent again
	FastRecoveries          uint64 // times that loss was repaired without a timeout
	Timeouts                uint64 // retransmission timeouts
	TailProbes              uint64 // loss probes sent (RFC 8985)
	Undos                   uint64 // congestion responses taken back as spurious
	ChallengeAcks           uint64 // RFC 5961
	ResetsOut               uint64 // RST segments sent
	DuplicatesIn            uint64 // segments of which all data had arrived before
	OutOfOrderIn            uint64 // segments with data behind a gap

	DropSequence  uint64 // outside of the window
	DropPAWS      uint64 // timestamp older than what was seen (RFC 7323)
	DropTimestamp uint64 // no timestamp though agreed upon
	DropNoAck     uint64 // no ACK bit in a state that needs it
	DropAck       uint64 // acknowledges what was never sent, or what is long past
	DropRST       uint64 // reset that does not fit (RFC 5961, RFC 1337)
	DropSYN       uint64 // SYN on a synchronized connection
	DropWindow    uint64 // data beyond the window that was offered
	DropRanges    uint64 // data behind more gaps than are kept track of
	DropClosed    uint64 // arrived for a connection that has ended, or data that nobody will read
	DropICMP      uint64 // ICMP message about a segment that is not in flight (RFC 5927)
}
