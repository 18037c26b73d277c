package stack

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"loam/internal/list"
	"loam/link"
	"loam/stack/ip"
	"loam/stack/tcp"
	"loam/stack/timer"
)

// rxDepth is how many batches wait for a shard before its receivers wait too.
const rxDepth = 16

// shard owns the connections whose flows hash to it. Everything here but rx and
// inbox belongs to who has the turn: loop, or a receiver or a program's goroutine
// that has little for the shard and finds it at rest (turn.go).
//
// A turn has four parts: take in what arrived and what programs ask for; let the
// deadlines that have passed fire; ask the connections that were touched what there
// is to send; arm the timer for the next deadline.
type shard struct {
	stack *Stack
	index int

	rx      chan *batch   // sent by receivers and never closed; full: they wait
	queued  atomic.Int32  // batches that were sent to rx and have not been taken in
	inbox   inbox         // what programs and others ask for
	stopped chan struct{} // closed by loop when it ends

	owner sync.Mutex // who holds it has the turn; guards all that follows

	now    tcp.Time // read once a turn
	tables *tables  // likewise
	tally  tally
	random *rand.Rand

	conns     map[flow]*TCPConn
	timeWaits map[flow]*timeWait                // never the same key as in conns
	listeners map[netip.AddrPort][]*TCPListener // several: SO_REUSEPORT
	sockets   map[netip.AddrPort][]*UDPConn
	pings     map[uint16][]*Pinger // several: SO_REUSEADDR; the newest first
	forward   forwarding

	waitingByAge list.List[timeWait] // all of timeWaits
	orphans      list.List[TCPConn]  // of conns, those that no program has any more; the oldest first

	wheel timer.Wheel
	timer *time.Timer
	armed tcp.Time // when timer fires; tcp.Never: it does not

	dirty      []*TCPConn // touched in this turn, to be asked for output
	spare      []*TCPConn // the other of two slices that dirty alternates between
	links      []*txLink  // by interface index
	reassembly *ip.Reassembler
	tcpConfig  tcp.Config   // the stack's, with counters of this shard
	tcpCounts  tcp.Counters //
	shown      *link.Frame  // of the segment that a machine is looking at, if it may be kept
	closing    bool         // the stack is being closed: nothing new begins
	stopping   bool
}

func newShard(s *Stack, index int) *shard {
	sh := &shard{
		stack:      s,
		index:      index,
		rx:         make(chan *batch, rxDepth),
		inbox:      newInbox(),
		stopped:    make(chan struct{}),
		random:     rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		conns:      make(map[flow]*TCPConn),
		timeWaits:  make(map[flow]*timeWait),
		listeners:  make(map[netip.AddrPort][]*TCPListener),
		sockets:    make(map[netip.AddrPort][]*UDPConn),
		pings:      make(map[uint16][]*Pinger),
		armed:      tcp.Never,
		reassembly: newReassembler(s.config.MaxReassembly),
	}
	sh.timer = time.AfterFunc(time.Hour, sh.inbox.ring)
	sh.timer.Stop()
	sh.tcpConfig = s.config.TCP
	sh.tcpConfig.Counters = &sh.tcpCounts
	return sh
}

// onEach has f run by every shard and waits for all: how a listener or a socket
// enters and leaves the copies of a table that the shards keep.
func (s *Stack) onEach(f func(*shard)) bool {
	ok := true
	for _, sh := range s.shards {
		ok = sh.request(f) && ok
	}
	return ok
}

func (sh *shard) loop() {
	defer close(sh.stopped)
	for stopping := false; !stopping; {
		var b *batch
		select {
		case b = <-sh.rx:
		case <-sh.inbox.wake:
		}
		sh.stack.config.Resumed()
		sh.owner.Lock()
		sh.beginTurn()
		if b != nil {
			sh.input(b)
			sh.queued.Add(-1)
			sh.drain()
		}
		sh.turn()
		if stopping = sh.stopping; stopping {
			sh.end()
		}
		sh.owner.Unlock()
	}
}

func (sh *shard) beginTurn() {
	sh.now = sh.stack.now()
	sh.tables = sh.stack.tables.Load()
	if sh.now >= sh.armed { // the timer has fired, or is about to and will find nothing
		sh.armed = tcp.Never
	}
}

// drain takes in what else is waiting, a bounded amount, so that
// acknowledgements are answered for many segments at once.
func (sh *shard) drain() {
	for range rxDepth / 4 {
		select {
		case b := <-sh.rx:
			sh.input(b)
			sh.queued.Add(-1)
		default:
			return
		}
	}
}

func (sh *shard) turn() {
	sh.takeInbox()
	sh.wheel.Advance(sh.now, sh.fire)
	sh.expireReassembly()
	sh.output()
	sh.arm()
}

// fire is called for every timer whose time has come.
func (sh *shard) fire(e *timer.Entry) {
	switch o := e.Owner.(type) {
	case *TCPConn:
		o.machine.Tick(sh.now)
		sh.mark(o)
	case *timeWait:
		o.tick(sh)
	}
}

// mark puts a connection on the list that output works through.
func (sh *shard) mark(c *TCPConn) {
	if !c.dirty {
		c.dirty = true
		sh.dirty = append(sh.dirty, c)
	}
}

// arm sets the timer to the earliest deadline. A timer that is set too early
// is left alone: the turn that it causes finds nothing to do and sets it right.
func (sh *shard) arm() {
	next := min(sh.wheel.Next(), sh.reassembly.Deadline())
	if next >= sh.armed {
		return
	}
	sh.armed = next
	sh.timer.Reset(max(0, next-sh.now))
}

// end frees what is still queued. Receivers have ended by now.
func (sh *shard) end() {
	sh.timer.Stop()
	for {
		select {
		case b := <-sh.rx:
			b.freeAll()
			continue
		default:
		}
		break
	}
	for _, l := range sh.links {
		l.drop()
	}
	for d := range sh.reassembly.Expire(ip.Never) {
		d.Payload.Free()
	}
	sh.inbox.end()
}
