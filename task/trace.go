package task

import (
	"iter"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/credential"
	"loam/task/family"
	"loam/task/machine"
	"loam/task/seccomp"
	"loam/task/signal"
	"loam/task/trace"
)

// This file connects tasks to package trace, which implements debuggers. A thread without a tracer has no extra cost:
// each system call loads the attention.Word in any case, and a bit of it shows a tracer.

// traceSystem shows the system to package trace, as a trace.System.
type traceSystem struct{ *System }

// Lock implements trace.System.
func (s traceSystem) Lock() { s.mu.Lock() }

// Unlock implements trace.System.
func (s traceSystem) Unlock() { s.mu.Unlock() }

// Thread implements trace.System.
func (s traceSystem) Thread(id family.PID) trace.Thread {
	if t := s.tasks[id]; t != nil {
		return traceTask{t}
	}
	return nil
}

// Process implements trace.System.
func (s traceSystem) Process(id family.PID) trace.Process {
	if p := s.processes[id]; p != nil {
		return traceProcess{p}
	}
	return nil
}

// Tree implements trace.System.
func (s traceSystem) Tree() *family.Tree { return s.tree }

// Forget implements trace.System.
func (s traceSystem) Forget(id family.PID) { s.forget(id) }

// traceProcess shows a process to package trace, as a trace.Process.
type traceProcess struct{ *Process }

// Node implements trace.Process.
func (p traceProcess) Node() *family.Process { return p.node }

// Links implements trace.Process.
func (p traceProcess) Links() *trace.ProcessLinks { return &p.links }

// Threads implements trace.Process.
func (p traceProcess) Threads() iter.Seq[trace.Thread] {
	return func(yield func(trace.Thread) bool) {
		for _, t := range p.tasks {
			if !yield(traceTask{t}) {
				return
			}
		}
	}
}

// Ending implements trace.Process.
func (p traceProcess) Ending() bool { return p.ending }

// Status implements trace.Process.
func (p traceProcess) Status() int32 { return p.status }

// Stopped implements trace.Process.
func (p traceProcess) Stopped() bool { return p.stopped }

// StopSignal implements trace.Process.
func (p traceProcess) StopSignal() signal.Number { return p.stopSignal }

// Send implements trace.Process.
func (p traceProcess) Send(to trace.Thread, i signal.Info) {
	if to == nil {
		p.send(nil, i)
		return
	}
	p.send(to.(traceTask).Task, i)
}

// ChildNews implements trace.Process.
func (p traceProcess) ChildNews(child trace.Process, code, status int32) {
	p.childNews(child.(traceProcess).Process, code, status)
}

// WakeWaiters implements trace.Process.
func (p traceProcess) WakeWaiters() { p.wakeWaiters() }

// HidesStops implements trace.Process.
func (p traceProcess) HidesStops() bool {
	return p.signals.Action(signal.Child).Flags&signal.NoChildStop != 0
}

// Forker implements trace.Process.
func (p traceProcess) Forker() family.PID { return p.forker }

// Borrow implements trace.Process.
func (p traceProcess) Borrow() (*mem.Map, func()) { return p.lend() }

// tracedNews returns news of the threads that the process traces: see trace.News. The caller holds System.mu.
func (p *Process) tracedNews(only *Task, of family.Selector, w family.Wanted) (r family.Report, some bool) {
	for _, t := range p.tasks {
		if len(t.links.Tracees) == 0 || only != nil && t != only {
			continue
		}
		found := false
		if r, found = trace.News(traceTask{t}, of, w); r.Event != family.Nothing {
			return r, true
		}
		some = some || found
	}
	return r, some
}

// traceTask shows a thread to package trace, as a trace.Thread.
type traceTask struct{ *Task }

// ID implements trace.Thread.
func (t traceTask) ID() family.PID { return t.id }

// Process implements trace.Thread.
func (t traceTask) Process() trace.Process { return traceProcess{t.process} }

// System implements trace.Thread.
func (t traceTask) System() trace.System { return traceSystem{t.process.system} }

// Links implements trace.Thread.
func (t traceTask) Links() *trace.Links { return &t.links }

// Machine implements trace.Thread.
func (t traceTask) Machine() machine.Thread { return t.thread }

// Signals implements trace.Thread.
func (t traceTask) Signals() *signal.Thread { return t.signals }

// Again implements trace.Thread.
func (t traceTask) Again() *trace.Again { return &t.again }

// Identity implements trace.Thread.
func (t traceTask) Identity() *credential.Set { return t.creds() }

// Memory implements trace.Thread.
func (t traceTask) Memory() call.Memory { return t.caller.Memory }

// MayTrace implements trace.Thread.
func (t traceTask) MayTrace(p trace.Process) bool {
	return t.mayInspect(p.(traceProcess).Process, false)
}

// Attend implements trace.Thread.
func (t traceTask) Attend() { t.alerted.Store(true) }

// Alert implements trace.Thread.
func (t traceTask) Alert() { t.alert() }

// Hook implements trace.Thread.
func (t traceTask) Hook(on bool) { t.alerted.Hook(on) }

// Hooked implements trace.Thread.
func (t traceTask) Hooked() bool { return t.alerted.Hooked() }

// Await implements trace.Thread.
func (t traceTask) Await(ready <-chan struct{}) linux.Errno { return t.await(ready, forever) }

// Dismissed implements trace.Thread.
func (t traceTask) Dismissed() bool { return t.dismissed.Load() }

// Leaving implements trace.Thread.
func (t traceTask) Leaving() bool { return t.leaving }

// roams reports whether the tracer has resumed the thread during a stop of its process. The caller holds System.mu.
func (t *Task) roams() bool { return t.links.Traced != nil && trace.Roams(traceTask{t}) }

// nextDelivery returns the next signal to deliver. A tracer sees it first, and may replace or drop it. The caller holds System.mu.
func (t *Task) nextDelivery() signal.Delivery {
	if t.links.Traced == nil {
		return t.signals.Next()
	}
	return trace.NextDelivery(traceTask{t})
}

// enterCall runs before a call of a thread with a tracer or a filter. It returns the number of the call to execute, and false for
// none: the result is in the registers.
func (t *Task) enterCall(number uint64) (uint64, bool) {
	if t.alerted.Hooked() {
		var ok bool
		if number, ok = trace.EnterCall(traceTask{t}, number); !ok {
			return 0, false
		}
	}
	return seccomp.Check(callTask{t}, number)
}
