package task

import (
	"runtime"
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/mem"
	"loam/mem/pressure"
	"loam/posix"
	"loam/posix/call"
	"loam/posix/credential"
	"loam/task/account"
	"loam/task/family"
	"loam/task/futexcall"
	"loam/task/rseq"
	"loam/task/schedule"
	"loam/task/seccomp"
	"loam/task/signal"
	"loam/task/trace"
)

// Task is one thread of a process. The goroutine of the thread owns all fields, except those whose comment says otherwise.
type Task struct {
	process *Process
	id      family.PID
	name    atomic.Pointer[string] // name of the thread: see comm
	thread  Thread
	signals *signal.Thread // signals of the thread, guarded by System.mu
	caller  call.Caller

	// interrupt ends a wait. alert sends, a wait receives; capacity 1; never closed; full: the next wait ends at once.
	interrupt chan struct{}
	alerted   attention   // requests to the thread, set by alert
	closed    bool        // set when thread has been closed; guarded by System.mu
	dismissed atomic.Bool // the task has to end, since another thread calls execve

	clearID      uint64 // address of the word that is cleared at the end (set_tid_address(2))
	futexes      futexcall.Thread
	rseq         rseq.Registration
	altStack     linux.SigStack
	text         [256]byte        // buffer for strings from the memory of the process
	scratch      [call.Small]byte // buffer for small copies of memory by calls
	frames       []byte           // buffer for frames of signal handlers; nil before the first frame
	again        trace.Again
	usage        account.Usage
	started      time.Duration // time at which the task was created, since the start of the machine
	since        int64         // value of clockNow when CPU time was last charged to the task
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
	t := &Task{process: p, id: id, thread: thread, signals: signals, interrupt: make(chan struct{}, 1), altStack: noAltStack}
	t.futexes = futexcall.NewThread()
	t.caller.Memory = memory{t}
	t.callAs(files, creds)
	t.since = p.system.clock()
	t.started = p.system.monotonic()
	p.tasks = append(p.tasks, t)
	p.system.tasks[id] = t
	return t
}

// loop runs the thread: it alternates between ring 3 and the requests and calls of the thread.
func (t *Task) loop() {
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
	select {
	case t.interrupt <- struct{}{}:
	default:
	}
	if !t.closed {
		t.thread.Kick()
	}
}

// rearm empties the channel interrupt, in which an earlier call may have left a value, unless a request is pending.
// It reports whether the calls of the thread have hooks.
func (t *Task) rearm() (hooked bool) {
	if len(t.interrupt) > 0 {
		select {
		case <-t.interrupt:
		default:
		}
	}
	bits := t.alerted.bits.Load()
	if bits == 0 {
		return false
	}
	if bits&requested != 0 {
		select {
		case t.interrupt <- struct{}{}:
		default:
		}
	}
	return bits&(hookedCall|filteredCall) != 0
}

// serve executes the system call that the thread has made, and calls the tracer and the filters of the thread
// before and after it.
func (t *Task) serve() {
	number := t.thread.Registers().AX
	if !t.rearm() {
		t.execute(number)
		return
	}
	if number, ok := t.enterCall(number); ok {
		t.rearm() // during the stop, the task has received from interrupt, perhaps the value for another request
		t.execute(number)
	}
	trace.LeaveCall(traceTask{t})
}

// execute executes the system call with a number, and stores its result in the registers.
func (t *Task) execute(number uint64) {
	f := t.thread.Registers()
	n, errno := t.call(number, call.Args{A1: f.DI, A2: f.SI, A3: f.DX, A4: f.R10, A5: f.R8, A6: f.R9})
	if errno == noResult {
		return
	}
	f = t.thread.Registers() // read again, because execve may have replaced t.thread
	if errno == 0 {
		f.AX = n
		return
	}
	f.AX = -uint64(errno)
	if errno == linux.EINTR {
		t.again = trace.Again{Pending: true, Number: number, Kind: restartOf(number, f.SI)}
	}
}

// repeat makes the interrupted call again when the thread runs.
func (t *Task) repeat() {
	const instruction = 2 // length of the instruction SYSCALL in bytes
	f := t.thread.Registers()
	f.AX, f.IP = t.again.Number, f.IP-instruction
}

// fault resolves a page fault of the thread, or sends the signal that the fault causes.
func (t *Task) fault() {
	const write, fetch = 1 << 1, 1 << 4 // bits of the error code: SDM volume 3, 4.7
	f := t.thread.Registers()
	access := mem.Load
	switch {
	case f.Code&fetch != 0:
		access = mem.Fetch
	case f.Code&write != 0:
		access = mem.Store
	}
	t.faultAt(t.thread.FaultAddress(), access)
}

// Values of si_code (sigaction(2)).
const (
	segvMap, segvAccess = 1, 2
	busAddress          = 2
	illOperand          = 2
	fpeDivide           = 1
	trapBreak           = 128 // SI_KERNEL: the instruction INT3 was executed
	trapBreakpoint      = 1   // TRAP_BRKPT: a single step over a system call
	trapStep            = 2
	trapWatch           = 4 // TRAP_HWBKPT: a debug register has caused the trap
)

func (t *Task) faultAt(addr uint64, access mem.Access) {
	t.countFault()
	switch result := t.memory().Fault(addr, access); result.Result {
	case mem.MapError:
		t.force(signal.Info{Signal: signal.Segmentation, Code: segvMap, Addr: addr})
	case mem.AccessError:
		t.force(signal.Info{Signal: signal.Segmentation, Code: segvAccess, Addr: addr})
	case mem.BusError:
		t.force(signal.Info{Signal: signal.Bus, Code: busAddress, Addr: addr})
	case mem.NoMemory:
		t.exhausted()
	}
}

// exhausted frees memory, or ends a process, because no memory is left.
func (t *Task) exhausted() {
	const want = 256
	if t.process.system.cache.Free(want) > 0 {
		return
	}
	t.process.system.killLargest(t.process)
	runtime.Gosched()
}

// exception sends the signal for an exception of the processor.
func (t *Task) exception() {
	f := t.thread.Registers()
	i := signal.Info{Signal: signal.Segmentation, Code: signal.CodeKernel}
	switch f.Vector {
	case amd64.VectorDivide:
		i = signal.Info{Signal: signal.FloatingPoint, Code: fpeDivide, Addr: f.IP}
	case amd64.VectorX87, amd64.VectorSIMD:
		i = signal.Info{Signal: signal.FloatingPoint, Addr: f.IP}
	case amd64.VectorInvalid:
		i = signal.Info{Signal: signal.Illegal, Code: illOperand, Addr: f.IP}
	case amd64.VectorDebug:
		var ok bool
		if i, ok = trace.DebugTrap(traceTask{t}, f.IP); !ok {
			return
		}
	case amd64.VectorBreakpoint:
		i = signal.Info{Signal: signal.Trap, Code: trapBreak}
	case amd64.VectorStack, amd64.VectorAlign:
		i.Signal = signal.Bus
	}
	t.force(i)
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
	t.clearTID()
	t.process.system.futexes.Leave(callTask{t})
	t.sample()
	t.charge(&t.usage.System)
	p, s := t.process, t.process.system
	s.mu.Lock()
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
	for i, o := range p.tasks {
		if o == t {
			p.tasks = append(p.tasks[:i:i], p.tasks[i+1:]...)
			break
		}
	}
	if len(p.tasks) == 1 && p.alone != nil {
		close(p.alone)
		p.alone = nil
	}
	delete(p.system.tasks, t.id)
	if t.id != p.node.PID && !keep {
		p.system.tree.Forget(t.id)
	}
}

// killLargest ends the process that package pressure chooses. It does nothing if a process is about to free its memory. If
// all processes are protected, it ends the one that needs the page.
func (s *System) killLargest(needs *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []pressure.Process
	for _, p := range s.processes {
		a := p.space.Load()
		if a == nil { // the memory belongs to the program in ring 0
			continue
		}
		if p.ending {
			return
		}
		all = append(all, pressure.Process{ID: int(p.node.PID), Pages: int64(a.Usage().Private / mem.PageSize), Adjust: int(p.killPreference.Load())})
	}
	victim := needs
	if id, ok := pressure.Choose(s.account.Total, all); ok {
		victim = s.processes[family.PID(id)]
	}
	s.killed.Add(1)
	victim.end(linux.SIGKILL)
}
