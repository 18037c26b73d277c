package stack

import (
	"errors"
	"io"

	"loam/stack/demux"
)

// The end of a stack. First the shards reject new connections and reset existing ones. Then sockets are closed, which wakes
// blocked programs. Then devices are closed, so that nothing more arrives. The shards end last.

// Close resets every connection, closes every socket and every device, and waits until
// all goroutines of the stack have ended. It returns the errors of closing the devices.
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

// quit resets the connections of the shard, rejects new ones, and adds the shard's other sockets to sockets.
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
	for l := range sh.listeners.All() {
		sockets[l] = struct{}{}
	}
	for _, table := range [...]*demux.Table[*UDPConn]{&sh.sockets, &sh.lites} {
		for c := range table.All() {
			sockets[c] = struct{}{}
		}
	}
	for _, list := range sh.pings {
		for _, p := range list {
			sockets[p] = struct{}{}
		}
	}
}

// abandon removes a connection although its TCP state machine (package tcp) still has something to send.
func (sh *shard) abandon(c *TCPConn) {
	old := c.status.Load()
	c.change(sh, old, old|statusEnded)
	sh.remove(c)
}

// enter runs f on every shard to register a socket. It returns false if the stack is
// being closed; some shards may have run f even then.
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
