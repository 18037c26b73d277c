package stack

import (
	"loam/internal/list"
	"loam/stack/port"
	"loam/stack/tcp"
	"loam/stack/timer"
)

// Connections in TIME-WAIT whose program has closed them. A busy client or server has many times more of them than other
// connections. So they do not keep their TCPConn, and their number is limited: above the limit the oldest is removed. Linux
// has such a limit too (net.ipv4.tcp_max_tw_buckets), but drops the newest.

// defaultTimeWait is the default of Config.MaxTimeWait.
const defaultTimeWait = 16384

// timeWait is the remaining state of a connection.
type timeWait struct {
	machine *tcp.Conn
	flow    *port.Flow
	timer   timer.Entry
	turn    list.Node[timeWait] // the connection's place in shard.waitingByAge, oldest first
}

// retire replaces the TCPConn of a connection in TIME-WAIT by a timeWait, which needs less memory.
func (sh *shard) retire(c *TCPConn) {
	w := &timeWait{machine: c.machine, flow: c.flow}
	c.flow = nil
	id := w.machine.ID()
	sh.strays.Add(id.Local, id.Remote)
	sh.remove(c)
	if sh.waitingByAge.Len() >= sh.stack.config.MaxTimeWait {
		sh.tally.count(TCPTimeWaitOverflow)
		sh.endTimeWait(sh.waitingByAge.Front())
	}
	w.timer.Owner, w.turn.Owner = w, w
	sh.timeWaits[flowOf(id.Local, id.Remote)] = w
	sh.waitingByAge.PushBack(&w.turn)
	sh.wheel.Schedule(&w.timer, w.machine.Deadline())
}

// inputTimeWait processes a segment for a connection in TIME-WAIT. It returns false if
// there is none, or the segment starts a new connection that replaces it.
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

// tick handles the expired timer of a connection in TIME-WAIT.
func (w *timeWait) tick(sh *shard) {
	w.machine.Tick(sh.now)
	if w.machine.Done() {
		sh.endTimeWait(w)
	} else {
		sh.wheel.Schedule(&w.timer, w.machine.Deadline())
	}
}

// endTimeWait removes a connection in TIME-WAIT and releases its port.
func (sh *shard) endTimeWait(w *timeWait) {
	id := w.machine.ID()
	delete(sh.timeWaits, flowOf(id.Local, id.Remote))
	sh.strays.Remove(id.Local, id.Remote)
	w.turn.Remove()
	sh.wheel.Cancel(&w.timer)
	sh.stack.ports.Close(w.flow)
}
