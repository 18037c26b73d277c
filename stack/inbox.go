package stack

import "sync"

// inbox is how programs and other goroutines reach a shard: lists under a short
// lock, and a doorbell. There are two sets of lists, one that is being filled and
// one that the shard works through, so that both use their memory again.
type inbox struct {
	mu    sync.Mutex
	in    asked
	ended bool          // nobody will look any more
	wake  chan struct{} // one place: rung by anybody, received by loop, never closed

	work asked // belongs to the shard
}

// asked is what a shard is to do.
type asked struct {
	conns    []*TCPConn     // the program wrote, read or closed; listed once however often it asks
	requests []func(*shard) // control work: bind, dial, close; run in order
	sends    []outgoing     // datagrams that programs send; bounded by their send buffers
	packets  []packet       // from another shard, see maxInjected
}

func newInbox() inbox { return inbox{wake: make(chan struct{}, 1)} }

// takeInbox runs what was asked.
func (sh *shard) takeInbox() {
	in := &sh.inbox
	in.mu.Lock()
	in.in, in.work = in.work, in.in
	in.mu.Unlock()
	w := &in.work
	for _, f := range w.requests {
		f(sh)
	}
	for _, c := range w.conns {
		c.serve(sh)
	}
	for i := range w.sends {
		sh.sendDatagram(&w.sends[i])
	}
	for i := range w.packets {
		sh.deliver(&w.packets[i])
	}
	w.requests, w.conns = emptied(w.requests), emptied(w.conns)
	w.sends, w.packets = emptied(w.sends), emptied(w.packets)
}

// maxKept is the longest list whose memory is kept for the next time.
const maxKept = 1024

func emptied[T any](list []T) []T {
	if cap(list) > maxKept {
		return nil
	}
	clear(list)
	return list[:0]
}

// end gives up what is still asked, when the loop has ended.
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
	for _, c := range in.in.conns {
		c.forget()
	}
	in.in = asked{}
}

// ring wakes the loop, if it is not awake already.
func (in *inbox) ring() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// touch has the shard look at a connection of its own. It reports false when the
// shard has ended.
func (sh *shard) touch(c *TCPConn) bool {
	listed := sh.list(c)
	sh.inbox.ring()
	return listed
}

// list is touch for who sees to it that there will be a turn.
func (sh *shard) list(c *TCPConn) bool {
	sh.inbox.mu.Lock()
	defer sh.inbox.mu.Unlock()
	if !sh.inbox.ended {
		sh.inbox.in.conns = append(sh.inbox.in.conns, c)
	}
	return !sh.inbox.ended
}

// hasEnded reports whether nobody looks at the inbox any more.
func (sh *shard) hasEnded() bool {
	sh.inbox.mu.Lock()
	defer sh.inbox.mu.Unlock()
	return sh.inbox.ended
}

// post has f run by the shard, and does not wait for it. It reports false when
// the shard has ended.
func (sh *shard) post(f func(*shard)) bool {
	left := sh.leave(f)
	sh.inbox.ring()
	return left
}

// leave is post for who sees to it that there will be a turn.
func (sh *shard) leave(f func(*shard)) bool {
	sh.inbox.mu.Lock()
	defer sh.inbox.mu.Unlock()
	if !sh.inbox.ended {
		sh.inbox.in.requests = append(sh.inbox.in.requests, f)
	}
	return !sh.inbox.ended
}

// request has f run by the shard and returns when it has run. It reports false
// when the shard has ended instead.
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

// stop ends the loop once it has done what was asked before.
func (sh *shard) stop() {
	sh.post(func(sh *shard) { sh.stopping = true })
}
