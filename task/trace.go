package task

import (
	"loam/abi/linux"
	"loam/task/signal"
	"loam/task/trace"
)

// The stops of a traced thread (ptrace(2)). A stopped thread is a parked goroutine in traceStop. Its tracer reads and changes
// the thread under System.mu, which a resumed thread acquires first. System.mu guards all fields of tracee.
//
// A thread without a tracer pays nothing: its call looks at the word attention, which it loads anyway.

// tracee is the state of a thread that another thread, the tracer, traces. It outlives the thread until a wait has
// reported its end.
type tracee struct {
	task *Task
	by   *Task // the tracer
	trace.State
	seized bool // by PTRACE_SEIZE

	calls bool // it stops at the beginning and the end of calls
	step  bool // it stops after one instruction

	stopped   bool
	listening bool  // PTRACE_LISTEN: the group stop continues
	news      bool  // no wait has reported the stop yet
	code      int32 // of the stop: a signal, and an event << 8
	resume    chan struct{}
	inject    signal.Number // the signal with which it was resumed; 0: none

	joined  bool // the stop of its process has been reported
	notify  bool // a stop of the process has ended: report it (PTRACE_SEIZE)
	trap    bool // PTRACE_INTERRUPT
	exiting bool // the stop is at the end of the thread

	dead   bool // the thread has ended
	final  bool // and a wait can report it
	status int32
}

// view returns the thread as its tracer reads and changes it. It is stopped, and the caller holds System.mu.
func (x *tracee) view() trace.Stopped {
	t := x.task
	return trace.Stopped{State: &x.State, Thread: t.thread, Again: &t.again, Signals: t.signals, Attend: func() { t.alerted.Store(true) }}
}

// eventCode returns the code of a stop for an event.
func eventCode(event int32) int32 { return linux.SIGTRAP | event<<8 }

// trace makes by the tracer of t. The caller holds System.mu.
func (t *Task) trace(by *Task, seized bool, options uint64) *tracee {
	x := &tracee{task: t, by: by, seized: seized, State: trace.State{Options: options}}
	t.traced, t.signals.Traced = x, true
	by.tracees = append(by.tracees, x)
	return x
}

// untrace ends the tracing. The thread continues with a signal unless that is 0. The caller holds System.mu.
func (x *tracee) untrace(n signal.Number) {
	by := x.by
	for i, o := range by.tracees {
		if o == x {
			by.tracees = append(by.tracees[:i:i], by.tracees[i+1:]...)
			break
		}
	}
	if x.dead {
		return
	}
	t := x.task
	x.calls, x.step, x.trap, x.notify = false, false, false, false
	x.Debug = trace.DebugRegisters{}
	t.loadDebug()
	t.traced, t.signals.Traced = nil, false
	x.hook()
	x.release(n)
	t.alert() // it joins a stop of its process
	p := t.process
	if p.stopped && by.process.node.PID == p.node.Parent() && !by.process.tracesProcess(p) { // which it can wait for now
		p.node.Stop(int32(p.stopSignal))
		by.process.childNews(p, childStopped, int32(p.stopSignal))
	}
}

// release lets a stopped thread continue. The caller holds System.mu.
func (x *tracee) release(n signal.Number) {
	if x.stopped {
		x.stopped, x.listening, x.news, x.inject = false, false, false, n
		close(x.resume)
	}
}

// hook sets the flag that makes the thread look for a tracer in calls. The caller holds System.mu.
func (x *tracee) hook() { x.task.alerted.hook(x.calls || x.step || x.Debug.Active()) }

// traceStop stops the thread until the tracer resumes it, or the process ends. It returns the signal with which the thread
// was resumed. The caller holds System.mu, which is released meanwhile.
func (t *Task) traceStop(code int32, info *signal.Info) signal.Number {
	x, p, s := t.traced, t.process, t.process.system
	if x == nil || !x.exiting && (p.ending || t.dismissed.Load()) {
		return 0
	}
	x.endStep()
	x.stopped, x.news, x.code, x.Info, x.inject = true, true, code, info, 0
	x.resume = make(chan struct{})
	resume := x.resume
	x.by.process.traceNews(t, childTrapped, code)
	s.mu.Unlock()
	t.rest(true)
	for waiting := true; waiting; {
		select {
		case <-resume:
			waiting = false
		case <-t.interrupt:
			s.mu.Lock()
			if !x.exiting && (p.ending || t.dismissed.Load()) {
				x.release(0)
			}
			s.mu.Unlock()
		}
	}
	t.rest(false)
	s.mu.Lock()
	x.Entering, x.Leaving, x.Filtered = false, false, false
	if t.traced != x || p.ending {
		return x.inject
	}
	if x.step {
		t.thread.Registers().Flags |= flagTrap
	}
	return x.inject
}

// flagTrap is TF of RFLAGS: an exception follows the next instruction.
const flagTrap = 1 << 8

// endStep removes the flag by which the thread has made one step.
func (x *tracee) endStep() {
	if x.step {
		x.task.thread.Registers().Flags &^= flagTrap
		x.step = false
		x.hook()
	}
}

// stopInfo returns the siginfo of a stop that no signal has caused.
func (t *Task) stopInfo(n signal.Number, code int32) *signal.Info {
	return &signal.Info{Signal: n, Code: code, PID: int32(t.id), UID: t.creds().UID}
}

// traceEvent stops the thread for an event with a message, if the tracer wants it. It reports whether it has.
func (t *Task) traceEvent(event int32, message uint64) bool {
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	x := t.traced
	if x == nil || x.Options&(1<<event) == 0 {
		return false
	}
	x.Message = message
	code := eventCode(event)
	t.traceStop(code, t.stopInfo(linux.SIGTRAP, code))
	return true
}

// traceJob stops a traced thread for a stop of its process, for its end, or for PTRACE_INTERRUPT. It reports whether it
// has. The caller holds System.mu.
func (t *Task) traceJob() bool {
	x, p := t.traced, t.process
	switch {
	case x == nil:
		return false
	case p.stopped && !x.joined:
		x.joined = true
	case !x.trap && !x.notify:
		return false
	}
	x.trap, x.notify = false, false
	n := signal.Number(linux.SIGTRAP)
	if p.stopped {
		n = p.stopSignal
	}
	if !x.seized {
		t.traceStop(int32(n), nil)
		return true
	}
	code := int32(n) | linux.PTRACE_EVENT_STOP<<8
	t.traceStop(code, t.stopInfo(n, code))
	return true
}

// roams reports whether the tracer has resumed the thread during a stop of its process. The caller holds System.mu.
func (t *Task) roams() bool { return t.traced != nil && t.traced.joined }

// pause waits for the end of a stop of the process, or for a request.
func (t *Task) pause(resumed <-chan struct{}) {
	t.rest(true)
	select {
	case <-resumed:
	case <-t.interrupt:
	}
	t.rest(false)
}

// notifyTraced makes the threads that a tracer has seized report the end of a stop. The caller holds System.mu.
func (p *Process) notifyTraced() {
	for _, t := range p.tasks {
		if x := t.traced; x != nil && x.seized {
			x.notify = true
			if x.listening {
				x.release(0)
			}
			t.alert()
		}
	}
}

// nextDelivery returns the next signal to deliver. A tracer sees it first, and may replace or drop it. The caller holds
// System.mu.
func (t *Task) nextDelivery() signal.Delivery {
	for t.traced != nil {
		i, ok := t.signals.Dequeue()
		if !ok {
			return signal.Delivery{}
		}
		if i, ok = t.signalStop(i); !ok {
			if t.process.ending {
				return signal.Delivery{}
			}
			continue
		}
		if d := t.signals.Deliver(i); d.Effect != signal.None {
			return d
		}
	}
	return t.signals.Next()
}

// signalStop is the stop before the delivery of a signal. It returns the signal to deliver, and false for none.
func (t *Task) signalStop(i signal.Info) (signal.Info, bool) {
	x := t.traced
	info := i
	n := t.traceStop(int32(i.Signal), &info)
	switch {
	case n == 0 || t.process.ending:
		return i, false
	case n != info.Signal:
		info = signal.Info{Signal: n, Code: signal.CodeUser, PID: int32(x.by.process.node.PID), UID: x.by.creds().UID}
	}
	if t.signals.Mask().Has(n) {
		t.process.send(t, info)
		return i, false
	}
	return info, true
}

// callStop is the stop at the beginning or the end of a call. The caller holds System.mu.
func (t *Task) callStop(entry bool) {
	x := t.traced
	if x == nil || !x.calls {
		return
	}
	const good = 0x80
	code := int32(linux.SIGTRAP)
	if x.Options&linux.PTRACE_O_TRACESYSGOOD != 0 {
		code |= good
	}
	x.Entering, x.Leaving, x.Message = entry, !entry, linux.PTRACE_SYSCALL_INFO_EXIT
	if entry {
		x.Message = linux.PTRACE_SYSCALL_INFO_ENTRY
	}
	if n := t.traceStop(code, t.stopInfo(linux.SIGTRAP, code)); n != 0 {
		t.process.send(t, signal.Info{Signal: n, Code: signal.CodeKernel})
	}
}

// enterCall runs before a call of a thread with a tracer or a filter. It returns the number of the call to execute, and false for
// none: the result is in the registers.
func (t *Task) enterCall(number uint64) (uint64, bool) {
	if t.alerted.hooked() {
		var ok bool
		if number, ok = t.traceCall(number); !ok {
			return 0, false
		}
	}
	return t.filterCall(number)
}

// traceCall is the stop at the beginning of a call. A tracer may change the number; -1 prevents the call.
func (t *Task) traceCall(number uint64) (uint64, bool) {
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	x := t.traced
	if x == nil {
		return number, true
	}
	x.InCall, x.Number = true, number
	noCall := linux.ENOSYS // what a debugger sees, and the result of a call that it prevents
	f := t.thread.Registers()
	f.AX = -uint64(noCall)
	t.callStop(true)
	return x.Number, !t.process.ending && int32(x.Number) != -1
}

// leaveCall runs after a call of a thread with a tracer or a filter.
func (t *Task) leaveCall() {
	if !t.alerted.hooked() {
		return
	}
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	x := t.traced
	if x == nil || t.leaving {
		return
	}
	if x.step {
		t.signals.Force(signal.Info{Signal: signal.Trap, Code: trapBreakpoint, Addr: t.thread.Registers().IP})
		t.alerted.Store(true)
	} else {
		t.callStop(false)
	}
	if t.traced == x {
		x.InCall = false
	}
	t.loadDebug()
}

// traceHandler stops a thread that makes steps at the first instruction of a handler.
func (t *Task) traceHandler(stepped bool) {
	if stepped {
		s := t.process.system
		s.mu.Lock()
		defer s.mu.Unlock()
		t.traceStop(linux.SIGTRAP, t.stopInfo(linux.SIGTRAP, linux.SIGTRAP))
	}
}

// stepping reports whether the thread makes a step, and ends it: the frame of a handler must not contain the flag.
func (t *Task) stepping() bool {
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := t.traced; x != nil && x.step {
		x.endStep()
		return true
	}
	return false
}

// traceExec reports a new program. former is the ID that the thread had before.
func (t *Task) traceExec(former uint64) {
	if t.traceEvent(linux.PTRACE_EVENT_EXEC, former) {
		return
	}
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := t.traced; x != nil && !x.seized {
		t.process.send(t, t.sender(signal.Info{Signal: signal.Trap, Code: signal.CodeUser}))
	}
}

// inheritTrace makes the tracer of t trace its child from the beginning, if it wants that or the call has CLONE_PTRACE. The
// child begins with a stop. It returns the event of t; 0: none. The caller holds System.mu.
func (t *Task) inheritTrace(child *Task, c clone) (event int32) {
	x := t.traced
	if x == nil {
		return 0
	}
	switch {
	case c.flags&linux.CLONE_UNTRACED != 0:
	case c.flags&linux.CLONE_VFORK != 0:
		event = linux.PTRACE_EVENT_VFORK
	case c.signal != linux.SIGCHLD:
		event = linux.PTRACE_EVENT_CLONE
	default:
		event = linux.PTRACE_EVENT_FORK
	}
	if event != 0 && x.Options&(1<<event) == 0 {
		event = 0
	}
	if event == 0 && c.flags&linux.CLONE_PTRACE == 0 {
		return 0
	}
	y := child.trace(x.by, x.seized, x.Options)
	if y.trap = x.seized; !y.trap {
		child.signals.Send(signal.Info{Signal: signal.Stop, Code: signal.CodeUser}, true)
	}
	child.alerted.Store(true)
	return event
}

// traceExit is the stop at the end of a thread.
func (t *Task) traceExit(status int32) {
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	x := t.traced
	if x == nil || x.Options&linux.PTRACE_O_TRACEEXIT == 0 {
		return
	}
	x.exiting, x.Message = true, uint64(uint32(status))
	code := eventCode(linux.PTRACE_EVENT_EXIT)
	t.traceStop(code, t.stopInfo(linux.SIGTRAP, code))
}

// killExiting lets threads that have stopped at their end continue: the process has been killed. The caller holds System.mu.
func (p *Process) killExiting() {
	for _, t := range p.tasks {
		if x := t.traced; x != nil && x.exiting {
			x.release(0)
		}
	}
}

// traceGone records the end of a thread: its tracer waits for it, and its own tracees have no tracer any more. It reports
// whether the ID of the thread stays in use. The caller holds System.mu.
func (t *Task) traceGone(status int32) (kept bool) {
	for len(t.tracees) > 0 {
		x := t.tracees[0]
		if x.dead {
			x.untrace(0)
			x.forget()
			continue
		}
		kill := x.Options&linux.PTRACE_O_EXITKILL != 0
		x.untrace(0)
		if kill {
			x.task.process.send(x.task, signal.Info{Signal: signal.Kill, Code: signal.CodeKernel})
		}
	}
	x := t.traced
	if x == nil {
		return false
	}
	x.dead, x.status, x.stopped = true, status, false
	if t.id == t.process.node.PID { // reported at the end of the process
		t.process.firstTrace = x
		return false
	}
	x.final = true
	x.by.process.traceNews(t, childCode(status), status)
	return true
}

// endTrace reports the end of a process to the tracer of its first thread. It reports whether the parent is notified only
// after the tracer. The caller holds System.mu.
func (p *Process) endTrace() (held bool) {
	x := p.firstTrace
	switch {
	case x == nil:
		return false
	case x.by.process.node.PID == p.node.Parent():
		x.untrace(0)
		p.firstTrace = nil
		return false
	}
	x.final, x.status = true, p.status
	return true
}

// forget frees what the end of a traced thread has kept. The caller holds System.mu.
func (x *tracee) forget() {
	t := x.task
	p, s := t.process, t.process.system
	if t.id != p.node.PID {
		s.tree.Forget(t.id)
		return
	}
	p.firstTrace = nil
	if !x.final {
		return
	}
	notify := s.tree.Release(p.node)
	s.forget(p.node.PID)
	if parent := s.processes[pidOf(notify)]; parent != nil {
		parent.childNews(p, childCode(p.status), p.status)
	}
}

// replaced drops the record of a first thread whose ID another thread gets by execve. The caller holds System.mu.
func (p *Process) replaced() {
	if p.firstTrace != nil {
		p.firstTrace.untrace(0)
		p.firstTrace = nil
	}
}

// unsafelyTraced reports whether execve must not give privileges: the tracer could not trace the new program. The caller holds
// System.mu.
func (p *Process) unsafelyTraced() bool {
	for _, t := range p.tasks {
		if x := t.traced; x != nil && !x.by.creds().Has(linux.CAP_SYS_PTRACE) {
			return true
		}
	}
	return false
}
