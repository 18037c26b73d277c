package stack

import (
	"net/netip"
	"sync"
	"time"

	"loam/stack/tcp"
)

// TCPOptions are the options of a connection, or of a listener, whose
// connections inherit them. The zero value is the default of each; socket(7),
// ip(7) and tcp(7) name what is in the comments.
type TCPOptions struct {
	Delay             bool          // the opposite of TCP_NODELAY, which Go programs expect to be on
	Cork              bool          // TCP_CORK
	QuickAck          bool          // TCP_QUICKACK: 1
	DelayAck          bool          // TCP_QUICKACK: 0; neither: quick at first, and as the connection is used
	KeepAlive         bool          // SO_KEEPALIVE
	KeepAliveIdle     time.Duration // TCP_KEEPIDLE; zero: two hours
	KeepAliveInterval time.Duration // TCP_KEEPINTVL; zero: 75 s
	KeepAliveCount    int           // TCP_KEEPCNT; zero: 9
	UserTimeout       time.Duration // TCP_USER_TIMEOUT; zero: none
	FinWait2          time.Duration // TCP_LINGER2: how long the peer may take to end what Close has; zero: as tcp.Config says; below: no time
	ReceiveBuffer     int           // SO_RCVBUF in bytes; zero: grows as needed
	SendBuffer        int           // SO_SNDBUF in bytes; zero: grows as needed
	UnsentLow         int           // TCP_NOTSENT_LOWAT in bytes; zero, or less: none
	MaxSegment        int           // TCP_MAXSEG, for connections that are not yet open; zero: what the path allows
	DeferAccept       time.Duration // TCP_DEFER_ACCEPT: how long connections that bring no data are kept from Accept
	SynRetries        int           // TCP_SYNCNT, for connections that are not yet begun; zero: as tcp.Config says
	TTL               uint8         // IP_TTL; zero: 64
	TOS               uint8         // IP_TOS; the ECN bits are the stack's
	HopLimit          uint8         // IPV6_UNICAST_HOPS; zero: as routers say, or 64
	TrafficClass      uint8         // IPV6_TCLASS; the ECN bits are the stack's
	Device            *Interface    // SO_BINDTODEVICE: segments go and come by this one; nil: by any
	SoftErrors        bool          // IP_RECVERR: errors that may pass are told at once, and end attempts to connect
	SoftErrors6       bool          // IPV6_RECVERR: the same for peers of IPv6
	V6Only            bool          // IPV6_V6ONLY: bound to all addresses of IPv6, not those of IPv4 as well
	UrgentInline      bool          // SO_OOBINLINE
	Stamps            bool          // SO_TIMESTAMP: Arrived knows when bytes came
	Linger            bool          // SO_LINGER
	LingerTime        time.Duration // with Linger; zero: Close resets the connection
	ReuseAddr         bool          // SO_REUSEADDR
	ReusePort         bool          // SO_REUSEPORT
}

const defaultTTL = 64

// mss is the payload of a segment on a path that allows path bytes.
func (o *TCPOptions) mss(path int) int {
	if o.MaxSegment > 0 {
		return min(path, o.MaxSegment)
	}
	return path
}

// softErrors reports whether errors about a peer that may pass are told.
func (o TCPOptions) softErrors(peer netip.Addr) bool {
	if peer.Is6() {
		return o.SoftErrors6
	}
	return o.SoftErrors
}

// config is what a connection to be opened takes of c.
func (o *TCPOptions) config(c *tcp.Config) *tcp.Config {
	if o.SynRetries <= 0 {
		return c
	}
	own := *c
	own.SynRetries = o.SynRetries
	return &own
}

// optionBox holds the options that a program sets until the shard applies them
// to the machine.
type optionBox struct {
	mu sync.Mutex
	o  TCPOptions
}

// Options returns the options.
func (c *TCPConn) Options() TCPOptions {
	c.options.mu.Lock()
	defer c.options.mu.Unlock()
	return c.options.o
}

// SetOptions has f change the options.
func (c *TCPConn) SetOptions(f func(*TCPOptions)) error {
	if c.status.Load()&statusClosed != 0 {
		return ErrClosed
	}
	c.options.mu.Lock()
	f(&c.options.o)
	c.options.mu.Unlock()
	c.askNow(wishOptions)
	return nil
}

// abortive reports whether Close is to reset the connection (SO_LINGER with no
// time).
func (b *optionBox) abortive() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.o.Linger && b.o.LingerTime == 0
}

// apply hands the options to the machine. It runs on the shard.
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
	c.ttl, c.tos = o.TTL, o.TOS&^3
	if c.remote.Addr().Is6() {
		c.ttl, c.tos = o.HopLimit, o.TrafficClass&^3
	}
	c.stamped = o.Stamps
	if c.device != o.Device {
		c.device, c.path = o.Device, path{}
	}
}
