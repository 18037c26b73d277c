package stack

// Connections that their program has closed and that have not ended: data is on its way,
// or the peer's end is. A peer that takes what was sent a byte at a time can draw that
// out for ever, and nobody waits for it but memory. So there is a limit: beyond it the
// oldest is reset (as Linux's net.ipv4.tcp_max_orphans has it, but that resets the
// newest, which is more likely to be somebody's).

// defaultOrphans is the limit for each shard.
const defaultOrphans = 4096

// orphaned notes that a connection has no program any more.
func (sh *shard) orphaned(c *TCPConn) {
	if c.orphan.Listed() {
		return
	}
	if sh.orphans.Len() >= sh.stack.config.MaxOrphans {
		sh.tally.count(TCPOrphanOverflow)
		oldest := sh.orphans.Front()
		oldest.orphan.Remove()
		oldest.machine.Abort(sh.now)
		sh.mark(oldest)
	}
	c.orphan.Owner = c
	sh.orphans.PushBack(&c.orphan)
}
