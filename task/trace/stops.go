package trace

import (
	"loam/abi/linux"
	"loam/task/signal"
)

// The stops of a traced thread (ptrace(2)). A stopped thread is a parked goroutine in stop. Its tracer reads and changes
// the thread under the lock of System, which a resumed thread acquires first. The lock guards all fields of Tracee.

// Tracee is the state of a thread that is traced by another thread, the tracer. It is kept after the end of the thread until
// a wait has reported that end.
type Tracee struct {
	task Thread
	by   Thread // the thread that traces this one
	State
	seized bool // attached by PTRACE_SEIZE

	calls bool // the thread stops at the beginning and the end of system calls
	step  bool // the thread stops after one instruction

	stopped   bool
	listening bool          // PTRACE_LISTEN was called: the thread stays in a group stop
	news      bool          // the current stop has not been reported by a wait yet
	settled   chan struct{} // closed at the first stop or at the end; nil if no tracer waits for that
	code      int32         // code of the current stop: a signal, and an event << 8
	resume    chan struct{}
	inject    signal.Number // signal with which the tracer resumed the thread; 0: none

	joined  bool // the thread has reported the current stop of its process
	notify  bool // the process continues after a stop, which must be reported (PTRACE_SEIZE)
	trap    bool // PTRACE_INTERRUPT was called
	exiting bool // the thread has stopped at its end (PTRACE_EVENT_EXIT)

	dead   bool // the thread has ended
	final  bool // the thread has ended, and a wait can report that
	status int32
}

// view returns the state of the thread that its tracer reads and changes. The thread is stopped, and the caller holds
// the lock of System.
func (x *Tracee) view() Stopped {
	t := x.task
	return Stopped{State: &x.State, Thread: t.Machine(), Again: t.Again(), Signals: t.Signals(), Attend: func() { t.Attend() }}
}

// eventCode returns the code of a stop for an event.
func eventCode(event int32) int32 { return linux.SIGTRAP | event<<8 }

// attach makes another thread (the parameter by) the tracer of the thread t. The caller holds the lock of System.
func attach(t Thread, by Thread, seized bool, options uint64) *Tracee {
	x := &Tracee{task: t, by: by, seized: seized, State: State{Options: options}}
	t.Links().Traced, t.Signals().Traced = x, true
	by.Links().Tracees = append(by.Links().Tracees, x)
	return x
}

// untrace ends the tracing. The thread continues with signal n, unless n is 0. The caller holds the lock of
// System.
func (x *Tracee) untrace(n signal.Number) {
	by := x.by
	x.settle()
	for i, o := range by.Links().Tracees {
		if o == x {
			by.Links().Tracees = append(by.Links().Tracees[:i:i], by.Links().Tracees[i+1:]...)
			break
		}
	}
	if x.dead {
		return
	}
	t := x.task
	x.calls, x.step, x.trap, x.notify = false, false, false, false
	x.Debug = DebugRegisters{}
	LoadDebug(t)
	t.Links().Traced, t.Signals().Traced = nil, false
	x.hook()
	x.release(n)
	t.Alert() // the thread takes part in the stop of its process
	p := t.Process()
	if p.Stopped() && by.Process().Node().PID == p.Node().Parent() && !Traces(by.Process(), p) { // the former tracer is the parent, and can now wait for the stopped process
		p.Node().Stop(int32(p.StopSignal()))
		by.Process().ChildNews(p, signal.ChildStopped, int32(p.StopSignal()))
	}
}

// release lets a stopped thread continue. The caller holds the lock of System.
func (x *Tracee) release(n signal.Number) {
	if x.stopped {
		x.stopped, x.listening, x.news, x.inject = false, false, false, n
		close(x.resume)
	}
}

// settle ends the wait of a tracer for the first stop. The caller holds the lock of System.
func (x *Tracee) settle() {
	if x.settled != nil {
		close(x.settled)
		x.settled = nil
	}
}

// hook updates the flag that makes system calls of the thread check for a tracer. The caller holds the lock
// of System.
func (x *Tracee) hook() { x.task.Hook(x.calls || x.step || x.Debug.Active()) }

// stop stops the thread until the tracer resumes it, or until the process ends. It returns the signal with which the
// thread was resumed. The caller holds the lock of System, which is released during the stop.
func stop(t Thread, code int32, info *signal.Info) signal.Number {
	x, p, s := t.Links().Traced, t.Process(), t.System()
	if x == nil || !x.exiting && (p.Ending() || t.Dismissed()) {
		return 0
	}
	x.endStep()
	x.stopped, x.news, x.code, x.Info, x.inject = true, true, code, info, 0
	x.resume = make(chan struct{})
	resume := x.resume
	x.settle()
	notifyTracer(x.by.Process(), t, signal.ChildTrapped, code)
	s.Unlock()
	for t.Await(resume) != 0 {
		s.Lock()
		if !x.exiting && (p.Ending() || t.Dismissed()) {
			x.release(0)
		}
		s.Unlock()
	}
	s.Lock()
	x.Entering, x.Leaving, x.Filtered = false, false, false
	if t.Links().Traced != x || p.Ending() {
		return x.inject
	}
	if x.step {
		t.Machine().Registers().Flags |= flagTrap
	}
	return x.inject
}

// flagTrap is the bit TF of RFLAGS: an exception follows the next instruction.
const flagTrap = 1 << 8

// endStep clears the flag that has made the thread stop after one instruction.
func (x *Tracee) endStep() {
	if x.step {
		x.task.Machine().Registers().Flags &^= flagTrap
		x.step = false
		x.hook()
	}
}

// stopInfo returns the siginfo of a stop that was not caused by a signal.
func stopInfo(t Thread, n signal.Number, code int32) *signal.Info {
	return &signal.Info{Signal: n, Code: code, PID: int32(t.ID()), UID: t.Identity().UID}
}

// Event stops the thread for an event, if the tracer has requested this event. The tracer reads message by
// PTRACE_GETEVENTMSG. Event reports whether the thread has stopped.
func Event(t Thread, event int32, message uint64) bool {
	s := t.System()
	s.Lock()
	defer s.Unlock()
	x := t.Links().Traced
	if x == nil || x.Options&(1<<event) == 0 {
		return false
	}
	x.Message = message
	code := eventCode(event)
	stop(t, code, stopInfo(t, linux.SIGTRAP, code))
	return true
}

// Job stops a traced thread if its process has stopped, if such a stop has ended (PTRACE_SEIZE), or after
// PTRACE_INTERRUPT. It reports whether the thread has stopped. The caller holds the lock of System.
func Job(t Thread) bool {
	x, p := t.Links().Traced, t.Process()
	switch {
	case x == nil:
		return false
	case p.Stopped() && !x.joined:
		x.joined = true
	case !x.trap && !x.notify:
		return false
	}
	x.trap, x.notify = false, false
	n := signal.Number(linux.SIGTRAP)
	if p.Stopped() {
		n = p.StopSignal()
	}
	if !x.seized {
		stop(t, int32(n), nil)
		return true
	}
	code := int32(n) | linux.PTRACE_EVENT_STOP<<8
	stop(t, code, stopInfo(t, n, code))
	return true
}

// GroupStop stops a thread together with its process, until resumed is closed or the thread has something to attend to. The
// caller holds the lock of System, which is released during the stop.
func GroupStop(t Thread, resumed <-chan struct{}) {
	t.Links().inStop = true
	t.System().Unlock()
	t.Await(resumed)
	t.System().Lock()
	t.Links().inStop = false
}

// Roams reports whether the tracer has resumed the thread while its process is stopped. The caller holds the lock
// of System.
func Roams(t Thread) bool { return t.Links().Traced != nil && t.Links().Traced.joined }

// NotifyContinued makes threads that were attached by PTRACE_SEIZE report that a stop of the process has ended. The caller
// holds the lock of System.
func NotifyContinued(p Process) {
	for t := range p.Threads() {
		x := t.Links().Traced
		if x != nil && !x.seized {
			x.settle() // the thread may run on, without a stop for the tracer
		}
		if x != nil && x.seized {
			x.notify = true
			if x.listening {
				x.release(0)
			}
			t.Alert()
		}
	}
}

// NextDelivery returns the next signal to deliver. The tracer of the thread sees it first, and may replace or drop
// it. The caller holds the lock of System.
func NextDelivery(t Thread) signal.Delivery {
	for t.Links().Traced != nil {
		i, ok := t.Signals().Dequeue()
		if !ok {
			return signal.Delivery{}
		}
		if i, ok = signalStop(t, i); !ok {
			if t.Process().Ending() {
				return signal.Delivery{}
			}
			continue
		}
		if d := t.Signals().Deliver(i); d.Effect != signal.None {
			return d
		}
	}
	return t.Signals().Next()
}

// signalStop stops the thread before the delivery of a signal. It returns the signal to deliver, and false if there is none.
func signalStop(t Thread, i signal.Info) (signal.Info, bool) {
	x := t.Links().Traced
	info := i
	n := stop(t, int32(i.Signal), &info)
	switch {
	case n == 0 || t.Process().Ending():
		return i, false
	case n != info.Signal:
		info = signal.Info{Signal: n, Code: signal.CodeUser, PID: int32(x.by.Process().Node().PID), UID: x.by.Identity().UID}
	}
	if t.Signals().Mask().Has(n) {
		t.Process().Send(t, info)
		return i, false
	}
	return info, true
}

// callStop stops the thread at the beginning or the end of a system call. The caller holds the lock of
// System.
func callStop(t Thread, entry bool) {
	x := t.Links().Traced
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
	if n := stop(t, code, stopInfo(t, linux.SIGTRAP, code)); n != 0 {
		t.Process().Send(t, signal.Info{Signal: n, Code: signal.CodeKernel})
	}
}

// EnterCall stops the thread at the beginning of a system call, if its tracer wants that. The tracer may change the number;
// -1 prevents the call.
func EnterCall(t Thread, number uint64) (uint64, bool) {
	s := t.System()
	s.Lock()
	defer s.Unlock()
	x := t.Links().Traced
	if x == nil {
		return number, true
	}
	x.InCall, x.Number = true, number
	noCall := linux.ENOSYS // the result that the debugger sees when the call begins; it remains the result if the debugger prevents the call
	f := t.Machine().Registers()
	f.AX = -uint64(noCall)
	callStop(t, true)
	return x.Number, !t.Process().Ending() && int32(x.Number) != -1
}

// LeaveCall runs after a call of a thread with a tracer or a filter.
func LeaveCall(t Thread) {
	if !t.Hooked() {
		return
	}
	s := t.System()
	s.Lock()
	defer s.Unlock()
	x := t.Links().Traced
	if x == nil || t.Leaving() {
		return
	}
	if x.step {
		t.Signals().Force(signal.Info{Signal: signal.Trap, Code: trapBreakpoint, Addr: t.Machine().Registers().IP})
		t.Attend()
	} else {
		callStop(t, false)
	}
	if t.Links().Traced == x {
		x.InCall = false
	}
	LoadDebug(t)
}

// Handler stops a single-stepping thread at the first instruction of a signal handler.
func Handler(t Thread) {
	s := t.System()
	s.Lock()
	defer s.Unlock()
	stop(t, linux.SIGTRAP, stopInfo(t, linux.SIGTRAP, linux.SIGTRAP))
}

// Stepping reports whether the thread is single-stepping, and clears the flag: the frame of a handler must not contain it.
func Stepping(t Thread) bool {
	s := t.System()
	s.Lock()
	defer s.Unlock()
	if x := t.Links().Traced; x != nil && x.step {
		x.endStep()
		return true
	}
	return false
}

// Exec reports to the tracer that the thread has executed a new program. former is the ID that the thread had before.
func Exec(t Thread, former uint64) {
	if Event(t, linux.PTRACE_EVENT_EXEC, former) {
		return
	}
	s := t.System()
	s.Lock()
	defer s.Unlock()
	if x := t.Links().Traced; x != nil && !x.seized {
		t.Process().Send(t, signal.Info{Signal: signal.Trap, Code: signal.CodeUser, PID: int32(t.Process().Node().PID), UID: t.Identity().UID})
	}
}

// Inherit makes the tracer of t also trace a new child of t, if the tracer has requested that or the call has
// CLONE_PTRACE. The child begins with a stop. It returns the event that t reports; 0: none. The caller holds the lock
// of System.
func Inherit(t, child Thread, flags, sig uint64) (event int32) {
	x := t.Links().Traced
	if x == nil {
		return 0
	}
	switch {
	case flags&linux.CLONE_UNTRACED != 0:
	case flags&linux.CLONE_VFORK != 0:
		event = linux.PTRACE_EVENT_VFORK
	case sig != linux.SIGCHLD:
		event = linux.PTRACE_EVENT_CLONE
	default:
		event = linux.PTRACE_EVENT_FORK
	}
	if event != 0 && x.Options&(1<<event) == 0 {
		event = 0
	}
	if event == 0 && flags&linux.CLONE_PTRACE == 0 {
		return 0
	}
	y := attach(child, x.by, x.seized, x.Options)
	if y.trap = x.seized; !y.trap {
		child.Signals().Send(signal.Info{Signal: signal.Stop, Code: signal.CodeUser}, true)
	}
	child.Attend()
	return event
}

// Exit stops a thread at its end, if its tracer has requested that.
func Exit(t Thread, status int32) {
	s := t.System()
	s.Lock()
	defer s.Unlock()
	x := t.Links().Traced
	if x == nil || x.Options&linux.PTRACE_O_TRACEEXIT == 0 {
		return
	}
	x.exiting, x.Message = true, uint64(uint32(status))
	code := eventCode(linux.PTRACE_EVENT_EXIT)
	stop(t, code, stopInfo(t, linux.SIGTRAP, code))
}

// KillExiting resumes threads that have stopped at their end, because the process has been killed. The caller holds
// the lock of System.
func KillExiting(p Process) {
	for t := range p.Threads() {
		if x := t.Links().Traced; x != nil && x.exiting {
			x.release(0)
		}
	}
}

// Gone records the end of a thread. Its tracer can wait for it, and the threads that it traced have no tracer any
// more. It reports whether the ID of the thread stays in use. The caller holds the lock of System.
func Gone(t Thread, status int32) (kept bool) {
	for len(t.Links().Tracees) > 0 {
		x := t.Links().Tracees[0]
		if x.dead {
			x.untrace(0)
			x.forget()
			continue
		}
		kill := x.Options&linux.PTRACE_O_EXITKILL != 0
		x.untrace(0)
		if kill {
			x.task.Process().Send(x.task, signal.Info{Signal: signal.Kill, Code: signal.CodeKernel})
		}
	}
	x := t.Links().Traced
	if x == nil {
		return false
	}
	x.dead, x.status, x.stopped = true, status, false
	x.settle()
	if t.ID() == t.Process().Node().PID { // the end of a first thread is reported when the process ends
		t.Process().Links().First = x
		return false
	}
	x.final = true
	notifyTracer(x.by.Process(), t, signal.ChildCode(status), status)
	return true
}

// EndProcess reports the end of a process to the tracer of its first thread. It reports whether the parent is
// notified only after the tracer. The caller holds the lock of System.
func EndProcess(p Process) (held bool) {
	x := p.Links().First
	switch {
	case x == nil:
		return false
	case x.by.Process().Node().PID == p.Node().Parent():
		x.untrace(0)
		p.Links().First = nil
		return false
	}
	x.final, x.status = true, p.Status()
	return true
}

// forget frees the ID that an ended traced thread has kept. The caller holds the lock of System.
func (x *Tracee) forget() {
	t := x.task
	p, s := t.Process(), t.System()
	if t.ID() != p.Node().PID {
		s.Tree().Forget(t.ID())
		return
	}
	p.Links().First = nil
	if !x.final {
		return
	}
	notify := s.Tree().Release(p.Node())
	s.Forget(p.Node().PID)
	if notify == nil {
		return
	}
	if parent := s.Process(notify.PID); parent != nil {
		parent.ChildNews(p, signal.ChildCode(p.Status()), p.Status())
	}
}

// Replaced removes the record of the first thread when another thread gets its ID by execve. The caller holds the
// lock of System.
func Replaced(p Process) {
	if p.Links().First != nil {
		p.Links().First.untrace(0)
		p.Links().First = nil
	}
}

// Unsafe reports whether execve must not grant privileges, because the tracer would not be permitted to trace the new
// program. The caller holds the lock of System.
func Unsafe(p Process) bool {
	for t := range p.Threads() {
		if x := t.Links().Traced; x != nil && !x.by.Identity().Has(linux.CAP_SYS_PTRACE) {
			return true
		}
	}
	return false
}

// Filtered stops the thread for its tracer when a filter returns SECCOMP_RET_TRACE. The tracer may change the system call.
// If no tracer has requested the event, the call fails with ENOSYS. It returns the number of the call to execute, and false
// if none is executed.
func Filtered(t Thread, number uint64, data uint32) (uint64, bool) {
	s := t.System()
	s.Lock()
	defer s.Unlock()
	f, noCall := t.Machine().Registers(), linux.ENOSYS
	f.AX = -uint64(noCall)
	x := t.Links().Traced
	if x == nil || x.Options&linux.PTRACE_O_TRACESECCOMP == 0 {
		return 0, false
	}
	x.InCall, x.Number, x.Filtered, x.Message = true, number, true, uint64(data)
	code := eventCode(linux.PTRACE_EVENT_SECCOMP)
	stop(t, code, stopInfo(t, linux.SIGTRAP, code))
	x.InCall = x.calls
	return x.Number, int32(x.Number) >= 0 && !t.Process().Ending()
}

// Unjoin makes each traced thread report the next stop of its process. The caller holds the lock of System.
func Unjoin(p Process) {
	for t := range p.Threads() {
		if x := t.Links().Traced; x != nil {
			x.joined = false
		}
	}
}

// StopBy makes each traced thread report the stop of its process that the thread by has begun. That thread is in the stop
// already: it calls Job or GroupStop next. The caller holds the lock of System.
func StopBy(p Process, by Thread) {
	Unjoin(p)
	for t := range p.Threads() {
		t.Links().inStop = false
	}
	by.Links().inStop = true
}

// Rejoin makes traced threads that run take part in the current stop of their process. The caller holds the lock
// of System.
func Rejoin(p Process) {
	for t := range p.Threads() {
		if x := t.Links().Traced; x != nil && !x.stopped {
			x.joined = false
			t.Alert()
		}
	}
}

// NotifyEnd notifies the tracer of the first thread of a process that has ended: see EndProcess. The caller holds the
// lock of System.
func NotifyEnd(p Process) {
	x := p.Links().First
	notifyTracer(x.by.Process(), x.task, signal.ChildCode(p.Status()), p.Status())
}

// NewProgram clears the debug registers of a thread that executes another program. The caller holds the lock
// of System.
func NewProgram(t Thread) {
	if x := t.Links().Traced; x != nil {
		x.Debug = DebugRegisters{}
		x.hook()
	}
}

// By returns the tracer, and IsStopped reports whether the thread is stopped. The caller holds the lock of
// System.
func (x *Tracee) By() Thread { return x.by }

func (x *Tracee) IsStopped() bool { return x.stopped }
