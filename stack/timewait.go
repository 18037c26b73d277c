package stack

import (
	"loam/internal/list"
	"loam/stack/port"
	"loam/stack/tcp"
	"loam/stack/timer"
)

// Connections in TIME-WAIT whose program has gone. A busy client or server has
// many times more of them than of others, so they leave their TCPConn behind, and
// there is a limit: beyond it the oldest gives way (as Linux's
// net.ipv4.tcp_max_tw_buckets has it, but that refuses the newest).

// defaultTimeWait is the limit for each shard.
const defaultTimeWait = 16384

// timeWait is what is left of a connection.
type timeWait struct {
	machine *tcp.Conn
	flow    *port.Flow
	timer   timer.Entry
	turn    list.Node[timeWait] // on shard.waitingByAge, the oldest first
}

// retire lets go of a TCPConn whose machine has nothing left to do but wait.
func (sh *shard) retire(c *TCPConn) {
	w := &timeWait{machine: c.machine, flow: c.flow}
	c.flow = nil
	sh.remove(c)
	if sh.waitingByAge.Len() >= sh.stack.config.MaxTimeWait {
		sh.tally.count(TCPTimeWaitOverflow)
		sh.endTimeWait(sh.waitingByAge.Front())
	}
	w.timer.Owner, w.turn.Owner = w, w
	id := w.machine.ID()
	sh.timeWaits[flowOf(id.Local, id.Remote)] = w
	sh.waitingByAge.PushBack(&w.turn)
	sh.wheel.Schedule(&w.timer, w.machine.Deadline())
}

// inputTimeWait takes a segment for a connection in TIME-WAIT. It returns false
// for one that is for nobody, or begins a new connection in place of the old.
func (sh *shard) inputTimeWait(key flow, seg *tcp.Segment) bool {
	w := sh.timeWaits[key]
	if w == nil {
		return false
	}
	if w.machine.CanReuse(sh.now, seg) {
		sh.endTimeWait(w)
		return false
	}
	w.machine.Receive(sh.now, seg)
	var out tcp.Out
	for w.machine.Poll(sh.now, 0, &out) {
		sh.sendStateless(nil, w.machine.ID(), &out.TCP)
	}
	if w.machine.Done() {
		sh.endTimeWait(w)
		return true
	}
	sh.waitingByAge.PushBack(&w.turn)
	sh.wheel.Schedule(&w.timer, w.machine.Deadline())
	return true
}

// tick runs when the time is over.
func (w *timeWait) tick(sh *shard) {
	w.machine.Tick(sh.now)
	if w.machine.Done() {
		sh.endTimeWait(w)
	} else {
		sh.wheel.Schedule(&w.timer, w.machine.Deadline())
	}
}

func (sh *shard) endTimeWait(w *timeWait) {
	id := w.machine.ID()
	delete(sh.timeWaits, flowOf(id.Local, id.Remote))
	w.turn.Remove()
	sh.wheel.Cancel(&w.timer)
	sh.stack.ports.close(w.flow)
}
