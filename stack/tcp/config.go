package tcp

import (
	"time"

	"loam/stack/plpmtud"
	"loam/stack/tcp/congestion"
)

// Config holds the settings that a set of connections shares. The zero value selects every default. Config is
// shared by pointer and must not change while a connection uses it.
type Config struct {
	// ReceiveBuffer is the initial receive window of a connection in bytes (default 64 KiB). MaxReceiveBuffer
	// is the size it may grow to if the program reads fast enough to use it (default 4 MiB, at most 1 GiB).
	// Both count from the first byte that the program has not read.
	ReceiveBuffer    int
	MaxReceiveBuffer int

	// MinRTO is the minimum variance term of the retransmission timeout, and therefore a lower bound of the
	// timeout (default 200 ms). RFC 6298 (2.4) requires one second, which suited clocks of 500 ms. MaxRTO
	// bounds the timeout and every other timer with backoff (default 60 s, the minimum that RFC 6298 (2.5)
	// allows).
	MinRTO, MaxRTO time.Duration

	// DelayedAck is how long an acknowledgment may wait for outgoing data that can carry it, or for a second
	// segment (default 40 ms, at most 500 ms, MUST-58 of RFC 9293 section 3.8.6.3).
	DelayedAck time.Duration

	// TimeWait is the time spent in TIME-WAIT, twice the maximum segment lifetime (default 60 s; RFC 9293
	// proposes four minutes).
	TimeWait time.Duration

	// FinWait2 is how long a connection waits in FIN-WAIT-2 for the peer's FIN after Close (default 60 s). A
	// connection that is only half closed waits without limit.
	FinWait2 time.Duration

	// SynRetries is how often a SYN or SYN-ACK is retransmitted. The default for a SYN is 7: the attempt
	// fails after 183 s, and RFC 9293 section 3.8.3 requires at least three minutes (MUST-23). The default
	// for a SYN-ACK is 5 (63 s), because any host can make us send and remember one.
	SynRetries int

	// Retries is R2 of RFC 9293 section 3.8.3: the connection ends with ErrTimeout after this many
	// retransmissions without an answer (default 15, about 13 minutes). UserTimeout, if not zero, sets a time
	// limit instead (RFC 9293 section 3.9.1, the timeout of the OPEN call). See SetUserTimeout.
	Retries     int
	UserTimeout time.Duration

	// KeepAlive is how long a connection may be idle before the peer is probed. Zero switches keep-alive off,
	// which RFC 9293 section 3.8.4 requires as the default. The connection ends with ErrTimeout after
	// KeepAliveCount probes (default 9) without an answer, KeepAliveInterval apart (default 75 s).
	KeepAlive, KeepAliveInterval time.Duration
	KeepAliveCount               int

	// Congestion creates the congestion control of one connection (default congestion.NewCubic): see package
	// congestion.
	Congestion func() Congestion

	// InitialWindow is the initial congestion window in segments (default 10, RFC 6928).
	InitialWindow int

	// ECN selects when explicit congestion notification (RFC 3168) is used.
	ECN ECNMode

	// Probing selects when a connection searches for the path MTU without ICMP messages (RFC 4821). If Paths is not nil, it
	// replaces Probing and keeps the results for later connections.
	Probing plpmtud.Config
	Paths   plpmtud.Paths

	// NoDelay is the initial setting of SetNoDelay.
	NoDelay bool

	// NoSACK, NoTimestamps and NoWindowScale disable an option, for tests and for paths that corrupt it.
	NoSACK, NoTimestamps, NoWindowScale bool

	// Counters, if not nil, receives the counts of all connections that use this Config. It belongs to the
	// owner of these connections and has no lock.
	Counters *Counters
}

// ECNMode selects when explicit congestion notification is used.
type ECNMode uint8

const (
	ECNOff    ECNMode = iota // ECN is never used
	ECNAccept                // ECN is used if the peer requests it
	ECNAsk                   // ECN is requested, and used if the peer requests it
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
	DefaultKeepAlive         = 2 * time.Hour // idle time before the first probe, if the owner enables keep-alive without a time (MUST-28 of RFC 9293)
	DefaultKeepAliveInterval = 75 * time.Second
	DefaultKeepAliveCount    = 9
	DefaultInitialWindow     = 10
)

var defaultConfig Config

// maxUnscaled is the largest window without scaling, maxWindow the largest with scaling (RFC 7323 section
// 2.3). Both are in bytes.
const (
	maxUnscaled = 1<<16 - 1
	maxWindow   = congestion.MaxWindow
	minWindow   = 2048 // minimum buffer size; a smaller window would slow down every sender
)

func (c *Config) maxReceiveBuffer() int {
	return clampBuffer(c.MaxReceiveBuffer, DefaultMaxReceiveBuffer)
}

func (c *Config) receiveBuffer() int {
	return min(clampBuffer(c.ReceiveBuffer, DefaultReceiveBuffer), c.maxReceiveBuffer())
}

// clampBuffer returns a buffer size between minWindow and maxWindow: n, or a default (the
// parameter otherwise) if n is 0.
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
	return congestion.NewCubic()
}

// duration returns d, or a default (the parameter otherwise) if d is 0.
func duration(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// number returns n, or a default (the parameter otherwise) if n is 0.
func number(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}
