package inet

import (
	"sync"
	"weak"

	"loam/stack"
	"loam/stack/tcp"
)

// When a process ends, Linux closes its descriptors, and TCP continues to send the data written before.
// Here the stack ends with the process, so the process waits until the data has been sent.

// leaving holds the most recently closed connections, which may still have data to send. The references
// are weak: the stack keeps a connection alive as long as it sends.
type leaving struct {
	mu    sync.Mutex
	conns [1024]weak.Pointer[stack.TCPConn]
	next  int
}

func (l *leaving) add(c *stack.TCPConn) {
	if c.RemoteAddrPort().Addr().IsLoopback() {
		return // a local connection needs no time: both ends are in this process
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[l.next%len(l.conns)] = weak.Make(c)
	l.next++
}

// unfinished returns the connections that still have data or a FIN to send.
func (l *leaving) unfinished() []*stack.TCPConn {
	l.mu.Lock()
	conns := l.conns
	l.mu.Unlock()
	var list []*stack.TCPConn
	for _, w := range conns {
		if c := w.Value(); c != nil && !hasSentAll(c) {
			list = append(list, c)
		}
	}
	return list
}

// hasSentAll reports whether the peer has acknowledged everything, including the FIN.
func hasSentAll(c *stack.TCPConn) bool {
	if c.Events()&stack.Hangup != 0 && c.Unacknowledged() == 0 {
		return true
	}
	switch c.Info().State {
	case tcp.Closed, tcp.FinWait2, tcp.TimeWait:
		return true
	}
	return false
}
