package trace

import (
	"loam/task/family"
	"loam/task/signal"
)

// This file lets a tracer wait for the threads that it traces (ptrace(2), wait(2)).

// News returns an event of a thread that t traces and that a selector (the parameter of) selects, and consumes the
// event. some reports whether there is such a thread. The caller holds the lock of System.
func News(t Thread, of family.Selector, w family.Wanted) (r family.Report, some bool) {
	for _, x := range t.Links().Tracees {
		if !x.selected(t.Process(), of) {
			continue
		}
		some = true
		if r = x.report(w); r.Event != family.Nothing {
			return r, true
		}
	}
	return r, some
}

// selected reports whether a wait of process p selects the thread.
func (x *Tracee) selected(p Process, of family.Selector) bool {
	switch {
	case of > 0:
		return x.task.ID() == family.PID(of)
	case of == 0:
		return x.task.Process().Node().Group == p.Node().Group
	case of == -1:
		return true
	}
	return x.task.Process().Node().Group == family.PID(-of)
}

// report returns an event of the thread, and consumes it. If the event is the end of the thread, the record is removed.
func (x *Tracee) report(w family.Wanted) family.Report {
	switch {
	case x.final && w.Exited:
		if !w.Keep {
			x.untrace(0)
			x.forget()
		}
		return family.Report{Event: family.Exited, PID: x.task.ID(), Status: x.status}
	case !x.dead && x.stopped && x.news:
		x.news = w.Keep
		return family.Report{Event: family.Trapped, PID: x.task.ID(), Status: x.code}
	}
	return family.Report{}
}

// Traces reports whether a thread of process p traces a thread of process o. The caller holds the lock of
// System.
func Traces(p Process, o Process) bool {
	for t := range o.Threads() {
		if x := t.Links().Traced; x != nil && x.by.Process() == p {
			return true
		}
	}
	return false
}

// notifyTracer notifies the process that traces a thread that the thread has stopped or ended. The caller holds the
// lock of System.
func notifyTracer(p Process, of Thread, code, status int32) {
	p.WakeWaiters()
	if code == signal.ChildTrapped && p.HidesStops() {
		return
	}
	if code == signal.ChildExited {
		status >>= 8
	} else {
		status &= 0x7f
	}
	p.Send(nil, signal.Info{Signal: signal.Child, Code: code, PID: int32(of.ID()), UID: of.Identity().UID, Status: status})
}
