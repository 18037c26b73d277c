package task

import (
	"loam/task/family"
	"loam/task/signal"
)

// Waiting for traced threads (ptrace(2), wait(2)).

// tracedNews returns news of the threads that the process traces, and takes them. only restricts the search to tracees of one
// thread; nil does not. some reports whether a thread is meant. The caller holds System.mu.
func (p *Process) tracedNews(only *Task, of family.Selector, w family.Wanted) (r family.Report, some bool) {
	for _, t := range p.tasks {
		if only != nil && t != only {
			continue
		}
		for _, x := range t.tracees {
			if !x.selected(p, of) {
				continue
			}
			some = true
			if r = x.report(w); r.Event != family.Nothing {
				return r, true
			}
		}
	}
	return r, some
}

// selected reports whether the selector of a wait by process p includes the traced thread.
func (x *tracee) selected(p *Process, of family.Selector) bool {
	switch {
	case of > 0:
		return x.task.id == family.PID(of)
	case of == 0:
		return x.task.process.node.Group == p.node.Group
	case of == -1:
		return true
	}
	return x.task.process.node.Group == family.PID(-of)
}

// report returns news of the thread, and takes them. A reported end is forgotten.
func (x *tracee) report(w family.Wanted) family.Report {
	switch {
	case x.final && w.Exited:
		if !w.Keep {
			x.untrace(0)
			x.forget()
		}
		return family.Report{Event: family.Exited, PID: x.task.id, Status: x.status}
	case !x.dead && x.stopped && x.news:
		x.news = w.Keep
		return family.Report{Event: family.Trapped, PID: x.task.id, Status: x.code}
	}
	return family.Report{}
}

// tracesProcess reports whether the process traces a thread of another. The caller holds System.mu.
func (p *Process) tracesProcess(o *Process) bool {
	for _, t := range o.tasks {
		if x := t.traced; x != nil && x.by.process == p {
			return true
		}
	}
	return false
}

// traceNews notifies the process that a thread which it traces has stopped or ended. The caller holds System.mu.
func (p *Process) traceNews(of *Task, code, status int32) {
	p.wakeWaiters()
	if code == childTrapped && p.signals.Action(signal.Child).Flags&signal.NoChildStop != 0 {
		return
	}
	if code == childExited {
		status >>= 8
	} else {
		status &= 0x7f
	}
	p.send(nil, signal.Info{Signal: signal.Child, Code: code, PID: int32(of.id), UID: of.creds().UID, Status: status})
}
