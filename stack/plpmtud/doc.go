// Package plpmtud searches for the path MTU without ICMP messages (packetization layer path MTU discovery, RFC 4821). The sender
// probes: it sends one packet that is larger than the others. If the probe is delivered, the path carries its size. If only the
// probe is lost, the path probably does not.
//
// A Search is the machine for one connection. It chooses the sizes, and the owner, package tcp, decides when there is enough data
// for a probe and whether the probe was delivered. All sizes are sizes of IP packets in bytes. A Table keeps results for later
// connections to the same host.
//
// A Search has no deadline: a probe carries the data of a program, so it waits until the program sends. Next compares the times.
package plpmtud

import "time"

// Mode selects when a connection searches.
type Mode uint8

// Values of Mode. The default is OnBlackHole (decision 77).
const (
	OnBlackHole Mode = iota // after repeated timeouts of a large segment
	Off                     // never; a path that drops large packets without a report stops the connection
	Always                  // from the beginning, starting at the base size
)

// Config holds the settings of searches. A zero selects the default of a field.
type Config struct {
	Mode Mode

	// BaseMSS is the TCP payload, without options, to which a connection falls back (default 1024). If that is lost as well,
	// the size is halved, down to Floor (default 536). For IPv6, no size is below the minimum MTU of 1280.
	BaseMSS, Floor int

	// Interval is the time after which a larger size is tried again (default ten minutes). A search ends if the sizes that
	// are left span less than Threshold bytes (default 8).
	Interval  time.Duration
	Threshold int
}

// Defaults of Config. Every host accepts the default of Floor (RFC 9293 section 3.7.1).
const (
	DefaultBaseMSS   = 1024
	DefaultFloor     = 536
	DefaultInterval  = 10 * time.Minute
	DefaultThreshold = 8
)

const (
	minPacket6 = 1280      // minimum MTU of IPv6 (RFC 8200 section 5)
	maxPacket  = 1<<16 - 1 // larger packets are not sent

	// maxProbes is the number of lost probes that show that the path does not carry their size. One loss may have another
	// reason (MAX_PROBES of RFC 8899 section 5.1.2).
	maxProbes = 3
)

// orDefault returns n, or a default (the parameter otherwise) if n is not positive.
func orDefault[T int | time.Duration](n, otherwise T) T {
	if n <= 0 {
		return otherwise
	}
	return n
}
