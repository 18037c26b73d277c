package stack

import "math"

// Orphans are connections that their program has closed but that have not ended, because data is still being sent or the
// peer's FIN has not arrived. A peer that reads one byte at a time can prolong that forever. So the memory of orphans is
// bounded: above the limit, the oldest is reset.
//
// Linux instead limits their number (net.ipv4.tcp_max_orphans) and resets the newest. That was rejected: the newest orphan is
// more likely to be legitimate. The number also says little about memory: an orphan takes from 2 KiB to megabytes, and a
// server that exits closes all its connections at once.

// defaultOrphanBytes is the default of Config.MaxOrphanBytes, in bytes.
const defaultOrphanBytes = 1 << 30

// orphanOverhead is the memory of an orphan in addition to its unacknowledged data, in bytes: its TCPConn, protocol
// machine and table entries.
const orphanOverhead = 2 << 10

// settleOrphan accounts for the memory of an orphan and resets the oldest orphans while the limit is exceeded.
func (sh *shard) settleOrphan(c *TCPConn) {
	if c.evicted {
		return
	}
	if !c.orphan.Listed() {
		c.orphan.Owner = c
		sh.orphans.PushBack(&c.orphan)
	}
	sh.chargeOrphan(c, min(orphanOverhead+c.toSend.Len(), math.MaxUint32))
	for sh.orphanBytes > sh.stack.config.MaxOrphanBytes/len(sh.stack.shards) && sh.orphans.Len() > 0 {
		sh.evictOrphan(sh.orphans.Front())
	}
}

// chargeOrphan sets the memory that counts for an orphan to n bytes.
func (sh *shard) chargeOrphan(c *TCPConn, n int) {
	sh.orphanBytes += n - int(c.charged)
	c.charged = uint32(n)
}

// leaveOrphans removes a connection that ends from the account. It does nothing if the connection is not an orphan.
func (sh *shard) leaveOrphans(c *TCPConn) {
	c.orphan.Remove()
	sh.chargeOrphan(c, 0)
}

// evictOrphan resets an orphan. Its data is freed at once, even if the reset must wait for room in the device.
func (sh *shard) evictOrphan(c *TCPConn) {
	sh.tally.count(TCPOrphanOverflow)
	sh.leaveOrphans(c)
	c.evicted = true
	c.machine.Abort(sh.now)
	c.toSend.Reset()
	sh.mark(c)
}
