package stack

import (
	"math"
	"time"
)

// The size of the send buffer: how much data a program may write before the peer has acknowledged it.

// Sizes of the send ring in bytes. It grows with the congestion window unless SO_SNDBUF is set.
const (
	minSendBuffer        = 256 << 10 // initial size; Config.MaxSendBuffer may be smaller
	shortSendBuffer      = 4 << 20   // maximum on a short path
	defaultMaxSendBuffer = 16 << 20
)

// maxWakeRoom is the free space at which a writer is woken at the latest, in bytes. Waiting for a larger part of a large ring
// would leave the connection without data until the writer runs.
const maxWakeRoom = 1 << 20

// hasRoom reports whether a write is worthwhile. A quarter of the ring, or maxWakeRoom, must be free, so that a writer is not
// woken for each acknowledged segment. With TCP_NOTSENT_LOWAT, the unsent data must be below half of the option's value.
func (c *TCPConn) hasRoom() bool {
	limit := c.toSend.Limit()
	enough := min(limit/4, maxWakeRoom)
	if low := c.unsentLow.Load(); low != 0 {
		enough = min(int(low/2)+1, limit/2)
	}
	return c.toSend.Room() >= max(enough, 1)
}

// applySendBuffer applies SO_SNDBUF and TCP_NOTSENT_LOWAT. It runs on the shard.
func (c *TCPConn) applySendBuffer(o *TCPOptions) {
	if o.SendBuffer != 0 {
		c.sendLimit, c.fixedSend = uint32(min(max(o.SendBuffer, 0), math.MaxUint32)), true
	}
	c.unsentLow.Store(uint32(max(o.UnsentLow, 0)))
	c.limitSend()
}

// shortPath is the round-trip time below which shortSendBuffer suffices: 4 MiB per 2 ms is 16 Gbit/s.
const shortPath = 2 * time.Millisecond

// growSendBuffer raises the limit of the send ring to twice the congestion window. On a short path the congestion window means
// little, because nothing is lost there, and a ring larger than the processor's caches only slows the transfer.
func (c *TCPConn) growSendBuffer() {
	want := min(2*c.machine.CongestionWindow(), c.shard.stack.config.MaxSendBuffer, math.MaxUint32)
	if c.machine.MinRTT() < shortPath {
		want = min(want, shortSendBuffer)
	}
	if c.fixedSend || want <= int(c.sendLimit) {
		return
	}
	c.sendLimit = uint32(want)
	c.limitSend()
}

// limitSend sets the limit of the ring. With TCP_NOTSENT_LOWAT, it is at most the data
// that may be sent now plus that option's value. It runs on the shard.
func (c *TCPConn) limitSend() {
	limit := int(c.sendLimit)
	if low := int(c.unsentLow.Load()); low != 0 {
		limit = min(limit, c.machine.Reach()+low)
	}
	c.toSend.SetLimit(limit)
}
