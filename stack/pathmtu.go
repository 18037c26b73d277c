package stack

// heedPath applies the current path MTU to the connection.
func (c *TCPConn) heedPath(sh *shard) {
	c.pathSeen = sh.stack.paths.At(sh.now)
	c.narrow = sh.stack.paths.IsNarrow(sh.now, c.remote.Addr())
	c.machine.SetMSS(sh.now, sh.mss(c.device, c.machine.ID()))
}
