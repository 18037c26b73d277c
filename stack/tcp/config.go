package tcp

import "time"

// Config holds what a set of connections has in common. Its zero value is the
// default of everything. It is shared by pointer and must not change while a
// connection uses it.
type Config struct {
	// ReceiveBuffer is the receive window, in bytes, that a connection starts
	// with (default 64 KiB). MaxReceiveBuffer is what it may grow to when the
	// program reads fast enough to use it (default 4 MiB, at most 1 GiB). Both
	// count from the first byte that the program has not read.
	ReceiveBuffer    int
	MaxReceiveBuffer int

	// MinRTO is the least time that the retransmission timeout allows for
	// variance, and so a floor under it (default 200 ms: RFC 6298 (2.4) says one
	// second, which was right for clocks of 500 ms). MaxRTO bounds it and every
	// other backed-off timer (default 60 s, the least that RFC 6298 (2.5)
	// allows).
	MinRTO, MaxRTO time.Duration

	// DelayedAck is how long an acknowledgment may wait for data to ride on or
	// for a second segment (default 40 ms, at most 500 ms, MUST-58 of RFC 9293
	// section 3.8.6.3).
	DelayedAck time.Duration

	// TimeWait is twice the maximum segment lifetime, the stay in TIME-WAIT
	// (default 60 s; RFC 9293 proposes four minutes).
	TimeWait time.Duration

	// FinWait2 is how long a connection whose program has closed it waits in
	// FIN-WAIT-2 for the peer's FIN (default 60 s). A connection that was only
	// half closed waits for ever.
	FinWait2 time.Duration

	// SynRetries is how often a SYN or SYN-ACK is repeated. The default for a
	// SYN is 7: the attempt fails after 183 s, and RFC 9293 section 3.8.3 wants
	// three minutes at least (MUST-23). For a SYN-ACK, which anybody can make us
	// send and remember, it is 5: 63 s.
	SynRetries int

	// Retries is R2 of RFC 9293 section 3.8.3 in retransmissions without an
	// answer after which the connection ends with ErrTimeout (default 15, about
	// 13 minutes). UserTimeout, if not zero, bounds the same in time instead
	// (RFC 9293 section 3.9.1, the OPEN call's timeout). See SetUserTimeout.
	Retries     int
	UserTimeout time.Duration

	// KeepAlive is how long a connection may be idle before it is probed; zero
	// leaves keep-alive off, as RFC 9293 section 3.8.4 demands of the default.
	// After KeepAliveCount probes (default 9), KeepAliveInterval apart
	// (default 75 s), without an answer the connection ends with ErrTimeout.
	KeepAlive, KeepAliveInterval time.Duration
	KeepAliveCount               int

	// Congestion makes the congestion control of one connection (default
	// NewCubic; NewReno is the other one here).
	Congestion func() Congestion

	// InitialWindow is the congestion window at the start in segments (default
	// 10, RFC 6928).
	InitialWindow int

	// ECN says whether explicit congestion notification (RFC 3168) is used.
	ECN ECNMode

	// NoDelay is what SetNoDelay sets, for connections from the start.
	NoDelay bool

	// NoSACK, NoTimestamps and NoWindowScale leave an option out, for tests and
	// for paths that mangle it.
	NoSACK, NoTimestamps, NoWindowScale bool

	// Counters, if not nil, is counted into. It belongs to whoever owns the
	// connections that have this Config.
	Counters *Counters
}

// ECNMode says when explicit congestion notification is used.
type ECNMode uint8

const (
	ECNOff    ECNMode = iota // never
	ECNAccept                // if the peer asks for it
	ECNAsk                   // if the peer agrees to it or asks for it
)

// Defaults of Config.
const (
	DefaultReceiveBuffer     = 64 << 10
	DefaultMaxReceiveBuffer  = 4 << 20
	DefaultMinRTO            = 200 * time.Millisecond
	DefaultMaxRTO            = 60 * time.Second
	DefaultDelayedAck        = 40 * time.Millisecond
	DefaultTimeWait          = 60 * time.Second
	DefaultFinWait2          = 60 * time.Second
	DefaultSynRetries        = 7
	DefaultSynAckRetries     = 5
	DefaultRetries           = 15
	DefaultKeepAlive         = 2 * time.Hour // for owners that switch it on without a time (MUST-28)
	DefaultKeepAliveInterval = 75 * time.Second
	DefaultKeepAliveCount    = 9
	DefaultInitialWindow     = 10
)

var defaultConfig Config

// maxUnscaled is the largest window without scaling; maxWindow the largest with
// it (RFC 7323 section 2.3).
const (
	maxUnscaled = 1<<16 - 1
	maxWindow   = 1 << 30
	minWindow   = 2048 // less would make every sender creep
)

func (c *Config) maxReceiveBuffer() int {
	return clampBuffer(c.MaxReceiveBuffer, DefaultMaxReceiveBuffer)
}

func (c *Config) receiveBuffer() int {
	return min(clampBuffer(c.ReceiveBuffer, DefaultReceiveBuffer), c.maxReceiveBuffer())
}

func clampBuffer(n, otherwise int) int {
	if n <= 0 {
		n = otherwise
	}
	return min(max(n, minWindow), maxWindow)
}

func (c *Config) minRTO() Time { return duration(c.MinRTO, DefaultMinRTO) }
func (c *Config) maxRTO() Time { return duration(c.MaxRTO, DefaultMaxRTO) }

func (c *Config) delayedAck() Time {
	return min(duration(c.DelayedAck, DefaultDelayedAck), maxDelayedAck)
}

const maxDelayedAck = 500 * time.Millisecond

func (c *Config) synRetries(passive bool) int {
	if passive {
		return number(c.SynRetries, DefaultSynAckRetries)
	}
	return number(c.SynRetries, DefaultSynRetries)
}

func (c *Config) retries() int { return number(c.Retries, DefaultRetries) }

func (c *Config) congestion() Congestion {
	if c.Congestion != nil {
		return c.Congestion()
	}
	return NewCubic()
}

// duration is d, or otherwise if d is not set.
func duration(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// number is n, or otherwise if n is not set.
func number(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}
