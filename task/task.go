package task

import (
	"slices"
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/mem"
	"loam/mem/pressure"
	"loam/posix"
	"loam/posix/call"
	"loam/posix/credential"
	"loam/posix/file"
	"loam/task/account"
	"loam/task/attention"
	"loam/task/family"
	"loam/task/futexcall"
	"loam/task/machine"
	"loam/task/rseq"
	"loam/task/schedule"
	"loam/task/seccomp"
	"loam/task/shortage"
	"loam/task/signal"
	"loam/task/trace"
	"loam/task/trap"
)

// Task is one thread of a process. The goroutine of the thread owns all fields, except those whose comment says otherwise.
type Task struct {
	process   *Process
	id        family.PID
	name      atomic.Pointer[string] // name of the thread: see comm
	thread    Thread
	registers *amd64.Frame   // registers of the field thread
	signals   *signal.Thread // signals of the thread, guarded by System.mu
	caller    call.Caller

	interrupt *file.Interrupt // ends a wait; alert raises it
	alerted   attention.Word  // requests to the thread, set by alert
	sends     bool            // the task sends signals: see lockToSend; guarded by System.mu
	closed    bool            // set when thread has been closed; guarded by System.mu
	dismissed atomic.Bool     // the task has to end, since another thread calls execve

	clearID      uint64 // address of the word that is cleared at the end (set_tid_address(2))
	futexes      futexcall.Thread
	rseq         rseq.Registration
	altStack     linux.SigStack
	text         [256]byte        // buffer for strings from the memory of the process
	scratch      [call.Small]byte // buffer for small copies of memory by calls
	word         [8]byte          // buffer for copies of single words
	frames       []byte           // buffer for frames of signal handlers; nil before the first frame
	again        trace.Again
	usage        account.Usage
	started      time.Duration // time at which the task was created, since the start of the machine
	faultsBefore int64         // number of page faults before the last execve
	sleeps       atomic.Bool   // the thread waits in a call
	traits       schedule.Traits
	leaving      bool  // the thread ends before it returns to ring 3
	exited       bool  // the thread has called exit(2), which ends one thread
	exitCode     int32 // argument of exit(2), in the form of a wait status
	suspended    bool  // a call that waits has set the present signal mask (sigsuspend, ppoll)

	links   trace.Links                    // relations to tracers and traced threads, guarded by System.mu
	filters atomic.Pointer[seccomp.Filter] // filters of seccomp(2), the newest first; System.mu guards stores
}

// newTask adds a thread to a process. The caller holds System.mu unless the process is not published yet.
func (p *Process) newTask(id family.PID, thread Thread, signals *signal.Thread, files *posix.Process, creds *credential.Set) *Task {
	t := &Task{process: p, id: id, signals: signals, interrupt: file.NewInterrupt(), altStack: noAltStack}
	t.futexes.Init(t.interrupt)
	t.caller.Memory = memory{t}
	t.callAs(files, creds)
	t.use(thread)
	t.started = p.system.monotonic()
	p.tasks = append(p.tasks, t)
	p.system.tasks[id] = t
	return t
}

// use makes thread the thread of the machine that runs the task. The time before is not CPU time of the task.
func (t *Task) use(thread Thread) {
	t.thread, t.registers = thread, thread.Registers()
	thread.Spent()
	thread.Bind(t.traits.Bound()) // for execve, which keeps the CPU set
}

// loop runs the thread: it alternates between ring 3 and the requests and calls of the thread.
func (t *Task) loop() {
	if t.process.system.short.Load() {
		t.admit(false) // before the stack needs memory; a signal is handled below
	}
	machine.GrowStack()
	for {
		if t.alerted.Load() || t.again.Pending {
			t.attend()
		}
		if t.leaving {
			t.exit()
			return
		}
		switch t.run() {
		case Call:
			t.serve()
		case Fault:
			t.fault()
		case Exception:
			t.exception()
		case Moved:
			t.checkAccess(rseq.Moved(callTask{t}))
		}
	}
}

// alert makes the task look at its signals and at the state of its process, soon. The caller holds System.mu.
func (t *Task) alert() {
	t.alerted.Store(true)
	if t.sends {
		return
	}
	t.interrupt.Raise()
	if !t.closed {
		t.thread.Kick()
	}
}

// undisturbed reports whether rearm would do nothing: no interrupt, no request, and no tracer or filter.
func (t *Task) undisturbed() bool { return !t.interrupt.Raised() && !t.alerted.Any() }

// rearm empties the channel interrupt, in which an earlier call may have left a value, unless a request is pending.
// It reports whether a tracer or filters see the calls of the thread.
func (t *Task) rearm() (hooked bool) {
	t.interrupt.Clear() // before the load of the requests: alert stores a request before it raises the interrupt
	pending, hooks := t.alerted.State()
	if pending {
		t.interrupt.Raise()
	}
	return hooks
}

// serve executes the system call that the thread has made, and calls the tracer and the filters of the thread before and after it.
func (t *Task) serve() {
	if t.process.system.short.Load() && !t.admit(true) {
		return
	}
	f := t.registers
	number := f.AX
	if !t.undisturbed() && t.rearm() {
		t.serveHooked(number)
		return
	}
	n, errno := t.call(number, call.Args{A1: f.DI, A2: f.SI, A3: f.DX, A4: f.R10, A5: f.R8, A6: f.R9})
	if errno != 0 {
		t.fail(number, errno)
		return
	}
	t.registers.AX = n // execve has replaced the thread of the machine
}

// serveHooked executes a system call of a thread with a tracer or a filter. It returns false if one of them prevents the call.
func (t *Task) serveHooked(number uint64) bool {
	number, ok := t.enterCall(number)
	if ok {
		t.rearm() // during the stop, the task has received from interrupt, perhaps the value for another request
		t.execute(number)
	}
	trace.LeaveCall(traceTask{t})
	return ok
}

// execute executes the system call with a number, and stores its result in the registers.
func (t *Task) execute(number uint64) {
	f := t.registers
	n, errno := t.call(number, call.Args{A1: f.DI, A2: f.SI, A3: f.DX, A4: f.R10, A5: f.R8, A6: f.R9})
	if errno != 0 {
		t.fail(number, errno)
		return
	}
	t.registers.AX = n
}

// fail stores the error of the system call with a number in the registers.
func (t *Task) fail(number uint64, errno linux.Errno) {
	if errno == noResult {
		return
	}
	f := t.registers
	f.AX = -uint64(errno)
	if errno == linux.EINTR {
		t.again = trace.Again{Pending: true, Number: number, Kind: trace.RestartOf(number, f.SI, personality[min(number&(1<<32-1), call.Numbers-1)])}
	}
}

// repeat makes the interrupted call again when the thread runs.
func (t *Task) repeat() {
	const instruction = 2 // length of the instruction SYSCALL in bytes
	f := t.registers
	f.AX, f.IP = t.again.Number, f.IP-instruction
}

// fault resolves a page fault of the thread, or sends the signal that the fault causes.
func (t *Task) fault() {
	if t.process.system.short.Load() && !t.admit(false) {
		return
	}
	f, addr := t.registers, t.thread.FaultAddress()
	t.countFault()
	if access := trap.Access(f); access == mem.Fetch && addr == f.IP && t.vsyscall(addr) {
		return
	} else if trap.Hopeless(f, addr, t.memory()) {
		t.force(signal.Info{Signal: signal.Segmentation, Code: signal.CodeKernel})
	} else if result := t.memory().Fault(addr, access); result.Result == mem.NoMemory {
		t.process.system.guard.Exhausted(t.process.kill)
	} else if i, ok := trap.Page(result.Result, addr); ok {
		t.force(i)
	}
}

// vsyscall executes a call of a function in the vsyscall page, as a system call at the place of the return address. It returns
// false if no function is at addr, or if the stack cannot be read.
func (t *Task) vsyscall(addr uint64) bool {
	number, ok := trap.Vsyscall(addr)
	if !ok {
		return false
	}
	back, errno := t.caller.Memory.Pointer(t.registers.SP)
	if errno != 0 {
		return false
	}
	t.registers.AX, t.registers.IP = number, back
	t.registers.SP += 8
	if t.rearm(); t.serveHooked(number) && int64(t.registers.AX) == -int64(linux.EFAULT) {
		t.force(signal.Info{Signal: signal.Segmentation, Code: signal.CodeKernel})
	}
	return true
}

// admit waits while memory of the kernel is short. It returns false if the thread has to look at its signals first: it then
// makes its system call again. Calls that end the thread do not wait.
func (t *Task) admit(call bool) bool {
	number := t.registers.AX
	if call && (number == linux.SYS_EXIT || number == linux.SYS_EXIT_GROUP) {
		return true
	}
	admitted := t.process.system.guard.Admit(func(ready <-chan struct{}, most time.Duration) bool {
		return t.await(ready, most) != linux.EINTR
	})
	if !admitted && call {
		t.fail(number, linux.EINTR)
		t.again = trace.Again{Pending: true, Number: number, Kind: signal.Always}
	}
	return admitted
}

// exception sends the signal for an exception of the processor.
func (t *Task) exception() {
	f := t.registers
	if f.Vector == amd64.VectorProtection && t.vsyscall(f.IP) {
		return // the machine does not enter ring 3 at an address of the vsyscall page
	} else if f.Vector != amd64.VectorDebug {
		t.force(trap.Exception(f))
	} else if i, ok := trace.DebugTrap(traceTask{t}, f.IP); ok {
		t.force(i)
	}
}

// force sends a signal that the thread's own instruction caused.
func (t *Task) force(i signal.Info) {
	t.process.system.mu.Lock()
	defer t.process.system.mu.Unlock()
	t.signals.Force(i)
	t.alerted.Store(true)
}

// checkAccess sends SIGSEGV if errno is set: the kernel could not access memory of the program that it must access.
func (t *Task) checkAccess(errno linux.Errno) {
	if errno != 0 {
		t.force(signal.Info{Signal: signal.Segmentation, Code: signal.CodeKernel})
	}
}

// memory returns the memory of the process.
func (t *Task) memory() *addressSpace { return t.process.space.Load() }

// exit ends the thread. If it is the last thread, the process ends, too.
func (t *Task) exit() {
	status := t.endStatus()
	trace.Exit(traceTask{t}, status)
	t.process.system.futexes.Leave(callTask{t}, true)
	t.clearTID()
	t.sample()
	t.charge()
	p, s := t.process, t.process.system
	s.mu.Lock()
	t.recordForDump()
	t.thread.Close()
	t.closed = true
	p.past.Add(&t.usage)
	p.remove(t, trace.Gone(traceTask{t}, status))
	last := len(p.tasks) == 0
	s.mu.Unlock()
	if !last {
		return
	}
	p.posix.CloseAll()
	p.endSession()
	t.leaveMemory()
	space := p.space.Load()
	space.leave()
	s.files.Flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	p.ended()
}

// endStatus returns the status with which the thread ends, as wait4(2) reports it.
func (t *Task) endStatus() int32 {
	t.process.system.mu.Lock()
	defer t.process.system.mu.Unlock()
	switch {
	case t.exited:
		return t.exitCode
	case t.process.ending:
		return t.process.status
	}
	return linux.SIGKILL // execve(2) of another thread has ended this thread
}

// remove removes a task from the lists of its process and of the system. With keep, its ID stays in use. The
// caller holds System.mu.
func (p *Process) remove(t *Task, keep bool) {
	p.creds()
	p.lastName = p.tasks[0].comm()
	t.signals.Exit()
	p.tasks = slices.DeleteFunc(slices.Clone(p.tasks), func(o *Task) bool { return o == t })
	if len(p.tasks) == 1 && p.alone != nil {
		close(p.alone)
		p.alone = nil
	}
	delete(p.system.tasks, t.id)
	if t.id != p.node.PID && !keep {
		p.system.tree.Forget(t.id)
	}
}

// candidates returns the processes that may be killed when memory has run out.
func (s *System) candidates() (all []shortage.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.processes {
		if a := p.space.Load(); a != nil { // otherwise the memory belongs to the program in ring 0
			q := pressure.Process{ID: p.PID(), User: p.creds().UID, Adjust: int(p.killPreference.Load())}
			all = append(all, shortage.Process{Process: q, Memory: a.Map, Files: p.posix, Threads: len(p.tasks), Ending: p.ending, Done: p.Done(), Kill: p.kill})
		}
	}
	return all
}

// kill ends the process because memory has run out. If it is about to end, kill only aborts its core dump.
func (p *Process) kill() {
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	if p.ending {
		p.dump.Abort()
		return
	}
	p.system.killed.Add(1)
	p.end(linux.SIGKILL)
}
