package posix

import (
	"sync"
	"time"
	"weak"

	"loam/stack"
	"loam/stack/tcp"
)

// When a process ends, Linux closes its descriptors, and TCP goes on sending
// what was written before. Here the stack ends with the process, so the process
// has to wait for it.

// leaving remembers the connections that were closed last and may still be
// sending. The stack keeps these alive as long as they do; here they are held
// weakly.
type leaving struct {
	mu    sync.Mutex
	conns [1024]weak.Pointer[stack.TCPConn]
	next  int
}

func (l *leaving) add(c *stack.TCPConn) {
	if c.RemoteAddrPort().Addr().IsLoopback() {
		return // both ends are ours
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[l.next%len(l.conns)] = weak.Make(c)
	l.next++
}

// unfinished lists those that have something to send, the end of the stream
// included.
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

// hasSentAll reports whether the peer has acknowledged everything.
func hasSentAll(c *stack.TCPConn) bool {
	if c.Events()&stack.Hangup != 0 && c.Unsent() == 0 {
		return true
	}
	switch c.Info().State {
	case tcp.Closed, tcp.FinWait2, tcp.TimeWait:
		return true
	}
	return false
}

// Exit ends the process as Linux would: it closes all descriptors, and returns
// when peers have acknowledged what was written to them, or when the time is
// up.
func (p *Process) Exit(timeout time.Duration) {
	p.fds.removeAll()
	deadline := time.Now().Add(timeout)
	pause := 100 * time.Microsecond
	for len(p.leaving.unfinished()) > 0 && time.Now().Before(deadline) {
		time.Sleep(pause)
		pause = min(2*pause, 10*time.Millisecond)
	}
}
