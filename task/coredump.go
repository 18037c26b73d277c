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
	if p.limits[linux.RLIMIT_CORE].Cur < core.Least || !p.dumpable.Load() {
		return
	}
	d := &core.Dump{
		Limit: p.limits[linux.RLIMIT_CORE].Cur, FileLimit: p.limits[linux.RLIMIT_FSIZE].Cur, Aborted: make(chan struct{}),
		PID: int32(p.node.PID), Parent: int32(p.node.Parent()), Group: int32(p.node.Group), Session: int32(p.node.Session),
		UID: t.creds().UID, GID: t.creds().GID, Name: t.comm(), Program: p.exe.path, Nice: t.traits.Nice, Signal: i,
		Auxv: p.exe.places.Auxv, Arguments: p.show().Arguments, Memory: t.memory().Map,
	}
	p.dump = d
	t.recordForDump()
	for goes := true; goes && len(p.tasks) > 1; {
		p.alone = make(chan struct{})
		alone := p.alone
		s.mu.Unlock()
		goes = d.Wait(alone)
		s.mu.Lock()
	}
	s.mu.Unlock()
	flag := d.Save(t.caller.Process, &s.cores)
	s.mu.Lock()
	p.status, p.dump = d.Status(flag), nil
}

// recordForDump adds the registers of the thread to the core dump of the process, if there is one. The caller holds System.mu.
func (t *Task) recordForDump() {
	if d := t.process.dump; d != nil && len(d.Threads) < core.MostThreads {
		x := trace.Stopped{State: new(trace.State), Thread: t.thread, Again: &t.again, Signals: t.signals}
		d.Threads = append(d.Threads, core.Thread{
			ID: int32(t.id), Registers: x.Registers(), Float: x.Float(), Vectors: x.Vectors(), Blocked: uint64(t.signals.Mask()),
			User: t.usage.User.Load(), System: t.usage.System.Load(),
		})
	}
}
