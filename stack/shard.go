package stack

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"loam/internal/list"
	"loam/link"
	"loam/stack/demux"
	"loam/stack/flood"
	"loam/stack/ip"
	"loam/stack/tcp"
	"loam/stack/timer"
)

// rxDepth is the number of batches of received packets that can wait for a shard before receivers block.
const rxDepth = 16

// shard is one of the parallel workers of a stack. It owns the connections whose flows hash to it. All fields except
// rx, queued, inbox and stopped belong to the goroutine that runs the turn. That is loop, or a receiver or a program's
// goroutine that has a small amount of work and finds the shard idle (turn.go).
//
// A turn has five steps: process input and requests of programs; fire expired timers; ask the connections that had an
// event for output; deliver output to this host, which may repeat the previous step; set the timer for the next deadline.
type shard struct {
	stack *Stack
	index int

	rx      chan *batch   // sent by receivers, never closed; if full, receivers block
	queued  atomic.Int32  // batches in rx that have not been processed
	inbox   inbox         // requests of programs and other goroutines
	stopped chan struct{} // closed by loop when it ends

	owner sync.Mutex // held by the goroutine that runs the turn; guards the fields below

	now    tcp.Time // time at the beginning of the current turn
	tables *tables  // the stack's tables at the beginning of the current turn
	tally  tally
	random *rand.Rand

	conns      map[flow]*TCPConn
	fastOpened map[*TCPConn]*TCPListener // connections that Fast Open has opened, whose handshake is not complete
	timeWaits  map[flow]*timeWait        // connections in TIME-WAIT, which are not in conns
	listeners  demux.Table[*TCPListener]
	sockets    demux.Table[*UDPConn]
	lites      demux.Table[*UDPConn] // the UDP-Lite sockets
	pings      map[uint16][]*Pinger  // several per identifier with SO_REUSEADDR; newest first
	forward    forwarding
	strangers  flood.Strangers
	strays     flood.Strays

	waitingByAge list.List[timeWait] // the elements of timeWaits, oldest first
	orphans      list.List[TCPConn]  // connections without a program, oldest first
	orphanBytes  int                 // bytes that all orphans together are charged for (TCPConn.charged)

	wheel timer.Wheel
	timer *time.Timer
	armed tcp.Time // time when timer fires; tcp.Never: timer is stopped

	dirty      []*TCPConn // connections with an event in this turn, which are asked for output at its end
	spare      []*TCPConn // memory for the next dirty list: the two slices are swapped when dirty is processed
	local      []packet   // TCP segments to this host, which the turn delivers: see turn.go
	spareLocal []packet   // memory for the next local list, as spare
	links      []*txLink  // the shard's outputs, at most one per interface
	reassembly *ip.Reassembler
	tcpConfig  tcp.Config   // the stack's configuration, with this shard's counters
	tcpCounts  tcp.Counters //
	shown      *link.Frame  // frame of the segment that a TCP machine (package tcp) is processing, if the connection may keep the frame
	closing    bool         // the stack is being closed: new connections are rejected
	stopping   bool
}

func newShard(s *Stack, index int) *shard {
	sh := &shard{
		stack:     s,
		index:     index,
		strangers: flood.Strangers{Seed: s.seed, Peers: &s.peers},
		rx:        make(chan *batch, rxDepth),
		inbox:     newInbox(),
		stopped:   make(chan struct{}),
		random:    rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		conns:     make(map[flow]*TCPConn), fastOpened: make(map[*TCPConn]*TCPListener),
		timeWaits:  make(map[flow]*timeWait),
		listeners:  demux.NewTable[*TCPListener](^s.seed),
		sockets:    demux.NewTable[*UDPConn](^s.seed),
		lites:      demux.NewTable[*UDPConn](^s.seed),
		pings:      make(map[uint16][]*Pinger),
		armed:      tcp.Never,
		reassembly: newReassembler(s.config.MaxReassembly),
	}
	sh.timer = time.AfterFunc(time.Hour, sh.inbox.ring)
	sh.timer.Stop()
	sh.tcpConfig = s.config.TCP
	sh.tcpConfig.Counters, sh.tcpConfig.Paths = &sh.tcpCounts, &s.searches
	return sh
}

// onEach runs f on every shard, one after another, and waits for each. Listeners and sockets use it to enter and leave
// the tables of the shards. It returns false if a shard has ended.
func (s *Stack) onEach(f func(*shard)) bool {
	ok := true
	for _, sh := range s.shards {
		ok = sh.request(f) && ok
	}
	return ok
}

// loop is the shard's own goroutine. It runs turns until the shard is stopped.
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

// beginTurn reads the time and the tables at the start of a turn (one pass of the shard over its work).
func (sh *shard) beginTurn() {
	sh.now = sh.stack.now()
	sh.tables = sh.stack.tables.Load()
	if sh.now >= sh.armed { // the timer has fired, or will find nothing to do when it fires
		sh.armed = tcp.Never
	}
}

// drain processes a bounded number of further batches, so that one acknowledgment covers many segments.
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

// maxFired bounds the timers that the shard fires in one turn, because the timers of many connections may expire together.
const maxFired = 64

// turn runs the steps of a turn that follow the processing of input. The caller has called beginTurn and has processed the input.
func (sh *shard) turn() {
	sh.takeInbox()
	sh.wheel.AdvanceSome(sh.now, maxFired, sh.fire)
	sh.expireReassembly()
	sh.output()
	sh.exchange()
	sh.arm()
}

// fire handles an expired timer.
func (sh *shard) fire(e *timer.Entry) {
	switch o := e.Owner.(type) {
	case *TCPConn:
		o.machine.Tick(sh.now)
		sh.mark(o)
	case *timeWait:
		o.tick(sh)
	}
}

// mark adds a connection to the list that output processes.
func (sh *shard) mark(c *TCPConn) {
	if !c.dirty {
		c.dirty = true
		sh.dirty = append(sh.dirty, c)
	}
}

// arm sets the timer to the earliest deadline. A timer that is set too early is not changed: when it fires, the shard
// finds nothing to do and sets it again.
func (sh *shard) arm() {
	next := min(sh.wheel.Next(), sh.reassembly.Deadline())
	if next >= sh.armed {
		return
	}
	sh.armed = next
	sh.timer.Reset(max(0, next-sh.now))
}

// end frees everything that is still queued. The receivers have ended by now.
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
	for i := range sh.local {
		sh.local[i].frame.Free()
	}
	for _, l := range sh.links {
		l.drop()
	}
	for d := range sh.reassembly.Expire(ip.Never) {
		d.Payload.Free()
	}
	sh.inbox.end()
}
