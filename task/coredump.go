package task

import (
	"loam/abi/linux"
	"loam/task/core"
	"loam/task/signal"
	"loam/task/trace"
)

// endWithCore ends the process by a signal, and writes a core dump if the limits allow it (core(5)). The other threads end first.
// The caller holds System.mu, which is released meanwhile.
func (t *Task) endWithCore(i signal.Info) {
	p, s := t.process, t.process.system
	if p.ending {
		return
	}
	p.end(int32(i.Signal))
	limit := p.limits[linux.RLIMIT_CORE].Cur
	if limit < core.Least || !p.dumpable.Load() {
		return
	}
	p.dump = &core.Dump{
		PID: int32(p.node.PID), Parent: int32(p.node.Parent()), Group: int32(p.node.Group), Session: int32(p.node.Session),
		UID: t.creds().UID, GID: t.creds().GID, Name: t.comm(), Nice: t.traits.Nice, Signal: i,
		Auxv: p.exe.places.Auxv, Arguments: p.show().Arguments, Memory: t.memory().Map,
	}
	t.recordForDump()
	for len(p.tasks) > 1 {
		alone := make(chan struct{})
		p.alone = alone
		s.mu.Unlock()
		<-alone
		s.mu.Lock()
	}
	d := p.dump
	p.dump = nil
	s.mu.Unlock()
	done := d.Save(t.caller.Process, limit)
	s.mu.Lock()
	if done {
		p.status |= signal.CoreFlag
	}
}

// recordForDump adds the registers of the thread to the core dump of the process, if there is one. The caller holds System.mu.
func (t *Task) recordForDump() {
	if d := t.process.dump; d != nil {
		x := trace.Stopped{State: new(trace.State), Thread: t.thread, Again: &t.again, Signals: t.signals}
		d.Threads = append(d.Threads, core.Thread{
			ID: int32(t.id), Registers: x.Registers(), Float: x.Float(), Vectors: x.Vectors(), Blocked: uint64(t.signals.Mask()),
			User: t.usage.User.Load(), System: t.usage.System.Load(),
		})
	}
}
