package stack

import (
	"net/netip"
	"sync"
	"time"

	"loam/stack/tcp"
	"loam/stack/tcp/congestion"
)

// TCPOptions are the options of a connection, or of a listener, whose connections inherit them. The zero value selects the
// defaults. The comments name the options of socket(7), ip(7), ipv6(7) and tcp(7).
type TCPOptions struct {
	Delay             bool          // inverse of TCP_NODELAY, which Go programs expect to be on
	Cork              bool          // TCP_CORK: segments that are not full are held back
	QuickAck          bool          // TCP_QUICKACK is 1: received data is acknowledged at once
	DelayAck          bool          // TCP_QUICKACK is 0: acknowledgments are delayed; if neither is set: quick at first, then adaptive
	KeepAlive         bool          // SO_KEEPALIVE: an idle connection is probed
	FastOpenNoCookie  bool          // TCP_FASTOPEN_NO_COOKIE: data of a SYN needs no cookie, which is safe only between trusted hosts
	FastOpen          uint16        // TCP_FASTOPEN: limit on connections of a listener that Fast Open has opened and whose handshake is not complete; zero: no Fast Open
	KeepAliveIdle     time.Duration // TCP_KEEPIDLE: idle time before the first probe; zero: two hours
	KeepAliveInterval time.Duration // TCP_KEEPINTVL: time between probes; zero: 75 s
	KeepAliveCount    int           // TCP_KEEPCNT: number of probes without an answer that end the connection; zero: 9
	UserTimeout       time.Duration // TCP_USER_TIMEOUT: limit on the time that sent data stays unacknowledged; zero: none
	FinWait2          time.Duration // TCP_LINGER2: limit on FIN-WAIT-2 after Close; zero: as in tcp.Config; negative: none at all
	ReceiveBuffer     int           // SO_RCVBUF: size of the receive buffer in bytes; zero: it grows as needed
	SendBuffer        int           // SO_SNDBUF: size of the send buffer in bytes; zero: it grows as needed
	Congestion        string        // TCP_CONGESTION: one of congestion.Names; empty: as in tcp.Config
	MaxPacingRate     uint64        // SO_MAX_PACING_RATE: limit on the rate of sending in bytes per second; zero: none
	UnsentLow         int           // TCP_NOTSENT_LOWAT: limit on unsent data in the send buffer, in bytes; zero or negative: none
	MaxSegment        int           // TCP_MAXSEG, set before the connection is opened; zero: as the path allows
	DeferAccept       time.Duration // TCP_DEFER_ACCEPT: how long Accept withholds connections without data
	SynRetries        int           // TCP_SYNCNT, set before the connection is opened; zero: as in tcp.Config
	LingerTime        time.Duration // time of SO_LINGER; zero: Close resets the connection
	Device            *Interface    // SO_BINDTODEVICE: use only this interface; nil: any
	TTL               uint8         // IP_TTL: time to live of IPv4 packets; zero: 64
	TOS               uint8         // IP_TOS: type of service of IPv4 packets; the stack sets the ECN bits
	HopLimit          uint8         // IPV6_UNICAST_HOPS; zero: as advertised by routers, or 64
	TrafficClass      uint8         // IPV6_TCLASS: traffic class of IPv6 packets; the stack sets the ECN bits
	SoftErrors        bool          // IP_RECVERR: transient errors are reported at once and abort a connection attempt
	SoftErrors6       bool          // IPV6_RECVERR: transient errors of IPv6 peers are reported at once and abort a connection attempt
	V6Only            bool          // IPV6_V6ONLY: a socket bound to :: does not accept IPv4
	UrgentInline      bool          // SO_OOBINLINE: the urgent byte stays in the stream
	Stamps            bool          // SO_TIMESTAMP: Arrived returns when bytes arrived
	Linger            bool          // SO_LINGER: LingerTime applies
	ReuseAddr         bool          // SO_REUSEADDR: shares its port with sockets that have this option, unless one listens
	ReusePort         bool          // SO_REUSEPORT: shares its port with sockets of the same Owner that have this option
	Owner             uint32        // effective user ID of the program at the creation of the socket
}

const defaultTTL = 64

// mss returns the payload of a segment. The parameter path is the payload that the path allows. Both are in bytes.
func (o *TCPOptions) mss(path int) int {
	if o.MaxSegment > 0 {
		return min(path, o.MaxSegment)
	}
	return path
}

// check validates the options. Errors: ErrInvalid for an unknown congestion control.
func (o *TCPOptions) check() error {
	if o.Congestion != "" && congestion.Named(o.Congestion) == nil {
		return ErrInvalid
	}
	return nil
}

// applyCongestion sets the congestion control and the pacing rate of a connection's TCP machine (package tcp).
func (o *TCPOptions) applyCongestion(now tcp.Time, m *tcp.Conn) {
	if o.Congestion != "" && o.Congestion != m.Congestion() {
		m.SetCongestion(now, congestion.Named(o.Congestion)())
	}
	m.SetMaxPacingRate(now, o.MaxPacingRate)
}

// softErrors reports whether transient errors about the peer are reported.
func (o TCPOptions) softErrors(peer netip.Addr) bool {
	if peer.Is6() {
		return o.SoftErrors6
	}
	return o.SoftErrors
}

// config returns the configuration of a new connection: c, with SynRetries of the options if set.
func (o *TCPOptions) config(c *tcp.Config) *tcp.Config {
	if o.SynRetries <= 0 {
		return c
	}
	own := *c
	own.SynRetries = o.SynRetries
	return &own
}

// optionBox holds the options set by a program until the shard applies them to the connection's TCP machine (package tcp).
type optionBox struct {
	mu sync.Mutex
	o  TCPOptions
}

// Options returns a copy of the options.
func (c *TCPConn) Options() TCPOptions {
	c.options.mu.Lock()
	defer c.options.mu.Unlock()
	return c.options.o
}

// SetOptions calls f to change the options, and applies the result in the shard. Errors: ErrClosed; ErrInvalid for an unknown
// congestion control, in which case nothing changes.
func (c *TCPConn) SetOptions(f func(*TCPOptions)) error {
	if c.status.Load()&statusClosed != 0 {
		return ErrClosed
	}
	if err := c.options.change(f); err != nil {
		return err
	}
	c.askNow(wishOptions)
	return nil
}

// change calls f on a copy of the options and stores the copy if it is valid.
func (b *optionBox) change(f func(*TCPOptions)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.o
	f(&o)
	if err := o.check(); err != nil {
		return err
	}
	b.o = o
	return nil
}

// abortive reports whether Close resets the connection: SO_LINGER with a time of zero.
func (b *optionBox) abortive() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.o.Linger && b.o.LingerTime == 0
}

// apply applies the options to the connection's TCP state machine. It runs on the shard.
func (b *optionBox) apply(now tcp.Time, c *TCPConn) {
	b.mu.Lock()
	o := b.o
	b.mu.Unlock()
	m := c.machine
	m.SetNoDelay(now, !o.Delay)
	m.SetCork(now, o.Cork)
	if o.QuickAck || o.DelayAck {
		m.SetQuickAck(now, o.QuickAck)
	}
	m.SetUserTimeout(now, o.UserTimeout)
	m.SetFinWait2(now, o.FinWait2)
	idle := time.Duration(0)
	if o.KeepAlive {
		idle = max(o.KeepAliveIdle, time.Second)
		if o.KeepAliveIdle == 0 {
			idle = tcp.DefaultKeepAlive
		}
	}
	m.SetKeepAlive(now, idle, o.KeepAliveInterval, o.KeepAliveCount)
	if o.ReceiveBuffer != 0 {
		m.SetMaxReceiveBuffer(now, o.ReceiveBuffer)
	}
	c.applySendBuffer(&o)
	o.applyCongestion(now, m)
	c.ttl, c.tos = o.TTL, o.TOS&^3
	if c.remote.Addr().Is6() {
		c.ttl, c.tos = o.HopLimit, o.TrafficClass&^3
	}
	c.stamped = o.Stamps
	if c.device != o.Device {
		c.device, c.path = o.Device, path{}
	}
}
