package stack

import (
	"errors"
	"io"
)

// How a stack ends: first the shards take in nothing new and reset what they
// have; then sockets are closed, which wakes the programs that wait in them; then
// devices, so that nothing comes in any more; then the shards.

// Close ends every connection with a reset, closes every socket and every
// device, and returns when all goroutines of the stack have ended.
func (s *Stack) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.crew.Wait()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	sockets := make(map[io.Closer]struct{})
	for _, sh := range s.shards {
		sh.request(func(sh *shard) { sh.quit(sockets) })
	}
	for _, c := range s.rawConns() {
		sockets[c] = struct{}{}
	}
	for c := range sockets {
		c.Close()
	}
	var errs []error
	for _, ifc := range s.tables.Load().interfaces {
		errs = append(errs, ifc.close())
	}
	for _, sh := range s.shards {
		sh.stop()
	}
	s.crew.Wait()
	return errors.Join(errs...)
}

// quit ends all connections, takes no new ones, and adds the other sockets that
// the shard knows.
func (sh *shard) quit(sockets map[io.Closer]struct{}) {
	sh.closing = true
	for _, c := range sh.conns {
		c.machine.Abort(sh.now)
		sh.mark(c)
	}
	sh.output()
	for _, c := range sh.conns {
		sh.abandon(c)
	}
	for _, list := range sh.listeners {
		for _, l := range list {
			sockets[l] = struct{}{}
		}
	}
	for _, list := range sh.sockets {
		for _, c := range list {
			sockets[c] = struct{}{}
		}
	}
	for _, list := range sh.pings {
		for _, p := range list {
			sockets[p] = struct{}{}
		}
	}
}

// abandon ends a connection although its machine still has something to say.
func (sh *shard) abandon(c *TCPConn) {
	old := c.status.Load()
	c.change(sh, old, old|statusEnded)
	sh.remove(c)
}

// enter has f run by every shard, to make a socket known to it. It reports false
// if the stack is being closed; then some shards may know the socket.
func (s *Stack) enter(f func(*shard)) bool {
	open := true
	ended := !s.onEach(func(sh *shard) {
		if sh.closing {
			open = false
			return
		}
		f(sh)
	})
	return open && !ended
}
