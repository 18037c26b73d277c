package stack

import (
	"sync"

	"loam/stack/queue"
)

// inbox holds the requests of other goroutines to a shard: lists under a lock that is held briefly, and a doorbell (a
// channel of capacity 1) that wakes the shard's loop. One set of lists is being filled while the shard processes the
// other; they are swapped so that their memory is reused.
type inbox struct {
	mu    sync.Mutex
	in    asked
	ended bool          // the shard has ended and ignores new requests
	wake  chan struct{} // capacity 1: sent by any goroutine, received by loop, never closed

	work   asked // requests that the shard has taken from in; belongs to the shard
	served int   // connections of work.conns already served; belongs to the shard
}

// asked is a set of requests to a shard.
type asked struct {
	conns    []*TCPConn     // connections that the program wrote, read or closed; each listed once
	requests []func(*shard) // control operations such as bind, dial and close; run in order
	sends    []outgoing     // datagrams of programs; bounded by their send buffers
	packets  []packet       // packets from other shards, at most maxInjected
}

func newInbox() inbox { return inbox{wake: make(chan struct{}, 1)} }

// maxServed bounds the connections of the inbox that the shard serves in one turn (one pass over its work). A program
// may use all its connections at once, and input and timers must not wait for all of them.
const maxServed = 64

// takeInbox processes the inbox: at most maxServed connections, and all other requests.
func (sh *shard) takeInbox() {
	in := &sh.inbox
	in.mu.Lock()
	conns := in.work.conns
	in.in, in.work = in.work, in.in
	if in.served < len(conns) { // finish the old list first
		in.in.conns, in.work.conns = in.work.conns, conns
	}
	in.mu.Unlock()
	w := &in.work
	for _, f := range w.requests {
		f(sh)
	}
	sh.serveConns()
	for i := range w.sends {
		sh.sendDatagram(&w.sends[i])
	}
	for i := range w.packets {
		sh.deliver(&w.packets[i])
	}
	w.requests = queue.Emptied(w.requests)
	w.sends, w.packets = queue.Emptied(w.sends), queue.Emptied(w.packets)
}

// serveConns serves connections of the inbox, at most maxServed.
func (sh *shard) serveConns() {
	in := &sh.inbox
	most := min(len(in.work.conns), in.served+maxServed)
	left := in.served > 0 || most < len(in.work.conns) // connections of the list are left, or requests have arrived in the meantime
	for ; in.served < most; in.served++ {
		in.work.conns[in.served].serve(sh)
	}
	if in.served == len(in.work.conns) {
		in.work.conns, in.served = queue.Emptied(in.work.conns), 0
	}
	if left {
		in.ring()
	}
}

// end discards the remaining requests after the loop has ended.
func (in *inbox) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended = true
	for i := range in.in.sends {
		in.in.sends[i].drop()
	}
	for i := range in.in.packets {
		in.in.packets[i].frame.Free()
	}
	for _, c := range append(in.in.conns, in.work.conns[in.served:]...) {
		c.forget()
	}
	in.in = asked{}
}

// ring wakes the shard's loop, unless a wake is already pending.
func (in *inbox) ring() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// touch asks the shard to look at one of its connections, and wakes the shard's loop. It returns false if the shard has ended.
func (sh *shard) touch(c *TCPConn) bool {
	listed := sh.list(c)
	sh.inbox.ring()
	return listed
}

// list queues a connection as touch does, without waking the shard's loop. The caller must make sure that the shard
// runs afterwards.
func (sh *shard) list(c *TCPConn) bool {
	sh.inbox.mu.Lock()
	defer sh.inbox.mu.Unlock()
	if !sh.inbox.ended {
		sh.inbox.in.conns = append(sh.inbox.in.conns, c)
	}
	return !sh.inbox.ended
}

// hasEnded reports whether the shard has ended.
func (sh *shard) hasEnded() bool {
	sh.inbox.mu.Lock()
	defer sh.inbox.mu.Unlock()
	return sh.inbox.ended
}

// post asks the shard to run f and does not wait. It returns false if the shard has ended.
func (sh *shard) post(f func(*shard)) bool {
	left := sh.leave(f)
	sh.inbox.ring()
	return left
}

// leave queues f as post does, without waking the shard's loop. The caller must make sure that the shard runs afterwards.
func (sh *shard) leave(f func(*shard)) bool {
	sh.inbox.mu.Lock()
	defer sh.inbox.mu.Unlock()
	if !sh.inbox.ended {
		sh.inbox.in.requests = append(sh.inbox.in.requests, f)
	}
	return !sh.inbox.ended
}

// request runs f on the shard and waits for it. It returns false if the shard has ended without running f.
func (sh *shard) request(f func(*shard)) bool {
	done := make(chan struct{})
	if !sh.leave(func(sh *shard) { f(sh); close(done) }) {
		return false
	}
	if !sh.turnNow() {
		sh.inbox.ring()
	}
	select {
	case <-done:
		return true
	case <-sh.stopped:
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

// stop ends the loop after all earlier requests.
func (sh *shard) stop() {
	sh.post(func(sh *shard) { sh.stopping = true })
}
